package cc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// bbr is BBR version 3 (draft-ietf-ccwg-bbr). Its model of the path is the most that it delivers
// (max_bw) and the shortest round trip (min_rtt). It paces by the first, and has no more in flight
// than about twice what both make up. Single losses do not slow it down, losses above LossThresh
// do. Methods have the draft's names, and so have fields together with their group. Volumes are
// octets of DATA chunks, rates octets of them a second.
type bbr struct {
	pmdcs int        // C.SMSS
	now   rawio.Time // of the event in processing
	state bbrState

	// What comes out of it.
	cwnd       int
	pacingRate int64 // C.pacing_rate, 0 until there is a sample

	progress bbrProgress // what samples say
	round    bbrRound    // the round trip that is under way

	// The model of the path.
	rate        bbrRate
	volume      bbrVolume
	aggregation bbrAggregation // acknowledgements that come together
	rtt         bbrMinRTT
	signals     bbrSignals // of congestion, in the round trip that is under way

	// What the states remember.
	full     bbrFullPipe // Startup, and ProbeBW_UP
	cycle    bbrCycle    // ProbeBW
	probeRTT bbrProbeRTTState
	recovery bbrRecovery // losses, and what to restore if there were none
}

// bbrProgress is what samples say.
type bbrProgress struct {
	hasSample        bool   // there was a sample
	delivered        uint64 // C.delivered
	initialDelivered uint64 // before the first sample
	inflight         int    // C.inflight
}

// bbrRound counts packet-timed round trips.
type bbrRound struct {
	count         uint64 // BBR.round_count
	started       bool   // BBR.round_start: the sample at hand begins one
	nextDelivered uint64 // BBR.next_round_delivered: it ends when this is acknowledged
	drainStart    uint64 // the round trip in which Drain has begun
	cwndLimited   bool   // C.is_cwnd_limited: cwnd was used up in the last round trip
	cwndUsed      bool   // or in this one
}

// bbrRate is the model's data rate.
type bbrRate struct {
	maxBw       int64
	maxBwFilter [bbrMaxBwFilterLen]int64 // of each cycle, the present one last
	bwShortterm int64
	bw          int64 // the lesser of both
}

// bbrVolume is the model's data volume.
type bbrVolume struct {
	maxInflight       int64
	inflightLongterm  int64
	inflightShortterm int64
}

// bbrAggregation is the model's estimate of what is acknowledged at once: BBR.extra_acked.
type bbrAggregation struct {
	extraAcked int64
	filter     maxFilter
	startedAt  rawio.Time // BBR.extra_acked_interval_start
	delivered  int64      // BBR.extra_acked_delivered: since then
}

// bbrMinRTT is the model's round trip without a queue.
type bbrMinRTT struct {
	min           time.Duration // BBR.min_rtt; 0: none yet, the draft's Infinity
	minStamp      rawio.Time    // when it was measured
	probeMin      time.Duration // BBR.probe_rtt_min_delay, which ProbeRTT refreshes; 0: none yet
	probeMinStamp rawio.Time
	probeExpired  bool // it is so old that ProbeRTT is due
}

// bbrSignals are signals of congestion in a round trip.
type bbrSignals struct {
	lossRoundDelivered uint64 // the round trip ends when this is acknowledged
	lossRoundStart     bool   // the sample at hand begins one
	lossInRound        bool   // something was lost
	lossEvents         int    // ranges lost
	bwLatest           int64
	inflightLatest     int64
}

// reset is ResetCongestionSignals.
func (s *bbrSignals) reset() { s.lossInRound, s.bwLatest, s.inflightLatest = false, 0, 0 }

// bbrFullPipe tells whether the pipe is full: BBR.full_bw.
type bbrFullPipe struct {
	bw      int64
	count   int  // round trips in which it has not grown
	now     bool // BBR.full_bw_now
	reached bool // BBR.full_bw_reached: it was full once
}

// reset is ResetFullBW: that the pipe was full once is not forgotten.
func (f *bbrFullPipe) reset() { f.bw, f.count, f.now = 0, 0, false }

// bbrCycle is what ProbeBW remembers of its cycle.
type bbrCycle struct {
	beganAt           rawio.Time    // BBR.cycle_stamp
	wait              time.Duration // BBR.bw_probe_wait: until the next probe for more
	roundsSinceUp     int64         // BBR.rounds_since_bw_probe
	stopping          bool          // BBR.ack_phase is ACKS_PROBE_STOPPING: its other values say nothing
	hasSample         bool          // BBR.bw_probe_samples: what is acknowledged was sent by a probe
	upAcked           int64         // BBR.probe_up_acks
	upAckedPerInc     int64         // BBR.probe_up_cnt: what raises inflight_longterm by a packet
	upRounds          int           // BBR.bw_probe_up_rounds
	prevTooHigh       bool          // the last probe has met too many losses,
	prevPrecautionary bool          // or has ended early, for the one before had
}

// bbrProbeRTTState is what ProbeRTT remembers.
type bbrProbeRTTState struct {
	doneAt      rawio.Time // BBR.probe_rtt_done_stamp; 0: not due
	roundDone   bool
	idleRestart bool // sending has begun anew: the queue was empty anyway
}

// bbrRecovery is what an episode of losses remembers, to be undone if nothing was lost.
type bbrRecovery struct {
	active    bool // losses are being repaired
	priorCwnd int
	isSaved   bool // what there was before is in undo,
	undoable  bool // from which it may be restored
	undo      bbrUndo
}

// bbrUndo is the state before an episode of losses.
type bbrUndo struct {
	state             bbrState // that was left because of it: Startup or ProbeBW_UP, else none
	bwShortterm       int64
	inflightShortterm int64
	inflightLongterm  int64
}
