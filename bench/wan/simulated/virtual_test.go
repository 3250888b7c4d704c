package simulated

import (
	"reflect"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
)

// What a seed yields is the code's alone, and no answer comes before the road lets it.
func TestVirtualTimeRepeats(t *testing.T) {
	for _, size := range Sizes {
		c := &Cell{RTT: 20 * time.Millisecond, Loss: 0.03, Size: size, Rate: 12_500_000, Hold: 1}
		read, _ := ParseSize(SizeName(size))
		s, err := Virtual(c, nil, 3, 2, 1, time.Second)
		again, _ := Virtual(c, nil, 3, 2, 1, time.Second)
		check.That(t, err == nil && read == size && reflect.DeepEqual(s, again) &&
			(size <= 0 || s.Quantile(0) >= c.RTT) && (size != 0 || s.Mbits(0, time.Second) >= 4),
			"%v, read as %d: %v, %+v and then %+v", c, read, err, s, again)
	}
}

// Packets that change places by a fifth of the round trip are late, not lost.
func TestReorderingCostsNothing(t *testing.T) {
	race.Alone(t)
	for _, share := range []float64{0.01, 0.5} {
		c := &Cell{RTT: 20 * time.Millisecond, Rate: 12_500_000, Hold: 1, Reorder: share,
			ReorderDelay: 4 * time.Millisecond}
		s := must.Get(Virtual(c, nil, 3, 1, 1, 4*time.Second))(t)
		got := s.Mbits(time.Second, 4*time.Second)
		check.That(t, got >= 90, "%v of the packets are late: %.1f of 95 Mbit/s", share, got)
	}
}

// A road holds more than the buffers that an association begins with: they grow, unless there is no
// memory for that, and the line is full in each second after the 12th round trip, as slow start
// does not overrun the queue. What comes is counted, in order or not, as now and then a chunk is
// withheld.
func TestBuffersGrowWithTheRoad(t *testing.T) {
	race.Alone(t)
	for _, tt := range []struct {
		trip       time.Duration
		affords    bool
		full       bool // nine tenths of the line and more
		window     int  // is no larger then
		sendBuffer int
	}{
		{20 * time.Millisecond, true, true, 3 << 19, 2 << 20},
		{100 * time.Millisecond, true, true, 5 << 20, 8 << 20},
		{300 * time.Millisecond, true, true, 15 << 20, 16 << 20},
		{300 * time.Millisecond, false, false, 1 << 20, 2 << 20},
	} {
		f := newFlow(&Cell{RTT: tt.trip, Rate: 12_500_000, Hold: 1}, &assoc.Config{NewController: cc.NewCubic}, 4)
		must.OK(t, f.connectHosts())
		client, server := f.hosts[0].Assocs[0], f.hosts[1].Assocs[0]
		client.OnGrow(func(int) bool { return tt.affords })
		must.Do(f.countBulk(12 * tt.trip))(t)
		for second := range 8 {
			before := client.Stats().DataOctetsIn
			f.runUntil(f.now.Add(time.Second), func() bool { return false })
			got := float64(client.Stats().DataOctetsIn-before) / float64(f.c.Rate)
			check.That(t, got >= 0.9 == tt.full, "%v, second %d: %.2f of the line", tt.trip, second, got)
			window := client.Stats().RecvWindow + client.Stats().Buffered
			check.That(t, window <= tt.window && server.SendBuffer() <= tt.sendBuffer,
				"%v: buffers of %d and %d octets", tt.trip, window, server.SendBuffer())
		}
	}
}

// A road that loses one packet in a hundred is filled, by the draft's constants to eight tenths;
// the queue stays short, and two share it.
func TestBBRFillsARoadThatLoses(t *testing.T) {
	race.Alone(t)
	bbr := &assoc.Config{NewController: cc.NewBBR}
	for loss, least := range map[float64]float64{0: 90, 0.001: 85, 0.01: 70} {
		mbits, wait, err := Share(&Cell{RTT: 20 * time.Millisecond, Rate: 12_500_000, Hold: 1, Loss: loss}, 3,
			3*time.Second, 8*time.Second, bbr)
		check.That(t, err == nil && mbits[0] >= least && wait <= 4*time.Millisecond,
			"%v lost: %.1f of 96 Mbit/s, %v in the queue, %v", loss, mbits, wait, err)
	}
	mbits, _, err := Share(&Cell{RTT: 20 * time.Millisecond, Rate: 12_500_000, Hold: 1}, 7, 5*time.Second,
		25*time.Second, bbr, bbr)
	check.That(t, err == nil && min(mbits[0], mbits[1]) >= 25 && mbits[0]+mbits[1] >= 90,
		"side by side: %.1f Mbit/s, %v", mbits, err)
}

// A road that has become shorter is believed to be so as soon as a HEARTBEAT has said so.
func TestBBRLearnsThatARoadIsShort(t *testing.T) {
	race.Alone(t)
	f := newFlow(&Cell{RTT: time.Second, Rate: 12_500_000},
		&assoc.Config{NewController: cc.NewBBR, DisablePMTUD: true}, 5)
	must.OK(t, f.connectHosts())
	p := simnet.Params{Delay: 10 * time.Millisecond, Rate: 12_500_000, Queue: 250_000, MTU: MTU}
	f.setRoad(0, p, p)
	got := (&Sample{Bins: must.Get(f.countBulk(4 * time.Second))(t)}).Mbits(2*time.Second, 4*time.Second)
	check.That(t, got >= 80, "%.1f Mbit/s", got)
}
