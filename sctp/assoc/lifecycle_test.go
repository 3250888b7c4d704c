package assoc_test

import (
	"bytes"
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestNobodyListens(t *testing.T) {
	w := sctptest.NewWorld(t)
	a := w.Connect(nil)
	w.Run(time.Second)
	err, _ := w.Hosts[0].DownErr()
	var refused *assoc.AbortError
	// req 9260-9.1-4
	check.That(t, a.State() == assoc.Closed && errors.As(err, &refused) && refused.ByPeer, "state %v, %v", a.State(),
		err)
}

func TestCloseGivesReceiveBuffersBack(t *testing.T) {
	l := sctptest.Passive(t, nil)
	pool := rawio.NewPool(1400, 16)
	// a whole message and a lone fragment
	for i, flags := range []uint8{wire.FlagB | wire.FlagE | wire.FlagU, wire.FlagB} {
		chunk := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: l.TSN + wire.TSN(i), PayloadLen: 1200})
		buf := pool.Get()
		n := copy(buf.B, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, append(chunk, make([]byte, 1200)...)))
		p := rawio.Packet{Data: buf.B[:n], Buf: buf, Local: l.Host.Addr, Remote: l.Peer}
		l.Host.Receive(l.Now, &p)
		p.Release()
	}
	must.Equal(t, "buffers held", pool.Outstanding(), 2)
	l.A.Abort(l.Now, nil)
	l.A.Close()
	check.Equal(t, "buffers held after Close", pool.Outstanding(), 0)
}

func TestDetachFreesTheUsersMemory(t *testing.T) {
	w, a, b := sctptest.Pair(t, nil, nil)
	w.Filter = sctptest.Lose(wire.ChunkData, 1)
	mem := bytes.Repeat([]byte("A"), 1200)
	want := bytes.Clone(mem)
	w.Send(a, 2, mem)
	w.Run(time.Millisecond) // lost
	a.Detach(2, mem)
	clear(mem)
	w.Run(5 * time.Second)
	got := sctptest.Drain(b)
	check.That(t, len(got) == 1 && bytes.Equal(got[0], want), "the retransmission carries what the memory holds now")
}

// An ABORT, or a restart, that many messages fail with makes no list of them: each is reported when
// its event is polled, before the end is, and none is sent again meanwhile.
func TestMessagesFailOneByOne(t *testing.T) {
	for _, end := range []struct {
		name string
		last assoc.EventKind
		come func(l *sctptest.Lab)
	}{
		{"ABORT", assoc.EventDown, func(l *sctptest.Lab) {
			l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendAbort(nil, false)))
		}},
		{"restart", assoc.EventRestart, func(l *sctptest.Lab) { l.RestoreCookie("a restart") }},
	} {
		l := sctptest.Collector(t, assoc.Established)
		const n = 1000
		for i := range uint64(n) { // the association has sent one already
			must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("x")}, Token: i + 1}))
		}
		l.A.PollTransmit(l.Now, assoc.NewTxBatch(1))
		for _, ok := l.A.PollEvent(); ok; _, ok = l.A.PollEvent() {
		}
		held := l.A.Held()
		end.come(l)
		now := l.A.Held()
		// what waits for its event is not given back yet
		check.That(t, now >= held && now <= held+8<<10, "%s: %d octets are held, %d before", end.name, now, held)
		for i := range uint64(n + 1) {
			ev, ok := l.A.PollEvent()
			must.That(t, ok && ev.Kind == assoc.EventSendFailed && ev.Token == i && (i != n || ev.Unsent),
				"%s: event %d is %+v", end.name, i, ev)
		}
		ev, _ := l.A.PollEvent()
		check.That(t, ev.Kind == end.last, "%s: behind them comes %v", end.name, ev.Kind)
	}
}

func TestErrorsTellWhatHappened(t *testing.T) {
	for _, row := range []struct {
		err  error
		want string
	}{
		{&assoc.AbortError{}, "sctp: association aborted"},
		{&assoc.AbortError{ByPeer: true, Causes: []assoc.Cause{{Code: wire.CauseUserAbort, Info: []byte("bye")}, {Code: wire.CauseOutOfResource}}},
			`sctp: association aborted by the peer: User-Initiated Abort "bye", Out of Resource`},
		{&assoc.PeerError{Causes: []assoc.Cause{{Code: wire.CauseInvalidStream}}}, "sctp: the peer reports an error: Invalid Stream Identifier"},
		{&assoc.AdaptationError{Want: 1, Absent: true}, "sctp: the peer announced no adaptation layer, 0x1 is required"},
		{&assoc.AdaptationError{Want: 1, Got: 2}, "sctp: the peer announced adaptation layer 0x2, 0x1 is required"},
		{&assoc.ConfigError{Field: "SackDelay", Range: "positive"}, "sctp: Config.SackDelay must be positive"},
	} {
		check.Equal(t, "text", row.err.Error(), row.want)
	}
	var timeout interface{ Timeout() bool }
	check.That(t, errors.As(assoc.ErrTimeout, &timeout) && timeout.Timeout(), "ErrTimeout is no timeout")
	host, other := &assoc.NoRouteError{Err: syscall.EHOSTUNREACH}, &assoc.NoRouteError{Err: syscall.EPERM}
	check.That(t, errors.Is(host, syscall.EHOSTUNREACH) && !errors.Is(host, syscall.ENETUNREACH) &&
		errors.Is(other, syscall.ENETUNREACH) && !errors.Is(other, syscall.EHOSTUNREACH) &&
		errors.Is(&assoc.MemoryError{}, syscall.ENOMEM), "the numbers of what this host says")
	bye := assoc.AbortError{Causes: []assoc.Cause{{Code: wire.CauseOutOfResource, Info: []byte("no")},
		{Code: wire.CauseUserAbort, Info: []byte("bye")}}}
	check.That(t, string(bye.Reason()) == "bye" && new(assoc.AbortError).Reason() == nil, "reason %q", bye.Reason())
}
