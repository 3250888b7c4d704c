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
	maxBytes = 512 << 10 // octets, with at least one message: 8 of 64 KB
	maxIovs  = 1024      // pieces of one message (UIO_MAXIOV)
)

// sender holds the arrays for one sendmmsg.
type sender struct {
	hdrs [Batch]mmsghdr
	runs [Batch]int // packets in each message
	out  [Batch]Outgoing
	iovs []unix.Iovec // where it grows, headers keep what they point to
	n    int          // messages in hdrs
	done int          // of those sent
	late int          // times that the socket could not be written to for as long as wait waits

	got   int // what the last system call returned
	errno syscall.Errno
	send  func(fd uintptr) // sendOnce, made once
	wait  func(fd uintptr) // sendOnce, when it can write
}

func newSender() *sender {
	s := new(sender)
	s.send = s.sendOnce
	s.wait = func(fd uintptr) {
		if !wait.Writable(fd) {
			s.late++
		}
		s.sendOnce(fd)
	}
	return s
}

// senders is a stack of idle senders: as many exist as goroutines ever wrote at a time.
type senders struct {
	mu   sync.Mutex
	idle []*sender // guarded by mu
}

func (f *senders) get() *sender {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.idle); n > 0 {
		s := f.idle[n-1]
		f.idle = f.idle[:n-1]
		return s
	}
	return newSender()
}

func (f *senders) put(s *sender) {
	clear(s.iovs) // keep no reference to the caller's memory
	f.mu.Lock()
	f.idle = append(f.idle, s)
	f.mu.Unlock()
}

// write sends some of pkts, at least one unless it returns an error, which is about the packet after
// those sent.
func (s *Socket) write(pkts []rawio.Packet, st *Stats) (int, error) {
	w := s.free.get()
	defer s.free.put(w)
	segment := s.segment.Load()
	refused := w.load(pkts, s.codec, segment, s.v6)
	n, err := w.flush(s, st)
	switch {
	case err == errSegment:
		if n > 0 {
			return n, nil // the rest comes back, and with it this run
		}
		return s.unsegmented(w, pkts[:w.runs[0]], st)
	case err == nil && refused != nil:
		st.Sent(refused)
		err = refused
	}
	return n, err
}

// unsegmented sends a run of packets that the kernel would not segment one by one. Where that works,
// segmentation does not, and is given up: as a rule the device lacks checksum offload.
func (s *Socket) unsegmented(w *sender, pkts []rawio.Packet, st *Stats) (int, error) {
	if err := w.load(pkts, s.codec, false, s.v6); w.n == 0 {
		st.Sent(err)
		return 0, err
	}
	n, err := w.flush(s, st)
	if n > 0 && s.segment.Swap(false) {
		st.TxUnsegmented.Add(1)
	}
	return n, err
}

// load encodes packets from the front of pkts, as many as go into one call, and stops at one that
// the codec refuses: then err is about the packet behind those loaded. With segment, packets that
// follow each other to one destination become one message, for the kernel to cut.
func (s *sender) load(pkts []rawio.Packet, c Codec, segment, v6 bool) (err error) {
	s.n, s.done, s.late, s.iovs = 0, 0, 0, s.iovs[:0]
	for octets := 0; s.n < Batch && len(pkts) > 0; s.n++ {
		p := &pkts[0]
		run, size := 1, p.Len()
		if segment {
			run, size = runOf(pkts, v6)
		}
		if octets += size; octets > maxBytes && s.n > 0 {
			return nil
		}
		o := &s.out[s.n]
		o.headLen, o.nameLen, o.ctlLen = 0, 0, 0
		if err = c.Encode(p, o); err != nil {
			return err
		}
		if run > 1 {
			o.segment(p.Len())
		}
		first := len(s.iovs)
		s.gather(o.head[:o.headLen])
		for i := range pkts[:run] {
			for _, v := range pkts[i].Vec {
				s.gather(v)
			}
		}
		h := &s.hdrs[s.n].hdr
		*h = unix.Msghdr{Name: (*byte)(ptr(&o.name)), Namelen: o.nameLen}
		if len(s.iovs) > first {
			h.Iov = &s.iovs[first]
		}
		h.SetIovlen(len(s.iovs) - first)
		if o.ctlLen > 0 {
			h.Control = (*byte)(ptr(&o.ctl))
			h.SetControllen(o.ctlLen)
		}
		s.runs[s.n] = run
		pkts = pkts[run:]
	}
	return nil
}

func (s *sender) gather(b []byte) {
	if len(b) == 0 {
		return
	}
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	s.iovs = append(s.iovs, v)
}

func (s *sender) sendOnce(fd uintptr) { s.got, s.errno = sendmmsg(fd, s.hdrs[s.done:s.n]) }

// retries is how often a packet is tried again after an error that may be about an earlier one: the
// kernel reports a pending ICMP error by failing the next call, and so clears it.
const retries = 2

// mostLate bounds how long a writer waits for a full socket: a second.
const mostLate = 100

// errSegment reports that the kernel refused a message of several packets.
var errSegment = errors.New("segmentation refused")

// flush sends what load prepared and returns how many packets the kernel took. Of a device that
// stands still a writer hears after a second that the socket is full, and those behind it at once.
func (s *sender) flush(sk *Socket, st *Stats) (packets int, err error) {
	failed := 0
	for s.done < s.n {
		err := sk.rc.Control(s.send)
		for err == nil && s.errno == syscall.EAGAIN && s.late < mostLate && !sk.full.Load() {
			err = sk.rc.Control(s.wait)
		}
		if err != nil {
			return packets, net.ErrClosed
		}
		st.TxCalls.Add(1)
		switch s.errno {
		case 0:
			for _, n := range s.runs[s.done : s.done+s.got] {
				packets += n
			}
			s.done += s.got
			failed = 0
		case syscall.EINTR:
		case syscall.EAGAIN:
			sk.full.Store(true)
			fallthrough
		case syscall.ENOBUFS:
			st.TxFull.Add(1)
			return packets, rawio.ErrFull
		default:
			if fromICMP(s.errno) {
				sk.told.Store(true)
			}
			if failed++; failed <= retries {
				continue
			}
			if s.runs[s.done] > 1 && segmentErrors(s.errno) {
				return packets, errSegment
			}
			if s.errno == syscall.EMSGSIZE {
				st.TxTooLong.Add(1)
				return packets, rawio.ErrTooLong
			}
			st.TxErrors.Add(1)
			return packets, os.NewSyscallError("sendmmsg", s.errno)
		}
	}
	if sk.full.Load() {
		sk.full.Store(false)
	}
	return packets, nil
}
