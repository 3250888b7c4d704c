package mmsg

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/wait"
	"golang.org/x/sys/unix"
)

// Limits of one system call.
const (
	maxOctetsPerCall = 512 << 10 // octets, with at least one message: 8 of 64 KB
	maxIovecs        = 1024      // pieces of one message (UIO_MAXIOV)
)

// sender holds the arrays for one sendmmsg.
type sender struct {
	headers       [MaxMessagesPerCall]mmsghdr
	packetCounts  [MaxMessagesPerCall]int // packets in each message
	outgoing      [MaxMessagesPerCall]Outgoing
	iovs          []unix.Iovec // where it grows, headers keep what they point to
	messages      int          // messages in headers
	messagesSent  int          // of those sent
	writeTimeouts int          // times that the socket could not be written to for as long as WaitWritable waits

	sentByCall       int // what the last system call returned
	errno            syscall.Errno
	sendFunc         func(fd uintptr) // sendOnce, made once
	sendWhenWritable func(fd uintptr) // sendOnce, when it can write
}

func newSender() *sender {
	s := new(sender)
	s.sendFunc = s.sendOnce
	s.sendWhenWritable = func(fd uintptr) {
		if !wait.WaitWritable(fd) {
			s.writeTimeouts++
		}
		s.sendOnce(fd)
	}
	return s
}

// senderPool is a stack of idle senders: as many exist as goroutines ever wrote at a time.
type senderPool struct {
	mu          sync.Mutex
	idleSenders []*sender // guarded by mu
}

func (f *senderPool) get() *sender {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idleSenders); n > 0 {
		s := f.idleSenders[n-1]
		f.idleSenders = f.idleSenders[:n-1]
		return s
	}
	return newSender()
}

func (f *senderPool) put(s *sender) {
	clear(s.iovs) // keep no reference to the caller's memory
	f.mu.Lock()
	f.idleSenders = append(f.idleSenders, s)
	f.mu.Unlock()
}

// writeBatch sends some of pkts, at least one unless it returns an error. The error is about the
// packet after those sent.
func (s *Socket) writeBatch(pkts []rawio.Packet, st *Stats) (int, error) {
	w := s.idleSenders.get()
	defer s.idleSenders.put(w)
	segment := s.segmenting.Load()
	refused := w.encodeBatch(pkts, s.codec, segment, s.v6)
	n, err := w.sendMessages(s, st)
	switch {
	case err == errSegmentation:
		if n > 0 {
			return n, nil // the rest comes back, and with it this run
		}
		return s.writeUnsegmented(w, pkts[:w.packetCounts[0]], st)
	case err == nil && refused != nil:
		st.CountSent(refused)
		err = refused
	}
	return n, err
}

// writeUnsegmented sends a run of packets that the kernel would not segment one by one. Where that
// works, segmentation does not, and is given up: as a rule the device lacks checksum offload.
func (s *Socket) writeUnsegmented(w *sender, pkts []rawio.Packet, st *Stats) (int, error) {
	if err := w.encodeBatch(pkts, s.codec, false, s.v6); w.messages == 0 {
		st.CountSent(err)
		return 0, err
	}
	n, err := w.sendMessages(s, st)
	if n > 0 && s.segmenting.Swap(false) {
		st.TxUnsegmented.Add(1)
	}
	return n, err
}

// encodeBatch encodes packets from the front of pkts, as many as go into one call. It stops at one
// that the codec refuses; then err is about the packet behind those loaded. With segment,
// successive packets to one destination become one message, for the kernel to cut.
func (s *sender) encodeBatch(pkts []rawio.Packet, c Codec, segment, v6 bool) (err error) {
	s.messages, s.messagesSent, s.writeTimeouts, s.iovs = 0, 0, 0, s.iovs[:0]
	for octets := 0; s.messages < MaxMessagesPerCall && len(pkts) > 0; s.messages++ {
		p := &pkts[0]
		run, size := 1, p.Len()
		if segment {
			run, size = segmentableRun(pkts, v6)
		}
		if octets += size; octets > maxOctetsPerCall && s.messages > 0 {
			return nil
		}
		o := &s.outgoing[s.messages]
		o.headLen, o.destinationLen, o.controlLen = 0, 0, 0
		if err = c.Encode(p, o); err != nil {
			return err
		}
		if run > 1 {
			o.setSegmentSize(p.Len())
		}
		first := len(s.iovs)
		s.appendPiece(o.headBuf[:o.headLen])
		for i := range pkts[:run] {
			for _, v := range pkts[i].Vec {
				s.appendPiece(v)
			}
		}
		h := &s.headers[s.messages].hdr
		*h = unix.Msghdr{Name: (*byte)(pointerTo(&o.destination)), Namelen: o.destinationLen}
		if len(s.iovs) > first {
			h.Iov = &s.iovs[first]
		}
		h.SetIovlen(len(s.iovs) - first)
		if o.controlLen > 0 {
			h.Control = (*byte)(pointerTo(&o.control))
			h.SetControllen(o.controlLen)
		}
		s.packetCounts[s.messages] = run
		pkts = pkts[run:]
	}
	return nil
}

func (s *sender) appendPiece(b []byte) {
	if len(b) == 0 {
		return
	}
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	s.iovs = append(s.iovs, v)
}

func (s *sender) sendOnce(fd uintptr) {
	s.sentByCall, s.errno = sendmmsg(fd, s.headers[s.messagesSent:s.messages])
}

// maxRetries is how often a packet is tried again after an error that may be about an earlier one.
// The kernel reports a pending ICMP error by failing the next call, and so clears it.
const maxRetries = 2

// maxWriteTimeouts bounds how long a writer waits for a full socket: a second.
const maxWriteTimeouts = 100

// errSegmentation reports that the kernel refused a message of several packets.
var errSegmentation = errors.New("segmentation refused")

// sendMessages sends what encodeBatch prepared and returns how many packets the kernel took. If the
// device stands still, a writer gets ErrFull after a second, and later writers at once.
func (s *sender) sendMessages(sk *Socket, st *Stats) (packets int, err error) {
	failed := 0
	for s.messagesSent < s.messages {
		err := sk.rc.Control(s.sendFunc)
		for err == nil && s.errno == syscall.EAGAIN && s.writeTimeouts < maxWriteTimeouts && !sk.isFull.Load() {
			err = sk.rc.Control(s.sendWhenWritable)
		}
		if err != nil {
			return packets, net.ErrClosed
		}
		st.TxCalls.Add(1)
		switch s.errno {
		case 0:
			for _, n := range s.packetCounts[s.messagesSent : s.messagesSent+s.sentByCall] {
				packets += n
			}
			s.messagesSent += s.sentByCall
			failed = 0
		case syscall.EINTR:
		case syscall.EAGAIN:
			sk.isFull.Store(true)
			fallthrough
		case syscall.ENOBUFS:
			st.TxFull.Add(1)
			return packets, rawio.ErrFull
		default:
			if isFromICMP(s.errno) {
				sk.icmpPending.Store(true)
			}
			if failed++; failed <= maxRetries {
				continue
			}
			if s.packetCounts[s.messagesSent] > 1 && isSegmentationErrno(s.errno) {
				return packets, errSegmentation
			}
			if s.errno == syscall.EMSGSIZE {
				st.TxTooLong.Add(1)
				return packets, rawio.ErrTooLong
			}
			st.TxErrors.Add(1)
			return packets, os.NewSyscallError("sendmmsg", s.errno)
		}
	}
	if sk.isFull.Load() {
		sk.isFull.Store(false)
	}
	return packets, nil
}
