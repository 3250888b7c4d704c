package tx

import (
	"time"

	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// RTOConfig are the protocol parameters of the retransmission timeout (RFC 9260 section 16).
type RTOConfig struct {
	Initial, Min, Max time.Duration
}

// granularity is the clock granularity G of section 6.3.1: that of rawio.Time.
const granularity = time.Nanosecond

// rttEstimator is section 6.3.1 for one destination address, with RTO.Alpha 1/8 and RTO.Beta 1/4.
type rttEstimator struct {
	cfg          RTOConfig
	rto          time.Duration
	backedOff    bool          // it was backed off since the last measurement
	lowestMicros uint32        // of all measurements, in microseconds, rounded down; 0 before the first
	srtt, rttvar time.Duration // 0 until the first measurement
	minRTT       minRTTFilter
	rttSamples   *counters.CompactHistogram // of all measurements; may be nil
}

func newRTTEstimator(cfg RTOConfig) rttEstimator { return rttEstimator{cfg: cfg, rto: cfg.Initial} } // C1

// timedChunk is the chunk that measures the round trip (6.3.1, rule C4).
type timedChunk struct {
	active    bool
	tsn       wire.TSN
	startedAt rawio.Time
}

// observeRTT measures the round trip if the chunk that is timed is acknowledged.
func (p *Path) observeRTT(now rawio.Time, c ackedChunks) {
	if p.timing.active && c.covers(p.timing.tsn) {
		p.timing.active = false
		p.sack.rtt = max(now.Sub(p.timing.startedAt), 1)
	}
}

// setConfig changes the bounds, and with them what is known.
func (e *rttEstimator) setConfig(cfg RTOConfig) {
	if e.cfg = cfg; e.srtt == 0 {
		e.rto = cfg.Initial
	} else {
		e.rto = min(max(e.rto, cfg.Min), max(cfg.Max, cfg.Min))
	}
}

// addSample takes a round trip time measurement.
func (e *rttEstimator) addSample(r time.Duration) {
	r = max(r, 1)
	e.minRTT.addSample(r)
	if us := uint32(min(r.Microseconds(), 1<<31)); e.srtt == 0 || us < e.lowestMicros {
		e.lowestMicros = us
	}
	if e.rttSamples != nil {
		e.rttSamples.Observe(r)
	}
	if e.srtt == 0 { // C2
		e.srtt, e.rttvar = r, r/2
	} else { // C3, RTTVAR with the old SRTT
		e.rttvar = (3*e.rttvar + (e.srtt - r).Abs()) / 4
		e.srtt = max((7*e.srtt+r)/8, 1)
	}
	e.rttvar = max(e.rttvar, granularity) // G1
	e.backedOff = false
	e.rto = e.base()
}

// base is the RTO before any backing off.
func (e *rttEstimator) base() time.Duration {
	if e.srtt == 0 {
		return e.cfg.Initial
	}
	return min(max(e.srtt+4*e.rttvar, e.cfg.Min), max(e.cfg.Max, e.cfg.Min)) // C6, C7
}

// doubleRTO doubles the RTO when a timer has expired (section 6.3.3, rule E2).
func (e *rttEstimator) doubleRTO() {
	e.rto, e.backedOff = min(2*e.rto, max(e.cfg.Max, e.rto)), true
}

// minRTTFilter is the shortest of the last round trips: at least minRTTWindow of them, and less
// than twice as many. That is the round trip of a path whose queues are empty, as they are now and
// then.
type minRTTFilter struct {
	current, previous time.Duration // the shortest of n trips, and of minRTTWindow before them; 0: there were none
	samples           int
}

const minRTTWindow = 512

func (s *minRTTFilter) addSample(r time.Duration) {
	if s.samples == minRTTWindow {
		*s = minRTTFilter{previous: s.current}
	}
	if s.samples++; s.samples == 1 || r < s.current {
		s.current = r
	}
}

// get returns 0 before the first measurement.
func (s *minRTTFilter) get() time.Duration {
	if s.previous != 0 && s.previous < s.current {
		return s.previous
	}
	return s.current
}
