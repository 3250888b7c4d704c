package reconfig_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/reconfig"
	"github.com/rddp-go/rddp/sctp/wire"
)

// world is two ends of an association in the plainest form: DATA that is sent again until it is
// acknowledged, over a network that loses, repeats and reorders.
type world struct {
	t      *testing.T
	seed   uint64
	rand   *rand.Rand
	now    rawio.Time
	ends   [2]*end
	flying []flight
	loss   int // percent
	nextID int
}

// flight is something on its way.
type flight struct {
	at       rawio.Time
	to       int
	data     *datum
	cum      wire.TSN // an acknowledgement, if data and reconfig are nil
	reconfig []byte
}

// datum is a message, which is one chunk.
type datum struct {
	tsn    wire.TSN
	stream wire.StreamID
	ssn    wire.SSN
	id     int
}

func (d datum) String() string { return fmt.Sprintf("%d=%d", d.ssn, d.id) }

// end is one of them, and the Host of its Machine.
type end struct {
	w       *world
	me      int
	m       *reconfig.Machine
	out, in int

	// What goes out.
	queue    []datum
	nextTSN  wire.TSN
	nextSSN  map[wire.StreamID]wire.SSN
	unacked  []datum
	resendAt rawio.Time
	holds    []*heldStreams // the oldest first
	lastHold reconfig.Hold
	sent     map[wire.StreamID][]datum

	// What comes in.
	cum       wire.TSN
	ahead     map[wire.TSN]datum
	nextIn    map[wire.StreamID]wire.SSN
	outOfTurn map[wire.StreamID]map[wire.SSN]datum
	holdsIn   bool
	heldIn    []wire.StreamID
	heldAfter wire.TSN
	heldData  []datum
	isFrozen  bool
	frozen    []datum // in the order of TSNs
	resets    []resetMark
	delivered map[wire.StreamID][]datum

	given  map[wire.StreamID]int // messages, of each stream
	turns  []asked
	inTurn int // resets that came in their turn
	ended  int // own requests, or parts of them
	peers  int // of the peer
}

const (
	windowOfTSNs = 1000
	worldRTO     = 200 * time.Millisecond
)

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, seed: seed, rand: rand.New(rand.NewPCG(seed, 0)), now: rawio.Time(time.Hour)}
	tsn := [2]wire.TSN{wire.TSN(w.rand.Uint32()), wire.TSN(w.rand.Uint32())}
	for i := range w.ends {
		e := &end{w: w, me: i, out: 4, in: 4, nextTSN: tsn[i], cum: tsn[1-i] - 1,
			nextSSN: map[wire.StreamID]wire.SSN{}, sent: map[wire.StreamID][]datum{}, ahead: map[wire.TSN]datum{},
			nextIn: map[wire.StreamID]wire.SSN{}, outOfTurn: map[wire.StreamID]map[wire.SSN]datum{},
			delivered: map[wire.StreamID][]datum{}, given: map[wire.StreamID]int{}, resendAt: rawio.Never}
		e.m = reconfig.New(reconfig.Config{LocalTSN: tsn[i], PeerTSN: tsn[1-i],
			Allowed: reconfig.Streams | reconfig.TSNs | reconfig.Adding, MaxOut: 60, MaxIn: 60, MaxTries: 1 << 20}, e)
		w.ends[i] = e
	}
	return w
}

func (e *end) Streams() (out, in int) { return e.out, e.in }
func (e *end) NextTSN() wire.TSN      { return e.nextTSN }
func (e *end) CumTSN() wire.TSN       { return e.cum }
func (e *end) RTO() time.Duration     { return worldRTO }

func (e *end) IsAcked(t wire.TSN) bool {
	return !slices.ContainsFunc(e.unacked, func(d datum) bool { return d.tsn.LessEq(t) })
}

func concerns(list []wire.StreamID, s wire.StreamID) bool {
	return list == nil || slices.Contains(list, s)
}

// heldStreams is what was begun by HoldOut.
type heldStreams struct {
	id      reconfig.Hold
	streams []wire.StreamID // nil: all
	waiting []datum
}

func (e *end) HoldOut(list []wire.StreamID) reconfig.Hold {
	e.lastHold++
	e.holds = append(e.holds, &heldStreams{id: e.lastHold, streams: slices.Clone(list)})
	return e.lastHold
}

func (e *end) findHold(id reconfig.Hold) int {
	at := slices.IndexFunc(e.holds, func(h *heldStreams) bool { return h.id == id })
	must.That(e.w.t, at >= 0, "hold %d is not there", id)
	return at
}

func (e *end) HoldMore(id reconfig.Hold, list []wire.StreamID) bool {
	at := e.findHold(id)
	h := e.holds[at]
	if at < len(e.holds)-1 || h.streams == nil {
		return false
	}
	h.streams = append(h.streams, list...)
	return true
}

func (e *end) HasSettled(id reconfig.Hold, acked bool) bool {
	held := e.holds[e.findHold(id)].streams
	return !slices.ContainsFunc(e.queue, func(d datum) bool { return concerns(held, d.stream) }) &&
		!(acked && len(e.unacked) > 0)
}

func (e *end) ReleaseOut(id reconfig.Hold) {
	at := e.findHold(id)
	h := e.holds[at]
	e.holds = slices.Delete(e.holds, at, at+1)
	for _, d := range h.waiting {
		e.put(d, at)
	}
}

// put gives a message to the last of so many holds that concerns it, or to the queue.
func (e *end) put(d datum, holds int) {
	for i := holds - 1; i >= 0; i-- {
		if h := e.holds[i]; concerns(h.streams, d.stream) {
			h.waiting = append(h.waiting, d)
			return
		}
	}
	e.queue = append(e.queue, d)
}

func (e *end) numHeld() (n int) {
	for _, h := range e.holds {
		n += len(h.waiting)
	}
	return n
}

func (e *end) ResetOut(list []wire.StreamID, last wire.TSN) {
	must.That(e.w.t, len(e.holds) > 0, "streams are reset that are not held")
	e.takeAck(last)
	for s := range e.nextSSN {
		if concerns(list, s) {
			e.nextSSN[s] = 0
		}
	}
}

func (e *end) OutIsAtZero(list []wire.StreamID) bool {
	for s, n := range e.nextSSN {
		if concerns(list, s) && n != 0 {
			return false
		}
	}
	return true
}

func (e *end) HoldIn(list []wire.StreamID, after wire.TSN) {
	e.holdsIn, e.heldIn, e.heldAfter = true, list, after
}

func (e *end) ReleaseIn() {
	list := e.heldData
	e.holdsIn, e.heldIn, e.heldData = false, nil, nil
	for _, d := range list {
		e.takeData(d)
	}
}

// resetMark is a reset of what comes in behind a TSN.
type resetMark struct {
	after   wire.TSN
	streams []wire.StreamID
}

func (e *end) FreezeIn() {
	must.That(e.w.t, !e.isFrozen, "it is frozen twice")
	e.isFrozen = true
}

func (e *end) ThawIn() { e.thaw(0, false) }

// thaw processes what was frozen, in the order of TSNs. All streams are reset before TSN first.
func (e *end) thaw(first wire.TSN, restarts bool) {
	must.That(e.w.t, e.isFrozen, "it is not frozen")
	list, resets := e.frozen, e.resets
	e.isFrozen, e.frozen, e.resets = false, nil, nil
	if restarts {
		at, _ := slices.BinarySearchFunc(resets, first-1, func(r resetMark, t wire.TSN) int { return int(int32(r.after - t)) })
		resets = slices.Insert(resets, at, resetMark{first - 1, nil})
	}
	for _, d := range list {
		for len(resets) > 0 && resets[0].after.Less(d.tsn) {
			e.ResetIn(resets[0].streams, resets[0].after)
			resets = resets[1:]
		}
		e.deliver(d)
	}
	for _, r := range resets {
		e.ResetIn(r.streams, r.after)
	}
}

func (e *end) ResetIn(list []wire.StreamID, after wire.TSN) {
	if e.isFrozen {
		e.resets = append(e.resets, resetMark{after, list})
		return
	}
	for s := range e.nextIn {
		if concerns(list, s) {
			must.That(e.w.t, len(e.outOfTurn[s]) == 0, "stream %d is reset while messages wait", s)
			e.nextIn[s] = 0
		}
	}
}

func (e *end) AddOut(n int) { e.out += n }
func (e *end) AddIn(n int)  { e.in += n }

func (e *end) RestartTSNs(next, expected wire.TSN) {
	must.That(e.w.t, len(e.unacked) == 0 && len(e.holds) > 0, "TSNs are reset with DATA on its way")
	if e.isFrozen {
		e.thaw(expected, true)
	} else {
		e.ResetIn(nil, e.cum)
	}
	clear(e.nextSSN)
	if e.nextTSN = next; uint32(e.cum-(expected-1)) >= windowOfTSNs { // and not that some of it has come
		must.That(e.w.t, len(e.ahead) == 0, "TSNs are reset, and %d are missing", e.cum+1)
		e.cum = expected - 1
	}
}

func (e *end) Violate(err error) { e.w.t.Fatalf("seed %d, end %d: %v", e.w.seed, e.me, err) }

func (e *end) Report(v reconfig.Event) {
	if r := new(reconfig.ResultError); v.Err != nil && v.Err != reconfig.ErrTooSoon {
		check.That(e.w.t, errors.As(v.Err, &r) && r.Result == wire.ReconfigAlreadyInProgress, "%+v", v)
	}
	if v.ByPeer {
		e.peers++
	} else {
		e.ended++
	}
	if v.Err == nil && !v.Incoming {
		e.checkTurn(v)
	}
}

// asked is a request of StartInTurn, with the number of messages that were given before it.
type asked struct {
	id     reconfig.RequestID
	stream wire.StreamID
	given  int
}

// checkTurn checks that a reset which was asked for comes right behind what was given before it.
func (e *end) checkTurn(v reconfig.Event) {
	for _, a := range e.turns {
		if a.id == v.Request {
			must.That(e.w.t, len(e.sent[a.stream]) == a.given,
				"seed %d, end %d: stream %d is reset behind %d messages, and it was asked for behind %d", e.w.seed, e.me,
				a.stream, len(e.sent[a.stream]), a.given)
			e.inTurn++
		}
	}
}

// ask asks for something that waits for its turn.
func (e *end) ask(r reconfig.Request) bool {
	id, err := e.m.StartInTurn(e.w.now, r, 6)
	if err != nil {
		return false
	}
	if !r.ResetOut && !r.ResetTSNs {
		return true
	}
	list := r.Streams
	if len(list) == 0 {
		for s := range e.out {
			list = append(list, wire.StreamID(s))
		}
	}
	for _, s := range list {
		e.turns = append(e.turns, asked{id: id, stream: s, given: e.given[s]})
	}
	return true
}

// give gives a message to send.
func (e *end) give(s wire.StreamID) {
	e.w.nextID++
	e.given[s]++
	e.put(datum{stream: s, id: e.w.nextID}, len(e.holds))
}

// send sends what the window allows, and what Machine has.
func (e *end) send() {
	for len(e.queue) > 0 && len(e.unacked) < 8 {
		d := e.queue[0]
		e.queue = e.queue[1:]
		d.tsn, d.ssn = e.nextTSN, e.nextSSN[d.stream]
		e.nextTSN++
		e.nextSSN[d.stream]++
		e.unacked = append(e.unacked, d)
		e.sent[d.stream] = append(e.sent[d.stream], d)
		e.w.fly(flight{to: 1 - e.me, data: &d})
		e.resendAt = min(e.resendAt, e.w.now.Add(worldRTO))
	}
	e.m.Poll(e.w.now)
	if e.m.HasAnswer() {
		for _, c := range split(e.m.AppendAnswer(nil, 1500)) {
			e.w.fly(flight{to: 1 - e.me, reconfig: c})
		}
	}
	if e.m.RequestDue() {
		e.w.fly(flight{to: 1 - e.me, reconfig: e.m.AppendRequest(nil)})
		e.m.NoteRequestSent(e.w.now)
	}
}

func (e *end) takeAck(cum wire.TSN) {
	if len(e.unacked) == 0 || uint32(cum-e.unacked[0].tsn) >= windowOfTSNs {
		return
	}
	e.unacked = e.unacked[min(int(uint32(cum-e.unacked[0].tsn))+1, len(e.unacked)):]
	if e.resendAt = e.w.now.Add(worldRTO); len(e.unacked) == 0 {
		e.resendAt = rawio.Never
	}
}

func (e *end) takeData(d datum) {
	n := uint32(d.tsn - e.cum)
	_, seen := e.ahead[d.tsn]
	switch {
	case n == 0 || n >= windowOfTSNs || seen:
	case e.holdsIn && concerns(e.heldIn, d.stream) && e.heldAfter.Less(d.tsn):
		e.heldData = append(e.heldData, d)
		return
	default:
		e.ahead[d.tsn] = d
		for next, ok := e.ahead[e.cum+1]; ok; next, ok = e.ahead[e.cum+1] {
			delete(e.ahead, e.cum+1)
			e.cum++
			e.deliver(next)
		}
	}
	e.w.fly(flight{to: 1 - e.me, cum: e.cum})
}

func (e *end) deliver(d datum) {
	if e.isFrozen {
		e.frozen = append(e.frozen, d)
		return
	}
	must.That(e.w.t, int(d.stream) < e.in, "DATA for stream %d of %d", d.stream, e.in)
	if d.ssn != e.nextIn[d.stream] {
		e.w.t.Fatalf("seed %d, end %d: stream %d expects SSN %d, and message %v comes", e.w.seed, e.me, d.stream, e.nextIn[d.stream], d)
	}
	e.nextIn[d.stream]++
	e.delivered[d.stream] = append(e.delivered[d.stream], d)
}

// fly sends something through the network.
func (w *world) fly(f flight) {
	for copies := 1; copies > 0; copies-- {
		if w.rand.IntN(100) < w.loss {
			continue
		}
		if w.loss > 0 && w.rand.IntN(20) == 0 {
			copies++
		}
		f.at = w.now.Add(time.Duration(1+w.rand.IntN(40)) * time.Millisecond)
		if w.loss > 0 && w.rand.IntN(50) == 0 {
			f.at = f.at.Add(time.Second) // far behind the others
		}
		w.flying = append(w.flying, f)
	}
}

// step lets a millisecond pass.
func (w *world) step() {
	w.now = w.now.Add(time.Millisecond)
	var due []flight
	w.flying = slices.DeleteFunc(w.flying, func(f flight) bool {
		if f.at <= w.now {
			due = append(due, f)
		}
		return f.at <= w.now
	})
	for _, f := range due {
		switch e := w.ends[f.to]; {
		case f.reconfig != nil:
			must.OK(w.t, e.m.HandleChunk(w.now, reconfigOf(w.t, f.reconfig)))
		case f.data != nil:
			e.takeData(*f.data)
		default:
			e.takeAck(f.cum)
		}
	}
	for _, e := range w.ends {
		e.m.HandleTimeout(w.now)
		if w.now >= e.resendAt {
			e.resendAt = w.now.Add(worldRTO)
			for _, d := range e.unacked {
				w.fly(flight{to: 1 - e.me, data: &d})
			}
		}
		e.send()
	}
}

// request is one by chance.
func (w *world) request(e *end) reconfig.Request {
	var list []wire.StreamID
	for s := range min(e.out, e.in) {
		if w.rand.IntN(3) == 0 {
			list = append(list, wire.StreamID(s))
		}
	}
	switch w.rand.IntN(7) {
	case 0, 1:
		return reconfig.Request{ResetOut: true, Streams: list}
	case 2:
		return reconfig.Request{ResetIn: true, Streams: list}
	case 3:
		return reconfig.Request{ResetOut: true, ResetIn: true, Streams: list}
	case 4:
		return reconfig.Request{ResetTSNs: true}
	case 5:
		return reconfig.Request{AddOut: 1 + w.rand.IntN(2)}
	}
	return reconfig.Request{AddIn: 1, AddOut: w.rand.IntN(2)}
}

// isQuiet says whether nothing is under way.
func (w *world) isQuiet() bool {
	return len(w.flying) == 0 && !slices.ContainsFunc(w.ends[:], func(e *end) bool {
		return len(e.queue)+len(e.unacked)+len(e.holds) > 0 || !e.m.IsIdle()
	})
}

// state says what keeps it from being quiet.
func (w *world) state() (s string) {
	s = fmt.Sprintf("%d are flying", len(w.flying))
	for _, e := range w.ends {
		s += fmt.Sprintf("; end %d: %d to be sent, %d held, %d outstanding from %v to %d, %d have come, %d ahead, idle %v",
			e.me, len(e.queue), e.numHeld(), len(e.unacked), e.unacked, e.nextTSN, e.cum, len(e.ahead), e.m.IsIdle())
	}
	return s
}

// Both ends send messages and ask for whatever there is, over a bad network. Nothing is lost,
// repeated or out of order, and both have the same streams in the end.
func TestWorldsByChance(t *testing.T) {
	worlds := 100
	if testing.Short() {
		worlds = 20
	}
	ended, peers, inTurn := 0, 0, 0
	for seed := range worlds {
		w := newWorld(t, uint64(seed))
		w.loss = w.rand.IntN(30)
		started := 0
		busy := w.rand.IntN(30) // how often they ask
		for range 4000 {
			for _, e := range w.ends {
				if w.rand.IntN(10) == 0 {
					e.give(wire.StreamID(w.rand.IntN(e.out)))
				}
				if w.rand.IntN(40+10*busy) > 0 {
					continue
				}
				if r := w.request(e); (seed%2 == 1 || !e.m.IsBusy()) && e.ask(r) {
					started++
				}
			}
			w.step()
		}
		w.loss = 0
		for n := 0; !w.isQuiet(); n++ {
			must.That(t, n < 100_000, "seed %d: it never ends: %s", seed, w.state())
			w.step()
		}
		for i, e := range w.ends {
			p := w.ends[1-i]
			check.Equal(t, "streams at the other end", p.in, e.out)
			for s, list := range e.sent {
				got, want := fmt.Sprint(p.delivered[s]), fmt.Sprint(list)
				must.That(t, got == want, "seed %d: end %d has sent in stream %d\n%s, and end %d got\n%s", seed, i, s, want,
					1-i, got)
			}
			ended, peers, inTurn = ended+e.ended, peers+e.peers, inTurn+e.inTurn
		}
	}
	t.Logf("%d own requests have ended, %d of the peer were performed, %d streams in turn", ended, peers, inTurn)
	check.That(t, ended > 5*worlds && peers > 3*worlds && inTurn > 5*worlds,
		"%d own requests have ended, %d of the peer, %d streams in turn", ended, peers, inTurn)
}
