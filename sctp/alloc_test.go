package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/sctp/sched"
)

// Messages cost no memory on either side once everything has its size, whoever reads them.
func TestMessagesDoNotAllocate(t *testing.T) {
	if race.Enabled {
		t.Skip("under the race detector sync.Pool forgets on purpose")
	}
	for _, size := range []int{100, 1 << 10, 64 << 10} {
		for _, tt := range []struct {
			name string
			cfg  *Config
			read func(s *Conn) func(b []byte) (int, error)
		}{
			{"under a scheduler", &Config{NewScheduler: sched.WeightedFairQueueing, PartialReliability: true, Interleaving: true},
				func(s *Conn) func([]byte) (int, error) {
					return func(b []byte) (int, error) { n, _, err := s.ReadMsg(b); return n, err }
				}},
			{"ReadMsg", nil, func(s *Conn) func([]byte) (int, error) {
				return func(b []byte) (int, error) { n, _, err := s.ReadMsg(b); return n, err }
			}},
			{"Stream", nil, func(s *Conn) func([]byte) (int, error) { return s.Stream(0).Read }},
		} {
			p := newPair(t)
			c, s := p.connect(t, tt.cfg, tt.cfg)
			read, msg, buf := tt.read(s), make([]byte, size), make([]byte, size)
			round := func() {
				for range 4 {
					must.Do(c.WriteMsg(msg, SendInfo{}))(t)
				}
				for octets := 4 * size; octets > 0; {
					n := must.Get(read(buf))(t)
					octets -= n
				}
			}
			for range 200 {
				round()
			}
			n := testing.AllocsPerRun(200, round)
			check.That(t, n == 0, "%s, %d octets: %v allocations for four messages", tt.name, size, n)
		}
	}
}

// An inbox that is never empty keeps its size.
func TestInboxThatIsNeverEmpty(t *testing.T) {
	var b inbox
	b.push(nil)
	for range 10000 {
		b.push(nil)
		b.popFirst()
	}
	check.That(t, cap(b.queue) <= 16 && len(b.queue)-b.head == 1, "room for %d messages, %d of them in use",
		cap(b.queue), len(b.queue)-b.head)
}
