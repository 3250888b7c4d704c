package main

import (
	"context"
	"math"
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// messagesPerQP is how many messages an active end posts on each QP.
func (e *engine) messagesPerQP() uint64 {
	if e.duration > 0 {
		return math.MaxUint64
	}
	return e.iters
}

// startClock starts the clock.
func (e *engine) startClock(now time.Time) {
	if e.hasBegun {
		return
	}
	e.hasBegun, e.startedAt = true, now
	if e.duration > 0 {
		e.deadline = now.Add(e.duration)
	}
	if e.roleOf(e.client).active {
		e.peak.startRun(&e.params, now)
	}
}

// stopPosting ends the transmission early.
func (e *engine) stopPosting() {
	for _, l := range e.lanes {
		l.toPost = 0
	}
}

// leadRun is the client's part of a bandwidth run.
func (e *engine) leadRun(ctx context.Context) error {
	e.startClock(time.Now())
	for _, l := range e.lanes {
		l.toPost, l.hasBegun = e.messagesPerQP(), true
		if err := l.sendControl(control{kind: controlGo}); err != nil {
			return err
		}
	}
	return e.runUntil(ctx, e.isFinished)
}

// followClient is the server's part of every run.
func (e *engine) followClient(ctx context.Context) error {
	return e.runUntil(ctx, e.allSessionsEnded)
}

// allSessionsEnded reports whether the client has ended all sessions.
func (e *engine) allSessionsEnded() bool {
	for _, l := range e.lanes {
		if !l.sessionEnded {
			return false
		}
	}
	return true
}

// stopTimeout is how long the end of an interrupted run may take.
const stopTimeout = 5 * time.Second

// runUntil transmits and handles completions until over. When ctx ends, the client stops
// transmitting, and ends the run as if that had been all.
func (e *engine) runUntil(ctx context.Context, over func() bool) error {
	stopped := false
	for !over() {
		if err := e.postOnAllLanes(stopped); err != nil {
			return err
		}
		if err := e.sendNotes(); err != nil {
			return err
		}
		err := e.waitCompletions(ctx)
		switch {
		case err == nil:
		case ctx.Err() == nil || !e.client:
			return err
		case stopped:
			return errNoFinalAnswer
		default:
			stopped = true
			e.stopPosting()
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
			defer cancel()
		}
	}
	return nil
}

// postOnAllLanes posts all requests that may be posted, on the lanes in turn.
func (e *engine) postOnAllLanes(stopped bool) error {
	if !e.hasBegun || !e.client && !e.bidirectional {
		return nil
	}
	now := time.Now()
	if e.onTick != nil {
		e.onTick(now)
	}
	if e.duration > 0 && !now.Before(e.deadline) {
		e.stopPosting()
	}
	for more := true; more; {
		more = false
		for _, l := range e.lanes {
			n := e.postableMessages(l)
			if n == 0 {
				continue
			}
			if err := e.postMessages(l, n); err != nil {
				return err
			}
			more = true
		}
	}
	return e.announceDone(stopped)
}

// postBurst is how many requests are posted under one lock.
func (p *params) postBurst() uint64 {
	if p.postList > 0 {
		return uint64(min(p.postList, maxBurst))
	}
	return maxBurst
}

// postableMessages is how many messages may be posted on a lane now, at most a burst.
func (e *engine) postableMessages(l *lane) int {
	n := min(uint64(e.depth)-(l.posted-l.completed), l.toPost, e.postBurst())
	if e.verb == verbSend {
		n = min(n, uint64(l.credits))
	}
	return int(n)
}

// postMessages posts n messages. Every few messages, and the last, ask for a completion.
func (e *engine) postMessages(l *lane, n int) error {
	every := uint64(e.completionInterval())
	for i := range n {
		l.posted++
		l.toPost--
		e.fillRequest(l, &e.wrs[i], l.posted-1)
		if l.posted%every != 0 && l.toPost != 0 {
			e.wrs[i].Flags = rdma.Unsignaled
		} else if e.completionTimes != nil {
			l.signaled = append(l.signaled, signaledMessage{l.posted, time.Now()})
		}
	}
	if e.verb == verbSend {
		l.credits -= n
	}
	e.peak.recordPosts(n)
	_, err := l.qp.PostSendList(e.wrs[:n])
	return err
}

// fillRequest makes wr carry message i. Its ID is i+1: the number of messages that have completed
// with it.
func (e *engine) fillRequest(l *lane, wr *rdma.SendWR, i uint64) {
	off := int(i%uint64(e.slotCount())) * e.size
	wr.ID, wr.Flags, wr.Inline = l.requestID(i+1), 0, nil
	wr.RemoteSTag, wr.RemoteTO = l.peerTarget.stag, l.peerTarget.to+uint64(off)
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
		if e.compareSwap {
			wr.Atomic = rdma.CmpSwap(i, i) // comparing costs what swapping costs
		}
		return
	}
	wr.SGL = append(wr.SGL[:0], r.sgeAt(off, e.size))
}

// announceDone tells the peer on each lane when all was posted. With -b the server then reports
// once it has nothing else to say.
func (e *engine) announceDone(stopped bool) error {
	all := true
	for _, l := range e.lanes {
		if l.hasBegun && l.toPost == 0 && !l.doneSent {
			l.doneSent = true
			if err := l.sendControl(control{kind: controlDone, count: l.posted, stopToo: stopped}); err != nil {
				return err
			}
		}
		all = all && l.doneAcked && l.verdictKnown
	}
	if !all || e.client || e.reportDone {
		return nil
	}
	e.reportDone = true
	return e.lanes[0].sendControl(control{kind: controlReport, bandwidth: e.ownBandwidth()})
}
