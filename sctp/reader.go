package sctp

import (
	"runtime"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	rxBatchPackets = 128       // packets read at once
	maxRunOctets   = 256 << 10 // octets that one SACK answers

	// shortWorkOctets is after how many octets the clock is read anew, as it has taken a while to
	// handle them.
	shortWorkOctets = 4 << 10

	// shortPacketOctets is the average length of packets that bring no bulk. Their answers may wait
	// for those of the others.
	shortPacketOctets = 256

	// maxRunsUnflushed is for how many runs the coalescer waits for more.
	maxRunsUnflushed = 4
)

// receiver is the state of the reader of a queue of the link.
type receiver struct {
	t                 *Transport
	poller            rawio.Poller            // nil: the queue is none
	waitSignal        *atomic.Pointer[signal] // what else the reader waits for, while it may block; nil: nothing
	flushesOnWait     bool                    // for the coalescer: it flushes before it waits
	runsSinceFlush    int                     // since it has sent behind a run
	policy            readPolicy              // which also says how to wait
	pkts              []rawio.Packet
	conns             []*Conn    // of the packets; nil between two calls of dispatchBatch
	isDeferred        []bool     // see resolveDeferred; false between two calls of dispatchBatch
	numDeferred       int        // how many these are
	indexChanged      bool       // handled packets have changed which association others belong to
	repliesPending    bool       // the endpoint may have answers to send
	isRedelivery      bool       // the packets have been counted before
	hashes            []uint64   // for lookup
	fetchingConn      *Conn      // the one whose first half was prefetched last
	fetchedConn       *Conn      // and the one that has come, with fetchMore next
	lastConn          *Conn      // the association of the last packets: it has not transmitted yet
	holdsLock         bool       // this goroutine holds its lock
	runPackets        int        // packets since the last pause
	runOctets         int        // of them
	wakesSeen         uint64     // wakes after the last of them
	requestsSeen      uint64     // things to answer, likewise
	lastTag           uint32     // of the association to which the last of them belong
	lastDataSent      uint64     // DATA chunks that it has sent
	lastAnswered      bool       // since those before, or they were another's
	mustSendCoalesced bool       // they have put something into the coalescer
	servesSeveral     bool       // they are of more than one association
	arrivedAt         rawio.Time // when packets came last
	threadPin         threadPin  // of a receive goroutine
}

func newReceiver(t *Transport, q rawio.Shard, waits bool) receiver {
	r := receiver{t: t}
	n := rxBatchPackets
	if most := rawio.MaxBatchOf(t.link); most > 0 {
		n = min(n, most)
	}
	r.setPackets(make([]rawio.Packet, n))
	r.poller, _ = q.(rawio.Poller)
	r.policy = t.newReadPolicy(q, waits)
	return r
}

// setPackets takes the packets that come in one batch at most.
func (r *receiver) setPackets(pkts []rawio.Packet) {
	r.pkts, r.conns = pkts, make([]*Conn, len(pkts))
	r.isDeferred, r.hashes = make([]bool, len(pkts)), make([]uint64, len(pkts))
}

// serveQueue is the receive goroutine of a further queue of the link.
func (t *Transport) serveQueue(s rawio.Shard) {
	r := newReceiver(t, s, true)
	defer r.threadPin.unpinThread()
	for {
		if r.runBatch(r.waitBatch()) != nil {
			return
		}
		r.threadPin.setPinned(r.policy.KeepsThread() && t.readsInKernel)
	}
}

// beginRun is the beginning of a run.
func (r *receiver) beginRun() {
	if r.waitSignal != nil {
		r.waitSignal.Store(nil)
	}
	r.runPackets, r.runOctets, r.servesSeveral = 0, 0, false
}

// expectsMore says whether to look for more behind n packets.
func (r *receiver) expectsMore(n int) bool {
	return r.poller != nil && r.runOctets < maxRunOctets && r.policy.ExpectsMore(n)
}

// beginBatch notes that n packets have come, and finds their associations.
func (r *receiver) beginBatch(n int) {
	r.arrivedAt = r.t.now()
	if !r.isRedelivery {
		r.t.stats.rxPackets.Add(uint64(n))
		r.t.stats.rxBatches.Add(1)
		r.policy.RecordArrival(r.arrivedAt, n)
	}
	r.runPackets += n
	if r.holdsLock { // the tables are locked before any association lock, if a packet seems to have no association
		r.lastConn.releaseLock()
		r.holdsLock = false
	}
	r.lookupConns(n)
}

// finishRun is the end of a run: it sends what the packets have caused.
func (r *receiver) finishRun(err error) error {
	held := r.releaseConn(true)
	if r.mustSendCoalesced {
		r.t.sendCoalesced()
		r.mustSendCoalesced = false
	}
	if r.runPackets > 0 {
		woken := counterDelta(&r.t.signals.wakes, &r.wakesSeen)
		answers := woken
		// answers of one association go together in any case
		if brought := counterDelta(&r.t.signals.requests, &r.requestsSeen); r.servesSeveral {
			answers = max(woken, brought)
		}
		r.t.coalescer.expectReplies(answers)
		r.policy.RecordHandled(r.runPackets, r.runOctets, woken, r.lastAnswered)
		if held != nil {
			r.releaseHeldSack(held, woken > 0)
		}
	}
	if r.flushesOnWait {
		r.updateReaderFlushes(err == nil && r.policy.GathersReplies())
	}
	switch {
	case err == nil, err == rawio.ErrInterrupted:
		return nil
	}
	r.t.handleLinkFailure(err)
	return err
}

// counterDelta returns by how much a counter has grown since it was looked at last.
func counterDelta(n *atomic.Uint64, last *uint64) uint64 {
	now := n.Load()
	grown := now - *last
	*last = now
	return grown
}

// updateReaderFlushes is setReaderFlushes of the Transport, after a run. It flushes seldom, as the
// goroutines that the packets have woken are about to add to the batch. It flushes soon enough when
// more packets come and the reader does not wait.
func (r *receiver) updateReaderFlushes(is bool) {
	if r.runsSinceFlush++; !is || r.runsSinceFlush >= maxRunsUnflushed || r.runOctets > shortWorkOctets {
		r.runsSinceFlush = 0
		r.t.setReaderFlushes(is)
	}
}

// handOffConn leaves an association that keeps others waiting to another goroutine, with its own
// packets from the i-th to the n-th.
func (r *receiver) handOffConn(c *Conn, i, n int) {
	for ; i < n; i++ {
		if r.conns[i] == c {
			c.enqueueBacklog(&r.pkts[i])
			r.conns[i] = nil
		}
	}
	c.releaseLock()
	go c.lockAndFlush()
	r.lastConn, r.holdsLock = nil, false
}

// consecutivePackets returns the packets of an association that are in a row from the i-th on. It
// returns as many as may be handled together.
func (r *receiver) consecutivePackets(c *Conn, i, n int) []rawio.Packet {
	end := i + 1
	for n = min(n, i+assoc.RowMost); end < n && r.conns[end] == c; end++ {
	}
	return r.pkts[i:end]
}

// markHandled notes that n packets of an association are handled, from the i-th on, and returns the
// number of the last.
func (r *receiver) markHandled(c *Conn, i, n int) int {
	for end := i + n; i < end; i++ {
		r.conns[i] = nil
		r.runOctets += len(r.pkts[i].Data)
	}
	r.lastConn = c
	return i - 1
}

// releaseConn releases the association whose packets were handled last. It returns the association
// if its SACK is held back, for which it must be the last.
func (r *receiver) releaseConn(last bool) (held *Conn) {
	r.servesSeveral = r.servesSeveral || !last && r.lastConn != nil
	// Otherwise another goroutine has the lock, and does the same when it unlocks.
	if r.lastConn != nil && (r.holdsLock || r.lastConn.tryLock()) {
		if last {
			r.watchAnswers(&r.lastConn.core)
		}
		r.indexChanged = r.indexChanged || r.lastConn.core.HasEvents()
		now := r.arrivedAt
		if !r.holdsLock || r.runOctets > shortWorkOctets { // others have had the lock, or the packets took a while
			now = r.t.now()
		}
		if last && r.lastConn.core.SackDue(now) && r.policy.HoldsSack() {
			r.lastConn.core.HoldSack(true)
			held = r.lastConn
		}
		r.lastConn.core.SetCrowded(r.servesSeveral && r.t.manyAssocs.Load())
		r.lastConn.coalescing.withOthers = r.servesSeveral &&
			(r.runOctets <= shortWorkOctets || r.runOctets <= r.runPackets*shortPacketOctets)
		r.mustSendCoalesced = r.lastConn.flushAndUnlock(now) || r.mustSendCoalesced
	}
	r.lastConn, r.holdsLock = nil, false
	r.prefetchRest()
	return held
}

// watchAnswers sees whether an association has sent messages since it was watched last.
func (r *receiver) watchAnswers(a *assoc.Assoc) {
	tag, sent := a.LocalTag(), a.DataSent()
	r.lastAnswered = tag != r.lastTag || sent != r.lastDataSent
	r.lastTag, r.lastDataSent = tag, sent
}

// releaseHeldSack first lets the goroutines that the packets have woken run. Then it releases the
// SACK that was held back for their answer. An answer that has come in time has taken the SACK
// along, which spares both sides a packet.
func (r *receiver) releaseHeldSack(c *Conn, woken bool) {
	if woken {
		runtime.Gosched()
	}
	if !c.tryLock() {
		c.coalescing.sackReleased.Store(true)
		if !c.tryLock() { // the owner may have left before it could see that
			return
		}
	}
	now := r.t.now()
	c.releaseSack()
	r.policy.RecordHeldSack(!c.core.SackDue(now))
	c.unlockAfterRead(now)
}

// releaseSack lets a SACK go that was held back. Owner only.
func (c *Conn) releaseSack() {
	c.coalescing.sackReleased.Store(false)
	c.core.HoldSack(false)
}
