package tun

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/wait"
	"golang.org/x/sys/unix"
)

// queue is one descriptor of the device, and the state of its ReadBatch, which one goroutine calls
// at a time.
type queue struct {
	link   *Link
	file   *os.File
	rc     syscall.RawConn
	waiter *wait.Reader
	pace   *pollpolicy.Policy // of ReadBatch
	pool   *rawio.Pool

	pkts     []rawio.Packet
	filled   int              // packets filled so far
	nextBuf  *rawio.Buf       // to read into next
	readErr  error            // of the last read, unless it would block
	readFunc func(fd uintptr) // readPackets, made once
}

// ReadBatch implements rawio.Link.
func (l *Link) ReadBatch(pkts []rawio.Packet) (int, error) { return l.queues[0].ReadBatch(pkts) }

// PollBatch implements rawio.Poller.
func (l *Link) PollBatch(pkts []rawio.Packet) int { return l.queues[0].PollBatch(pkts) }

// Wait implements rawio.Waiter.
func (l *Link) Wait(p rawio.Pause) error { return l.queues[0].Wait(p) }

// Polling implements rawio.Waiter.
func (l *Link) Polling() time.Duration { return l.cfg.Poll }

// ReadBatch implements rawio.Shard.
func (q *queue) ReadBatch(pkts []rawio.Packet) (int, error) { return q.pace.ReadPaced(q, pkts) }

// PollBatch implements rawio.Poller.
func (q *queue) PollBatch(pkts []rawio.Packet) int {
	q.pkts, q.filled, q.readErr = pkts, 0, nil
	_ = q.rc.Control(q.readFunc) // fails when it is closed
	q.pkts = nil
	return q.filled
}

// Wait implements rawio.Waiter.
func (q *queue) Wait(p rawio.Pause) error {
	if q.readErr != nil && !q.link.closed.Load() {
		return os.NewSyscallError("read", q.readErr)
	}
	err := q.waiter.Wait(p)
	if err == net.ErrClosed && q.nextBuf != nil {
		q.nextBuf.Release()
		q.nextBuf = nil
	}
	return err
}

// Polling implements rawio.Waiter.
func (q *queue) Polling() time.Duration { return q.link.cfg.Poll }

// readDevice is read(2) for b that is not empty. Like writev it never waits, so the runtime is not
// informed of it. Otherwise the first one after a pause would wake the runtime's monitor, which
// costs as much as the call.
func readDevice(fd uintptr, b []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
	return int(n), errno
}

// readPackets reads from the device until it has no more packets or there is no more space.
func (q *queue) readPackets(fd uintptr) {
	for q.filled < len(q.pkts) {
		if q.nextBuf == nil {
			q.nextBuf = q.pool.Get()
		}
		n, errno := readDevice(fd, q.nextBuf.B)
		switch errno {
		case 0:
			if q.link.receivePacket(int(fd), q.nextBuf.B[:n], &q.pkts[q.filled]) {
				if q.pkts[q.filled].Buf == nil { // else it has been put together in one of its own
					q.pkts[q.filled].Buf, q.nextBuf = q.nextBuf, nil
				}
				q.filled++
				q.link.stats.rxPackets.Add(1)
			}
		case syscall.EINTR:
		case syscall.EAGAIN:
			return
		default:
			q.readErr = errno
			return
		}
	}
}

// close ends ReadBatch and closes the descriptor.
func (q *queue) close() error {
	q.waiter.Close()
	return q.file.Close()
}

// receivePacket makes a packet of the IP packet b, or handles it here and returns false.
func (l *Link) receivePacket(fd int, b []byte, p *rawio.Packet) bool {
	ip, err := iphdr.Parse(b)
	switch {
	case err != nil && err != iphdr.ErrFragment:
		l.stats.rxMalformed.Add(1)
		return false
	case !l.ownsAddr(ip.Dst):
		l.stats.rxNotOurs.Add(1)
		return false
	}
	*p = rawio.Packet{Local: netip.AddrPortFrom(ip.Dst, 0), Remote: netip.AddrPortFrom(ip.Src, 0)}
	if err == iphdr.ErrFragment {
		var ok bool
		if ip, ok = l.addFragment(ip); !ok {
			return false
		}
	}
	switch {
	case ip.Proto == iphdr.ProtoSCTP:
		if len(ip.Payload) < commonHeaderLen {
			l.stats.rxMalformed.Add(1)
			return false
		}
		p.Data, p.ECN = ip.Payload, ip.ECN
		if err == iphdr.ErrFragment {
			p.Buf = rawio.NewBuf(ip.Payload)
		}
		return true
	case ip.Proto == iphdr.ProtoICMP && ip.Dst.Is4(), ip.Proto == iphdr.ProtoICMPv6 && ip.Dst.Is6():
		return l.handleICMP(fd, b, ip, p)
	}
	l.stats.rxOther.Add(1)
	return false
}

// commonHeaderLen is the length of the SCTP common header in octets (RFC 9260 section 3.1).
const commonHeaderLen = 12

// handleICMP answers an echo request, or makes a packet of a report about one of our packets.
func (l *Link) handleICMP(fd int, b []byte, ip iphdr.Packet, p *rawio.Packet) bool {
	m, ok := iphdr.ParseICMP(ip)
	if !ok {
		l.stats.rxMalformed.Add(1)
		return false
	}
	if (ip.Src.IsGlobalUnicast() || ip.Src.IsLinkLocalUnicast()) && iphdr.EchoReply(ip) {
		l.sendEchoReply(fd, b, ip)
		return false
	}
	kind, mtu, ok := iphdr.ClassifyICMP(ip.Dst.Is6(), false, m.Type, m.Code, m.Info)
	if ok {
		var src, dst netip.Addr
		src, dst, p.Data, ok = iphdr.ParseQuote(m.Body)
		p.Local, p.Remote = netip.AddrPortFrom(src, 0), netip.AddrPortFrom(dst, 0)
		ok = ok && l.ownsAddr(src)
	}
	if !ok {
		l.stats.rxIgnored.Add(1)
		return false
	}
	p.Kind, p.MTU = kind, mtu
	l.stats.rxICMP.Add(1)
	return true
}

// sendEchoReply sends ip's payload back behind a new header, which it writes over the end of the
// old one in b. A reply that the device does not take at once is lost, as any packet may be.
func (l *Link) sendEchoReply(fd int, b []byte, ip iphdr.Packet) {
	at := ip.HeaderLen
	var head []byte
	if ip.Dst.Is6() {
		head = b[at-iphdr.IPv6HeaderLen : at]
		iphdr.PutIPv6Header(head, len(ip.Payload), iphdr.ProtoICMPv6, 0, ip.Dst, ip.Src)
	} else {
		head = b[at-iphdr.IPv4HeaderLen : at]
		iphdr.PutIPv4Header(head, len(ip.Payload), iphdr.ProtoICMP, 0, ip.Dst, ip.Src)
	}
	if _, err := unix.Write(fd, b[at-len(head):at+len(ip.Payload)]); err == nil {
		l.stats.rxEcho.Add(1)
	}
}
