package random

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// messageAssoc is an association with messages: its two users, who set it up again when it is lost,
// and the oracle.
type messageAssoc struct {
	r     *run
	id    int
	spec  *Assoc
	ends  [2]*end // of hosts A and B
	lives []*incarnation
	tags  map[uint32]bool // of associations whose end was asked for
	rand  *simnet.Rand
}

// end is the user of one side.
type end struct {
	t      *messageAssoc
	side   int
	h      *host
	cfg    assoc.Config
	line   *assocSide // the association that it talks by
	todo   []*messageBurst
	mute   rawio.Time // until then it reads nothing
	dialed bool       // it is about to set the association up
}

// messageBurst is a number of messages that are to be said.
type messageBurst struct {
	rand *simnet.Rand
	due  int
	over bool     // no more becomes due
	next *message // that the stack had no room for
}

// assocSide is one association at one side. It implements simulation.Conn and assoc.Source, of
// which it wants the acknowledgements only.
type assocSide struct {
	e    *end
	a    *assoc.Assoc
	up   bool
	down error
	out  *incarnation
	in   *receivedLog
}

func newTalk(r *run, i int) *messageAssoc {
	s := &r.s.Assocs[i]
	t := &messageAssoc{r: r, id: i, spec: s, tags: make(map[uint32]bool),
		rand: simnet.NewRand(mixSeed(r.s.Seed, 6, uint64(i)))}
	for side, id := range []int{s.A, s.B} {
		h := r.hosts[id]
		t.ends[side] = &end{t: t, side: side, h: h, cfg: drawConfig(s.Config, h)}
		setExtras(&t.ends[side].cfg, s.Extras, side)
		setKeys(&t.ends[side].cfg, s.Keys, side)
	}
	return t
}

func (t *messageAssoc) portOf(side int) uint16 {
	if side == 0 && t.spec.Use != Both {
		return uint16(portA + t.id)
	}
	return uint16(portB + t.id)
}

// isActiveSide says whether a side sets the association up.
func (t *messageAssoc) isActiveSide(side int) bool { return side == 0 || t.spec.Use == Both }

func (t *messageAssoc) carryOut(a *Act) {
	switch a.Kind {
	case Say:
		t.ends[a.B].beginBurst(a)
	case Starve:
		t.ends[a.B].stopReading(a.For)
	case Hangup, Hurl:
		t.ends[a.B].hangUp(a.Kind == Hurl)
	}
}

// bootHost listens, and sets the association up.
func (t *messageAssoc) bootHost(h *host) {
	for side, e := range t.ends {
		if e.h != h {
			continue
		}
		if side == 1 || t.spec.Use == Both {
			if err := h.node.EP.Listen(t.portOf(side), &e.cfg); err != nil {
				t.r.recordViolation(CleanEnd, h.node.Name, "listen: %v", err)
			}
		}
		e.dialAfter(0)
	}
}

// crashHost forgets.
func (t *messageAssoc) crashHost(h *host) {
	for _, c := range h.node.Conns() {
		if l, ok := c.(*assocSide); ok && l.e.t == t {
			l.down = errCrash
			l.out.crashed = true
			l.endLife(true)
		}
	}
}

var errCrash = errors.New("the host has crashed")

// dialAfter has the association set up, after a while.
func (e *end) dialAfter(after time.Duration) {
	if !e.t.isActiveSide(e.side) || e.dialed {
		return
	}
	e.dialed = true
	e.t.r.g.After(after, func() {
		e.dialed = false
		if !e.h.off && !e.t.r.closing && (e.line == nil || e.line.down != nil) {
			e.connectPeer()
		}
	})
}

func (e *end) connectPeer() {
	t := e.t
	peer := t.ends[1-e.side]
	port := uint16(0)
	if t.spec.UDP {
		port = encap
	}
	var remotes []netip.AddrPort
	for _, k := range peer.h.netIDs() {
		if to := addrOf(peer.h.id, k); k == 0 || e.h.spec.Nets > k {
			remotes = append(remotes, netip.AddrPortFrom(to, port))
		}
	}
	a, err := e.h.node.EP.Connect(e.h.node.Time(), &e.cfg, t.portOf(e.side),
		netip.AddrPortFrom(e.h.node.Addrs[0], port),
		remotes[:1+t.rand.IntN(len(remotes))], t.portOf(1-e.side))
	if err != nil { // what the peer has set up meanwhile may be on its way to its end
		if !errors.Is(err, endpoint.ErrExists) {
			t.r.recordViolation(CleanEnd, e.h.node.Name, "connect: %v", err)
		}
		e.dialAfter(time.Second)
		return
	}
	l := e.addLine(a)
	e.h.node.Add(l)
	l.Pump()
}

// addLine makes the line of an association.
func (e *end) addLine(a *assoc.Assoc) *assocSide {
	l := &assocSide{e: e, a: a}
	a.Owner = l
	a.SetUpper(nil, l)
	if e.cfg.Protected {
		e.t.r.keys.Attach(e.h.node, l)
	}
	if e.cfg.RecvBuffer > 0 {
		e.t.r.buffers[a] = e.cfg.RecvBuffer
	}
	e.line = l
	l.beginLife()
	return l
}

func (t *messageAssoc) acceptAssoc(h *host, a *assoc.Assoc) simulation.Conn {
	if t.ends[1].h == h {
		return t.ends[1].addLine(a)
	}
	return t.ends[0].addLine(a)
}

// beginLife starts a life.
func (l *assocSide) beginLife() {
	t := l.e.t
	l.out = &incarnation{id: uint32(len(t.lives)), e: l.e, tag: l.a.LocalTag()}
	for _, x := range t.lives {
		if x.tag == l.out.tag && x.e == l.e {
			t.r.recordViolation(Twice, l.e.h.node.Name, "tag %#x has had an association already", x.tag)
		}
	}
	t.lives = append(t.lives, l.out)
}

// beginReceiving begins to hear the peer.
func (l *assocSide) beginReceiving() {
	t := l.e.t
	for i := len(t.lives) - 1; i >= 0; i-- {
		if x := t.lives[i]; x.tag == l.a.PeerTag() && x.e.side != l.e.side {
			l.in = &receivedLog{from: x, last: make(map[wire.StreamID]int), parts: make(map[int]int)}
			x.heard = append(x.heard, l.in)
			return
		}
	}
	t.r.recordViolation(CleanEnd, l.e.h.node.Name, "an association with a peer of tag %#x, which nobody has",
		l.a.PeerTag())
}

// endLife ends the life and the hearing.
func (l *assocSide) endLife(lossy bool) {
	out, in := l.out, l.in
	out.over = true
	if in != nil {
		in.over, in.lossy = true, in.lossy || lossy
		in.from.judgeMessages()
	}
	out.judgeMessages()
	if l.e.line == l && l.down != nil {
		l.e.line = nil
	}
	if l.down != nil {
		delete(l.e.t.r.buffers, l.a)
	}
}

// Assoc implements simulation.Conn.
func (l *assocSide) Assoc() *assoc.Assoc { return l.a }

// Gone implements simulation.Conn.
func (l *assocSide) Gone() bool { return l.down != nil }

// Next implements assoc.Source.
func (l *assocSide) Next(rawio.Time, int, *assoc.Message) bool { return false }

// Idle implements assoc.Source.
func (l *assocSide) Idle() bool { return true }

// Acked implements assoc.Source.
func (l *assocSide) Acked(_ rawio.Time, _ wire.StreamID, token uint64) {
	l.out.messageSettled(token, true, false)
}

// Pump implements simulation.Conn.
func (l *assocSide) Pump() {
	if l.down != nil {
		return
	}
	if !l.up { // a peer that restarts before there are keys gets another tag, and nobody hears of it
		l.out.tag = l.a.LocalTag()
	}
	for {
		for {
			ev, ok := l.a.PollEvent()
			if !ok {
				break
			}
			l.handleEvent(ev)
		}
		l.readAll()
		l.sendDue()
		if !l.e.h.node.Transmit(l.a) {
			break
		}
	}
	l.e.h.node.Settled(l)
}

func (l *assocSide) handleEvent(ev assoc.Event) {
	e := l.e
	switch ev.Kind {
	case assoc.EventUp:
		l.up = true
		e.h.node.EP.Refresh(l.a)
		l.beginReceiving()
	case assoc.EventRestart:
		e.t.r.tally.Restarts++
		e.h.node.EP.Refresh(l.a)
		l.endLife(e.mute > e.t.r.g.Now())
		l.beginLife()
		l.beginReceiving()
		l.up = true
	case assoc.EventStreamsReset:
		l.out.notePerformed(ev)
	case assoc.EventTSNsReset:
		l.out.notePerformed(ev)
		if w := e.t.r.watches[l.a]; w != nil && ev.Err == nil {
			w.beginTSNs()
		}
		if l.in != nil && ev.Err != nil && !ev.Change.ByPeer && !errors.Is(ev.Err, assoc.ErrStreamResetDenied) {
			l.in.lossy = true // it had no answer: what has come since has no number
		}
	case assoc.EventPathUp, assoc.EventPathDown:
		e.h.node.EP.Refresh(l.a)
	case assoc.EventSendFailed:
		l.out.messageSettled(ev.Token, false, ev.Unsent)
	case assoc.EventDown:
		e.h.node.EP.Remove(e.t.r.g.Now(), l.a)
		e.t.r.judgeEnd(e.h, l.a, ev.Err, e.t)
		e.mute = 0 // what has come is read at last
		l.readAll()
		if l.in != nil && len(l.in.parts) > 0 {
			e.t.r.recordViolation(Lost, e.h.node.Name,
				"octets of messages were read, and nothing says that no more will come: %v", l.in.parts)
		}
		l.down = ev.Err
		e.t.r.tally.countEnd(ev.Err)
		e.t.r.tally.countKeys(l.a)
		e.t.r.keys.Forget(l)
		l.endLife(false)
		e.dialAfter(time.Duration(e.t.rand.IntN(20_000)) * time.Millisecond)
	}
}

// readAll takes what has come, unless the user is away.
func (l *assocSide) readAll() {
	e := l.e
	if e.mute > e.t.r.g.Now() || !l.up && e.cfg.Protected { // who the peer is has to be clear before
		return
	}
	for e.t.r.bad == nil {
		m, ok := l.a.Receive()
		if !ok {
			return
		}
		if l.in == nil {
			e.t.r.recordViolation(Twice, e.h.node.Name, "a message before the association is up")
		} else {
			l.in.checkPiece(l, m, e.t.r.scratchBuffer(m.Size))
		}
		l.a.Release(m)
	}
}

func (r *run) scratchBuffer(n int) []byte {
	if n > len(r.buf) {
		r.buf = make([]byte, max(n, 1<<16))
	}
	return r.buf
}

// beginBurst says messages one by one.
func (e *end) beginBurst(a *Act) {
	b := &messageBurst{rand: simnet.NewRand(a.seedOf(e.t.r.s))}
	e.todo = append(e.todo, b)
	left := a.N
	var say func()
	say = func() {
		n := 1
		if a.For == 0 {
			n = left
		}
		b.due += n
		left -= n
		if b.over = left == 0; !b.over {
			e.t.r.g.After(a.For/time.Duration(a.N), say)
		}
		if e.line != nil {
			e.line.Pump()
		}
	}
	say()
}

// drawMessage makes up a message.
func (b *messageBurst) drawMessage(a *assoc.Assoc, cfg *assoc.Config) *message {
	d := drawer{Rand: b.rand}
	size := 1 + d.n([]int{16, 16, 100, 100, 100, 1000, 1000, 1000, 1000, 1400, 1400, 1400, 5000, 5000, 20_000,
		maxMessage - 1}[d.n(16)])
	if cfg.SendBuffer > 0 {
		size = min(size, cfg.SendBuffer)
	}
	return &message{size: size, unordered: d.n(4) == 0, mortal: d.n(8) == 0,
		stream: wire.StreamID(d.n(min(a.OutStreams(), 1+d.n(20))))}
}

// sendDue hands over what is to be said and fits.
func (l *assocSide) sendDue() {
	e := l.e
	for l.up && l.down == nil && len(e.todo) > 0 && len(l.out.said) < 1<<numberBits-1 {
		b := e.todo[0]
		if b.due == 0 {
			if e.todo = e.todo[1:]; !b.over {
				e.todo = append(e.todo, b) // the others may have something
			}
			if e.allDue() == 0 {
				return
			}
			continue
		}
		if b.next == nil {
			b.next = b.drawMessage(l.a, &e.cfg)
		}
		if !l.sendNext(b) {
			return
		}
	}
}

func (e *end) allDue() (n int) {
	for _, b := range e.todo {
		n += b.due
	}
	return n
}

// sendNext hands a message over, and says whether the next may follow.
func (l *assocSide) sendNext(b *messageBurst) bool {
	e, m := l.e, *b.next
	m.stream %= wire.StreamID(l.a.OutStreams())
	n, now := len(l.out.said), e.h.node.Time()
	d := drawer{Rand: simnet.NewRand(mixSeed(uint64(l.out.ppidOf(n))))}
	body := l.out.makeMessage(m, m.size <= 4096 && d.n(4) == 0)
	cut := d.n(m.size + 1)
	msg := assoc.Message{Stream: m.stream, PPID: l.out.ppidOf(n) | wireBit, Unordered: m.unordered, SackNow: d.n(8) == 0,
		Body: [2][]byte{body[:cut], body[cut:]}, Token: uint64(l.out.ppidOf(n)), NoBundle: d.n(16) == 0}
	if m.mortal {
		msg.Expires = now.Add(time.Duration(d.n(20_000)) * time.Millisecond)
	}
	if d.n(16) == 0 {
		msg.Path = uint8(1 + d.n(l.a.NumPaths()))
	}
	if d.drawPolicy(l.a, &msg); msg.Policy == assoc.AbandonForRoom {
		l.a.MakeRoom(now, m.size, msg.Limit)
	}
	l.out.said[n].policy = msg.Policy
	err := l.a.Send(now, &msg)
	if err == nil {
		e.t.r.tally.Said++
		l.resetStreams(&d)
		l.rekey(&d)
		b.next = nil
		b.due--
		return true
	}
	l.out.takeBackLast()
	if err != assoc.ErrSendBufferFull && err != assoc.ErrClosing {
		e.t.r.recordViolation(CleanEnd, e.h.node.Name, "send: %v", err)
	}
	return false
}

// stopReading has the user of a side read nothing for a while.
func (e *end) stopReading(d time.Duration) {
	e.mute = max(e.mute, e.t.r.g.Now().Add(d))
	e.t.r.undoAfter(d, func() {
		if e.mute = 0; e.line != nil {
			e.line.Pump()
		}
	})
}

// hangUp ends the association.
func (e *end) hangUp(abort bool) {
	l := e.line
	if l == nil || !l.up {
		return
	}
	e.t.tags[l.a.LocalTag()], e.t.tags[l.a.PeerTag()] = true, true
	if now := e.h.node.Time(); abort {
		l.a.Abort(now, []byte("enough"))
	} else if err := l.a.Shutdown(now); err != nil {
		e.t.r.recordViolation(CleanEnd, e.h.node.Name, "shutdown: %v", err)
	}
	l.Pump()
}

func (t *messageAssoc) nextEventAt() rawio.Time { return rawio.Never }
func (t *messageAssoc) actDue()                 {}
func (t *messageAssoc) checkMemory()            {}
func (t *messageAssoc) endWasAsked(a *assoc.Assoc) bool {
	return t.tags[a.LocalTag()] || t.tags[a.PeerTag()]
}
func (t *messageAssoc) mutedUntil(a *assoc.Assoc) rawio.Time {
	if l, ok := a.Owner.(*assocSide); ok {
		return l.e.mute
	}
	return 0
}

// idle: everything is said, and heard.
func (t *messageAssoc) isIdle() bool {
	for _, e := range t.ends {
		if e.allDue() > 0 {
			return false
		}
		if l := e.line; l != nil && l.down == nil && (!l.up || l.out.open > 0) {
			return false
		}
	}
	return true
}

func (t *messageAssoc) hasEnded() bool { return true }

// closeAll ends everything gracefully, what old packets have brought about too.
func (t *messageAssoc) closeAll() {
	for _, e := range t.ends {
		for _, c := range append([]simulation.Conn(nil), e.h.node.Conns()...) {
			l, ok := c.(*assocSide)
			if !ok || l.e != e {
				continue
			}
			if l.a.Shutdown(e.h.node.Time()) != nil {
				l.a.Abort(e.h.node.Time(), nil)
			}
			l.Pump()
		}
	}
}

// judgeEnd judges all lives.
func (t *messageAssoc) judgeEnd() {
	for _, l := range t.lives {
		if !l.over {
			t.r.recordViolation(CleanEnd, l.e.h.node.Name, "life %d has no end", l.id)
		}
		l.judgeMessages()
	}
}

func (t *messageAssoc) String() string {
	s := fmt.Sprintf("[%d-%d:", t.spec.A, t.spec.B)
	for _, e := range t.ends {
		if s += fmt.Sprintf(" %d to say", e.allDue()); e.line != nil {
			s += fmt.Sprintf(", %d open, %v", e.line.out.open, e.line.a.State())
		}
	}
	return s + "]"
}
