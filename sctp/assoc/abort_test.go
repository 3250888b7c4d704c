package assoc_test

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Nothing leaves behind the ABORT, whatever waits to be sent.
func TestAbortIsTheLastPacket(t *testing.T) {
	l := sctptest.Passive(t, nil)
	for range 2 { // a SACK is due
		l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Data("x"),
			wire.AppendHeartbeat(nil, []byte("y"))))
	}
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{{1}}}))
	l.A.Abort(l.Now, nil)
	l.Expect(l.Flush(), "ABORT")
}

func TestAbortTellsBothSidesTheReason(t *testing.T) {
	w, a, b := sctptest.Pair(t, nil, nil)
	w.Send(a, 0, make([]byte, 5000))
	a.Abort(w.Now, []byte("gone fishing"))
	w.Run(time.Second)
	must.That(t, a.State() == assoc.Closed && b.State() == assoc.Closed, "states %v, %v", a.State(), b.State())
	pkts := w.Seen(0, wire.ChunkAbort)
	// req 9260-9.1-1, 9260-3.3.7-2
	must.That(t, len(pkts) == 1 && sctptest.Describe([]wire.Packet{pkts[0].Pkt}) == "ABORT", "%d ABORT packets",
		len(pkts))
	// req 9260-8.5.1-3
	check.That(t, pkts[0].Pkt.VTag() == b.LocalTag(), "the ABORT has not the peer's tag")
	err, _ := w.Hosts[0].DownErr()
	var local *assoc.AbortError
	check.That(t, errors.As(err, &local) && !local.ByPeer && errors.Is(err, syscall.ECONNABORTED), "own side: %v", err)
	err, _ = w.Hosts[1].DownErr()
	var remote *assoc.AbortError
	check.That(t, errors.As(err, &remote) && remote.ByPeer && string(remote.Reason()) == "gone fishing" &&
		errors.Is(err, syscall.ECONNRESET),
		"peer's side: %v", err) // req 9260-9.1-2, 9260-9.1-5
	e, ok := w.Hosts[0].Event(assoc.EventSendFailed)
	check.That(t, ok && e.Unsent, "the queued message: %+v %v", e, ok)
	check.That(t, len(w.Seen(1, wire.ChunkAbort)) == 0, "an ABORT was answered") // req 9260-9.1-3
	check.That(t, a.NextTimeout() == rawio.Never && b.NextTimeout() == rawio.Never,
		"a timer of a dead association runs")
	check.That(t, w.Hosts[0].Endpoint.Len() == 0 && w.Hosts[1].Endpoint.Len() == 0,
		"an endpoint still holds the association")
}

func TestLongAbortReasonFitsThePacket(t *testing.T) {
	l := sctptest.Passive(t, nil)
	l.A.Abort(l.Now, []byte(strings.Repeat("x", 3000)))
	out := l.Flush()
	l.Expect(out, "ABORT")
	code, _ := sctptest.CauseOf(out[0])
	check.That(t, len(out[0]) <= sctptest.MTU && code == wire.CauseUserAbort, "packet of %d octets, cause %v",
		len(out[0]), code)
}

func TestProtocolViolationsAbort(t *testing.T) {
	for _, row := range []struct {
		name  string
		chunk func(l *sctptest.Lab) []byte
		code  wire.CauseCode
	}{
		// req 9260-6.2-27
		{"DATA without user data", func(l *sctptest.Lab) []byte { return sctptest.DataChunk(l.TSN, 0, 0, "") },
			wire.CauseNoUserData},
		// req 9260-12.4-3
		{"SACK for a TSN never sent", func(l *sctptest.Lab) []byte { return l.Sack(l.HostTSN) },
			wire.CauseProtocolViolation},
		{"gap block for a TSN never sent", func(l *sctptest.Lab) []byte {
			return wire.AppendSack(nil, wire.SackFields{CumTSN: l.HostTSN - 1, ARwnd: 9999,
				Gaps: []wire.GapBlock{{Start: 2, End: 3}}})
		}, wire.CauseProtocolViolation},
		{"a fragment without its message", func(l *sctptest.Lab) []byte { c := l.Data("x"); c[1] = 0; return c }, wire.CauseProtocolViolation},
		{"SHUTDOWN for a TSN never sent", func(l *sctptest.Lab) []byte { return wire.AppendShutdown(nil, l.HostTSN+7) }, wire.CauseProtocolViolation},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Passive(t, nil)
			out := l.Send(l.Tag, row.chunk(l), wire.AppendHeartbeat(nil, []byte("x")))
			l.Expect(out, "ABORT")
			code, cause := sctptest.CauseOf(out[0])
			check.That(t, code == row.code && out[0].VTag() == l.PeerTag, "cause %v, tag %#x", code, out[0].VTag())
			want := []byte{0, 9, 0, 8, 0, 0, 3, 0xe8}
			// req 9260-3.3.10.9-1
			check.That(t, code != wire.CauseNoUserData || bytes.Equal(cause, want), "cause %x, want %x",
				[]byte(cause), want)
			l.InState(assoc.Closed)
		})
	}
}

func TestAbortIsTheLastChunk(t *testing.T) {
	t.Run("sent", func(t *testing.T) {
		l := sctptest.Passive(t, nil)
		l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
			wire.AppendHeartbeat(nil, []byte("answer me")), l.Data("x")))
		l.A.Abort(l.Now, nil)
		for _, p := range l.Flush() {
			types := sctptest.ChunkTypes(p)
			// req 9260-3.3.7-3
			check.That(t, !sctptest.Has(p, wire.ChunkAbort) || types[len(types)-1] == wire.ChunkAbort, "sent %v", types)
		}
		l.InState(assoc.Closed)
		check.Equal(t, "something is sent after the ABORT", len(l.Flush()), 0)
	})
	t.Run("received", func(t *testing.T) {
		l := sctptest.NewLab(t)
		p := &sctptest.Placer{}
		l.Host.Placer = p
		l.Listen(nil)
		l.Handshake()
		// req 9260-3.3.7-4
		l.Expect(l.Send(l.Tag, l.Data("place before"), wire.AppendAbort(nil, false), l.Data("place behind")), "")
		l.InState(assoc.Closed)
		check.Equal(t, "what the upper layer saw", strings.Join(p.Seen, ", "), "place before")
	})
}

// liar is a Source that breaks its word: it has nothing until it is told to, and then a message on
// a stream that there is not.
type liar struct{ lies bool }

func (s *liar) Next(_ rawio.Time, _ int, m *assoc.Message) bool {
	*m = assoc.Message{Stream: 4000, Body: [2][]byte{[]byte("to nowhere")}}
	return s.lies
}
func (*liar) Idle() bool                              { return false }
func (*liar) Acked(rawio.Time, wire.StreamID, uint64) {}

// liarLab has an established association whose Source lies from now on.
func liarLab(t *testing.T) *sctptest.Lab {
	l := sctptest.NewLab(t)
	source := new(liar)
	l.Host.Source = source
	l.Listen(nil)
	l.Handshake()
	source.lies = true
	t.Cleanup(invariant.TolerateInTest())
	return l
}

// What cannot happen ends the association that it happens in, and neither the process nor a test
// quietly.
func TestContradictionEndsTheAssociation(t *testing.T) {
	for _, row := range []struct {
		name string
		says string
		ask  func(l *sctptest.Lab) // makes the association ask its Source
	}{
		{"with the next packet", "SACK | ABORT", func(l *sctptest.Lab) {
			l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Data("x")))
		}},
		{"when it wants to shut down", "ABORT", func(l *sctptest.Lab) {
			l.A.Shutdown(l.Now)
			l.InState(assoc.Closed) // at once
		}},
		{"when the peer wants to", "ABORT", func(l *sctptest.Lab) {
			l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
				wire.AppendShutdown(nil, l.HostTSN-1)))
			l.InState(assoc.Closed)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := liarLab(t)
			row.ask(l)
			l.Expect(l.Flush(), row.says)
			l.InState(assoc.Closed)
			err, _ := l.Host.DownErr()
			var broken *assoc.InternalError
			check.That(t, errors.As(err, &broken) && errors.Is(err, syscall.ENOTRECOVERABLE) &&
				strings.Contains(err.Error(), "stream 4000 of 16"), "ended by %v", err)
			check.Equal(t, "contradictions", l.A.Stats().Contradictions, 1)
			l.Expect(l.Send(l.Tag, l.Data("y")), "ABORT") // of the endpoint: there is no association
		})
	}
	t.Run("in the middle of a packet", func(t *testing.T) {
		l := sctptest.NewLab(t)
		p := &sctptest.Placer{}
		l.Host.Placer = p
		l.Listen(nil)
		l.Handshake()
		p.Meet = func() {
			l.A.Break(&assoc.InternalError{})
			l.A.Break(&assoc.InternalError{Where: "the consequences"})
		}
		l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Data("place this"),
			l.Data("place that")))
		l.InState(assoc.Closed)
		l.Expect(l.Flush(), "ABORT")
		err, _ := l.Host.DownErr()
		check.That(t, len(p.Seen) == 1 && err != nil && !strings.Contains(err.Error(), "consequences"),
			"placed %q, ended by %v", p.Seen, err)
	})
	t.Run("in a test it panics", func(t *testing.T) {
		l := liarLab(t)
		invariant.TolerateInTest()() // no more
		defer func() {
			_, ok := recover().(*assoc.InternalError)
			check.That(t, ok, "it passed")
		}()
		l.Send(l.Tag, l.Data("x"))
	})
}
