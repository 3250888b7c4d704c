package rdma

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync"
	"weak"

	"github.com/rddp-go/rddp/rdma/rdmap"
)

// WC is a work completion.
//
//	type WC struct {
//		ID     uint64 // of the work request
//		Status Status
//		Opcode WCOpcode
//		// WCRecv and WCRecvImm: the peer asked for an Event (Send or Immediate Data with SE)
//		Solicited   bool
//		Invalidated bool // WCRecv: InvalidatedSTag was invalidated by the Send
//		QPNum       uint32
//		ByteLen     uint32 // WCRecv and WCRead: octets received
//		// InvalidatedSTag can no longer be used by the peer until it is enabled again.
//		InvalidatedSTag ddp.STag
//		Immediate       uint64 // WCRecvImm: what the peer sent
//		Original        uint64 // WCAtomic: the value before the operation
//	}
type WC = rdmap.WC

// ErrCQOverflow is returned by Poll once a completion queue has overflowed and its last completion
// was taken. Its QPs are in the error state; QPs on other completion queues are unaffected
// (RFC 5040 section 8.1.1).
var ErrCQOverflow = errors.New("rdma: completion queue overflow: poll completions before posting further requests")

// CQ is a completion queue of fixed depth. QPs push to it from whichever goroutine drives them.
type CQ struct {
	dev     *Device
	channel *CompChannel // nil: programs wait here

	mu               sync.Mutex // taken after a connection lock
	ring             []WC
	head, n          int
	armed            armState
	overflow         bool
	overflowReported bool                    // EventCQError was given
	destroyed        bool                    // destroyed
	qps              map[uint32]cqAttachment // by QP number: those that an overflow ends
	srqs             map[*SRQ]int            // attached by so many QPs
	freeDepth        int                     // what is left of the depth for further queues

	ready    signal // an armed completion has come
	ctxWatch contextWatch

	// eventPending: the CQ is among channel.due. hasLeftChannel: it reports there no more. Both are
	// guarded by channel.mu.
	eventPending, hasLeftChannel bool
	unackedEvents                int           // guarded by channel.mu: events got and not acknowledged
	allAcked                     chan struct{} // one token: the last of them is
}

type armState uint8

const (
	armNone armState = iota
	armSolicited
	armAny
)

// CreateCQ makes a completion queue with room for depth completions. QPs can attach to it as long
// as the depths of all their queues fit (RFC 5042 section 6.4.3.2); a shared receive queue counts
// once. A request occupies a place of its queue until it completes, and of the CQ until it is
// polled. So a CQ overflows only if a program posts anew before it has polled.
func (d *Device) CreateCQ(depth int) (*CQ, error) {
	if depth < 1 || depth > d.limits.MaxCQE {
		return nil, d.countRefusal(&LimitError{"CQ depth", depth, d.limits.MaxCQE})
	}
	c := &CQ{dev: d, ring: make([]WC, depth), qps: make(map[uint32]cqAttachment), srqs: make(map[*SRQ]int),
		freeDepth: depth, ready: d.newSignal(), allAcked: make(chan struct{}, 1)}
	c.rouseAtClose()
	return c, nil
}

// rouseAtClose has a goroutine that waits look again when the Device is closed. To wait for that as
// well each time would take longer. A CQ that nobody has any more is not kept for it.
func (c *CQ) rouseAtClose() {
	w := weak.Make(c)
	stop := context.AfterFunc(c.dev.closed, func() {
		if c := w.Value(); c != nil {
			c.ready.Set()
		}
	})
	runtime.AddCleanup(c, func(stop func() bool) { stop() }, stop)
}

// pushWC adds a completion. It reports whether somebody waits for it, or the queue has overflowed.
// In both cases notifyWaiters is called once the connection lock is free.
func (c *CQ) pushWC(wc WC) (wake bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.destroyed {
		return false
	}
	if c.n == len(c.ring) {
		c.overflow = true
		return !c.overflowReported
	}
	i := c.head + c.n
	if i >= len(c.ring) {
		i -= len(c.ring)
	}
	c.ring[i] = wc
	c.n++
	c.ready.Brings()
	if c.armed == armAny || c.armed == armSolicited && (wc.Solicited || wc.Status != rdmap.StatusSuccess) {
		c.armed = armNone
		return true
	}
	return false
}

// notifyWaiters wakes the waiter, and ends the QPs of a queue that has overflowed. The caller holds
// no connection lock.
func (c *CQ) notifyWaiters() {
	c.ready.Set()
	if c.channel != nil {
		c.channel.putEvent(c)
	}
	c.mu.Lock()
	var blamed []*QP
	first := c.overflow && !c.overflowReported
	if c.overflow {
		c.overflowReported = true
		for _, a := range c.qps {
			blamed = append(blamed, a.qp)
		}
	}
	c.mu.Unlock()
	if first {
		c.dev.reportEvent(Event{Kind: EventCQError, CQ: c, Err: ErrCQOverflow})
	}
	for _, q := range blamed {
		q.abortSession(ErrCQOverflow)
	}
}

// Resize gives the queue another depth. No completion is lost, and QPs need not stop meanwhile. If
// it fails, nothing has changed. *CQSizeError: the depth is less than what waits to be polled, or
// than what the attached queues can have outstanding. Other errors: a *LimitError, ErrCQOverflow
// after that, and ErrDestroyed.
func (c *CQ) Resize(depth int) error {
	if depth < 1 || depth > c.dev.limits.MaxCQE {
		return c.dev.countRefusal(&LimitError{"CQ depth", depth, c.dev.limits.MaxCQE})
	}
	ring := make([]WC, depth)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch need := max(c.n, len(c.ring)-c.freeDepth+c.countLeftover()); {
	case c.destroyed:
		return ErrDestroyed
	case c.overflow:
		return ErrCQOverflow
	case depth < need:
		return c.dev.countRefusal(&CQSizeError{Depth: depth, Need: need})
	}
	n := copy(ring, c.ring[c.head:min(c.head+c.n, len(c.ring))])
	copy(ring[n:], c.ring[:c.n-n])
	c.freeDepth += depth - len(c.ring)
	c.ring, c.head = ring, 0
	return nil
}

// Poll takes up to len(wcs) completions, oldest first, and never blocks.
func (c *CQ) Poll(wcs []WC) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.destroyed {
		return 0, ErrDestroyed
	}
	if c.n == 0 && c.overflow {
		return 0, ErrCQOverflow
	}
	for n < len(wcs) && c.n > 0 {
		wcs[n] = c.ring[c.head]
		if c.head++; c.head == len(c.ring) {
			c.head = 0
		}
		c.n--
		n++
	}
	return n, nil
}

// Arm asks for one token on Ready, or one event of the CQ's CompChannel, at the next completion.
// With solicitedOnly it is the next one that the peer solicited or that failed (ibv_req_notify_cq).
// Completions that are already there do not count: arm, poll once more, then wait, or use Wait.
func (c *CQ) Arm(solicitedOnly bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if solicitedOnly && c.armed != armAny {
		c.armed = armSolicited
	} else {
		c.armed = armAny
	}
}

// Ready gets a token when an armed completion has come, for use in select.
func (c *CQ) Ready() <-chan struct{} { return c.ready.C() }

// Wait returns when there is a completion to poll, or when the queue has overflowed or is
// destroyed. It fails with net.ErrClosed when there is none after Device.Close, and with the
// context's error if that ends first. One goroutine at a time may wait on a CQ.
func (c *CQ) Wait(ctx context.Context) error {
	for {
		over := c.dev.closed.Err() != nil // then all has completed
		c.mu.Lock()
		c.armed = armAny
		some := c.n > 0 || c.overflow || c.destroyed
		c.mu.Unlock()
		switch {
		case some:
			return nil
		case over:
			return net.ErrClosed
		}
		if !c.waitReady(ctx) {
			return ctx.Err()
		}
	}
}

// cqAttachment is what the queues of one QP can have outstanding on a CQ.
type cqAttachment struct {
	qp    *QP
	depth int
	srq   *SRQ // nil: none of its queues
}

// attachQueue makes room for a queue of q: depth requests, or with srq those of the shared queue,
// unless they are counted already.
func (c *CQ) attachQueue(q *QP, depth int, srq *SRQ) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.destroyed {
		return ErrDestroyed
	}
	need := depth
	if srq != nil {
		depth, need = 0, 0
		if c.srqs[srq] == 0 {
			need = srq.depth
		}
	}
	if free := c.freeDepth - c.countLeftover(); need > free {
		return &CQSizeError{Depth: len(c.ring), Need: len(c.ring) - free + need}
	}
	c.freeDepth -= need
	a := c.qps[q.Num()]
	a.qp = q
	a.depth += depth
	if srq != nil {
		a.srq = srq
		c.srqs[srq]++
	}
	c.qps[q.Num()] = a
	return nil
}

// countLeftover counts the completions that nobody has polled yet of QPs that have left.
func (c *CQ) countLeftover() (n int) {
	for i := range c.n {
		if _, ok := c.qps[c.ring[(c.head+i)%len(c.ring)].QPNum]; !ok {
			n++
		}
	}
	return n
}

// detachQP takes the queues of q away.
func (c *CQ) detachQP(q *QP) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.qps[q.Num()]
	delete(c.qps, q.Num())
	c.freeDepth += a.depth
	if a.srq == nil {
		return
	}
	if c.srqs[a.srq]--; c.srqs[a.srq] == 0 {
		delete(c.srqs, a.srq)
		c.freeDepth += a.srq.depth
	}
}

// cqRef is a completion queue as a QP of one connection sees it. It collects wake-ups until the
// connection lock is free.
type cqRef struct {
	cq *CQ
	qp *QP
}

// Push adds a completion under the QP's lock.
func (r cqRef) Push(wc WC) {
	if r.cq.pushWC(wc) {
		r.qp.deferNotify(r.cq)
	}
}
