package tx

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Delivery-rate samples (draft-ietf-ccwg-bbr, "Delivery Rate Samples") for controllers that ask for them. What the draft keeps for a connection, C, is
// kept for a path, and what it keeps for a packet, P, for a chunk: a path's samples are of chunks that went there.
//
// A sample is no more than the rate at which was sent, nor than what was acknowledged in a round trip that the peer has proved: one that acknowledges
// early has no faster path for it (trust.go). A chunk counts once, also if it is taken back and acknowledged again; a duplicate does not count.

// departure is P: what was known of its path when a chunk was last sent.
type departure struct {
	on            bool // the chunk has left, and was not acknowledged since
	limited       bool // P.is_app_limited
	inflight      int  // P.tx_in_flight
	delivered     uint64
	lost          uint64
	deliveredTime rawio.Time
	firstSend     rawio.Time
	send          rawio.Time
}

// rates is C, with the sample in the making.
type rates struct {
	cc            cc.Modeler
	delivered     uint64
	lost          uint64
	limited       uint64 // C.app_limited, 0: it is not
	deliveredTime rawio.Time
	firstSend     rawio.Time
	ring          []departure // TSN t is at t mod len

	rs      cc.Sample
	before  uint64        // P.lost of the chunk that rs is about
	elapsed time.Duration // RS.interval

	lastLost wire.TSN
	timedOut bool       // something up to exit that T3-rtx has marked is not acknowledged yet
	exit     wire.TSN   //
	at       rawio.Time // when it did
}

// departure returns that of an outstanding chunk. There is room for as many as there are records.
func (c *rates) departure(g *ledger, t wire.TSN) *departure {
	if old := c.ring; len(old) != len(g.recs) {
		c.ring = make([]departure, len(g.recs))
		for i := range min(g.len(), len(old)) {
			t := g.base + wire.TSN(i)
			c.ring[int(t)&(len(c.ring)-1)] = old[int(t)&(len(old)-1)]
		}
	}
	return &c.ring[int(t)&(len(c.ring)-1)]
}

// held is the memory of a path's departures in octets.
func (c *rates) held() int {
	if c == nil {
		return 0
	}
	return len(c.ring) * int(unsafe.Sizeof(departure{}))
}

// rateSent is OnPacketSent. What is withheld does not leave.
func (s *Sender) rateSent(now rawio.Time, what trigger, t wire.TSN, r *record, p *Path) {
	c, d := p.rates, p.rates.departure(&s.ledger, t)
	if what == onWithhold {
		*d = departure{}
		return
	}
	if p.flight == r.chunkLen() {
		if c.limited > 0 {
			c.cc.OnRestart(now)
		}
		c.firstSend, c.deliveredTime = now, now
	}
	*d = departure{true, c.limited > 0, p.flight, c.delivered, c.lost, c.deliveredTime, c.firstSend, now}
}

// rateAcked is UpdateRateSample. Where it is not known which transmission has arrived the chunk counts, unless these went to different paths, and is not sampled.
func (s *Sender) rateAcked(now rawio.Time, t wire.TSN, r *record, p *Path) {
	c, d := p.rates, p.rates.departure(&s.ledger, t)
	known := p.last(now, r) && (r.flags&resent == 0 || p.est.srtt > 0)
	if !d.on || !known && r.flags&moved != 0 {
		return
	}
	d.on = false
	c.delivered += uint64(r.chunkLen())
	c.deliveredTime = now
	c.rs.NewlyAcked += r.chunkLen()
	if !known {
		return
	}
	if c.rs.Valid && d.send < c.firstSend { // of those sent together the last comes last
		return
	}
	c.rs.Valid = true
	c.rs.PriorDelivered, c.rs.AppLimited, c.rs.TxInFlight = d.delivered, d.limited, d.inflight
	c.before = d.lost
	c.elapsed = max(d.send.Sub(d.firstSend), now.Sub(d.deliveredTime))
	c.firstSend = d.send
	if r.flags&resent == 0 {
		c.rs.RTT = max(now.Sub(d.send), 1)
	}
}

// rateLost counts a chunk that is taken for lost.
func (s *Sender) rateLost(now rawio.Time, t wire.TSN, r *record, p *Path) {
	c, d := p.rates, p.rates.departure(&s.ledger, t)
	if !d.on {
		return // never sent, or acknowledged and taken back
	}
	c.lost += uint64(r.chunkLen())
	c.cc.OnLost(now, &cc.Lost{Octets: r.chunkLen(), Delivered: c.delivered, TxInFlight: d.inflight, Since: int(c.lost - d.lost),
		AppLimited: d.limited, Adjacent: t == c.lastLost+1})
	c.lastLost = t
}

// rateSamples is GenerateRateSample for each path of which something was acknowledged.
func (s *Sender) rateSamples(now rawio.Time) {
	for _, p := range s.paths {
		if p.rates != nil && p.rates.rs.NewlyAcked > 0 {
			s.rateSample(now, p)
		}
	}
}

func (s *Sender) rateSample(now rawio.Time, p *Path) {
	c := p.rates
	if c.delivered > c.limited {
		c.limited = 0
	}
	if c.timedOut && c.exit.Less(s.ledger.base) {
		c.timedOut = false
	}
	rs := &c.rs
	rs.Delivered, rs.Inflight, rs.SRTT, rs.Recovery = c.delivered, p.flight, p.est.srtt, s.recovery || c.timedOut
	if rs.Valid {
		rs.Volume, rs.Lost = int(c.delivered-rs.PriorDelivered), int(c.lost-c.before)
		if interval := max(c.elapsed, p.proved); interval > 0 && c.elapsed >= p.est.trip.get() {
			rs.Rate = int64(float64(rs.Volume) * float64(time.Second) / float64(interval))
		}
	}
	if c.cc.OnSample(now, rs) {
		c.appLimited(p)
	}
	c.rs = cc.Sample{}
}

// Vague reports that what is sent, or delivery-rate samples, are bounded by a round trip that the peer has proved long ago, or while there was a queue: SACKs say
// that it is shorter, for the latter by a fifth.
func (p *Path) Vague() bool {
	if p.outrun {
		return true
	}
	if p.rates == nil {
		return false
	}
	trip := p.est.trip.get()
	return trip > 0 && (p.proved == 0 || p.proved > trip+trip/4)
}

// ProofRest is how long after one question about the round trip another may be asked: an RTO, or less where the answer is waited for.
func (p *Path) ProofRest() time.Duration {
	if p.outrun {
		return min(p.est.rto, max(2*p.proved, leastPTO))
	}
	return p.est.rto
}

// timeout takes that T3-rtx marks what is in flight.
func (c *rates) timeout(now rawio.Time, next wire.TSN) { c.timedOut, c.exit, c.at = true, next-1, now }

// appLimited is MarkConnectionAppLimited.
func (c *rates) appLimited(p *Path) { c.limited = max(c.delivered+uint64(p.flight), 1) }

// dry is CheckIfApplicationLimited, when nothing new goes to p: neither cwnd nor the peer's window holds that back, nor is there anything to send again.
func (s *Sender) dry(p *Path) {
	if c := p.rates; c != nil && p.open() && s.bursting(p) && s.ledger.rwnd > 0 && (!s.slot.full && s.queue.n == 0 || s.defers(p)) {
		c.appLimited(p)
	}
}
