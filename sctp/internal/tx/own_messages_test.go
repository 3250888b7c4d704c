package tx

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The association's own messages go before what the program has queued. Only what has begun is
// finished first.
func TestOwnMessagesGoFirst(t *testing.T) {
	for _, c := range []struct {
		name      string
		scheduler func() sched.Scheduler
		begun     bool // the first message, when the own ones come
		changes   bool // the scheduler is replaced then
		want      []uint64
	}{
		{"nothing was sent", nil, false, false, []uint64{100, 101, 1, 2, 3}},
		{"the first has begun", nil, true, false, []uint64{1, 100, 101, 2, 3}},
		{"a scheduler", sched.RoundRobin, false, false, []uint64{100, 101, 1, 2, 3}},
		{"a scheduler, the first has begun", sched.RoundRobin, true, false, []uint64{1, 100, 101, 2, 3}},
		{"a scheduler that is replaced", sched.RoundRobin, true, true, []uint64{1, 100, 101, 2, 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t, 1)
			if c.scheduler != nil {
				l.s.SetScheduler(c.scheduler())
			}
			for token := range uint64(3) {
				m := Message{Stream: wire.StreamID(token), Body: [2][]byte{bytes.Repeat([]byte{1}, 12*full)}, Token: token + 1}
				must.OK(t, l.s.Enqueue(&m))
			}
			if c.begun {
				l.transmit()
			}
			buffered := l.s.Buffered()
			for token := uint64(100); token < 102; token++ {
				l.s.EnqueueOwn(&Message{Stream: 0, Body: [2][]byte{make([]byte, 2*full)}, Token: token, NoBundle: true})
			}
			check.Equal(t, "octets of them", l.s.Buffered()-buffered, 4*full)
			for len(l.acked) < 5 {
				l.sack(l.s.NextTSN() - 1)
				if l.transmit(); c.changes {
					l.s.SetScheduler(sched.RoundRobin())
				}
				l.check()
				must.That(t, l.transmitCount < 100, "no end of it: %v", l.acked)
			}
			check.Slice(t, "acknowledged", l.acked, c.want)
			check.That(t, l.s.Idle(l.now) && l.s.Buffered() == 0 && l.s.Queued() == 0, "%d octets are left", l.s.Buffered())
		})
	}
}

// When the association ends they fail like all others.
func TestOwnMessagesFail(t *testing.T) {
	l := newLab(t, 1)
	l.enqueueMany(1, full)
	l.s.EnqueueOwn(&Message{Body: [2][]byte{make([]byte, 9)}, Token: 100})
	l.s.Stop()
	var tokens []uint64
	for f, ok := l.s.NextFailed(); ok; f, ok = l.s.NextFailed() {
		tokens = append(tokens, f.Token)
	}
	check.Slice(t, "failed", tokens, []uint64{100, 1})
}
