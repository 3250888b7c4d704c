package tun

import (
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/wait"
	"golang.org/x/sys/unix"
)

// packetWriter holds the header and the vector of one packet on its way out.
type packetWriter struct {
	queue            *queue
	headerBuf        [iphdr.IPv6HeaderLen]byte
	iovs             []unix.Iovec
	errno            syscall.Errno
	sendFunc         func(fd uintptr) // writev, made once
	sendWhenWritable func(fd uintptr) // writev, when it does not block
}

func (l *Link) getWriter() *packetWriter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idleWriters); n > 0 {
		w := l.idleWriters[n-1]
		l.idleWriters = l.idleWriters[:n-1]
		return w
	}
	w := new(packetWriter)
	w.sendFunc = w.writev
	w.sendWhenWritable = func(fd uintptr) { wait.WaitWritable(fd); w.writev(fd) }
	return w
}

func (l *Link) putWriter(w *packetWriter) {
	clear(w.iovs) // keep no reference to the caller's memory
	l.mu.Lock()
	l.idleWriters = append(l.idleWriters, w)
	l.mu.Unlock()
}

func (w *packetWriter) writev(fd uintptr) {
	for {
		_, _, w.errno = syscall.RawSyscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&w.iovs[0])),
			uintptr(len(w.iovs)))
		if w.errno != syscall.EINTR {
			return
		}
	}
}

// WriteBatch implements rawio.Link, with one system call a packet. Besides rawio.ErrTooLong and
// rawio.ErrFull, the error about a packet may be the system's. An example is syscall.EIO while the
// device is down.
func (l *Link) WriteBatch(pkts []rawio.Packet) (int, error) {
	w := l.getWriter()
	defer l.putWriter(w)
	for i := range pkts {
		if err := l.writePacket(w, &pkts[i]); err != nil {
			return i, err
		}
		l.stats.txPackets.Add(1)
	}
	return len(pkts), nil
}

func (l *Link) writePacket(w *packetWriter, p *rawio.Packet) error {
	src, dst, n := p.Local.Addr().Unmap(), p.Remote.Addr().Unmap(), p.Len()
	if !src.IsValid() {
		src, _ = l.sourceFor(dst)
	}
	switch {
	case !dst.IsValid() || !l.ownsAddr(src) || src.Is4() != dst.Is4():
		l.stats.txErrors.Add(1)
		return &net.AddrError{Err: "the stack has no such address of its own (" + src.String() + ") to send from",
			Addr: dst.String()}
	case p.Fragment > 0:
		w.queue = l.queueFor(p)
		return l.writeFragments(w, p, src, dst)
	case n > l.MTU(src, dst):
		l.stats.txTooLong.Add(1)
		return rawio.ErrTooLong
	}
	head := w.headerBuf[:iphdr.IPv4HeaderLen]
	if dst.Is6() {
		head = w.headerBuf[:iphdr.IPv6HeaderLen]
		iphdr.PutIPv6Header(head, n, iphdr.ProtoSCTP, p.ECN, src, dst)
	} else {
		iphdr.PutIPv4Header(head, n, iphdr.ProtoSCTP, p.ECN, src, dst)
	}
	iphdr.ApplyMarks(head, p, l.cfg.Mark)
	w.iovs = w.iovs[:0]
	w.appendPiece(head)
	for _, v := range p.Vec {
		w.appendPiece(v)
	}
	w.queue = l.queueFor(p)
	return l.sendPieces(w)
}

// queueFor returns the queue through which the packets of a flow leave. The kernel notes that, and
// delivers the packets of the other direction through the same queue.
func (l *Link) queueFor(p *rawio.Packet) *queue {
	if len(l.queues) == 1 {
		return l.queues[0]
	}
	a := p.Remote.Addr().As16()
	n := binary.BigEndian.Uint64(a[8:]) // what differs among hosts
	if len(p.Vec[0]) >= 4 {
		n += uint64(binary.BigEndian.Uint16(p.Vec[0])) + uint64(binary.BigEndian.Uint16(p.Vec[0][2:])) // SCTP ports
	}
	return l.queues[n%uint64(len(l.queues))]
}

// writeFragments sends a packet in IP fragments that fit the device.
func (l *Link) writeFragments(w *packetWriter, p *rawio.Packet, src, dst netip.Addr) error {
	return iphdr.Fragment(slices.Concat(p.Vec...), min(p.Fragment, l.cfg.MTU), iphdr.ProtoSCTP, p.ECN, src, dst,
		rand.Uint32(), func(b []byte) error {
			iphdr.ApplyMarks(b, p, l.cfg.Mark)
			w.iovs = w.iovs[:0]
			w.appendPiece(b)
			return l.sendPieces(w)
		})
}

// sendPieces writes the pieces of one IP packet.
func (l *Link) sendPieces(w *packetWriter) error {
	err := w.queue.rc.Control(w.sendFunc)
	for err == nil && w.errno == syscall.EAGAIN {
		err = w.queue.rc.Control(w.sendWhenWritable)
	}
	switch {
	case err != nil:
		return net.ErrClosed
	case w.errno == 0:
		return nil
	case w.errno == syscall.ENOBUFS:
		l.stats.txFull.Add(1)
		return rawio.ErrFull
	}
	l.stats.txErrors.Add(1)
	return os.NewSyscallError("writev", w.errno)
}

func (w *packetWriter) appendPiece(b []byte) {
	if len(b) == 0 {
		return
	}
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	w.iovs = append(w.iovs, v)
}
