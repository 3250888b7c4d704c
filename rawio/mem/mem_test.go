package mem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/linktest"
)

func newPair(t testing.TB, o Options) (a, b *Link) {
	t.Helper()
	a, b = must.Two(Pair(o))(t)
	t.Cleanup(func() {
		a.Close()
		b.Close()
		check.Equal(t, "buffers leaked", a.Outstanding(), 0)
	})
	return a, b
}

func writeVec(t testing.TB, l, to *Link, vec ...[]byte) {
	t.Helper()
	if n, err := l.WriteBatch([]rawio.Packet{{Vec: vec, Remote: to.addrs[0]}}); n != 1 || err != nil {
		t.Fatalf("WriteBatch = %d, %v", n, err)
	}
}

func TestPollBatchNeverBlocks(t *testing.T) {
	a, b := newPair(t, Options{})
	got := make([]rawio.Packet, 2)
	must.Equal(t, "packets of none", b.PollBatch(got), 0)
	must.Equal(t, "features", rawio.FeaturesOf(b), rawio.DontFragment|rawio.ECNField|rawio.Interruptible|rawio.Marking)
	must.Equal(t, "packets read without room", must.Get(b.ReadBatch(nil))(t), 0)
	for _, s := range []string{"1", "2", "3"} {
		writeVec(t, a, b, []byte(s))
	}
	for _, want := range []int{2, 1, 0} {
		n := b.PollBatch(got)
		must.Equal(t, "packets", n, want)
		for i := range n {
			got[i].Release()
		}
	}
	writeVec(t, a, b, []byte("never read"))
	b.Close()
	must.Equal(t, "packets after Close", b.PollBatch(got), 0)
}

// Where goroutines that are ready are about to send, a reader takes what they send together. The
// scheduler may have it go on before them now and then.
func TestReaderLetsThoseGoFirstWhoSend(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const rounds, senders = 100, 8
	a, b := newPair(t, Options{})
	got := make([]rawio.Packet, senders)
	several := 0
	for range rounds {
		var wg sync.WaitGroup
		for range senders {
			wg.Go(func() { writeVec(t, a, b, []byte("x")) })
		}
		for n := 0; n < senders; {
			k := must.Get(b.ReadBatch(got))(t)
			rawio.ReleaseAll(got[:k])
			if n += k; k > senders/2 {
				several++
			}
		}
		wg.Wait()
	}
	check.That(t, several > rounds*2/3, "packets of several goroutines came together %d of %d times", several, rounds)
}

func TestPacketsArriveInOrderWithTheirAddresses(t *testing.T) {
	a, b := newPair(t, Options{})
	from, to := netip.MustParseAddrPort("10.0.0.1:0"), netip.MustParseAddrPort("10.0.0.2:0") // as documented
	other, most := netip.MustParseAddrPort("10.9.9.9:9899"), bytes.Repeat([]byte("two "), smallBuf/4)
	n, err := a.WriteBatch([]rawio.Packet{
		{Vec: [][]byte{most[:5], nil, most[5:]}, Remote: to, ECN: 2},
		{Vec: [][]byte{bytes.Repeat([]byte{7}, 65515)}, Local: other, Remote: to},
		{Remote: to},
	})
	must.That(t, n == 3 && err == nil, "WriteBatch = %d, %v", n, err)

	got := make([]rawio.Packet, 2)
	n, err = b.ReadBatch(got)
	must.That(t, n == 2 && err == nil, "ReadBatch = %d, %v, want the two packets there is room for", n, err)
	p := got[0]
	check.That(t, bytes.Equal(p.Data, most) && p.Local == to && p.Remote == from && p.ECN == 2 &&
		p.Kind == rawio.KindSCTP && len(p.Buf.B) == smallBuf, "first packet: %+v", p)
	if p := got[1]; len(p.Data) != 65515 || p.Data[65514] != 7 || p.Remote != other {
		t.Errorf("second packet: %d octets from %v", len(p.Data), p.Remote)
	}
	check.Equal(t, "buffers held, with that of the packet that waits", a.Outstanding(), 3)
	got[0].Release()
	got[1].Release()
	if n, err := b.ReadBatch(got); n != 1 || err != nil || len(got[0].Data) != 0 {
		t.Fatalf("ReadBatch = %d, %v, want the empty packet", n, err)
	}
	got[0].Release()
}

func TestWriteBatchKeepsNoReference(t *testing.T) {
	a, b := newPair(t, Options{})
	data := []byte("original")
	writeVec(t, a, b, data)
	copy(data, "changed!")
	pkts := make([]rawio.Packet, 1)
	_, err := b.ReadBatch(pkts)
	must.That(t, err == nil && string(pkts[0].Data) == "original", "read %q, %v", pkts[0].Data, err)
	pkts[0].Release()
}

func TestRefusedPackets(t *testing.T) {
	const mtu = 1500
	a, b := newPair(t, Options{MTU: mtu})
	to := b.addrs[0]
	good := rawio.Packet{Vec: [][]byte{make([]byte, 1480)}, Remote: to}
	for _, row := range []struct {
		name string
		bad  rawio.Packet
		is   func(error) bool
	}{
		{"longer than the MTU", rawio.Packet{Vec: [][]byte{make([]byte, 1480), {0}}, Remote: to},
			func(err error) bool { return errors.Is(err, rawio.ErrTooLong) }},
		{"not the other side's address", rawio.Packet{Vec: good.Vec, Remote: a.addrs[0]},
			func(err error) bool { var e *net.AddrError; return errors.As(err, &e) }},
		{"no address", rawio.Packet{Vec: good.Vec},
			func(err error) bool { var e *net.AddrError; return errors.As(err, &e) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			batch := []rawio.Packet{good, row.bad, good}
			n, err := a.WriteBatch(batch)
			must.That(t, n == 1 && row.is(err), "WriteBatch = %d, %v", n, err)
			if n, err := a.WriteBatch(batch[n+1:]); n != 1 || err != nil {
				t.Fatalf("the packet after the refused one: %d, %v", n, err)
			}
			pkts := make([]rawio.Packet, 4)
			if n, _ := b.ReadBatch(pkts); n != 2 {
				t.Fatalf("%d packets arrived, want 2", n)
			}
			pkts[0].Release()
			pkts[1].Release()
		})
	}
}

func TestMTUIsThatOfTheOptionsLessHeaders(t *testing.T) {
	v4 := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:0")}
	udp := []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:9899")}
	v6 := []netip.AddrPort{netip.MustParseAddrPort("[2001:db8::1]:0")}
	for _, row := range []struct {
		name string
		o    Options
		want int
	}{
		{"default", Options{}, 65515},
		{"IPv4 header taken off", Options{MTU: 1500, A: v4, B: v4}, 1480},
		{"UDP header taken off", Options{MTU: 1500, A: udp, B: udp}, 1472},
		{"IPv6 header taken off", Options{MTU: 1500, A: v6, B: v6}, 1460},
		{"the longest header of both sides", Options{MTU: 1500, A: v4, B: v6}, 1460},
		{"least", Options{MTU: rawio.MinMTU}, 556},
		{"above what IP can say", Options{MTU: 1 << 20}, 65515},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := newPair(t, row.o)
			must.Equal(t, "MTU", a.MTU(a.addrs[0].Addr(), b.addrs[0].Addr()), row.want)
		})
	}
}

// A packet without a source leaves from an address of the family of its destination.
func TestSourceIsOfTheFamilyOfTheDestination(t *testing.T) {
	v4, v6 := netip.MustParseAddrPort("192.0.2.1:0"), netip.MustParseAddrPort("[2001:db8::1]:0")
	to4, to6 := netip.MustParseAddrPort("192.0.2.2:0"), netip.MustParseAddrPort("[2001:db8::2]:0")
	for _, row := range []struct {
		own      []netip.AddrPort
		to, from netip.AddrPort
	}{
		{[]netip.AddrPort{v4, v6}, to4, v4}, {[]netip.AddrPort{v4, v6}, to6, v6}, {[]netip.AddrPort{v6, v4}, to4, v4}, {[]netip.AddrPort{v6, v4}, to6, v6},
		{[]netip.AddrPort{v4}, to6, v4},
	} {
		a, b := newPair(t, Options{A: row.own, B: []netip.AddrPort{to4, to6}})
		must.Do(a.WriteBatch([]rawio.Packet{{Remote: row.to, Vec: [][]byte{make([]byte, 12)}}}))(t)
		pkts := make([]rawio.Packet, 1)
		must.Do(b.ReadBatch(pkts))(t)
		must.Equal(t, "source", pkts[0].Remote, row.from)
		pkts[0].Release()
	}
}

func TestPairRefusesBadOptions(t *testing.T) {
	var mtuErr *rawio.MTUError
	if _, _, err := Pair(Options{MTU: rawio.MinMTU - 1}); !errors.As(err, &mtuErr) || mtuErr.MTU != rawio.MinMTU-1 {
		t.Errorf("MTU below the least: %v", err)
	}
	var addrErr *net.AddrError
	if _, _, err := Pair(Options{B: make([]netip.AddrPort, 1)}); !errors.As(err, &addrErr) {
		t.Errorf("invalid address: %v", err)
	}
}

func TestFullQueueDropsAndCounts(t *testing.T) {
	a, b := newPair(t, Options{Queue: 100})
	for i := range 130 {
		writeVec(t, a, b, []byte{byte(i)})
	}
	must.Equal(t, "Drops", b.Drops(), 30)
	pkts := make([]rawio.Packet, 200)
	n, err := b.ReadBatch(pkts)
	must.That(t, n == 100 && err == nil, "ReadBatch = %d, %v", n, err)
	for i := range pkts[:n] {
		must.That(t, pkts[i].Data[0] == byte(i), "packet %d is number %d", i, pkts[i].Data[0])
		pkts[i].Release()
	}
	writeVec(t, a, b, []byte("room again"))
	if n, _ := b.ReadBatch(pkts); n != 1 {
		t.Fatalf("read %d packets after the queue emptied", n)
	}
	pkts[0].Release()
}

// The ring grows while its oldest packet is not at its start.
func TestQueueKeepsOrderWhileItGrows(t *testing.T) {
	q := packetQueue{maxCount: 1000}
	next, want, most := 0, 0, 0
	for round := range 40 {
		for range 20 + round {
			if q.push(rawio.Packet{MTU: next}) {
				next++
			}
			most = max(most, q.count)
			must.That(t, len(q.ring) <= max(64, 2*most), "room for %d packets, of which there were %d", len(q.ring),
				most)
		}
		for range 17 {
			must.Equal(t, "popped", q.pop().MTU, want)
			want++
		}
	}
	must.That(t, next-want == q.count && q.count == 40*20+39*40/2-40*17, "%d packets left of %d pushed and %d popped",
		q.count, next, want)
}

func TestCloseWakesAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := newPair(t, Options{})
		var err error
		go func() { _, err = b.ReadBatch(make([]rawio.Packet, 1)) }()
		synctest.Wait() // the reader blocks
		b.Close()
		synctest.Wait()
		must.Error(t, "ReadBatch", err, net.ErrClosed)
	})
}

func TestWriteWakesAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newPair(t, Options{})
		pkts := make([]rawio.Packet, 1)
		n := 0
		go func() { n, _ = b.ReadBatch(pkts) }()
		synctest.Wait() // the reader blocks
		writeVec(t, a, b, []byte("wake"))
		synctest.Wait()
		must.That(t, n == 1 && string(pkts[0].Data) == "wake", "read %d packets, %q", n, pkts[0].Data)
		pkts[0].Release()
	})
}

func TestClosedLinkRefusesEveryCall(t *testing.T) {
	a, b := newPair(t, Options{})
	must.OK(t, b.Close())
	check.Fails(b.WriteBatch([]rawio.Packet{{Remote: a.addrs[0]}}))(t, "WriteBatch", net.ErrClosed)
	check.Error(t, "BindPort", b.BindPort(1), net.ErrClosed)
	check.Error(t, "second Close", b.Close(), nil)
	writeVec(t, a, b, []byte("into the void"))
	check.Equal(t, "Drops after a write to a closed side", b.Drops(), 1)
}

func TestClosedLinkDoesNotReadWhatWasQueued(t *testing.T) {
	a, b := newPair(t, Options{})
	writeVec(t, a, b, []byte("unread"))
	b.Close()
	n, err := b.ReadBatch(make([]rawio.Packet, 1))
	must.That(t, n == 0 && errors.Is(err, net.ErrClosed), "ReadBatch = %d, %v", n, err)
}

func TestBindPort(t *testing.T) {
	a, b := newPair(t, Options{})
	must.OK(t, a.BindPort(5000))
	check.Error(t, "second BindPort", a.BindPort(5000), rawio.ErrPortInUse)
	check.Error(t, "BindPort at one more address", a.BindPort(5000, b.addrs[0].Addr()), nil)
	check.Error(t, "the other side has ports of its own", b.BindPort(5000), nil)
	a.UnbindPort(5000)
	check.Error(t, "BindPort after UnbindPort", a.BindPort(5000), nil)
}

func TestLinkMayBeUsedAtOnce(t *testing.T) {
	a, b := newPair(t, Options{Queue: 2})
	p := rawio.Packet{Vec: [][]byte{make([]byte, 40)}, Remote: b.LocalAddrs()[0]}
	linktest.CheckConcurrentUse(t, a, b, p, func() { a.Drops(); b.Drops(); a.Outstanding(); b.PollBatch(nil) })
	check.Equal(t, "buffers held", a.Outstanding(), 0)
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	const writers, each = 4, 500
	a, b := newPair(t, Options{Queue: writers * each})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				var p [8]byte
				binary.BigEndian.PutUint32(p[:], uint32(w))
				binary.BigEndian.PutUint32(p[4:], uint32(i))
				writeVec(t, a, b, p[:])
			}
		})
	}
	var next [writers]uint32
	pkts := make([]rawio.Packet, 32)
	for got := 0; got < writers*each; {
		n := must.Get(b.ReadBatch(pkts))(t)
		for i := range pkts[:n] {
			w, seq := binary.BigEndian.Uint32(pkts[i].Data), binary.BigEndian.Uint32(pkts[i].Data[4:])
			must.That(t, seq == next[w], "writer %d: packet %d arrived, want %d", w, seq, next[w])
			next[w]++
			pkts[i].Release()
		}
		got += n
	}
	wg.Wait()
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	a, b := newPair(t, Options{})
	out, in := newBatch(b, 32, 1400), make([]rawio.Packet, 32)
	must.Equal(t, "allocations for a batch of 32 packets",
		testing.AllocsPerRun(200, func() { exchangeBatch(t, a, b, out, in) }), 0)
}

func newBatch(to *Link, n, size int) []rawio.Packet {
	pkts := make([]rawio.Packet, n)
	data := make([]byte, size)
	for i := range pkts {
		pkts[i] = rawio.Packet{Vec: [][]byte{data[:size/2], data[size/2:]}, Remote: to.addrs[0]}
	}
	return pkts
}

func exchangeBatch(t testing.TB, a, b *Link, out, in []rawio.Packet) {
	if n, err := a.WriteBatch(out); n != len(out) || err != nil {
		t.Fatal(n, err)
	}
	n, err := b.ReadBatch(in)
	if n != len(out) || err != nil {
		t.Fatal(n, err)
	}
	for i := range in[:n] {
		in[i].Release()
	}
}
