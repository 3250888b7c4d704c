package tx

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestRetransmittedChunkIsNotMeasured(t *testing.T) {
	// req 9260-6.3.1-5, 9260-6.3.1-6, 9260-6.3.1-7
	l := newLab(t, 1)
	p := l.pathAt(0)
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	l.sendFull(8)
	must.That(t, p.timing.active && p.timing.tsn == 1, "the first chunk is not timed")
	l.now = 40 * ms
	l.sack(4)
	must.Equal(t, "SRTT", p.SRTT(), 40*time.Millisecond)
	l.enqueueMany(1, full)
	l.transmit() // 9 is timed
	l.runNextTimeout()
	l.transmit()
	l.sack(5)
	l.transmit()
	l.sackAfter(10, 9)
	check.That(t, p.SRTT() == 40*time.Millisecond && p.sack.minRTT == 0,
		"SRTT %v, shortest trip %v: measured although what arrived was retransmitted", p.SRTT(), p.sack.minRTT)
	l.sendFull(1)
	l.sackAfter(80, 10)
	check.Equal(t, "SRTT", p.SRTT(), 45*time.Millisecond) // req 9260-6.3.1-4
	l.sendFull(4)
	l.sack(11) // was timed, so that 15 will be, and 12 is lost
	l.sendFull(3)
	l.sack(11, gap{13, 13})
	l.sack(11, gap{13, 14})
	l.sack(11, gap{13, 14}, gap{16, 16})
	l.expectTSNs("fast retransmission below the timed 15", "12")
	l.sackAfter(800, 17)
	check.That(t, p.SRTT() <= 45*time.Millisecond, "SRTT %v: measured by a chunk that waited for one below it",
		p.SRTT())
}

// What is sent again above the chunk that is timed does not disturb the measurement.
func TestMeasurementGoesOnBelowWhatIsSentAgain(t *testing.T) {
	// req 9260-6.3.1-5
	l := newLab(t, 1)
	l.sendFull(3)
	l.s.OnSendRefused(l.pathAt(0), 2)
	l.expectTSNs("again", "2")
	l.sackAfter(30, 1)
	check.Equal(t, "SRTT", l.pathAt(0).SRTT(), 30*time.Millisecond)
}

// A chunk that is not timed says nothing of the round trip, though it is acknowledged while another
// one is timed.
func TestRoundTripIsThatOfTheTimedChunk(t *testing.T) {
	// req 9260-6.3.1-5
	l := newLab(t, 1)
	p := l.pathAt(0)
	p.cc = newFixedWindow(1 << 20)
	for _, step := range []struct {
		at   rawio.Time
		acks wire.TSN // 0: a chunk is sent
		srtt time.Duration
	}{
		{0, 0, 0},                                 // 1 is timed
		{10 * ms, 0, 0},                           // 2 is not
		{40 * ms, 1, 40 * time.Millisecond},       //
		{50 * ms, 0, 40 * time.Millisecond},       // 3 is timed
		{60 * ms, 2, 40 * time.Millisecond},       // which was sent 50 ms ago, and 3 only 10
		{50*ms + 80*ms, 3, 45 * time.Millisecond}, // 7/8 of 40 ms, 1/8 of 80
	} {
		l.now = step.at
		if step.acks > 0 {
			l.sack(step.acks)
		} else {
			l.sendFull(1)
		}
		check.That(t, p.SRTT() == step.srtt, "SRTT %v after %v, want %v", p.SRTT(), step.at.Sub(0), step.srtt)
	}
}

func TestRTOFollowsMeasurementsAndItsBounds(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		name              string
		rtt               []time.Duration
		srtt, rttvar, rto time.Duration
	}{
		// req 9260-6.3.1-1
		{"before a measurement: RTO.Initial", nil, 0, 0, 3 * s},
		// req 9260-6.3.1-2
		{"first", []time.Duration{2 * s}, 2 * s, s, 6 * s},
		// req 9260-6.3.1-3
		{"second, RTTVAR by the old SRTT", []time.Duration{2 * s, 4 * s}, 2250 * time.Millisecond, 1250 * time.Millisecond, 7250 * time.Millisecond},
		// req 9260-6.3.1-8
		{"RTO.Min", []time.Duration{10 * time.Millisecond}, 10 * time.Millisecond, 5 * time.Millisecond, s},
		// req 9260-6.3.1-9
		{"RTO.Max", []time.Duration{100 * s}, 100 * s, 50 * s, 60 * s},
		// req 9260-6.3.1-10
		{"RTTVAR not 0", []time.Duration{1}, 1, 1, s},
	} {
		e := newRTTEstimator(RTOConfig{Initial: 3 * s, Min: s, Max: 60 * s})
		for _, r := range tt.rtt {
			e.addSample(r)
		}
		check.That(t, e.srtt == tt.srtt && e.rttvar == tt.rttvar && e.rto == tt.rto,
			"%s: SRTT %v RTTVAR %v RTO %v, want %v %v %v", tt.name, e.srtt, e.rttvar, e.rto, tt.srtt, tt.rttvar, tt.rto)
	}
	e := newRTTEstimator(RTOConfig{Initial: s, Min: s, Max: 10 * s})
	for range 10 {
		e.doubleRTO()
	}
	check.Equal(t, "RTO after backing off", e.rto, 10*s)
}
