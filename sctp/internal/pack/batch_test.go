package pack

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

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
	long, short := bytes.Repeat([]byte{7}, inline+1), bytes.Repeat([]byte{8}, inline)
	b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 9000)
	b.Bytes(short)
	b.Bytes(long)
	b.Commit(append(b.Tail(), 0, 0, 0))
	b.End()
	vec := b.Pkts[0].Vec
	if len(vec) != 3 {
		t.Fatalf("%d pieces, want header with the short data, the long data, padding", len(vec))
	}
	if &vec[1][0] != &long[0] {
		t.Error("long user data was copied")
	}
	if len(vec[0]) != wire.CommonHeaderLen+inline {
		t.Errorf("first piece has %d octets", len(vec[0]))
	}
	// req 9260-6.8-1
	if got, want := wire.Packet(join(vec)).Checksum(), wire.ChecksumBytes(join(vec)); got != want {
		t.Errorf("checksum %08x, want %08x", got, want)
	}
}

func TestPacketsSurviveAGrowingArena(t *testing.T) {
	b := NewBatch(2)
	big := bytes.Repeat([]byte{1, 2, 3, 4}, 2000)
	for i := range 2 {
		b.Begin(1, 2, uint32(i), netip.AddrPort{}, netip.AddrPort{}, 20000)
		b.Commit(append(b.Tail(), big[:400]...))
		b.Commit(append(b.Tail(), big...))
		if b.Len() != 12+400+len(big) || b.Room() != 20000-b.Len() {
			t.Fatalf("Len %d Room %d", b.Len(), b.Room())
		}
		b.End()
	}
	for i, p := range b.Pkts {
		pkt := wire.Packet(join(p.Vec))
		if !pkt.ChecksumOK() || pkt.VTag() != uint32(i) || !bytes.Equal(pkt[12:], append(append([]byte(nil), big[:400]...), big...)) {
			t.Errorf("packet %d is damaged", i)
		}
	}
	if !b.Full() {
		t.Error("not full")
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
	if want := maxOctets/len(big) + 1; n != want {
		t.Errorf("%d packets of %d octets, want %d", n, len(big), want)
	}
	if b.Reset(); b.Full() {
		t.Error("full when empty")
	}
}

func TestCancelledPacketLeavesNoTrace(t *testing.T) {
	b := NewBatch(2)
	b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 1000)
	if !b.Empty() {
		t.Error("a packet with a common header only is not empty")
	}
	b.Bytes(make([]byte, 500))
	b.Cancel()
	b.Begin(4, 5, 6, netip.AddrPort{}, netip.AddrPort{}, 1000)
	b.Commit(wire.AppendCookieAck(b.Tail()))
	b.End()
	if len(b.Pkts) != 1 || b.Pkts[0].Len() != 16 || wire.Packet(join(b.Pkts[0].Vec)).VTag() != 6 {
		t.Error("the cancelled packet shows")
	}
}

func TestSteadyStateDoesNotAllocate(t *testing.T) {
	b := NewBatch(8)
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
	fill()
	if n := testing.AllocsPerRun(100, fill); n != 0 {
		t.Errorf("%v allocations a batch", n)
	}
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
			if p := b.Pkts[0]; p.Fragment != row.fragment || p.Len() != 12+row.n {
				t.Errorf("%d octets, to be fragmented to %d", p.Len(), p.Fragment)
			}
		})
	}
}

func TestECNFieldIsOfOnePacket(t *testing.T) {
	b := NewBatch(2)
	for _, ecn := range []uint8{rawio.ECT0, rawio.NotECT} {
		b.Begin(1, 2, 3, netip.AddrPort{}, netip.AddrPort{}, 100)
		if ecn != rawio.NotECT {
			b.SetECN(ecn)
		}
		b.Commit(wire.AppendCookieAck(b.Tail()))
		b.End()
		if got := b.Pkts[len(b.Pkts)-1].ECN; got != ecn {
			t.Errorf("ECN %d, want %d", got, ecn)
		}
	}
}
