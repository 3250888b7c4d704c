package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
)

// client measures against one server: one run for each size.
type client struct {
	*options
	dev *rdma.Device
	to  netip.AddrPort
	rep *reporter
	doc *document // nil: none

	use     usage
	steady  steady // of the run that is under way
	bad     uint64
	last    *latency
	started bool
}

// errInterrupted is ^C before anything was measured.
var errInterrupted = errors.New("interrupted before anything was measured")

func (c *client) run(ctx context.Context) (err error) {
	if c.doc, err = newDocument(c.options, c.rep.link); err != nil {
		return err
	}
	defer func() {
		if wrote := c.doc.close(&c.use); err == nil {
			err = wrote
		}
	}()
	var failed error
	for _, size := range c.sizes() {
		if failed = c.runSize(ctx, size); failed != nil || ctx.Err() != nil {
			break
		}
	}
	if c.started {
		c.rep.end(&c.use, c.bad, c.last)
	}
	switch {
	case !c.started && ctx.Err() != nil: // then it has failed
		return errInterrupted
	case failed != nil:
		return failed
	}
	return c.verdict()
}

// verdict says whether what came was what had been sent.
func (c *client) verdict() error {
	if c.bad > 0 {
		return errContent
	}
	return nil
}

// runSize runs one size, on QPs of its own.
func (c *client) runSize(ctx context.Context, size int) error {
	p := c.params
	p.size, p.seed = size, random()
	e, err := newEngine(c.dev, p, true)
	if err != nil {
		return err
	}
	defer e.close()
	e.own = c.own
	if err := c.doc.prepare(e); err != nil {
		return err
	}
	if err := c.connect(ctx, e, random()); err != nil {
		return err
	}
	if !c.started {
		c.started = true
		c.rep.start(e, c.to)
	}
	if err := c.measure(ctx, e); err != nil {
		return err
	}
	e.leave()
	return nil
}

// measure runs what is measured on QPs that are connected.
func (c *client) measure(ctx context.Context, e *engine) (err error) {
	if c.doc != nil {
		e.sampler = watchOver(e)
	}
	// A line is late by three eighths at most when nothing comes, and what comes at the end of an interval is part of it.
	e.every = c.interval/8 + c.interval/1000
	c.use.begin(e)
	if e.lat {
		err = c.latencyRun(ctx, e)
	} else {
		err = c.bandwidthRun(ctx, e)
	}
	c.use.end(e)
	c.bad += e.bad()
	return e.ended(err)
}

// ended puts what has ended a session in place of what that led to.
func (e *engine) ended(err error) error {
	for _, l := range e.lanes {
		if why := l.qp.Err(); err != nil && why != nil {
			return &cli.SessionError{Err: why}
		}
	}
	return err
}

func random() uint64 {
	var b [8]byte
	rand.Read(b[:]) // which cannot fail
	return binary.BigEndian.Uint64(b[:])
}

// connect connects all QPs, and waits for the server no longer than the timeout.
func (c *client) connect(ctx context.Context, e *engine, run uint64) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for i := range e.lanes {
		l, err := e.addLane(i)
		if err != nil {
			return err
		}
		h := hello{params: e.params, run: run, lane: i, target: l.own, tellTo: e.notesTarget()}
		answer, err := l.qp.Connect(ctx, c.to, h.encode())
		if err != nil {
			return err
		}
		if err := l.peer.decodeAnswer(answer); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) bandwidthRun(ctx context.Context, e *engine) error {
	done := func() uint64 { return e.completed }
	e.tick = c.every(e, done, func(n uint64, took time.Duration, s span) {
		c.rep.interval(e.size, s, e.rates(n, took), 0)
	})
	if err := e.lead(ctx); err != nil {
		return err
	}
	c.use.Allocs = c.steady.perMessage(done())
	b := e.bandwidth()
	b.peak += e.remote.peak
	b.avg += e.remote.avg
	b.rate += e.remote.rate
	c.rep.bandwidth(e.size, b)
	c.doc.bandwidth(e.size, b)
	c.doc.end(e, nil)
	return nil
}

// every returns a function that, called often, watches the allocations, and reports what has been
// counted in each interval, if that is wanted. An interval ends with a completion, since many may come at once; where none has come for
// a quarter of it, it ends without.
func (c *client) every(e *engine, count func() uint64, report func(n uint64, took time.Duration, s span)) func(time.Time) {
	c.steady = steady{}
	begun, seen, again := time.Now(), uint64(0), uint64(0)
	if c.interval > 0 {
		again = e.traffic().Retransmits
	}
	last, came, had := begun, begun, uint64(0)
	return func(now time.Time) {
		n := count()
		due := n != had || now.Sub(came) >= c.interval/4
		if n != had {
			came, had = now, n
		}
		c.steady.look(e, now, n)
		if took := now.Sub(last); c.interval > 0 && took >= c.interval && due {
			s := span{from: last.Sub(begun).Seconds(), to: now.Sub(begun).Seconds(), retransmits: e.traffic().Retransmits - again}
			if p, ok := current(e.lanes[0].qp); ok {
				s.path, s.paths = pathOf(&p, true), len(e.lanes[0].qp.Paths())
			}
			report(n-seen, took, s)
			last, seen, again = now, n, again+s.retransmits
		}
	}
}

func (c *client) latencyRun(ctx context.Context, e *engine) error {
	h := newHistogram()
	done := func() uint64 { return uint64(h.TotalCount()) }
	e.tick = c.every(e, done, func(n uint64, took time.Duration, s span) {
		avg := 0.0 // nothing has been answered
		if n > 0 {
			avg = e.trip(took / time.Duration(n))
		}
		c.rep.interval(e.size, s, bandwidth{iters: n}, avg)
	})
	if c.histogram || c.unsorted {
		e.results = make([]time.Duration, 0, e.iters)
	}
	if err := e.pingPong(ctx, h); err != nil {
		return err
	}
	c.use.Allocs = c.steady.perMessage(done())
	l, err := e.latency(h)
	if err != nil {
		return err
	}
	c.last = &l
	c.rep.latency("result", e.size, l)
	c.doc.latency(e.size, l)
	c.doc.end(e, h)
	if e.results != nil {
		c.rep.all(e.results)
	}
	return nil
}

// leave ends the sessions gracefully, but not for long.
func (e *engine) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, l := range e.lanes {
		if l.qp.Disconnect(ctx) != nil {
			return
		}
	}
}
