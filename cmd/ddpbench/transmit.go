package main

import (
	"context"
	"math"
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// total is how many messages an active end posts on each QP.
func (e *engine) total() uint64 {
	if e.duration > 0 {
		return math.MaxUint64
	}
	return e.iters
}

// begin starts the clock.
func (e *engine) begin(now time.Time) {
	if e.begun {
		return
	}
	e.begun, e.start = true, now
	if e.duration > 0 {
		e.deadline = now.Add(e.duration)
	}
	if e.role(e.client).active {
		e.peak.begin(&e.params, now)
	}
}

// stop ends the transmission early.
func (e *engine) stop() {
	for _, l := range e.lanes {
		l.left = 0
	}
}

// lead is the client's part of a bandwidth run.
func (e *engine) lead(ctx context.Context) error {
	e.begin(time.Now())
	for _, l := range e.lanes {
		l.left, l.begun = e.total(), true
		if err := l.sendControl(control{kind: ctlGo}); err != nil {
			return err
		}
	}
	return e.drive(ctx, e.finished)
}

// follow is the server's part of any run.
func (e *engine) follow(ctx context.Context) error {
	return e.drive(ctx, e.allGone)
}

// allGone reports whether the client has ended all sessions.
func (e *engine) allGone() bool {
	for _, l := range e.lanes {
		if !l.gone {
			return false
		}
	}
	return true
}

// grace is how long the end of an interrupted run may take.
const grace = 5 * time.Second

// drive transmits and handles what comes until over. When ctx ends, the client stops transmitting, and
// ends the run as if that had been all.
func (e *engine) drive(ctx context.Context, over func() bool) error {
	stopped := false
	for !over() {
		if err := e.transmit(stopped); err != nil {
			return err
		}
		if err := e.tell(); err != nil {
			return err
		}
		err := e.wait(ctx)
		switch {
		case err == nil:
		case ctx.Err() == nil || !e.client:
			return err
		case stopped:
			return errStuck
		default:
			stopped = true
			e.stop()
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), grace)
			defer cancel()
		}
	}
	return nil
}

// transmit posts whatever may be posted on all lanes, in turns.
func (e *engine) transmit(stopped bool) error {
	if !e.begun || !e.client && !e.both {
		return nil
	}
	now := time.Now()
	if e.tick != nil {
		e.tick(now)
	}
	if e.duration > 0 && !now.Before(e.deadline) {
		e.stop()
	}
	for more := true; more; {
		more = false
		for _, l := range e.lanes {
			n := e.room(l)
			if n == 0 {
				continue
			}
			if err := e.post(l, n); err != nil {
				return err
			}
			more = true
		}
	}
	return e.conclude(stopped)
}

// burst is how many requests are posted under one lock.
func (p *params) burst() uint64 {
	if p.list > 0 {
		return uint64(min(p.list, burst))
	}
	return burst
}

// room is how many messages may be posted on a lane now, a burst at most.
func (e *engine) room(l *lane) int {
	n := min(uint64(e.depth)-(l.posted-l.done), l.left, e.burst())
	if e.verb == verbSend {
		n = min(n, uint64(l.credits))
	}
	return int(n)
}

// post posts n messages. Only every so many ask for a completion, and the last.
func (e *engine) post(l *lane, n int) error {
	every := uint64(e.moderation())
	for i := range n {
		l.posted++
		l.left--
		e.message(l, &e.wrs[i], l.posted-1)
		if l.posted%every != 0 && l.left != 0 {
			e.wrs[i].Flags = rdma.Unsignaled
		} else if e.served != nil {
			l.asked = append(l.asked, asked{l.posted, time.Now()})
		}
	}
	if e.verb == verbSend {
		l.credits -= n
	}
	e.peak.post(n)
	_, err := l.qp.PostSendList(e.wrs[:n])
	return err
}

// message makes wr carry message i. Its ID is i+1: how many messages have completed with it.
func (e *engine) message(l *lane, wr *rdma.SendWR, i uint64) {
	off := int(i%uint64(e.slots())) * e.size
	wr.ID, wr.Flags, wr.Inline = l.id(i+1), 0, nil
	wr.RemoteSTag, wr.RemoteTO = l.peer.stag, l.peer.to+uint64(off)
	r := l.src
	switch e.verb {
	case verbWrite:
		wr.Op = rdma.OpWrite
	case verbRead:
		wr.Op = rdma.OpRead
		r = l.dst
	case verbSend:
		wr.Op = rdma.OpSend
	case verbAtomic:
		wr.Op, wr.Atomic, wr.SGL = rdma.OpAtomic, rdma.FetchAdd(1), nil
		if e.swap {
			wr.Atomic = rdma.CmpSwap(i, i) // to compare costs what a swap costs
		}
		return
	}
	wr.SGL = append(wr.SGL[:0], r.sge(off, e.size))
}

// conclude says on each lane that all was posted, once it was. With -b the server reports once all
// it had to say is said.
func (e *engine) conclude(stopped bool) error {
	all := true
	for _, l := range e.lanes {
		if l.begun && l.left == 0 && !l.closing {
			l.closing = true
			if err := l.sendControl(control{kind: ctlDone, n: l.posted, stop: stopped}); err != nil {
				return err
			}
		}
		all = all && l.acked && l.judged
	}
	if !all || e.client || e.reported {
		return nil
	}
	e.reported = true
	return e.lanes[0].sendControl(control{kind: ctlReport, bandwidth: e.bandwidth()})
}
