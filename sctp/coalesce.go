package sctp

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/pollpolicy"
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

// coalescer sends together what several associations have ready. Where packets come in numbers
// their readers are awake together, and each is about to answer: a system call for each answer
// would take longer than all else.
//
// A packet points into memory that only the owner of its association may recycle, so it is copied,
// into a batch of the Transport's. Who puts enough there sends them all, once it has given its gate
// up; or the link's reader does, which lets those go on that it has woken before it looks for more.
// While the reader sleeps it is who puts the first one there, having let those go on that can run.
// Who finds it full sends it as well. So nobody waits for another's gate, and no two gates are ever
// held. Long packets, and those of a lone request, go out by themselves.
type coalescer struct {
	writeLink func([]rawio.Packet) // to the link

	mu             sync.Mutex   // a leaf lock
	batch          packetBatch  // guarded by mu
	pendingPackets atomic.Int32 // packets that are not sent yet
	flushThreshold atomic.Int32 // of them to be sent, see woke
	readerFlushes  atomic.Bool  // the link's reader is awake, and sends what there is before it is not, see collect

	sendMu      sync.Mutex    // held while a batch is sent, so that the packets of an association keep their order; taken before mu
	spareBatch  packetBatch   // guarded by sending
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
		b.pkts, b.vecs, b.buf = make([]rawio.Packet, 0, maxBatchPackets), make([][]byte, 0, maxBatchPackets), make([]byte, 0, maxBatchOctets)
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

// expectReplies says how many goroutines the packets that have just been handled have woken. A part
// of their answers is enough to be sent, so that the peer has something to do while the others
// answer.
func (o *coalescer) expectReplies(n uint64) {
	o.flushThreshold.Store(int32(min(n, maxBatchPackets)/expectedRepliesPart + 1))
}

// tryAdd takes packets, if there is room, into the batch whose number it returns, and says whether
// the caller has to send what there is when it has opened its gate. The number is 0 if there is no
// room.
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
	// It is counted first: who collects no more looks for it.
	return o.lastSwapped + 1, first && !o.readerFlushes.Load() || n >= o.flushThreshold.Load()
}

// lock takes mu, which is held while a packet or two are copied. Who finds it taken looks again
// before it sleeps, as that would take far longer; the mutex itself does so only where no goroutine
// is ready to run, and here many are. Whoever sleeps for it, for as long as the holder's thread has
// no processor, is soon followed by all others, as a mutex that has kept somebody waiting for long
// is handed from one to the next; so these go on first.
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

// sendPending has all that there is written, unless somebody else is at that, who goes on with it:
// nobody waits for a system call of another's packets.
func (o *coalescer) sendPending() {
	for round := 0; o.pendingPackets.Load() > 0 && o.sendMu.TryLock(); round++ {
		o.flushBatch()
		o.sendMu.Unlock() // before it looks again: who has found it locked has put something there before
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

// flushBatch has the batch written. Called with sending held.
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

// tryCoalesce leaves the packets of b, an association's, to the combiner if they are for it. Called
// by the owner.
func (t *Transport) tryCoalesce(b *assoc.TxBatch, a *assoc.Assoc) bool {
	c := a.Owner.(*Conn)
	if len(b.Pkts) > maxCoalescedPackets || b.Octets() > maxCoalescedOctets || a.State() != assoc.Established || !c.servedWithOthers && !t.repliesExpected() {
		return false
	}
	number, yours := t.coalescer.tryAdd(b.Pkts, b.Octets())
	if number == 0 { // who is to send them has more to do first, such as the reader of a long run
		t.sendCoalesced()
		if number, yours = t.coalescer.tryAdd(b.Pkts, b.Octets()); number == 0 {
			return false
		}
	}
	c.mustSendCoalesced, c.coalescedBatch = c.mustSendCoalesced || yours, number
	b.Reset()
	return true
}

// repliesExpected says whether several goroutines are awake to answer what has come.
func (t *Transport) repliesExpected() bool {
	return t.coalescer.flushThreshold.Load() > 1 && t.readerRole.rx.pollPolicy.State() == pollpolicy.Concurrent
}

// sendCoalesced sends what the combiner has. What the link refuses counts as lost.
func (t *Transport) sendCoalesced() { t.coalescer.sendPending() }

// awaitCoalesced sends what the combiner has of an association, if anything, before what follows.
func (t *Transport) awaitCoalesced(c *Conn) { t.coalescer.awaitSent(c.coalescedBatch) }

func (t *Transport) writeCoalesced(pkts []rawio.Packet) { t.writePackets(0, pkts, nil) }

// setReaderFlushes says whether the link's reader is going to look for packets to send again before
// it sleeps, and sends what there is.
func (t *Transport) setReaderFlushes(is bool) {
	t.coalescer.readerFlushes.Store(is)
	t.sendCoalesced()
}

// flushingWaiter is the link for its reader, which sends what the combiner has before it waits: so
// those that it has woken need not see to that, one by one.
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

// yieldAndSend is sendCoalesced when there is enough, and else after those have gone on that can.
func (t *Transport) yieldAndSend() {
	if t.coalescer.pendingPackets.Load() < t.coalescer.flushThreshold.Load() {
		runtime.Gosched()
	}
	t.sendCoalesced()
}
