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
	client          bool
	ownAssociations bool // an association for each QP

	dev   *rdma.Device
	pd    *rdma.PD
	cq    *rdma.CQ
	lanes []*lane
	wcs   [64]rdma.WC
	wrs   [maxBurst]rdma.SendWR
	sges  [maxBurst][1]rdma.SGE

	hasBegun       bool
	startedAt      time.Time // of the first message
	endedAt        time.Time // of the last one, and its acknowledgement
	deadline       time.Time // no more messages, with a duration
	completed      uint64    // messages, all lanes
	peak           peak
	roundTripTimes []time.Duration     // round trips of a latency run, if all of them are wanted
	onTick         func(now time.Time) // called often, and every so often if that is not 0
	tickInterval   time.Duration
	waitContext    periodicContext

	reportDone      bool      // -b: the server's report was sent or has come
	remoteBandwidth bandwidth // the report itself

	// For a report.
	sampler           *sampler                // of this end, while it runs
	samples           []timeline.Point        // from it
	completionTimes   *hdrhistogram.Histogram // times from posting to completion, nanoseconds; nil: not wanted
	notesRegion       *region                 // the server's notes: here, or before they are sent
	clientNotesTarget target                  // the client's, as the server knows it
	notesReceived     bool                    // the notes are here
	serverNotes       notes                   // the notes
}

// maxBurst is how many requests are posted under one lock.
const maxBurst = 32

// controlQueue is the part of the send queue that control messages need. Grants take maxGrants of
// it at most.
const (
	controlQueue = 2 * controlBuffers
	maxGrants    = controlBuffers
)

// Errors of a run.
var (
	errPeerLeft      = errors.New("the peer has left in the middle of the run")
	errNoFinalAnswer = errors.New("the peer does not answer the end of the run")
)

func newEngine(dev *rdma.Device, p params, client bool) (*engine, error) {
	e := &engine{params: p, client: client, dev: dev, pd: dev.AllocPD(), lanes: make([]*lane, p.qps)}
	cq, err := dev.CreateCQ(p.qps * p.queueSizes(client).Completions)
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
	e.notesRegion.close()
	e.waitContext.close()
	e.stopSampler()
}

// slotBytes returns the memory of the messages whose number is slot modulo slots.
func (e *engine) slotBytes(r *region, slot int) []byte { return r.buf[slot*e.size:][:e.size] }

// waitCompletions handles the completions that are there, or else waits for the next ones.
func (e *engine) waitCompletions(ctx context.Context) error {
	for {
		n, err := e.cq.Poll(e.wcs[:])
		if err != nil {
			return err
		}
		if n > 0 {
			return e.handleCompletions(e.wcs[:n])
		}
		if err := e.cq.Wait(e.waitContext.contextFor(ctx, e.tickInterval)); err != nil {
			if ctx.Err() != nil || !e.waitContext.hasEnded() {
				return err
			}
			if e.onTick != nil { // nothing has come: that deserves a line too
				e.onTick(time.Now())
			}
		}
	}
}

// periodicContext is a context that ends every so often. It is renewed only then. Renewing it for
// each wait would cost an allocation for each message.
type periodicContext struct {
	parent, ctx context.Context
	cancel      context.CancelFunc
}

// contextFor returns a context that ends with ctx, or after every at the latest; 0 is never.
func (t *periodicContext) contextFor(ctx context.Context, every time.Duration) context.Context {
	if every == 0 {
		return ctx
	}
	if t.parent != ctx || t.ctx.Err() != nil {
		t.close()
		t.parent = ctx
		t.ctx, t.cancel = context.WithTimeout(ctx, every)
	}
	return t.ctx
}

// hasEnded reports whether the time is over.
func (t *periodicContext) hasEnded() bool { return t.ctx != nil && t.ctx.Err() != nil }

func (t *periodicContext) close() {
	if t.cancel != nil {
		t.cancel()
	}
}

func (e *engine) handleCompletions(wcs []rdma.WC) error {
	before := e.completed
	for i := range wcs {
		wc := &wcs[i]
		l := e.lanes[wc.ID&^idControl>>idLane]
		var err error
		switch {
		case wc.Status != rdmap.StatusSuccess:
			err = e.handleFailure(l, wc)
		case wc.Opcode == rdmap.WCRecv:
			err = e.handleReceive(l, wc)
		case wc.ID&idControl != 0:
			l.controlsOutstanding--
			err = e.grantCredits(l)
		default:
			done := l.posted - (l.posted-wc.ID)&idNumber
			e.completed += done - l.completed
			l.completed = done
			e.recordCompletionTimes(l)
		}
		if err != nil {
			return err
		}
	}
	if e.completed > before {
		e.endedAt = time.Now()
		e.peak.recordCompletions(e.completed, e.endedAt)
	}
	return nil
}

// handleFailure handles a request that failed, which means that the session is over.
func (e *engine) handleFailure(l *lane, wc *rdma.WC) error {
	if err := l.qp.Err(); err != nil {
		return &cli.SessionError{Err: err}
	}
	if wc.Status != rdmap.StatusWRFlushErr {
		return fmt.Errorf("%v failed: %v", wc.Opcode, wc.Status)
	}
	if !e.isFinished() {
		return errPeerLeft
	}
	l.sessionEnded = true
	return nil
}

func (e *engine) handleReceive(l *lane, wc *rdma.WC) error {
	i := int(wc.ID & idNumber)
	msg := l.recvBufs.buf[i*l.bufLen:][:wc.ByteLen]
	if wc.Solicited {
		var c control
		err := c.decode(msg)
		if err == nil {
			err = l.postRecv(i) // before the peer learns that it may use the buffer
		}
		if err != nil {
			return err
		}
		return e.handleControl(l, &c)
	}
	if err := e.handleData(l, msg); err != nil {
		return err
	}
	if e.isLatency {
		l.usedRecvBuf, l.owesRecv = i, true
		if e.client {
			return nil
		}
		return e.postPing(l)
	}
	if err := l.postRecv(i); err != nil {
		return err
	}
	l.granter.countArrival()
	return e.grantCredits(l)
}

// handleData takes a message that came by Send, or the notice of one that was written.
func (e *engine) handleData(l *lane, msg []byte) error {
	notice := e.verb == verbWrite && e.isLatency
	switch {
	case !e.roleOf(e.client).passive || e.verb != verbSend && !notice:
		return errors.New("the peer sends data where it should not")
	case notice && len(msg) != 1, !notice && len(msg) != e.size:
		return fmt.Errorf("the peer sent %d octets", len(msg))
	case e.verify:
		if notice {
			msg = l.dst.buf
		}
		seed := e.slotSeed(l.index, !e.client, int(l.received%uint64(e.slotCount())))
		if !hasContent(msg, seed) {
			l.badMessages++
		}
		spoilContent(msg, seed) // to tell it from the next message
	}
	l.received++
	return nil
}

// grantCredits gives the peer credits, if it is time to.
func (e *engine) grantCredits(l *lane) error {
	if l.controlsOutstanding >= maxGrants {
		return nil // a completion of one of them will call again
	}
	if n := l.granter.takeGrant(); n > 0 {
		return l.sendControl(control{kind: controlGrant, count: uint64(n)})
	}
	return nil
}

// handleControl handles a control message.
func (e *engine) handleControl(l *lane, c *control) error {
	switch c.kind {
	case controlGo:
		if e.client || l.hasBegun {
			return errors.New("the peer begins what is under way")
		}
		l.hasBegun = true
		e.startClock(time.Now())
		if e.bidirectional {
			l.toPost = e.messagesPerQP()
		}
	case controlGrant:
		if c.count > uint64(e.slotCount()-l.credits) {
			return fmt.Errorf("the peer grants %d credits, more than there are", c.count)
		}
		l.credits += int(c.count)
	case controlDone:
		return e.handlePeerDone(l, c)
	case controlAck:
		if !l.doneSent || c.count != l.posted {
			return fmt.Errorf("the peer acknowledges %d messages, %d were sent", c.count, l.posted)
		}
		l.doneAcked = true
		l.verdictKnown = l.verdictKnown || !e.verify
		if !e.verb.isPull() || l.completed < l.posted {
			e.endedAt = time.Now()
		}
		e.completed += l.posted - l.completed // the last ones may not have asked for a completion
		l.completed = l.posted
		if e.verb == verbRead && e.verify && !e.isLatency {
			l.badMessages += e.countBadSlots(l, l.posted)
		}
	case controlVerdict:
		l.verdictKnown = true
		l.badMessages += c.count
	case controlReport:
		e.reportDone, e.remoteBandwidth = true, c.bandwidth
	case controlNotes:
		return e.receiveNotes(c.count)
	}
	return nil
}

// handlePeerDone answers when the peer has transmitted all on a lane.
func (e *engine) handlePeerDone(l *lane, c *control) error {
	if l.peerDone || !l.hasBegun || !e.roleOf(e.client).passive {
		return errors.New("the peer ended what it had not begun")
	}
	if e.verb == verbSend && c.count != l.received {
		return fmt.Errorf("%d messages came of %d", l.received, c.count)
	}
	if c.stopToo {
		l.toPost = 0
	}
	l.peerDone, l.received = true, c.count
	if !e.client && !e.bidirectional {
		e.endedAt = time.Now()
	}
	if err := l.sendControl(control{kind: controlAck, count: c.count}); err != nil || !e.verify {
		return err
	}
	if e.verb == verbWrite && !e.isLatency {
		l.badMessages += e.countBadSlots(l, c.count)
	}
	return l.sendControl(control{kind: controlVerdict, count: l.badMessages})
}

// countBadSlots checks the regions that n messages were placed in, and returns how many have wrong
// content.
func (e *engine) countBadSlots(l *lane, n uint64) (bad uint64) {
	for slot := range int(min(n, uint64(e.slotCount()))) {
		if !hasContent(e.slotBytes(l.dst, slot), e.slotSeed(l.index, !e.client, slot)) {
			bad++
		}
	}
	return bad
}

// isFinished reports whether the run is over: its messages, and the server's notes if they are
// wanted.
func (e *engine) isFinished() bool {
	return e.messagesFinished() && (!e.client || !e.wantsNotes || e.notesReceived)
}

// messagesFinished reports whether all messages are done, with acknowledgements, verdicts and
// reports.
func (e *engine) messagesFinished() bool {
	r := e.roleOf(e.client)
	active := r.active && (e.client || e.bidirectional)
	passive := r.passive && (!e.client || e.bidirectional)
	for _, l := range e.lanes {
		if active && !(l.doneAcked && l.verdictKnown) || passive && !l.peerDone {
			return false
		}
	}
	return !e.bidirectional || e.reportDone
}

// badMessages is the number of messages with wrong content, all lanes.
func (e *engine) badMessages() (n uint64) {
	for _, l := range e.lanes {
		n += l.badMessages
	}
	return n
}
