package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// paceQuantum is how much of its rate a paced path may use at once: timers are not finer, and batches are cheap.
const paceQuantum = time.Millisecond

// paces reports whether a packet to p has to wait for its time, and remembers until when.
func (s *Sender) paces(now rawio.Time, p *Path) bool {
	if p.pacer == nil || !now.Before(p.due) {
		return false
	}
	s.paceAt = p.due
	return true
}

// pace makes the packet after one of so many octets wait, if the controller asks for it.
func (p *Path) pace(now rawio.Time, octets int) {
	if p.pacer == nil {
		return
	}
	rate := p.pacer.PacingRate(p.est.srtt)
	if rate <= 0 {
		p.due = now
		return
	}
	p.due = max(p.due, now.Add(-paceQuantum)).Add(time.Duration(int64(octets) * int64(time.Second) / rate))
}
