package assoc

import (
	"encoding/binary"
	"io"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// beat is the heartbeat of one path (sections 5.4 and 8.3).
type beat struct {
	deadline rawio.Time // next HEARTBEAT, or the end of the wait for its answer
	waiting  bool       // a HEARTBEAT is unanswered
	sent     rawio.Time
	nonce    uint64
}

// beatLimit keeps the HEARTBEATs of all paths to HB.Max.Burst in an RTO (section 5.4).
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
		p.beat = beat{deadline: now}
		if p.State != tx.Unconfirmed {
			a.scheduleBeat(p, now)
		}
	}
}

// scheduleBeat sets the next HEARTBEAT of a path to HB.interval and an RTO with a jitter of half of it
// after from.
func (a *Assoc) scheduleBeat(p *path, from rawio.Time) {
	if a.cfg.HeartbeatInterval < 0 && p.State != tx.Unconfirmed {
		p.beat.deadline = rawio.Never
		return
	}
	var b [4]byte
	_, _ = io.ReadFull(a.env.Rand, b[:]) // without randomness there is no jitter, which does no harm
	rto := p.RTO()
	jitter := time.Duration(uint64(rto) * uint64(binary.BigEndian.Uint32(b[:])) >> 32)
	p.beat.deadline = from.Add(max(a.cfg.HeartbeatInterval, 0) + rto/2 + jitter)
}

// beatTimeout is the expiry of a path's heartbeat timer.
func (a *Assoc) beatTimeout(now rawio.Time, p *path) {
	probing := p.State == tx.Unconfirmed
	if p.beat.waiting { // no answer within an RTO
		p.beat.waiting = false
		p.Backoff()
		// Section 8.1 counts HEARTBEATs of the path that data uses; section 5.4 no probes.
		a.pathError(p, !probing && p.Path == a.sender.DataPath())
		if a.state == Closed {
			return
		}
		if !probing || p.Errors > a.cfg.PathMaxRetrans {
			a.scheduleBeat(p, now)
			return
		}
	}
	if last := p.LastSent(); !probing && last != rawio.Never && last > p.beat.sent && now.Sub(last) < a.cfg.HeartbeatInterval {
		p.beat.sent = last // not idle: DATA measures the path
		a.scheduleBeat(p, last)
		if now < p.beat.deadline {
			return
		}
	}
	if now >= a.beats.until {
		a.beats = beatLimit{until: now.Add(p.RTO())}
	}
	if a.beats.count == a.cfg.HBMaxBurst {
		p.beat.deadline = a.beats.until
		return
	}
	a.beats.count++
	a.sendHeartbeat(now, p)
}

// sendHeartbeat queues a HEARTBEAT with a fresh nonce and waits an RTO for its answer.
func (a *Assoc) sendHeartbeat(now rawio.Time, p *path) {
	var info [heartbeatInfo]byte
	if _, err := io.ReadFull(a.env.Rand, info[:8]); err != nil {
		a.scheduleBeat(p, now)
		return
	}
	p.beat = beat{waiting: true, sent: now, nonce: binary.BigEndian.Uint64(info[:]), deadline: now.Add(p.RTO())}
	binary.BigEndian.PutUint64(info[8:], uint64(now))
	addr := p.Remote.Addr().As16()
	copy(info[16:], addr[:])
	a.control.nextPacket()
	a.reply(p, wire.AppendHeartbeat(a.control.buf, info[:]))
	a.stats.HeartbeatsOut++
}

// handleHeartbeat answers with everything that came (section 8.3).
func (a *Assoc) handleHeartbeat(in *inbound, c wire.Chunk) {
	if _, err := wire.AsHeartbeat(c); err != nil {
		a.stats.Malformed++
		return
	}
	if in.path == nil || !answerStates.has(a.state) {
		return
	}
	a.reply(in.path, wire.AppendChunk(a.control.buf, wire.ChunkHeartbeatAck, 0, c.Value()))
}

// handleHeartbeatAck takes the answer to our last HEARTBEAT on a path: it proves that the address is
// the peer's, that it is reachable, and how far away it is.
func (a *Assoc) handleHeartbeatAck(now rawio.Time, c wire.Chunk) {
	h, err := wire.AsHeartbeat(c)
	if err != nil || len(h.Info()) != heartbeatInfo {
		a.stats.Malformed++
		return
	}
	info := h.Info()
	p := a.pathOf(readAddr(info[16:]))
	if p == nil || !p.beat.waiting || p.beat.nonce != binary.BigEndian.Uint64(info) || !beatStates.has(a.state) {
		return
	}
	a.stats.HeartbeatAcksIn++
	p.beat.waiting = false
	p.ObserveRTT(now.Sub(p.beat.sent))
	a.errors = 0
	if p.State == tx.Unconfirmed {
		p.State = tx.Inactive // so that pathAlive reports it
	}
	a.pathAlive(p)
	a.scheduleBeat(p, now)
}
