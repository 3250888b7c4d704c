package tx

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Delivery-rate samples (draft-ietf-ccwg-bbr, "Delivery Rate Samples") for controllers that ask for
// them. What the draft keeps for a connection, C, is kept for a path here. What it keeps for a
// packet, P, is kept for a chunk. A path's samples are of chunks that went there.
//
// A sample is no more than the rate of sending, nor than what was acknowledged in a round trip that
// the peer has proved. A peer that acknowledges early has no faster path for it
// (optimistic_ack.go). A chunk counts once, also if it is taken back and acknowledged again. A
// duplicate does not count.

// packetState is P: what was known of its path when a chunk was last sent.
type packetState struct {
	isUnacked    bool // the chunk has left, and was not acknowledged since
	isAppLimited bool // P.is_app_limited
	txInFlight   int  // P.tx_in_flight
	delivered    uint64
	lost         uint64
	deliveredAt  rawio.Time
	firstSendAt  rawio.Time
	sendTime     rawio.Time
}

// rateSampler is C, with the sample in the making.
type rateSampler struct {
	cc              cc.Modeler
	delivered       uint64
	lost            uint64
	appLimitedUntil uint64 // C.app_limited, 0: it is not
	deliveredAt     rawio.Time
	firstSendAt     rawio.Time
	packetStates    []packetState // TSN t is at t mod len

	sample    cc.Sample
	priorLost uint64        // P.lost of the chunk that rs is about
	elapsed   time.Duration // RS.interval

	lastLostTSN wire.TSN
	timedOut    bool       // something up to timeoutExit that T3-rtx has marked is not acknowledged yet
	timeoutExit wire.TSN   //
	timeoutAt   rawio.Time // when it did
}

// packetStateOf returns that of an outstanding chunk. There are as many as there are records.
func (c *rateSampler) packetStateOf(g *outstanding, t wire.TSN) *packetState {
	if old := c.packetStates; len(old) != len(g.chunkRing) {
		c.packetStates = make([]packetState, len(g.chunkRing))
		for i := range min(g.len(), len(old)) {
			t := g.firstUnacked + wire.TSN(i)
			c.packetStates[int(t)&(len(c.packetStates)-1)] = old[int(t)&(len(old)-1)]
		}
	}
	return &c.packetStates[int(t)&(len(c.packetStates)-1)]
}

// packetStatesMemory is the memory of a path's packet states in octets.
func (c *rateSampler) packetStatesMemory() int {
	if c == nil {
		return 0
	}
	return len(c.packetStates) * int(unsafe.Sizeof(packetState{}))
}

// rateSent is OnPacketSent. What is withheld does not leave.
func (s *Sender) rateSent(now rawio.Time, what chunkEvent, t wire.TSN, r *chunkRecord, p *Path) {
	c, d := p.rateSampler, p.rateSampler.packetStateOf(&s.outstanding, t)
	if what == onWithhold {
		*d = packetState{}
		return
	}
	if p.flight.octets == r.chunkLen() {
		if c.appLimitedUntil > 0 {
			c.cc.OnRestart(now)
		}
		c.firstSendAt, c.deliveredAt = now, now
	}
	*d = packetState{true, c.appLimitedUntil > 0, p.flight.octets, c.delivered, c.lost, c.deliveredAt, c.firstSendAt,
		now}
}

// observeDelivery has a chunk sampled where the controller asks for that. Then it comes alone.
func (s *Sender) observeDelivery(now rawio.Time, c ackedChunks) {
	if c.path.rateSampler != nil {
		s.rateAcked(now, c.first, c.record, c.path)
	}
}

// rateAcked is UpdateRateSample. Where it is not known which transmission has arrived the chunk is
// not sampled. It counts, unless the transmissions went to different paths.
func (s *Sender) rateAcked(now rawio.Time, t wire.TSN, r *chunkRecord, p *Path) {
	c, d := p.rateSampler, p.rateSampler.packetStateOf(&s.outstanding, t)
	known := p.isLastTransmission(now, r) && (r.flags&flagResent == 0 || p.rttEst.srtt > 0)
	if !d.isUnacked || !known && r.flags&flagMultiPath != 0 {
		return
	}
	d.isUnacked = false
	c.delivered += uint64(r.chunkLen())
	c.deliveredAt = now
	c.sample.NewlyAcked += r.chunkLen()
	if !known {
		return
	}
	if c.sample.Valid && d.sendTime < c.firstSendAt { // of those sent together the last comes last
		return
	}
	c.sample.Valid = true
	c.sample.PriorDelivered, c.sample.AppLimited, c.sample.TxInFlight = d.delivered, d.isAppLimited, d.txInFlight
	c.priorLost = d.lost
	c.elapsed = max(d.sendTime.Sub(d.firstSendAt), now.Sub(d.deliveredAt))
	c.firstSendAt = d.sendTime
	if r.flags&flagResent == 0 {
		c.sample.RTT = max(now.Sub(d.sendTime), 1)
	}
}

// rateLost counts a chunk that is taken for lost.
func (s *Sender) rateLost(now rawio.Time, t wire.TSN, r *chunkRecord, p *Path) {
	c, d := p.rateSampler, p.rateSampler.packetStateOf(&s.outstanding, t)
	if !d.isUnacked {
		return // never sent, or acknowledged and taken back
	}
	c.lost += uint64(r.chunkLen())
	c.cc.OnLost(now, &cc.Lost{Octets: r.chunkLen(), Delivered: c.delivered, TxInFlight: d.txInFlight,
		Since:      int(c.lost - d.lost),
		AppLimited: d.isAppLimited, Adjacent: t == c.lastLostTSN+1})
	c.lastLostTSN = t
}

// rateSamples is GenerateRateSample for each path of which something was acknowledged.
func (s *Sender) rateSamples(now rawio.Time) {
	for _, p := range s.paths {
		if p.rateSampler != nil && p.rateSampler.sample.NewlyAcked > 0 {
			s.rateSample(now, p)
		}
	}
}

func (s *Sender) rateSample(now rawio.Time, p *Path) {
	c := p.rateSampler
	if c.delivered > c.appLimitedUntil {
		c.appLimitedUntil = 0
	}
	if c.timedOut && c.timeoutExit.Less(s.outstanding.firstUnacked) {
		c.timedOut = false
	}
	rs := &c.sample
	rs.Delivered, rs.Inflight, rs.SRTT, rs.Recovery = c.delivered, p.flight.octets, p.rttEst.srtt, s.recovery.active ||
		c.timedOut
	if rs.Valid {
		rs.Volume, rs.Lost = int(c.delivered-rs.PriorDelivered), int(c.lost-c.priorLost)
		if interval := max(c.elapsed, p.provedRTT); interval > 0 && c.elapsed >= p.rttEst.minRTT.get() {
			rs.Rate = int64(float64(rs.Volume) * float64(time.Second) / float64(interval))
		}
	}
	if c.cc.OnSample(now, rs) {
		c.markAppLimited(p)
	}
	c.sample = cc.Sample{}
}

// NeedsRTTProof reports that an outdated round trip bounds what is sent, or delivery-rate samples.
// The peer has proved it long ago, or while there was a queue. SACKs say that it is shorter, for
// the samples by a fifth.
func (p *Path) NeedsRTTProof() bool {
	if p.ackedTooSoon {
		return true
	}
	if p.rateSampler == nil {
		return false
	}
	trip := p.rttEst.minRTT.get()
	return trip > 0 && (p.provedRTT == 0 || p.provedRTT > trip+trip/4)
}

// RTTProofInterval is how long after one question about the round trip another may be asked. It is
// an RTO, or less where the answer is waited for.
func (p *Path) RTTProofInterval() time.Duration {
	if p.ackedTooSoon {
		return min(p.rttEst.rto, max(2*p.provedRTT, minPTO))
	}
	return p.rttEst.rto
}

// onTimeout notes that T3-rtx marks what is in flight.
func (c *rateSampler) onTimeout(now rawio.Time, next wire.TSN) {
	c.timedOut, c.timeoutExit, c.timeoutAt = true, next-1, now
}

// markAppLimited is MarkConnectionAppLimited.
func (c *rateSampler) markAppLimited(p *Path) {
	c.appLimitedUntil = max(c.delivered+uint64(p.flight.octets), 1)
}

// checkAppLimited is CheckIfApplicationLimited, when nothing new goes to p. Neither cwnd nor the
// peer's window holds that back, nor is there anything to send again.
func (s *Sender) checkAppLimited(p *Path) {
	if c := p.rateSampler; c != nil && p.hasCwndRoom() && s.burstAllows(p) && s.outstanding.rwnd > 0 &&
		(s.queue.isEmpty() || s.defersNewData(p)) {
		c.markAppLimited(p)
	}
}
