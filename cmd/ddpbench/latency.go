package main

import (
	"context"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rddp-go/rddp/rdma"
)

// writeNotice is the Send that follows an RDMA Write and announces its arrival.
var writeNotice = [1]byte{'!'}

// postPing posts one message, or the answer to one. Then it posts the receive buffer of the message
// before, as there are more.
func (e *engine) postPing(l *lane) error {
	l.posted++
	e.fillRequest(l, &e.wrs[0], l.posted-1)
	n := 1
	switch e.verb {
	case verbSend:
		e.wrs[0].Flags = rdma.Unsignaled
	case verbWrite:
		e.wrs[0].Flags = rdma.Unsignaled
		e.wrs[1] = rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Unsignaled, Inline: writeNotice[:]}
		n = 2
	}
	if _, err := l.qp.PostSendList(e.wrs[:n]); err != nil {
		return err
	}
	return l.repostRecv()
}

// isAnswered reports whether the last message is answered.
func (e *engine) isAnswered(l *lane) bool {
	if e.verb.isPull() {
		return l.completed == l.posted
	}
	return l.received == l.posted
}

// maxRoundTrip is the longest round trip that the histogram can record.
const maxRoundTrip = time.Hour

// newHistogram returns a histogram of nanoseconds, to three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(maxRoundTrip), 3) }

// runPingPong is the client's part of a latency run. It records the time from one message to the
// next, a round trip.
func (e *engine) runPingPong(ctx context.Context, h *hdrhistogram.Histogram) error {
	l := e.lanes[0]
	l.hasBegun = true
	if err := l.sendControl(control{kind: controlGo}); err != nil {
		return err
	}
	e.startClock(time.Now())
	err := e.measureRoundTrips(ctx, l, h)
	if err != nil && ctx.Err() == nil {
		return err
	}
	return e.runUntil(ctx, e.isFinished)
}

// measureRoundTrips posts the next message as soon as the last is answered. It does everything else
// while a message is under way.
func (e *engine) measureRoundTrips(ctx context.Context, l *lane, h *hdrhistogram.Histogram) error {
	sent := e.startedAt
	if !e.hasMore(l, sent) {
		return nil
	}
	if err := e.postPing(l); err != nil {
		return err
	}
	for {
		for !e.isAnswered(l) {
			if err := e.waitCompletions(ctx); err != nil {
				return err
			}
		}
		now := time.Now()
		took := now.Sub(sent)
		sent = now
		if e.verb == verbRead && e.verify {
			e.checkRead(l)
			sent = time.Now() // the check is not part of the next one
		}
		more := e.hasMore(l, sent)
		if more {
			if err := e.postPing(l); err != nil {
				return err
			}
		}
		if e.roundTripTimes != nil {
			e.roundTripTimes = append(e.roundTripTimes, took)
		}
		h.RecordValue(int64(min(took, maxRoundTrip)))
		if e.onTick != nil {
			e.onTick(now)
		}
		if !more {
			return l.repostRecv()
		}
	}
}

// checkRead checks what was read, and spoils it for the next one.
func (e *engine) checkRead(l *lane) {
	seed := e.slotSeed(l.index, !e.client, 0)
	if !hasContent(l.dst.buf, seed) {
		l.badMessages++
	}
	spoilContent(l.dst.buf, seed)
}

func (e *engine) hasMore(l *lane, now time.Time) bool {
	if e.duration > 0 {
		return now.Before(e.deadline)
	}
	return l.posted < e.iters
}

// latencyResult is the result of a latency run, in microseconds. It is half of a round trip, or for
// RDMA Read the whole.
type latencyResult struct {
	iters                 uint64
	min, max, typical     float64
	avg, stdev, p99, p999 float64
	rate                  float64 // round trips a second
}

var errNothingMeasured = errors.New("nothing was measured")

func (p *params) latencyOf(h *hdrhistogram.Histogram) (latencyResult, error) {
	if h.TotalCount() == 0 {
		return latencyResult{}, errNothingMeasured
	}
	us := func(ns int64) float64 { return p.tripMicros(time.Duration(ns)) }
	at := func(q float64) float64 { return us(h.ValueAtQuantile(q)) }
	return latencyResult{
		iters: uint64(h.TotalCount()), min: us(h.Min()), max: us(h.Max()), typical: at(50), p99: at(99), p999: at(99.9),
		avg: us(int64(h.Mean())), stdev: us(int64(h.StdDev())), rate: 1e9 / h.Mean(),
	}, nil
}

// tripMicros is the part of a round trip that counts, in microseconds.
func (p *params) tripMicros(d time.Duration) float64 {
	if p.verb.isPull() {
		return float64(d) / 1e3
	}
	return float64(d) / 2e3
}

// signaledMessage is a message that was posted and will complete.
type signaledMessage struct {
	number   uint64 // it and those before
	postedAt time.Time
}

// recordCompletionTimes records how long completed messages took, for a report.
func (e *engine) recordCompletionTimes(l *lane) {
	for len(l.signaled) > 0 && l.signaled[0].number <= l.completed {
		e.completionTimes.RecordValue(int64(min(time.Since(l.signaled[0].postedAt), maxRoundTrip)))
		l.signaled = l.signaled[1:]
	}
}
