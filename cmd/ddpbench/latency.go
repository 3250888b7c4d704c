package main

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rddp-go/rddp/rdma"
)

// notice is the Send behind an RDMA Write whose arrival it announces.
var notice = [1]byte{'!'}

// ping posts one message, or the answer to one, and then the receive buffer of the one that it follows: there are more.
func (e *engine) ping(l *lane) error {
	l.posted++
	e.message(l, &e.wrs[0], l.posted-1)
	n := 1
	switch e.verb {
	case verbSend:
		e.wrs[0].Flags = rdma.Unsignaled
	case verbWrite:
		e.wrs[0].Flags = rdma.Unsignaled
		e.wrs[1] = rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Unsignaled, Inline: notice[:]}
		n = 2
	}
	if _, err := l.qp.PostSendList(e.wrs[:n]); err != nil {
		return err
	}
	return l.repost()
}

// pong reports whether the last message is answered.
func (e *engine) pong(l *lane) bool {
	if e.verb.pulls() {
		return l.done == l.posted
	}
	return l.got == l.posted
}

// maxRoundTrip bounds what the histogram can tell apart.
const maxRoundTrip = time.Hour

// newHistogram is for nanoseconds, to three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(maxRoundTrip), 3) }

// pingPong is the client's part of a latency run. It records the time from one message to the next, a
// round trip.
func (e *engine) pingPong(ctx context.Context, h *hdrhistogram.Histogram) error {
	l := e.lanes[0]
	l.begun = true
	if err := l.sendControl(control{kind: ctlGo}); err != nil {
		return err
	}
	e.begin(time.Now())
	err := e.roundTrips(ctx, l, h)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return e.drive(ctx, e.finished)
}

// roundTrips posts the next message as soon as the last is answered, and sees to everything else while it is under way.
func (e *engine) roundTrips(ctx context.Context, l *lane, h *hdrhistogram.Histogram) error {
	sent := e.start
	if !e.more(l, sent) {
		return nil
	}
	if err := e.ping(l); err != nil {
		return err
	}
	for {
		for !e.pong(l) {
			if err := e.wait(ctx); err != nil {
				return err
			}
		}
		now := time.Now()
		took := now.Sub(sent)
		sent = now
		if e.verb == verbRead && e.verify {
			e.inspect(l)
			sent = time.Now() // looking is not part of the next one
		}
		more := e.more(l, sent)
		if more {
			if err := e.ping(l); err != nil {
				return err
			}
		}
		if e.results != nil {
			e.results = append(e.results, took)
		}
		h.RecordValue(int64(min(took, maxRoundTrip)))
		if e.tick != nil {
			e.tick(now)
		}
		if !more {
			return l.repost()
		}
	}
}

// inspect looks at what was read, and spoils it for the next one.
func (e *engine) inspect(l *lane) {
	seed := e.slotSeed(l.index, !e.client, 0)
	if !same(l.dst.buf, seed) {
		l.bad++
	}
	spoil(l.dst.buf, seed)
}

func (e *engine) more(l *lane, now time.Time) bool {
	if e.duration > 0 {
		return now.Before(e.deadline)
	}
	return l.posted < e.iters
}

// latency is what a latency run yields, in microseconds: half of a round trip, or for RDMA Read the
// whole of it.
type latency struct {
	iters                 uint64
	min, max, typical     float64
	avg, stdev, p99, p999 float64
	rate                  float64 // round trips a second
}

var errNothing = errors.New("nothing was measured")

func (p *params) latency(h *hdrhistogram.Histogram) (latency, error) {
	if h.TotalCount() == 0 {
		return latency{}, errNothing
	}
	us := func(ns int64) float64 { return p.trip(time.Duration(ns)) }
	at := func(q float64) float64 { return us(h.ValueAtQuantile(q)) }
	return latency{
		iters: uint64(h.TotalCount()), min: us(h.Min()), max: us(h.Max()), typical: at(50), p99: at(99), p999: at(99.9),
		avg: us(int64(h.Mean())), stdev: us(int64(h.StdDev())), rate: 1e9 / h.Mean(),
	}, nil
}

// trip is what counts of a round trip, in microseconds.
func (p *params) trip(d time.Duration) float64 {
	if p.verb.pulls() {
		return float64(d) / 1e3
	}
	return float64(d) / 2e3
}

// asked is a message that was posted and will complete.
type asked struct {
	n  uint64 // it and those before
	at time.Time
}

// took records how long messages took that have completed, for a report.
func (e *engine) took(l *lane) {
	for len(l.asked) > 0 && l.asked[0].n <= l.done {
		e.served.RecordValue(int64(min(time.Since(l.asked[0].at), maxRoundTrip)))
		l.asked = l.asked[1:]
	}
}
