package defrag

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

var (
	own4, own6   = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	peer4, peer6 = netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8::2")
)

// patternOf is the first n octets of what packet id holds.
func patternOf(id uint32, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i>>3 ^ i*7 ^ int(id)*31)
	}
	return b
}

// cutPacket is a packet in fragments, as they come.
func cutPacket(t testing.TB, payload []byte, mtu int, src, dst netip.Addr, id uint32) (list []iphdr.Packet) {
	t.Helper()
	err := iphdr.Fragment(payload, mtu, iphdr.ProtoSCTP, rawio.ECT0, src, dst, id, func(b []byte) error {
		f, err := iphdr.Parse(bytes.Clone(b))
		must.Equal(t, "error", err, iphdr.ErrFragment)
		list = append(list, f)
		return nil
	})
	must.OK(t, err)
	return list
}

// fragmentOf is one fragment of packet id.
func fragmentOf(id uint32, from, to int, more bool) iphdr.Packet {
	return iphdr.Packet{Src: peer4, Dst: own4, ID: id, Proto: iphdr.ProtoSCTP, ECN: rawio.ECT0, Offset: from,
		MoreFragments: more, Payload: patternOf(id, to)[from:]}
}

// feedFragments gives fragments in a buffer that is used again, and returns the packets that they
// complete.
func feedFragments(t testing.TB, a *Assembler, now rawio.Time, list ...iphdr.Packet) (out []iphdr.Packet) {
	t.Helper()
	var buf [1 << 16]byte
	for _, f := range list {
		f.Payload = buf[:copy(buf[:], f.Payload)]
		if p, ok := a.Add(now, f); ok {
			out = append(out, p)
		}
		clear(f.Payload)
		checkBounded(t, a, f.Src)
	}
	return out
}

// checkBounded looks whether what waits keeps the limits, after a fragment of src.
func checkBounded(t testing.TB, a *Assembler, src netip.Addr) {
	t.Helper()
	all, own := 0, 0
	for i := range a.incomplete {
		p := &a.incomplete[i]
		n := 0
		for k := range p.fragments {
			n += len(p.fragments[k].Payload) + fragmentCost
		}
		n = max(n, minPacketCost)
		all += n
		if p.src == src {
			own += n
		}
		must.That(t, len(p.fragments) <= maxFragments, "%d fragments of one packet", len(p.fragments))
	}
	must.That(t, all <= MaxOctets && own <= MaxOctetsPerSource, "%d octets wait, %d of them from %v", all, own, src)
}

func checkEmpty(t *testing.T, a *Assembler) {
	t.Helper()
	check.Equal(t, "packets that still wait", len(a.incomplete), 0)
}

// RFC 791 section 3.2, RFC 8200 section 4.5: a packet is put together by source, destination and
// identification, in whatever order its fragments come. Duplicates are ignored.
func TestFragmentsInAnyOrderMakeThePacket(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, ends := range [][2]netip.Addr{{peer4, own4}, {peer6, own6}} {
		for _, size := range []int{1400, 1401, 9000, 65507} {
			whole := patternOf(7, size)
			one := cutPacket(t, whole, 1280, ends[0], ends[1], 7)
			n := len(one)
			backwards := slices.Clone(one)
			slices.Reverse(backwards)
			mixed := slices.Clone(one)
			rng.Shuffle(n, func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			twice := append(slices.Clone(mixed[:n-1]), mixed...)
			for name, order := range map[string][]iphdr.Packet{"in order": one, "backwards": backwards,
				"mixed": mixed, "twice": twice} {
				a := new(Assembler)
				out := feedFragments(t, a, 0, order...)
				must.That(t, len(out) == 1 && bytes.Equal(out[0].Payload, whole),
					"%v, %d octets %s: %d packets", ends, size, name, len(out))
				p := out[0]
				check.That(t, p.Src == ends[0] && p.Dst == ends[1] && p.Proto == iphdr.ProtoSCTP &&
					p.ECN == rawio.ECT0 && p.ID == 0 && p.Offset == 0 && !p.MoreFragments, "%+v", p)
				check.Equal(t, name, a.Stats, (Stats{}))
				checkEmpty(t, a)
			}
		}
	}
}

func TestPacketsAreKeptApart(t *testing.T) {
	a := new(Assembler)
	other4, other6 := netip.MustParseAddr("198.51.100.3"), netip.MustParseAddr("2001:db8::3")
	var lists [][]iphdr.Packet
	for i, key := range []struct {
		src, dst netip.Addr
		id       uint32
	}{
		{peer4, own4, 1}, {peer4, own4, 2}, {other4, own4, 1}, {peer4, other4, 1},
		{peer6, own6, 1}, {peer6, own6, 1 << 16}, {other6, own6, 1}, {peer6, other6, 1},
	} {
		lists = append(lists, cutPacket(t, patternOf(uint32(100+i), 4000), 1280, key.src, key.dst, key.id))
	}
	for k := range lists[0] {
		for i, l := range lists {
			out := feedFragments(t, a, 0, l[k])
			must.That(t, k >= len(l)-1 || len(out) == 0, "packet %d is complete after fragment %d", i, k)
			must.That(t, k != len(l)-1 || len(out) == 1 &&
				bytes.Equal(out[0].Payload, patternOf(uint32(100+i), 4000)) && out[0].Src == l[0].Src,
				"packet %d: %d came", i, len(out))
		}
	}
	checkEmpty(t, a)
}

// RFC 8200 section 4.5: what follows is as the first fragment says, whichever comes first.
func TestFirstFragmentNamesTheNextHeader(t *testing.T) {
	f := []iphdr.Packet{fragmentOf(1, 8, 20, false), fragmentOf(1, 0, 8, true)}
	f[0].Proto, f[1].Proto = iphdr.ProtoUDP, 60
	out := feedFragments(t, new(Assembler), 0, f...)
	check.That(t, len(out) == 1 && out[0].Proto == 60, "%+v", out)
}

// RFC 5722 section 4 and RFC 8200 section 4.5: fragments that overlap drop the packet, and those
// that come later too. Those that contradict each other in other ways do the same.
func TestContradictions(t *testing.T) {
	other := fragmentOf(1, 8, 16, true)
	other.Payload[0] ^= 1
	for _, test := range []struct {
		name        string
		before, bad iphdr.Packet
	}{
		{"overlap with the one in front", fragmentOf(1, 0, 24, true), fragmentOf(1, 16, 32, true)},
		{"overlap with the one behind", fragmentOf(1, 16, 32, true), fragmentOf(1, 0, 24, true)},
		{"inside another", fragmentOf(1, 0, 32, true), fragmentOf(1, 8, 16, true)},
		{"around another", fragmentOf(1, 8, 16, true), fragmentOf(1, 0, 32, true)},
		{"longer", fragmentOf(1, 8, 16, true), fragmentOf(1, 8, 24, true)},
		{"shorter", fragmentOf(1, 8, 24, true), fragmentOf(1, 8, 16, true)},
		{"the same place with other octets", fragmentOf(1, 8, 16, true), other},
		{"the last one again, as not the last", fragmentOf(1, 8, 16, false), fragmentOf(1, 8, 16, true)},
		{"now the last", fragmentOf(1, 8, 16, true), fragmentOf(1, 8, 16, false)},
		{"another last one behind", fragmentOf(1, 8, 16, false), fragmentOf(1, 16, 20, false)},
		{"another last one in front", fragmentOf(1, 16, 20, false), fragmentOf(1, 8, 16, false)},
		{"behind the end", fragmentOf(1, 8, 16, false), fragmentOf(1, 16, 24, true)},
		{"far behind the end", fragmentOf(1, 8, 16, false), fragmentOf(1, 64, 72, true)},
		{"an end in front of what is there", fragmentOf(1, 64, 72, true), fragmentOf(1, 8, 16, false)},
	} {
		a := new(Assembler)
		rest := []iphdr.Packet{fragmentOf(1, 0, 8, true), fragmentOf(1, 8, 16, true), fragmentOf(1, 16, 24, true),
			fragmentOf(1, 24, 64, true), fragmentOf(1, 64, 80, false)}
		feedFragments(t, a, 0, test.before, test.bad)
		check.Equal(t, test.name, a.Stats, (Stats{Bad: 2}))
		out := feedFragments(t, a, 0, rest...)
		check.That(t, len(out) == 0, "%s: %+v came", test.name, out)
		check.Equal(t, test.name, a.Stats, (Stats{Bad: 7}))
		out = feedFragments(t, a, rawio.Time(Timeout), rest...)
		check.That(t, len(out) == 1 && bytes.Equal(out[0].Payload, patternOf(1, 80)),
			"%s: the identification is not free again", test.name)
		checkEmpty(t, a)
	}
}

// RFC 1122 section 3.3.2, RFC 8200 section 4.5: 60 seconds, from the first fragment that came.
func TestFragmentsAreDropped60SecondsAfterTheFirst(t *testing.T) {
	a := new(Assembler)
	start := rawio.Time(12345)
	feedFragments(t, a, start, fragmentOf(1, 0, 8, true), fragmentOf(2, 0, 8, true))
	feedFragments(t, a, start.Add(time.Second), fragmentOf(3, 0, 8, true))
	feedFragments(t, a, start.Add(Timeout/2), fragmentOf(1, 8, 16, true), fragmentOf(2, 8, 16, true))
	check.Equal(t, "packets just before it is too late",
		len(feedFragments(t, a, start.Add(Timeout-1), fragmentOf(1, 16, 20, false))), 1)
	out := feedFragments(t, a, start.Add(Timeout), fragmentOf(2, 16, 20, false))
	check.That(t, len(out) == 0 && a.Stats == (Stats{Late: 2}), "%d came, %+v", len(out), a.Stats)
	check.Equal(t, "packets of a younger one",
		len(feedFragments(t, a, start.Add(Timeout), fragmentOf(3, 8, 20, false))), 1)
	check.Equal(t, "Timeout", Timeout, time.Minute)
}

// RFC 3168 section 5.3: CE is not lost, and not set where a fragment says that its sender knows
// nothing of ECN; one codepoint stays.
func TestCEOfOneFragmentIsNotLost(t *testing.T) {
	const not, ect0, ect1, ce = rawio.NotECT, rawio.ECT0, rawio.ECT1, rawio.CE
	const dropped = 255
	for _, test := range []struct {
		in   [3]uint8
		want uint8
	}{
		{[3]uint8{not, not, not}, not}, {[3]uint8{ect0, ect0, ect0}, ect0}, {[3]uint8{ect1, ect1, ect1}, ect1}, {[3]uint8{ce, ce, ce}, ce},
		{[3]uint8{ce, ect0, ect0}, ce}, {[3]uint8{ect0, ce, ect0}, ce}, {[3]uint8{ect1, ect0, ce}, ce},
		{[3]uint8{not, ect0, ce}, dropped}, {[3]uint8{ce, ect0, not}, dropped}, {[3]uint8{ect0, not, ce}, dropped},
		{[3]uint8{ect1, ect0, ect0}, ect1}, {[3]uint8{not, ect0, ect0}, not}, // not specified: as the first says
	} {
		f := []iphdr.Packet{fragmentOf(1, 0, 8, true), fragmentOf(1, 8, 16, true), fragmentOf(1, 16, 20, false)}
		for i, e := range test.in {
			f[i].ECN = e
		}
		for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}} {
			a := new(Assembler)
			got := uint8(dropped)
			for _, i := range order {
				if out := feedFragments(t, a, 0, f[i]); len(out) > 0 {
					got = out[0].ECN
				}
			}
			check.That(t, got == test.want && (got == dropped) == (a.Stats.Bad == 3),
				"%v in order %v: %d, want %d; %+v", test.in, order, got, test.want, a.Stats)
		}
	}
}

// What waits of one source is bounded, and takes no room from others; the oldest is given up.
func TestLimitOfASource(t *testing.T) {
	for _, test := range []struct {
		size, pieces, count int
	}{
		{8, 1, MaxOctetsPerSource / minPacketCost},
		{60000, 1, MaxOctetsPerSource / (60000 + fragmentCost)},
		{8, 100, MaxOctetsPerSource / 100 / (8 + fragmentCost)},
	} {
		a := new(Assembler)
		other := fragmentOf(99, 0, 8, true)
		other.Src = netip.MustParseAddr("198.51.100.3")
		feedFragments(t, a, 0, other)
		begin := func(id int) {
			for i := range test.pieces {
				feedFragments(t, a, 1, fragmentOf(uint32(id), i*test.size, (i+1)*test.size, true))
			}
		}
		for i := range test.count {
			begin(i)
		}
		check.That(t, a.Stats.Full == 0, "%d octets: %d fragments are too many", test.size, test.count)
		begin(test.count)
		check.That(t, a.Stats == (Stats{Full: uint64(test.pieces)}), "%d octets: %+v after %d packets", test.size,
			a.Stats, test.count+1)
		rest := func(id int) iphdr.Packet {
			return fragmentOf(uint32(id), test.pieces*test.size, test.pieces*test.size+4, false)
		}
		check.Equal(t, "packets of the oldest", len(feedFragments(t, a, 1, rest(0))), 0)
		check.Equal(t, "packets of others", len(feedFragments(t, a, 1, rest(2), rest(test.count))), 2)
		last := fragmentOf(99, 8, 12, false)
		last.Src = other.Src
		check.Equal(t, "packets of another source", len(feedFragments(t, a, 1, last)), 1)
	}
}

func TestFragmentsOfAllSourcesAreBounded(t *testing.T) {
	a := new(Assembler)
	first := func(i int) iphdr.Packet {
		f := fragmentOf(1, 0, 8, true)
		f.Src = netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		return f
	}
	const most = MaxOctets / minPacketCost
	for i := range most + 10 {
		feedFragments(t, a, 0, first(i))
		want := max(0, i+1-most)
		must.That(t, a.Stats.Full == uint64(want), "%d given up after %d, want %d", a.Stats.Full, i+1, want)
	}
	for _, i := range []int{10, most + 9, 9} {
		last := fragmentOf(1, 8, 12, false)
		last.Src = first(i).Src
		n := len(feedFragments(t, a, 0, last))
		check.That(t, (n == 1) == (i > 9), "packet %d: %d came", i, n)
	}
}

// A packet has so many fragments and no more, so that small ones do not cost more than they hold.
func TestNumberOfFragments(t *testing.T) {
	for _, n := range []int{maxFragments, maxFragments + 1} {
		a := new(Assembler)
		var out []iphdr.Packet
		for i := range n {
			out = append(out, feedFragments(t, a, 0, fragmentOf(1, 8*i, 8*i+8, i < n-1))...)
		}
		ok := len(out) == 1
		check.That(t, ok == (n == maxFragments), "%d fragments: %d packets, %+v", n, len(out), a.Stats)
	}
}

// The largest packet of either version is put together, also where it was cut for the least MTU
// that a host has to take (RFC 791).
func TestLargestPacketIsPutTogether(t *testing.T) {
	for _, row := range []struct {
		src, dst  netip.Addr
		size, mtu int
	}{{peer4, own4, 65515, 576}, {peer6, own6, 65535, 1280}} {
		out := feedFragments(t, new(Assembler), 0, cutPacket(t, patternOf(3, row.size), row.mtu, row.src, row.dst,
			3)...)
		check.That(t, len(out) == 1 && bytes.Equal(out[0].Payload, patternOf(3, row.size)), "%v: %d came", row.src,
			len(out))
	}
}
