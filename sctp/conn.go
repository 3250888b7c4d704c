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

	"github.com/rddp-go/rddp/internal/ahead"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/account"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Conn is one SCTP association (RFC 9260). Its methods may be called from several goroutines.
//
// What each packet, each write and each read looks at comes first and together, with the core of the association: where there are many of them
// none of it is in a cache, and each of the lines that it lies in takes longer to come than the work on it does. One that is known by the address of another can be asked for with it.
type Conn struct {
	// Owner only, but for t, dropped, letSack, due, wants, slack and readable. What a write looks at comes first, up to the first part of the gate, see fetchToWrite.
	t          *Transport
	upper      Upper          // nil: the message API below
	stepper    stepper        // upper, if it is one
	slice      slice          // what has been done since the gate was taken
	wake       wake           // what settle has to do
	closing    bool           // Close or Abort was called: reads and writes are refused
	ended      bool           // the association is no more
	failed     bool           // lost or err is set
	combined   bool           // its packets wait in the combiner, and the owner is to send what is there
	among      bool           // others are being served with it, and what they send may go together
	squeezed   bool           // memory is short, and this association has more than its share
	freed      bool           // it has given all its memory back
	noted      bool           // there are notes
	oneLife    bool           // a restart of the peer ends it
	expects    atomic.Bool    // the association was told that the program will write more at once; only the owner changes it
	dropped    atomic.Bool    // a packet found no room in the backlog, and the journal does not know
	letSack    atomic.Bool    // a SACK that is held back may go
	combinedIn uint64         // the last batch of the combiner that has packets of it
	tracing    *tracing       // nil: nobody traces
	chargedAt  int            // octets of messages at that, see moved
	due        atomicTime     // the deadline that the timers have for it, in the heap or in the wheel
	wants      atomicTime     // the one that it is to have
	slack      atomic.Int64   // and how much earlier that may be
	inHeap     rawio.Time     // the one in the heap, guarded by its lock: due, or a later one; Never if it has none there
	heapNumber int32          // in the heap, guarded by its lock; 0: it is not there
	uncharged  int32          // packets since the last charge
	quietAt    rawio.Time     // when to give back what a program that writes no more has no use for, Never if there is nothing
	rest       []rawio.Packet // of the backlog, taken and not handled yet
	inbox      inbox
	sendbuf    sendBuf
	gate       gate

	// What a packet that comes, or a read, looks at besides. The association follows.
	writers  int32 // that wait for room
	unread   int32 // messages that wait in socket
	drawnTo  int   // octets that the account has drawn
	streams  map[wire.StreamID]*Stream
	socket   *Socket    // one-to-many style: whose association it is
	readAt   rawio.Time // when a message was last read to its end
	rdl      deadline
	readable Signal
	reader   ahead.Sleeper // who waits for it
	a        assoc.Assoc

	life     life
	listener *Listener // passive associations: who accepts it

	writable Signal          // without a channel until somebody has waited for it
	wdl      deadline        // not the only one of those that wait for writable: Streams and Sockets have theirs
	lost     error           // unread messages were dropped at its end: what readers hear
	err      error           // why the association ended
	taken    []rawio.Packet  // rest, with those that were handled
	waiting  *writer         // the first of the calls that wait for room in sendbuf; there are writers of them
	orphans  *[]rawio.Packet // that came behind its end, see orphan
	// wakeStreams are the streams that got messages since the gate was last opened.
	wakeStreams *[]*Stream
	entries     *[]entry // for the journal
	notes       *notes   // nil if no events are kept

	hold        hold             // owner only: see LongestHold
	account     *account.Account // owner only: what the peer makes the association hold
	began       rawio.Time       // when setting it up did
	born        uint64           // how many associations there were before
	squeezedNow atomic.Bool      // squeezed, for others
	removed     bool             // socket has it no more, guarded by its lock
	unsent      bool             // messages have failed since Close
	unheard     bool             // Close has thrown messages of the peer away, of which it is to hear
	placed      bool             // it has a place at the listener, guarded by the lock of its queue
	from        netip.Addr       // the address by whose part of its places it waits at the listener, or as whose socket has it
	boundAt     *[]netip.Addr    // the addresses that Dial, or its listener, has bound its port at

	spareStreams atomic.Pointer[[]*Stream] // an empty list for wakeStreams
}

// wake is a set of things to do once the gate is open again.
type wake uint16

const (
	wakeReaders wake = 1 << iota
	wakeWriters
	wakeUp
	wakeDown
	wakeRefresh
	wakeEvents
	wakeFreed
	wakeSocket // messages wait in socket
	wakeListed // wakeStreams or entries are not empty
	wakeOrphans
)

// newCore returns where the core of an association is to lie, and connOf the Conn that it lies in.
func newCore() *assoc.Assoc { return &new(Conn).a }

func connOf(a *assoc.Assoc) *Conn {
	return (*Conn)(unsafe.Add(unsafe.Pointer(a), -int(unsafe.Offsetof(Conn{}.a))))
}

func newConn(t *Transport, a *assoc.Assoc, cfg *Config) *Conn {
	c := connOf(a)
	accounts := new([2]account.Account) // which outlive it, see keepAccount
	c.t, c.began, c.account, c.gate.account = t, t.now(), &accounts[0], &accounts[1]
	c.life.isUp = a.State() == assoc.Established
	if cfg.Events > 0 {
		c.notes = &notes{limit: cfg.Events, come: make(chan struct{}, 1)}
		c.noted = true
	}
	c.readable.init(t)
	c.rdl.t, c.wdl.t, c.rdl.ready = t, t, &c.readable
	c.gate.pool = t.arenas
	affords := c.affords
	c.sendbuf.base, c.sendbuf.affords = cfg.sendBuffer(), affords
	a.OnGrow(affords)
	c.due.Store(rawio.Never)
	c.wants.Store(rawio.Never)
	c.inHeap = rawio.Never
	c.quietAt = rawio.Never
	c.socket = cfg.socket
	if t.cfg.Tracer != nil {
		c.tracing = new(tracing)
	}
	a.Owner = c
	if cfg.Upper != nil {
		c.upper = cfg.Upper(c, a)
		a.SetUpper(c.upper, c.upper)
		c.stepper, _ = c.upper.(stepper)
	} else {
		a.SetUpper(nil, (*messageSource)(c))
		if !c.noted {
			a.IgnoreDry()
		}
	}
	return c
}

// lock makes the caller the owner of the association and returns its core and the time. Between lock
// and unlock the core may be used freely; nothing in between may block.
func (c *Conn) lock() (*assoc.Assoc, rawio.Time) {
	c.own()
	return &c.a, c.t.now()
}

// goOn is lock and unlock, for another goroutine.
func (c *Conn) goOn() {
	c.own()
	c.unlock()
}

// own takes the gate, tryOwn does if it is free, and disown gives it up.
func (c *Conn) own() {
	if !c.soon() {
		c.gate.own.Lock()
	}
	c.slice = slice{steps: c.steps()}
	c.holds()
}

func (c *Conn) tryOwn() bool {
	if !c.gate.own.TryLock() {
		return false
	}
	c.slice = slice{steps: c.steps()}
	c.holds()
	return true
}

func (c *Conn) disown() {
	c.hasHeld()
	c.gate.own.Unlock()
}

// unlock sends what has become ready, hands on packets that arrived meanwhile and gives ownership up.
func (c *Conn) unlock() { c.unlockSoon(c.t.now()) }

// unlockSoon is unlock for who has done so little since now that the clock need not be read again.
func (c *Conn) unlockSoon(now rawio.Time) {
	if c.unlockAt(now) {
		c.t.sendTogether()
	}
}

// unlockAfterRead is unlock for who has read, or has only looked. Mostly nothing follows from that, and looking for what does would take
// longer than the reading.
func (c *Conn) unlockAfterRead(now rawio.Time) {
	if c.uncharged > 0 || c.wake != 0 || c.closing || c.ended || c.squeezed || c.tracing != nil || c.moved() || c.a.SackDue(now) {
		c.unlock()
		return
	}
	c.release()
}

// release gives ownership up for who has nothing to send, and hands on what was left to the owner meanwhile.
func (c *Conn) release() {
	c.disown()
	if c.missed() && c.tryOwn() {
		c.unlock()
	}
}

// missed says whether something was left to the owner, who may have looked before that.
func (c *Conn) missed() bool { return c.gate.waiting.Load() > 0 || c.letSack.Load() }

// unlockAt is unlock at a known time. It says whether the caller has to send what the combiner has.
func (c *Conn) unlockAt(now rawio.Time) (combined bool) {
	for round := 0; ; round++ {
		more := c.pump(now)
		var events []TraceEvent
		if c.tracing != nil {
			c.observe(now)
			events = c.traced()
		}
		combined = combined || c.combined
		c.combined, c.among = false, false
		w, streams, entries, orphans := c.wake, (*[]*Stream)(nil), (*[]entry)(nil), []rawio.Packet(nil)
		if c.wake = 0; w&wakeListed != 0 {
			streams, entries = c.wakeStreams, c.entries
			c.wakeStreams, c.entries = nil, nil
		}
		if w&wakeOrphans != 0 {
			orphans, c.orphans = *c.orphans, nil
		}
		if w&wakeWriters != 0 && c.writable.c == nil {
			w &^= wakeWriters // nobody has ever waited
		}
		c.disown()
		if c.dropped.Load() && c.dropped.Swap(false) {
			c.t.journal.reached(limitBacklog, c.t.stats.backlogDropped.Load())
		}
		for i := range events {
			c.t.cfg.Tracer.Trace(&events[i])
		}
		if entries != nil {
			c.report(*entries)
		}
		if orphans = append(orphans, c.settle(w, streams)...); len(orphans) > 0 {
			c.t.reroute(c, orphans)
		}
		if !more && !c.missed() || !c.tryOwn() {
			return combined // nothing left, or the next owner goes on with it
		}
		if round == ownerRounds {
			c.disown()
			go c.goOn()
			return combined
		}
		now = c.t.now()
	}
}

// leave leaves a packet to the owner, and returns how many that are: 0 if there will be no owner any more. The line about one for which there is no
// room is written when the gate is open: the caller may be the owner.
func (c *Conn) leave(p *rawio.Packet) int {
	switch c.gate.post(p) {
	case postClosed:
		return 0
	case postFull:
		c.t.stats.backlogDropped.Add(1)
		c.dropped.Store(true)
	}
	return 1
}

// charges counts n packets, and charges the account of the association now and then.
func (c *Conn) charges(n int) {
	if c.uncharged += int32(n); c.uncharged > chargeEvery {
		c.charge()
		c.uncharged = 1
	}
}

// behind handles what was left to the owner, and says whether some of it still is: what comes now is to wait behind that.
func (c *Conn) behind(now rawio.Time) bool {
	c.drain(now)
	return len(c.rest) > 0
}

// orphan sets the rest of the backlog apart: the association has ended, and these packets are for whatever has come after it. Owner only.
func (c *Conn) orphan() {
	if c.orphans == nil {
		c.orphans = new([]rawio.Packet)
	}
	*c.orphans = append(*c.orphans, c.rest...)
	c.rest = nil
	c.wake |= wakeOrphans
}

// drain handles the packets that have arrived while the gate was taken, as far as the slice goes, and says whether there were any.
func (c *Conn) drain(now rawio.Time) (any bool) {
	for len(c.rest) > 0 || c.gate.waiting.Load() > 0 {
		if len(c.rest) == 0 {
			c.taken = c.gate.take()
			c.rest = c.taken
		}
		for len(c.rest) > 0 {
			if any = true; c.over(sliceTime / 2) {
				return true
			}
			n := c.handle(now, c.rest)
			if n == 0 {
				c.orphan()
				break
			}
			rawio.ReleaseAll(c.rest[:n])
			c.rest = c.rest[n:]
		}
		c.gate.done(c.taken)
		c.taken, c.rest = nil, nil
	}
	return any
}

// pump moves everything that the last step has made ready: events, messages, packets, the timer. Between two batches
// it takes what has arrived, so that the backlog stays short however much there is to send. more says that it has
// stopped before all was sent, for others to have the gate and to hear of completions.
func (c *Conn) pump(now rawio.Time) (more bool) {
	began := now
	if c.letSack.Load() {
		c.letSackGo()
	}
	c.drain(now)
	c.handleEvents(now)
	left := false
	for range ownerBatches {
		if c.upper != nil {
			left = c.upper.HandleReceived(now)
		} else {
			left = c.collect()
		}
		if c.unheard {
			c.abortUnread(now)
		}
		var sent bool
		if sent, more = c.t.transmit(now, &c.a); sent && (more || c.gate.waiting.Load() > 0) {
			now = c.t.now() // it takes a while
		}
		more = c.drain(now) || more || left
		more = c.handleEvents(now) || more
		if !more || now.Sub(began) > sendTime || c.over(sliceTime) {
			break
		}
	}
	if c.ended && !left && !c.unreadLeft() {
		c.giveUp()
	}
	if c.uncharged > 0 || c.squeezed || c.moved() {
		c.charge()
	}
	if c.quietAt == rawio.Never && !c.ended && (c.sendbuf.held() > 0 || c.a.State() == assoc.Established && !c.a.Rests()) {
		c.quietAt = now.Add(assoc.RestAfter)
	}
	if next := c.a.NextTimeout(); next <= c.quietAt {
		c.t.timers.set(c, next, c.a.Slack(next))
	} else {
		c.t.timers.set(c, c.quietAt, assoc.RestAfter/2)
	}
	return more
}

// dropUnread gives back messages that nobody will read.
func (c *Conn) dropUnread() {
	c.inbox.discard(&c.a)
	for _, s := range c.streams { // in whatever order
		s.inbox.discard(&c.a)
	}
}

// eventsAtOnce is how many events are handled before others have their turn: there is one for each message that fails with an association.
const eventsAtOnce = 512

// handleEvents handles the events of the association and says whether there were any.
func (c *Conn) handleEvents(now rawio.Time) (any bool) {
	if c.a.State() == assoc.Closed && !c.ended && c.upper == nil && c.collect() {
		return true // its end is told behind the messages that came before
	}
	for i := 0; i < eventsAtOnce && c.a.Eventful() && c.handleNext(now); i++ {
		any = true
	}
	return any
}

// handleNext handles one event, if there is any.
func (c *Conn) handleNext(now rawio.Time) bool {
	ev, ok := c.a.PollEvent()
	if ok {
		c.handleEvent(now, ev)
	}
	return ok
}

func (c *Conn) handleEvent(now rawio.Time, ev assoc.Event) {
	c.note(ev) // it copies a message that failed before its memory is freed
	c.record(ev)
	if c.tracing != nil {
		c.notice(now, ev)
	}
	switch ev.Kind {
	case assoc.EventUp:
		c.t.stats.established.Add(1)
		c.wake |= wakeUp | wakeRefresh
	case assoc.EventRestart, assoc.EventPathUp, assoc.EventPathDown:
		c.wake |= wakeRefresh
		c.slice.start(now)
		if c.oneLife && ev.Kind == assoc.EventRestart {
			c.restarted(now)
		}
	case assoc.EventDown:
		c.slice.start(now) // an Upper ends all that it has
		c.err = ev.Err
		c.ended, c.failed, c.quietAt = true, true, rawio.Never
		c.wake |= wakeDown
		c.wakeAll()
	case assoc.EventSendFailed:
		if c.upper == nil {
			c.sendbuf.free(ev.Token)
			c.wake |= wakeWriters
			c.unsent = c.unsent || c.closing
		}
	}
	if c.upper != nil {
		c.upper.HandleEvent(now, ev)
	}
}

// settle does what must not be done by the owner: it wakes whoever waits, those who read and write last, who may go on to ask for
// what else has come to pass. It returns the packets that the backlog of an association still has that is no more.
func (c *Conn) settle(w wake, streams *[]*Stream) (left []rawio.Packet) {
	var next *rawio.Packet
	if w&wakeEvents != 0 {
		notify(c.notes.come)
	}
	if w&wakeRefresh != 0 {
		c.t.refresh(c)
	}
	if w&wakeUp != 0 && c.life.tell() {
		c.announce()
	}
	if c.upper != nil {
		c.upper.Settled()
	}
	if w&wakeDown != 0 {
		next = c.t.forget(c)
		if c.socket != nil {
			c.socket.remove(c)
		}
		c.life.end()
		c.t.rouse()
	}
	if w&wakeFreed != 0 {
		left = c.t.closeAccount(c)
		if c.listener != nil && c.err != assoc.ErrShutdown {
			c.listener.leave(c)
		}
	}
	if next != nil { // before what has come behind it
		c.t.reroute(c, []rawio.Packet{*next})
	}
	if streams != nil {
		for _, s := range *streams {
			s.readable.Set()
		}
		clear(*streams)
		*streams = (*streams)[:0]
		c.spareStreams.Store(streams)
	}
	if w&wakeReaders != 0 {
		c.readable.Set()
	}
	if w&wakeSocket != 0 {
		c.socket.readable.Set()
	}
	if w&wakeWriters != 0 {
		c.writable.Set()
	}
	return left
}

// announce tells who waits for the association that it is established.
func (c *Conn) announce() {
	switch {
	case c.socket != nil:
		c.socket.add(c)
	case c.listener != nil:
		c.listener.offer(c)
	}
	c.life.begin()
}

// wakeAll has settle wake everybody who reads or writes. Owner only.
func (c *Conn) wakeAll() {
	c.wake |= wakeReaders | wakeWriters
	for _, s := range c.streams { // in whatever order
		c.wakeStream(s)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// timeout is called by the timer heap when the deadline of c has come, or is near. What is sent may go with that of others: the heap sees to it.
func (c *Conn) timeout() {
	a, now := c.lock()
	c.among = true
	a.HandleTimeout(now)
	if now >= c.quietAt.Add(-assoc.RestAfter/2) { // of which it may be half where somebody is awake then for others
		c.sendbuf.trim()
		c.quietAt = rawio.Never
	}
	c.trim(c.held()) // any timer is an occasion
	c.unlockAt(now)
}

// Done is closed when the association has ended; Err then says why.
func (c *Conn) Done() <-chan struct{} { return c.life.over() }

// Err returns why the association has ended, or nil while it lives.
func (c *Conn) Err() error {
	if c.life.hasEnded() {
		return c.err
	}
	return nil
}

// Close ends the association gracefully (RFC 9260 section 9.2): what was written is delivered first.
// It returns when the peer has acknowledged everything and agreed to end, because this stack ends
// with the process. After CloseTimeout ([TransportConfig]) it aborts instead, unless the peer goes on
// acknowledging what was written; all that close at once have that time together. It fails with os.ErrDeadlineExceeded
// then, and with the reason where the association has ended before the peer had everything. Reads and writes fail at once.
// Where messages of the peer are unread, the peer hears of an ABORT (cause 12) once it has everything: they are lost, as
// when a kernel's socket is closed. Closing again returns nil.
func (c *Conn) Close() error {
	_, err := c.close()
	return err
}

// unreadReason is what the peer hears when Close has thrown its messages away.
const unreadReason = "closed with messages unread"

// close is Close, and says whether it was the first.
func (c *Conn) close() (first bool, err error) {
	a, now := c.lock()
	first = !c.closing
	c.closing = true
	c.wakeAll()
	if first {
		c.unheard = c.unreadLeft()
		c.dropUnread()
		a.Shutdown(now)
	}
	trip := a.PathStats(a.Stats().Primary).SRTT
	c.unlock()
	if !first {
		return false, nil
	}
	if !c.awaitEnd(trip) {
		c.t.grace.InVain()
		c.Abort("close timed out")
		return true, os.ErrDeadlineExceeded
	}
	if c.unsent {
		return true, c.err
	}
	return true, nil
}

const (
	// closeRate is how many octets the peer has to acknowledge in a second for Close to go on beyond CloseTimeout, and closeMost
	// how often CloseTimeout it may take in all.
	closeRate = 1 << 10
	closeMost = 10
)

// awaitEnd waits for the end of the association, over a path with that round trip, and says whether it has come. Beyond the grace
// period it waits as long as each further CloseTimeout sees progress.
func (c *Conn) awaitEnd(trip time.Duration) bool {
	period := c.t.cfg.closeTimeout()
	wait := c.t.grace.Left(period, trip)
	left := c.unacknowledged()
	for range closeMost {
		timer := time.NewTimer(wait)
		select {
		case <-c.Done():
			timer.Stop()
			return true
		case <-timer.C:
		}
		had := left
		if left = c.unacknowledged(); float64(had-left) < closeRate*wait.Seconds() && (had == 0 || left > 0) {
			return false
		}
		wait = period
	}
	return false
}

// unacknowledged returns the octets that were written and that the peer has not acknowledged.
func (c *Conn) unacknowledged() int {
	st := c.Stats()
	return st.Outstanding + st.Queued
}

// abortUnread aborts the association in place of SHUTDOWN, or SHUTDOWN ACK, if Close has thrown messages of the peer away: all that
// was written is delivered by then. Owner only.
func (c *Conn) abortUnread(now rawio.Time) {
	if s := c.a.State(); s == assoc.ShutdownSent || s == assoc.ShutdownAckSent {
		c.unheard = false
		c.a.Abort(now, []byte(unreadReason))
	}
}

// Abort ends the association at once (RFC 9260 section 9.1). What was not yet delivered is lost. The
// peer is told the reason.
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
	case c.lost != nil:
		return c.lost
	}
	return c.err
}

// readErr returns what a read returns when there is nothing left to read, nil while the association
// can still receive. Owner only.
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
	c.rdl.set(t)
	c.wdl.set(t)
	return nil
}

// SetReadDeadline makes reads that block past t fail with os.ErrDeadlineExceeded. The zero time
// means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error { c.rdl.set(t); return nil }

// SetWriteDeadline makes writes that block past t fail with os.ErrDeadlineExceeded.
func (c *Conn) SetWriteDeadline(t time.Time) error { c.wdl.set(t); return nil }

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
