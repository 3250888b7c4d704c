package mmsg

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/pollpolicy"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/wait"
)

// Group is one socket, or an IPv4 and an IPv6 socket, read together.
type Group struct {
	Stats Stats

	sockets        []*Socket
	sideSocket     *Socket                    // not read; or nil
	usesSideSocket func(p *rawio.Packet) bool // by sideSocket
	waiter         *wait.Reader
	pace           *pollpolicy.Policy // of ReadBatch
	pollTime       time.Duration
	closed         atomic.Bool

	// The reader's, one goroutine at a time.
	receiver    *receiver
	errorQueue  errorReader
	pkts        []rawio.Packet
	filled      int // packets filled so far
	nextSocket  int // the socket to read first, in turn
	current     *Socket
	receivedAny bool // the last receive call returned something
	hasWaited   bool // the reader has waited since the last
	lastErrno   syscall.Errno
	errorStreak int // receive errors in a row

	socketMem memInfo

	recvFunc        func(fd uintptr) // recvOnce, made once
	drainErrorsFunc func(fd uintptr) // drainErrors
	readMemFunc     func(fd uintptr) // socketMem.readSocket
}

// maxErrorStreak is how many receive calls in a row may fail before the error is the link's.
// Pending ICMP errors each fail one call.
const maxErrorStreak = 64

// NewGroup takes over the sockets. poll is how long a reader polls before it blocks.
func NewGroup(poll time.Duration, socks ...*Socket) (*Group, error) {
	pollpolicy.MeasureWake()
	g := &Group{sockets: socks, receiver: newReceiver(), pollTime: poll, pace: pollpolicy.New(poll, pollpolicy.Now)}
	g.recvFunc, g.drainErrorsFunc, g.readMemFunc = g.recvOnce, g.drainErrors, g.socketMem.readSocket
	var fds []int
	for _, s := range socks {
		fds = append(fds, s.fd)
	}
	var err error
	if g.waiter, err = wait.NewReader(fds...); err != nil {
		for _, s := range socks {
			s.Close()
		}
		return nil, err
	}
	return g, nil
}

// OnPark has the reader call f before it parks or sleeps, until a packet comes. Call it before any
// read.
func (g *Group) OnPark(f func()) { g.waiter.OnPark = f }

// AddSideSocket takes over a socket that is not read. The packets for which goes returns true leave
// by it. Call it before any write.
func (g *Group) AddSideSocket(s *Socket, goes func(p *rawio.Packet) bool) {
	g.sideSocket, g.usesSideSocket = s, goes
}

// Interrupt is rawio.Interrupter's.
func (g *Group) Interrupt() { g.waiter.Interrupt() }

// Sockets returns the sockets of the group.
func (g *Group) Sockets() []*Socket { return g.sockets }

// ReadBatch is rawio.Link's.
func (g *Group) ReadBatch(pkts []rawio.Packet) (int, error) { return g.pace.ReadPaced(g, pkts) }

// PollBatch is rawio.Poller's.
func (g *Group) PollBatch(pkts []rawio.Packet) int {
	g.pkts, g.filled = pkts, 0
	if !g.closed.Load() && len(pkts) > 0 {
		if g.receiver.hasPending() {
			g.filled = g.receiver.decodePackets(pkts, &g.Stats)
		}
		if g.filled == 0 {
			g.readAvailable()
		}
	}
	g.pkts, g.hasWaited = nil, false
	return g.filled
}

// Polling is rawio.Waiter's.
func (g *Group) Polling() time.Duration { return g.pollTime }

// Wait is rawio.Waiter's.
func (g *Group) Wait(p rawio.Pause) error {
	if g.errorStreak > maxErrorStreak {
		return os.NewSyscallError("recvmmsg", g.lastErrno)
	}
	err := g.waiter.Wait(p)
	if err == net.ErrClosed {
		g.receiver.releaseBufs()
		g.errorQueue.releaseBuf()
	}
	g.hasWaited = g.hasWaited || p == rawio.Block || p == rawio.Sleep || p == rawio.Park
	return err
}

// receiveFromEach receives once from each socket, in turn, as long as pkts has space, and says
// whether the sockets are open. The next call begins where this one ended, so that a socket that
// always fills pkts does not starve the others.
func (g *Group) receiveFromEach() bool {
	g.receivedAny = false
	for range g.sockets {
		if g.filled == len(g.pkts) {
			break
		}
		g.current = g.sockets[g.nextSocket]
		if g.nextSocket++; g.nextSocket == len(g.sockets) {
			g.nextSocket = 0
		}
		if g.current.rc.Control(g.recvFunc) != nil {
			return false
		}
	}
	return true
}

// readAvailable receives until there is something to return or nothing has come. What is in the
// error queues only may have woken the reader.
func (g *Group) readAvailable() {
	for g.receiveFromEach() {
		none := g.filled == 0 && !g.receivedAny
		for _, g.current = range g.sockets {
			if g.filled == len(g.pkts) {
				break // a report waits until pkts has space
			}
			if (g.current.icmpPending.Load() && g.current.icmpPending.Swap(false) || g.hasWaited && none) &&
				g.current.rc.Control(g.drainErrorsFunc) != nil {
				return // closed
			}
		}
		if none || g.filled > 0 || g.errorStreak > maxErrorStreak {
			return
		}
		// All malformed, or an error that left the queue readable.
	}
}

// recvOnce receives one batch from the current socket.
func (g *Group) recvOnce(fd uintptr) {
	room := g.pkts[g.filled:]
	h := g.receiver.prepareMessages(len(room))
	n, errno := recvmmsg(fd, h, 0)
	switch errno {
	case 0:
		g.Stats.RxCalls.Add(1)
		g.receiver.beginBatch(n, g.current.codec)
		g.filled += g.receiver.decodePackets(room, &g.Stats)
		g.receivedAny, g.errorStreak = true, 0
	case syscall.EAGAIN:
		g.errorStreak = 0
	default: // a pending ICMP error: the call has cleared it, the message is in the queue
		if !isFromICMP(errno) {
			g.lastErrno = errno
			g.errorStreak++
		}
		g.receivedAny = true
		g.drainErrors(fd)
	}
}

// isFromICMP reports whether an error is one that the kernel makes of an ICMP message (its table
// icmp_err_convert, and that of ICMPv6). Such an error is about a packet sent before, never about
// the socket.
func isFromICMP(errno syscall.Errno) bool {
	switch errno {
	case syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENOPROTOOPT, syscall.ECONNREFUSED, syscall.EMSGSIZE,
		syscall.EOPNOTSUPP, syscall.EHOSTDOWN, syscall.ENONET, syscall.EPROTO, syscall.EACCES:
		return true
	}
	return false
}

func (g *Group) drainErrors(fd uintptr) {
	g.filled += g.errorQueue.readReports(fd, g.current, g.receiver.small, g.pkts[g.filled:], &g.Stats)
}

// maxPacketsPerCall is how many packets a system call takes at most.
const maxPacketsPerCall = MaxMessagesPerCall * maxSegments

// WriteBatch is rawio.Link's.
func (g *Group) WriteBatch(pkts []rawio.Packet) (int, error) {
	sent := 0
	for sent < len(pkts) {
		s := g.socketFor(&pkts[sent])
		if s == nil {
			g.Stats.TxErrors.Add(1)
			return sent, &net.AddrError{Err: "this link has no socket of the address's family",
				Addr: pkts[sent].Remote.String()}
		}
		end := sent + 1
		for end < len(pkts) && end < sent+maxPacketsPerCall && g.socketFor(&pkts[end]) == s {
			end++
		}
		n, err := s.writeBatch(pkts[sent:end], &g.Stats)
		g.Stats.TxPackets.Add(uint64(n))
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// socketFor returns the socket by which a packet leaves.
func (g *Group) socketFor(p *rawio.Packet) *Socket {
	if g.sideSocket != nil && g.usesSideSocket(p) {
		return g.sideSocket
	}
	return g.socketOfFamily(p.Remote.Addr())
}

func (g *Group) socketOfFamily(a netip.Addr) *Socket {
	v6 := a.Is6() && !a.Is4In6()
	for _, s := range g.sockets {
		if s.v6 == v6 && a.IsValid() {
			return s
		}
	}
	return nil
}

// Drops sums the kernel's drops for want of receive buffer.
func (g *Group) Drops() uint64 {
	n := uint64(0)
	for _, s := range g.sockets {
		n += s.Drops()
	}
	return n
}

// BufferHalfFull reports whether a socket's receive buffer is half full, or may be for all that is
// known. It is the reader's.
func (g *Group) BufferHalfFull() bool {
	for _, s := range g.sockets {
		if s.rc.Control(g.readMemFunc) != nil || g.socketMem[memReceived] >= g.socketMem[memRcvBuf]/2 {
			return true
		}
	}
	return false
}

// ReceiveBuffer returns how many octets of packets each of the sockets keeps.
func (g *Group) ReceiveBuffer() int {
	n := g.sockets[0].ReceiveBuffer()
	for _, s := range g.sockets[1:] {
		n = min(n, s.ReceiveBuffer())
	}
	return n
}

// Close wakes a reader, which then gets net.ErrClosed, and closes the sockets.
func (g *Group) Close() error {
	if g.closed.Swap(true) {
		return net.ErrClosed
	}
	g.waiter.Close()
	var err error
	for _, s := range g.sockets {
		err = errors.Join(err, s.Close())
	}
	if g.sideSocket != nil {
		err = errors.Join(err, g.sideSocket.Close())
	}
	return err
}
