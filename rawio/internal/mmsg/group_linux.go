package mmsg

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/pace"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/wait"
)

// Group is one socket, or an IPv4 and an IPv6 socket, read together.
type Group struct {
	Stats Stats

	socks  []*Socket
	aside  *Socket                    // nobody reads it; or nil
	goes   func(p *rawio.Packet) bool // by aside
	wait   *wait.Reader
	pace   *pace.Pace // of ReadBatch
	poll   time.Duration
	closed atomic.Bool

	// The reader's, one goroutine at a time.
	rx    *receiver
	eq    errorReader
	pkts  []rawio.Packet
	n     int // packets filled so far
	next  int // the socket to read first, in turn
	cur   *Socket
	more  bool // the last receive call returned something
	woken bool // the reader has waited since the last
	errno syscall.Errno
	errs  int // receive errors in a row

	mem memInfo

	recv  func(fd uintptr) // recvOnce, made once
	drain func(fd uintptr) // drainErrors
	look  func(fd uintptr) // mem.get
}

// maxErrors is how many receive calls in a row may fail before the error is the link's. Pending
// ICMP errors each fail one call.
const maxErrors = 64

// NewGroup takes over the sockets. poll is how long a reader polls before it blocks.
func NewGroup(poll time.Duration, socks ...*Socket) (*Group, error) {
	pace.Measure()
	g := &Group{socks: socks, rx: newReceiver(), poll: poll, pace: pace.New(poll, pace.Now)}
	g.recv, g.drain, g.look = g.recvOnce, g.drainErrors, g.mem.get
	var fds []int
	for _, s := range socks {
		fds = append(fds, s.fd)
	}
	var err error
	if g.wait, err = wait.NewReader(fds...); err != nil {
		for _, s := range socks {
			s.Close()
		}
		return nil, err
	}
	return g, nil
}

// OnPark has the reader call f before it parks or sleeps: it is back when a packet comes. Call it before anybody reads.
func (g *Group) OnPark(f func()) { g.wait.OnPark = f }

// Aside takes over a socket that nobody reads, by which those packets leave that goes says. Call it before anybody writes.
func (g *Group) Aside(s *Socket, goes func(p *rawio.Packet) bool) { g.aside, g.goes = s, goes }

// Interrupt is rawio.Interrupter's.
func (g *Group) Interrupt() { g.wait.Interrupt() }

// Sockets returns the sockets of the group.
func (g *Group) Sockets() []*Socket { return g.socks }

// ReadBatch is rawio.Link's.
func (g *Group) ReadBatch(pkts []rawio.Packet) (int, error) { return g.pace.Read(g, pkts) }

// PollBatch is rawio.Poller's.
func (g *Group) PollBatch(pkts []rawio.Packet) int {
	g.pkts, g.n = pkts, 0
	if !g.closed.Load() && len(pkts) > 0 {
		if g.rx.pending() {
			g.n = g.rx.decode(pkts, &g.Stats)
		}
		if g.n == 0 {
			g.tryRead()
		}
	}
	g.pkts, g.woken = nil, false
	return g.n
}

// Polling is rawio.Waiter's.
func (g *Group) Polling() time.Duration { return g.poll }

// Wait is rawio.Waiter's.
func (g *Group) Wait(p rawio.Pause) error {
	if g.errs > maxErrors {
		return os.NewSyscallError("recvmmsg", g.errno)
	}
	err := g.wait.Wait(p)
	if err == net.ErrClosed {
		g.rx.release()
		g.eq.release()
	}
	g.woken = g.woken || p == rawio.Block || p == rawio.Sleep || p == rawio.Park
	return err
}

// pass receives once from each socket, in turn, as long as there is room, and says whether they are open. The next one begins where this one has ended, so that a socket that
// always fills the room keeps the others from nothing.
func (g *Group) pass() bool {
	g.more = false
	for range g.socks {
		if g.n == len(g.pkts) {
			break
		}
		g.cur = g.socks[g.next]
		if g.next++; g.next == len(g.socks) {
			g.next = 0
		}
		if g.cur.rc.Control(g.recv) != nil {
			return false
		}
	}
	return true
}

// tryRead receives until there is something to return or nothing has come. What is in the error queues only may have woken the reader.
func (g *Group) tryRead() {
	for g.pass() {
		none := g.n == 0 && !g.more
		for _, g.cur = range g.socks {
			if g.n == len(g.pkts) {
				break // a report waits for room
			}
			if (g.cur.told.Load() && g.cur.told.Swap(false) || g.woken && none) && g.cur.rc.Control(g.drain) != nil {
				return // closed
			}
		}
		if none || g.n > 0 || g.errs > maxErrors {
			return
		}
		// All malformed, or an error that left the queue readable.
	}
}

// recvOnce receives one batch from the current socket.
func (g *Group) recvOnce(fd uintptr) {
	room := g.pkts[g.n:]
	h := g.rx.prepare(len(room))
	n, errno := recvmmsg(fd, h, 0)
	switch errno {
	case 0:
		g.Stats.RxCalls.Add(1)
		g.rx.received(n, g.cur.codec)
		g.n += g.rx.decode(room, &g.Stats)
		g.more, g.errs = true, 0
	case syscall.EAGAIN:
		g.errs = 0
	default: // a pending ICMP error: the call has cleared it, the message is in the queue
		if !fromICMP(errno) {
			g.errno = errno
			g.errs++
		}
		g.more = true
		g.drainErrors(fd)
	}
}

// fromICMP reports whether an error is one that the kernel makes of an ICMP message (its table
// icmp_err_convert, and that of ICMPv6): it is about a packet sent before, never about the socket.
func fromICMP(errno syscall.Errno) bool {
	switch errno {
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENOPROTOOPT, syscall.ECONNREFUSED, syscall.EMSGSIZE,
		syscall.EOPNOTSUPP, syscall.EHOSTDOWN, syscall.ENONET, syscall.EPROTO, syscall.EACCES:
		return true
	}
	return false
}

func (g *Group) drainErrors(fd uintptr) {
	g.n += g.eq.drain(fd, g.cur, g.rx.small, g.pkts[g.n:], &g.Stats)
}

// most is how many packets a system call takes at most.
const most = Batch * maxSegments

// WriteBatch is rawio.Link's.
func (g *Group) WriteBatch(pkts []rawio.Packet) (int, error) {
	sent := 0
	for sent < len(pkts) {
		s := g.by(&pkts[sent])
		if s == nil {
			g.Stats.TxErrors.Add(1)
			return sent, &net.AddrError{Err: "this link has no socket of the address's family", Addr: pkts[sent].Remote.String()}
		}
		end := sent + 1
		for end < len(pkts) && end < sent+most && g.by(&pkts[end]) == s {
			end++
		}
		n, err := s.write(pkts[sent:end], &g.Stats)
		g.Stats.TxPackets.Add(uint64(n))
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// by returns the socket by which a packet leaves.
func (g *Group) by(p *rawio.Packet) *Socket {
	if g.aside != nil && g.goes(p) {
		return g.aside
	}
	return g.socket(p.Remote.Addr())
}

func (g *Group) socket(a netip.Addr) *Socket {
	v6 := a.Is6() && !a.Is4In6()
	for _, s := range g.socks {
		if s.v6 == v6 && a.IsValid() {
			return s
		}
	}
	return nil
}

// Drops sums the kernel's drops for want of receive buffer.
func (g *Group) Drops() uint64 {
	n := uint64(0)
	for _, s := range g.socks {
		n += s.Drops()
	}
	return n
}

// Pressed reports whether a socket's receive buffer is half full, or may be for all that is known. It is the reader's.
func (g *Group) Pressed() bool {
	for _, s := range g.socks {
		if s.rc.Control(g.look) != nil || g.mem[memReceived] >= g.mem[memRcvBuf]/2 {
			return true
		}
	}
	return false
}

// ReceiveBuffer returns how many octets of packets each of the sockets keeps.
func (g *Group) ReceiveBuffer() int {
	n := g.socks[0].ReceiveBuffer()
	for _, s := range g.socks[1:] {
		n = min(n, s.ReceiveBuffer())
	}
	return n
}

// Close wakes a reader, which then gets net.ErrClosed, and closes the sockets.
func (g *Group) Close() error {
	if g.closed.Swap(true) {
		return net.ErrClosed
	}
	g.wait.Close()
	var err error
	for _, s := range g.socks {
		err = errors.Join(err, s.Close())
	}
	if g.aside != nil {
		err = errors.Join(err, g.aside.Close())
	}
	return err
}
