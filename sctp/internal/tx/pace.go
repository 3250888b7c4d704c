package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// paceQuantum is how much of its rate a paced path may use at once: timers are not finer, and batches are cheap.
// paceBurst is how many full packets it may in any case, as many as an association begins with (RFC 9002 section 7.7).
const (
	paceQuantum = time.Millisecond
	paceBurst   = 10
)

// spreads reports whether packets to p are spread over the round trip: where the controller asks for it, and else over all but
// near paths, as soon as one round trip is known. By the letter of RFC 9260 Max.Burst takes its place.
func (s *Sender) spreads(p *Path) bool { return p.pacer != nil || s.far(p) }

// paces reports whether a packet to p has to wait for its time, and remembers until when.
func (s *Sender) paces(now rawio.Time, p *Path) bool {
	if !now.Before(p.due) || !s.spreads(p) {
		return false
	}
	s.paceAt, p.held = p.due, true
	return true
}

// pace makes the packet after one of so many octets wait, if they are to be spread.
func (s *Sender) pace(now rawio.Time, p *Path, octets int) {
	if !s.spreads(p) {
		return
	}
	rate, quantum := p.rate(), paceQuantum
	if rate <= 0 {
		p.due = now
		return
	}
	if p.pacer == nil {
		rate = max(rate, p.spacing.rate())
		p.spacing.left -= octets
	}
	if p.pacer == nil || p.rates != nil && p.flight <= paceBurst*p.pmdcs {
		quantum = max(quantum, lasts(paceBurst*p.pmdcs, rate))
	}
	gap := lasts(octets, rate)
	p.catchUp(now.Sub(p.due)-quantum, rate)
	made := min(p.behind, gap/2)
	p.behind -= made
	p.due = max(p.due, now.Add(-quantum)).Add(gap - made)
}

// catchUp takes that a packet waited for its time and leaves so much later, as timers are late where others have the processors. Of a controller with a pace that
// alone fills the path, so what is lost is made up at twice the pace, until as much is in flight as it keeps there.
func (p *Path) catchUp(late time.Duration, rate int64) {
	if p.held && p.pacer != nil && late > 0 {
		p.behind += late
	}
	if p.held = false; lasts(p.flight, rate) >= p.est.trip.get() {
		p.behind = 0
	}
}

// rate returns how many octets may leave in a second, by the factors that Linux has for TCP, the second of which RFC 9002 section 7.7
// recommends; 0 for as many as the window allows. There is a round trip time.
func (p *Path) rate() int64 {
	if p.pacer != nil {
		return p.pacer.PacingRate(p.est.srtt)
	}
	rate := int64(p.cc.Window()) * int64(time.Second) / int64(p.est.srtt)
	if p.cc.Window() < p.cc.Ssthresh() {
		return 2 * rate
	}
	return rate + rate/4
}

// lasts returns how long octets take at a rate.
func lasts(octets int, rate int64) time.Duration {
	return time.Duration(int64(octets) * int64(time.Second) / rate)
}
