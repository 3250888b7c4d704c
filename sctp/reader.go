package sctp

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/pace"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	rxBatch = 128       // packets read at once
	rxMost  = 256 << 10 // octets that one SACK answers

	// shortWork is after how many octets the clock is read anew: it has taken a while to handle them.
	shortWork = 4 << 10

	// shortPacket is how long packets are that bring no bulk, on the average: whose answers may wait for those of the others among them.
	shortPacket = 256

	// mostRuns is how many runs what the combiner has waits for more.
	mostRuns = 4
)

// receiver is the state of whoever reads a queue of the link.
type receiver struct {
	t        *Transport
	queue    rawio.Shard
	poller   rawio.Poller            // nil: the queue is none
	waiter   rawio.Waiter            // nil: the queue decides itself how its reader waits
	waits    *atomic.Pointer[Signal] // what the reader waits for besides, while it may block; nil: nothing ever
	collects bool                    // for the combiner: it sends what is there before it waits
	runs     int                     // since it has sent behind a run
	pace     *pace.Pace
	pkts     []rawio.Packet
	conns    [rxBatch]*Conn  // of the packets; nil between two calls of handle
	open     [rxBatch]bool   // of those that are looked at again in their turn, see seek; false between two calls of handle
	opens    int             // how many these are
	changed  bool            // packets that were handled have changed which association others belong to
	sought   bool            // the endpoint may have answers to send
	again    bool            // the packets have been counted before, see reroute
	hashes   [rxBatch]uint64 // for lookup
	halfway  *Conn           // the one of which half was asked for last
	fetched  *Conn           // and the one that has come, whose fetchMore is next
	last     *Conn           // whose packets were handled last: it has not transmitted yet
	owned    bool            // this goroutine holds its gate
	count    int             // packets since the last pause
	octets   int             // of them
	woken    uint64          // wakes after the last of them
	brought  uint64          // things to answer, likewise
	tag      uint32          // of the association to which the last of them belong
	sent     uint64          // DATA chunks that it has sent
	answered bool            // since those before, or they were another's
	combined bool            // they have put something into the combiner
	several  bool            // they are of more than one association
	at       rawio.Time      // when packets came last
	thread   thread          // of a receive goroutine
}

func newReceiver(t *Transport, q rawio.Shard, waits bool) receiver {
	r := receiver{t: t, queue: q, pkts: make([]rawio.Packet, rxBatch)}
	r.poller, _ = q.(rawio.Poller)
	poll := time.Duration(0)
	if w, ok := q.(rawio.Waiter); ok && waits {
		r.waiter, poll = w, w.Polling()
	}
	r.pace = pace.New(poll, t.now)
	return r
}

// serve is the receive goroutine of a further queue of the link.
func (t *Transport) serve(s rawio.Shard) {
	r := newReceiver(t, s, true)
	defer r.thread.release()
	for {
		if r.run(r.next()) != nil {
			return
		}
		r.thread.keep(r.pace.Keeps() && t.blocks)
	}
}

// begin is the beginning of a run.
func (r *receiver) begin() {
	if r.waits != nil {
		r.waits.Store(nil)
	}
	r.count, r.octets, r.several = 0, 0, false
}

// follows says whether to look for more behind n packets.
func (r *receiver) follows(n int) bool {
	return r.poller != nil && r.octets < rxMost && r.pace.Follows(n)
}

// arrived takes that n packets have come, and finds whose they are.
func (r *receiver) arrived(n int) {
	r.at = r.t.now()
	if !r.again {
		r.t.stats.rxPackets.Add(uint64(n))
		r.t.stats.rxBatches.Add(1)
		r.pace.Arrived(r.at, n)
	}
	r.count += n
	if r.owned { // the tables are locked before any gate, where a packet seems to belong to nobody
		r.last.disown()
		r.owned = false
	}
	r.lookup(n)
}

// finish is the end of a run: it lets go what the packets have brought.
func (r *receiver) finish(err error) error {
	held := r.done(true)
	if r.combined {
		r.t.sendCombined()
		r.combined = false
	}
	if r.count > 0 {
		woken := since(&r.t.wakes, &r.woken)
		answers := woken
		if brought := since(&r.t.brought, &r.brought); r.several { // those of one association go together in any case
			answers = max(woken, brought)
		}
		r.t.out.woke(answers)
		r.pace.Handled(r.count, r.octets, woken, r.answered)
		if held != nil {
			r.letGo(held, woken > 0)
		}
	}
	if r.collects {
		r.collect(err == nil && r.pace.State() == pace.Many)
	}
	switch {
	case err == nil, err == rawio.ErrInterrupted:
		return nil
	}
	r.t.linkFails(err)
	return err
}

// since returns by how much a counter has grown since it was looked at last.
func since(n *atomic.Uint64, last *uint64) uint64 {
	now := n.Load()
	grown := now - *last
	*last = now
	return grown
}

// collect is that of the Transport, behind a run: seldom, as those that the packets have woken are about to add to what there is, but soon
// enough where more packets come and the reader does not wait.
func (r *receiver) collect(is bool) {
	if r.runs++; !is || r.runs >= mostRuns || r.octets > shortWork {
		r.runs = 0
		r.t.collect(is)
	}
}

// yield has another goroutine go on with an association that keeps others waiting, and leaves it the packets from the i-th to the n-th that are
// its own.
func (r *receiver) yield(c *Conn, i, n int) {
	for ; i < n; i++ {
		if r.conns[i] == c {
			c.leave(&r.pkts[i])
			r.conns[i] = nil
		}
	}
	c.disown()
	go c.goOn()
	r.last, r.owned = nil, false
}

// row is the packets of an association that follow on each other from the i-th on, as many as may be handled together.
func (r *receiver) row(c *Conn, i, n int) []rawio.Packet {
	end := i + 1
	for n = min(n, i+assoc.RowMost); end < n && r.conns[end] == c; end++ {
	}
	return r.pkts[i:end]
}

// handled notes that n packets of an association are handled, from the i-th on, and returns the number of the last.
func (r *receiver) handled(c *Conn, i, n int) int {
	for end := i + n; i < end; i++ {
		r.conns[i] = nil
		r.octets += len(r.pkts[i].Data)
	}
	r.last = c
	return i - 1
}

// done lets the association go whose packets were handled last. It returns the association if its SACK is held back, for which it must be the last.
func (r *receiver) done(last bool) (held *Conn) {
	r.several = r.several || !last && r.last != nil
	// Whoever has taken the gate meanwhile does the same when it leaves.
	if r.last != nil && (r.owned || r.last.tryOwn()) {
		if last {
			r.watch(&r.last.a)
		}
		r.changed = r.changed || r.last.a.Eventful()
		now := r.at
		if !r.owned || r.octets > shortWork { // others have had the gate, or it has taken a while to handle the packets
			now = r.t.now()
		}
		if last && r.last.a.SackDue(now) && r.pace.Holds() {
			r.last.a.HoldSack(true)
			held = r.last
		}
		r.last.a.Crowd(r.several && r.t.crowd.Load())
		r.last.among = r.several && (r.octets <= shortWork || r.octets <= r.count*shortPacket)
		r.combined = r.last.unlockAt(now) || r.combined
	}
	r.last, r.owned = nil, false
	r.aheadStill()
	return held
}

// watch sees whether an association has sent messages since it was watched last.
func (r *receiver) watch(a *assoc.Assoc) {
	tag, sent := a.LocalTag(), a.DataSent()
	r.answered = tag != r.tag || sent != r.sent
	r.tag, r.sent = tag, sent
}

// letGo has those go first whom the packets have woken, and lets the SACK go that was held back for their answer. One that has come in time
// has taken it along: that spares both sides a packet.
func (r *receiver) letGo(c *Conn, woken bool) {
	if woken {
		runtime.Gosched()
	}
	if !c.tryOwn() {
		c.letSack.Store(true)
		if !c.tryOwn() { // the owner may have left before it could see that
			return
		}
	}
	now := r.t.now()
	c.letSackGo()
	r.pace.Held(!c.a.SackDue(now))
	c.unlockAfterRead(now)
}

// letSackGo is that for the owner.
func (c *Conn) letSackGo() {
	c.letSack.Store(false)
	c.a.HoldSack(false)
}
