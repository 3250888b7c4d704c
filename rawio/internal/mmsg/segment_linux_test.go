package mmsg

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

func TestRunIsOfPacketsThatTheKernelCanSegment(t *testing.T) {
	other := netip.MustParseAddrPort("127.0.0.2:1")
	sizes := func(n ...int) (pkts []rawio.Packet) {
		for _, k := range n {
			pkts = append(pkts, rawio.Packet{Vec: [][]byte{make([]byte, k)}, Remote: anywhere})
		}
		return pkts
	}
	with := func(change func(*rawio.Packet), pkts []rawio.Packet) []rawio.Packet {
		change(&pkts[1])
		return pkts
	}
	many := func(n, size int) []rawio.Packet {
		list := make([]int, n)
		for i := range list {
			list[i] = size
		}
		return sizes(list...)
	}
	pieces := func(more int) []rawio.Packet {
		pkts := many(3, 1000)
		for i := range pkts {
			pkts[i].Vec = append(pkts[i].Vec, make([][]byte, maxIovecs/2-1)...)
		}
		return with(func(p *rawio.Packet) { p.Vec = append(p.Vec, make([][]byte, more)...) }, pkts)
	}
	for _, test := range []struct {
		name string
		pkts []rawio.Packet
		v6   bool
		want int
	}{
		{"one packet", sizes(100), false, 1},
		{"equal packets", sizes(100, 100, 100), false, 3},
		{"a shorter one ends the run", sizes(100, 100, 60, 60), false, 3},
		{"a longer one begins another", sizes(100, 101), false, 1},
		{"no empty segment", sizes(100, 0), false, 1},
		{"no run of empty packets", sizes(0, 0), false, 1},
		{"another destination", with(func(p *rawio.Packet) { p.Remote = other }, sizes(9, 9, 9)), false, 1},
		{"another source", with(func(p *rawio.Packet) { p.Local = other }, sizes(9, 9, 9)), false, 1},
		{"another DSCP", with(func(p *rawio.Packet) { p.DSCP = 1 }, sizes(9, 9, 9)), false, 1},
		{"another flow label", with(func(p *rawio.Packet) { p.FlowLabel = 1 }, sizes(9, 9, 9)), false, 1},
		{"another ECN field", with(func(p *rawio.Packet) { p.ECN = 1 }, sizes(9, 9, 9)), false, 1},
		{"as many segments as the kernel takes", many(70, 12), false, 64},
		{"as many octets as an IPv4 packet holds", many(50, 1472), false, 44},
		{"the very last octet of them", sizes(32754, 32753), false, 2},
		{"and not one more", sizes(32754, 32754), false, 1},
		{"as many octets as an IPv6 packet holds", sizes(32744, 32744), true, 1},
		{"as many pieces as a message takes", pieces(0), false, 2},
		{"and not one more", pieces(1), false, 1},
	} {
		got, octets := segmentableRun(test.pkts, test.v6)
		sum := 0
		for i := range test.pkts[:got] {
			sum += test.pkts[i].Len()
		}
		check.That(t, got == test.want && octets == sum,
			"%s: %d packets of %d octets, want %d of %d", test.name, got, octets, test.want, sum)
	}
}

// loop is a codec that sends to a UDP socket of this host.
type loop struct{ to netip.AddrPort }

func (loop) Decode(m *Message, p *rawio.Packet) bool {
	p.Data = m.Data
	return true
}
func (loop) DecodeError(*ICMPError, *rawio.Packet) bool { return false }
func (l loop) Encode(p *rawio.Packet, o *Outgoing) error {
	if p.Len() == 13 {
		return errors.New("unlucky")
	}
	o.SetDestination(l.to.Addr(), l.to.Port())
	return nil
}

// udpSocket opens a socket on loopback with offloads, as far as there are any.
func udpSocket(t *testing.T, to netip.AddrPort) (*Group, netip.AddrPort) {
	t.Helper()
	fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0))(t)
	must.OK(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	sa := must.Get(unix.Getsockname(fd))(t)
	s := must.Get(NewSocket(fd, false, loop{to}))(t)
	s.EnableOffload()
	g := must.Get(NewGroup(0, s))(t)
	t.Cleanup(func() { g.Close() })
	return g, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(sa.(*unix.SockaddrInet4).Port))
}

func packetSequence(n, size int) []rawio.Packet {
	pkts := make([]rawio.Packet, n)
	for i := range pkts {
		pkts[i] = rawio.Packet{Vec: [][]byte{{byte(i)}, bytes.Repeat([]byte{byte(i)}, size-1)}, Remote: anywhere}
	}
	return pkts
}

// A kernel that refuses segmentation, as it does without UDP checksums, gets the packets one by
// one; the socket does not try again and counts that.
func TestRefusedSegmentationIsGivenUp(t *testing.T) {
	rx, addr := udpSocket(t, netip.AddrPort{})
	tx, _ := udpSocket(t, addr)
	sk := tx.sockets[0]
	if !sk.Segmenting() {
		t.Skip("this kernel has no UDP_SEGMENT")
	}
	must.OK(t, sk.Control(func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1) }))
	for _, count := range []int{3, 50} {
		out := packetSequence(count, 200)
		out[0].ECN = 1 // it goes by itself, before the others are refused
		n, err := tx.WriteBatch(out)
		must.That(t, n == count && err == nil, "WriteBatch = %d, %v", n, err)
		in := make([]rawio.Packet, count)
		for got := 0; got < count; {
			n := must.Get(rx.ReadBatch(in[got:]))(t)
			for i := range in[got : got+n] {
				p := in[got+i]
				must.That(t, len(p.Data) == 200 && p.Data[0] == byte(got+i), "packet %d: %d octets from %d", got+i,
					len(p.Data), p.Data[0])
				in[got+i].Release()
			}
			got += n
		}
	}
	check.That(t, !sk.Segmenting() && tx.Stats.TxUnsegmented.Load() == 1,
		"segmenting %v, given up %d times", sk.Segmenting(), tx.Stats.TxUnsegmented.Load())
}

// What does not fit the caller's slice waits in one buffer, whose packets are released in any
// order.
func TestLeftoversOfACoalescedMessage(t *testing.T) {
	rx, addr := udpSocket(t, netip.AddrPort{})
	tx, _ := udpSocket(t, addr)
	if !tx.sockets[0].Segmenting() {
		t.Skip("this kernel has no UDP_SEGMENT")
	}
	n, err := tx.WriteBatch(packetSequence(30, 300))
	must.That(t, n == 30 && err == nil, "WriteBatch = %d, %v", n, err)
	check.Equal(t, "system calls for one run", tx.Stats.TxCalls.Load(), 1)
	in := make([]rawio.Packet, 30)
	for got := 0; got < len(in); {
		room := min(7, len(in)-got)
		n := must.Get(rx.ReadBatch(in[got : got+room]))(t)
		got += n
	}
	check.Equal(t, "system calls for a coalesced message", rx.Stats.RxCalls.Load(), 1)
	buf := in[0].Buf
	for i := range in {
		must.That(t, in[i].Buf == buf && len(in[i].Data) == 300 && in[i].Data[299] == byte(i) && cap(in[i].Data) == 300,
			"packet %d: %d octets (capacity %d) of %d", i, len(in[i].Data), cap(in[i].Data), in[i].Data[299])
	}
	check.Equal(t, "octets said to be filled", buf.Filled, 30*300)
	check.Equal(t, "references of packets", buf.Refs(), len(in))
	for i := len(in) - 1; i >= 0; i-- {
		in[i].Release()
	}
	check.Equal(t, "buffers out with every packet released", rx.receiver.large.Outstanding(), 0)
}

func TestPollBatchNeverBlocks(t *testing.T) {
	rx, addr := udpSocket(t, netip.AddrPort{})
	tx, _ := udpSocket(t, addr)
	in := make([]rawio.Packet, 20)
	must.Equal(t, "packets of none", rx.PollBatch(in), 0)
	must.Do(tx.WriteBatch(packetSequence(30, 300)))(t)
	for got := 0; got < 30; {
		n := rx.PollBatch(in)
		for i := range n {
			in[i].Release()
		}
		got += n
		must.That(t, n != 0, "%d of 30 packets", got)
	}
	check.Equal(t, "packets too many", rx.PollBatch(in), 0)
	rx.Close()
	check.Equal(t, "packets after Close", rx.PollBatch(in), 0)
	_, err := rx.ReadBatch(in)
	check.That(t, err != nil, "ReadBatch after Close succeeded")
	check.Equal(t, "buffers leaked", rx.receiver.large.Outstanding()+rx.receiver.small.Outstanding(), 0)
}

// A link that is closed with packets waiting gives their buffer back.
func TestCloseWithLeftovers(t *testing.T) {
	rx, addr := udpSocket(t, netip.AddrPort{})
	tx, _ := udpSocket(t, addr)
	must.Do(tx.WriteBatch(packetSequence(30, 300)))(t)
	in := make([]rawio.Packet, 1)
	must.Do(rx.ReadBatch(in))(t)
	in[0].Release()
	rx.Close()
	_, err := rx.ReadBatch(in)
	check.That(t, err != nil, "ReadBatch after Close succeeded")
	check.Equal(t, "buffers leaked", rx.receiver.large.Outstanding()+rx.receiver.small.Outstanding(), 0)
}

// A packet that the codec refuses ends the batch before it, whatever runs there are.
func TestRefusedPacketBetweenRuns(t *testing.T) {
	_, addr := udpSocket(t, netip.AddrPort{})
	tx, _ := udpSocket(t, addr)
	pkts := append(packetSequence(3, 300), packetSequence(1, 13)...)
	pkts[3].ECN = 1 // a run of its own
	pkts = append(pkts, packetSequence(2, 300)...)
	n, err := tx.WriteBatch(pkts)
	check.That(t, n == 3 && err != nil, "WriteBatch = %d, %v, want 3 and an error", n, err)
	check.That(t, tx.Stats.TxErrors.Load() == 1 && tx.Stats.TxPackets.Load() == 3,
		"%d errors, %d packets", tx.Stats.TxErrors.Load(), tx.Stats.TxPackets.Load())
	// the kernel refuses what comes before it
	n, err = tx.WriteBatch([]rawio.Packet{packetSequence(1, 65508)[0], pkts[3]})
	check.That(t, n == 0 && err == rawio.ErrTooLong && tx.Stats.TxTooLong.Load() == 1 && tx.Stats.TxErrors.Load() == 1,
		"WriteBatch = %d, %v; %d too long, %d errors", n, err, tx.Stats.TxTooLong.Load(), tx.Stats.TxErrors.Load())
	testns.New(t).Do(func() error { // the device is full when the first has left, and the other two are tried again
		must.OK(t, testns.Refuse(unix.ENOBUFS, unix.SYS_SENDMMSG, -1, -1, 2))
		n, err := tx.WriteBatch([]rawio.Packet{pkts[0], packetSequence(1, 65508)[0], pkts[0]})
		check.That(t, n == 1 && err == rawio.ErrFull && tx.Stats.TxFull.Load() == 1,
			"WriteBatch = %d, %v; %d times full", n, err, tx.Stats.TxFull.Load())
		return nil
	})
}
