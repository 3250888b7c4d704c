package assoc_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
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
			r := newRoad(t, roadIPv4, 1500, simnet.Params{})
			for i, e := range r.ends {
				e.ep = endpoint.New(endpoint.Config{Rand: rand.New(rand.NewSource(int64(i + 1))), Features: row.features[i],
					MTU: func(_, _ netip.Addr) int { return 1480 }})
			}
			r.join(&row.a, &row.b)
			for _, c := range r.sent {
				for _, x := range []struct {
					t    wire.ChunkType
					want bool
				}{{wire.ChunkInit, row.init}, {wire.ChunkInitAck, row.ack}} {
					if ch := chunkOf(c.pkt, x.t); ch != nil {
						init, err := wire.AsInit(ch)
						if err != nil {
							t.Fatal(err)
						}
						if p := paramOf(init, wire.ParamECNCapable); (p != nil) != x.want || p != nil && len(p) != 4 {
							t.Errorf("%v: ECN Capable %x", x.t, []byte(p))
						}
					}
				}
			}
			n := len(r.sent)
			r.send(0, 5000)
			r.run(time.Second)
			r.send(1, 5000)
			r.run(time.Second)
			for _, c := range r.sent[n:] {
				want := uint8(rawio.NotECT)
				if row.ack && has(c.pkt, wire.ChunkData) {
					want = rawio.ECT0
				}
				if c.ECN != want {
					t.Errorf("%v from %d: ECN %d, want %d", chunkTypes(c.pkt), c.from, c.ECN, want)
				}
			}
		})
	}
}

// Setup, control and retransmitted packets are never ECN-capable (RFC 3168 sections 6.1.4 and 6.1.5).
func TestOnlyNewDataIsECNCapable(t *testing.T) {
	r := newRoad(t, roadIPv4, 1500, simnet.Params{Loss: 0.1})
	r.join(nil, nil)
	want := r.send(0, 300_000)
	r.run(5 * time.Minute)
	if err := r.ends[0].assocs[0].Shutdown(r.now); err != nil {
		t.Fatal(err)
	}
	r.run(time.Minute)
	if !bytes.Equal(r.ends[1].received.Bytes(), want) {
		t.Fatal("lost")
	}
	seen := make(map[wire.TSN]bool)
	again := 0
	for _, c := range r.sent {
		fresh := false
		cs := c.pkt.Chunks()
		for ch, ok := cs.Next(); ok; ch, ok = cs.Next() {
			if d, err := wire.AsData(ch); err == nil {
				fresh = !seen[d.TSN()]
				seen[d.TSN()] = true
				if !fresh {
					again++
				}
			}
		}
		if want := map[bool]uint8{true: rawio.ECT0, false: rawio.NotECT}[fresh]; c.ECN != want {
			t.Errorf("%v: ECN %d, want %d", chunkTypes(c.pkt), c.ECN, want)
		}
	}
	if again == 0 {
		t.Error("nothing was sent again: the story is not told")
	}
}

// marksLab is an association that the script set up, ECN-capable.
func marksLab(t *testing.T) *lab {
	t.Helper()
	l := bareLab(t)
	l.h.ep = endpoint.New(endpoint.Config{Rand: rand.New(rand.NewSource(7)), Features: rawio.ECNField,
		MTU: func(_, _ netip.Addr) int { return testMTU }})
	l.listen(quiet)
	l.initiate(wire.AppendParam(nil, wire.ParamECNCapable, nil))
	l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
	return l
}

// data delivers DATA with these TSNs and that ECN field and returns what is sent then, at once or later.
func (l *lab) marked(ecn uint8, tsns ...wire.TSN) []wire.Packet {
	l.t.Helper()
	var list [][]byte
	for _, n := range tsns {
		list = append(list, dataChunk(n, 0, 0, "x"))
	}
	b := rawio.NewBuf(packet(portA, portB, l.tag, list...))
	p := rawio.Packet{Data: b.B, Buf: b, Local: l.h.addr, Remote: l.peer, ECN: ecn}
	l.h.receive(l.now, &p)
	p.Release()
	return append(l.flush(), l.wait(time.Second)...)
}

// echo returns the TSN of the ECNE in what was sent, and whether there is one in each packet with a SACK
// and before it.
func echo(t *testing.T, out []wire.Packet) (tsn wire.TSN, ok bool) {
	t.Helper()
	sacks := 0
	for _, p := range out {
		if !has(p, wire.ChunkSack) {
			continue
		}
		sacks++
		if c := chunkOf(p, wire.ChunkECNE); c != nil {
			e, err := wire.AsECNE(c)
			if err != nil || chunkTypes(p)[0] != wire.ChunkECNE {
				t.Fatalf("%v: %v", chunkTypes(p), err)
			}
			tsn, ok = e.TSN(), true
		}
	}
	if sacks == 0 {
		t.Fatalf("no SACK in %v", describe(out))
	}
	return tsn, ok
}

// A mark is echoed with every SACK until the peer says that it has reacted (RFC 3168 section 6.1.3).
func TestMarksAreEchoedUntilCWR(t *testing.T) {
	l := marksLab(t)
	for _, step := range []struct {
		what string
		out  func() []wire.Packet
		tsn  wire.TSN // 0: no echo
	}{
		{"no mark", func() []wire.Packet { return l.marked(rawio.ECT0, 1000) }, 0},
		{"a mark", func() []wire.Packet { return l.marked(rawio.CE, 1001, 1002) }, 1001},
		{"none, but no CWR either", func() []wire.Packet { return l.marked(rawio.ECT0, 1003) }, 1001},
		{"a CWR for another TSN", func() []wire.Packet {
			l.send(l.tag, wire.AppendCWR(nil, 1000))
			return l.marked(rawio.ECT0, 1004)
		}, 1001},
		{"a later mark", func() []wire.Packet { return l.marked(rawio.CE, 1005) }, 1005},
		{"the CWR for the earlier one", func() []wire.Packet {
			l.send(l.tag, wire.AppendCWR(nil, 1001))
			return l.marked(rawio.ECT0, 1006)
		}, 1005},
		{"the CWR for it", func() []wire.Packet {
			l.send(l.tag, wire.AppendCWR(nil, 1005))
			return l.marked(rawio.ECT0, 1007)
		}, 0},
		{"a mark on what was received before: ignored", func() []wire.Packet { return l.marked(rawio.CE, 1007) }, 0},
		{"and on what is beyond the window", func() []wire.Packet { return l.marked(rawio.CE, 1007+1<<20) }, 0},
		{"and on a packet of which only a part is new", func() []wire.Packet { return l.marked(rawio.CE, 1007, 1008, 1009) }, 1008},
	} {
		if tsn, ok := echo(t, step.out()); tsn != step.tsn || ok != (step.tsn != 0) {
			t.Errorf("%s: echo of TSN %d (%v), want %d", step.what, tsn, ok, step.tsn)
		}
	}
	if n := l.a.Stats().MarksIn; n != 3 {
		t.Errorf("%d marks", n)
	}
}

func TestMarksWithoutECNAreIgnored(t *testing.T) {
	l := passiveLab(t, quiet)
	if tsn, ok := echo(t, l.marked(rawio.CE, 1000)); ok {
		t.Errorf("echo of TSN %d", tsn)
	}
	before := l.a.PathStats(0).Cwnd
	l.expect(l.send(l.tag, wire.AppendECNE(nil, l.hostTSN)), "")
	l.expect(l.send(l.tag, wire.AppendCWR(nil, l.hostTSN)), "")
	if got := l.a.PathStats(0).Cwnd; got != before {
		t.Errorf("cwnd %d, was %d", got, before)
	}
}

// The peer's echo is answered by CWR each time, and lowers the window once.
func TestEchoIsAnsweredByCWR(t *testing.T) {
	l := marksLab(t)
	if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{make([]byte, 400_000)}}); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		l.flush()
		l.now = l.now.Add(10 * time.Millisecond)
		l.send(l.tag, l.sack(l.hostTSN+wire.TSN(l.a.Stats().DataOut)-1))
	}
	cwnd, tsn := l.a.PathStats(0).Cwnd, l.hostTSN+wire.TSN(l.a.Stats().DataOut)-1
	if cwnd < 12_000 {
		t.Fatalf("cwnd %d", cwnd)
	}
	for _, row := range []struct {
		name string
		ecne []byte
	}{
		{"the echo", wire.AppendECNE(nil, tsn)},
		{"again: the CWR was lost", wire.AppendECNE(nil, tsn)},
		{"with a count of packets, as some send it", wire.AppendChunk(nil, wire.ChunkECNE, 0, []byte{byte(tsn >> 24), byte(tsn >> 16), byte(tsn >> 8), byte(tsn), 0, 0, 0, 3})},
	} {
		out := l.send(l.tag, row.ecne)
		var c wire.Chunk
		for _, p := range out {
			if c = chunkOf(p, wire.ChunkCWR); c != nil {
				break
			}
		}
		if w, err := wire.AsCWR(c); err != nil || w.TSN() != tsn {
			t.Errorf("%s: answered by %v", row.name, describe(out))
		}
		if got := l.a.PathStats(0).Cwnd; got != cwnd/2 {
			t.Errorf("%s: cwnd %d, was %d", row.name, got, cwnd)
		}
	}
	if n := l.a.Stats().EchoesIn; n != 1 {
		t.Errorf("%d reductions", n)
	}
	before := l.a.Stats().Malformed
	l.expect(l.send(l.tag, wire.AppendChunk(nil, wire.ChunkECNE, 0, []byte{1, 2, 3})), "")
	l.expect(l.send(l.tag, wire.AppendChunk(nil, wire.ChunkCWR, 0, []byte{1, 2, 3})), "")
	if got := l.a.Stats().Malformed - before; got != 2 {
		t.Errorf("%d malformed", got)
	}
}

// Over a router that marks, nothing is lost, and the queue is shorter than where losses have to tell.
func TestMarksReplaceLosses(t *testing.T) {
	transfer := func(mark int) (s assoc.Stats, n simnet.Stats, took time.Duration) {
		r := newRoad(t, roadIPv4, 1500, simnet.Params{Rate: 1_000_000, Queue: 60_000, MarkQueue: mark})
		a, _ := r.join(&assoc.Config{MaxBurst: -1, SendBuffer: 4 << 20}, nil)
		start := r.now
		var want []byte
		for range 30 {
			want = append(want, r.send(0, 100_000)...)
		}
		r.until(r.now.Add(time.Minute), func() bool { return r.ends[1].received.Len() == len(want) })
		if !bytes.Equal(r.ends[1].received.Bytes(), want) {
			t.Fatal("lost")
		}
		return a.Stats(), r.net.Stats(), r.now.Sub(start)
	}
	s, n, took := transfer(20_000)
	if n.QueueDropped != 0 || s.Retransmits != 0 || s.EchoesIn == 0 || n.Marked == 0 {
		t.Errorf("with marks: %d dropped, %d sent again, %d marked, %d reductions", n.QueueDropped, s.Retransmits, n.Marked, s.EchoesIn)
	}
	if took > 4*time.Second { // 3 s at the link's rate
		t.Errorf("with marks: took %v", took)
	}
	if s, n, _ := transfer(0); n.QueueDropped == 0 || s.Retransmits == 0 || s.EchoesIn != 0 {
		t.Errorf("without: %d dropped, %d sent again, %d reductions", n.QueueDropped, s.Retransmits, s.EchoesIn)
	}
}

// Once a round trip, however many packets of it are marked.
func TestOneReductionPerRoundTrip(t *testing.T) {
	r := newRoad(t, roadIPv4, 1500, simnet.Params{Mark: 1, Rate: 10_000_000})
	a, _ := r.join(&assoc.Config{MaxBurst: -1, SendBuffer: 4 << 20}, nil)
	start := r.now
	want := r.send(0, 500_000)
	r.until(r.now.Add(5*time.Minute), func() bool { return r.ends[1].received.Len() == len(want) })
	rounds := uint64(r.now.Sub(start)/roundTrip) + 1
	if s := a.Stats(); s.EchoesIn < 10 || s.EchoesIn > rounds || r.net.Stats().Marked < 3*s.EchoesIn {
		t.Errorf("%d reductions in %d round trips, %d marks", s.EchoesIn, rounds, r.net.Stats().Marked)
	}
	if cwnd := a.PathStats(0).Cwnd; cwnd != 4404 { // never more than at the start, nor less than RFC 9260 section 7.2.3 allows
		t.Errorf("cwnd %d", cwnd)
	}
	if fmt.Sprint(r.net.Stats().Lost) != "0" || a.Stats().Retransmits != 0 {
		t.Error("something was lost")
	}
}
