package rdma

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Work requests and their parts.
type (
	// SendWR is a work request of the send queue, for [QP.PostSend].
	//
	//	type SendWR struct {
	//		ID    uint64
	//		Op    WROpcode
	//		Flags Flags
	//		// source of a Send or Write; the sink of a Read, exactly one piece (section 5.2.2);
	//		// else empty
	//		SGL []SGE
	//		// source of a Send or Write instead of SGL; copied, at most Config.MaxInline octets
	//		Inline []byte
	//		// Write: data sink. Read: data source. Atomic: the 8 octets, at an address (not Tagged Offset)
	//		// that is a multiple of 8. Only the peer can check that, and it ends the stream for any other.
	//		RemoteSTag     ddp.STag
	//		RemoteTO       uint64
	//		InvalidateSTag ddp.STag // WRSendInv and WRSendSEInv: the peer's STag, not 0
	//		Immediate      uint64   // Immediate Data; it travels in network byte order
	//		Atomic         AtomicOp // WRAtomic
	//	}
	SendWR = rdmap.SendWR

	// RecvWR is a work request of a receive queue, for [QP.PostRecv] and [SRQ.PostRecv].
	//
	//	type RecvWR struct {
	//		ID  uint64
	//		SGL []SGE // filled in order; each needs LocalWrite
	//	}
	RecvWR = rdmap.RecvWR

	// SGE is a range of a memory region, in the list of a work request: see [MR.SGE].
	//
	//	type SGE struct {
	//		LKey ddp.STag // STag of the region
	//		// Tagged Offset of the first octet, counted as the region counts
	//		Addr uint64
	//		Len  uint32 // octets
	//	}
	SGE = rdmap.SGE

	// Flags change how a SendWR is done.
	Flags = rdmap.Flags
)

// Operations of a SendWR (RFC 5040 section 3.2; from OpImm on, RFC 7306 sections 5 and 6).
const (
	OpSend      = rdmap.WRSend      // Send (RFC 5040 section 5.3)
	OpSendSE    = rdmap.WRSendSE    // Send with Solicited Event
	OpSendInv   = rdmap.WRSendInv   // Send with Invalidate
	OpSendSEInv = rdmap.WRSendSEInv // Send with Solicited Event and Invalidate
	OpWrite     = rdmap.WRWrite     // RDMA Write (RFC 5040 section 5.1)
	OpRead      = rdmap.WRRead      // RDMA Read (RFC 5040 section 5.2)

	OpImm        = rdmap.WRImm        // Immediate Data: 8 octets in the completion of a receive
	OpImmSE      = rdmap.WRImmSE      // Immediate Data with Solicited Event
	OpWriteImm   = rdmap.WRWriteImm   // RDMA Write, then Immediate Data; takes two places in the send queue
	OpWriteImmSE = rdmap.WRWriteImmSE // RDMA Write, then Immediate Data with Solicited Event; two places
	OpAtomic     = rdmap.WRAtomic     // Atomic Operation
)

// Flags of a SendWR. Fence is what RFC 5040 section 5.5 leaves to the user: wait for the Reads
// before.
const (
	Unsignaled = rdmap.Unsignaled
	Fence      = rdmap.Fence
)

// Errors of QPs.
var (
	// ErrInUse: the QP is or was connected; a QP serves one session.
	ErrInUse = errors.New("rdma: the QP was connected before; create another one")
	// ErrForeign: an object of another Device was given.
	ErrForeign = errors.New("rdma: the object belongs to another Device")
)

// QPConfig describes a QP. PD, SendCQ and RecvCQ are needed; the CQs must have room for the queues.
// Zero elsewhere selects the default.
type QPConfig struct {
	// PD is the protection domain of the QP and of the memory that it uses. It must be set.
	PD *PD

	// SendCQ gets the completions of the send queue. It must be set.
	SendCQ *CQ

	// RecvCQ gets the completions of receives. It must be set, and may be SendCQ.
	RecvCQ *CQ

	// SRQ is where receives come from instead of from the QP's own queue. Default nil.
	SRQ *SRQ

	// MaxSend is the depth of the send queue. Default 128.
	MaxSend int

	// MaxRecv is the depth of the receive queue; with an SRQ, the most buffers in process. Default
	// 128.
	MaxRecv int

	// MaxSGE is the largest number of pieces in a scatter/gather list. Default 4.
	MaxSGE int

	// MaxInline is the most octets of inline data. Default 64.
	MaxInline int

	// IRD is how many RDMA Reads and atomics the peer may have outstanding here. A negative value
	// means none. Default 16.
	IRD int

	// ORD is how many RDMA Reads and atomics may be outstanding at the peer, at most its IRD. A
	// negative value means none. Default 16.
	ORD int

	// Negotiate has Connect agree with the peer on IRD and ORD (RFC 6581), so that each ORD is at
	// most the other end's IRD. QP.ORD tells the outcome. A peer without RFC 6581 terminates the
	// session: connect another QP without Negotiate then. Accept answers either kind of request.
	// Default false.
	Negotiate bool

	// PeerToPeer has Connect send an empty message, a Ready to Receive indication, ahead of all
	// others (RFC 6581 section 9.2). It is for peers that wait for one, and needs a peer with RFC
	// 6581. Over SCTP either end may send first without it. Default false.
	PeerToPeer bool

	// OwnAssociation makes Connect set up an association for this QP alone instead of sharing one.
	// Default false.
	OwnAssociation bool
}

// QP is a queue pair: one end of an RDMAP stream (RFC 5040 section 6). Its methods may be called
// from several goroutines.
type QP struct {
	dev                   *Device
	pd                    *PD
	id                    ddp.StreamID
	createdAt             time.Time
	inUse                 context.Context // ends when the QP has ended or is closed, or the Device is
	endUse                context.CancelFunc
	ownAssoc              bool
	negotiate, peerToPeer bool
	sendCQ                *CQ
	recvCQ                *CQ
	srq                   *SRQ       // nil: receives of its own
	peerHost              netip.Addr // of the peer, whose share of srq it takes; set with peer
	core                  *rdmap.QP  // guarded by the connection lock of peer; before there is one, by mu
	recvLock              sync.Mutex // of the core, for PostRecv; a leaf lock

	mu          sync.Mutex // a leaf lock
	reserved    bool       // guarded by mu: Connect or Accept has begun
	cqsToNotify []*CQ      // guarded by mu: to be notified when it is open
	peer        atomic.Pointer[peer]
	session     session // set with peer

	setupDone     chan struct{} // closed when Connect may return; setupErr and reply are set before
	setupErr      error
	acceptData    []byte
	peerSetup     *Setup // under the connection lock: what the peer said of itself; nil in a plain setup
	isSetUp       bool   // under the connection lock
	done          chan struct{}
	hasEnded      bool // under the connection lock
	chargedOctets int  // under the connection lock: octets charged to the peer whose session it is
	err           error

	windows       map[*MW]struct{} // guarded by Device.regionsMu
	windowsClosed bool             // guarded by Device.regionsMu: no further windows
	countedReads  int              // what it counts for in its PD
	idle          idleness         // owned by Device.sweepIdle
}

// CreateQP makes a QP, one end of an RDMAP stream (RFC 5040 section 6.1). Post receives on it, then
// Connect it or give it to Request.Accept, and Close it in the end. Errors: a *CQSizeError when the
// CQs have no room for its queues, a *LimitError, ErrForeign, or rdmap.ErrPD for an SRQ of another
// PD.
func (d *Device) CreateQP(cfg *QPConfig) (*QP, error) {
	c := *cfg
	for _, o := range []*Device{c.PD.dev, c.SendCQ.dev, c.RecvCQ.dev} {
		if o != d {
			return nil, ErrForeign
		}
	}
	lim := &d.limits
	for _, v := range []struct {
		what     string
		p        *int
		def, max int
	}{
		{"MaxSend", &c.MaxSend, 128, lim.MaxWR}, {"MaxRecv", &c.MaxRecv, 128, lim.MaxWR}, {"MaxSGE", &c.MaxSGE, 4, lim.MaxSGE},
		{"MaxInline", &c.MaxInline, 64, 1 << 16}, {"IRD", &c.IRD, 16, lim.MaxReads}, {"ORD", &c.ORD, 16, lim.MaxReads},
	} {
		if *v.p == 0 {
			*v.p = v.def
		}
		if *v.p > v.max {
			return nil, d.countRefusal(&LimitError{v.what, *v.p, v.max})
		}
		*v.p = max(*v.p, 0)
	}
	num := d.nextQP.Add(1)
	q := &QP{
		dev: d, pd: c.PD, id: ddp.StreamID(num), createdAt: time.Now(), ownAssoc: c.OwnAssociation, sendCQ: c.SendCQ,
		recvCQ:    c.RecvCQ,
		negotiate: c.Negotiate, peerToPeer: c.PeerToPeer,
		setupDone: make(chan struct{}), done: make(chan struct{}), windows: make(map[*MW]struct{}),
	}
	rc := rdmap.Config{
		Table: d.table, PD: c.PD.id, Stream: q.id, QPNum: num,
		SendCQ: cqRef{c.SendCQ, q}, RecvCQ: cqRef{c.RecvCQ, q}, RecvLock: &q.recvLock, Host: (*rdmapHost)(q),
		MaxSend: c.MaxSend, MaxRecv: c.MaxRecv, MaxSGE: c.MaxSGE, MaxInline: c.MaxInline, IRD: c.IRD, ORD: c.ORD,
		NoAtomics: d.cfg.NoAtomics, NoImmediate: d.cfg.NoImmediate,
	}
	if c.SRQ != nil {
		if c.SRQ.pd != c.PD {
			return nil, rdmap.ErrPD
		}
		q.srq, rc.SRQ = c.SRQ, srqRef{c.SRQ, q}
	}
	core, err := rdmap.NewQP(rc)
	if err != nil {
		return nil, err
	}
	q.core = core
	q.inUse, q.endUse = context.WithCancel(d.closing)
	if err := d.admitQP(q, c.IRD); err != nil {
		q.endUse()
		return nil, d.countRefusal(err)
	}
	err = c.SendCQ.attachQueue(q, c.MaxSend, nil)
	if err == nil {
		err = c.RecvCQ.attachQueue(q, c.MaxRecv, c.SRQ)
	}
	if err != nil {
		d.dropQP(q)
		return nil, d.countRefusal(err)
	}
	return q, nil
}

// heldOctets returns the octets that a QP keeps, its place in CQs included, when all that it has to
// send fits a few segments. Under the connection lock.
func (q *QP) heldOctets() int {
	return int(unsafe.Sizeof(*q)) + q.core.Held() + 1<<10
}

// Num returns the QP number, as in WC.QPNum. It is local to the Device.
func (q *QP) Num() uint32 { return uint32(q.id) }

// lockCore takes what guards the core now. Unlock with what it returns.
func (q *QP) lockCore() *peer {
	p := q.peer.Load()
	if p == nil {
		q.mu.Lock()
		if p = q.peer.Load(); p == nil {
			return nil
		}
		q.mu.Unlock()
	}
	return p.lockConn()
}

func (q *QP) unlockCore(p *peer) {
	if p != nil {
		p.conn.unlock()
		return
	}
	cqs := q.cqsToNotify
	q.cqsToNotify = nil
	q.mu.Unlock()
	for _, cq := range cqs {
		cq.notifyWaiters()
	}
}

// maxQuickPosts are resolved in less than a microsecond or two.
const maxQuickPosts = 8

// PostSend queues a request (RFC 5040 section 3.2); the QP must be connected. The memory that it
// names belongs to the QP until its completion. Errors are those of package rdmap; nothing is
// queued then.
func (q *QP) PostSend(wr *SendWR) error {
	p := q.lockCore()
	err := q.core.PostSend(wr)
	q.unlockAfterPost(p, 1)
	return err
}

// unlockAfterPost is unlockCore behind n requests. A few take so little time that the clock need
// not be read again.
func (q *QP) unlockAfterPost(p *peer, n int) {
	if p != nil && n <= maxQuickPosts {
		p.conn.unlockAt(p.now)
		return
	}
	q.unlockCore(p)
}

// PostSendList queues several requests under one lock, so that they leave in common packets (RFC
// 5043 section 11.2). It returns how many were queued before the error.
func (q *QP) PostSendList(wrs []SendWR) (n int, err error) {
	p := q.lockCore()
	for n < len(wrs) && err == nil {
		if err = q.core.PostSend(&wrs[n]); err == nil {
			n++
		}
	}
	q.unlockAfterPost(p, n)
	return n, err
}

// PostRecv queues a buffer for one Send of the peer (RFC 5041 section 5.1.2), or for Immediate
// Data, which leaves it as it is. It does not wait for the goroutine that handles the packets of
// the association.
func (q *QP) PostRecv(wr *RecvWR) error { return q.core.PostRecv(wr) }

// SetHighWater asks for one EventHighWater when more than n receives are in process. The peer has
// then begun to send to them and does not end its messages (RFC 5042 section 6.4.3.1). Ask again
// after the event. A negative n asks for none. The QP must be connected.
func (q *QP) SetHighWater(n int) {
	p := q.lockCore()
	q.core.SetHighWater(n)
	q.unlockCore(p)
}

// InProcess returns how many receives the peer has begun to fill and not completed.
func (q *QP) InProcess() int {
	p := q.lockCore()
	defer q.unlockCore(p)
	return q.core.InProcess()
}

// reserveSession makes sure that a QP is connected once.
func (q *QP) reserveSession() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reserved {
		return ErrInUse
	}
	q.reserved = true
	return nil
}

func (q *QP) cancelReservation() {
	q.mu.Lock()
	q.reserved = false
	q.mu.Unlock()
}

// bindSession ties the QP to its session; the caller holds the connection lock of p.
func (q *QP) bindSession(p *peer, s session) {
	s.setOwner(q)
	q.core.Measure(&p.now, &p.latency)
	q.peerHost = p.conn.remoteAddrLocked().Addr()
	q.mu.Lock()
	q.session = s
	q.peer.Store(p)
	q.mu.Unlock()
}

// finishSetup lets Connect return. Under the connection lock.
func (q *QP) finishSetup(err error) {
	if q.isSetUp {
		return
	}
	q.isSetUp = true
	q.setupErr = err
	if err == nil {
		if q.session.Active() {
			q.dev.countStat(&q.dev.stats.Connected)
		} else {
			q.dev.countStat(&q.dev.stats.Accepted)
		}
		q.core.Start()
	}
	q.peer.Load().deferCall(func() { close(q.setupDone) })
}

// handleTerminated reacts to the end of the session, or of the peer's half of it. Under the
// connection lock.
func (q *QP) handleTerminated(err error) {
	if !q.isSetUp { // the peer's stack refused the Initiate
		q.finishSetup(err)
		q.finishSession(err)
	}
}

// finishSession is called once nothing of the session is left. Under the connection lock.
func (q *QP) finishSession(err error) {
	if q.hasEnded {
		return
	}
	q.hasEnded = true
	if q.err == nil {
		q.err = err
	}
	q.core.Ended()
	p := q.peer.Load()
	q.unchargePeer(p)
	p.deferCall(func() {
		q.dev.dropQP(q)
		close(q.done)
		q.endUse()
	})
}

// unchargePeer gives up what the peer was charged. Under the connection lock.
func (q *QP) unchargePeer(p *peer) {
	p.chargedOctets -= q.chargedOctets
	q.chargedOctets = 0
}

// Disconnect ends the session gracefully (RFC 5040 section 6.2). No new requests are taken;
// everything posted before is carried out, then the peer is informed. It waits until nothing of the
// session is outstanding in either direction. For that the peer must disconnect too; its QP does so
// by itself once it has answered all.
func (q *QP) Disconnect(ctx context.Context) error {
	p := q.lockCore()
	q.core.Close()
	q.unlockCore(p)
	if p == nil {
		return nil
	}
	select {
	case <-q.done:
		return q.Err()
	case <-q.inUse.Done():
		return q.reasonOfClose()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reasonOfClose returns why a QP that is not in use any more has ended.
func (q *QP) reasonOfClose() error {
	select {
	case <-q.done:
		return q.Err()
	default: // its peer has not answered
		return cmp.Or(q.Err(), net.ErrClosed)
	}
}

// Close ends the session at once (RFC 5040 section 6.2); requests that are not complete are
// flushed. Closing again returns nil.
func (q *QP) Close() error {
	q.abortSession(net.ErrClosed)
	q.dev.dropQP(q)
	q.endUse()
	return nil
}

// abortSession aborts the session for a local reason.
func (q *QP) abortSession(reason error) {
	p := q.lockCore()
	q.core.Abort(reason)
	if p != nil {
		q.finishSetup(reason) // the peer may never answer
	}
	q.unlockCore(p)
}

// Done is closed when nothing of the session is outstanding any more; Err then says how it ended.
func (q *QP) Done() <-chan struct{} { return q.done }

// Err returns why the session failed, nil while it has not and after a graceful end. It is an
// *rdmap.StreamError where a Terminate message was sent or received (RFC 5040 section 5.4).
func (q *QP) Err() error {
	p := q.lockCore()
	defer q.unlockCore(p)
	if err := q.core.Err(); err != nil {
		return err
	}
	return q.err
}

// State returns the state of the QP (RFC 5040 section 6).
func (q *QP) State() rdmap.State {
	p := q.lockCore()
	defer q.unlockCore(p)
	return q.core.State()
}

// RemoteAddr returns the peer's address and port; it is not valid before Connect or Accept.
func (q *QP) RemoteAddr() netip.AddrPort {
	if p := q.peer.Load(); p != nil {
		return p.conn.remoteAddr()
	}
	return netip.AddrPort{}
}

// MULPDU returns the largest DDP segment in octets that the path takes now (RFC 5041 section 3). It
// is 0 before the QP is connected.
func (q *QP) MULPDU() int {
	p := q.lockCore()
	defer q.unlockCore(p)
	if p == nil {
		return 0
	}
	return q.session.MULPDU()
}

// detachMemory has the connection copy what it still needs of memory.
func (q *QP) detachMemory(memory []byte) {
	if p := q.peer.Load(); p != nil {
		p.conn.detach(q.session, memory)
	}
}

// deferNotify has cq notified when the connection lock is free, or mu before there is one.
func (q *QP) deferNotify(cq *CQ) {
	if p := q.peer.Load(); p != nil {
		p.deferNotify(cq)
	} else {
		q.cqsToNotify = append(q.cqsToNotify, cq)
	}
}

// rdmapHost is what the RDMAP core needs of its surroundings.
type rdmapHost QP

// SharedRegion reports whether another QP could use r: then the peer may not invalidate it (RFC
// 5040 section 8.1.1).
func (h *rdmapHost) SharedRegion(r *ddp.Region) bool {
	h.dev.mu.Lock()
	defer h.dev.mu.Unlock()
	return h.pd.numQPs > 1
}

// Detach makes the memory of requests free of retransmissions before it goes back to the user.
func (h *rdmapHost) Detach() (more bool) {
	return h.session != nil && h.session.Detach(nil)
}

// Failed is called as soon as the stream is known to fail; completions tell the user too.
func (h *rdmapHost) Failed(err *rdmap.StreamError) {
	if errors.Is(err, net.ErrClosed) {
		return // the program has closed it
	}
	h.dev.countFailure(err)
	if h.isSetUp {
		(*QP)(h).deferEvent(Event{Kind: EventQPFatal, QP: (*QP)(h), Err: err})
	}
}

// FlushLater has requests end when the packets that refer to their memory are written.
func (h *rdmapHost) FlushLater() {
	p := h.peer.Load()
	if len(p.flushingQPs) == 0 {
		p.conn.flushLater()
	}
	p.flushingQPs = append(p.flushingQPs, (*QP)(h))
}

// HighWater passes on what SetHighWater asked for.
func (h *rdmapHost) HighWater() { (*QP)(h).deferEvent(Event{Kind: EventHighWater, QP: (*QP)(h)}) }

// Broken ends the connection, with nothing more placed or sent.
func (h *rdmapHost) Broken(err *rdmap.InternalError) { h.peer.Load().conn.breakOff(err) }

// PeerClosed answers the peer's graceful end with ours, once all that was posted is done.
func (h *rdmapHost) PeerClosed() {
	p := h.peer.Load()
	p.closingQPs = append(p.closingQPs, (*QP)(h))
}

var _ rdmap.Host = (*rdmapHost)(nil)
