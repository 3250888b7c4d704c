package mmsg

import (
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// maxBytes is how many octets one system call sends, with at least one packet: 8 of 64 KB.
const maxBytes = 512 << 10

// maxHead is the longest header a codec puts in front of a packet: IPv6's.
const maxHead = 40

// Outgoing is what a codec adds to a packet on its way out.
type Outgoing struct {
	head    [maxHead]byte
	headLen int
	name    sockaddr
	nameLen uint32
	ctl     controlBuf
	ctlLen  int
}

// Head returns n octets to fill that go in front of the packet, at most 40.
func (o *Outgoing) Head(n int) []byte {
	o.headLen = n
	return o.head[:n]
}

// To sets the destination.
func (o *Outgoing) To(a netip.Addr, port uint16) { o.nameLen = o.name.put(a, port) }

// From adds packet info with the source address.
func (o *Outgoing) From(a netip.Addr) {
	if a.Is4() {
		b := o.ctl.append(&o.ctlLen, unix.IPPROTO_IP, unix.IP_PKTINFO, unix.SizeofInet4Pktinfo)
		s := a.As4()
		copy(b[4:], s[:]) // ipi_spec_dst
		return
	}
	b := o.ctl.append(&o.ctlLen, unix.IPPROTO_IPV6, unix.IPV6_PKTINFO, unix.SizeofInet6Pktinfo)
	s := a.As16()
	copy(b, s[:])
}

// ECN adds the ECN field as the traffic class.
func (o *Outgoing) ECN(ecn uint8, v6 bool) {
	level, typ := unix.IPPROTO_IP, unix.IP_TOS
	if v6 {
		level, typ = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	b := o.ctl.append(&o.ctlLen, level, typ, 4)
	*(*int32)(ptr(&b[0])) = int32(ecn & 3)
}

// sender holds the arrays for one sendmmsg.
type sender struct {
	hdrs [Batch]mmsghdr
	out  [Batch]Outgoing
	iovs []unix.Iovec
	n    int // messages in hdrs
	done int // of those sent

	got   int // what the last system call returned
	errno syscall.Errno
	send  func(fd uintptr)      // sendOnce, made once
	wait  func(fd uintptr) bool // sendOnce until it can write
}

func newSender() *sender {
	s := new(sender)
	s.send = s.sendOnce
	s.wait = func(fd uintptr) bool { s.sendOnce(fd); return s.errno != syscall.EAGAIN }
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

// load encodes packets from the front of pkts, as many as go into one call, and stops at one that
// the codec refuses: then err is about packet s.n.
func (s *sender) load(pkts []rawio.Packet, c Codec) (err error) {
	s.n, s.done = 0, 0
	need, octets := 0, 0
	for i := range pkts[:min(len(pkts), Batch)] {
		need += 1 + len(pkts[i].Vec)
	}
	if cap(s.iovs) < need {
		s.iovs = make([]unix.Iovec, 0, need+need/2)
	}
	s.iovs = s.iovs[:0]
	for s.n < len(pkts) && s.n < Batch {
		p := &pkts[s.n]
		if octets += p.Len(); octets > maxBytes && s.n > 0 {
			return nil
		}
		o := &s.out[s.n]
		o.headLen, o.nameLen, o.ctlLen = 0, 0, 0
		if err = c.Encode(p, o); err != nil {
			return err
		}
		first := len(s.iovs)
		s.gather(o.head[:o.headLen])
		for _, v := range p.Vec {
			s.gather(v)
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
		s.n++
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

// flush sends what load prepared and returns how many packets the kernel took.
func (s *sender) flush(sk *Socket, st *Stats) (int, error) {
	failed := 0
	for s.done < s.n {
		err := sk.rc.Control(s.send)
		if err == nil && s.errno == syscall.EAGAIN {
			err = sk.rc.Write(s.wait)
		}
		if err != nil {
			return s.done, net.ErrClosed
		}
		switch s.errno {
		case 0:
			s.done += s.got
			failed = 0
		case syscall.EINTR:
		case syscall.ENOBUFS:
			st.TxFull.Add(1)
			return s.done, rawio.ErrFull
		default:
			if failed++; failed <= retries {
				continue
			}
			if s.errno == syscall.EMSGSIZE {
				st.TxTooLong.Add(1)
				return s.done, rawio.ErrTooLong
			}
			st.TxErrors.Add(1)
			return s.done, os.NewSyscallError("sendmmsg", s.errno)
		}
	}
	return s.done, nil
}
