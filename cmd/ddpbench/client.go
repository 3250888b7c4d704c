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
	dev        *rdma.Device
	serverAddr netip.AddrPort
	reporter   *reporter
	document   *document // nil: none

	usage        usage
	allocCounter steadyAllocs // of the current run
	badMessages  uint64
	lastLatency  *latencyResult
	startPrinted bool
}

// errInterrupted is ^C before anything was measured.
var errInterrupted = errors.New("interrupted before anything was measured")

func (c *client) measureAllSizes(ctx context.Context) (err error) {
	if c.document, err = newDocument(c.options, c.reporter.linkName); err != nil {
		return err
	}
	defer func() {
		if wrote := c.document.finishReport(&c.usage); err == nil {
			err = wrote
		}
	}()
	var failed error
	for _, size := range c.messageSizes() {
		if failed = c.measureSize(ctx, size); failed != nil || ctx.Err() != nil {
			break
		}
	}
	if c.startPrinted {
		c.reporter.printSummary(&c.usage, c.badMessages, c.lastLatency)
	}
	switch {
	case !c.startPrinted && ctx.Err() != nil: // then it has failed
		return errInterrupted
	case failed != nil:
		return failed
	}
	return c.contentError()
}

// contentError returns an error if data did not arrive as it was sent.
func (c *client) contentError() error {
	if c.badMessages > 0 {
		return errContent
	}
	return nil
}

// measureSize runs one size, on QPs of its own.
func (c *client) measureSize(ctx context.Context, size int) error {
	p := c.params
	p.size, p.seed = size, randomSeed()
	e, err := newEngine(c.dev, p, true)
	if err != nil {
		return err
	}
	defer e.close()
	e.ownAssociations = c.ownAssociations
	if err := c.document.prepareEngine(e); err != nil {
		return err
	}
	if err := c.connectLanes(ctx, e, randomSeed()); err != nil {
		return err
	}
	if !c.startPrinted {
		c.startPrinted = true
		c.reporter.printStart(e, c.serverAddr)
	}
	if err := c.measureConnected(ctx, e); err != nil {
		return err
	}
	e.disconnectLanes()
	return nil
}

// measureConnected measures on QPs that are connected.
func (c *client) measureConnected(ctx context.Context, e *engine) (err error) {
	if c.document != nil {
		e.sampler = startSampler(e)
	}
	// A line is late by at most three eighths of an interval when nothing comes. What comes at the
	// end of an interval is part of it.
	e.tickInterval = c.interval/8 + c.interval/1000
	c.usage.beginRun(e)
	if e.isLatency {
		err = c.latencyRun(ctx, e)
	} else {
		err = c.bandwidthRun(ctx, e)
	}
	c.usage.endRun(e)
	c.badMessages += e.badMessages()
	return e.sessionError(err)
}

// sessionError returns the cause of a session's end in place of the errors that it led to.
func (e *engine) sessionError(err error) error {
	for _, l := range e.lanes {
		if why := l.qp.Err(); err != nil && why != nil {
			return &cli.SessionError{Err: why}
		}
	}
	return err
}

func randomSeed() uint64 {
	var b [8]byte
	rand.Read(b[:]) // it cannot fail
	return binary.BigEndian.Uint64(b[:])
}

// connectLanes connects all QPs. It waits for the server no longer than the timeout.
func (c *client) connectLanes(ctx context.Context, e *engine, run uint64) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	for i := range e.lanes {
		l, err := e.addLane(i)
		if err != nil {
			return err
		}
		h := hello{params: e.params, run: run, lane: i, target: l.localTarget, notesTarget: e.notesTarget()}
		answer, err := l.qp.Connect(ctx, c.serverAddr, h.encode())
		if err != nil {
			return err
		}
		if err := l.peerTarget.decodeAnswer(answer); err != nil {
			return err
		}
	}
	return nil
}

func (c *client) bandwidthRun(ctx context.Context, e *engine) error {
	done := func() uint64 { return e.completed }
	e.onTick = c.intervalTicker(e, done, func(n uint64, took time.Duration, s intervalStats) {
		c.reporter.printInterval(e.size, s, e.bandwidthOf(n, took), 0)
	})
	if err := e.leadRun(ctx); err != nil {
		return err
	}
	c.usage.Allocs = c.allocCounter.perMessage(done())
	b := e.ownBandwidth()
	b.peak += e.remoteBandwidth.peak
	b.avg += e.remoteBandwidth.avg
	b.rate += e.remoteBandwidth.rate
	c.reporter.printBandwidth(e.size, b)
	c.document.addBandwidth(e.size, b)
	c.document.addRun(e, nil)
	return nil
}

// intervalTicker returns a function that is called often. It watches the allocations, and reports
// each interval's counts if that is wanted. An interval ends with a completion, since many may come
// at once. If none has come for a quarter of the interval, it ends without one.
func (c *client) intervalTicker(e *engine, count func() uint64,
	report func(n uint64, took time.Duration, s intervalStats)) func(time.Time) {
	c.allocCounter = steadyAllocs{}
	begun, seen, again := time.Now(), uint64(0), uint64(0)
	if c.interval > 0 {
		again = e.trafficSoFar().Retransmits
	}
	last, came, had := begun, begun, uint64(0)
	return func(now time.Time) {
		n := count()
		due := n != had || now.Sub(came) >= c.interval/4
		if n != had {
			came, had = now, n
		}
		c.allocCounter.checkHalf(e, now, n)
		if took := now.Sub(last); c.interval > 0 && took >= c.interval && due {
			s := intervalStats{from: last.Sub(begun).Seconds(), to: now.Sub(begun).Seconds(),
				retransmits: e.trafficSoFar().Retransmits - again}
			if p, ok := pathInUse(e.lanes[0].qp); ok {
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
	e.onTick = c.intervalTicker(e, done, func(n uint64, took time.Duration, s intervalStats) {
		avg := 0.0 // nothing was answered
		if n > 0 {
			avg = e.tripMicros(took / time.Duration(n))
		}
		c.reporter.printInterval(e.size, s, bandwidth{iters: n}, avg)
	})
	if c.histogram || c.unsorted {
		e.roundTripTimes = make([]time.Duration, 0, e.iters)
	}
	if err := e.runPingPong(ctx, h); err != nil {
		return err
	}
	c.usage.Allocs = c.allocCounter.perMessage(done())
	l, err := e.latencyOf(h)
	if err != nil {
		return err
	}
	c.lastLatency = &l
	c.reporter.printLatency("result", e.size, l)
	c.document.addLatency(e.size, l)
	c.document.addRun(e, h)
	if e.roundTripTimes != nil {
		c.reporter.printAllResults(e.roundTripTimes)
	}
	return nil
}

// disconnectLanes ends the sessions gracefully, but does not wait long.
func (e *engine) disconnectLanes() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, l := range e.lanes {
		if l.qp.Disconnect(ctx) != nil {
			return
		}
	}
}
