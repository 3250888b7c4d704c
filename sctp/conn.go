package sctp

import (
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/account"
)

// Conn is one SCTP association (RFC 9260). Its methods may be called from several goroutines.
//
// One goroutine at a time holds assocLock, and so owns the association. The lock guards every
// group, but for atomic fields and those that name another lock. A method marked "Owner only" is
// for its holder.
//
// The groups before the core are what each packet, read and write looks at. With many associations
// none of them is in a cache, so they lie together and are prefetched as a whole (fetchHead). The
// groups behind the core are rarely looked at.
type Conn struct {
	t         *Transport
	assocLock assocLock
	upper     upperLayer // the protocol above; none: the message API

	recv recvSide // messages for the program to read
	send sendSide // messages that the program has written
	end  connEnd  // whether the association has ended, and why

	afterUnlock unlockWork // what is left to do once the lock is released
	coalescing  coalescing // what goes out together with packets of other associations
	memory      connMemory // what the association is charged for
	observers   observers  // tracing and notifications
	timer       connTimer  // the next deadline; guarded by the lock of the timers
	backlog     backlog    // packets that come while the lock is held; it has a lock of its own

	core assoc.Assoc // the protocol

	lifecycle lifecycle  // for goroutines that wait for the beginning, or the end; a lock of its own
	origin    connOrigin // how the association was set up
}

// connOrigin is how an association was set up. It does not change, but for the two flags.
type connOrigin struct {
	listener          *Listener     // the one that accepts it; nil: Dial, or a Socket, has set it up
	peerAddr          netip.Addr    // the address that its place at the listener, or the Socket, counts for
	boundAddrs        *[]netip.Addr // the addresses that Dial, or its listener, has bound its port at
	assocNumber       uint64        // how many associations there were before
	beganAt           rawio.Time    // when setting it up did
	hasAcceptSlot     bool          // it has a place at the listener; guarded by the lock of its queue
	removedFromSocket bool          // its Socket has it no more; guarded by the lock of the Socket
	maxUnsent         int32         // Config.MaxUnsent
}

// newAssoc returns the place for the core of an association, within the Conn that owns it.
func newAssoc() *assoc.Assoc {
	c := new(Conn)
	c.core.Owner = c
	return &c.core
}

// connOf returns the Conn of an association.
func connOf(a *assoc.Assoc) *Conn { return a.Owner.(*Conn) }

func newConn(t *Transport, a *assoc.Assoc, cfg *Config) *Conn {
	c := connOf(a)
	accounts := new([2]account.Account) // which outlive it, see keepAccount
	c.t, c.origin.beganAt, c.memory.account, c.backlog.account = t, t.now(), &accounts[0], &accounts[1]
	c.lifecycle.isUp = a.State() == assoc.Established && cfg.identity == nil // else there are to be keys first
	if cfg.Events > 0 {
		c.observers.events = &eventQueue{limit: cfg.Events, arrivedCh: make(chan struct{}, 1), kinds: cfg.eventKinds()}
	}
	c.recv.readable.init(t)
	c.recv.deadline.t, c.send.deadline.t, c.recv.deadline.signal = t, t, &c.recv.readable
	c.backlog.arenaPool = t.memory.budget.arenaPool
	c.send.buffer.baseOctets = cfg.firstSendBuffer()
	c.origin.maxUnsent = int32(min(max(cfg.MaxUnsent, 0), math.MaxInt32))
	c.serveByStream(cfg.NewScheduler != nil)
	a.OnGrow(c.canAfford)
	c.timer.init()
	c.memory.trimAt = rawio.Never
	c.recv.socket = cfg.socket
	if t.cfg.Tracer != nil {
		c.observers.trace = new(traceState)
	}
	if cfg.NewUpper != nil {
		c.upper.protocol = cfg.NewUpper(c, a)
		a.SetUpper(c.upper.protocol, c.upper.protocol)
		c.upper.stepCounter, _ = c.upper.protocol.(stepCounter)
	} else {
		a.SetUpper(nil, (*messageSource)(c))
	}
	c.chooseSenderDry()
	c.newKeyShell(cfg)
	return c
}

// Done is closed when the association has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.lifecycle.endedChan() }

// Err returns why the association has ended, or nil while it lives.
func (c *Conn) Err() error {
	if c.lifecycle.hasEnded() {
		return c.end.err
	}
	return nil
}

// SetDeadline sets the read and the write deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	c.recv.deadline.set(t)
	c.send.deadline.set(t)
	return nil
}

// SetReadDeadline makes reads that block past t fail with os.ErrDeadlineExceeded. The zero time
// means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { c.recv.deadline.set(t); return nil }

// SetWriteDeadline makes writes that block past t fail with os.ErrDeadlineExceeded.
func (c *Conn) SetWriteDeadline(t time.Time) error { c.send.deadline.set(t); return nil }

// LocalAddr returns the local address and SCTP port.
func (c *Conn) LocalAddr() net.Addr {
	a, _ := c.lock()
	defer c.unlock()
	return Addr{netip.AddrPortFrom(a.LocalAddr().Addr(), a.LocalPort())}
}

// RemoteAddr returns the address of the peer's primary path and its SCTP port.
func (c *Conn) RemoteAddr() net.Addr {
	a, _ := c.lock()
	defer c.unlock()
	return Addr{netip.AddrPortFrom(a.PeerAddr().Addr(), a.PeerPort())}
}

// Stats returns the counters of the association and its paths.
func (c *Conn) Stats() assoc.Stats {
	a, _ := c.lock()
	defer c.unlock()
	return a.Stats()
}

// Addr is an IP address and an SCTP port.
type Addr struct{ netip.AddrPort }

// Network returns "sctp".
func (Addr) Network() string { return "sctp" }
