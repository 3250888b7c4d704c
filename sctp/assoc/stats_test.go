package assoc_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// sentLab has sent n messages that fill a packet each.
func sentLab(t *testing.T, n int) *sctptest.Lab {
	l := sctptest.Passive(t, nil)
	for range n {
		must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 1300)}}))
	}
	l.Flush()
	return l
}

// What an association has sent counts on when the peer restarts it.
func TestCountersSurviveARestart(t *testing.T) {
	l := sentLab(t, 3)
	l.Send(l.Tag, l.Data("x"))
	before, came := l.A.Stats().Counters, l.A.PathStats(0).DataIn
	for i, ssn := range []wire.SSN{1, 2, 0} { // in order, and on stream 1 the first has not come
		c := sctptest.DataChunk(l.TSN, wire.StreamID(1+i/2), ssn, "b")
		c[1] = wire.FlagB | wire.FlagE
		l.TSN++
		l.Send(l.Tag, c)
	}
	for from, want := range []assoc.StreamStats{{NextOut: 3}, {ID: 1, Waiting: 2}, {ID: 2, NextIn: 1}} {
		s, next := l.A.Streams(from, make([]assoc.StreamStats, 0, 1))
		check.That(t, len(s) == 1 && s[0] == want && next == from+1, "from stream %d: %+v, then from %d", from, s, next)
	}
	l.PeerTag = 0x22222222
	l.Handshake()
	after := l.A.Stats().Counters
	check.Equal(t, "lives", l.A.Incarnation(), 2)
	check.That(t, after.Restarts == 1 && before.DataOut == 3 && after.DataOut == 3 && after.DataIn == 4 && came == 1,
		"%d DATA out before %d restart, %d after; %d in", before.DataOut, after.Restarts, after.DataOut, after.DataIn)
}

// Streams tells of each stream that was used, wherever it is, and looks at so many in a call.
func TestStreamsInUseAreToldInParts(t *testing.T) {
	w := sctptest.NewWorld(t)
	w.Listen(nil)
	a := w.Connect(&assoc.Config{OutStreams: 59969})
	w.Run(time.Second)
	for _, page := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 937} {
		w.Send(a, wire.StreamID(64*page), []byte("x"))
	}
	w.Run(time.Second)
	for last, x := range map[assoc.StreamStats]*assoc.Assoc{{ID: 59968, NextOut: 1}: a,
		{ID: 59968, NextIn: 1}: w.Peer()} {
		list, next := x.Streams(0, make([]assoc.StreamStats, 0, 18))
		must.That(t, len(list) == 17 && next == 64+1022, "%d streams, then from %d", len(list), next)
		list, next = x.Streams(next, list)
		check.That(t, len(list) == 18 && list[17] == last && next == -1, "%+v, then from %d", list, next)
	}
}

// The window grows only by leave of the owner, which has to find the memory for it, and not where
// its size was chosen.
func TestWindowGrowsByLeave(t *testing.T) {
	for _, row := range []struct {
		buffer       int
		leave, grows bool
	}{{0, true, true}, {0, false, false}, {1 << 20, true, false}} {
		w := sctptest.NewWorld(t)
		w.Listen(&assoc.Config{RecvBuffer: row.buffer})
		a := w.Connect(nil)
		w.Run(time.Second)
		b, size, asked := w.Peer(), 1<<20, false
		b.OnGrow(func(octets int) bool {
			if asked = true; row.leave {
				size = octets + b.Buffered()
			}
			return row.leave
		})
		w.Send(b, 0, []byte("how far?"))
		s := w.StartStream(a, b, 3000)
		w.RunUntil(w.Now.Add(time.Minute), s.Done)
		st := b.Stats()
		check.That(t, s.Done() && st.RecvWindow+st.Buffered == size && (size > 1<<20) == row.grows &&
			asked == (row.buffer == 0), "%+v: asked %v, a window of %d, want %d", row, asked, st.RecvWindow, size)
		held := b.Held()
		w.Run(3 * time.Minute)
		check.That(t, b.Held() < held/4, "who is idle holds %d octets, and held %d", b.Held(), held)
	}
}

// However many ERROR chunks a peer sends, and however soon its owner polls, there are so many
// reports in a second.
func TestErrorReportsAreLimitedInRate(t *testing.T) {
	l := sctptest.Passive(t, nil)
	e := wire.CloseChunk(wire.AppendInvalidStreamCause(wire.AppendError(nil), 1), 0)
	for second, want := range []int{16, 0, 0, 32} { // 0: nobody polls
		reports := 0
		for range 100 {
			l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, e))
			for ok := want > 0; ok; {
				var ev assoc.Event
				if ev, ok = l.A.PollEvent(); ev.Kind == assoc.EventPeerError {
					reports++
				}
			}
		}
		check.That(t, reports == want, "second %d: %d reports", second, reports)
		l.Now = l.Now.Add(time.Second)
	}
	check.Equal(t, "reports counted as lost", l.A.Stats().ErrorReportsLost, 4*100-16-32)
}
