package sctp

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	maxCoalescedPackets = 2       // most of one association at a time
	maxCoalescedOctets  = 5 << 10 // of these: a message of 4 KiB, if one packet takes it
	maxBatchPackets     = 128     // packets in a batch
	maxBatchOctets      = maxBatchPackets * 768
	expectedRepliesPart = 3 // see coalescer.expectReplies

	lockSpins  = 200 // half a microsecond or so
	lockYields = 64  // see lock
)

// coalescer sends the packets of several associations together. When many packets arrive, their
// readers are awake together, and each is about to answer. A system call for each answer would take
// longer than everything else.
//
// Packets point into memory that only the holder of their association's lock may recycle. So they
// are copied into a batch of the Transport. A goroutine that adds enough sends the batch, after it
// has released its lock. Otherwise the link's reader sends it: it first lets the goroutines that it
// has woken run. While the reader sleeps, the goroutine that adds the first packet sends, after the
// others that can run. A goroutine that finds the batch full sends it as well. So nobody waits for
// the lock of another association, and no goroutine holds two. Long packets, and those of a lone
// request, go out by themselves.
type coalescer struct {
	writeLink func([]rawio.Packet) // to the link

	mu             sync.Mutex   // a leaf lock
	batch          packetBatch  // guarded by mu
	pendingPackets atomic.Int32 // packets that are not sent yet
	flushThreshold atomic.Int32 // of them to be sent, see expectReplies
	readerFlushes  atomic.Bool  // the link's reader is awake, and flushes before it sleeps, see setReaderFlushes

	// held while a batch is sent, to keep the packets of an association in order; taken before mu
	sendMu      sync.Mutex
	spareBatch  packetBatch   // guarded by sendMu
	lastSwapped uint64        // guarded by mu: the number of batch, less one
	lastSent    atomic.Uint64 // the number of the batch that was sent last
}

// packetBatch is packets of several associations, and their memory.
type packetBatch struct {
	pkts []rawio.Packet
	vecs [][]byte
	buf  []byte
}

func (b *packetBatch) reset() {
	clear(b.pkts)
	clear(b.vecs)
	b.pkts, b.vecs, b.buf = b.pkts[:0], b.vecs[:0], b.buf[:0]
}

// appendCopies copies packets.
func (b *packetBatch) appendCopies(pkts []rawio.Packet) {
	if b.buf == nil {
		b.pkts, b.vecs, b.buf = make([]rawio.Packet, 0, maxBatchPackets), make([][]byte, 0, maxBatchPackets),
			make([]byte, 0, maxBatchOctets)
	}
	for i := range pkts {
		at, n := len(b.buf), len(b.vecs)
		for _, v := range pkts[i].Vec {
			b.buf = append(b.buf, v...)
		}
		b.vecs = append(b.vecs, b.buf[at:len(b.buf):len(b.buf)])
		b.pkts = append(b.pkts, pkts[i])
		b.pkts[len(b.pkts)-1].Vec = b.vecs[n : n+1 : n+1]
	}
}

// expectReplies takes how many goroutines the last packets have woken. When a part of their answers
// is queued, the batch is sent. So the peer has something to do while the others answer.
func (o *coalescer) expectReplies(n uint64) {
	o.flushThreshold.Store(int32(min(n, maxBatchPackets)/expectedRepliesPart + 1))
}

// tryAdd adds packets to the batch, if there is room, and returns the number of the batch. It says
// whether the caller has to send the batch after it has released its lock. The number is 0 if there
// is no room.
func (o *coalescer) tryAdd(pkts []rawio.Packet, octets int) (number uint64, yours bool) {
	o.lock()
	defer o.mu.Unlock()
	first := len(o.batch.pkts) == 0
	if len(o.batch.pkts)+len(pkts) > maxBatchPackets || len(o.batch.buf)+octets > maxBatchOctets {
		return 0, false
	}
	o.batch.appendCopies(pkts)
	n := int32(len(o.batch.pkts))
	o.pendingPackets.Store(n)
	// The packets are counted first: a reader that stops flushing looks at the count.
	return o.lastSwapped + 1, first && !o.readerFlushes.Load() || n >= o.flushThreshold.Load()
}

// lock takes mu, which is held while a packet or two are copied. A caller that finds it taken tries
// again before it sleeps, as sleeping takes far longer. The mutex itself spins only when no
// goroutine is ready to run, and here many are. One goroutine that sleeps on it is soon followed by
// all others. A mutex that was contended for long is handed from one to the next. So a caller
// yields to the others first.
func (o *coalescer) lock() {
	for range lockYields {
		for range lockSpins {
			if o.mu.TryLock() {
				return
			}
		}
		runtime.Gosched()
	}
	o.mu.Lock()
}

// sendPending writes everything pending, unless another goroutine does: that one goes on with it.
// So nobody waits for a system call with another's packets.
func (o *coalescer) sendPending() {
	for round := 0; o.pendingPackets.Load() > 0 && o.sendMu.TryLock(); round++ {
		o.flushBatch()
		o.sendMu.Unlock() // before it looks again: a caller that found it locked has added packets before
		if round == maxRoundsPerCaller {
			go o.sendPending()
			return
		}
	}
}

// awaitSent returns when a batch was sent, and all before it.
func (o *coalescer) awaitSent(number uint64) {
	if o.lastSent.Load() >= number {
		return
	}
	o.sendMu.Lock()
	if o.lastSent.Load() < number {
		o.flushBatch()
	}
	o.sendMu.Unlock()
	o.sendPending() // what others have left to it meanwhile
}

// flushBatch writes the batch. Called with sendMu held.
func (o *coalescer) flushBatch() {
	o.lock()
	o.batch, o.spareBatch = o.spareBatch, o.batch
	o.lastSwapped++
	number := o.lastSwapped
	o.mu.Unlock()
	o.writeLink(o.spareBatch.pkts)
	o.spareBatch.reset()
	o.lastSent.Store(number)
	o.lock()
	o.pendingPackets.Store(int32(len(o.batch.pkts)))
	o.mu.Unlock()
}

// coalescing is what goes out of an association together with packets of others. Owner only, but
// for sackReleased.
type coalescing struct {
	mustSend     bool        // its packets wait in the coalescer, and the owner has to flush it
	withOthers   bool        // others are being served with it, and what they send may go together
	sackReleased atomic.Bool // a SACK that was held back may go
	batch        uint64      // the last batch of the coalescer that has packets of it
}

// tryCoalesce leaves the packets of b, an association's, to the coalescer if they suit it. Called
// by the holder of the lock.
func (t *Transport) tryCoalesce(b *assoc.TxBatch, a *assoc.Assoc) bool {
	c := connOf(a)
	if len(b.Pkts) > maxCoalescedPackets || b.Octets() > maxCoalescedOctets || a.State() != assoc.Established ||
		!t.readerRole.rx.policy.Coalesces(c.coalescing.withOthers, t.repliesExpected()) {
		return false
	}
	number, yours := t.coalescer.tryAdd(b.Pkts, b.Octets())
	if number == 0 { // the sender has more to do first, such as the reader of a long run
		t.sendCoalesced()
		if number, yours = t.coalescer.tryAdd(b.Pkts, b.Octets()); number == 0 {
			return false
		}
	}
	c.coalescing.mustSend, c.coalescing.batch = c.coalescing.mustSend || yours, number
	b.Reset()
	return true
}

// repliesExpected says whether several goroutines are awake to answer what has come.
func (t *Transport) repliesExpected() bool {
	return t.coalescer.flushThreshold.Load() > 1
}

// sendCoalesced sends what the coalescer has. What the link refuses counts as lost.
func (t *Transport) sendCoalesced() { t.coalescer.sendPending() }

// awaitCoalesced sends the packets of an association that the coalescer has, before what follows.
func (t *Transport) awaitCoalesced(c *Conn) { t.coalescer.awaitSent(c.coalescing.batch) }

func (t *Transport) writeCoalesced(pkts []rawio.Packet) { t.writePackets(0, pkts, nil) }

// setReaderFlushes says whether the link's reader will look for packets to send again before it
// sleeps. It also sends what there is.
func (t *Transport) setReaderFlushes(is bool) {
	t.coalescer.readerFlushes.Store(is)
	t.sendCoalesced()
}

// flushingWaiter is the link for its reader, which flushes the coalescer before it waits. So the
// goroutines that it has woken need not flush one by one.
type flushingWaiter struct {
	rawio.Waiter
	t *Transport
}

func (w flushingWaiter) Wait(p rawio.Pause) error {
	w.t.setReaderFlushes(p == rawio.Yield || p == rawio.Cede)
	err := w.Waiter.Wait(p)
	w.t.coalescer.readerFlushes.Store(err == nil)
	return err
}

// yieldAndSend is sendCoalesced at once if there is enough, and else after the goroutines that can
// run.
func (t *Transport) yieldAndSend() {
	if t.coalescer.pendingPackets.Load() < t.coalescer.flushThreshold.Load() {
		runtime.Gosched()
	}
	t.sendCoalesced()
}
