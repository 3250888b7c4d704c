package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/quota"
	"github.com/rddp-go/rddp/rdma"
)

// These bound what all clients together make a server do. One address may use half of that.
const (
	maxRuns            = 16
	maxServeMemory     = 2 * maxMemory
	maxWaitingRequests = 256              // requests that are being checked, or wait for a place
	joinTimeout        = 10 * time.Second // for all QPs of a run to arrive
	idleTimeout        = 60 * time.Second // without data of the client
)

// service runs what clients ask for, several at a time.
type service struct {
	dev      *rdma.Device
	reporter *reporter

	mu           sync.Mutex
	runs         map[runKey]*clientRun // guarded by mu
	runEnded     chan struct{}         // guarded by mu: closed when a run has ended
	runQuota     quota.Semaphore       // of runs
	memoryQuota  quota.Semaphore       // octets that runs need
	requestQuota quota.Semaphore       // requests
	placeTimeout time.Duration         // how long a request waits for a place
}

// runKey identifies a client's run. Its QPs may come over several associations.
type runKey struct {
	addr netip.Addr
	id   uint64
}

// clientRun is one client's run.
type clientRun struct {
	service   *service
	key       runKey
	from      netip.AddrPort
	allJoined chan struct{} // closed when all QPs are there

	mu        sync.Mutex
	engine    *engine // its lanes are guarded by mu until full
	joinedQPs int     // guarded by mu
	hasEnded  bool    // guarded by mu
}

var errServerStopped = errors.New("the server was stopped")

func newService(dev *rdma.Device, rep *reporter) *service {
	return &service{dev: dev, reporter: rep, runs: make(map[runKey]*clientRun), runEnded: make(chan struct{}),
		placeTimeout: joinTimeout,
		runQuota:     quota.Semaphore{Max: maxRuns}, memoryQuota: quota.Semaphore{Max: maxServeMemory},
		requestQuota: quota.Semaphore{Max: maxWaitingRequests}}
}

// acceptRequests serves until ctx ends, or the listener is closed.
func (s *service) acceptRequests(ctx context.Context, l *rdma.Listener) {
	var active sync.WaitGroup
	defer active.Wait()
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			return
		}
		from := req.RemoteAddr().Addr()
		if !s.requestQuota.TryAcquire(from, 1) {
			s.rejectRequest(req, cli.Usagef("too many requests wait here already: try again later"))
			continue
		}
		active.Go(func() {
			defer s.requestQuota.Release(from, 1)
			if err := s.joinRun(ctx, req, &active); err != nil {
				s.rejectRequest(req, err)
			}
		})
	}
}

func (s *service) rejectRequest(req *rdma.Request, err error) {
	req.Reject([]byte(cli.Explain(err)))
	s.reporter.printRefused(req.RemoteAddr(), err)
}

// joinRun adds a request's QP to its run. The first request begins the run. An error is for the
// client.
func (s *service) joinRun(ctx context.Context, req *rdma.Request, active *sync.WaitGroup) error {
	var h hello
	if err := h.decode(req.PrivateData()); err != nil {
		return err
	}
	from := req.RemoteAddr()
	r, first, err := s.awaitRun(ctx, s.placeTimeout, runKey{from.Addr(), h.run}, from, &h)
	if err != nil {
		return err
	}
	if first {
		active.Go(func() { r.serveRun(ctx) })
	}
	return r.acceptQP(req, &h)
}

// awaitRun is findRun, but waits up to patience for a place. A client that measures one size after
// the other may be back before this end has finished its last run.
func (s *service) awaitRun(ctx context.Context, patience time.Duration, key runKey, from netip.AddrPort,
	h *hello) (r *clientRun, first bool, err error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		r, first, freed, err := s.findRun(key, from, h)
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

// findRun returns the run that a request belongs to. If there is no place until another run has
// ended, freed is not nil.
func (s *service) findRun(key runKey, from netip.AddrPort, h *hello) (r *clientRun, first bool, freed <-chan struct{},
	err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.runs[key]; r != nil {
		return r, false, nil, nil
	}
	octets := h.endMemory(false)
	if !s.runQuota.TryAcquire(key.addr, 1) {
		return nil, false, s.runEnded, cli.Usagef("the server is busy with %d other runs: try again later", len(s.runs))
	}
	if !s.memoryQuota.TryAcquire(key.addr, octets) {
		s.runQuota.Release(key.addr, 1)
		return nil, false, s.runEnded,
			cli.Usagef("the server is busy with %d other runs, and has no memory for another: try again later",
				len(s.runs))
	}
	e, err := newEngine(s.dev, h.params, false)
	if err != nil {
		s.runQuota.Release(key.addr, 1)
		s.memoryQuota.Release(key.addr, octets)
		return nil, false, nil, err
	}
	e.ownAssociations = true // as far as this end can tell
	r = &clientRun{service: s, key: key, from: from, engine: e, allJoined: make(chan struct{})}
	s.runs[key] = r
	return r, true, nil, nil
}

// acceptQP accepts a QP.
func (r *clientRun) acceptQP(req *rdma.Request, h *hello) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.hasEnded:
		return cli.Usagef("the run has ended already")
	case r.engine.params != h.params:
		return cli.Usagef("the QPs of one run ask for different things")
	case r.engine.lanes[h.lane] != nil:
		return cli.Usagef("QP %d is there already", h.lane)
	}
	l, err := r.engine.addLane(h.lane)
	if err != nil {
		return err
	}
	l.peerTarget = h.target
	if h.lane == 0 {
		r.engine.clientNotesTarget = h.notesTarget
	}
	if err := req.Accept(l.qp, l.localTarget.encodeAnswer()); err != nil {
		return err
	}
	if r.joinedQPs++; r.joinedQPs == r.engine.qps {
		close(r.allJoined)
	}
	return nil
}

// serveRun waits for all QPs, and then follows the client through the run.
func (r *clientRun) serveRun(ctx context.Context) {
	err := r.followClient(ctx)
	r.mu.Lock()
	r.hasEnded = true
	r.mu.Unlock()
	e := r.engine
	var took time.Duration
	if !e.endedAt.IsZero() {
		took = e.endedAt.Sub(e.startedAt)
	}
	r.service.reporter.printRun(r.from, e, took, err)
	if err == nil {
		e.awaitSessionEnds()
	}
	e.close()
	r.service.mu.Lock()
	delete(r.service.runs, r.key)
	r.service.runQuota.Release(r.key.addr, 1)
	r.service.memoryQuota.Release(r.key.addr, e.endMemory(false))
	close(r.service.runEnded)
	r.service.runEnded = make(chan struct{})
	r.service.mu.Unlock()
}

func (r *clientRun) followClient(ctx context.Context) error {
	late := time.NewTimer(joinTimeout)
	defer late.Stop()
	select {
	case <-r.allJoined:
	case <-late.C:
		return fmt.Errorf("not all of its %d QPs have come within %v", r.engine.qps, joinTimeout)
	case <-ctx.Done():
		return errServerStopped
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go r.engine.watchIdle(ctx, func() { cancel(fmt.Errorf("the client has been silent for %v", idleTimeout)) })
	if r.engine.wantsNotes {
		r.engine.sampler = startSampler(r.engine)
	}
	if err := r.engine.followClient(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil && cause != context.Canceled {
			return cause
		}
		if ctx.Err() != nil {
			return errServerStopped
		}
		return err
	}
	return nil
}

// watchIdle calls silent when nothing has come from the client for a while, until ctx ends. RDMA
// Writes show only in the counters of what is below.
func (e *engine) watchIdle(ctx context.Context, silent func()) {
	ticker := time.NewTicker(idleTimeout)
	defer ticker.Stop()
	for seen := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		t := e.trafficSoFar()
		now := t.DataIn + t.FPDUsIn
		if now == seen {
			silent()
			return
		}
		seen = now
	}
}

// awaitSessionEnds waits until the sessions are over on both sides, but not for long.
func (e *engine) awaitSessionEnds() {
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
