package assoc_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// sentLab has sent n messages that fill a packet each.
func sentLab(t *testing.T, n int) *lab.Lab {
	l := lab.Passive(t, nil)
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
	before := l.A.Stats().Counters
	for i, ssn := range []wire.SSN{1, 2, 0} { // in order, and on stream 1 the first has not come
		c := lab.DataChunk(l.TSN, wire.StreamID(1+i/2), ssn, "b")
		c[1] = wire.FlagB | wire.FlagE
		l.TSN++
		l.Send(l.Tag, c)
	}
	for from, want := range []assoc.StreamStats{{NextOut: 3}, {ID: 1, Waiting: 2}, {ID: 2, NextIn: 1}} {
		s, next := l.A.Streams(from, make([]assoc.StreamStats, 0, 1))
		check.That(t, len(s) == 1 && s[0] == want && next == from+1, "from stream %d: %+v, then from %d", from, s, next)
	}
	l.PeerTag = 0x22222222
	l.Shake()
	after := l.A.Stats().Counters
	check.Equal(t, "lives", l.A.Incarnation(), 2)
	check.That(t, after.Restarts == 1 && before.DataOut == 3 && after.DataOut == 3 && after.DataIn == 4,
		"%d DATA out before %d restart, %d after; %d in", before.DataOut, after.Restarts, after.DataOut, after.DataIn)
}

// However many ERROR chunks a peer sends, and however soon its owner polls, there are so many reports in a second.
func TestErrorReportsAreLimitedInRate(t *testing.T) {
	l := lab.Passive(t, nil)
	e := wire.CloseChunk(wire.AppendInvalidStreamCause(wire.AppendError(nil), 1), 0)
	for second, want := range []int{16, 0, 0, 32} { // 0: nobody polls
		reports := 0
		for range 100 {
			l.Deliver(l.Peer, lab.Packet(lab.PortA, lab.PortB, l.Tag, e))
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
