package sctptest

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Ending is a way in which an association can end.
type Ending struct {
	Doc   string // what the package comment of sctp/assoc calls it
	Match func(error) bool
	drive func(l *Lab)
	lab   func() *Lab // nil: established by the peer
}

// Drive has an association come to that end.
func (e *Ending) Drive(t testing.TB) *Lab {
	l := (*Lab)(nil)
	if e.lab != nil {
		l = e.lab()
	} else {
		l = Passive(t, nil)
	}
	e.drive(l)
	l.Flush()
	return l
}

// answerHeartbeats answers the HEARTBEATs among packets.
func (l *Lab) answerHeartbeats(pkts []wire.Packet) {
	for _, p := range pkts {
		if c := ChunkOf(p, wire.ChunkHeartbeat); c != nil {
			l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value()))
		}
	}
}

// Endings are all that there are.
func Endings(t testing.TB) []Ending {
	is := func(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }
	aborted := func(byPeer bool, code wire.CauseCode) func(error) bool {
		return func(err error) bool {
			var e *assoc.AbortError
			return errors.As(err, &e) && e.ByPeer == byPeer &&
				(byPeer || (e.Causes[0].Code == wire.CauseUserAbort) == (code == wire.CauseUserAbort))
		}
	}
	adaptation := uint32(1)
	return []Ending{
		{"[ErrShutdown]", is(assoc.ErrShutdown), func(l *Lab) {
			l.A.Shutdown(l.Now)
			l.Flush()
			l.Send(l.Tag, wire.AppendShutdownAck(nil))
		}, nil},
		{"[ErrInitTimeout]", is(assoc.ErrInitTimeout), func(l *Lab) { l.Wait(time.Hour) }, func() *Lab { return Active(t, nil) }},
		{"[ErrTimeout]", is(assoc.ErrTimeout), func(l *Lab) {
			l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("never acknowledged")}})
			l.Wait(time.Hour)
		}, nil},
		{"[StuckError]", func(err error) bool { return errors.As(err, new(*assoc.StuckError)) }, func(l *Lab) {
			l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 1400)}})
			l.Flush()
			l.Report(rawio.KindPacketTooBig, 1400, Packet(PortB, PortA, l.PeerTag))
			for l.A.State() != assoc.Closed { // the peer answers HEARTBEATs alone
				l.answerHeartbeats(l.Wait(l.A.NextTimeout().Sub(l.Now)))
			}
		}, func() *Lab {
			l := NewLab(t)
			l.Host.CutFrom = -1
			l.Listen(nil)
			l.Handshake()
			return l
		}},
		{"[ErrShutdownTimeout]", is(assoc.ErrShutdownTimeout), func(l *Lab) {
			l.A.Shutdown(l.Now)
			l.Wait(time.Hour)
		}, func() *Lab { return Passive(t, &assoc.Config{AssocMaxRetrans: 1000, RTOMax: time.Second}) }},
		{"[ErrTSNResetUnanswered]", is(assoc.ErrTSNResetUnanswered), func(l *Lab) {
			_, _ = l.A.StartInTurn(l.Now, assoc.StreamRequest{ResetTSNs: true})
			for l.A.State() != assoc.Closed { // the peer answers HEARTBEATs alone
				l.answerHeartbeats(l.Wait(time.Second))
				l.A.RequestHeartbeat(l.Now, l.Peer.Addr())
				l.answerHeartbeats(l.Flush())
			}
		}, func() *Lab {
			l := NewLab(t)
			l.Listen(&assoc.Config{AssocMaxRetrans: 3, StreamReset: assoc.OfferStreamReset})
			l.Initiate(wire.AppendSupportedExtensions(nil, wire.ChunkReconfig))
			l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
			return l
		}},
		{"[ErrSucceeded]", is(assoc.ErrSucceeded), func(l *Lab) {
			l.RestoreCookie("a restart")
		}, func() *Lab { return Collector(t, assoc.ShutdownPending) }},
		{"[ErrProtoUnreachable]", is(assoc.ErrProtoUnreachable), func(l *Lab) {
			l.Report(rawio.KindProtoUnreachable, 0, Packet(PortB, PortA, 0, InitChunk(l.Tag, 1)))
		}, func() *Lab { return Active(t, nil) }},
		{"[ErrOvertaken]", is(assoc.ErrOvertaken), func(l *Lab) {
			l.A.OnAnswer(func() bool { return false })
			l.Send(l.Tag, InitAckChunk(1, 1, []byte("cookie")))
			l.Expect(l.Flush(), "") // the peer does not hear of it
		}, func() *Lab { return Active(t, nil) }},
		{"[NoRouteError]", func(err error) bool { return errors.As(err, new(*assoc.NoRouteError)) }, func(l *Lab) {
			l.Report(rawio.KindHostUnreachable, 0, Packet(PortB, PortA, 0, InitChunk(l.Tag, 1)))
		}, func() *Lab { return Active(t, nil) }},
		{"[RefusedError]", func(err error) bool { return errors.As(err, new(*assoc.RefusedError)) }, func(l *Lab) {
			for refused := func() bool {
				l.A.HandleUnroutable(l.Now, &rawio.Packet{Remote: l.Peer}, syscall.EPERM)
				return l.A.State() != assoc.Closed
			}; refused(); {
				l.Wait(l.A.NextTimeout().Sub(l.Now))
			}
		}, func() *Lab { return Active(t, nil) }},
		{"[AbortError] with ByPeer", aborted(true, 0), func(l *Lab) { l.Send(l.Tag, wire.AppendAbort(nil, false)) }, nil},
		{"[AbortError] with cause 12", aborted(false, wire.CauseUserAbort), func(l *Lab) { l.A.Abort(l.Now, nil) }, nil},
		{"[AbortError] with any other cause", aborted(false, 0), func(l *Lab) { l.Send(l.Tag, l.Sack(l.HostTSN+9)) }, nil},
		{"[AdaptationError]", func(err error) bool { return errors.As(err, new(*assoc.AdaptationError)) },
			func(l *Lab) {
				l.Send(l.Tag, InitAckChunk(1, 1, []byte("cookie")))
			}, func() *Lab { return Active(t, &assoc.Config{Adaptation: &adaptation, RequireAdaptation: true}) }},
		{"[MemoryError]", func(err error) bool { return errors.As(err, new(*assoc.MemoryError)) }, func(l *Lab) { l.A.AbortForMemory(2, 1) }, nil},
		{"[InternalError]", func(err error) bool { return errors.As(err, new(*assoc.InternalError)) }, func(l *Lab) {
			defer invariant.TolerateInTest()()
			l.A.Break(invariant.Violation("a test", "nothing"))
		}, nil},
	}
}
