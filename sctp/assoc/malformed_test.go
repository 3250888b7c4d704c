package assoc_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Every class of malformed packets, with what the RFC says to do: to an established association,
// and to a host that knows of none. The association lives on as if nothing had come.
func TestMalformedPackets(t *testing.T) {
	beat := wire.AppendHeartbeat(nil, []byte("12345678"))
	odd := wire.AppendHeartbeat(nil, []byte("12345")) // three octets of padding
	init := sctptest.InitChunk(0x77, 5)
	with := func(param ...byte) []byte {
		return wire.AppendChunk(nil, wire.ChunkInit, 0, append(init[4:20:20], param...))
	}
	// set returns a copy of b with octets from at on replaced.
	set := func(b []byte, at int, v ...byte) []byte {
		b = slices.Clone(b)
		copy(b[at:], v)
		return b
	}
	type row struct {
		name   string
		tag    func(*sctptest.Lab) uint32
		octets [][]byte // behind the common header
		up     string   // what an association answers
		blue   string   // and a host without one
	}
	rows := []row{
		{"as it should be", ownTag, [][]byte{beat}, "HEARTBEAT ACK", "ABORT"},
		{"no chunk", ownTag, nil, "", ""},
		{"three octets where a chunk should be", ownTag, [][]byte{beat[:3]}, "", ""},
		{"three octets behind a chunk", ownTag, [][]byte{beat, beat[:3]}, "HEARTBEAT ACK", "ABORT"},

		// req 9260-6.10-6: the partial chunk is dropped, what is before it is not
		{"length one past the end", ownTag, [][]byte{set(beat, 3, 17)}, "", ""},
		{"length past the end, behind a chunk", ownTag, [][]byte{beat, set(beat, 3, 17)}, "HEARTBEAT ACK", "ABORT"},
		{"length 65535", ownTag, [][]byte{beat, set(beat, 2, 0xff, 0xff)}, "HEARTBEAT ACK", "ABORT"},
		{"DATA that is cut off", ownTag, [][]byte{sctptest.DataChunk(1000, 0, 0, "0123456789")[:24]}, "", ""},
		{"SACK with more gaps than octets", ownTag, [][]byte{set(wire.AppendSack(nil, wire.SackFields{}), 13, 9)}, "", "ABORT"},
		{"DATA shorter than its header", ownTag, [][]byte{wire.AppendChunk(nil, wire.ChunkData, 3, make([]byte, 8)), beat}, "HEARTBEAT ACK", "ABORT"},

		{"a parameter of an INIT past its end", zeroTag, [][]byte{with(0xc0, 6, 0, 9, 0, 0, 0, 1)}, "ABORT", "ABORT"},
		{"a parameter of an INIT of length 3", zeroTag, [][]byte{with(0xc0, 6, 0, 3)}, "ABORT", "ABORT"},
		{"the parameter of a HEARTBEAT past its end", ownTag, [][]byte{set(beat, 6, 0, 13)}, "", "ABORT"},
		{"a HEARTBEAT without its parameter", ownTag, [][]byte{wire.AppendChunk(nil, wire.ChunkHeartbeat, 0, nil)}, "", "ABORT"},
		{"a cause past the end of its ERROR", ownTag, [][]byte{wire.AppendChunk(nil, wire.ChunkError, 0, []byte{0, 13, 0, 5}), beat}, "HEARTBEAT ACK", "ABORT"},
		// req 9260-3.3.7-5
		{"a cause past the end of an ABORT", ownTag,
			[][]byte{wire.AppendChunk(nil, wire.ChunkAbort, 0, []byte{0, 13, 0, 5})}, "", ""},

		// req 9260-3.2-11, 9260-3.2-8
		{"padding that is not zero", ownTag, [][]byte{set(odd, 13, 1, 2, 3), beat}, "HEARTBEAT ACK HEARTBEAT ACK", "ABORT"},
		{"no padding at the end", ownTag, [][]byte{odd[:13]}, "HEARTBEAT ACK", "ABORT"},
		{"padding counted in the length", ownTag, [][]byte{set(odd, 3, 16)}, "HEARTBEAT ACK", "ABORT"},
		{"four octets of padding", ownTag, [][]byte{beat, make([]byte, 4), beat}, "HEARTBEAT ACK", "ABORT"},

		// req 9260-12.3-1, 9260-8.5.1-2
		{"INIT before another chunk", zeroTag, [][]byte{init, beat}, "", ""},
		{"INIT behind another chunk", zeroTag, [][]byte{beat, init}, "", ""},
		{"INIT behind another chunk, with the tag", ownTag, [][]byte{beat, init}, "HEARTBEAT ACK", ""},
		{"INIT with the tag", ownTag, [][]byte{init}, "", ""},
		{"two INITs", zeroTag, [][]byte{init, init}, "", ""},
		{"INIT ACK before another chunk", ownTag, [][]byte{sctptest.InitAckChunk(0x77, 5, []byte("cookie")), beat}, "", "ABORT"},
		{"SHUTDOWN COMPLETE behind another chunk", ownTag, [][]byte{beat, wire.AppendShutdownComplete(nil, false), beat}, "HEARTBEAT ACK", ""},

		{"tag 0", zeroTag, [][]byte{beat}, "", ""},
		{"tag 0, ABORT", zeroTag, [][]byte{wire.AppendAbort(nil, false)}, "", ""},
		{"Initiate Tag 0", zeroTag, [][]byte{sctptest.InitChunk(0, 5)}, "", ""}, // req 9260-3.3.2-6
		// req 9260-8.5-1
		{"a wrong tag", foreignTag, [][]byte{beat}, "", "ABORT"},
		{"the peer's tag", peerTag, [][]byte{beat}, "", "ABORT"},

		// req 9260-3.2-6
		{"reserved flags of a HEARTBEAT", ownTag, [][]byte{set(beat, 1, 0xff)}, "HEARTBEAT ACK", "ABORT"},
		{"reserved flags of SHUTDOWN ACK, which comes too early", ownTag, [][]byte{set(wire.AppendShutdownAck(nil), 1, 0xff)}, "", "SHUTDOWN COMPLETE"},
		{"reserved flags of an unknown chunk", ownTag, [][]byte{wire.AppendChunk(nil, 0xbe, 0xff, nil), beat}, "HEARTBEAT ACK", "ABORT"},
	}
	for n := range byte(4) { // req 9260-6.10-7
		rows = append(rows,
			row{fmt.Sprintf("chunk of length %d", n), ownTag, [][]byte{set(beat, 3, n), beat}, "", ""},
			row{fmt.Sprintf("chunk of length %d behind another", n), ownTag, [][]byte{beat, set(beat, 3, n), beat},
				"HEARTBEAT ACK", "ABORT"})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
			tag := row.tag(l)
			pkt := sctptest.Packet(sctptest.PortA, sctptest.PortB, tag, row.octets...)
			l.Deliver(l.Peer, pkt)
			check.Equal(t, "answer of an association", sctptest.Describe(l.Flush()), row.up)
			l.CheckUnharmed()
			l = sctptest.NewLab(t)
			l.Listen(nil)
			l.Deliver(l.Peer, pkt)
			got := sctptest.Describe(l.Flush())
			check.That(t, got == row.blue && l.Host.Endpoint.Len() == 0,
				"a host without an association answers %q, want %q; it has %d now", got, row.blue,
				l.Host.Endpoint.Len())
		})
	}
}

// What is no packet, or came to harm on its way, never gets to an association.
func TestPacketsThatAreNone(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	good := sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendHeartbeat(nil, []byte("12345678")))
	before := l.A.Stats()
	for n := range wire.CommonHeaderLen { // req 9260-3.1-1
		l.Deliver(l.Peer, good[:n])
	}
	for bit := range 8 * len(good) { // req 9260-6.8-2, 9260-6.8-3
		bad := bytes.Clone(good)
		bad[bit/8] ^= 1 << (bit % 8)
		l.Deliver(l.Peer, bad)
	}
	// req 9260-3.1-2
	for _, zero := range [][]byte{sctptest.Packet(0, sctptest.PortB, l.Tag, good[12:]),
		sctptest.Packet(sctptest.PortA, 0, l.Tag, good[12:])} {
		l.Deliver(l.Peer, zero)
	}
	l.Expect(l.Flush(), "")
	check.Equal(t, "packets handled", l.A.Stats().PacketsIn, before.PacketsIn)
	s := l.Host.Endpoint.Stats()
	check.That(t, s.Malformed == wire.CommonHeaderLen+2 && s.BadChecksum == uint64(8*len(good)), "%+v", s)
	l.CheckUnharmed()
}

// The flags that a DATA chunk does not have change nothing of it.
func TestReservedFlagsOfData(t *testing.T) {
	// req 9260-3.2-6
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
	d := l.Data("payload")
	d[1] |= 0xf0
	l.Expect(l.Send(l.Tag, d), "SACK")
	got := sctptest.Drain(l.A)
	check.That(t, len(got) == 1 && string(got[0]) == "payload", "%q", got)
}

// An INIT or SHUTDOWN COMPLETE among other chunks makes the rest of the packet void.
func TestNothingIsTakenBehindAChunkThatMustTravelAlone(t *testing.T) {
	// req 9260-3-1
	for _, c := range [][]byte{sctptest.InitChunk(5, 6), wire.AppendShutdownComplete(nil, false)} {
		l := sctptest.Passive(t, nil)
		out := l.Send(l.Tag, wire.AppendHeartbeat(nil, []byte("x")), c, l.Data("behind"))
		l.Expect(out, "HEARTBEAT ACK")
		check.Equal(t, "messages received", len(sctptest.Drain(l.A)), 0)
		l.InState(assoc.Established)
	}
}

func TestReportOfUnknownParametersIsOmittedInAnAbort(t *testing.T) {
	// req 9260-3.2.2-2
	l := sctptest.NewLab(t)
	l.Listen(nil)
	f := wire.InitFields{Tag: l.PeerTag, ARwnd: 5000, OutStreams: 0, InStreams: 1}
	out := l.Send(0, sctptest.InitLike(wire.ChunkInit, f, wire.AppendParam(nil, 0xfabc, []byte("report me"))))
	l.Expect(out, "ABORT")
	ab := must.Get(wire.AsAbort(sctptest.ChunkOf(out[0], wire.ChunkAbort)))(t)
	cs := ab.Causes()
	c, _ := cs.Next()
	_, more := cs.Next()
	// req 9260-3.3.10.7-1
	check.That(t, !more && c.Code() == wire.CauseInvalidParam && len(c) == 4, "cause % x, more %v", c, more)
}
