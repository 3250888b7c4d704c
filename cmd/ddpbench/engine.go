package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/timeline"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// engine is one end of a run: its QPs, driven by one goroutine through one completion queue.
type engine struct {
	params
	client bool
	own    bool // an association for each QP

	dev   *rdma.Device
	pd    *rdma.PD
	cq    *rdma.CQ
	lanes []*lane
	wcs   [64]rdma.WC
	wrs   [burst]rdma.SendWR
	sges  [burst][1]rdma.SGE

	begun     bool
	start     time.Time // of the first message
	end       time.Time // of the last one, and its acknowledgement
	deadline  time.Time // no more messages, with a duration
	completed uint64    // messages, all lanes
	peak      peak
	results   []time.Duration     // round trips of a latency run, if all of them are wanted
	tick      func(now time.Time) // called often, and every so often where that is not 0
	every     time.Duration
	watch     turn

	reported bool      // -b: the server's report was sent or has come
	remote   bandwidth // it

	// For a report.
	sampler  *sampler                // of this end, while it looks
	seen     []timeline.Point        // by it
	served   *hdrhistogram.Histogram // times from posting to completion, nanoseconds; nil: not wanted
	notebook *region                 // the server's notes: here, or to be sent
	tellTo   target                  // the client's, as the server knows it
	told     bool                    // the notes are here
	theirs   notes                   // they
}

// burst is how many requests are posted under one lock.
const burst = 32

// ctlQueue is what control messages need of the send queue. Grants take maxGrants of it at most.
const (
	ctlQueue  = 2 * ctlBuffers
	maxGrants = ctlBuffers
)

// Errors of a run.
var (
	errLeft  = errors.New("the peer has left in the middle of the run")
	errStuck = errors.New("the peer does not answer the end of the run")
)

func newEngine(dev *rdma.Device, p params, client bool) (*engine, error) {
	e := &engine{params: p, client: client, dev: dev, pd: dev.AllocPD(), lanes: make([]*lane, p.qps)}
	cq, err := dev.CreateCQ(p.qps * p.queues(client).Completions)
	if err != nil {
		return nil, err
	}
	e.cq = cq
	for i := range e.wrs {
		e.wrs[i].SGL = e.sges[i][:]
	}
	return e, nil
}

// addLane makes lane i.
func (e *engine) addLane(i int) (*lane, error) {
	l, err := newLane(e, i)
	if err != nil {
		return nil, err
	}
	e.lanes[i] = l
	return l, nil
}

func (e *engine) close() {
	for _, l := range e.lanes {
		if l != nil {
			l.close()
		}
	}
	e.notebook.close()
	e.watch.close()
	e.rest()
}

// slot is the memory of messages with a number that is slot modulo slots.
func (e *engine) slot(r *region, slot int) []byte { return r.buf[slot*e.size:][:e.size] }

// wait handles completions: those that are there, or else the next ones.
func (e *engine) wait(ctx context.Context) error {
	for {
		n, err := e.cq.Poll(e.wcs[:])
		if err != nil {
			return err
		}
		if n > 0 {
			return e.handle(e.wcs[:n])
		}
		if err := e.cq.Wait(e.watch.within(ctx, e.every)); err != nil {
			if ctx.Err() != nil || !e.watch.over() {
				return err
			}
			if e.tick != nil { // nothing has come: that is worth a line too
				e.tick(time.Now())
			}
		}
	}
}

// turn is a context that ends every so often. It is made anew then, and not for each wait, which would cost an allocation for each message.
type turn struct {
	parent, ctx context.Context
	end         context.CancelFunc
}

// within returns a context that ends with ctx, or after so long at the latest; 0 is never.
func (t *turn) within(ctx context.Context, every time.Duration) context.Context {
	if every == 0 {
		return ctx
	}
	if t.parent != ctx || t.ctx.Err() != nil {
		t.close()
		t.parent = ctx
		t.ctx, t.end = context.WithTimeout(ctx, every)
	}
	return t.ctx
}

// over reports whether the time is over.
func (t *turn) over() bool { return t.ctx != nil && t.ctx.Err() != nil }

func (t *turn) close() {
	if t.end != nil {
		t.end()
	}
}

func (e *engine) handle(wcs []rdma.WC) error {
	before := e.completed
	for i := range wcs {
		wc := &wcs[i]
		l := e.lanes[wc.ID&^idControl>>idLane]
		var err error
		switch {
		case wc.Status != rdmap.StatusSuccess:
			err = e.failed(l, wc)
		case wc.Opcode == rdmap.WCRecv:
			err = e.received(l, wc)
		case wc.ID&idControl != 0:
			l.ctlOut--
			err = e.regrant(l)
		default:
			done := l.posted - (l.posted-wc.ID)&idNumber
			e.completed += done - l.done
			l.done = done
			e.took(l)
		}
		if err != nil {
			return err
		}
	}
	if e.completed > before {
		e.end = time.Now()
		e.peak.complete(e.completed, e.end)
	}
	return nil
}

// failed handles a request that did not succeed, which means that the session is over.
func (e *engine) failed(l *lane, wc *rdma.WC) error {
	if err := l.qp.Err(); err != nil {
		return &cli.SessionError{Err: err}
	}
	if wc.Status != rdmap.StatusWRFlushErr {
		return fmt.Errorf("%v failed: %v", wc.Opcode, wc.Status)
	}
	if !e.finished() {
		return errLeft
	}
	l.gone = true
	return nil
}

func (e *engine) received(l *lane, wc *rdma.WC) error {
	i := int(wc.ID & idNumber)
	msg := l.bufs.buf[i*l.bufLen:][:wc.ByteLen]
	if wc.Solicited {
		var c control
		err := c.decode(msg)
		if err == nil {
			err = l.postRecv(i) // before the peer learns that it may use the buffer
		}
		if err != nil {
			return err
		}
		return e.control(l, &c)
	}
	if err := e.data(l, msg); err != nil {
		return err
	}
	if e.lat {
		l.used, l.owes = i, true
		if e.client {
			return nil
		}
		return e.ping(l)
	}
	if err := l.postRecv(i); err != nil {
		return err
	}
	l.grant.arrived()
	return e.regrant(l)
}

// data takes a message that came by Send, or the notification of one that was written.
func (e *engine) data(l *lane, msg []byte) error {
	notice := e.verb == verbWrite && e.lat
	switch {
	case !e.role(e.client).passive || e.verb != verbSend && !notice:
		return errors.New("the peer sends data where it should not")
	case notice && len(msg) != 1, !notice && len(msg) != e.size:
		return fmt.Errorf("the peer sent %d octets", len(msg))
	case e.verify:
		if notice {
			msg = l.dst.buf
		}
		seed := e.slotSeed(l.index, !e.client, int(l.got%uint64(e.slots())))
		if !same(msg, seed) {
			l.bad++
		}
		spoil(msg, seed) // so that the next message is not mistaken for this one
	}
	l.got++
	return nil
}

// regrant gives the peer credits, if it is time.
func (e *engine) regrant(l *lane) error {
	if l.ctlOut >= maxGrants {
		return nil // when one of them completes
	}
	if n := l.grant.take(); n > 0 {
		return l.sendControl(control{kind: ctlGrant, n: uint64(n)})
	}
	return nil
}

// control handles a control message.
func (e *engine) control(l *lane, c *control) error {
	switch c.kind {
	case ctlGo:
		if e.client || l.begun {
			return errors.New("the peer begins what is under way")
		}
		l.begun = true
		e.begin(time.Now())
		if e.both {
			l.left = e.total()
		}
	case ctlGrant:
		if c.n > uint64(e.slots()-l.credits) {
			return fmt.Errorf("the peer grants %d credits, more than there are", c.n)
		}
		l.credits += int(c.n)
	case ctlDone:
		return e.peerDone(l, c)
	case ctlAck:
		if !l.closing || c.n != l.posted {
			return fmt.Errorf("the peer acknowledges %d messages, %d were sent", c.n, l.posted)
		}
		l.acked = true
		l.judged = l.judged || !e.verify
		if !e.verb.pulls() || l.done < l.posted {
			e.end = time.Now()
		}
		e.completed += l.posted - l.done // the last ones need not have asked for a completion
		l.done = l.posted
		if e.verb == verbRead && e.verify && !e.lat {
			l.bad += e.check(l, l.posted)
		}
	case ctlVerdict:
		l.judged = true
		l.bad += c.n
	case ctlReport:
		e.reported, e.remote = true, c.bandwidth
	case ctlNotes:
		return e.noted(c.n)
	}
	return nil
}

// peerDone answers the end of what the peer transmits on a lane.
func (e *engine) peerDone(l *lane, c *control) error {
	if l.peerDone || !l.begun || !e.role(e.client).passive {
		return errors.New("the peer ended what it had not begun")
	}
	if e.verb == verbSend && c.n != l.got {
		return fmt.Errorf("%d messages came of %d", l.got, c.n)
	}
	if c.stop {
		l.left = 0
	}
	l.peerDone, l.got = true, c.n
	if !e.client && !e.both {
		e.end = time.Now()
	}
	if err := l.sendControl(control{kind: ctlAck, n: c.n}); err != nil || !e.verify {
		return err
	}
	if e.verb == verbWrite && !e.lat {
		l.bad += e.check(l, c.n)
	}
	return l.sendControl(control{kind: ctlVerdict, n: l.bad})
}

// check looks at the regions that n messages were placed in, and returns how many have wrong content.
func (e *engine) check(l *lane, n uint64) (bad uint64) {
	for slot := range int(min(n, uint64(e.slots()))) {
		if !same(e.slot(l.dst, slot), e.slotSeed(l.index, !e.client, slot)) {
			bad++
		}
	}
	return bad
}

// finished reports whether all has been said.
func (e *engine) finished() bool { return e.over() && (!e.client || !e.notes || e.told) }

// over reports whether all has been said of the messages.
func (e *engine) over() bool {
	r := e.role(e.client)
	active := r.active && (e.client || e.both)
	passive := r.passive && (!e.client || e.both)
	for _, l := range e.lanes {
		if active && !(l.acked && l.judged) || passive && !l.peerDone {
			return false
		}
	}
	return !e.both || e.reported
}

// bad is the number of messages with wrong content, all lanes.
func (e *engine) bad() (n uint64) {
	for _, l := range e.lanes {
		n += l.bad
	}
	return n
}
