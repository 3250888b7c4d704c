package rdma

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

// ErrDestroyed: the object was destroyed.
var ErrDestroyed = errors.New("rdma: the object was destroyed")

// InUseError refuses to destroy what others still use. It is syscall.EBUSY for errors.Is, as
// libibverbs returns.
type InUseError struct {
	What  string // the kind of the object
	By    string // the kind of those that use it, such as "QPs"
	Count int    // how many do
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("rdma: the %s is in use by %d %s; end them first", e.What, e.Count, e.By)
}

// Is reports whether target is syscall.EBUSY.
func (e *InUseError) Is(target error) bool { return target == syscall.EBUSY }

// Destroy ends the completion queue (ibv_destroy_cq). It fails with an *InUseError while QPs are
// attached. Close them, or let them end; first poll what they have completed, since that is lost.
//
// Destroy waits until the events that the CQ's CompChannel has given are acknowledged, or ctx ends:
// then call Destroy again. From the first call without an *InUseError on, the CQ reports nothing
// more, and other calls fail with ErrDestroyed. Destroying it again returns nil.
func (c *CQ) Destroy(ctx context.Context) error {
	c.mu.Lock()
	if n := len(c.qps); n > 0 {
		c.mu.Unlock()
		return &InUseError{"CQ", "QPs", n}
	}
	c.destroyed, c.ring, c.head, c.n = true, nil, 0, 0
	c.mu.Unlock()
	c.ready.Set() // a waiter sees that it is gone
	if c.channel == nil {
		return nil
	}
	return c.channel.removeCQ(ctx, c)
}

// Destroy ends the shared receive queue (ibv_destroy_srq); buffers that nobody has taken are the
// program's again. It fails with an *InUseError while QPs use it: Close them, or let them end.
// Destroying it again returns nil.
func (s *SRQ) Destroy() error {
	d := s.pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.numQPs > 0 {
		return &InUseError{"SRQ", "QPs", s.numQPs}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.destroyed {
		s.destroyed = true
		s.pd.numSRQs--
		for ok := true; ok; _, ok = s.queue.Flush() {
		}
	}
	return nil
}

// Destroy ends the protection domain (ibv_dealloc_pd). It fails with an *InUseError while there are
// QPs, shared receive queues, or regions that were not deregistered. Destroying it again returns
// nil.
func (p *PD) Destroy() error {
	d := p.dev
	d.regionsMu.Lock()
	defer d.regionsMu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, use := range []struct {
		by string
		n  int
	}{{"QPs", p.numQPs}, {"SRQs", p.numSRQs}, {"regions and windows", d.table.LenIn(p.id)}} {
		if use.n > 0 {
			return &InUseError{"PD", use.by, use.n}
		}
	}
	p.destroyed = true
	return nil
}
