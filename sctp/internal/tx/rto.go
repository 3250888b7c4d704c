package tx

import (
	"time"

	"github.com/rddp-go/rddp/internal/count"
)

// RTOConfig are the protocol parameters of the retransmission timeout (RFC 9260 section 16).
type RTOConfig struct {
	Initial, Min, Max time.Duration
}

// granularity is the clock granularity G of section 6.3.1: that of rawio.Time.
const granularity = time.Nanosecond

// estimator is section 6.3.1 for one destination address, with RTO.Alpha 1/8 and RTO.Beta 1/4.
type estimator struct {
	cfg          RTOConfig
	rto          time.Duration
	backed       bool          // it was backed off since the last measurement
	least        uint32        // of all measurements, in microseconds, rounded down; 0 before the first
	srtt, rttvar time.Duration // 0 until the first measurement
	trip         shortest
	trips        *count.Small // of all measurements; may be nil
}

func newEstimator(cfg RTOConfig) estimator { return estimator{cfg: cfg, rto: cfg.Initial} } // C1

// configure changes the bounds, and with them what is known.
func (e *estimator) configure(cfg RTOConfig) {
	if e.cfg = cfg; e.srtt == 0 {
		e.rto = cfg.Initial
	} else {
		e.rto = min(max(e.rto, cfg.Min), max(cfg.Max, cfg.Min))
	}
}

// observe takes a round trip time measurement.
func (e *estimator) observe(r time.Duration) {
	r = max(r, 1)
	e.trip.observe(r)
	if us := uint32(min(r.Microseconds(), 1<<31)); e.srtt == 0 || us < e.least {
		e.least = us
	}
	if e.trips != nil {
		e.trips.Observe(r)
	}
	if e.srtt == 0 { // C2
		e.srtt, e.rttvar = r, r/2
	} else { // C3, RTTVAR with the old SRTT
		e.rttvar = (3*e.rttvar + (e.srtt - r).Abs()) / 4
		e.srtt = max((7*e.srtt+r)/8, 1)
	}
	e.rttvar = max(e.rttvar, granularity) // G1
	e.backed = false
	e.rto = e.base()
}

// base is the RTO before any backing off.
func (e *estimator) base() time.Duration {
	if e.srtt == 0 {
		return e.cfg.Initial
	}
	return min(max(e.srtt+4*e.rttvar, e.cfg.Min), max(e.cfg.Max, e.cfg.Min)) // C6, C7
}

// backoff doubles the RTO when a timer has expired (section 6.3.3, rule E2).
func (e *estimator) backoff() {
	e.rto, e.backed = min(2*e.rto, max(e.cfg.Max, e.rto)), true
}

// shortest is the shortest of the last round trips, at least tripMemory and less than twice as many: that of a
// path whose queues are empty, as they are now and then.
type shortest struct {
	of, before time.Duration // the shortest of n trips, and of tripMemory before them; 0: there were none
	n          int
}

const tripMemory = 512

func (s *shortest) observe(r time.Duration) {
	if s.n == tripMemory {
		*s = shortest{before: s.of}
	}
	if s.n++; s.n == 1 || r < s.of {
		s.of = r
	}
}

// get returns 0 before the first measurement.
func (s *shortest) get() time.Duration {
	if s.before != 0 && s.before < s.of {
		return s.before
	}
	return s.of
}
