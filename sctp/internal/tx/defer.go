package tx

import "time"

// While a lot is in flight, a short packet can wait for more user data to fill it: the next SACK comes soon, and
// with it the next chance (RFC 1122 section 4.2.3.4 has the idea, RFC 6458 section 8.1.5 the option to do
// without). What is in flight is more than a packet here, because the SACK of a lone one may be delayed; and
// none of this applies where a round trip takes long enough to be felt.
const (
	enough    = 4                // full packets in flight
	shortTrip = time.Millisecond // the shortest round trip of late
	train     = 64 << 10         // octets of user data that links move at once
)

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
)

// await decides what waits in the opportunity that begins. heard says that a SACK has brought it about. Else a new
// message has, and there is a SACK to wait for: many packets at once cost a link little more than one. A short
// packet waits for the second SACK at most, for the first if no message has come since the one before.
func (s *Sender) await(p *Path, heard bool) {
	switch {
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
	if s.waits == waitNone || s.sackNow || !l.queued || l.msg.NoBundle || l.msg.SackNow || !p.busy() {
		return false
	}
	return s.waits == waitAll || s.Queued() < s.MaxPayload()
}
