package mmsg

import (
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// Batch is the largest number of packets in one system call; at 64 KB a packet, largeBatch is
// enough to hide the call.
const (
	Batch      = 32
	largeBatch = 8
)

// Receive buffers in octets. A small one holds a packet of an ordinary path. The large size is any
// datagram's, with 2 KB more so that consecutive buffers do not share the same cache sets.
const (
	smallBuf = 2048
	largeBuf = 65536 + 2048

	poolSmall = 4096 // buffers kept idle
	poolLarge = 64
)

// quietLimit is how many packets in a row must fit into a small buffer before the receiver gives up
// large ones.
const quietLimit = 4096

// receiver holds the arrays for recvmmsg, filled ahead with buffers. It starts with small buffers,
// each followed by a part of one large overflow area; when packets come that need it, it copies
// those together once and goes over to large buffers.
type receiver struct {
	hdrs  [Batch]mmsghdr
	iovs  [Batch][2]unix.Iovec
	names [Batch]sockaddr
	ctls  [Batch]controlBuf
	bufs  [Batch]*rawio.Buf // a nil is to be refilled before the next call
	over  []byte            // Batch times largeBuf-smallBuf octets, touched only where used

	msg Message // the one being decoded

	small, large *rawio.Pool
	big          bool // the buffers are large ones
	quiet        int  // packets since the last that needed a large buffer
}

func newReceiver() *receiver {
	return &receiver{
		over:  make([]byte, Batch*overflow),
		small: rawio.NewPool(smallBuf, poolSmall),
		large: rawio.NewPool(largeBuf, poolLarge),
	}
}

const overflow = largeBuf - smallBuf

// prepare makes n messages ready to receive, or less while buffers are large, and returns them.
func (r *receiver) prepare(n int) []mmsghdr {
	if r.big && r.quiet >= quietLimit {
		r.resize(false)
	}
	n = min(n, Batch)
	if r.big {
		n = min(n, largeBatch)
	}
	for i := range n {
		h := &r.hdrs[i].hdr
		h.Name = (*byte)(ptr(&r.names[i]))
		h.Namelen = unix.SizeofSockaddrInet6
		h.Control = (*byte)(ptr(&r.ctls[i]))
		h.SetControllen(controlLen)
		h.Flags = 0
		if r.bufs[i] == nil {
			r.refill(i)
		}
	}
	return r.hdrs[:n]
}

func (r *receiver) refill(i int) {
	iov := &r.iovs[i]
	h := &r.hdrs[i].hdr
	h.Iov = &iov[0]
	if r.big {
		r.bufs[i] = r.large.Get()
		h.SetIovlen(1)
	} else {
		r.bufs[i] = r.small.Get()
		o := r.over[i*overflow:][:overflow]
		iov[1].Base = &o[0]
		iov[1].SetLen(len(o))
		h.SetIovlen(2)
	}
	b := r.bufs[i].B
	iov[0].Base = &b[0]
	iov[0].SetLen(len(b))
}

// resize gives back every buffer, so that the next are of the other size.
func (r *receiver) resize(big bool) {
	for i, b := range r.bufs {
		if b != nil {
			b.Release()
			r.bufs[i] = nil
		}
	}
	r.big, r.quiet = big, 0
}

// take hands over the buffer of message i with its datagram.
func (r *receiver) take(i int) (*rawio.Buf, []byte) {
	n := int(r.hdrs[i].n)
	buf := r.bufs[i]
	if n <= smallBuf {
		r.quiet++
		return buf, buf.B[:n]
	}
	r.quiet = 0
	if r.big {
		return buf, buf.B[:n]
	}
	whole := r.large.Get()
	copy(whole.B, buf.B)
	copy(whole.B[smallBuf:n], r.over[i*overflow:])
	buf.Release()
	r.bufs[i] = nil
	return whole, whole.B[:n]
}

// decode turns n received messages into packets, counts, and returns how many packets there are.
func (r *receiver) decode(n int, c Codec, pkts []rawio.Packet, st *Stats) int {
	got, wasBig := 0, r.big
	grow := false
	for i := range n {
		h := &r.hdrs[i]
		if h.hdr.Flags&unix.MSG_TRUNC != 0 { // cannot be: no datagram is longer than a large buffer
			st.RxMalformed.Add(1)
			continue
		}
		grow = grow || int(h.n) > smallBuf
		buf, data := r.take(i)
		r.msg = Message{Data: data, From: r.names[i].get()}
		r.msg.Control, _ = parseControl(controlBytes(&r.ctls[i], &h.hdr))
		p := &pkts[got]
		*p = rawio.Packet{}
		if !c.Decode(&r.msg, p) {
			st.RxMalformed.Add(1)
			if buf == r.bufs[i] {
				continue // and receive into it again
			}
			buf.Release()
			continue
		}
		p.Buf = buf
		r.bufs[i] = nil
		got++
	}
	if grow && !wasBig {
		r.resize(true)
	}
	st.RxPackets.Add(uint64(got))
	return got
}

func controlBytes(c *controlBuf, h *unix.Msghdr) []byte {
	n := min(int(h.Controllen), controlLen)
	return bytesOf(c)[:n]
}

func (r *receiver) release() { r.resize(r.big) }
