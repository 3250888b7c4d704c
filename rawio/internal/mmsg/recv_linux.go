package mmsg

import (
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// Batch is the largest number of messages in one system call; at 64 KB a message, largeBatch is
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
	poolLarge = 256  // as long as large ones are in use: what a reader that falls behind has held
)

// quietLimit is how many messages in a row must fit into a small buffer before the receiver gives up
// large ones.
const quietLimit = 4096

// receiver holds the arrays for recvmmsg, filled ahead with buffers. It starts with small buffers,
// each followed by a part of one large overflow area; when messages come that need it, it copies
// those together once and goes over to large buffers.
//
// A message may hold several packets (UDP_GRO), and all of them more than the caller has room for.
// Then the rest waits here for the next call, and nothing is received meanwhile.
type receiver struct {
	hdrs  [Batch]mmsghdr
	iovs  [Batch][2]unix.Iovec
	names [Batch]sockaddr
	ctls  [Batch]controlBuf
	bufs  [Batch]*rawio.Buf // a nil has been taken: the message is to be made ready again
	over  []byte            // Batch times overflow octets, touched only where used

	codec Codec // of the socket that the messages came from
	got   int   // messages received
	next  int   // the first of them that was not looked at
	grow  bool  // one was too long for a small buffer

	// The message being taken apart.
	msg  Message
	rest []byte     // packets not handed out
	size int        // octets of each but the last
	buf  *rawio.Buf // owns rest, by one reference; nil when there is none

	small, large *rawio.Pool
	big          bool // the buffers are large ones
	quiet        int  // messages since the last that needed a large buffer
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
	for i, b := range r.bufs[:n] {
		if b == nil {
			r.refill(i)
		}
	}
	return r.hdrs[:n]
}

// refill makes message i ready, whose buffer has been taken: the kernel writes to no other.
func (r *receiver) refill(i int) {
	iov := &r.iovs[i]
	h := &r.hdrs[i].hdr
	*h = unix.Msghdr{Name: (*byte)(ptr(&r.names[i])), Namelen: unix.SizeofSockaddrInet6, Control: (*byte)(ptr(&r.ctls[i])), Iov: &iov[0]}
	h.SetControllen(controlLen)
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
	if !big {
		r.large.Trim()
	}
}

// take hands over the buffer of message i with its datagram.
func (r *receiver) take(i int) (*rawio.Buf, []byte) {
	n := int(r.hdrs[i].n)
	buf := r.bufs[i]
	r.bufs[i] = nil
	if n <= smallBuf {
		r.quiet++
		return buf, buf.B[:n]
	}
	r.quiet = 0
	if r.big {
		return buf, buf.B[:n]
	}
	r.grow = true
	whole := r.large.Get()
	copy(whole.B, buf.B)
	copy(whole.B[smallBuf:n], r.over[i*overflow:])
	buf.Release()
	return whole, whole.B[:n]
}

// received notes that n messages have come for codec c.
func (r *receiver) received(n int, c Codec) { r.got, r.next, r.codec = n, 0, c }

// pending reports whether packets wait that decode had no room for.
func (r *receiver) pending() bool { return r.buf != nil || r.next < r.got }

// decode turns received messages into packets and returns how many.
func (r *receiver) decode(pkts []rawio.Packet, st *Stats) int {
	got := 0
	for got < len(pkts) {
		if r.buf == nil {
			if r.next == r.got {
				break
			}
			r.begin(r.next, st)
			r.next++
			continue
		}
		if r.packet(&pkts[got]) {
			got++
		} else {
			st.RxMalformed.Add(1)
		}
	}
	if r.grow && !r.pending() {
		r.resize(true)
		r.grow = false
	}
	st.RxPackets.Add(uint64(got))
	return got
}

// begin starts to take message i apart.
func (r *receiver) begin(i int, st *Stats) {
	h := &r.hdrs[i]
	if h.hdr.Flags&unix.MSG_TRUNC != 0 || h.n == 0 { // no datagram is longer than a large buffer
		st.RxMalformed.Add(1)
		r.bufs[i].Release()
		r.bufs[i] = nil
		return
	}
	r.buf, r.rest = r.take(i)
	r.buf.Filled = len(r.rest)
	r.msg = Message{}
	r.msg.From = r.names[i].get()
	r.msg.Control.parse(bytesOf(&r.ctls[i])[:h.hdr.Controllen], nil)
	r.size = len(r.rest)
	if n := r.msg.Control.segment; n > 0 {
		r.size = n
		r.buf.RetainMany((len(r.rest) - 1) / n)
	}
}

// packet makes p of the next packet of the message and reports whether it is one. Each has a reference to the buffer.
func (r *receiver) packet(p *rawio.Packet) bool {
	n := min(r.size, len(r.rest))
	r.msg.Data, r.rest = r.rest[:n:n], r.rest[n:]
	*p = rawio.Packet{}
	// Sockets of IPv6 get nothing but IPv6, in which a mapped address is no source (RFC 6890): above, it would be IPv4's.
	ok := !r.msg.From.Addr().Is4In6() && r.codec.Decode(&r.msg, p)
	if ok {
		p.Buf = r.buf
	} else {
		r.buf.Release()
	}
	if len(r.rest) == 0 {
		r.buf, r.msg.Data = nil, nil
	}
	return ok
}

// release gives back every buffer, and forgets what waits.
func (r *receiver) release() {
	for r.buf != nil { // a reference for each packet that nobody has taken
		var p rawio.Packet
		r.packet(&p)
		p.Release()
	}
	r.got, r.next = 0, 0
	r.resize(r.big)
}
