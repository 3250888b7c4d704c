package assoc_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestEveryPacketOfALife(t *testing.T) {
	w, a, b := sctptest.Life(t, nil)
	tags := [2]uint32{b.LocalTag(), a.LocalTag()} // what each host's packets carry
	for _, s := range w.Sent {
		types := sctptest.ChunkTypes(s.Pkt)
		// req 9260-3.1-3, 9260-5.3.1-1: from the INIT ACK to the SHUTDOWN COMPLETE.
		reflected := sctptest.Has(s.Pkt, wire.ChunkShutdownComplete) &&
			sctptest.ChunkOf(s.Pkt, wire.ChunkShutdownComplete).Flags()&wire.FlagT != 0
		check.That(t, types[0] == wire.ChunkInit || reflected || s.Pkt.VTag() == tags[s.From],
			"%v of host %d has tag %#x, the peer's Initiate Tag was %#x", types, s.From, s.Pkt.VTag(), tags[s.From])
		// req 9260-6.10-4: chunks are whole, and the packet ends with the last.
		cs, n := s.Pkt.Chunks(), wire.CommonHeaderLen
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			n += wire.PaddedLen(len(c))
		}
		check.That(t, cs.Err() == nil && n == len(s.Pkt), "%v: chunks of %d octets in a packet of %d: %v", types, n,
			len(s.Pkt), cs.Err())
		// req 9260-3-1
		check.That(t, len(types) <= 1 || !(sctptest.Has(s.Pkt, wire.ChunkInit) ||
			sctptest.Has(s.Pkt, wire.ChunkInitAck) || sctptest.Has(s.Pkt, wire.ChunkShutdownComplete)),
			"%v in one packet", types)
	}
}

// definedFlags are the chunk flags that RFC 9260 defines.
func definedFlags(t wire.ChunkType) uint8 {
	switch t {
	case wire.ChunkData:
		return wire.FlagI | wire.FlagU | wire.FlagB | wire.FlagE
	case wire.ChunkAbort, wire.ChunkShutdownComplete:
		return wire.FlagT
	}
	return 0
}

func TestUndefinedFlagsAreSentAsZeroAndIgnored(t *testing.T) {
	// req 9260-3.2-6, 9260-3.3.2-5, 9260-3.3.1-2
	w, _, _ := sctptest.Life(t, nil)
	w.Each(func(_ sctptest.Capture, c wire.Chunk) {
		check.That(t, c.Flags()&^definedFlags(c.Type()) == 0, "%v with flags %#x", c.Type(), c.Flags())
	})
	sctptest.Life(t, func(pkt wire.Packet) { // all of them set on the way: the same life
		cs := pkt.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			c[1] |= ^definedFlags(c.Type())
		}
	})
}

func TestSetupChunksOfALife(t *testing.T) {
	w, _, _ := sctptest.Life(t, nil)
	var extensions []byte // the chunk types announced
	w.Each(func(_ sctptest.Capture, c wire.Chunk) {
		if c.Type() != wire.ChunkInit && c.Type() != wire.ChunkInitAck {
			indication := []byte{0xc0, 0x06, 0, 8, 0, 0, 0, 3}
			// req 5061-4.2.6-4, 5061-4.2.7-3
			check.That(t, !bytes.Contains(c, indication) && !bytes.Contains(c, []byte{0x80, 0x08, 0}),
				"%v has a parameter of INIT: % x", c.Type(), c)
			return
		}
		init := must.Get(wire.AsInit(c))(t)
		seen := map[wire.ParamType]bool{}
		ps := init.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			// req 9260-3.3.2-2, 5061-4.2.7-3
			check.That(t, !seen[p.Type()] || p.Type() == wire.ParamIPv4 || p.Type() == wire.ParamIPv6,
				"%v has parameter %#x twice", c.Type(), p.Type())
			seen[p.Type()] = true
			if p.Type() == wire.ParamSupportedExtensions {
				extensions = append(extensions, p.Value()...)
			}
		}
		// req 5043-5.1-1, 5043-11.1-1
		if p := sctptest.ParamOf(init, wire.ParamAdaptationIndication); c.Type() == wire.ChunkInit &&
			string(p) != "\xc0\x06\x00\x08\x00\x00\x00\x03" {
			t.Errorf("INIT with adaptation % x", p)
		}
		// req 4820-4-2
		check.That(t, !seen[wire.ParamPadding] || c.Type() == wire.ChunkInit, "%v has a PAD parameter", c.Type())
		// req 9260-3.3.2.1.4-1
		check.That(t, !seen[wire.ParamHostName], "%v has a Host Name Address", c.Type())
		// req 9260-3.3.2.1-4: one address, which the packet has anyway
		check.That(t, !seen[wire.ParamIPv4] && !seen[wire.ParamIPv6], "%v lists addresses", c.Type())
		// req 9260-3.3.2-12
		check.That(t, init.OutStreams() != 0 && init.InStreams() != 0, "%v: OS %d MIS %d", c.Type(),
			init.OutStreams(), init.InStreams())
	})
	for _, e := range extensions { // req 5061-4.2.7-2
		l := sctptest.Passive(t, nil)
		for _, p := range l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkType(e), 0, make([]byte, 12))) {
			code, _ := sctptest.CauseOf(p)
			check.That(t, code != wire.CauseUnrecognizedChunkType, "%v is announced and not known", wire.ChunkType(e))
		}
	}
}

// endless is a Source that always has one more message.
type endless struct{ acked int }

func (*endless) Next(_ rawio.Time, _ int, m *assoc.Message) bool {
	*m = assoc.Message{Unordered: true, Body: [2][]byte{[]byte("more and more and more")}}
	return true
}

func (*endless) Idle() bool { return false }

func (e *endless) Acked(rawio.Time, wire.StreamID, uint64) { e.acked++ }

func TestNothingIsSentBeforeTheHandshakeIsComplete(t *testing.T) {
	t.Run("initiator", func(t *testing.T) {
		w := sctptest.NewWorld(t)
		w.Hosts[0].Source = &endless{}
		w.Listen(nil)
		w.Filter = sctptest.Lose(wire.ChunkCookieAck, 3)
		a := w.Connect(nil)
		w.Run(4 * time.Second)
		must.Equal(t, "state", a.State(), assoc.CookieEchoed)
		for i, s := range w.Sent {
			want := [2]string{"INIT", "COOKIE ECHO"}[min(i, 2)/2]
			// req 9260-5.1-5
			check.That(t, s.From != 0 || sctptest.Describe([]wire.Packet{s.Pkt}) == want, "packet %d is %q, want %q",
				i, sctptest.Describe([]wire.Packet{s.Pkt}), want)
		}
		w.Run(10 * time.Second)
		data := w.Seen(0, wire.ChunkData)
		acks := w.Seen(1, wire.ChunkCookieAck)
		// req 9260-5-1, 9260-3.3.11-1
		check.That(t, len(data) != 0 && data[0].At == acks[3].At.Add(sctptest.Latency),
			"%d packets with DATA, the first not with the COOKIE ACK that arrives", len(data))
	})
	t.Run("responder", func(t *testing.T) {
		l := sctptest.NewLab(t)
		l.Host.Source = &endless{}
		l.Listen(nil)
		l.Initiate()
		out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie), l.Data("bundled"))
		got := sctptest.ChunkTypes(out[0])
		// req 9260-3.3.12-1, 9260-5.1.5-7
		check.That(t, got[0] == wire.ChunkCookieAck && got[1] == wire.ChunkSack && len(got) >= 3 &&
			got[2] == wire.ChunkData, "answered by %q", sctptest.Describe(out))
	})
}
