package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// While a lot is in flight, a short packet can wait for more user data to fill it: the next SACK comes soon, and
// with it the next chance (RFC 1122 section 4.2.3.4 has the idea, RFC 6458 section 8.1.5 the option to do
// without). What is in flight is more than a packet here, because the SACK of a lone one may be delayed; and
// none of this applies where a round trip takes long enough to be felt.
const (
	enough    = 4                // full packets in flight
	shortTrip = time.Millisecond // the shortest round trip of late
	train     = 64 << 10         // octets of user data that links move at once

	// A program that has several requests under way sends many short messages, and a packet for each costs more than all else. So a few may
	// wait for some more where these are expected at once.
	several    = 8
	severalFor = 200 * time.Microsecond
)

// Expect says whether the user is about to send more: it has just read a message, and there are others.
func (s *Sender) Expect(more bool) { s.more = more }

// expects reports whether new DATA waits because there will be more at once: of a user that says so, and where two packets are in flight that one
// could have been, whose SACK is not delayed.
func (s *Sender) expects(now rawio.Time, p *Path, heard bool) bool {
	pair := p.flight > 0 && p.flight <= p.pmdcs && !s.lone(p)
	n := s.queue.n
	if s.slot.full {
		n++
	}
	over := s.cfg.NoDelay || !now.Before(s.moreAt)
	if over || n == 0 || n >= several || s.slot.full && s.slot.off > 0 || !(s.more || pair && !heard) || !p.within(shortTrip) || s.spreads(p) {
		s.moreAt, s.more = rawio.Never, s.more && !over
		return false
	}
	if s.moreAt == rawio.Never {
		s.moreAt = now.Add(severalFor)
	}
	return true
}

// busy reports whether so much is in flight to p that its acknowledgement is worth waiting for.
func (p *Path) busy() bool {
	return p.flight >= enough*p.pmdcs && p.within(shortTrip)
}

// wait is what waits in a transmission opportunity.
type wait uint8

const (
	waitNone  wait = iota
	waitShort      // a packet that would be short
	waitAll        // all new DATA of the queue
	waitMore       // the same, for a moment
)

// await decides what waits in the opportunity that begins. heard says that a SACK has brought it about. Else a new
// message has, and there is a SACK to wait for: many packets at once cost a link little more than one. A short
// packet waits for the second SACK at most, for the first if no message has come since the one before.
func (s *Sender) await(now rawio.Time, p *Path, heard bool) {
	switch {
	case s.expects(now, p, heard):
		s.waits = waitMore
	case s.cfg.NoDelay || !p.busy():
		s.waits = waitNone
	case !heard && (s.Queued() < train || s.cfg.MaxBurst > 0 && s.burst <= train/p.pmdcs):
		s.waits = waitAll
	case !heard || s.fed:
		s.waits = waitShort
	default:
		s.waits = waitNone
	}
	s.fed = s.fed && !heard
}

// defers reports whether new DATA to p, of the message in the slot, waits.
func (s *Sender) defers(p *Path) bool {
	l := &s.slot
	if s.waits == waitNone || s.sackNow || !l.queued || l.msg.NoBundle || l.msg.SackNow || s.waits != waitMore && !p.busy() {
		return false
	}
	return s.waits >= waitAll || s.Queued() < s.MaxPayload()
}
