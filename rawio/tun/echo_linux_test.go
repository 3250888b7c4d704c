package tun

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/wait"
)

// An echo request is answered to one host, never to a group or to nobody (RFC 1122 section 3.2.2.6,
// RFC 4443 section 2.4 e.3).
func TestEchoIsAnsweredToHostsOnly(t *testing.T) {
	own4, own6 := netip.MustParseAddr("10.9.1.2"), netip.MustParseAddr("fd09:1::2")
	l := &Link{cfg: Config{Addrs: []netip.Addr{own4, own6}}}
	var fds [2]int
	must.OK(t, unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK))
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	for _, row := range []struct {
		src  string
		want bool
	}{
		{"10.9.1.7", true}, {"169.254.1.1", true},
		{"224.0.0.1", false}, {"239.1.2.3", false}, {"255.255.255.255", false}, {"0.0.0.0", false}, {"127.0.0.1", false},
		{"fd09:1::7", true}, {"2001:db8::7", true}, {"fe80::7", true},
		{"ff02::1", false}, {"ff0e::7", false}, {"::", false}, {"::1", false},
	} {
		icmp := []byte{8, 0, 0, 0, 1, 2, 3, 4, 'x', 'y'}
		src := netip.MustParseAddr(row.src)
		var b []byte
		var sum uint64
		if src.Is4() {
			b = make([]byte, iphdr.IPv4HeaderLen+len(icmp))
			iphdr.PutIPv4Header(b, len(icmp), iphdr.ProtoICMP, 0, src, own4)
		} else {
			icmp[0] = 128
			b = make([]byte, iphdr.IPv6HeaderLen+len(icmp))
			iphdr.PutIPv6Header(b, len(icmp), iphdr.ProtoICMPv6, 0, src, own6)
			sum = iphdr.AddChecksum(uint64(len(icmp))+iphdr.ProtoICMPv6, b[8:iphdr.IPv6HeaderLen])
		}
		putChecksum(icmp, 2, sum)
		copy(b[len(b)-len(icmp):], icmp)
		before := l.stats.rxEcho.Load()
		var p rawio.Packet
		check.That(t, !l.receivePacket(fds[1], b, &p), "from %s: handed up", row.src)
		got := l.stats.rxEcho.Load() > before
		check.That(t, got == row.want, "from %s: answered %v", row.src, got)
		var answer [100]byte
		n, _ := unix.Read(fds[0], answer[:])
		check.That(t, (n > 0) == row.want, "from %s: %d octets sent", row.src, n)
	}
}

// What the device would block for is written when it has room; what else it says of a packet the
// caller hears, and it is counted.
func TestWhatTheDeviceSaysOfAPacket(t *testing.T) {
	null := must.Get(os.OpenFile(os.DevNull, os.O_WRONLY, 0))(t)
	rc := must.Get(null.SyscallConn())(t)
	for _, row := range []struct {
		says []syscall.Errno
		want error
		Stats
	}{
		{[]syscall.Errno{0}, nil, Stats{TxPackets: 1}},
		{[]syscall.Errno{syscall.EAGAIN, syscall.EAGAIN, 0}, nil, Stats{TxPackets: 1}},
		{[]syscall.Errno{syscall.EAGAIN, syscall.ENOBUFS}, rawio.ErrFull, Stats{TxFull: 1}},
		{[]syscall.Errno{syscall.EIO}, syscall.EIO, Stats{TxErrors: 1}},
		{nil, net.ErrClosed, Stats{}}, // it is closed
	} {
		l, w := &Link{cfg: Config{Addrs: []netip.Addr{own4, own6}, MTU: 100}, queues: []*queue{{rc: rc}}},
			new(packetWriter)
		asked, waits := 0, 0
		w.sendFunc = func(uintptr) { w.errno = row.says[asked]; asked++ }
		w.sendWhenWritable = func(fd uintptr) { waits++; w.sendFunc(fd) }
		l.putWriter(w)
		if row.says == nil {
			null.Close()
		}
		_, err := l.WriteBatch([]rawio.Packet{{Vec: [][]byte{{1}}, Remote: netip.AddrPortFrom(peer4, 0)}})
		check.That(t, errors.Is(err, row.want) && asked == len(row.says) && waits == max(0, asked-1) &&
			l.Stats() == row.Stats,
			"%v: %v after %d, %d waits, %+v", row.says, err, asked, waits, l.Stats())
		_, err = l.WriteBatch(make([]rawio.Packet, 1))
		check.That(t, errors.As(err, new(*net.AddrError)) && l.getWriter() == w && l.getWriter() != w,
			"a packet to nobody: %v", err)
	}
}

// A reader that waits hears of a device that has failed, once it is closed of that.
func TestWaitTellsOfTheDevice(t *testing.T) {
	q := &queue{link: new(Link), waiter: must.Get(wait.NewReader())(t)}
	q.waiter.Interrupt()
	check.Equal(t, "interrupted", q.Wait(rawio.Park), rawio.ErrInterrupted)
	q.readErr = syscall.EIO
	check.Error(t, "failed", q.Wait(rawio.Park), syscall.EIO)
	q.link.closed.Store(true)
	q.waiter.Close()
	check.Equal(t, "closed", q.Wait(rawio.Park), net.ErrClosed)
}

// Flows are spread over the queues by the remote host and both ports, and a flow has one queue.
func TestFlowsAreSpreadByHostAndPorts(t *testing.T) {
	l := &Link{queues: []*queue{{}, {}, {}}}
	at := func(remote string, ports ...byte) *queue {
		return l.queueFor(&rawio.Packet{Remote: netip.MustParseAddrPort(remote), Vec: [][]byte{ports}})
	}
	for _, host := range []string{"10.0.0.%d:0", "[2001:db8::%d]:0"} {
		one := at(fmt.Sprintf(host, 1), 1, 2, 3, 4)
		check.Equal(t, "the other direction's queue", at(fmt.Sprintf(host, 1), 3, 4, 1, 2), one)
		for name, other := range map[string]*queue{"host": at(fmt.Sprintf(host, 2), 1, 2, 3, 4),
			"source port":      at(fmt.Sprintf(host, 1), 1, 3, 3, 4),
			"destination port": at(fmt.Sprintf(host, 1), 1, 2, 3, 5)} {
			check.That(t, other != one, "%s: another %s has the same queue", host, name)
		}
	}
	check.Equal(t, "the queue of what has no ports", at("10.0.0.1:0", 1, 2, 3), at("10.0.0.1:0"))
}
