package sctp

import (
	"errors"
	"net"
	"runtime"
	"time"

	"github.com/rddp-go/rddp/internal/pace"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

const (
	rxBatch = 128       // packets read at once
	rxMost  = 256 << 10 // octets that one SACK answers

	// shortWork is after how many octets the clock is read anew: it has taken a while to handle them.
	shortWork = 4 << 10

	// mostRuns is how many runs what the combiner has waits for more.
	mostRuns = 4
)

// receiver is the state of whoever reads a queue of the link: the way of a packet from there to its association.
type receiver struct {
	t        *Transport
	queue    rawio.Shard
	poller   rawio.Poller // nil: the queue is none
	waiter   rawio.Waiter // nil: the queue decides itself how its reader waits
	collects bool         // for the combiner: it sends what is there before it waits
	runs     int          // since it has sent behind a run
	pace     *pace.Pace
	pkts     []rawio.Packet
	conns    [rxBatch]*Conn // of the packets; nil between two calls of handle
	last     *Conn          // whose packets were handled last: it has not transmitted yet
	owned    bool           // this goroutine holds its gate
	count    int            // packets since the last pause
	octets   int            // of them
	woken    uint64         // wakes after the last of them
	combined bool           // they have put something into the combiner
	at       rawio.Time     // when packets came last
	thread   thread         // of a receive goroutine
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

// run runs the first n of pkts to completion: demultiplex, handle, place, acknowledge, transmit. What comes meanwhile, or directly after
// them, goes with them: one SACK does for all, and one wake-up of who reads. It returns the error that next has, unless that is
// over with; then the link is good for nothing more.
func (r *receiver) run(n int, err error) error {
	r.count, r.octets = 0, 0
	r.handle(n)
	for err == nil && r.poller != nil && r.octets < rxMost && r.pace.Follows(n) {
		if n = r.poller.PollBatch(r.pkts); n == 0 && r.pace.Late(r.t.now()) {
			break
		}
		r.handle(n)
	}
	held := r.done(true)
	if r.combined {
		r.t.sendCombined()
		r.combined = false
	}
	if r.count > 0 {
		all := wakes.Load()
		woken := all - r.woken
		r.woken = all
		r.t.out.woke(woken)
		r.pace.Handled(r.count, r.octets, woken)
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
	case !errors.Is(err, net.ErrClosed):
		r.t.fail(err)
	}
	return err
}

// collect is that of the Transport, behind a run: seldom, as those that the packets have woken are about to add to what there is, but soon
// enough where more packets come and the reader does not wait.
func (r *receiver) collect(is bool) {
	if r.runs++; !is || r.runs >= mostRuns || r.octets > shortWork {
		r.runs = 0
		r.t.collect(is)
	}
}

// next waits for packets.
func (r *receiver) next() (n int, err error) {
	if r.waiter == nil {
		return r.queue.ReadBatch(r.pkts)
	}
	return r.pace.Next(r.waiter, r.pkts)
}

// handle handles the first n of pkts, those of one association after those of another, so that one SACK and
// one transmit batch do for all of them whatever came between. It leaves these to done.
func (r *receiver) handle(n int) {
	if n == 0 {
		return
	}
	t, pkts, conns := r.t, r.pkts[:n], r.conns[:n]
	t.stats.rxPackets.Add(uint64(n))
	t.stats.rxBatches.Add(1)
	now := t.now()
	r.pace.Arrived(now, n)
	r.at = now
	r.count += n
	if r.owned { // the table is locked before any gate
		r.last.disown()
		r.owned = false
	}
	t.lookup(now, pkts, conns)
	if c := r.last; c == nil || !r.those(now, c, 0, n) { // it goes on where the packets before have ended
		r.done(false)
	}
	for i, c := range conns {
		if c != nil {
			r.done(false)
			r.those(now, c, i, n)
		}
	}
	rawio.ReleaseAll(pkts)
}

// those handles the packets of one association among those from the i-th to the n-th, and says whether there
// were any. It keeps no association, and the memory of its user, beyond its end.
func (r *receiver) those(now rawio.Time, c *Conn, i, n int) (any bool) {
	for ; i < n; i++ {
		if r.conns[i] != c {
			continue
		}
		r.octets += len(r.pkts[i].Data)
		r.last, r.owned = c, c.input(now, &r.pkts[i], r.owned)
		r.conns[i] = nil
		any = true
		if r.owned && c.over(sliceTime/2) {
			r.yield(c, i, n)
			break
		}
	}
	return any
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

// done lets the association go whose packets were handled last. It returns the association if its SACK is held back, for which it must be the last.
func (r *receiver) done(last bool) (held *Conn) {
	// Whoever has taken the gate meanwhile does the same when it leaves.
	if r.last != nil && (r.owned || r.last.tryOwn()) {
		now := r.at
		if !r.owned || r.octets > shortWork { // others have had the gate, or it has taken a while to handle the packets
			now = r.t.now()
		}
		if last && r.last.a.SackDue(now) && r.pace.Holds() {
			r.last.a.HoldSack(true)
			held = r.last
		}
		r.combined = r.last.unlockAt(now) || r.combined
	}
	r.last, r.owned = nil, false
	return held
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

// lookup finds the association of each packet. A packet without one gets the endpoint's answer; a
// valid COOKIE ECHO makes a new association.
func (t *Transport) lookup(now rawio.Time, pkts []rawio.Packet, conns []*Conn) {
	unmatched := false
	var last endpoint.Before
	t.mu.RLock()
	for i := range pkts {
		switch a, ok := t.ep.LookupNext(&pkts[i], &last); {
		case !ok:
			t.stats.rxDropped.Add(1)
			pkts[i].Release()
		case a != nil:
			conns[i] = a.Owner.(*Conn)
		default:
			unmatched = true
		}
	}
	t.mu.RUnlock()
	if !unmatched {
		return
	}
	t.setup.Lock()
	before := t.ep.Stats()
	for i := range pkts {
		if conns[i] == nil && pkts[i].Data != nil {
			conns[i] = t.unmatched(now, &pkts[i])
		}
	}
	t.transmitReplies(now)
	after := t.ep.Stats()
	t.setup.Unlock()
	if after.AssocsRefused > before.AssocsRefused {
		t.journal.reached(limitAssocs, after.AssocsRefused)
	}
	if after.OverBudget > before.OverBudget {
		t.journal.reached(limitSetups, after.OverBudget)
	}
	if after.RateLimited > before.RateLimited {
		t.journal.reached(limitAnswers, after.RateLimited)
	}
}

// unmatched handles a packet that belonged to no association a moment ago, or sets one up. The tables, which data needs, are locked for
// a look, and alone for the moment in which there is a new association. Called with setup held.
func (t *Transport) unmatched(now rawio.Time, p *rawio.Packet) *Conn {
	var s endpoint.Stranger
	if !t.ep.Judge(now, p, &s) {
		return nil
	}
	t.mu.RLock()
	if a := t.ep.Find(&s); a != nil {
		c := a.Owner.(*Conn)
		t.mu.RUnlock()
		return c
	}
	t.mu.RUnlock()
	if !t.ep.Answer(now, &s) {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a, isNew := t.ep.Make(now, &s)
	switch {
	case a == nil:
		return nil
	case !isNew:
		return a.Owner.(*Conn)
	}
	l := t.listenerOf(a)
	c := newConn(t, a, l.cfg)
	c.listener = l
	t.openAccount(c, a.PeerAddr().Addr())
	t.adopt(c)
	return c
}
