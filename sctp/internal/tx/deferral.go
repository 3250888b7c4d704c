package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// While a lot is in flight, a short packet can wait for more user data to fill it. The next SACK
// comes soon, and with it the next chance. RFC 1122 section 4.2.3.4 has the idea, RFC 6458 section
// 8.1.5 the option to do without. A lot is more than a packet here, because the SACK of a lone one
// may be delayed. None of this applies where a round trip takes long enough to be felt.
const (
	busyPackets = 4                // full packets in flight
	shortRTT    = time.Millisecond // the shortest recent round trip
	trainOctets = 64 << 10         // octets of user data that links move at once

	// A program with several requests under way sends many short messages, and a packet for each
	// costs more than all else. So a few wait for others where these are expected at once.
	maxCoalesced    = 8
	coalesceTimeout = 200 * time.Microsecond
)

// Expect says whether the user is about to send more. It has just read a message, and there are
// others.
func (s *Sender) Expect(more bool) { s.burst.moreExpected = more }

// waitsForMore reports whether new DATA waits because there will be more at once. That is so for a
// user that says so. It is also so where two packets are in flight that could have been one, whose
// SACK is not delayed.
func (s *Sender) waitsForMore(now rawio.Time, p *Path, heard bool) bool {
	pair := p.flight.octets > 0 && p.flight.octets <= p.pmdcs && !s.outstanding.isSinglePacket(p)
	n := s.queue.numWaiting()
	if s.queue.current.loaded {
		n++
	}
	over := s.cfg.NoDelay || !now.Before(s.burst.coalesceEndAt)
	if over || n == 0 || n >= maxCoalesced || s.queue.current.loaded && s.queue.current.offset > 0 ||
		!(s.burst.moreExpected || pair && !heard) || !p.minRTTBelow(shortRTT) || s.isPaced(p) {
		s.burst.coalesceEndAt, s.burst.moreExpected = rawio.Never, s.burst.moreExpected && !over
		return false
	}
	if s.burst.coalesceEndAt == rawio.Never {
		s.burst.coalesceEndAt = now.Add(coalesceTimeout)
	}
	return true
}

// manyInFlight reports whether so much is in flight to p that its acknowledgement is worth waiting
// for.
func (p *Path) manyInFlight() bool {
	return p.flight.octets >= busyPackets*p.pmdcs && p.minRTTBelow(shortRTT)
}

// deferral is what waits in a transmission opportunity.
type deferral uint8

const (
	deferNone  deferral = iota
	deferShort          // a packet that would be short
	deferAll            // all new DATA of the queue
	deferMore           // the same, for a moment
)

// chooseDeferral decides what waits in the opportunity that begins. heard says that a SACK has
// brought it about. Else a new message has, and there is a SACK to wait for. Many packets at once
// cost a link little more than one. A short packet waits for the second SACK at most. If no message
// has come since the one before, it waits for the first.
func (s *Sender) chooseDeferral(now rawio.Time, p *Path, heard bool) {
	switch {
	case s.waitsForMore(now, p, heard):
		s.burst.deferral = deferMore
	case s.cfg.NoDelay || !p.manyInFlight():
		s.burst.deferral = deferNone
	case !heard && (s.Queued() < trainOctets || s.cfg.MaxBurst > 0 && s.burst.left <= trainOctets/p.pmdcs):
		s.burst.deferral = deferAll
	case !heard || s.burst.enqueuedSinceSack:
		s.burst.deferral = deferShort
	default:
		s.burst.deferral = deferNone
	}
	s.burst.enqueuedSinceSack = s.burst.enqueuedSinceSack && !heard
}

// defersNewData reports whether new DATA to p, of the message in the slot, waits.
func (s *Sender) defersNewData(p *Path) bool {
	l := &s.queue.current
	if s.burst.deferral == deferNone || s.sackNow || !l.fromQueue || l.msg.NoBundle || l.msg.SackNow ||
		s.burst.deferral != deferMore && !p.manyInFlight() {
		return false
	}
	return s.burst.deferral >= deferAll || s.Queued() < s.MaxPayload()
}
