package sctp

import (
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// steps is a link that reads so many packets at a time, and waits before that when it is told to.
type steps struct {
	*mem.Link
	most int
	hold chan struct{} // what ReadBatch waits for
}

func (s *steps) ReadBatch(pkts []rawio.Packet) (int, error) {
	n, err := s.Link.ReadBatch(pkts[:1])
	<-s.hold
	return n + s.Link.PollBatch(pkts[n:s.most]), err
}

func (s *steps) PollBatch(pkts []rawio.Packet) int { return s.Link.PollBatch(pkts[:s.most]) }

// twice is a link that sends each packet twice while it is told to.
type twice struct {
	*mem.Link
	on atomic.Bool
}

func (l *twice) WriteBatch(pkts []rawio.Packet) (int, error) {
	if l.on.Load() {
		l.Link.WriteBatch(pkts)
	}
	return l.Link.WriteBatch(pkts)
}

// Prompt implements rawio.Prompter.
func (l *twice) Prompt() rawio.Link { return l }

// Packets that come while others are handled are answered with them, except after a loss: then one
// SACK would stand for too much.
func TestOneSackForWhatComesMeanwhile(t *testing.T) {
	needsAdaptive(t)
	garbage := []byte("no SCTP packet at all")
	for _, tt := range []struct {
		name    string
		plain   bool // the link is no rawio.Poller
		most    int
		between []byte // what comes between the packets
		dup     bool   // a packet has come twice before: there are losses
		sacks   uint64
	}{
		{"polling", false, 2, nil, false, 1},
		{"not polling", true, 2, nil, false, 4},
		{"polling, and packets for nobody between", false, 2, garbage, false, 1},
		{"not polling, and packets for nobody between", true, 8, garbage, false, 2},
		{"polling, after a loss", false, 8, nil, true, 4}, // req 9260-6.2-7
	} {
		t.Run(tt.name, func(t *testing.T) {
			la, lb := mempair.New(t, mem.Options{MTU: 1500})
			sender := &twice{Link: la}
			s := &steps{Link: lb, most: tt.most, hold: make(chan struct{})}
			var link rawio.Link = s
			if tt.plain {
				link = struct{ rawio.Link }{s}
			}
			p := &pair{bAddr: lb.LocalAddrs()[0].Addr()}
			for _, end := range []struct {
				t **Transport
				l rawio.Link
			}{{&p.a, sender}, {&p.b, link}} {
				*end.t = must.Get(NewTransport(end.l, nil))(t)
				t.Cleanup(func() { (*end.t).Close() })
			}
			let := make(chan struct{}) // ends when packets are held back
			go func() {
				for {
					select {
					case s.hold <- struct{}{}:
					case <-let:
						return
					}
				}
			}()
			c, d := p.connect(t, nil, nil)
			must.Do(c.WriteMsg([]byte("the first DATA is acknowledged at once"), SendInfo{}))(t)
			until(t, "the first SACK, and the path MTU", func() bool {
				s := c.Stats()
				return s.SacksIn == 1 && s.MTUProbesOut == s.MTUProbesAcked && s.MTUProbesOut > 0
			})
			if tt.dup {
				sender.on.Store(true)
				must.Do(c.WriteMsg([]byte("twice"), SendInfo{}))(t)
				until(t, "the SACK of what has come twice", func() bool { return c.Stats().SacksIn == 2 })
				sender.on.Store(false)
			}
			let <- struct{}{}
			before := d.Stats().SacksOut
			for range 8 {
				must.Do(c.WriteMsg(make([]byte, 100), SendInfo{NoBundle: true}))(t)
				if tt.between == nil {
					continue
				}
				must.Do(
					la.WriteBatch(
						[]rawio.Packet{{Vec: [][]byte{tt.between}, Remote: netip.AddrPortFrom(p.bAddr, 0)}}))(t)
			}
			close(s.hold)
			until(t, "the SACKs", func() bool { return c.Stats().Unacked == 0 })
			check.Equal(t, "SACKs for eight packets", d.Stats().SacksOut-before, tt.sacks)
		})
	}
}
