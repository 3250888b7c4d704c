package sctp

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/account"
	"github.com/rddp-go/rddp/sctp/upper"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Conn is one SCTP association (RFC 9260). Its methods may be called from several goroutines.
//
// The fields that each packet, write and read looks at come first and together, with the core of
// the association. With many associations none of it is in a cache, and fetching a cache line takes
// longer than the work. A field whose address another one gives can be prefetched with it.
type Conn struct {
	// Owner only, but for t, backlogOverflowed, sackReleased, timerAt, wantedAt, timerSlack and
	// readable. Fields that a write looks at come first, up to the first part of the lock, see
	// fetchToWrite.
	t                 *Transport
	upper             upper.Protocol // nil: the message API below
	stepCounter       stepCounter    // upper, if it is one
	workSlice         workSlice      // what has been done since the lock was taken
	afterUnlock       unlockTask     // what runUnlockTasks has to do
	closing           bool           // Close or Abort was called: reads and writes are refused
	ended             bool           // the association is no more
	failed            bool           // lost or err is set
	mustSendCoalesced bool           // its packets wait in the coalescer, and the owner has to flush it
	servedWithOthers  bool           // others are being served with it, and what they send may go together
	memoryPressure    bool           // memory is short, and this association has more than its share
	memoryFreed       bool           // it has given all its memory back
	keepsEvents       bool           // there are notes
	failsOnRestart    bool           // a restart of the peer ends it
	expectsWrites     atomic.Bool    // the association expects more writes at once; only the owner changes it
	backlogOverflowed atomic.Bool    // a packet found no place in the backlog; not logged yet
	sackReleased      atomic.Bool    // a SACK that is held back may go
	coalescedBatch    uint64         // the last batch of the coalescer that has packets of it
	traceState        *traceState    // nil: no tracing
	chargedOctets     int            // octets of messages when it was last charged
	timerAt           atomicTime     // the deadline that the timers have for it, in the heap or in the wheel
	wantedAt          atomicTime     // the one that it is to have
	timerSlack        atomic.Int64   // and how much earlier that may be
	heapAt            rawio.Time     // the deadline in the heap, guarded by its lock: due, or later; Never: none
	heapID            int32          // in the heap, guarded by its lock; 0: it is not there
	unchargedPackets  int32          // packets since the last charge
	trimAt            rawio.Time     // when to give back memory if the program writes no more; Never: nothing
	backlogRest       []rawio.Packet // of the backlog, taken and not handled yet
	inbox             inbox
	sendbuf           sendBuf
	assocLock         assocLock

	// These fields are what a packet that comes, or a read, also looks at. The association follows.
	numWriters     int32 // that wait for room
	unreadMessages int32 // messages that wait in socket
	accountDrawn   int   // octets that the account has drawn
	streams        map[wire.StreamID]*Stream
	socket         *Socket    // one-to-many style: the Socket that owns it
	lastReadAt     rawio.Time // when a message was last read to its end
	readDeadline   deadline
	readable       signal
	blockedReader  prefetch.BlockedGoroutine // the goroutine that waits for it
	a              assoc.Assoc

	lifecycle lifecycle
	listener  *Listener // passive associations: the listener that accepts it

	writable        signal          // without a channel until a goroutine has waited for it
	writeDeadline   deadline        // not the only one of those that wait for writable: Streams and Sockets have theirs
	unreadLostErr   error           // unread messages were dropped at its end: what readers hear
	err             error           // why the association ended
	backlogTaken    []rawio.Packet  // rest, with those that were handled
	firstWriter     *waitingWriter  // the first of the calls that wait for room in sendbuf; there are writers of them
	orphanedPackets *[]rawio.Packet // that came behind its end, see orphanBacklog
	// streamsToWake are the streams that got messages since the lock was last released.
	streamsToWake *[]*Stream
	logEntries    *[]logEntry // for the event log
	eventQueue    *eventQueue // nil if no events are kept

	lockHold             lockHold         // owner only: see LongestHold
	account              *account.Account // owner only: what the peer makes the association hold
	beganAt              rawio.Time       // when setting it up did
	assocNumber          uint64           // how many associations there were before
	memoryPressureShared atomic.Bool      // squeezed, for others
	removedFromSocket    bool             // socket has it no more, guarded by its lock
	hasUnsent            bool             // messages have failed since Close
	discardedUnread      bool             // Close has thrown messages of the peer away, of which it is to hear
	hasAcceptSlot        bool             // it has a place at the listener, guarded by the lock of its queue
	peerAddr             netip.Addr       // the address that its place at the listener, or socket, counts for
	boundAddrs           *[]netip.Addr    // the addresses that Dial, or its listener, has bound its port at

	spareWakeList atomic.Pointer[[]*Stream] // an empty list for streamsToWake
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
	taskDrainLists // streamsToWake or entries are not empty
	taskRerouteOrphans
)

// newAssoc returns the place for the core of an association. connOf returns the Conn that contains
// it.
func newAssoc() *assoc.Assoc { return &new(Conn).a }

func connOf(a *assoc.Assoc) *Conn {
	return (*Conn)(unsafe.Add(unsafe.Pointer(a), -int(unsafe.Offsetof(Conn{}.a))))
}

func newConn(t *Transport, a *assoc.Assoc, cfg *Config) *Conn {
	c := connOf(a)
	accounts := new([2]account.Account) // which outlive it, see keepAccount
	c.t, c.beganAt, c.account, c.assocLock.backlogAccount = t, t.now(), &accounts[0], &accounts[1]
	c.lifecycle.isUp = a.State() == assoc.Established
	if cfg.Events > 0 {
		c.eventQueue = &eventQueue{limit: cfg.Events, arrivedCh: make(chan struct{}, 1), kinds: ^uint32(1 << EventSenderDry)}
		if cfg.EventKinds != nil {
			c.eventQueue.kinds = kindSet(cfg.EventKinds)
		}
		c.keepsEvents = true
	}
	c.readable.init(t)
	c.readDeadline.t, c.writeDeadline.t, c.readDeadline.signal = t, t, &c.readable
	c.assocLock.arenaPool = t.arenaPool
	affords := c.canAfford
	c.sendbuf.baseOctets, c.sendbuf.canAfford = cfg.firstSendBuffer(), affords
	a.OnGrow(affords)
	c.timerAt.Store(rawio.Never)
	c.wantedAt.Store(rawio.Never)
	c.heapAt = rawio.Never
	c.trimAt = rawio.Never
	c.socket = cfg.socket
	if t.cfg.Tracer != nil {
		c.traceState = new(traceState)
	}
	a.Owner = c
	if cfg.NewUpper != nil {
		c.upper = cfg.NewUpper(c, a)
		a.SetUpper(c.upper, c.upper)
		c.stepCounter, _ = c.upper.(stepCounter)
	} else {
		a.SetUpper(nil, (*messageSource)(c))
		a.ReportSenderDry(c.keepsEvents && c.eventQueue.wants(EventSenderDry))
	}
	return c
}

// lock makes the caller the owner of the association and returns its core and the time. Between
// lock and unlock the core may be used freely. Nothing in between may block.
func (c *Conn) lock() (*assoc.Assoc, rawio.Time) {
	c.acquireLock()
	return &c.a, c.t.now()
}

// lockAndFlush is lock and unlock, for another goroutine.
func (c *Conn) lockAndFlush() {
	c.acquireLock()
	c.unlock()
}

// acquireLock takes the association lock, tryLock does if it is free, and releaseLock releases it.
func (c *Conn) acquireLock() {
	if !c.tryLockYielding() {
		c.assocLock.ownerMu.Lock()
	}
	c.workSlice = workSlice{stepsAtCheck: c.workSteps()}
	c.beginHold()
}

func (c *Conn) tryLock() bool {
	if !c.assocLock.ownerMu.TryLock() {
		return false
	}
	c.workSlice = workSlice{stepsAtCheck: c.workSteps()}
	c.beginHold()
	return true
}

func (c *Conn) releaseLock() {
	c.endHold()
	c.assocLock.ownerMu.Unlock()
}

// unlock sends what has become ready, hands on packets that arrived meanwhile and releases the
// lock.
func (c *Conn) unlock() { c.unlockAsOf(c.t.now()) }

// unlockAsOf is unlock for a caller that has done so little since now that the clock need not be
// read again.
func (c *Conn) unlockAsOf(now rawio.Time) {
	if c.flushAndUnlock(now) {
		c.t.yieldAndSend()
	}
}

// unlockAfterRead is unlock for a caller that has read, or has only looked. Usually nothing follows
// from that, and looking for what does would take longer than the reading.
func (c *Conn) unlockAfterRead(now rawio.Time) {
	if c.unchargedPackets > 0 || c.afterUnlock != 0 || c.closing || c.ended || c.memoryPressure ||
		c.traceState != nil || c.needsCharge() || c.a.SackDue(now) {
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
	return c.assocLock.backlogLen.Load() > 0 || c.sackReleased.Load()
}

// flushAndUnlock is unlock at a known time. It says whether the caller has to send what the
// coalescer has.
func (c *Conn) flushAndUnlock(now rawio.Time) (combined bool) {
	for round := 0; ; round++ {
		more := c.flushPending(now)
		var events []TraceEvent
		if c.traceState != nil {
			c.traceChanges(now)
			events = c.takeTraceEvents()
		}
		combined = combined || c.mustSendCoalesced
		c.mustSendCoalesced, c.servedWithOthers = false, false
		w, streams, entries, orphans := c.afterUnlock, (*[]*Stream)(nil), (*[]logEntry)(nil), []rawio.Packet(nil)
		if c.afterUnlock = 0; w&taskDrainLists != 0 {
			streams, entries = c.streamsToWake, c.logEntries
			c.streamsToWake, c.logEntries = nil, nil
		}
		if w&taskRerouteOrphans != 0 {
			orphans, c.orphanedPackets = *c.orphanedPackets, nil
		}
		if w&taskWakeWriters != 0 && c.writable.tokenCh == nil {
			w &^= taskWakeWriters // no writer has ever waited
		}
		c.releaseLock()
		if c.backlogOverflowed.Load() && c.backlogOverflowed.Swap(false) {
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

// enqueueBacklog leaves a packet to the holder of the lock, and returns the length of the backlog.
// It returns 0 if there will be no holder any more. The line about a packet without room is written
// after the unlock, as the caller may be the holder.
func (c *Conn) enqueueBacklog(p *rawio.Packet) int {
	switch c.assocLock.enqueuePacket(p) {
	case enqueueClosed:
		return 0
	case enqueueFull:
		c.t.stats.backlogDropped.Add(1)
		c.backlogOverflowed.Store(true)
	}
	return 1
}

// chargePackets counts n packets, and charges the account of the association now and then.
func (c *Conn) chargePackets(n int) {
	if c.unchargedPackets += int32(n); c.unchargedPackets > chargeEveryPackets {
		c.chargeMemory()
		c.unchargedPackets = 1
	}
}

// drainBacklogFirst handles the backlog, and says whether some of it is left. What comes now has to
// wait behind that.
func (c *Conn) drainBacklogFirst(now rawio.Time) bool {
	c.drainBacklog(now)
	return len(c.backlogRest) > 0
}

// orphanBacklog sets the rest of the backlog apart. The association has ended, and these packets
// are for whatever has come after it. Owner only.
func (c *Conn) orphanBacklog() {
	if c.orphanedPackets == nil {
		c.orphanedPackets = new([]rawio.Packet)
	}
	*c.orphanedPackets = append(*c.orphanedPackets, c.backlogRest...)
	c.backlogRest = nil
	c.afterUnlock |= taskRerouteOrphans
}

// drainBacklog handles the packets that have arrived while the lock was taken, as far as the slice
// goes. It says whether there were any.
func (c *Conn) drainBacklog(now rawio.Time) (any bool) {
	for len(c.backlogRest) > 0 || c.assocLock.backlogLen.Load() > 0 {
		if len(c.backlogRest) == 0 {
			c.backlogTaken = c.assocLock.takeBacklog()
			c.backlogRest = c.backlogTaken
		}
		for len(c.backlogRest) > 0 {
			if any = true; c.sliceIsOver(sliceTime / 2) {
				return true
			}
			n := c.processPackets(now, c.backlogRest)
			if n == 0 {
				c.orphanBacklog()
				break
			}
			rawio.ReleaseAll(c.backlogRest[:n])
			c.backlogRest = c.backlogRest[n:]
		}
		c.assocLock.recycleBacklog(c.backlogTaken)
		c.backlogTaken, c.backlogRest = nil, nil
	}
	return any
}

// flushPending moves everything that the last step has made ready: events, messages, packets, the
// timer. Between two batches it takes what has arrived, so that the backlog stays short however
// much there is to send. more says that it has stopped before all was sent, so that others get the
// lock and hear of completions.
func (c *Conn) flushPending(now rawio.Time) (more bool) {
	began := now
	if c.sackReleased.Load() {
		c.releaseSack()
	}
	c.drainBacklog(now)
	c.handleEvents(now)
	left := false
	for range maxBatchesPerHold {
		if c.upper != nil {
			left = c.upper.HandleReceived(now)
		} else {
			left = c.distributeMessages()
		}
		if c.discardedUnread {
			c.abortUnread(now)
		}
		var sent bool
		if sent, more = c.t.transmitBatch(now, &c.a); sent && (more || c.assocLock.backlogLen.Load() > 0) {
			now = c.t.now() // it takes a while
		}
		more = c.drainBacklog(now) || more || left
		more = c.handleEvents(now) || more
		if !more || now.Sub(began) > maxSendTime || c.sliceIsOver(sliceTime) {
			break
		}
	}
	if c.ended && !left && !c.hasUnread() {
		c.freeMemory()
	}
	if c.unchargedPackets > 0 || c.memoryPressure || c.needsCharge() {
		c.chargeMemory()
	}
	if c.trimAt == rawio.Never && !c.ended && (c.sendbuf.heldOctets() > 0 || c.a.State() == assoc.Established &&
		!c.a.IsIdle()) {
		c.trimAt = now.Add(assoc.IdleAfter)
	}
	if next := c.a.NextTimeout(); next <= c.trimAt {
		c.t.timers.setDeadline(c, next, c.a.Slack(next))
	} else {
		c.t.timers.setDeadline(c, c.trimAt, assoc.IdleAfter/2)
	}
	return more
}

// dropUnread gives back messages that will not be read.
func (c *Conn) dropUnread() {
	c.inbox.discardAll(&c.a)
	for _, s := range c.streams { // in whatever order
		s.inbox.discardAll(&c.a)
	}
}

// maxEventsAtOnce is how many events are handled before others run. There is one event for each
// message that fails with an association.
const maxEventsAtOnce = 512

// handleEvents handles the events of the association and says whether there were any.
func (c *Conn) handleEvents(now rawio.Time) (any bool) {
	if c.a.State() == assoc.Closed && !c.ended && c.upper == nil && c.distributeMessages() {
		return true // its end is reported behind the messages that came before
	}
	for i := 0; i < maxEventsAtOnce && c.a.HasEvents() && c.handleNextEvent(now); i++ {
		any = true
	}
	return any
}

// handleNextEvent handles one event, if there is any.
func (c *Conn) handleNextEvent(now rawio.Time) bool {
	ev, ok := c.a.PollEvent()
	if ok {
		c.handleEvent(now, ev)
	}
	return ok
}

func (c *Conn) handleEvent(now rawio.Time, ev assoc.Event) {
	c.queueEvent(ev) // it copies a message that failed before its memory is freed
	c.queueLogEntry(ev)
	if c.traceState != nil {
		c.traceAssocEvent(now, ev)
	}
	switch ev.Kind {
	case assoc.EventUp:
		c.t.stats.established.Add(1)
		c.afterUnlock |= taskAnnounceUp | taskRefreshIndex
	case assoc.EventRestart, assoc.EventPathUp, assoc.EventPathDown:
		c.afterUnlock |= taskRefreshIndex
		c.workSlice.ensureBegun(now)
		if c.failsOnRestart && ev.Kind == assoc.EventRestart {
			c.abortOnRestart(now)
		}
	case assoc.EventDown:
		c.workSlice.ensureBegun(now) // an Upper ends all that it has
		c.err = ev.Err
		c.ended, c.failed, c.trimAt = true, true, rawio.Never
		c.afterUnlock |= taskForgetConn
		c.wakeAll()
	case assoc.EventSendFailed:
		if c.upper == nil {
			c.sendbuf.freeMessage(ev.Token)
			c.afterUnlock |= taskWakeWriters
			c.hasUnsent = c.hasUnsent || c.closing
		}
	}
	if c.upper != nil {
		c.upper.HandleEvent(now, ev)
	}
}

// runUnlockTasks does what must not be done under the lock. It wakes all that wait. Readers and
// writers come last, as they may ask for what else has happened. It returns the rest of the backlog
// of an association that is no more.
func (c *Conn) runUnlockTasks(w unlockTask, streams *[]*Stream) (left []rawio.Packet) {
	var next *rawio.Packet
	if w&taskNotifyEvents != 0 {
		sendToken(c.eventQueue.arrivedCh)
	}
	if w&taskRefreshIndex != 0 {
		c.t.refreshIndex(c)
	}
	if w&taskAnnounceUp != 0 && c.lifecycle.claimAnnouncement() {
		c.announceUp()
	}
	if c.upper != nil {
		c.upper.Settled()
	}
	if w&taskForgetConn != 0 {
		next = c.t.forgetConn(c)
		if c.socket != nil {
			c.socket.removeConn(c)
		}
		c.lifecycle.markEnded()
		c.t.wakeLinkReader()
	}
	if w&taskCloseAccount != 0 {
		left = c.t.closeAccount(c)
		if c.listener != nil && c.err != assoc.ErrShutdown {
			c.listener.dropFailed(c)
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
		c.spareWakeList.Store(streams)
	}
	if w&taskWakeReaders != 0 {
		c.readable.Set()
	}
	if w&taskWakeSocket != 0 {
		c.socket.readable.Set()
	}
	if w&taskWakeWriters != 0 {
		c.writable.Set()
	}
	return left
}

// announceUp wakes the goroutines that wait for the association to be established.
func (c *Conn) announceUp() {
	switch {
	case c.socket != nil:
		c.socket.addConn(c)
	case c.listener != nil:
		c.listener.offerConn(c)
	}
	c.lifecycle.markUp()
}

// wakeAll makes runUnlockTasks wake all readers and writers. Owner only.
func (c *Conn) wakeAll() {
	c.afterUnlock |= taskWakeReaders | taskWakeWriters
	for _, s := range c.streams { // in whatever order
		c.wakeStream(s)
	}
}

func sendToken(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// handleTimeout is called by the timer heap when the deadline of c has come, or is near. The heap
// may send its packets with those of others.
func (c *Conn) handleTimeout() {
	a, now := c.lock()
	c.servedWithOthers = true
	a.HandleTimeout(now)
	if now >= c.trimAt.Add(-assoc.IdleAfter/2) { // half of it is enough if a goroutine is awake for others then
		c.sendbuf.trimIdle()
		c.trimAt = rawio.Never
	}
	c.trimAccounts(c.heldOctets()) // any timer is an occasion
	c.flushAndUnlock(now)
}

// Done is closed when the association has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.lifecycle.endedChan() }

// Err returns why the association has ended, or nil while it lives.
func (c *Conn) Err() error {
	if c.lifecycle.hasEnded() {
		return c.err
	}
	return nil
}

// Close ends the association gracefully (RFC 9260 section 9.2): what was written is delivered
// first. It returns when the peer has acknowledged everything and agreed to end, because this stack
// ends with the process. After CloseTimeout ([TransportConfig]) it aborts instead, unless the peer
// goes on acknowledging what was written. Associations that close at once share that time. It fails
// with os.ErrDeadlineExceeded then. If the association has ended before the peer had everything, it
// fails with the reason. Reads and writes fail at once. If messages of the peer are unread, the
// peer gets an ABORT (cause 12) once it has everything. They are lost, as when a kernel's socket is
// closed. Closing again returns nil.
func (c *Conn) Close() error {
	_, err := c.closeGracefully()
	return err
}

// closedUnreadReason is the reason in the ABORT when Close has dropped messages of the peer.
const closedUnreadReason = "closed with messages unread"

// closeGracefully is Close, and says whether it was the first.
func (c *Conn) closeGracefully() (first bool, err error) {
	a, now := c.lock()
	first = !c.closing
	c.closing = true
	c.wakeAll()
	if first {
		c.discardedUnread = c.hasUnread()
		c.dropUnread()
		a.Shutdown(now)
	}
	trip := a.PathStats(a.Stats().Primary).SRTT
	c.unlock()
	if !first {
		return false, nil
	}
	if !c.awaitEnd(trip) {
		c.t.closeGrace.RecordVainWait()
		c.Abort("close timed out")
		return true, os.ErrDeadlineExceeded
	}
	if c.hasUnsent {
		return true, c.err
	}
	return true, nil
}

const (
	// minCloseRate is how many octets the peer has to acknowledge in a second for Close to go on
	// beyond CloseTimeout. maxCloseTimeouts is how often CloseTimeout it may take in all.
	minCloseRate     = 1 << 10
	maxCloseTimeouts = 10
)

// awaitEnd waits for the end of the association, over a path with that round trip, and says whether
// it has come. Beyond the grace period it waits as long as each further CloseTimeout sees progress.
func (c *Conn) awaitEnd(trip time.Duration) bool {
	period := c.t.cfg.closeTimeout()
	wait := c.t.closeGrace.WaitLeft(period, trip)
	left := c.unackedOctets()
	for range maxCloseTimeouts {
		timer := time.NewTimer(wait)
		select {
		case <-c.Done():
			timer.Stop()
			return true
		case <-timer.C:
		}
		had := left
		if left = c.unackedOctets(); float64(had-left) < minCloseRate*wait.Seconds() && (had == 0 || left > 0) {
			return false
		}
		wait = period
	}
	return false
}

// unackedOctets returns the octets that were written and that the peer has not acknowledged.
func (c *Conn) unackedOctets() int {
	st := c.Stats()
	return st.Outstanding + st.Queued
}

// abortUnread aborts the association in place of SHUTDOWN, or SHUTDOWN ACK, if Close has dropped
// messages of the peer. All that was written is delivered by then. Owner only.
func (c *Conn) abortUnread(now rawio.Time) {
	if s := c.a.State(); s == assoc.ShutdownSent || s == assoc.ShutdownAckSent {
		c.discardedUnread = false
		c.a.Abort(now, []byte(closedUnreadReason))
	}
}

// Abort ends the association at once (RFC 9260 section 9.1). What was not yet delivered is lost.
// The peer gets the reason.
func (c *Conn) Abort(reason string) {
	a, now := c.lock()
	if !c.closing {
		c.closing = true
		c.dropUnread()
	}
	a.Abort(now, []byte(reason))
	c.unlock()
}

// closedErr returns what a call on a Conn that is no longer usable returns. Owner only.
func (c *Conn) closedErr() error {
	switch {
	case c.closing:
		return net.ErrClosed
	case !c.failed:
		return nil
	case c.unreadLostErr != nil:
		return c.unreadLostErr
	}
	return c.err
}

// readErr returns the result of a read when there is nothing left to read. It is nil while the
// association can still receive. Owner only.
func (c *Conn) readErr() error {
	switch err := c.closedErr(); {
	case err == assoc.ErrShutdown:
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF // Err has more to say
	default:
		return err
	}
}

// SetDeadline sets the read and the write deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	c.readDeadline.set(t)
	c.writeDeadline.set(t)
	return nil
}

// SetReadDeadline makes reads that block past t fail with os.ErrDeadlineExceeded. The zero time
// means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { c.readDeadline.set(t); return nil }

// SetWriteDeadline makes writes that block past t fail with os.ErrDeadlineExceeded.
func (c *Conn) SetWriteDeadline(t time.Time) error { c.writeDeadline.set(t); return nil }

// LocalAddr returns the local address and SCTP port.
func (c *Conn) LocalAddr() net.Addr {
	a, _ := c.lock()
	defer c.unlock()
	return Addr{netip.AddrPortFrom(a.LocalAddr().Addr(), a.LocalPort())}
}

// RemoteAddr returns the address of the peer's primary path and its SCTP port.
func (c *Conn) RemoteAddr() net.Addr {
	a, _ := c.lock()
	defer c.unlock()
	return Addr{netip.AddrPortFrom(a.PeerAddr().Addr(), a.PeerPort())}
}

// Stats returns the counters of the association and its paths.
func (c *Conn) Stats() assoc.Stats {
	a, _ := c.lock()
	defer c.unlock()
	return a.Stats()
}

// Addr is an IP address and an SCTP port.
type Addr struct{ netip.AddrPort }

// Network returns "sctp".
func (Addr) Network() string { return "sctp" }
