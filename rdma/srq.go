package rdma

import (
	"sync"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/fair"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// SRQ is a receive queue shared by the QPs of one protection domain: a buffer goes to whichever QP
// has a Send for it first. Each QP holds at most its MaxRecv buffers at a time (RFC 5041 section 8.3.2), for messages that are not complete, and all QPs of a peer together
// no more than are left for others: half of them if it is alone. What counts as a peer is an address, of IPv6 also the networks that it may be chosen from. A peer that
// needs more ends its own stream. So post twice what one peer may have under way. SetLimit and QP.SetHighWater tell the program before it comes to that (RFC 5042
// section 6.4.3.1).
type SRQ struct {
	pd    *PD
	depth int
	qps   int // guarded by Device.mu: that take from it

	mu    sync.Mutex // a leaf lock, after Device.mu
	q     *rdmap.SharedQueue
	held  fair.Shares // of buffers that QPs have taken
	gone  bool        // destroyed; changed under Device.mu too
	limit int         // below it EventSRQLimit is due; 0: not asked for
}

// CreateSRQ makes a shared receive queue of depth buffers with up to maxSGE pieces each.
func (p *PD) CreateSRQ(depth, maxSGE int) (*SRQ, error) {
	lim := &p.dev.limits
	if depth < 1 || depth > lim.MaxWR {
		return nil, p.dev.limited(&LimitError{"SRQ depth", depth, lim.MaxWR})
	}
	if maxSGE < 1 || maxSGE > lim.MaxSGE {
		return nil, p.dev.limited(&LimitError{"SRQ MaxSGE", maxSGE, lim.MaxSGE})
	}
	q, err := rdmap.NewSharedQueue(p.dev.table, p.id, depth, maxSGE)
	if err != nil {
		return nil, err
	}
	p.dev.mu.Lock()
	defer p.dev.mu.Unlock()
	if p.gone {
		return nil, ErrDestroyed
	}
	p.srqs++
	return &SRQ{pd: p, depth: depth, q: q}, nil
}

// PostRecv queues a buffer.
func (s *SRQ) PostRecv(wr *RecvWR) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return ErrDestroyed
	}
	return s.q.Post(wr)
}

// Len returns how many posted buffers no QP has taken yet.
func (s *SRQ) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.Len()
}

// SetLimit asks for one EventSRQLimit when a QP takes a buffer and leaves fewer than n (the srq_limit of
// libibverbs), or at once when there are fewer already: the sign to post more, or to look for the peer that takes
// too many. Ask again after the event. 0 asks for none.
func (s *SRQ) SetLimit(n int) {
	s.mu.Lock()
	s.limit = n
	low := s.low()
	s.mu.Unlock()
	if low {
		s.pd.dev.report(Event{Kind: EventSRQLimit, SRQ: s})
	}
}

// low reports, once, that there are fewer buffers than was asked for.
func (s *SRQ) low() bool {
	if s.q.Len() >= s.limit {
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
	ok, who := false, r.qp.host
	r.s.mu.Lock()
	if r.s.held.Room(who, int64(r.s.q.Len())) > 0 {
		if b, ok = r.s.q.TakeBuffer(); ok {
			r.s.held.Take(who, 1)
		}
	}
	low := r.s.low()
	r.s.mu.Unlock()
	if low {
		r.qp.event(Event{Kind: EventSRQLimit, SRQ: r.s, QP: r.qp})
	}
	return b, ok
}

func (r srqRef) ReleaseBuffer(token uint64) (id uint64) {
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.held.Take(r.qp.host, -1)
	return r.s.q.ReleaseBuffer(token)
}
