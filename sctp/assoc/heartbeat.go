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

// heartbeat is the heartbeat of one path (sections 5.4 and 8.3).
type heartbeat struct {
	nextAt     rawio.Time                    // next HEARTBEAT, or the end of the wait for its answer
	slack      time.Duration                 // how much earlier it may go
	awaitsAck  bool                          // the last HEARTBEAT is unanswered, and its RTO is not over
	interval   time.Duration                 // HB.interval, negative for no heartbeats
	lastSentAt rawio.Time                    // when the last one was sent, or what is as good
	unanswered *[maxUnanswered]sentHeartbeat // the last few that may still be answered, the newest first; nil: none
}

// maxUnanswered is how many HEARTBEATs of a path are remembered.
const maxUnanswered = 4

// sentHeartbeat is a HEARTBEAT that may still be answered. An answer counts whenever it comes, but
// only once.
type sentHeartbeat struct {
	nonce  uint64
	sentAt rawio.Time
}

// setNextAt sets the deadline, which is not to come earlier.
func (b *heartbeat) setNextAt(t rawio.Time) { b.nextAt, b.slack = t, 0 }

// isDue says whether the deadline has come, or is so near that it may as well have.
func (b *heartbeat) isDue(now rawio.Time) bool { return now >= b.nextAt.Add(-b.slack) }

// recordSent keeps a new HEARTBEAT, and forgets the oldest.
func (b *heartbeat) recordSent(nonce uint64, now rawio.Time) {
	if b.unanswered == nil {
		b.unanswered = new([maxUnanswered]sentHeartbeat)
	}
	copy(b.unanswered[1:], b.unanswered[:])
	b.unanswered[0] = sentHeartbeat{nonce, now}
	b.awaitsAck = true
}

// takeAnswer returns when the HEARTBEAT with a nonce was sent, and whether it was the last one. It
// counts as answered from now on.
func (b *heartbeat) takeAnswer(nonce uint64) (sent rawio.Time, last, ok bool) {
	if b.unanswered == nil {
		return
	}
	for i, q := range b.unanswered {
		if q.nonce == nonce && q != (sentHeartbeat{}) {
			if b.unanswered[i] = (sentHeartbeat{}); *b.unanswered == ([maxUnanswered]sentHeartbeat{}) {
				b.unanswered = nil
			}
			return q.sentAt, i == 0, true
		}
	}
	return
}

// heartbeatLimit limits probes, and HEARTBEATs to idle paths, to HB.Max.Burst in an RTO (section
// 5.4).
type heartbeatLimit struct {
	windowEndsAt rawio.Time
	count        int
}

// heartbeatInfoLen is nonce (8), send time (8) and the path's address (16).
const heartbeatInfoLen = 32

// startHeartbeats arms the heartbeats of all paths; unconfirmed ones are probed at once.
func (a *Assoc) startHeartbeats(now rawio.Time) {
	a.limits.heartbeats = heartbeatLimit{}
	for _, p := range a.paths {
		a.scheduleHeartbeat(p, now)
	}
}

// probesEachRTO says whether a path gets a HEARTBEAT in each RTO, whatever HB.interval is. A
// suspected path does. An unconfirmed one does until it is taken to be unreachable (section 5.4). A
// potentially failed one does unless heartbeats are disabled (RFC 7829 section 3.2).
func (a *Assoc) probesEachRTO(p *path) bool {
	switch p.State {
	case tx.Unconfirmed:
		return p.Errors <= a.cfg.PathMaxRetrans
	case tx.PotentiallyFailed:
		return p.heartbeat.interval >= 0
	case tx.Active:
		return p.NeedsHeartbeat()
	}
	return false
}

// scheduleHeartbeat sets the next HEARTBEAT of a path after from. The delay is HB.interval and an
// RTO with a jitter of half of it. An urgent one goes at once. It is drawn from the later half of
// that. The HEARTBEAT may go half an RTO earlier, together with those of other associations. As
// each may go earlier by as much, those that may are the next that are due.
func (a *Assoc) scheduleHeartbeat(p *path, from rawio.Time) {
	switch {
	case a.isAvoided(p) || p.reach.isRemoved:
		p.heartbeat.setNextAt(rawio.Never)
		return
	case a.probesEachRTO(p):
		p.heartbeat.setNextAt(from)
		return
	case p.Suspected(): // and it answers
		p.heartbeat.setNextAt(max(from, p.HeldUntil()))
		return
	case p.heartbeat.interval < 0 && p.State != tx.Unconfirmed:
		p.heartbeat.setNextAt(rawio.Never)
		return
	}
	half := p.RTO() / 2
	jitter := time.Duration(uint64(half) * uint64(a.randUint32()) >> 32)
	p.heartbeat.setNextAt(from.Add(max(p.heartbeat.interval, 0) + p.RTO() + jitter))
	p.heartbeat.slack = half
}

// randUint32 returns a random number, or 0 without randomness. Then there is no jitter, and what is
// withheld can be predicted.
func (a *Assoc) randUint32() uint32 {
	var b [4]byte
	_, _ = io.ReadFull(a.env.Rand, b[:])
	return binary.BigEndian.Uint32(b[:])
}

// handleHeartbeatTimeouts serves the heartbeat timers that have expired.
func (a *Assoc) handleHeartbeatTimeouts(now rawio.Time) {
	if !heartbeatStates.has(a.state) {
		return
	}
	for _, p := range a.paths {
		if p.heartbeat.isDue(now) {
			a.handleHeartbeatTimeout(now, p)
			if a.state == Closed {
				return
			}
		}
	}
	for range a.paths { // each is due once
		p := a.nextHeartbeatPath(now)
		if p == nil {
			return
		}
		if !a.allowHeartbeat(now, p) {
			p.heartbeat.setNextAt(a.limits.heartbeats.windowEndsAt)
			continue
		}
		a.sendHeartbeat(now, p)
	}
}

// allowHeartbeat says whether a HEARTBEAT may go now, and counts it.
func (a *Assoc) allowHeartbeat(now rawio.Time, p *path) bool {
	if p.State == tx.PotentiallyFailed || p.Suspected() { // those are no probes, and have to be sent in time
		return true
	}
	if now >= a.limits.heartbeats.windowEndsAt {
		a.limits.heartbeats = heartbeatLimit{}
	}
	if a.limits.heartbeats.count == a.cfg.HBMaxBurst {
		return false
	}
	if a.limits.heartbeats.count++; a.limits.heartbeats.count == 1 {
		a.limits.heartbeats.windowEndsAt = now.Add(a.minPathRTO())
	}
	return true
}

// nextHeartbeatPath returns the path that is due for a HEARTBEAT and has waited longest for one. So
// addresses that never answer do not starve the others.
func (a *Assoc) nextHeartbeatPath(now rawio.Time) (next *path) {
	for _, p := range a.paths {
		if p.heartbeat.isDue(now) && (next == nil || p.heartbeat.lastSentAt < next.heartbeat.lastSentAt) {
			next = p
		}
	}
	return next
}

// minPathRTO returns the RTO in which the HEARTBEATs of all paths are counted.
func (a *Assoc) minPathRTO() time.Duration {
	least := a.cfg.RTOMax
	for _, p := range a.paths {
		least = min(least, p.RTO())
	}
	return least
}

// handleHeartbeatTimeout handles the expiry of a path's heartbeat timer. It leaves the timer
// expired if a HEARTBEAT is to be sent.
func (a *Assoc) handleHeartbeatTimeout(now rawio.Time, p *path) {
	if p.heartbeat.awaitsAck { // no answer within an RTO
		p.heartbeat.awaitsAck = false
		if p.Flight() == 0 { // else it is not idle, and T3-rtx will tell
			// Section 8.1 counts HEARTBEATs of the path that data uses. While data is outstanding,
			// T3-rtx counts instead. Section 5.4 counts no probes.
			inUse := p == a.dataPath() && a.outstandingChunks() == 0
			p.Backoff()
			a.countPathError(now, p, inUse)
		}
		a.scheduleHeartbeat(p, now)
		return
	}
	if p.State == tx.Unconfirmed {
		return
	}
	if p.State == tx.PotentiallyFailed && a.carriesData(p) {
		p.heartbeat.setNextAt(now.Add(p.RTO())) // RFC 7829 section 3.2: DATA tests the path
		return
	}
	if last := p.LastSent(); !p.Suspected() && last != rawio.Never && last > p.heartbeat.lastSentAt &&
		now.Sub(last) < p.heartbeat.interval {
		p.heartbeat.lastSentAt = last // not idle: DATA measures the path
		a.scheduleHeartbeat(p, last)
	}
}

// carriesData says whether what is outstanding is on the path, or about to be sent there again.
func (a *Assoc) carriesData(p *path) bool {
	return p.Flight() > 0 || a.outstandingChunks() > 0 && p == a.dataPath()
}

// sendHeartbeat queues a HEARTBEAT with a fresh nonce and waits an RTO for its answer.
func (a *Assoc) sendHeartbeat(now rawio.Time, p *path) {
	if p.reach.isRemoved {
		return
	}
	p.heartbeat.awaitsAck, p.heartbeat.lastSentAt = false, now
	p.heartbeat.setNextAt(now.Add(p.RTO()))
	a.trimIdle() // the path is idle
	var info [heartbeatInfoLen]byte
	if _, err := io.ReadFull(a.env.Rand, info[:8]); err != nil {
		return
	}
	p.heartbeat.recordSent(binary.BigEndian.Uint64(info[:]), now)
	binary.BigEndian.PutUint64(info[8:], uint64(now))
	addr := p.Remote.Addr().As16()
	copy(info[16:], addr[:])
	a.control.closeEntry()
	a.queueReply(p, netip.AddrPort{}, wire.AppendHeartbeat(a.control.buf, info[:]))
	a.stats.HeartbeatsOut++
}

// verifyRTT asks a path whether it is as short as SACKs say: a nonce does not lie
// (tx/rate_sample.go). It does so once in an RTO or sooner, and only if there is need to know.
func (a *Assoc) verifyRTT(now rawio.Time, p *path) {
	if p.NeedsRTTProof() && p.heartbeat.interval >= 0 && !p.heartbeat.awaitsAck && now.Sub(p.heartbeat.lastSentAt) >=
		p.RTTProofInterval() && heartbeatStates.has(a.state) {
		a.sendHeartbeat(now, p)
	}
}

// RequestHeartbeat sends a HEARTBEAT to an address of the peer at the next PollTransmit (section
// 8.3). It fails with ErrNoPath, and while no HEARTBEATs are sent with ErrNotUp or ErrClosing.
func (a *Assoc) RequestHeartbeat(now rawio.Time, addr netip.Addr) error {
	p := a.findPath(addr.Unmap())
	switch {
	case p == nil:
		return ErrNoPath
	case setupStates.has(a.state):
		return ErrNotUp
	case !heartbeatStates.has(a.state):
		return ErrClosing
	}
	a.sendHeartbeat(now, p)
	return nil
}

// SetHeartbeat changes HB.interval of the path to an address of the peer, and starts it anew. A
// negative interval disables heartbeats there, 0 is an interval of 0 (section 8.3). It fails with
// ErrNoPath.
func (a *Assoc) SetHeartbeat(now rawio.Time, addr netip.Addr, interval time.Duration) error {
	p := a.findPath(addr.Unmap())
	if p == nil {
		return ErrNoPath
	}
	p.heartbeat.interval, p.HeartbeatsOnSuspicion = interval, interval >= 0
	if !p.HeartbeatsOnSuspicion {
		p.ClearSuspicion(now)
	}
	if heartbeatStates.has(a.state) && !p.heartbeat.awaitsAck {
		a.scheduleHeartbeat(p, now)
	}
	return nil
}

// handleHeartbeat answers with everything that came (section 8.3).
func (a *Assoc) handleHeartbeat(in *inbound, c wire.Chunk) {
	if _, err := wire.AsHeartbeat(c); err != nil {
		a.rareCounters().Malformed++
		return
	}
	a.stats.HeartbeatsIn++
	if a.state == ShutdownSent {
		// A peer that tests its paths knows of no shutdown: ours was lost. T2-shutdown alone would
		// not repeat it, because each packet of the peer restarts that timer (section 9.2). The
		// peer may send HEARTBEATs faster than T2 expires.
		a.shutdownState().sendDue = true
		return
	}
	if !heartbeatAckStates.has(a.state) {
		a.rareCounters().Unexpected++
		return
	}
	a.queueReply(in.path, in.Local, wire.AppendChunk(a.control.buf, wire.ChunkHeartbeatAck, 0, c.Value()))
}

// handleHeartbeatAck takes the answer to one of our last HEARTBEATs on a path, however late. It
// proves that the address is the peer's, that it is reachable, and how far away it is. The round
// trip comes from our own record of the nonce. The time in the answer is only the peer's word.
func (a *Assoc) handleHeartbeatAck(now rawio.Time, c wire.Chunk) {
	h, err := wire.AsHeartbeat(c)
	if err == nil && len(h.Info()) == probeInfoLen {
		a.handleProbeAck(now, h.Info())
		return
	}
	if err != nil || len(h.Info()) != heartbeatInfoLen {
		a.rareCounters().Malformed++
		return
	}
	info := h.Info()
	p := a.findPath(readAddr(info[16:]))
	if p == nil {
		a.rareCounters().BadHeartbeatAcks++
		return
	}
	sent, last, ok := p.heartbeat.takeAnswer(binary.BigEndian.Uint64(info))
	if !ok {
		a.rareCounters().BadHeartbeatAcks++
		return
	}
	a.stats.HeartbeatAcksIn++
	if last {
		p.heartbeat.awaitsAck = false
	}
	if !heartbeatStates.has(a.state) {
		return // the association shuts down, or has begun anew: none is sent any more
	}
	p.ObserveProvedRTT(now.Sub(sent))
	a.noteAnswer(now, p)
	if last {
		a.scheduleHeartbeat(p, now)
	}
}

// noteAnswer clears error counters because the peer has answered on a path.
func (a *Assoc) noteAnswer(now rawio.Time, p *path) {
	if a.outstandingChunks() == 0 { // else DATA decides (section 8.1): HEARTBEATs may pass where it does not
		a.health.errorCount = 0
	}
	a.markPathAlive(now, p)
}
