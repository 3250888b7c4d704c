package sctp

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rddp-go/rddp/internal/pace"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	combinePackets = 2       // most of one association at a time
	combineOctets  = 5 << 10 // of these: a message of 4 KiB, if one packet takes it
	combinedMost   = 128     // packets in a batch
	combinedOctets = combinedMost * 768
	combinePart    = 3 // see combiner.woke

	lockTries = 200 // half a microsecond or so
	lockTurns = 64  // see lock
)

// combiner sends together what several associations have ready. Where packets come in numbers their readers are awake together, and each is
// about to answer: a system call for each answer would take longer than all else.
//
// A packet points into memory that only the owner of its association may recycle, so it is copied, into a batch of the Transport's. Who
// puts enough there sends them all, once it has given its gate up; or the link's reader does, which lets those go on that it has woken before it looks
// for more. While the reader sleeps it is who puts the first one there, having let those go on that can run. Who finds it full sends it as well. So nobody waits for another's
// gate, and no two gates are ever held. Long packets, and those of a lone request, go out by themselves.
type combiner struct {
	write func([]rawio.Packet) // to the link

	mu        sync.Mutex   // a leaf lock
	batch     combined     // guarded by mu
	pending   atomic.Int32 // packets that are not sent yet
	enough    atomic.Int32 // of them to be sent, see woke
	collected atomic.Bool  // the link's reader is awake, and sends what there is before it is not, see collect

	sending sync.Mutex    // held while a batch is sent, so that the packets of an association keep their order; taken before mu
	spare   combined      // guarded by sending
	filling uint64        // guarded by mu: the number of batch, less one
	sent    atomic.Uint64 // the number of the batch that was sent last
}

// combined is packets of several associations, and their memory.
type combined struct {
	pkts []rawio.Packet
	vecs [][]byte
	buf  []byte
}

func (b *combined) reset() {
	clear(b.pkts)
	clear(b.vecs)
	b.pkts, b.vecs, b.buf = b.pkts[:0], b.vecs[:0], b.buf[:0]
}

// add copies packets.
func (b *combined) add(pkts []rawio.Packet) {
	if b.buf == nil {
		b.pkts, b.vecs, b.buf = make([]rawio.Packet, 0, combinedMost), make([][]byte, 0, combinedMost), make([]byte, 0, combinedOctets)
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

// woke says how many goroutines the packets that have just been handled have woken. A part of their answers is enough to be sent, so that the peer
// has something to do while the others answer.
func (o *combiner) woke(n uint64) { o.enough.Store(int32(min(n, combinedMost)/combinePart + 1)) }

// add takes packets, if there is room, into the batch whose number it returns, and says whether the caller has to send what there is when it has opened its
// gate. The number is 0 if there is no room.
func (o *combiner) add(pkts []rawio.Packet, octets int) (number uint64, yours bool) {
	o.lock()
	defer o.mu.Unlock()
	first := len(o.batch.pkts) == 0
	if len(o.batch.pkts)+len(pkts) > combinedMost || len(o.batch.buf)+octets > combinedOctets {
		return 0, false
	}
	o.batch.add(pkts)
	n := int32(len(o.batch.pkts))
	o.pending.Store(n)
	// It is counted first: who collects no more looks for it.
	return o.filling + 1, first && !o.collected.Load() || n >= o.enough.Load()
}

// lock takes mu, which is held while a packet or two are copied. Who finds it taken looks again before it sleeps, as that would take far longer; the mutex itself does so
// only where no goroutine is ready to run, and here many are. Whoever sleeps for it, for as long as the holder's thread has no processor, is soon followed by all others, as a mutex that
// has kept somebody waiting for long is handed from one to the next; so these go on first.
func (o *combiner) lock() {
	for range lockTurns {
		for range lockTries {
			if o.mu.TryLock() {
				return
			}
		}
		runtime.Gosched()
	}
	o.mu.Lock()
}

// send has all that there is written, unless somebody else is at that, who goes on with it: nobody waits for a system call of another's packets.
func (o *combiner) send() {
	for round := 0; o.pending.Load() > 0 && o.sending.TryLock(); round++ {
		o.flush()
		o.sending.Unlock() // before it looks again: who has found it locked has put something there before
		if round == ownerRounds {
			go o.send()
			return
		}
	}
}

// await returns when a batch was sent, and all before it.
func (o *combiner) await(number uint64) {
	if o.sent.Load() >= number {
		return
	}
	o.sending.Lock()
	if o.sent.Load() < number {
		o.flush()
	}
	o.sending.Unlock()
	o.send() // what others have left to it meanwhile
}

// flush has the batch written. Called with sending held.
func (o *combiner) flush() {
	o.lock()
	o.batch, o.spare = o.spare, o.batch
	o.filling++
	number := o.filling
	o.mu.Unlock()
	o.write(o.spare.pkts)
	o.spare.reset()
	o.sent.Store(number)
	o.lock()
	o.pending.Store(int32(len(o.batch.pkts)))
	o.mu.Unlock()
}

// combine leaves the packets of b, an association's, to the combiner if they are for it. Called by the owner.
func (t *Transport) combine(b *assoc.TxBatch, a *assoc.Assoc) bool {
	c := a.Owner.(*Conn)
	if len(b.Pkts) > combinePackets || b.Octets() > combineOctets || a.State() != assoc.Established || !c.among && !t.answered() {
		return false
	}
	number, yours := t.out.add(b.Pkts, b.Octets())
	if number == 0 { // who is to send them has more to do first, such as the reader of a long run
		t.sendCombined()
		if number, yours = t.out.add(b.Pkts, b.Octets()); number == 0 {
			return false
		}
	}
	c.combined, c.combinedIn = c.combined || yours, number
	b.Reset()
	return true
}

// answered says whether several goroutines are awake to answer what has come.
func (t *Transport) answered() bool {
	return t.out.enough.Load() > 1 && t.turn.rx.pace.State() == pace.Many
}

// sendCombined sends what the combiner has. What the link refuses counts as lost.
func (t *Transport) sendCombined() { t.out.send() }

// sendBefore sends what the combiner has of an association, if anything, before what follows.
func (t *Transport) sendBefore(c *Conn) { t.out.await(c.combinedIn) }

func (t *Transport) writeCombined(pkts []rawio.Packet) { t.writeAll(0, pkts, nil) }

// collect says whether the link's reader is going to look for packets to send again before it sleeps, and sends what there is.
func (t *Transport) collect(is bool) {
	t.out.collected.Store(is)
	t.sendCombined()
}

// collector is the link for its reader, which sends what the combiner has before it waits: so those that it has woken need not see to that, one by one.
type collector struct {
	rawio.Waiter
	t *Transport
}

func (w collector) Wait(p rawio.Pause) error {
	w.t.collect(p == rawio.Yield || p == rawio.Cede)
	err := w.Waiter.Wait(p)
	w.t.out.collected.Store(err == nil)
	return err
}

// sendTogether is sendCombined when there is enough, and else after those have gone on that can.
func (t *Transport) sendTogether() {
	if t.out.pending.Load() < t.out.enough.Load() {
		runtime.Gosched()
	}
	t.sendCombined()
}
