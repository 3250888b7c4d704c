package pack

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"testing"
	"weak"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

func join(vec [][]byte) []byte { return bytes.Join(vec, nil) }

func ExampleBatch() {
	b := NewBatch(4)
	local, remote := netip.MustParseAddrPort("192.0.2.1:0"), netip.MustParseAddrPort("192.0.2.2:0")
	b.Begin(5000, 5001, 0x01020304, local, remote, 1480)
	b.Commit(wire.AppendCookieAck(b.Tail()))
	b.End()
	p := b.Pkts[0]
	pkt, err := wire.ParsePacket(join(p.Vec))
	fmt.Println(p.Len(), pkt.ChecksumOK(), err)
	// Output: 16 true <nil>
}

func TestLongUserDataIsReferencedAndShortIsCopied(t *testing.T) {
	b := NewBatch(1)
	long, short := bytes.Repeat([]byte{7}, maxInlineOctets+1), bytes.Repeat([]byte{8}, maxInlineOctets)
	b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 9000)
	b.Bytes(short)
	b.Bytes(long)
	b.Commit(append(b.Tail(), 0, 0, 0))
	b.Bytes(long)
	b.Commit(b.Tail()) // nothing
	b.End()
	vec := b.Pkts[0].Vec
	must.Equal(t, "pieces: header with the short data, the long data, padding, the long data", len(vec), 4)
	check.Equal(t, "long user data, not copied", &vec[1][0], &long[0])
	check.Equal(t, "octets of the first piece", len(vec[0]), wire.CommonHeaderLen+maxInlineOctets)
	// req 9260-6.8-1
	check.Equal(t, "checksum", wire.Packet(join(vec)).Checksum(), wire.ChecksumBytes(join(vec)))
}

// Whatever is appended to packets, cancelled and taken back, a batch has what a list of octets has;
// its arena may grow, and nothing stays behind in lists that are reset.
func TestBatchAgreesWithAListOfOctets(t *testing.T) {
	type packet struct {
		octets        []byte
		local, remote netip.AddrPort
		ecn           uint8
		mark          Mark
		size          int
	}
	user := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 1000)
	for seed := range 300 {
		in := fuzzinput.Script(fuzzinput.Random(seed, 600))
		most := in.Next()%5 - 1
		b := NewBatch(most)
		var done []packet
		var p packet // the open one
		var header []byte
		begin := func() {
			if header == nil || in.Next()%2 == 0 {
				a := netip.AddrFrom4([4]byte{192, 0, 2, in.Byte()})
				p = packet{local: netip.AddrPortFrom(a, 1), remote: netip.AddrPortFrom(a.Next(), in.Next16()),
					size: 12 + in.Next()*8}
				header = wire.AppendHeader(nil, in.Next16(), in.Next16(), uint32(in.Next16()))
				b.Begin(wire.Packet(header).SrcPort(), wire.Packet(header).DstPort(), wire.Packet(header).VTag(),
					p.local, p.remote, p.size)
			} else {
				b.BeginAgain()
			}
			p.octets = bytes.Clone(header)
		}
		reset := func() {
			b.Reset()
			done = done[:0]
		}
		for begin(); len(in) > 0; {
			switch op, n := in.Next()%8, in.Next()*in.Next()/16; op {
			case 0, 1, 2:
				n >>= 4 * op
				b.Commit(append(b.Tail(), user[:n]...))
				p.octets = append(p.octets, user[:n]...)
			case 3, 4:
				b.Bytes(user[:n])
				p.octets = append(p.octets, user[:n]...)
			case 5:
				p.ecn, p.mark = uint8(n%4), Mark{uint8(n % 64), uint32(n)}
				b.SetECN(p.ecn)
				b.SetMark(p.mark)
			case 6:
				b.Cancel()
				begin()
			case 7:
				b.End()
				if done = append(done, p); b.Full() {
					must.That(t, (len(done) >= most || b.Octets() >= maxBatchOctets) && len(done) <= max(most, 1),
						"full with %d packets of %d, %d octets", len(done), most, b.Octets())
					reset()
				} else if in.Next()%8 == 0 {
					reset()
				}
				begin()
			}
			must.That(t, b.Len() == len(p.octets) && b.Room() == p.size-len(p.octets) &&
				b.Empty() == (len(p.octets) == 12) && len(b.Pkts) == len(done),
				"%d octets and room for %d, want %d of %d", b.Len(), b.Room(), len(p.octets), p.size)
			octets, pieces := 0, b.firstVec
			for i, want := range done {
				got := b.Pkts[i]
				pkt := wire.Packet(join(got.Vec))
				octets += len(pkt)
				pieces -= len(got.Vec)
				must.That(t, pkt.ChecksumOK() && bytes.Equal(pkt[:8], want.octets[:8]) &&
					bytes.Equal(pkt[12:], want.octets[12:]) && got.Local == want.local &&
					got.Remote == want.remote && got.ECN == want.ecn && (Mark{got.DSCP, got.FlowLabel}) ==
					want.mark && (got.Fragment > 0) == (len(pkt) > want.size),
					"packet %d is %d octets, to %v, ECN %d, fragmented %d; want %+v", i, len(pkt), got.Remote,
					got.ECN, got.Fragment, want)
			}
			must.That(t, octets == b.Octets() && pieces == 0 &&
				b.Full() == (len(done) >= max(most, 1) || octets >= maxBatchOctets),
				"%d octets in %d packets, counted are %d; %d pieces too many; full %v", b.Octets(), len(done), octets,
				pieces, b.Full())
			for _, v := range b.vecs[len(b.vecs):cap(b.vecs)] {
				must.That(t, v == nil, "a piece is kept that was taken back")
			}
		}
	}
}

func TestBatchIsFullByOctets(t *testing.T) {
	b := NewBatch(1000)
	big := make([]byte, 65000)
	n := 0
	for ; !b.Full(); n++ {
		b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 65500)
		b.Bytes(big)
		b.End()
	}
	want := maxBatchOctets/len(big) + 1
	check.That(t, n == want, "%d packets of %d octets, want %d", n, len(big), want)
	check.That(t, b.Octets() == n*(len(big)+wire.CommonHeaderLen), "%d octets in %d packets", b.Octets(), n)
	b.Reset()
	check.That(t, !b.Full() && b.Octets() == 0 && len(b.Pkts) == 0 && len(b.vecs) == 0 && len(b.Tail()) == 0,
		"%d octets in %d packets of %d pieces when empty", b.Octets(), len(b.Pkts), len(b.vecs))
	if b := NewBatch(3); b.Octets() != 0 || len(b.Pkts) != 0 || len(b.vecs) != 0 || len(b.Tail()) != 0 || b.Full() {
		t.Errorf("%d octets in %d packets of %d pieces when new", b.Octets(), len(b.Pkts), len(b.vecs))
	}
	for _, more := range []int{0, 1} {
		b.Reset()
		b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 65500)
		b.Bytes(make([]byte, maxBatchOctets-wire.CommonHeaderLen-1+more))
		b.End()
		check.That(t, b.Full() == (more == 1), "full %v with %d octets", b.Full(), b.Octets())
	}
}

// Add makes the packet that is made from the same octets by hand, also where its lists have to
// grow, and there is room for as many as Left says.
func TestAddIsAPacketLikeTheLast(t *testing.T) {
	for _, row := range []struct{ packets, octets, left int }{{1, 1460, 0}, {8, 1460, 7}, {500, 1460, 179},
		{500, 1024, 255}, // the octets of a batch to the last
		{500, 65400, 4}, {0, 100, 0}} {
		head := wire.AppendDataHeader(nil, wire.DataFields{TSN: 5, PayloadLen: row.octets})
		body := make([]byte, row.octets-wire.CommonHeaderLen-len(head))
		for i := range body {
			body[i] = byte(i)
		}
		local, remote := netip.MustParseAddrPort("192.0.2.1:5"), netip.MustParseAddrPort("192.0.2.2:7")
		one, two := NewBatch(row.packets), NewBatch(row.packets)
		for round := range 2 {
			for i, b := range []*Batch{one, two} {
				b.Reset()
				head[4] = 0
				b.Begin(1, 2, 3, local, remote, 1400)
				b.SetECN(rawio.ECT0)
				b.SetMark(Mark{DSCP: 9, FlowLabel: 77})
				b.Commit(append(b.Tail(), head...))
				b.Bytes(body)
				b.End()
				left := b.Left(row.octets)
				check.That(t, left == row.left, "%+v: room for %d", row, left)
				for n := range left + 1 { // one more than there is room for
					check.That(t, b.Full() == (n >= left), "%+v: full %v behind %d", row, b.Full(), n)
					head[4] = byte(n)
					if i == 0 {
						b.BeginAgain()
						b.Commit(append(b.Tail(), head...))
						b.Bytes(body)
						b.End()
					} else {
						b.Add(append(bytes.Clone(b.Header()), head...), body)
					}
				}
				check.That(t, b.Full() && b.Left(row.octets) == 0, "%+v: room for %d", row, b.Left(row.octets))
			}
			for _, b := range []*Batch{one, two} {
				for i := range b.Pkts {
					b.Pkts[i].Vec = [][]byte{join(b.Pkts[i].Vec)}
				}
			}
			check.That(t, reflect.DeepEqual(one.Pkts, two.Pkts) && one.Octets() == two.Octets(),
				"%+v, round %d: %d octets, want %d", row, round, two.Octets(), one.Octets())
		}
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	var b *Batch
	body := make([]byte, 1400)
	fill := func() {
		b.Reset()
		for !b.Full() {
			b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 1480)
			b.Commit(wire.AppendDataHeader(b.Tail(), wire.DataFields{PayloadLen: len(body)}))
			b.Bytes(body)
			b.End()
		}
	}
	check.Equal(t, "allocations: the Batch and its three lists",
		testing.AllocsPerRun(100, func() { b = NewBatch(8); fill() }), 4)
	check.Equal(t, "allocations a batch", testing.AllocsPerRun(100, fill), 0)
}

func BenchmarkPacket(b *testing.B) {
	for _, n := range []int{1432, 65400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			bt := NewBatch(8)
			body := make([]byte, n)
			b.SetBytes(int64(n))
			for b.Loop() {
				if bt.Full() {
					bt.Reset()
				}
				bt.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, n+28)
				bt.Commit(wire.AppendDataHeader(bt.Tail(), wire.DataFields{PayloadLen: n}))
				bt.Bytes(body)
				bt.End()
			}
		})
	}
}

func TestLongPacketsAreFragmentedByIP(t *testing.T) {
	for _, row := range []struct {
		name     string
		remote   string
		size, n  int
		fragment int
	}{
		{"within its size: whole", "192.0.2.1:0", 600, 588, 0},
		{"longer, IPv4", "192.0.2.1:0", 600, 592, 620},
		{"longer, IPv6 in UDP", "[2001:db8::1]:9899", 600, 592, 648},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := NewBatch(1)
			b.Begin(1, 2, 3, netip.AddrPort{}, netip.MustParseAddrPort(row.remote), row.size)
			b.Commit(append(b.Tail(), make([]byte, row.n)...))
			b.End()
			p := b.Pkts[0]
			check.That(t, p.Fragment == row.fragment && p.Len() == 12+row.n, "%d octets, to be fragmented to %d",
				p.Len(), p.Fragment)
		})
	}
}

// A batch that was written and reset, or whose packet was cancelled, keeps none of the user's
// memory alive: neither in the list of pieces nor in one that has become too short.
func TestUserMemoryIsLetGo(t *testing.T) {
	long := make([]byte, maxInlineOctets+1)
	for name, finish := range map[string]func(*Batch){
		"reset": func(b *Batch) { b.End(); b.Reset() },
		"reset after the list of pieces has grown": func(b *Batch) {
			b.End()
			b.BeginAgain()
			for range 2 * cap(b.vecs) {
				b.Bytes(long)
			}
			b.End()
			b.Reset()
		},
		"cancelled": (*Batch).Cancel,
	} {
		b := NewBatch(4)
		user := make([]byte, 1000)
		held := weak.Make(&user[0])
		b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 1200)
		b.Bytes(user)
		runtime.GC()
		must.That(t, held.Value() != nil, "the packet's memory is gone before that")
		finish(b)
		user = nil
		runtime.GC()
		check.That(t, held.Value() == nil, "%s: the user's memory is still referenced", name)
		runtime.KeepAlive(b)
	}
}

// frame is a Sealer that adds a header and a trailer.
type frame struct{ fails bool }

func (f *frame) Append(b []byte, pieces ...[]byte) ([]byte, error) {
	if f.fails {
		return b, errors.New("no more")
	}
	b = append(b, "<<<<"...)
	for _, p := range pieces {
		b = append(b, p...)
	}
	return append(b, ">>>>"...), nil
}

// The chunks of a packet that is sealed are replaced, its common header stays, and the user's
// memory is let go of. One that cannot be sealed is forgotten.
func TestSealedPackets(t *testing.T) {
	b, f := NewBatch(8), new(frame)
	body := bytes.Repeat([]byte{7}, 300)
	remote := netip.MustParseAddrPort("192.0.2.2:0")
	for _, c := range []struct {
		name     string
		size     int
		fragment int
	}{{"one that fits", 400, 0}, {"one that is cut", 200, 200 + 8 + rawio.Overhead(remote)}} {
		b.Begin(1, 2, 3, remote, remote, c.size)
		b.Seal(f)
		b.Bytes([]byte("head"))
		b.Bytes(body)
		b.End()
		b.Add(append(bytes.Clone(b.Header()), "more"...), body)
		check.That(t, b.IsSealed(), "%s: not sealed", c.name)
		for i, head := range []string{"head", "more"} {
			p := b.Pkts[i]
			got := wire.Packet(join(p.Vec))
			check.That(t, got.ChecksumOK() && got.VTag() == 3 && string(got[12:]) == "<<<<"+head+string(body)+">>>>", "%s: %q", c.name, got)
			check.That(t, len(p.Vec) == 1 && p.Fragment == c.fragment, "%s: %d pieces, fragments of %d", c.name, len(p.Vec), p.Fragment)
		}
		check.Equal(t, c.name+": octets", b.Octets(), 2*(12+4+300+8))
		for _, v := range b.vecs[len(b.vecs):cap(b.vecs)] {
			check.That(t, v == nil, "%s: a piece is kept", c.name)
		}
		f.fails = true
		b.BeginAgain()
		b.Bytes(body)
		b.End()
		check.That(t, len(b.Pkts) == 2 && b.Octets() == 2*(12+4+300+8), "%s: %d packets", c.name, len(b.Pkts))
		f.fails = false
		b.Reset()
		b.Begin(1, 2, 3, remote, remote, 100)
		check.That(t, !b.IsSealed(), "sealed without being asked")
		b.Cancel()
	}
}
