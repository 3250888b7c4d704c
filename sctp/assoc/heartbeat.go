package assoc

import (
	"encoding/binary"
	"io"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// beat is the heartbeat of one path (sections 5.4 and 8.3).
type beat struct {
	deadline rawio.Time      // next HEARTBEAT, or the end of the wait for its answer
	slack    time.Duration   // how much earlier it may go
	waiting  bool            // the last HEARTBEAT is unanswered, and its RTO is not over
	ours     bool            // this host has the address, so that no HEARTBEAT goes there, see heedOwn
	away     bool            // nothing can be sent from the path's own address, see UsableFrom
	owed     bool            // it is back, and one packet is to go, see Assoc.resting
	sent     rawio.Time      // when the last one was sent, or what is as good
	asked    *[kept]question // the last few that may still be answered, the newest first; nil: none
}

// kept is how many HEARTBEATs of a path are remembered.
const kept = 4

// question is a HEARTBEAT that may still be answered. An answer counts whenever it comes, and once.
type question struct {
	nonce uint64
	sent  rawio.Time
}

// at sets the deadline, which is not to come earlier.
func (b *beat) at(t rawio.Time) { b.deadline, b.slack = t, 0 }

// due says whether the deadline has come, or is so near that it may as well have.
func (b *beat) due(now rawio.Time) bool { return now >= b.deadline.Add(-b.slack) }

// ask keeps a new HEARTBEAT, and forgets the oldest.
func (b *beat) ask(nonce uint64, now rawio.Time) {
	if b.asked == nil {
		b.asked = new([kept]question)
	}
	copy(b.asked[1:], b.asked[:])
	b.asked[0] = question{nonce, now}
	b.waiting = true
}

// answer returns when the HEARTBEAT with a nonce was sent, and whether it was the last one. It is answered from now on.
func (b *beat) answer(nonce uint64) (sent rawio.Time, last, ok bool) {
	if b.asked == nil {
		return
	}
	for i, q := range b.asked {
		if q.nonce == nonce && q != (question{}) {
			if b.asked[i] = (question{}); *b.asked == ([kept]question{}) {
				b.asked = nil
			}
			return q.sent, i == 0, true
		}
	}
	return
}

// beatLimit keeps probes and HEARTBEATs to idle paths to HB.Max.Burst in an RTO (section 5.4).
type beatLimit struct {
	until rawio.Time
	count int
}

// heartbeatInfo is nonce (8), send time (8) and the path's address (16).
const heartbeatInfo = 32

// startBeats arms the heartbeats of all paths; unconfirmed ones are probed at once.
func (a *Assoc) startBeats(now rawio.Time) {
	a.beats = beatLimit{}
	for _, p := range a.paths {
		a.scheduleBeat(p, now)
	}
}

// pressing says whether a path gets a HEARTBEAT in each RTO, whatever HB.interval is: a suspected one, an unconfirmed one
// until it is taken to be unreachable (section 5.4), and a potentially failed one unless heartbeats are
// disabled (RFC 7829 section 3.2).
func (a *Assoc) pressing(p *path) bool {
	switch p.State {
	case tx.Unconfirmed:
		return p.Errors <= a.cfg.PathMaxRetrans
	case tx.PotentiallyFailed:
		return p.interval >= 0
	case tx.Active:
		return p.Asked()
	}
	return false
}

// scheduleBeat sets the next HEARTBEAT of a path after from: HB.interval and an RTO with a jitter of half of it, or at once where it presses. It is
// drawn from the later half of that, and may go half an RTO earlier: together with those of other associations. As each may go earlier by as much,
// those that may are the next that are due.
func (a *Assoc) scheduleBeat(p *path, from rawio.Time) {
	switch {
	case a.avoids(p):
		p.beat.at(rawio.Never)
		return
	case a.pressing(p):
		p.beat.at(from)
		return
	case p.Suspected(): // and it answers
		p.beat.at(max(from, p.HeldUntil()))
		return
	case p.interval < 0 && p.State != tx.Unconfirmed:
		p.beat.at(rawio.Never)
		return
	}
	half := p.RTO() / 2
	jitter := time.Duration(uint64(half) * uint64(a.draw()) >> 32)
	p.beat.at(from.Add(max(p.interval, 0) + p.RTO() + jitter))
	p.beat.slack = half
}

// draw returns a number by chance, or 0 without randomness: then there is no jitter, and what is withheld can be foretold.
func (a *Assoc) draw() uint32 {
	var b [4]byte
	_, _ = io.ReadFull(a.env.Rand, b[:])
	return binary.BigEndian.Uint32(b[:])
}

// beatTimeouts serves the heartbeat timers that have expired.
func (a *Assoc) beatTimeouts(now rawio.Time) {
	for _, p := range a.paths {
		if p.beat.due(now) {
			a.beatTimeout(now, p)
			if a.state == Closed {
				return
			}
		}
	}
	for range a.paths { // each is due once
		p := a.nextBeat(now)
		if p == nil {
			return
		}
		if !a.countBeat(now, p) {
			p.beat.at(a.beats.until)
			continue
		}
		a.sendHeartbeat(now, p)
	}
}

// countBeat says whether a HEARTBEAT may go now, and counts it.
func (a *Assoc) countBeat(now rawio.Time, p *path) bool {
	if p.State == tx.PotentiallyFailed || p.Suspected() { // those are no probes, and have to be sent in time
		return true
	}
	if now >= a.beats.until {
		a.beats = beatLimit{}
	}
	if a.beats.count == a.cfg.HBMaxBurst {
		return false
	}
	if a.beats.count++; a.beats.count == 1 {
		a.beats.until = now.Add(a.leastRTO())
	}
	return true
}

// nextBeat returns the path that is due for a HEARTBEAT and has waited longest for one, so that addresses
// which never answer do not starve the others.
func (a *Assoc) nextBeat(now rawio.Time) (next *path) {
	for _, p := range a.paths {
		if p.beat.due(now) && (next == nil || p.beat.sent < next.beat.sent) {
			next = p
		}
	}
	return next
}

// leastRTO is the RTO in which the HEARTBEATs of all paths are counted.
func (a *Assoc) leastRTO() time.Duration {
	least := a.cfg.RTOMax
	for _, p := range a.paths {
		least = min(least, p.RTO())
	}
	return least
}

// beatTimeout is the expiry of a path's heartbeat timer: it leaves it expired if a HEARTBEAT is to be sent.
func (a *Assoc) beatTimeout(now rawio.Time, p *path) {
	if p.beat.waiting { // no answer within an RTO
		p.beat.waiting = false
		if p.Flight() == 0 { // else it is not idle, and T3-rtx will tell
			// Section 8.1 counts HEARTBEATs of the path that data uses, but while data is outstanding it is
			// T3-rtx that counts; section 5.4 counts no probes.
			inUse := p == a.dataPath() && a.outstanding() == 0
			p.Backoff()
			a.pathError(now, p, inUse)
		}
		a.scheduleBeat(p, now)
		return
	}
	if p.State == tx.Unconfirmed {
		return
	}
	if p.State == tx.PotentiallyFailed && a.carriesData(p) {
		p.beat.at(now.Add(p.RTO())) // RFC 7829 section 3.2: DATA tests the path
		return
	}
	if last := p.LastSent(); !p.Suspected() && last != rawio.Never && last > p.beat.sent && now.Sub(last) < p.interval {
		p.beat.sent = last // not idle: DATA measures the path
		a.scheduleBeat(p, last)
	}
}

// carriesData says whether what is outstanding is on the path, or about to be sent there again.
func (a *Assoc) carriesData(p *path) bool {
	return p.Flight() > 0 || a.outstanding() > 0 && p == a.dataPath()
}

// sendHeartbeat queues a HEARTBEAT with a fresh nonce and waits an RTO for its answer.
func (a *Assoc) sendHeartbeat(now rawio.Time, p *path) {
	p.beat.waiting, p.beat.sent = false, now
	p.beat.at(now.Add(p.RTO()))
	a.trim() // the path is idle
	var info [heartbeatInfo]byte
	if _, err := io.ReadFull(a.env.Rand, info[:8]); err != nil {
		return
	}
	p.beat.ask(binary.BigEndian.Uint64(info[:]), now)
	binary.BigEndian.PutUint64(info[8:], uint64(now))
	addr := p.Remote.Addr().As16()
	copy(info[16:], addr[:])
	a.control.nextPacket()
	a.reply(p, netip.AddrPort{}, wire.AppendHeartbeat(a.control.buf, info[:]))
	a.stats.HeartbeatsOut++
}

// prove asks a path of which there is need to know, once in an RTO or sooner, whether it is as short as SACKs say: a nonce does not lie (tx/rate.go).
func (a *Assoc) prove(now rawio.Time, p *path) {
	if p.Vague() && p.interval >= 0 && !p.beat.waiting && now.Sub(p.beat.sent) >= p.ProofRest() && beatStates.has(a.state) {
		a.sendHeartbeat(now, p)
	}
}

// RequestHeartbeat sends a HEARTBEAT to an address of the peer at the next PollTransmit (section 8.3). It
// fails with ErrNoPath, and while no HEARTBEATs are sent with ErrNotUp or ErrClosing.
func (a *Assoc) RequestHeartbeat(now rawio.Time, addr netip.Addr) error {
	p := a.pathOf(addr.Unmap())
	switch {
	case p == nil:
		return ErrNoPath
	case setupStates.has(a.state):
		return ErrNotUp
	case !beatStates.has(a.state):
		return ErrClosing
	}
	a.sendHeartbeat(now, p)
	return nil
}

// SetHeartbeat changes HB.interval of the path to an address of the peer and starts it anew; a negative
// interval disables heartbeats there, 0 is an interval of 0 (section 8.3). It fails with ErrNoPath.
func (a *Assoc) SetHeartbeat(now rawio.Time, addr netip.Addr, interval time.Duration) error {
	p := a.pathOf(addr.Unmap())
	if p == nil {
		return ErrNoPath
	}
	p.interval, p.Asks = interval, interval >= 0
	if !p.Asks {
		p.Forgive(now)
	}
	if beatStates.has(a.state) && !p.beat.waiting {
		a.scheduleBeat(p, now)
	}
	return nil
}

// handleHeartbeat answers with everything that came (section 8.3).
func (a *Assoc) handleHeartbeat(in *inbound, c wire.Chunk) {
	if _, err := wire.AsHeartbeat(c); err != nil {
		a.rare().Malformed++
		return
	}
	a.stats.HeartbeatsIn++
	if a.state == ShutdownSent {
		// A peer that tests its paths knows of no shutdown: ours was lost. T2-shutdown alone would not tell it, because each
		// packet of the peer restarts that timer (section 9.2), and it may send HEARTBEATs faster than T2 expires.
		a.closing.due = true
		return
	}
	if !answerStates.has(a.state) {
		a.rare().Unexpected++
		return
	}
	a.reply(in.path, in.Local, wire.AppendChunk(a.control.buf, wire.ChunkHeartbeatAck, 0, c.Value()))
}

// handleHeartbeatAck takes the answer to one of our last HEARTBEATs on a path, however late: it proves that the address is
// the peer's, that it is reachable, and how far away it is. The round trip is taken from our own record of the nonce, not from
// the time in the answer, which is the peer's word.
func (a *Assoc) handleHeartbeatAck(now rawio.Time, c wire.Chunk) {
	h, err := wire.AsHeartbeat(c)
	if err == nil && len(h.Info()) == probeInfo {
		a.handleProbeAck(now, h.Info())
		return
	}
	if err != nil || len(h.Info()) != heartbeatInfo {
		a.rare().Malformed++
		return
	}
	info := h.Info()
	p := a.pathOf(readAddr(info[16:]))
	if p == nil {
		a.rare().BadHeartbeatAcks++
		return
	}
	sent, last, ok := p.beat.answer(binary.BigEndian.Uint64(info))
	if !ok {
		a.rare().BadHeartbeatAcks++
		return
	}
	a.stats.HeartbeatAcksIn++
	if last {
		p.beat.waiting = false
	}
	if !beatStates.has(a.state) {
		return // the association shuts down, or has begun anew: none is sent any more
	}
	p.Proved(now.Sub(sent))
	a.answered(now, p)
	if last {
		a.scheduleBeat(p, now)
	}
}

// answered clears error counters because the peer has answered on a path.
func (a *Assoc) answered(now rawio.Time, p *path) {
	if a.outstanding() == 0 { // else DATA decides (section 8.1): HEARTBEATs may pass where it does not
		a.errors = 0
	}
	a.pathAlive(now, p)
}
