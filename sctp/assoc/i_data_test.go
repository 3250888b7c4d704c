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

// iData makes an I-DATA chunk.
func iData(f wire.IDataFields, payload string) []byte {
	f.PayloadLen = len(payload)
	return append(append(wire.AppendIDataHeader(nil, f), payload...), wire.Padding(len(payload))...)
}

// iDataPart makes an ordered I-DATA chunk of the first message of a stream.
func iDataPart(tsn wire.TSN, stream wire.StreamID, fsn wire.FSN, flags uint8, payload string) []byte {
	return iData(wire.IDataFields{Flags: flags, TSN: tsn, Stream: stream, FSN: fsn}, payload)
}

// wholeIData makes an I-DATA chunk of a whole message of stream 0.
func wholeIData(tsn wire.TSN, mid wire.MID, payload string) []byte {
	return iData(wire.IDataFields{Flags: wire.FlagB | wire.FlagE, TSN: tsn, MID: mid}, payload)
}

// interleaving returns an association whose peer, a script, sends I-DATA. The next TSN is 1000.
func interleaving(t *testing.T, cfg *assoc.Config) *sctptest.Lab {
	t.Helper()
	l := sctptest.Passive(t, cfg)
	l.A.AgreeOn(true, true)
	return l
}

func TestIDataIsTaken(t *testing.T) {
	const b, e = wire.FlagB, wire.FlagE
	for _, row := range []struct {
		name    string
		packets [][][]byte
		cum     wire.TSN // of the SACK for the last
		want    string
	}{
		// req 8260-2.2.3-1
		{"messages of two streams in turn", [][][]byte{{iDataPart(1000, 1, 0, b, "a"), iDataPart(1001, 2, 0, b, "x")},
			{iDataPart(1002, 1, 1, e, "b"), iDataPart(1003, 2, 1, e, "y")}}, 1003, "ab|xy|"},
		{"a first fragment that is late", [][][]byte{{iDataPart(1001, 1, 1, e, "b")}, {iDataPart(1000, 1, 0, b, "a")}}, 1001,
			"ab|"},
		{"an I-FORWARD-TSN releases what waits", [][][]byte{{wholeIData(1001, 1, "b")},
			{wire.AppendIForwardTSN(nil, 1000, []wire.ISkip{{MID: 0}})}}, 1001, "b|"},
		{"and drops what is in assembly", [][][]byte{{iDataPart(1000, 0, 0, b, "half"), wholeIData(1002, 1, "b")},
			{wire.AppendIForwardTSN(nil, 1001, []wire.ISkip{{MID: 0}})}}, 1002, "b|"},
		{"reserved bits mean nothing", [][][]byte{{wholeIData(1000, 0, "a")}, {func() []byte {
			// req 8260-2.1-2
			c := wholeIData(1001, 1, "b")
			c[1], c[10], c[11] = c[1]|0xf0, 0xff, 0xff
			return c
		}()}}, 1001, "a|b|"},
		{"a duplicate is no second message", [][][]byte{{wholeIData(1000, 0, "a")}, {wholeIData(1000, 0, "a")}}, 1000, "a|"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := interleaving(t, nil)
			for _, chunks := range row.packets {
				l.Send(l.Tag, chunks...)
			}
			out := l.Send(l.Tag, wire.AppendIForwardTSN(nil, 999, nil)) // out of date: a SACK is due at once
			check.Equal(t, "cumulative TSN", cumOf(t, out), row.cum)
			check.Equal(t, "received", textOf(sctptest.Drain(l.A)), row.want)
			check.Equal(t, "octets held", l.A.Stats().Buffered, 0)
			must.OK(t, l.A.Audit(0))
		})
	}
}

// The one kind of chunk where the other was agreed on ends the association, and so does what was
// never offered. A FORWARD TSN alone is unknown then: see TestForwardTSNThatIsNotTaken.
func TestChunksThatWereNotAgreedOn(t *testing.T) {
	data, whole := ordered(1000, 0, "data"), wholeIData(1000, 0, "data")
	forward := wire.AppendForwardTSN(nil, 1005, nil)
	iForward := wire.AppendIForwardTSN(nil, 1005, nil)
	for _, row := range []struct {
		name        string
		pr, idata   bool
		chunk       []byte
		endsBecause string
	}{
		// req 8260-2.2.3-2
		// req 8260-2.2.3-3
		{name: "DATA with I-DATA", idata: true, chunk: data, endsBecause: "DATA where I-DATA was agreed on"},
		{name: "DATA with I-DATA and I-FORWARD-TSN", pr: true, idata: true, chunk: data,
			endsBecause: "DATA where I-DATA was agreed on"},
		{name: "I-DATA where nothing was", chunk: whole, endsBecause: "I-DATA where it was not agreed on"},
		{name: "I-DATA with FORWARD TSN alone", pr: true, chunk: whole, endsBecause: "I-DATA where it was not agreed on"},
		// req 8260-2.3.1-3
		{name: "FORWARD TSN with I-FORWARD-TSN", pr: true, idata: true, chunk: forward,
			endsBecause: "FORWARD TSN where I-FORWARD-TSN was agreed on"},
		{name: "I-FORWARD-TSN with FORWARD TSN", pr: true, chunk: iForward,
			endsBecause: "I-FORWARD-TSN where it was not agreed on"},
		{name: "I-FORWARD-TSN with I-DATA alone", idata: true, chunk: iForward,
			endsBecause: "I-FORWARD-TSN where it was not agreed on"},
		{name: "I-FORWARD-TSN where nothing was", chunk: iForward, endsBecause: "I-FORWARD-TSN where it was not agreed on"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Passive(t, nil)
			l.A.AgreeOn(row.pr, row.idata)
			out := l.Send(l.Tag, row.chunk, wire.AppendHeartbeat(nil, []byte("x")))
			l.Expect(out, "ABORT")
			code, info := sctptest.CauseOf(out[0])
			check.Equal(t, "cause", code, wire.CauseProtocolViolation)
			check.Equal(t, "reason", string(info[4:]), row.endsBecause)
			l.InState(assoc.Closed)
			check.Equal(t, "violations", l.A.Stats().Violations, 1)
		})
	}
}

func TestIDataThatIsNotTaken(t *testing.T) {
	t.Run("without user data", func(t *testing.T) {
		l := interleaving(t, nil)
		out := l.Send(l.Tag, iDataPart(1000, 0, 0, wire.FlagB|wire.FlagE, ""))
		l.Expect(out, "ABORT")
		code, info := sctptest.CauseOf(out[0])
		check.That(t, code == wire.CauseNoUserData && string(info[4:]) == "\x00\x00\x03\xe8", "cause %v %x", code, info)
	})
	t.Run("for a stream that there is not", func(t *testing.T) {
		l := interleaving(t, &assoc.Config{InStreams: 4})
		l.Expect(l.Send(l.Tag, iDataPart(1000, 4, 0, wire.FlagB, "x")), "ERROR SACK")
		check.That(t, l.A.CumTSN() == 1000 && l.A.Stats().InvalidStream == 1, "cumulative TSN %d", l.A.CumTSN())
		check.Equal(t, "octets held", l.A.Stats().Buffered, 0)
	})
	t.Run("shorter than its header", func(t *testing.T) {
		l := interleaving(t, nil)
		l.Expect(l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkIData, 3, make([]byte, 12)), wire.AppendHeartbeat(nil, []byte("x"))),
			"HEARTBEAT ACK")
		check.Equal(t, "malformed", l.A.Stats().Malformed, 1)
	})
	t.Run("an I-FORWARD-TSN of a wrong length", func(t *testing.T) {
		l := interleaving(t, nil)
		l.Expect(l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkIForwardTSN, 0, make([]byte, 8)), wire.AppendHeartbeat(nil, []byte("x"))),
			"HEARTBEAT ACK")
		check.Equal(t, "malformed", l.A.Stats().Malformed, 1)
	})
	t.Run("beyond the window", func(t *testing.T) {
		l := interleaving(t, &assoc.Config{RecvBuffer: 1500})
		long := make([]byte, 1000)
		l.Send(l.Tag, wholeIData(1000, 0, string(long)))
		l.Send(l.Tag, wholeIData(1001, 1, string(long)))
		l.Send(l.Tag, wholeIData(1002, 2, string(long)))
		check.That(t, l.A.Stats().OutOfWindow == 1 && l.A.CumTSN() == 1001, "cumulative TSN %d", l.A.CumTSN())
	})
	t.Run("after the peer's SHUTDOWN", func(t *testing.T) {
		l := interleaving(t, nil)
		must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("unacknowledged")}}))
		l.Flush()
		l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1))
		l.InState(assoc.ShutdownReceived)
		l.Send(l.Tag, wholeIData(1000, 0, "late"), wire.AppendIForwardTSN(nil, 1005, nil))
		check.That(t, l.A.CumTSN() == 999 && l.A.Stats().Unexpected == 2, "cumulative TSN %d", l.A.CumTSN())
	})
	t.Run("by the receiving half", func(t *testing.T) {
		l := interleaving(t, nil)
		out := l.Send(l.Tag, iDataPart(1000, 0, 0, wire.FlagB, "a"), iDataPart(1001, 0, 0, wire.FlagB, "a"))
		l.Expect(out, "ABORT")
		code, _ := sctptest.CauseOf(out[0])
		check.Equal(t, "cause", code, wire.CauseProtocolViolation)
	})
}

// What is due of a peer that gives messages up is its SHUTDOWN's too.
func TestShutdownOfAPeerThatHasGivenIDataUp(t *testing.T) {
	l := interleaving(t, &assoc.Config{PartialDelivery: 10})
	l.Send(l.Tag, iDataPart(1000, 1, 0, wire.FlagB, "more than the point"), iDataPart(1001, 2, 0, wire.FlagB, "half"))
	l.Send(l.Tag, wholeIData(1003, 1, "b"))
	l.Expect(l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1)), "SHUTDOWN ACK")
	got := ""
	for r, ok := l.A.Receive(); ok; r, ok = l.A.Receive() {
		b := make([]byte, r.Size)
		r.CopyTo(b, 0)
		if got += string(b); r.Cut {
			got += "cut"
		}
		got += "|"
		l.A.Release(r)
	}
	check.Equal(t, "received", got, "more than the point|cut|b|")
	check.Equal(t, "violations", l.A.Stats().Violations, 0)
}

// An idle association goes on with its MIDs, both ways.
func TestIdleAssociationWithIData(t *testing.T) {
	l := interleaving(t, nil)
	l.Send(l.Tag, iDataPart(1000, 1, 0, wire.FlagB|wire.FlagE, "a"))
	check.Equal(t, "received", textOf(sctptest.Drain(l.A)), "a|")
	l.Wait(time.Minute)
	must.That(t, l.A.GoIdle(), "it does not become idle")
	l.Send(l.Tag, iData(wire.IDataFields{Flags: wire.FlagB | wire.FlagE, TSN: 1001, Stream: 1, MID: 1}, "b"))
	check.Equal(t, "received", textOf(sctptest.Drain(l.A)), "b|")
	must.OK(t, l.A.Audit(0))
	l.Wait(time.Minute)
	must.That(t, l.A.GoIdle(), "it does not become idle")
	out := l.Send(l.Tag, iData(wire.IDataFields{Flags: wire.FlagB | wire.FlagE, TSN: 1002, Stream: 1, MID: 1}, "of before"))
	l.Expect(out, "SACK")
	check.Equal(t, "received of a MID of before", textOf(sctptest.Drain(l.A)), "")
}
