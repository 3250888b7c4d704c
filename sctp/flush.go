package sctp

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// flushPending moves everything that the last step has made ready: events, messages, packets, the
// timer. Between two batches it takes what has arrived, so that the backlog stays short however
// much there is to send. more says that it has stopped before all was sent, so that others get the
// lock and hear of completions.
func (c *Conn) flushPending(now rawio.Time) (more bool) {
	began := now
	if c.coalescing.sackReleased.Load() {
		c.releaseSack()
	}
	c.drainBacklog(now)
	c.handleEvents(now)
	left := false
	for range maxBatchesPerHold {
		if c.upper.protocol != nil {
			left = c.upper.protocol.HandleReceived(now)
		} else {
			left = c.distributeMessages()
		}
		if c.end.discardedUnread {
			c.abortUnread(now)
		}
		var sent bool
		if sent, more = c.t.transmitBatch(now, &c.core); sent && (more || c.backlog.count.Load() > 0) {
			now = c.t.now() // it takes a while
		}
		c.noteSent()
		more = c.drainBacklog(now) || more || left
		more = c.handleEvents(now) || more
		if !more || now.Sub(began) > maxSendTime || c.sliceIsOver(sliceTime) {
			break
		}
	}
	if c.end.ended && !left && !c.recv.hasUnread() {
		c.freeMemory()
	}
	if c.memory.unchargedPackets > 0 || c.memory.underPressure.Load() || c.needsCharge() {
		c.chargeMemory()
	}
	if c.memory.trimAt == rawio.Never && !c.end.ended && (c.send.heldOctets() > 0 ||
		c.core.State() == assoc.Established && !c.core.IsIdle()) {
		c.memory.trimAt = now.Add(assoc.IdleAfter)
	}
	if next := c.core.NextTimeout(); next <= c.memory.trimAt {
		c.t.timers.setDeadline(c, next, c.core.Slack(next))
	} else {
		c.t.timers.setDeadline(c, c.memory.trimAt, assoc.IdleAfter/2)
	}
	return more
}

// maxEventsAtOnce is how many events are handled before others run. There is one event for each
// message that fails with an association.
const maxEventsAtOnce = 512

// handleEvents handles the events of the association and says whether there were any.
func (c *Conn) handleEvents(now rawio.Time) (any bool) {
	if c.core.State() == assoc.Closed && !c.end.ended && c.upper.protocol == nil && c.distributeMessages() {
		return true // its end is reported behind the messages that came before
	}
	for i := 0; i < maxEventsAtOnce && c.core.HasEvents() && c.handleNextEvent(now); i++ {
		any = true
	}
	if c.end.asksForStreams {
		c.endStreamRequests()
	}
	return any
}

// handleNextEvent handles one event, if there is any.
func (c *Conn) handleNextEvent(now rawio.Time) bool {
	ev, ok := c.core.PollEvent()
	if ok {
		c.handleEvent(now, ev)
	}
	return ok
}

func (c *Conn) handleEvent(now rawio.Time, ev assoc.Event) {
	c.queueEvent(ev) // it copies a message that failed before its memory is freed
	c.queueLogEntry(ev)
	if c.observers.trace != nil {
		c.traceAssocEvent(now, ev)
	}
	if ev.Change != nil {
		c.noteStreamChange(ev)
		if ev.Kind == assoc.EventStreamsReset && ev.Change.Incoming && ev.Err == nil {
			c.endStreams(ev.Change)
		}
	}
	switch ev.Kind {
	case assoc.EventUp:
		c.t.stats.established.Add(1)
		c.afterUnlock.tasks |= taskAnnounceUp | taskRefreshIndex
	case assoc.EventRestart, assoc.EventPathUp, assoc.EventPathDown:
		c.afterUnlock.tasks |= taskRefreshIndex
		c.assocLock.slice.ensureBegun(now)
		if c.end.failsOnRestart && ev.Kind == assoc.EventRestart {
			c.abortOnRestart(now)
		}
	case assoc.EventDown:
		c.assocLock.slice.ensureBegun(now) // an Upper ends all that it has
		c.forgetRestart()
		c.end.err = ev.Err
		c.end.ended, c.end.failed, c.memory.trimAt = true, true, rawio.Never
		c.afterUnlock.tasks |= taskForgetConn
		c.wakeAll()
	case assoc.EventSendFailed:
		if c.upper.protocol == nil {
			c.send.freeMessage(ev.Token)
			c.afterUnlock.tasks |= taskWakeWriters
			c.end.hasUnsent = c.end.hasUnsent || c.end.closing
		}
	}
	if c.upper.protocol != nil {
		c.upper.protocol.HandleEvent(now, ev)
	}
}
