package mem

import (
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
)

const (
	defaultQueueLen = 4096
	smallBuf        = 2048     // octets: a short packet must not hold a buffer of the full MTU
	maxIdleOctets   = 32 << 20 // octets that a pool keeps for reuse at most
)

// Options configure a pair. The zero value is ready to use.
type Options struct {
	// MTU is the IP-level MTU in octets, as for any other link. [Link.MTU] is what the IP header
	// leaves of it. 0, and anything above, means rawio.MaxMTU.
	MTU int
	// Queue is how many packets wait to be read on either side before more are dropped; 0 means
	// 4096.
	Queue int
	// A and B are the addresses of the two sides. By default A is 10.0.0.1 and B is 10.0.0.2, with
	// port 0: no UDP encapsulation.
	A, B []netip.AddrPort
}

// Link is one side of a pair. It implements rawio.Link, rawio.Addresser and rawio.PortBinder, and
// all its methods are safe for concurrent use.
type Link struct {
	addrs        []netip.AddrPort
	maxPacketLen int // octets of the longest SCTP packet
	peer         *Link
	bufPools     *bufferPools

	closed atomic.Bool // set under mu
	drops  atomic.Uint64

	mu          sync.Mutex
	readable    sync.Cond           // a packet came in, or the link closed
	inbox       packetQueue         // guarded by mu
	interrupted bool                // guarded by mu: the reader is to come back
	ports       map[uint16]struct{} // guarded by mu: SCTP ports in use
}

var (
	_ rawio.Link       = (*Link)(nil)
	_ rawio.Addresser  = (*Link)(nil)
	_ rawio.PortBinder = (*Link)(nil)
	_ rawio.Featurer   = (*Link)(nil)
	_ rawio.Poller     = (*Link)(nil)

	_ rawio.Interrupter = (*Link)(nil)
)

// Pair returns two links, each receiving what the other sends. It fails with *rawio.MTUError for an
// MTU below rawio.MinMTU and with *net.AddrError for an invalid address.
func Pair(o Options) (a, b *Link, err error) {
	if o.MTU == 0 {
		o.MTU = rawio.MaxMTU
	}
	if o.MTU < rawio.MinMTU {
		return nil, nil, &rawio.MTUError{MTU: o.MTU}
	}
	if o.Queue <= 0 {
		o.Queue = defaultQueueLen
	}
	if len(o.A) == 0 {
		o.A = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), 0)}
	}
	if len(o.B) == 0 {
		o.B = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 2}), 0)}
	}
	headers := 0
	for _, ap := range slices.Concat(o.A, o.B) {
		if !ap.IsValid() {
			return nil, nil, &net.AddrError{Err: "not an address for a mem link", Addr: ap.String()}
		}
		headers = max(headers, rawio.Overhead(ap))
	}
	limit := min(o.MTU, rawio.MaxMTU) - headers
	pools := newPools(limit, o.Queue)
	a, b = newLink(o.A, limit, o.Queue, pools), newLink(o.B, limit, o.Queue, pools)
	a.peer, b.peer = b, a
	return a, b, nil
}

func newLink(addrs []netip.AddrPort, limit, depth int, p *bufferPools) *Link {
	l := &Link{
		addrs:        slices.Clone(addrs),
		maxPacketLen: limit,
		bufPools:     p,
		inbox:        packetQueue{maxCount: depth},
		ports:        make(map[uint16]struct{}),
	}
	l.readable.L = &l.mu
	return l
}

// ReadBatch fills pkts with what the other side sent and returns how many. It blocks for the first.
// After Close it returns net.ErrClosed.
func (l *Link) ReadBatch(pkts []rawio.Packet) (n int, err error) {
	if len(pkts) == 0 {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// Goroutines that are about to send go first. A woken reader runs right behind the sender, with
	// that one packet.
	if l.mustWait() {
		l.mu.Unlock()
		runtime.Gosched()
		l.mu.Lock()
	}
	for l.mustWait() {
		l.readable.Wait()
	}
	switch {
	case l.closed.Load():
		return 0, net.ErrClosed
	case l.inbox.count == 0:
		l.interrupted = false
		return 0, rawio.ErrInterrupted
	}
	return l.inbox.popInto(pkts), nil
}

// mustWait says whether there is nothing that a reader does not wait for. Called with mu held.
func (l *Link) mustWait() bool { return l.inbox.count == 0 && !l.closed.Load() && !l.interrupted }

// PollBatch is ReadBatch, but where that would block it returns 0.
func (l *Link) PollBatch(pkts []rawio.Packet) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inbox.popInto(pkts)
}

// Interrupt implements rawio.Interrupter.
func (l *Link) Interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.interrupted = true
	l.readable.Signal()
}

// WriteBatch copies pkts to the other side. It never blocks. Where the other side's queue is full
// or closed, the packet is lost and counted there ([Link.Drops]). The error is rawio.ErrTooLong for
// a packet above the MTU and *net.AddrError for a remote that is not the other side's. After Close
// it is net.ErrClosed.
func (l *Link) WriteBatch(pkts []rawio.Packet) (n int, err error) {
	for i := range pkts {
		if err := l.sendPacket(&pkts[i]); err != nil {
			return i, err
		}
	}
	return len(pkts), nil
}

func (l *Link) sendPacket(p *rawio.Packet) error {
	n := p.Len()
	switch {
	case l.closed.Load():
		return net.ErrClosed
	case n > l.maxPacketLen:
		return rawio.ErrTooLong
	case !l.peer.ownsAddr(p.Remote.Addr()):
		return &net.AddrError{Err: "not an address of this mem link's other side", Addr: p.Remote.String()}
	}
	from := p.Local
	if !from.IsValid() {
		from = l.facing(p.Remote.Addr())
	}
	buf := l.bufPools.get(n)
	k := 0
	for _, v := range p.Vec {
		k += copy(buf.B[k:], v)
	}
	l.peer.receivePacket(rawio.Packet{Data: buf.B[:k], Buf: buf, Local: p.Remote, Remote: from, ECN: p.ECN,
		DSCP: p.DSCP, FlowLabel: p.FlowLabel})
	return nil
}

// facing is the source of a packet without one: the first address of the family of its destination.
func (l *Link) facing(to netip.Addr) netip.AddrPort {
	for _, a := range l.addrs {
		if a.Addr().Unmap().Is4() == to.Unmap().Is4() {
			return a
		}
	}
	return l.addrs[0]
}

func (l *Link) receivePacket(p rawio.Packet) {
	l.mu.Lock()
	ok := !l.closed.Load() && l.inbox.push(p)
	l.mu.Unlock()
	if !ok {
		l.drops.Add(1)
		p.Release()
		return
	}
	l.readable.Signal()
}

func (l *Link) ownsAddr(a netip.Addr) bool {
	for _, ap := range l.addrs {
		if ap.Addr() == a {
			return true
		}
	}
	return false
}

// Drops returns how many packets to this side were lost because its queue was full or closed.
func (l *Link) Drops() uint64 { return l.drops.Load() }

// Outstanding returns how many receive buffers of the pair are queued or held by readers. A test
// finds a leak by it.
func (l *Link) Outstanding() int { return l.bufPools.outstandingBufs() }

// MTU returns the longest SCTP packet in octets. It is the same for all addresses.
func (l *Link) MTU(local, remote netip.Addr) int { return l.maxPacketLen }

// Features implements rawio.Featurer.
func (l *Link) Features() rawio.Features {
	return rawio.DontFragment | rawio.ECNField | rawio.Marking | rawio.Interruptible
}

// ReceiveBuffer implements rawio.Featurer: what waits is in memory of this process.
func (l *Link) ReceiveBuffer() int { return 0 }

// LocalAddrs returns this side's addresses; the first of each family is the default source there.
func (l *Link) LocalAddrs() []netip.AddrPort { return slices.Clone(l.addrs) }

// Close ends this side: blocked reads wake with net.ErrClosed and unread packets are lost. Further
// calls do nothing.
func (l *Link) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed.Store(true)
	for l.inbox.count > 0 {
		p := l.inbox.pop()
		p.Release()
	}
	l.readable.Broadcast()
	return nil
}

// BindPort takes an SCTP port of this side. With addresses it takes the port there, in addition to
// where it has been taken. Without, it fails with rawio.ErrPortInUse when the port is taken. After
// Close it fails with net.ErrClosed.
func (l *Link) BindPort(port uint16, at ...netip.Addr) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed.Load() {
		return net.ErrClosed
	}
	if _, taken := l.ports[port]; taken && len(at) == 0 {
		return rawio.ErrPortInUse
	}
	l.ports[port] = struct{}{}
	return nil
}

// UnbindPort gives a port back.
func (l *Link) UnbindPort(port uint16) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ports, port)
}

// Prompt implements rawio.Prompter.
func (l *Link) Prompt() rawio.Link { return l }
