package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// spacing is what tells how fast a path takes packets: the first of a window, which leave together after a silence, come apart at the narrowest link, and
// their SACKs keep that distance (Keshav's packet pairs). The window, which the path took before, may then leave as fast as that: it fills no queue.
type spacing struct {
	acked int        // octets acknowledged since the silence
	since rawio.Time // the first SACK of these,
	from  int        // which acknowledged so many
	on    bool       // a measurement is under way
	rates [2]int64   // the last two, octets a second: SACKs may have been held up, and come together, once
	left  int        // octets of the window that may leave so
}

// spacingOf is how many packets are measured: fewer than leave together.
const spacingOf = paceBurst - 2

// depart begins a train: DATA ends a silence that is shorter than an RTO.
func (r *spacing) depart(window int) {
	r.left, r.acked, r.since, r.on = window, 0, rawio.Never, true
}

// arrived takes so many octets that a SACK acknowledges.
func (r *spacing) arrived(now rawio.Time, octets, pmdcs int) {
	if !r.on || octets == 0 {
		return
	}
	r.acked += octets
	switch {
	case r.since == rawio.Never:
		r.since, r.from = now, r.acked
	case r.acked >= spacingOf*pmdcs:
		r.on = false
		if took := now.Sub(r.since); took > 0 {
			r.rates = [2]int64{int64(r.acked-r.from) * int64(time.Second) / int64(took), r.rates[0]}
		}
	}
}

// rate is how fast what is left may leave, 0 if nothing is known.
func (r *spacing) rate() int64 {
	if r.left <= 0 {
		return 0
	}
	return min(r.rates[0], r.rates[1])
}
