package rdma

import (
	"sync"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// SRQ is a receive queue shared by the QPs of one protection domain: a buffer goes to whichever QP
// has a Send for it first.
//
// Each QP holds at most its MaxRecv buffers at a time, for messages that are not complete (RFC 5041
// section 8.3.2). All QPs of a peer together hold no more than are left for others: half of them if
// it is alone. A peer is an address, of IPv6 also the networks that it may be chosen from. A peer
// that needs more ends its own stream. So post twice what one peer may have under way. SetLimit and
// QP.SetHighWater warn the program before that (RFC 5042 section 6.4.3.1).
type SRQ struct {
	pd     *PD
	depth  int
	numQPs int // guarded by Device.mu: that take from it

	mu         sync.Mutex // a leaf lock, after Device.mu
	queue      *rdmap.SharedQueue
	heldShares quota.ClientShares // of buffers that QPs have taken
	destroyed  bool               // destroyed; changed under Device.mu too
	limit      int                // below it EventSRQLimit is due; 0: not asked for
}

// CreateSRQ makes a shared receive queue of depth buffers with up to maxSGE pieces each.
func (p *PD) CreateSRQ(depth, maxSGE int) (*SRQ, error) {
	lim := &p.dev.limits
	if depth < 1 || depth > lim.MaxWR {
		return nil, p.dev.countRefusal(&LimitError{"SRQ depth", depth, lim.MaxWR})
	}
	if maxSGE < 1 || maxSGE > lim.MaxSGE {
		return nil, p.dev.countRefusal(&LimitError{"SRQ MaxSGE", maxSGE, lim.MaxSGE})
	}
	q, err := rdmap.NewSharedQueue(p.dev.table, p.id, depth, maxSGE)
	if err != nil {
		return nil, err
	}
	p.dev.mu.Lock()
	defer p.dev.mu.Unlock()
	if p.destroyed {
		return nil, ErrDestroyed
	}
	p.numSRQs++
	return &SRQ{pd: p, depth: depth, queue: q}, nil
}

// PostRecv queues a buffer.
func (s *SRQ) PostRecv(wr *RecvWR) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.destroyed {
		return ErrDestroyed
	}
	return s.queue.Post(wr)
}

// Len returns how many posted buffers no QP has taken yet.
func (s *SRQ) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len()
}

// SetLimit asks for one EventSRQLimit when a QP takes a buffer and leaves fewer than n (the
// srq_limit of libibverbs). It comes at once if there are fewer already. It is the sign to post
// more, or to look for the peer that takes too many. Ask again after the event. 0 asks for none.
func (s *SRQ) SetLimit(n int) {
	s.mu.Lock()
	s.limit = n
	low := s.limitReached()
	s.mu.Unlock()
	if low {
		s.pd.dev.reportEvent(Event{Kind: EventSRQLimit, SRQ: s})
	}
}

// limitReached reports, once, that there are fewer buffers than was asked for.
func (s *SRQ) limitReached() bool {
	if s.queue.Len() >= s.limit {
		return false
	}
	s.limit = 0
	return true
}

// srqRef is an SRQ as the core of one QP sees it.
type srqRef struct {
	s  *SRQ
	qp *QP
}

func (r srqRef) TakeBuffer() (ddp.RecvBuffer, bool) {
	var b ddp.RecvBuffer
	ok, who := false, r.qp.peerHost
	r.s.mu.Lock()
	if r.s.heldShares.RoomFor(who, int64(r.s.queue.Len())) > 0 {
		if b, ok = r.s.queue.TakeBuffer(); ok {
			r.s.heldShares.AddHeld(who, 1)
		}
	}
	low := r.s.limitReached()
	r.s.mu.Unlock()
	if low {
		r.qp.deferEvent(Event{Kind: EventSRQLimit, SRQ: r.s, QP: r.qp})
	}
	return b, ok
}

func (r srqRef) ReleaseBuffer(token uint64) (id uint64) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.heldShares.AddHeld(r.qp.peerHost, -1)
	return r.s.queue.ReleaseBuffer(token)
}
