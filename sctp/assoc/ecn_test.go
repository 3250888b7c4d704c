package assoc_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// An ECN-capable association exists where both sides announce it, and a side announces it where its
// link reports marks.
func TestECNIsNegotiated(t *testing.T) {
	for _, row := range []struct {
		name     string
		a, b     assoc.Config
		init     bool // INIT announces it
		ack      bool // and INIT ACK
		features [2]rawio.Features
	}{
		{"both", assoc.Config{}, assoc.Config{}, true, true, [2]rawio.Features{rawio.ECNField, rawio.ECNField}},
		{"not wanted by the initiator", assoc.Config{DisableECN: true}, assoc.Config{}, false, false, [2]rawio.Features{rawio.ECNField, rawio.ECNField}},
		{"not wanted by the other side", assoc.Config{}, assoc.Config{DisableECN: true}, true, false, [2]rawio.Features{rawio.ECNField, rawio.ECNField}},
		{"a link that does not see marks here", assoc.Config{}, assoc.Config{}, false, false, [2]rawio.Features{0, rawio.ECNField}},
		{"a link that does not see marks there", assoc.Config{}, assoc.Config{}, true, false, [2]rawio.Features{rawio.ECNField, 0}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{})
			for i, e := range r.Hosts {
				e.Reboot(int64(i+1), row.features[i])
			}
			r.Join(&row.a, &row.b)
			for _, c := range r.Sent {
				for _, x := range []struct {
					t    wire.ChunkType
					want bool
				}{{wire.ChunkInit, row.init}, {wire.ChunkInitAck, row.ack}} {
					if ch := sctptest.ChunkOf(c.Pkt, x.t); ch != nil {
						init := must.Get(wire.AsInit(ch))(t)
						p := sctptest.ParamOf(init, wire.ParamECNCapable)
						check.That(t, (p != nil) == x.want && (p == nil || len(p) == 4), "%v: ECN Capable %x", x.t,
							[]byte(p))
					}
				}
			}
			n := len(r.Sent)
			r.Send(0, 5000)
			r.Run(time.Second)
			r.Send(1, 5000)
			r.Run(time.Second)
			for _, c := range r.Sent[n:] {
				want := uint8(rawio.NotECT)
				if row.ack && sctptest.Has(c.Pkt, wire.ChunkData) {
					want = rawio.ECT0
				}
				check.That(t, c.ECN == want, "%v from %d: ECN %d, want %d", sctptest.ChunkTypes(c.Pkt), c.From, c.ECN,
					want)
			}
		})
	}
}

// Setup, control and retransmitted packets are never ECN-capable (RFC 3168 sections 6.1.4 and
// 6.1.5).
func TestOnlyNewDataIsECNCapable(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{Loss: 0.1})
	r.Join(nil, nil)
	want := r.Send(0, 300_000)
	r.Run(5 * time.Minute)
	must.OK(t, r.Hosts[0].Assocs[0].Shutdown(r.Now))
	r.Run(time.Minute)
	must.Slice(t, "octets that arrived", r.Hosts[1].Received.Bytes(), want)
	seen := make(map[wire.TSN]bool)
	again := 0
	for _, c := range r.Sent {
		fresh := false
		cs := c.Pkt.Chunks()
		for ch, ok := cs.Next(); ok; ch, ok = cs.Next() {
			if d, err := wire.AsData(ch); err == nil {
				fresh = !seen[d.TSN()]
				seen[d.TSN()] = true
				if !fresh {
					again++
				}
			}
		}
		want := map[bool]uint8{true: rawio.ECT0, false: rawio.NotECT}[fresh]
		check.That(t, c.ECN == want, "%v: ECN %d, want %d", sctptest.ChunkTypes(c.Pkt), c.ECN, want)
	}
	check.That(t, again != 0, "nothing was sent again: the story is not told")
}

// marksLab is an association that the script set up, ECN-capable.
func marksLab(t *testing.T) *sctptest.Lab {
	t.Helper()
	l := sctptest.NewLab(t)
	l.Host.Reboot(7, rawio.ECNField)
	l.Listen(quiet)
	l.Initiate(wire.AppendParam(nil, wire.ParamECNCapable, nil))
	l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	return l
}

// echoedTSN returns the TSN of the ECNE in what was sent, and whether there is one in each packet
// with a SACK and before it.
func echoedTSN(t *testing.T, out []wire.Packet) (tsn wire.TSN, ok bool) {
	t.Helper()
	sacks := 0
	for _, p := range out {
		if !sctptest.Has(p, wire.ChunkSack) {
			continue
		}
		sacks++
		if c := sctptest.ChunkOf(p, wire.ChunkECNE); c != nil {
			e, err := wire.AsECNE(c)
			must.That(t, err == nil && sctptest.ChunkTypes(p)[0] == wire.ChunkECNE, "%v: %v", sctptest.ChunkTypes(p),
				err)
			tsn, ok = e.TSN(), true
		}
	}
	must.That(t, sacks != 0, "no SACK in %v", sctptest.Describe(out))
	return tsn, ok
}

// A mark is echoed with every SACK until the peer says that it has reacted (RFC 3168 section
// 6.1.3).
func TestMarksAreEchoedUntilCWR(t *testing.T) {
	l := marksLab(t)
	for _, step := range []struct {
		what string
		out  func() []wire.Packet
		tsn  wire.TSN // 0: no echo
	}{
		{"no mark", func() []wire.Packet { return l.Marked(rawio.ECT0, 1000) }, 0},
		{"a mark", func() []wire.Packet { return l.Marked(rawio.CE, 1001, 1002) }, 1001},
		{"none, but no CWR either", func() []wire.Packet { return l.Marked(rawio.ECT0, 1003) }, 1001},
		{"a CWR for another TSN", func() []wire.Packet {
			l.Send(l.Tag, wire.AppendCWR(nil, 1000))
			return l.Marked(rawio.ECT0, 1004)
		}, 1001},
		{"a later mark", func() []wire.Packet { return l.Marked(rawio.CE, 1005) }, 1005},
		{"the CWR for the earlier one", func() []wire.Packet {
			l.Send(l.Tag, wire.AppendCWR(nil, 1001))
			return l.Marked(rawio.ECT0, 1006)
		}, 1005},
		{"the CWR for it", func() []wire.Packet {
			l.Send(l.Tag, wire.AppendCWR(nil, 1005))
			return l.Marked(rawio.ECT0, 1007)
		}, 0},
		{"a mark on what was received before: ignored", func() []wire.Packet { return l.Marked(rawio.CE, 1007) }, 0},
		{"and on what is beyond the window", func() []wire.Packet { return l.Marked(rawio.CE, 1007+1<<20) }, 0},
		{"and on a packet of which only a part is new", func() []wire.Packet { return l.Marked(rawio.CE, 1007, 1008, 1009) }, 1008},
	} {
		tsn, ok := echoedTSN(t, step.out())
		check.That(t, tsn == step.tsn && ok == (step.tsn != 0), "%s: echo of TSN %d (%v), want %d", step.what, tsn,
			ok, step.tsn)
	}
	check.Equal(t, "marks", l.A.Stats().MarksIn, 3)
}

func TestMarksWithoutECNAreIgnored(t *testing.T) {
	l := sctptest.Passive(t, quiet)
	tsn, ok := echoedTSN(t, l.Marked(rawio.CE, 1000))
	check.That(t, !ok, "echo of TSN %d", tsn)
	before := l.A.PathStats(0).Cwnd
	l.Expect(l.Send(l.Tag, wire.AppendECNE(nil, l.HostTSN)), "")
	l.Expect(l.Send(l.Tag, wire.AppendCWR(nil, l.HostTSN)), "")
	check.Equal(t, "cwnd, as before", l.A.PathStats(0).Cwnd, before)
}

// The peer's echo is answered by CWR each time, and lowers the window once.
func TestEchoIsAnsweredByCWR(t *testing.T) {
	l := marksLab(t)
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 400_000)}}))
	for range 10 {
		l.Flush()
		l.Now = l.Now.Add(10 * time.Millisecond)
		l.Send(l.Tag, l.Sack(l.HostTSN+wire.TSN(l.A.Stats().DataOut)-1))
	}
	cwnd, tsn := l.A.PathStats(0).Cwnd, l.HostTSN+wire.TSN(l.A.Stats().DataOut)-1
	must.That(t, cwnd >= 12_000, "cwnd %d", cwnd)
	for _, row := range []struct {
		name string
		ecne []byte
	}{
		{"the echo", wire.AppendECNE(nil, tsn)},
		{"again: the CWR was lost", wire.AppendECNE(nil, tsn)},
		{"with a count of packets, as some send it", wire.AppendChunk(nil, wire.ChunkECNE, 0, []byte{byte(tsn >> 24), byte(tsn >> 16), byte(tsn >> 8), byte(tsn), 0, 0, 0, 3})},
	} {
		out := l.Send(l.Tag, row.ecne)
		var c wire.Chunk
		for _, p := range out {
			if c = sctptest.ChunkOf(p, wire.ChunkCWR); c != nil {
				break
			}
		}
		w, err := wire.AsCWR(c)
		check.That(t, err == nil && w.TSN() == tsn, "%s: answered by %v", row.name, sctptest.Describe(out))
		check.Equal(t, row.name+": cwnd", l.A.PathStats(0).Cwnd, cwnd*7/10)
	}
	check.Equal(t, "reductions", l.A.Stats().EchoesIn, 1)
	before := l.A.Stats().Malformed
	l.Expect(l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkECNE, 0, []byte{1, 2, 3})), "")
	l.Expect(l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkCWR, 0, []byte{1, 2, 3})), "")
	check.Equal(t, "malformed", l.A.Stats().Malformed-before, 2)
}

// Over a router that marks, nothing is lost, and the queue is shorter than where losses have to
// tell.
func TestMarksReplaceLosses(t *testing.T) {
	transfer := func(mark int) (s assoc.Stats, n simnet.Stats, took time.Duration) {
		r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500,
			simnet.Params{Rate: 1_000_000, Queue: 60_000, MarkQueue: mark})
		a, _ := r.Join(&assoc.Config{MaxBurst: -1, SendBuffer: 4 << 20}, nil)
		start := r.Now
		var want []byte
		for range 30 {
			want = append(want, r.Send(0, 100_000)...)
		}
		r.RunUntil(r.Now.Add(time.Minute), func() bool { return r.Hosts[1].Received.Len() == len(want) })
		must.Slice(t, "octets that arrived", r.Hosts[1].Received.Bytes(), want)
		return a.Stats(), r.Net.Stats(), r.Now.Sub(start)
	}
	s, n, took := transfer(20_000)
	check.That(t, n.QueueDropped == 0 && s.Retransmits == 0 && s.EchoesIn != 0 && n.Marked != 0,
		"with marks: %d dropped, %d sent again, %d marked, %d reductions", n.QueueDropped, s.Retransmits, n.Marked,
		s.EchoesIn)
	check.That(t, took <= 4*time.Second, "with marks: took %v", took) // 3 s at the link's rate
	if s, n, _ := transfer(0); n.QueueDropped == 0 || s.Retransmits == 0 || s.EchoesIn != 0 {
		t.Errorf("without: %d dropped, %d sent again, %d reductions", n.QueueDropped, s.Retransmits, s.EchoesIn)
	}
}

// Once a round trip, however many packets of it are marked.
func TestOneReductionPerRoundTrip(t *testing.T) {
	r := sctptest.NewMTUPair(t, sctptest.IPv4, 1500, simnet.Params{Mark: 1, Rate: 10_000_000})
	a, _ := r.Join(&assoc.Config{MaxBurst: -1, SendBuffer: 4 << 20}, nil)
	start := r.Now
	want := r.Send(0, 500_000)
	r.RunUntil(r.Now.Add(5*time.Minute), func() bool { return r.Hosts[1].Received.Len() == len(want) })
	rounds := uint64(r.Now.Sub(start)/sctptest.RoundTrip) + 1
	s := a.Stats()
	check.That(t, s.EchoesIn >= 10 && s.EchoesIn <= rounds && r.Net.Stats().Marked >= 3*s.EchoesIn,
		"%d reductions in %d round trips, %d marks", s.EchoesIn, rounds, r.Net.Stats().Marked)
	cwnd := a.PathStats(0).Cwnd
	check.That(t, cwnd == 4*1468, "cwnd %d", cwnd) // four packets: what RFC 9260 section 7.2.3 leaves
	check.That(t, fmt.Sprint(r.Net.Stats().Lost) == "0" && a.Stats().Retransmits == 0, "something was lost")
}
