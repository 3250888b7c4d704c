package tx

import (
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

// While what is in flight exceeds cwnd, a stream that sends little goes ahead of one that fills it,
// with new chunks and with such as are sent again. In a round trip that is no more than a
// thirty-second of cwnd.
func TestStreamThatSendsLittleGoesAhead(t *testing.T) {
	const chunk, short = wire.DataHeaderLen + full, wire.DataHeaderLen + 100
	newFullLab := func(t *testing.T, scheduler sched.Scheduler, window *fixedWindow) *extensionsLab {
		l := newExtensionsLab(t, false, false)
		l.s.cfg.StrictRFC, l.noFillMore, l.pathAt(0).cc = false, true, window
		l.pathAt(0).ObserveRTT(ms.Sub(0)) // near: packets are not spread
		l.s.SetScheduler(scheduler)
		return l
	}
	for _, row := range []struct {
		name      string
		strict    bool
		scheduler sched.Scheduler
		size      int // of messages of stream 2
		begun     int // chunks that a message of stream 1 has, of which some were not sent
		want      string
	}{
		{"one message", false, sched.FairCapacity(), 100, 1, "65/2#0BE"},
		{"no scheduler", false, nil, 100, 1, ""},
		{"the letter of the RFC", true, sched.FairCapacity(), 100, 1, ""},
		{"a message that is no little", false, sched.FairCapacity(), 2*chunk + 1, 1, ""},
		{"behind the rest of a message", false, sched.FairCapacity(), 100, 2, "65/1#63E | 66/2#0BE"},
		{"behind too much of a message", false, sched.FairCapacity(), 100, 5, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			window := fixedWindow(64 * chunk)
			l := newFullLab(t, row.scheduler, &window)
			l.s.cfg.StrictRFC = row.strict
			for range 63 {
				l.enqueue(full, Message{Stream: 1})
			}
			l.enqueue(row.begun*full, Message{Stream: 1})
			l.enqueue(full, Message{Stream: 1})
			l.sendPackets()
			check.Equal(t, "in flight", l.pathAt(0).flight.octets, int(window))
			l.enqueue(row.size, Message{Stream: 2})
			check.Equal(t, "sent", l.sendPackets(), row.want)
		})
	}
	t.Run("no more than a share", func(t *testing.T) {
		window := fixedWindow(32 * chunk)
		l := newFullLab(t, sched.FairCapacity(), &window)
		for range 40 {
			l.enqueue(full, Message{Stream: 1})
		}
		l.sendPackets()
		window /= 2
		most := int(window) / aheadShare / short
		for i := range 3 * most {
			l.enqueue(100, Message{Stream: wire.StreamID(2 + i%4)})
		}
		for range 3 {
			l.now += 2 * ms
			check.Equal(t, "chunks that go ahead", strings.Count(l.sendPackets(), "BE"), most)
			check.Equal(t, "more in the same round trip", l.sendPackets(), "")
		}
	})
	t.Run("sent again", func(t *testing.T) {
		window := fixedWindow(32 * chunk)
		l := newFullLab(t, sched.FairCapacity(), &window)
		l.enqueue(full, Message{Stream: 1})
		l.enqueue(100, Message{Stream: 2})
		for range 40 {
			l.enqueue(full, Message{Stream: 1})
		}
		l.sendPackets()
		window = 10 * chunk
		l.now += 2 * ms
		l.sack(0, [2]wire.TSN{3, 10})
		l.s.recovery.bypassCwnd = false // the packet that ignores cwnd was for others
		check.Equal(t, "sent", l.sendPackets(), "2/2#0BE")
	})
}
