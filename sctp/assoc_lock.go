package sctp

import (
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	// lockYieldTries is how often a caller that waits for the lock yields the processor before it
	// sleeps.
	lockYieldTries = 4
	// maxBatchesPerHold bounds the batches that the holder sends before it releases the lock for a
	// moment.
	maxBatchesPerHold = 16
	// maxRoundsPerCaller bounds how often one caller does so before a service goroutine takes over.
	// So a bulk flow cannot hold an API call captive.
	maxRoundsPerCaller = 3
)

// assocLock is the association lock. One goroutine at a time holds it and owns the association. The
// receive goroutine never waits for it: while it is held, packets go to the backlog. The holder
// drains the backlog before and after it releases the lock, so no packet is stranded.
//
// The holder also writes to the link, although other designs forbid system calls under the lock.
// What it sends points into user memory and records that only the holder may recycle. Only API
// calls on the same association wait for the lock. docs/dev/locks.md has the reasoning.
//
// To take it:
//
//	lock                waits for it, and returns the core and the time
//	acquireLock         waits for it, for callers that need no clock yet
//	tryLock             takes it only if it is free: the reader of a link must not wait
//	peekAssoc           calls a function that only looks, under the lock
//
// To release it:
//
//	unlock              sends what has become ready, and wakes waiters: right in every case
//	unlockAt            unlock for callers that know the time
//	unlockAfterRead     for callers that have only read: usually there is nothing to send
//	unlockWithoutFlush  for callers after which there never is anything to send
//	flushAndUnlock      for callers that serve several associations, and send coalesced packets last
//	lockAndFlush        both at once, for a goroutine that goes on with what others have left
//	releaseLock         opens the mutex and does nothing else: the caller is to lock it again
type assocLock struct {
	mu    sync.Mutex
	hold  lockHold  // see LongestHold
	slice workSlice // what has been done since the lock was taken
}

// lock makes the caller the owner of the association and returns its core and the time. Between
// lock and unlock the core may be used freely. Nothing in between may block.
func (c *Conn) lock() (*assoc.Assoc, rawio.Time) {
	c.acquireLock()
	return &c.core, c.t.now()
}

// acquireLock waits for the lock. It is for callers that need no clock yet.
func (c *Conn) acquireLock() {
	if !c.tryLockYielding() {
		c.assocLock.mu.Lock()
	}
	c.assocLock.slice = workSlice{stepsAtCheck: c.workSteps()}
	c.beginHold()
}

// tryLockYielding takes a lock that is free, or is soon. When packets come in bulk the reader holds
// it for batch after batch, and releases it in between. If a caller slept until then, the runtime
// would wake a thread for it on another processor. The caller, or the reader, would move there,
// away from the cache that has the association. The peer on the same host wants that processor too.
func (c *Conn) tryLockYielding() bool {
	if c.assocLock.mu.TryLock() {
		return true
	}
	if t := c.t; !t.readsInKernel || !t.readerRole.rx.policy.YieldsForLock() {
		return false
	}
	for range lockYieldTries {
		if c.t.yieldCPU(); c.assocLock.mu.TryLock() {
			return true
		}
	}
	return false
}

// tryLock takes the lock if it is free.
func (c *Conn) tryLock() bool {
	if !c.assocLock.mu.TryLock() {
		return false
	}
	c.assocLock.slice = workSlice{stepsAtCheck: c.workSteps()}
	c.beginHold()
	return true
}

// releaseLock opens the mutex and does nothing else. The caller, or another goroutine that it
// starts, takes the lock again.
func (c *Conn) releaseLock() {
	c.endHold()
	c.assocLock.mu.Unlock()
}

// unlock sends what has become ready, hands on packets that arrived meanwhile and releases the
// lock.
func (c *Conn) unlock() { c.unlockAt(c.t.now()) }

// unlockAt is unlock for a caller that has done so little since now that the clock need not be
// read again.
func (c *Conn) unlockAt(now rawio.Time) {
	if c.flushAndUnlock(now) {
		c.t.yieldAndSend()
	}
}

// unlockAfterRead is unlock for a caller that has read, or has only looked. Usually nothing follows
// from that, and looking for what does would take longer than the reading.
func (c *Conn) unlockAfterRead(now rawio.Time) {
	if c.memory.unchargedPackets > 0 || c.afterUnlock.tasks != 0 || c.end.closing || c.end.ended ||
		c.memory.underPressure.Load() || c.observers.trace != nil || c.needsCharge() || c.core.SackDue(now) {
		c.unlock()
		return
	}
	c.unlockWithoutFlush()
}

// unlockWithoutFlush releases the lock for a caller that has nothing to send. It hands on what was
// left to the holder meanwhile.
func (c *Conn) unlockWithoutFlush() {
	c.releaseLock()
	if c.hasPendingWork() && c.tryLock() {
		c.unlock()
	}
}

// hasPendingWork says whether something was left to the holder, which may have looked before that.
func (c *Conn) hasPendingWork() bool {
	return c.backlog.count.Load() > 0 || c.coalescing.sackReleased.Load()
}

// lockAndFlush goes on with what others have left. A goroutine of its own calls it.
func (c *Conn) lockAndFlush() {
	c.acquireLock()
	c.unlock()
}

// flushAndUnlock is unlockAt for a caller that serves several associations. It says whether the
// caller has to send what the coalescer has.
func (c *Conn) flushAndUnlock(now rawio.Time) (combined bool) {
	for round := 0; ; round++ {
		more := c.flushPending(now)
		var events []TraceEvent
		if c.observers.trace != nil {
			c.traceChanges(now)
			events = c.takeTraceEvents()
		}
		combined = combined || c.coalescing.mustSend
		c.coalescing.mustSend, c.coalescing.withOthers = false, false
		w, streams, entries, orphans := c.afterUnlock.tasks, (*[]*Stream)(nil), (*[]logEntry)(nil), []rawio.Packet(nil)
		if c.afterUnlock.tasks = 0; w&taskDrainLists != 0 {
			streams, entries = c.afterUnlock.streamsToWake, c.afterUnlock.logEntries
			c.afterUnlock.streamsToWake, c.afterUnlock.logEntries = nil, nil
		}
		if w&taskRerouteOrphans != 0 {
			orphans, c.afterUnlock.orphanedPackets = *c.afterUnlock.orphanedPackets, nil
		}
		if w&taskWakeWriters != 0 && c.send.isByStream() {
			c.wakeWritersOfStreams()
			w &^= taskWakeWriters
		}
		if w&taskWakeWriters != 0 && c.send.writable.tokenCh == nil {
			w &^= taskWakeWriters // no writer has ever waited
		}
		c.releaseLock()
		if c.backlog.overflowed.Load() && c.backlog.overflowed.Swap(false) {
			c.t.eventLog.logLimit(limitBacklog, c.t.stats.backlogDropped.Load())
		}
		for i := range events {
			c.t.cfg.Tracer.Trace(&events[i])
		}
		if entries != nil {
			c.writeLogEntries(*entries)
		}
		if orphans = append(orphans, c.runUnlockTasks(w, streams)...); len(orphans) > 0 {
			c.t.redeliverPackets(c, orphans)
		}
		if !more && !c.hasPendingWork() || !c.tryLock() {
			return combined // nothing left, or the next owner goes on with it
		}
		if round == maxRoundsPerCaller {
			c.releaseLock()
			go c.lockAndFlush()
			return combined
		}
		now = c.t.now()
	}
}

// unlockWork is what the holder has to do once the lock is released.
type unlockWork struct {
	tasks           unlockTask
	streamsToWake   *[]*Stream                // streams that got messages since the lock was last released
	spareWakeList   atomic.Pointer[[]*Stream] // an empty list for streamsToWake
	logEntries      *[]logEntry               // for the event log
	orphanedPackets *[]rawio.Packet           // packets that came behind the end, see orphanBacklog
}

// unlockTask is a set of things to do once the lock is released.
type unlockTask uint16

const (
	taskWakeReaders unlockTask = 1 << iota
	taskWakeWriters
	taskAnnounceUp
	taskForgetConn
	taskRefreshIndex
	taskNotifyEvents
	taskCloseAccount
	taskWakeSocket // messages wait in socket
	taskDrainLists // afterUnlock.streamsToWake or entries are not empty
	taskRerouteOrphans
)

// runUnlockTasks does what must not be done under the lock. It wakes all that wait. Readers and
// writers come last, as they may ask for what else has happened. It returns the rest of the backlog
// of an association that is no more.
func (c *Conn) runUnlockTasks(w unlockTask, streams *[]*Stream) (left []rawio.Packet) {
	var next *rawio.Packet
	if w&taskNotifyEvents != 0 {
		sendToken(c.observers.events.arrivedCh)
	}
	if w&taskRefreshIndex != 0 {
		c.t.refreshIndex(c)
	}
	if w&taskAnnounceUp != 0 && c.lifecycle.claimAnnouncement() {
		c.announceUp()
	}
	if c.upper.protocol != nil {
		c.upper.protocol.Settled()
	}
	if w&taskForgetConn != 0 {
		next = c.t.forgetConn(c)
		if c.recv.socket != nil {
			c.recv.socket.removeConn(c)
		}
		c.lifecycle.markEnded()
		c.t.wakeLinkReader()
	}
	if w&taskCloseAccount != 0 {
		left = c.t.closeAccount(c)
		if c.origin.listener != nil && c.end.err != assoc.ErrShutdown {
			c.origin.listener.dropFailed(c)
		}
	}
	if next != nil { // before what has come behind it
		c.t.redeliverPackets(c, []rawio.Packet{*next})
	}
	if streams != nil {
		for _, s := range *streams {
			s.readable.Set()
		}
		clear(*streams)
		*streams = (*streams)[:0]
		c.afterUnlock.spareWakeList.Store(streams)
	}
	if w&taskWakeReaders != 0 {
		c.recv.readable.Set()
	}
	if w&taskWakeSocket != 0 {
		c.recv.socket.readable.Set()
	}
	if w&taskWakeWriters != 0 {
		c.send.writable.Set()
	}
	return left
}

// announceUp wakes the goroutines that wait for the association to be established.
func (c *Conn) announceUp() {
	switch {
	case c.recv.socket != nil:
		c.recv.socket.addConn(c)
	case c.origin.listener != nil:
		c.origin.listener.offerConn(c)
	}
	c.lifecycle.markUp()
}

// wakeAll makes runUnlockTasks wake all readers and writers. Owner only.
func (c *Conn) wakeAll() {
	c.afterUnlock.tasks |= taskWakeReaders | taskWakeWriters
	for s := range c.recv.streams.all() { // in whatever order
		c.afterUnlock.wakeStream(s)
	}
}

func sendToken(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
