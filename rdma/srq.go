package rdma

import (
	"sync"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// SRQ is a receive queue shared by the QPs of one protection domain: a buffer goes to whichever QP
// has a Send for it first. Each QP holds at most its MaxRecv buffers at a time (RFC 5041 section 8.3.2).
type SRQ struct {
	pd *PD

	mu sync.Mutex // a leaf lock
	q  *rdmap.SharedQueue
}

// CreateSRQ makes a shared receive queue of depth buffers with up to maxSGE pieces each.
func (p *PD) CreateSRQ(depth, maxSGE int) (*SRQ, error) {
	lim := &p.dev.limits
	if depth < 1 || depth > lim.MaxWR {
		return nil, &LimitError{"SRQ depth", depth, lim.MaxWR}
	}
	if maxSGE < 1 || maxSGE > lim.MaxSGE {
		return nil, &LimitError{"SRQ MaxSGE", maxSGE, lim.MaxSGE}
	}
	q, err := rdmap.NewSharedQueue(p.dev.table, p.id, depth, maxSGE)
	if err != nil {
		return nil, err
	}
	return &SRQ{pd: p, q: q}, nil
}

// PostRecv queues a buffer.
func (s *SRQ) PostRecv(wr *RecvWR) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.Post(wr)
}

// Len returns how many posted buffers no QP has taken yet.
func (s *SRQ) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.Len()
}

// sharedSource is an SRQ as the RDMAP core sees it.
type sharedSource SRQ

func (s *sharedSource) TakeBuffer() (ddp.RecvBuffer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.TakeBuffer()
}

func (s *sharedSource) ReleaseBuffer(token uint64) (id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.q.ReleaseBuffer(token)
}
