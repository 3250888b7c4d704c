package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/fair"
	"github.com/rddp-go/rddp/rdma"
)

// Bounds of what all clients together make a server do; one address half of that.
const (
	maxRuns        = 16
	maxServeMemory = 2 * maxMemory
	maxWaiting     = 256              // requests that are looked at, or wait for a place
	joinTimeout    = 10 * time.Second // for all QPs of a run to be there
	idleTimeout    = 60 * time.Second // without data of the client
)

// service runs what clients ask for, several at a time.
type service struct {
	dev *rdma.Device
	rep *reporter

	mu       sync.Mutex
	runs     map[runKey]*clientRun // guarded by mu
	freed    chan struct{}         // guarded by mu: closed when a run has ended
	places   fair.Store            // of runs
	memory   fair.Store            // octets that runs need
	waiting  fair.Store            // requests
	patience time.Duration         // how long a request waits for a place
}

// runKey tells the runs of clients apart. The QPs of one may come over several associations.
type runKey struct {
	addr netip.Addr
	id   uint64
}

// clientRun is one client's run.
type clientRun struct {
	s    *service
	key  runKey
	from netip.AddrPort
	full chan struct{} // closed when all QPs are there

	mu     sync.Mutex
	e      *engine // its lanes are guarded by mu until full
	joined int     // guarded by mu
	over   bool    // guarded by mu
}

var errStopped = errors.New("the server was stopped")

func newService(dev *rdma.Device, rep *reporter) *service {
	return &service{dev: dev, rep: rep, runs: make(map[runKey]*clientRun), freed: make(chan struct{}), patience: joinTimeout,
		places: fair.Store{Max: maxRuns}, memory: fair.Store{Max: maxServeMemory}, waiting: fair.Store{Max: maxWaiting}}
}

// accept serves until ctx ends, or the listener is closed.
func (s *service) accept(ctx context.Context, l *rdma.Listener) {
	var active sync.WaitGroup
	defer active.Wait()
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			return
		}
		from := req.RemoteAddr().Addr()
		if !s.waiting.Take(from, 1) {
			s.refuse(req, cli.Usagef("too many requests wait here already: try again later"))
			continue
		}
		active.Go(func() {
			defer s.waiting.Give(from, 1)
			if err := s.join(ctx, req, &active); err != nil {
				s.refuse(req, err)
			}
		})
	}
}

func (s *service) refuse(req *rdma.Request, err error) {
	req.Reject([]byte(cli.Explain(err)))
	s.rep.refused(req.RemoteAddr(), err)
}

// join makes a request's QP part of its run; the first one begins the run. An error is for the client.
func (s *service) join(ctx context.Context, req *rdma.Request, active *sync.WaitGroup) error {
	var h hello
	if err := h.decode(req.PrivateData()); err != nil {
		return err
	}
	from := req.RemoteAddr()
	r, first, err := s.await(ctx, s.patience, runKey{from.Addr(), h.run}, from, &h)
	if err != nil {
		return err
	}
	if first {
		active.Go(func() { r.serve(ctx) })
	}
	return r.add(req, &h)
}

// await is find for a client that measures one size after the other, and has ended its runs while this end is still busy with ending them.
func (s *service) await(ctx context.Context, patience time.Duration, key runKey, from netip.AddrPort, h *hello) (r *clientRun, first bool, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		r, first, freed, err := s.find(key, from, h)
		if freed == nil {
			return r, first, err
		}
		select {
		case <-freed:
		case <-timer.C:
			return nil, false, err
		case <-ctx.Done():
			return nil, false, err
		}
	}
}

// find returns the run that a request belongs to; freed is not nil where there is no place until another run has ended.
func (s *service) find(key runKey, from netip.AddrPort, h *hello) (r *clientRun, first bool, freed <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[key]; r != nil {
		return r, false, nil, nil
	}
	octets := h.memory(false)
	if !s.places.Take(key.addr, 1) {
		return nil, false, s.freed, cli.Usagef("the server is busy with %d other runs: try again later", len(s.runs))
	}
	if !s.memory.Take(key.addr, octets) {
		s.places.Give(key.addr, 1)
		return nil, false, s.freed, cli.Usagef("the server is busy with %d other runs, and has no memory for another: try again later", len(s.runs))
	}
	e, err := newEngine(s.dev, h.params, false)
	if err != nil {
		s.places.Give(key.addr, 1)
		s.memory.Give(key.addr, octets)
		return nil, false, nil, err
	}
	e.own = true // as far as this end knows
	r = &clientRun{s: s, key: key, from: from, e: e, full: make(chan struct{})}
	s.runs[key] = r
	return r, true, nil, nil
}

// add accepts a QP.
func (r *clientRun) add(req *rdma.Request, h *hello) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return cli.Usagef("the run has ended already")
	case r.e.params != h.params:
		return cli.Usagef("the QPs of one run ask for different things")
	case r.e.lanes[h.lane] != nil:
		return cli.Usagef("QP %d is there already", h.lane)
	}
	l, err := r.e.addLane(h.lane)
	if err != nil {
		return err
	}
	l.peer = h.target
	if h.lane == 0 {
		r.e.tellTo = h.tellTo
	}
	if err := req.Accept(l.qp, l.own.answer()); err != nil {
		return err
	}
	if r.joined++; r.joined == r.e.qps {
		close(r.full)
	}
	return nil
}

// serve waits for all QPs, and follows the client through the run.
func (r *clientRun) serve(ctx context.Context) {
	err := r.follow(ctx)
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	e := r.e
	var took time.Duration
	if !e.end.IsZero() {
		took = e.end.Sub(e.start)
	}
	r.s.rep.served(r.from, e, took, err)
	if err == nil {
		e.farewell()
	}
	e.close()
	r.s.mu.Lock()
	delete(r.s.runs, r.key)
	r.s.places.Give(r.key.addr, 1)
	r.s.memory.Give(r.key.addr, e.memory(false))
	close(r.s.freed)
	r.s.freed = make(chan struct{})
	r.s.mu.Unlock()
}

func (r *clientRun) follow(ctx context.Context) error {
	late := time.NewTimer(joinTimeout)
	defer late.Stop()
	select {
	case <-r.full:
	case <-late.C:
		return fmt.Errorf("not all of its %d QPs have come within %v", r.e.qps, joinTimeout)
	case <-ctx.Done():
		return errStopped
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go r.e.watchOver(ctx, func() { cancel(fmt.Errorf("the client has been silent for %v", idleTimeout)) })
	if r.e.notes {
		r.e.sampler = watchOver(r.e)
	}
	if err := r.e.follow(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
			return cause
		}
		if ctx.Err() != nil {
			return errStopped
		}
		return err
	}
	return nil
}

// watchOver calls silent when nothing has come from the client for a while, until ctx ends. RDMA Writes
// leave no trace but in the counters of SCTP.
func (e *engine) watchOver(ctx context.Context, silent func()) {
	ticker := time.NewTicker(idleTimeout)
	defer ticker.Stop()
	for seen := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := e.traffic().DataIn
		if now == seen {
			silent()
			return
		}
		seen = now
	}
}

// farewell waits until the sessions are over on both sides, but not for long.
func (e *engine) farewell() {
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	for _, l := range e.lanes {
		select {
		case <-l.qp.Done():
		case <-timer.C:
			return
		}
	}
}
