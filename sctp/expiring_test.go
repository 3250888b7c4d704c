package sctp

import (
	"encoding/binary"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// Messages of a telephone call, each worth something for 100 ms, over a road that loses 3 %: what
// arrives is fresh, and what is lost keeps nothing back. What arrives later than its life was on
// its way when that ended.
func TestMessagesThatExpireArriveFresh(t *testing.T) {
	race.Alone(t)
	const (
		delay, every, life = 10 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond
		count              = 6000
	)
	for name, send := range map[string]SendInfo{
		"ordered":   {Abandon: AbandonExpired, Lifetime: life},
		"unordered": {Abandon: AbandonExpired, Lifetime: life, Unordered: true},
		"sent once": {Abandon: AbandonResent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ends := overRoad(t, simnet.Params{Delay: delay, Loss: 0.03, MTU: 1500}, nil)
				cfg := &Config{PartialReliability: true, NoDelay: true, Events: 100, EventKinds: []EventKind{EventSendFailed}}
				c, s := connectTransports(t, ends[0], ends[1], cfg, cfg)
				began := time.Now()
				var failed atomic.Int64
				go func() {
					for ev, err := c.NextEvent(t.Context()); err == nil; ev, err = c.NextEvent(t.Context()) {
						if ev.Kind == EventSendFailed {
							failed.Add(1)
						}
					}
				}()
				go func() {
					for i := range count {
						time.Sleep(time.Until(began.Add(time.Duration(i) * every)))
						p := binary.BigEndian.AppendUint64(nil, uint64(time.Since(began)))
						must.Do(c.WriteMsg(append(p, make([]byte, 92)...), send))(t)
					}
					time.Sleep(time.Second)
					c.Close() // it says so if the last message is given up
				}()
				var took []time.Duration
				p := make([]byte, 200)
				for {
					n, _, err := s.ReadMsg(p)
					if err != nil {
						break
					}
					must.Equal(t, "octets", n, 100)
					took = append(took, time.Since(began)-time.Duration(binary.BigEndian.Uint64(p)))
				}
				<-c.Done()
				slices.Sort(took)
				latest := took[len(took)-1]
				t.Logf("%d of %d arrive, %d were given up, within %v (p50), %v (p99), %v", len(took), count, failed.Load(),
					took[len(took)/2], p99(took), latest)
				check.That(t, p99(took) < 150*time.Millisecond, "p99 is %v", p99(took))
				// It was sent before its end, and what is before it in its stream is given up by
				// then too.
				check.That(t, latest <= life+4*delay, "one is %v late", latest)
				check.That(t, len(took) >= count*94/100, "%d of %d messages arrive", len(took), count)
				check.That(t, len(took)+int(failed.Load()) >= count, "%d arrive and %d are given up, of %d", len(took), failed.Load(), count)
			})
		})
	}
}
