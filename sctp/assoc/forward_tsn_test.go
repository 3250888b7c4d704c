package assoc_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// abandoning returns an association whose peer, a script, may give messages up. The next TSN is
// 1001, after one message.
func abandoning(t *testing.T, cfg *assoc.Config) *sctptest.Lab {
	t.Helper()
	l := sctptest.Passive(t, cfg)
	l.A.AgreeOn(true, false)
	l.Send(l.Tag, ordered(1000, 0, "first"))
	must.Equal(t, "messages", len(sctptest.Drain(l.A)), 1)
	return l
}

// cumOf returns the cumulative TSN of the only SACK, or SHUTDOWN, in packets.
func cumOf(t *testing.T, out []wire.Packet) wire.TSN {
	t.Helper()
	must.That(t, len(out) == 1, "%d packets: %s", len(out), sctptest.Describe(out))
	if c := sctptest.ChunkOf(out[0], wire.ChunkShutdown); c != nil {
		return wire.Shutdown(c).CumTSN()
	}
	return must.Get(wire.AsSack(sctptest.ChunkOf(out[0], wire.ChunkSack)))(t).CumTSN()
}

func textOf(list [][]byte) (s string) {
	for _, b := range list {
		s += string(b) + "|"
	}
	return s
}

func TestForwardTSNIsTakenWhereItWasAnnounced(t *testing.T) {
	forward := func(cum wire.TSN, skips ...wire.Skip) []byte { return wire.AppendForwardTSN(nil, cum, skips) }
	skip := func(ssn wire.SSN) wire.Skip { return wire.Skip{SSN: ssn} }
	for _, row := range []struct {
		name    string
		packets [][][]byte
		cum     wire.TSN // of the SACK that comes for the last, at once or later
		later   bool
		want    string
	}{
		// req 3758-3.6-1, 3758-3.6-4
		{"what waits is read", [][][]byte{{ordered(1003, 3, "d")}, {forward(1002, skip(2))}}, 1003, false,
			"d|"},
		{"with the DATA behind it in a packet", [][][]byte{{forward(1002, skip(2)), ordered(1003, 3, "d")}},
			1003, true, "d|"},
		{"behind DATA in a packet", [][][]byte{{ordered(1003, 3, "d"), forward(1002, skip(2))}}, 1003, true,
			"d|"},
		// req 3758-3.6-3
		{"alone", [][][]byte{{forward(1002, skip(2))}}, 1002, true, ""},
		// req 3758-3.6-2
		{"out of date", [][][]byte{{forward(1000)}}, 1000, false, ""},
		{"two in a packet, the second of before", [][][]byte{{forward(1003, skip(3)), forward(1002, skip(2))}}, 1003, false,
			""},
		// req 3758-3.6-5
		{"a message without its end", [][][]byte{{fragment(1001, 1, wire.FlagB, "half")}, {forward(1002, skip(1)), ordered(1003, 2, "c")}},
			1003, false, "c|"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := abandoning(t, nil)
			var out []wire.Packet
			for _, chunks := range row.packets {
				out = l.Send(l.Tag, chunks...)
			}
			if row.later {
				must.That(t, len(out) == 0, "at once: %s", sctptest.Describe(out))
				out = l.Wait(200 * time.Millisecond)
			}
			check.Equal(t, "cumulative TSN", cumOf(t, out), row.cum)
			check.Equal(t, "received", textOf(sctptest.Drain(l.A)), row.want)
			check.Equal(t, "octets held", l.A.Stats().Buffered, 0)
		})
	}
}

// ordered makes a DATA chunk with a whole message of stream 0.
func ordered(tsn wire.TSN, ssn wire.SSN, payload string) []byte {
	return fragment(tsn, ssn, wire.FlagB|wire.FlagE, payload)
}

// fragment makes a DATA chunk of stream 0.
func fragment(tsn wire.TSN, ssn wire.SSN, flags uint8, payload string) []byte {
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: tsn, SSN: ssn, PayloadLen: len(payload)})
	return append(append(b, payload...), wire.Padding(len(payload))...)
}

func TestForwardTSNThatIsNotTaken(t *testing.T) {
	forward := wire.AppendForwardTSN(nil, 1005, nil)
	t.Run("of a wrong length", func(t *testing.T) {
		l := abandoning(t, nil)
		bad := append(wire.AppendForwardTSN(nil, 1005, nil), 0, 1)
		bad[3] += 2
		out := l.Send(l.Tag, wire.CloseChunk(bad, 0), wire.AppendHeartbeat(nil, []byte("x")))
		l.Expect(out, "HEARTBEAT ACK")
		check.That(t, l.A.CumTSN() == 1000 && l.A.Stats().Malformed == 1, "cumulative TSN %d", l.A.CumTSN())
	})
	t.Run("after the peer's SHUTDOWN", func(t *testing.T) {
		l := abandoning(t, nil)
		must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("unacknowledged")}}))
		l.Flush()
		l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1))
		l.InState(assoc.ShutdownReceived)
		l.Send(l.Tag, forward)
		check.That(t, l.A.CumTSN() == 1000 && l.A.Stats().Unexpected == 1, "cumulative TSN %d", l.A.CumTSN())
	})
	t.Run("where only I-DATA was agreed on, as if it were unknown", func(t *testing.T) {
		// req 3758-3.3-1
		l := sctptest.Passive(t, nil)
		l.A.AgreeOn(false, true)
		l.Expect(l.Send(l.Tag, forward, wire.AppendHeartbeat(nil, []byte("x"))), "ERROR HEARTBEAT ACK")
		check.Equal(t, "cumulative TSN", l.A.CumTSN(), 999)
	})
}

// In SHUTDOWN-SENT a FORWARD TSN is answered as DATA is: by SHUTDOWN, which acknowledges it.
func TestForwardTSNInShutdownSent(t *testing.T) {
	l := abandoning(t, nil)
	must.OK(t, l.A.Shutdown(l.Now))
	l.Flush()
	l.InState(assoc.ShutdownSent)
	out := l.Send(l.Tag, wire.AppendForwardTSN(nil, 1004, nil))
	l.Expect(out, "SHUTDOWN")
	check.Equal(t, "cumulative TSN", cumOf(t, out), 1004)
}

// A peer that may give messages up has given up what is missing when it shuts down, whether what
// says so has come or not.
func TestShutdownOfAPeerThatHasGivenMessagesUp(t *testing.T) {
	forward := wire.AppendForwardTSN(nil, 1002, []wire.Skip{{SSN: 2}})
	late := ordered(1003, 3, "d")
	for _, row := range []struct {
		name    string
		packets [][]byte
		want    string
		cut     bool
	}{
		{"the holes were filled", [][]byte{late, forward}, "d|", false},
		{"the FORWARD TSN was lost", [][]byte{late}, "d|", false},
		{"a message behind another hole", [][]byte{late, ordered(1006, 6, "g"), forward}, "d|g|", false},
		{"the end of a message never got a TSN", [][]byte{fragment(1001, 1, wire.FlagB, "half")}, "", false},
		{"a message that was read in part", [][]byte{fragment(1001, 1, wire.FlagB, "more than the point")},
			"more than the point||", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := abandoning(t, &assoc.Config{PartialDelivery: 10})
			for _, c := range row.packets {
				l.Send(l.Tag, c)
			}
			l.Expect(l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1)), "SHUTDOWN ACK")
			got, cut := "", false
			for r, ok := l.A.Receive(); ok; r, ok = l.A.Receive() {
				b := make([]byte, r.Size)
				r.CopyTo(b, 0)
				got, cut = got+string(b)+"|", cut || r.Cut
				l.A.Release(r)
			}
			check.That(t, got == row.want && cut == row.cut, "received %q, cut off: %v", got, cut)
			l.Send(l.Tag, wire.AppendShutdownComplete(nil, false))
			err, ok := l.Host.DownErr()
			check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "%v", err)
			check.Equal(t, "violations", l.A.Stats().Violations, 0)
		})
	}
}

// What is placed at arrival goes on as it does without FORWARD TSN, and an idle association still
// takes it.
func TestForwardTSNAmongPlacedMessages(t *testing.T) {
	l := sctptest.Passive(t, nil)
	l.A.SetUpper(&sctptest.Placer{}, nil)
	l.A.AgreeOn(true, false)
	l.Send(l.Tag, ordered(1000, 0, "place a"), ordered(1002, 2, "place c"))
	l.Send(l.Tag, wire.AppendForwardTSN(nil, 1001, []wire.Skip{{SSN: 1}}))
	l.Send(l.Tag, ordered(1003, 3, "d"))
	check.Equal(t, "received", textOf(sctptest.Drain(l.A)), "d|")
	check.Equal(t, "placed", l.A.Stats().Placed, 2)
	l.Wait(time.Minute)
	must.That(t, l.A.GoIdle(), "it does not become idle")
	l.Send(l.Tag, wire.AppendForwardTSN(nil, 1004, []wire.Skip{{SSN: 4}}), ordered(1005, 5, "f"))
	check.Equal(t, "received", textOf(sctptest.Drain(l.A)), "f|")
	must.OK(t, l.A.Audit(0))
}

// Each message has one end, also if it is given up by the timeout that ends the association.
func TestMessageGivenUpAtTheEndIsReported(t *testing.T) {
	for limit := range uint32(5) {
		w, a, _ := sctptest.Pair(t, &assoc.Config{AssocMaxRetrans: 3, PartialReliability: true},
			&assoc.Config{PartialReliability: true})
		w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 } // nothing arrives any more
		must.OK(t, a.Send(w.Now, &assoc.Message{Body: [2][]byte{[]byte("x")}, Token: 7, Policy: assoc.AbandonResent,
			Limit: limit}))
		w.Run(time.Hour)
		must.Equal(t, "state", a.State(), assoc.Closed)
		failed := 0
		for _, ev := range w.Hosts[0].Events {
			if ev.Kind == assoc.EventSendFailed {
				check.That(t, ev.Token == 7 && !ev.Unsent, "%+v", ev)
				failed++
			}
			if ev.Kind == assoc.EventDown { // which is the last that the program hears
				break
			}
		}
		check.Equal(t, fmt.Sprintf("times that the end is reported, %d times resent at most", limit), failed, 1)
	}
}
