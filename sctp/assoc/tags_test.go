package assoc_test

import (
	"bytes"
	"io"
	"math/rand"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestVerificationTagRules(t *testing.T) {
	abort := func(t bool) []byte { return wire.AppendAbort(nil, t) }
	complete := func(t bool) []byte { return wire.AppendShutdownComplete(nil, t) }
	ackSent := func(t *testing.T) *sctptest.Lab {
		l := sctptest.Passive(t, nil)
		l.Expect(l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1)), "SHUTDOWN ACK")
		return l
	}
	up := func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) }
	for _, row := range []struct {
		name   string
		lab    func(*testing.T) *sctptest.Lab
		tag    func(*sctptest.Lab) uint32
		chunks [][]byte
		ends   bool
	}{
		// req 9260-8.5.1-4
		{"ABORT, own tag, T=0: accepted", up, ownTag, [][]byte{abort(false)}, true},
		{"ABORT, own tag, T=1: discarded", up, ownTag, [][]byte{abort(true)}, false},
		{"ABORT, peer's tag, T=1: accepted", up, peerTag, [][]byte{abort(true)}, true},
		{"ABORT, peer's tag, T=0: discarded", up, peerTag, [][]byte{abort(false)}, false},
		{"ABORT, foreign tag, T=1: discarded", up, foreignTag, [][]byte{abort(true)}, false},
		{"ABORT behind a HEARTBEAT, T=0: accepted, the HEARTBEAT unanswered", up, ownTag, // req 9260-9.1-3
			[][]byte{wire.AppendHeartbeat(nil, []byte("x")), abort(false)}, true},
		{"ABORT behind a HEARTBEAT, T=1: the packet is discarded", up, ownTag,
			[][]byte{wire.AppendHeartbeat(nil, []byte("x")), abort(true)}, false},
		// req 9260-3.3.7-5
		{"ABORT with a broken cause: discarded", up, ownTag,
			[][]byte{wire.AppendChunk(nil, wire.ChunkAbort, 0, []byte{0, 12, 0, 99})}, false},
		// req 9260-8.5.1-7
		{"SHUTDOWN COMPLETE, own tag, T=0: accepted", ackSent, ownTag, [][]byte{complete(false)}, true},
		{"SHUTDOWN COMPLETE, own tag, T=1: discarded", ackSent, ownTag, [][]byte{complete(true)}, false},
		{"SHUTDOWN COMPLETE, peer's tag, T=1: accepted", ackSent, peerTag, [][]byte{complete(true)}, true},
		{"SHUTDOWN COMPLETE, peer's tag, T=0: discarded", ackSent, peerTag, [][]byte{complete(false)}, false},
		{"SHUTDOWN COMPLETE in ESTABLISHED: ignored", up, ownTag, [][]byte{complete(false)}, false}, // req 9260-8.5.1-8
		// req 9260-8.5-1
		{"HEARTBEAT with the peer's tag: discarded", up, peerTag, [][]byte{wire.AppendHeartbeat(nil, []byte("x"))}, false},
		{"HEARTBEAT with a foreign tag: discarded", up, foreignTag, [][]byte{wire.AppendHeartbeat(nil, []byte("x"))}, false},
		// req 9260-8.5.1-2, 9260-12.3-1
		{"tag 0 without INIT: discarded", up, zeroTag, [][]byte{wire.AppendHeartbeat(nil, []byte("x"))}, false},
		{"tag 0 with ABORT: discarded", up, zeroTag, [][]byte{abort(false)}, false},
		{"INIT with another chunk: discarded", up, zeroTag, [][]byte{sctptest.InitChunk(9, 9), wire.AppendHeartbeat(nil, []byte("x"))}, false},
		{"INIT with a tag: discarded", up, ownTag, [][]byte{sctptest.InitChunk(9, 9)}, false},
		{"INIT behind another chunk with tag 0: discarded", up, zeroTag, [][]byte{wire.AppendHeartbeat(nil, []byte("x")), sctptest.InitChunk(9, 9)}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state := l.A.State()
			l.Expect(l.Send(row.tag(l), row.chunks...), "")
			if row.ends {
				l.InState(assoc.Closed)
			} else {
				l.InState(state)
			}
		})
	}
}

func ownTag(l *sctptest.Lab) uint32     { return l.Tag }
func peerTag(l *sctptest.Lab) uint32    { return l.PeerTag }
func foreignTag(l *sctptest.Lab) uint32 { return l.Tag ^ l.PeerTag ^ 0x5a5a5a5a }
func zeroTag(*sctptest.Lab) uint32      { return 0 }

func TestPacketFromAnAddressThatIsNotThePeersIsDropped(t *testing.T) {
	l := sctptest.Passive(t, nil)
	other := netip.MustParseAddrPort("10.0.0.77:0")
	l.Expect(l.SendFrom(other, l.Tag, wire.AppendHeartbeat(nil, []byte("x"))), "")
	l.Expect(l.SendFrom(other, l.Tag, sctptest.DataChunk(l.TSN, 0, 0, "x")), "")
	got := sctptest.Drain(l.A)
	check.That(t, got == nil, "received %q", got)
	l.Expect(l.SendFrom(l.Peer, l.Tag, wire.AppendHeartbeat(nil, []byte("x"))), "HEARTBEAT ACK")
}

func TestTagsAndTSNsAreRandom(t *testing.T) {
	// req 9260-3.3.2-14, 9260-3.3.3-11: each bit of them is 0 in some and 1 in others.
	var tsn, tag [2]struct{ ones, zeros uint32 }
	note := func(side int, i wire.Init) {
		tsn[side].ones |= uint32(i.TSN())
		tsn[side].zeros |= ^uint32(i.TSN())
		tag[side].ones |= i.Tag()
		tag[side].zeros |= ^i.Tag()
	}
	l := sctptest.NewLab(t)
	l.Listen(nil)
	for i := range 64 {
		a := must.Get(l.Host.Endpoint.Connect(l.Now, nil, 0, l.Host.Addr, []netip.AddrPort{l.Peer}, uint16(1+i)))(t)
		l.Host.Assocs = []*assoc.Assoc{a}
		init, _ := wire.AsInit(sctptest.ChunkOf(l.Flush()[0], wire.ChunkInit))
		note(0, init)
		l.Host.Assocs = nil
		out := l.Send(0, sctptest.InitChunk(uint32(1+i), 1))
		ack, _ := wire.AsInit(sctptest.ChunkOf(out[0], wire.ChunkInitAck))
		note(1, ack)
	}
	for side, what := range []string{"INIT", "INIT ACK"} {
		check.That(t, tsn[side].ones&tsn[side].zeros == 1<<32-1 && tag[side].ones&tag[side].zeros == 1<<32-1,
			"%s: some bits of TSN or tag never change", what)
	}
}

func TestInitiateTagIsNeverZero(t *testing.T) {
	// req 9260-3.3.3-2: randomness that begins with zeros is drawn again.
	rnd := io.MultiReader(bytes.NewReader(make([]byte, 24)), rand.New(rand.NewSource(1)))
	l := sctptest.NewLab(t)
	l.Host.Endpoint = endpoint.New(endpoint.Config{Rand: rnd, MTU: func(_, _ netip.Addr) int { return sctptest.MTU }})
	l.Listen(nil)
	l.Initiate()
	check.That(t, l.Tag != 0, "INIT ACK with Initiate Tag 0")
}

// dries up after a number of octets.
type dries struct{ left int }

func (d *dries) Read(p []byte) (int, error) {
	if d.left -= len(p); d.left < 0 {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = byte(d.left + i)
	}
	return len(p), nil
}

// Without randomness no tag is made: an INIT is refused, and one for an association leaves it as it
// is.
func TestNoTagWithoutRandomness(t *testing.T) {
	for enough := range 6 * 8 {
		l := sctptest.NewLab(t)
		rnd := &dries{left: 8 * enough}
		l.Host.Endpoint = endpoint.New(endpoint.Config{Rand: rnd,
			MTU: func(_, _ netip.Addr) int { return sctptest.MTU }})
		l.Listen(nil)
		out := l.Send(0, sctptest.InitChunk(l.PeerTag, l.TSN))
		if rnd.left < 0 {
			l.Expect(out, "ABORT")
			code, _ := sctptest.CauseOf(out[0])
			check.That(t, code == wire.CauseOutOfResource, "cause %v", code)
			continue
		}
		l.NoteInitAck(out[0])
		l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
		out = l.Send(0, sctptest.InitChunk(0x12121212, 5))
		if l.InState(assoc.Established); rnd.left < 0 {
			l.Expect(out, "")
			continue
		}
		l.NoteInitAck(out[0])
		check.That(t, l.Tag != l.A.LocalTag() && l.Tag != 0, "tag %#x for a restart of %#x", l.Tag, l.A.LocalTag())
		return
	}
	t.Error("there is never enough")
}
