package mmsg

import (
	"github.com/rddp-go/rddp/rawio"
	"golang.org/x/sys/unix"
)

// MaxMessagesPerCall is the largest number of messages in one system call. At 64 KB a message,
// maxLargeMessages is enough to hide the cost of the call.
const (
	MaxMessagesPerCall = 32
	maxLargeMessages   = 8
)

// Receive buffers in octets. A small one holds a packet of an ordinary path. A large one holds any
// datagram; 2 KB more keep consecutive buffers from sharing the same cache sets.
const (
	smallBuf = 2048
	largeBuf = 65536 + 2048

	maxIdleSmall = 4096 // buffers kept idle
	maxIdleLarge = 256  // as long as large ones are in use: what a reader that falls behind has held
)

// smallStreakLimit is how many messages in a row must fit into a small buffer before the receiver
// gives up large ones.
const smallStreakLimit = 4096

// receiver holds the arrays for recvmmsg, filled ahead with buffers. It starts with small buffers,
// each followed by a part of one large overflow area. When messages come that need the overflow
// area, it copies those together once and goes over to large buffers.
//
// A message may hold several packets (UDP_GRO), and all messages more than fit into the caller's
// slice. Then the rest waits here for the next call, and nothing is received meanwhile.
type receiver struct {
	headers      [MaxMessagesPerCall]mmsghdr
	iovs         [MaxMessagesPerCall][2]unix.Iovec
	names        [MaxMessagesPerCall]sockaddr
	ctls         [MaxMessagesPerCall]controlBuf
	bufs         [MaxMessagesPerCall]*rawio.Buf // nil: taken, so the message has to be made ready again
	overflowArea []byte                         // MaxMessagesPerCall times overflowLen octets, touched only where used

	codec       Codec // of the socket that the messages came from
	messages    int   // messages received
	nextMessage int   // the first of them that was not looked at
	needsLarge  bool  // one was too long for a small buffer

	// The message being taken apart.
	message        Message
	undelivered    []byte     // packets not handed out
	segmentSize    int        // octets of each but the last
	undeliveredBuf *rawio.Buf // owns undelivered, by one reference; nil when there is none

	small, large *rawio.Pool
	usesLarge    bool // the buffers are large ones
	smallStreak  int  // messages since the last that needed a large buffer
}

func newReceiver() *receiver {
	return &receiver{
		overflowArea: make([]byte, MaxMessagesPerCall*overflowLen),
		small:        rawio.NewPool(smallBuf, maxIdleSmall),
		large:        rawio.NewPool(largeBuf, maxIdleLarge),
	}
}

const overflowLen = largeBuf - smallBuf

// prepareMessages makes n messages ready to receive, or less while buffers are large, and returns
// them.
func (r *receiver) prepareMessages(n int) []mmsghdr {
	if r.usesLarge && r.smallStreak >= smallStreakLimit {
		r.switchBufSize(false)
	}
	n = min(n, MaxMessagesPerCall)
	if r.usesLarge {
		n = min(n, maxLargeMessages)
	}
	for i, b := range r.bufs[:n] {
		if b == nil {
			r.refillMessage(i)
		}
	}
	return r.headers[:n]
}

// refillMessage makes message i ready after its buffer has been taken. The kernel writes to no
// other message.
func (r *receiver) refillMessage(i int) {
	iov := &r.iovs[i]
	h := &r.headers[i].hdr
	*h = unix.Msghdr{Name: (*byte)(pointerTo(&r.names[i])), Namelen: unix.SizeofSockaddrInet6,
		Control: (*byte)(pointerTo(&r.ctls[i])), Iov: &iov[0]}
	h.SetControllen(controlOctets)
	if r.usesLarge {
		r.bufs[i] = r.large.Get()
		h.SetIovlen(1)
	} else {
		r.bufs[i] = r.small.Get()
		o := r.overflowArea[i*overflowLen:][:overflowLen]
		iov[1].Base = &o[0]
		iov[1].SetLen(len(o))
		h.SetIovlen(2)
	}
	b := r.bufs[i].B
	iov[0].Base = &b[0]
	iov[0].SetLen(len(b))
}

// switchBufSize gives back every buffer, so that the next are of the other size.
func (r *receiver) switchBufSize(big bool) {
	for i, b := range r.bufs {
		if b != nil {
			b.Release()
			r.bufs[i] = nil
		}
	}
	r.usesLarge, r.smallStreak = big, 0
	if !big {
		r.large.Trim()
	}
}

// takeBuf hands over the buffer of message i with its datagram.
func (r *receiver) takeBuf(i int) (*rawio.Buf, []byte) {
	n := int(r.headers[i].n)
	buf := r.bufs[i]
	r.bufs[i] = nil
	if n <= smallBuf {
		r.smallStreak++
		return buf, buf.B[:n]
	}
	r.smallStreak = 0
	if r.usesLarge {
		return buf, buf.B[:n]
	}
	r.needsLarge = true
	whole := r.large.Get()
	copy(whole.B, buf.B)
	copy(whole.B[smallBuf:n], r.overflowArea[i*overflowLen:])
	buf.Release()
	return whole, whole.B[:n]
}

// beginBatch notes that n messages have come for codec c.
func (r *receiver) beginBatch(n int, c Codec) { r.messages, r.nextMessage, r.codec = n, 0, c }

// hasPending reports whether packets wait that did not fit into the slice of decodePackets.
func (r *receiver) hasPending() bool { return r.undeliveredBuf != nil || r.nextMessage < r.messages }

// decodePackets turns received messages into packets and returns how many.
func (r *receiver) decodePackets(pkts []rawio.Packet, st *Stats) int {
	got := 0
	for got < len(pkts) {
		if r.undeliveredBuf == nil {
			if r.nextMessage == r.messages {
				break
			}
			r.beginMessage(r.nextMessage, st)
			r.nextMessage++
			continue
		}
		if r.nextPacket(&pkts[got]) {
			got++
		} else {
			st.RxMalformed.Add(1)
		}
	}
	if r.needsLarge && !r.hasPending() {
		r.switchBufSize(true)
		r.needsLarge = false
	}
	st.RxPackets.Add(uint64(got))
	return got
}

// beginMessage starts to take message i apart.
func (r *receiver) beginMessage(i int, st *Stats) {
	h := &r.headers[i]
	if h.hdr.Flags&unix.MSG_TRUNC != 0 || h.n == 0 { // no datagram is longer than a large buffer
		st.RxMalformed.Add(1)
		r.bufs[i].Release()
		r.bufs[i] = nil
		return
	}
	r.undeliveredBuf, r.undelivered = r.takeBuf(i)
	r.undeliveredBuf.Filled = len(r.undelivered)
	r.message = Message{}
	r.message.From = r.names[i].toAddrPort()
	r.message.Control.parseMessages(controlBytes(&r.ctls[i])[:h.hdr.Controllen], nil)
	r.segmentSize = len(r.undelivered)
	if n := r.message.Control.segmentSize; n > 0 {
		r.segmentSize = n
		r.undeliveredBuf.RetainMany((len(r.undelivered) - 1) / n)
	}
}

// nextPacket makes p of the next packet of the message and reports whether it is one. Each has a
// reference to the buffer.
func (r *receiver) nextPacket(p *rawio.Packet) bool {
	n := min(r.segmentSize, len(r.undelivered))
	r.message.Data, r.undelivered = r.undelivered[:n:n], r.undelivered[n:]
	*p = rawio.Packet{}
	// IPv6 sockets get nothing but IPv6, in which a mapped address is no valid source (RFC 6890).
	// The layers above would take it for IPv4.
	ok := !r.message.From.Addr().Is4In6() && r.codec.Decode(&r.message, p)
	if ok {
		p.Buf = r.undeliveredBuf
	} else {
		r.undeliveredBuf.Release()
	}
	if len(r.undelivered) == 0 {
		r.undeliveredBuf, r.message.Data = nil, nil
	}
	return ok
}

// releaseBufs gives back every buffer, and forgets what waits.
func (r *receiver) releaseBufs() {
	for r.undeliveredBuf != nil { // a reference for each packet not yet taken
		var p rawio.Packet
		r.nextPacket(&p)
		p.Release()
	}
	r.messages, r.nextMessage = 0, 0
	r.switchBufSize(r.usesLarge)
}
