// Package relay is the road of the bench: it carries IP packets between two TUN devices, each of a
// network namespace of its own, and does to them what long roads do. A [Way] is the arithmetic,
// which takes the time as an argument; a [Relay] carries real packets by it.
package relay

import (
	"math"
	"time"
)

// Params say what one direction of a road does to packets. The zero value is a perfect wire.
// Lengths count IP packets, headers included; probabilities are per packet.
type Params struct {
	Delay, Jitter time.Duration // Jitter adds up to as much, and never reorders
	Rate          int64         // octets a second; 0 is infinite
	Queue         int           // octets that may wait, the packet on the wire included; 0 is without end
	Loss          float64
	// mean length of a run of losses, in packets, Loss being their share still; up to 1: each by
	// itself
	Burst        float64
	Reorder      float64 // share of packets that take ReorderDelay longer and are overtaken
	ReorderDelay time.Duration
	Duplicate    float64
	MarkQueue    int // packets that find more octets waiting get a congestion mark, if they are capable; 0: none
}

// Fate is what becomes of a packet.
type Fate struct {
	Copies int           // that arrive: 0, 1 or 2
	At     [2]int64      // when, in ns
	Waited time.Duration // in the queue
	Full   bool          // dropped by the queue
	Lost   bool          // lost on the road
	Mark   bool          // it arrives with CE
}

// Way is one direction of a road. The packets that its queue has let pass are numbered, and what
// happens to packet n follows from the seed and n alone: it is the same for every stack that sends.
type Way struct {
	Params
	seed uint64
	n    uint64 // of the next packet
	bad  bool   // within a run of losses
	free int64  // when the wire is free, ns
	last int64  // when the last packet in order arrives, ns
}

// NewWay returns a way whose first packet is to come.
func NewWay(p Params, seed uint64) *Way {
	return &Way{Params: p, seed: seed, free: math.MinInt64, last: math.MinInt64}
}

// What is drawn for a packet.
const (
	drawLoss = iota
	drawRun
	drawJitter
	drawReorder
	drawDuplicate
	drawSecond
	draws
)

// drawUniform is a number from 0 to 1 that follows from the seed, the packet's number and what it
// is for (splitmix64).
func (w *Way) drawUniform(what uint64) float64 {
	z := w.seed + (w.n*draws+what+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}

// Pass takes a packet of size octets at now, in ns. capable says that its transport knows
// congestion marks.
func (w *Way) Pass(now int64, size int, capable bool) (f Fate) {
	start := max(now, w.free)
	f.Waited = time.Duration(start - now)
	if w.Rate > 0 {
		waiting := int(int64(f.Waited) * w.Rate / int64(time.Second))
		if w.Queue > 0 && waiting > 0 && waiting+size > w.Queue {
			f.Full = true
			return f
		}
		f.Mark = capable && w.MarkQueue > 0 && waiting > w.MarkQueue
		w.free = start + (int64(size)*int64(time.Second)+w.Rate-1)/w.Rate
		start = w.free
	}
	defer func() { w.n++ }()
	if f.Lost = w.isLost(); f.Lost {
		return f
	}
	at := start + int64(w.Delay)
	jitter := func(what uint64) int64 { return int64(w.drawUniform(what) * float64(w.Jitter)) }
	f.At[0] = at + jitter(drawJitter)
	if w.drawUniform(drawReorder) < w.Reorder {
		f.At[0] += int64(w.ReorderDelay)
	} else {
		f.At[0] = max(f.At[0], w.last)
		w.last = f.At[0]
	}
	f.Copies = 1
	if w.drawUniform(drawDuplicate) < w.Duplicate {
		f.At[1], f.Copies = f.At[0]+jitter(drawSecond), 2
	}
	return f
}

// isLost says whether the packet is. Runs of losses follow Gilbert's model: their mean length is
// Burst, and the good state is left so often that Loss is their share.
func (w *Way) isLost() bool {
	if w.Burst <= 1 || w.Loss >= 1 {
		return w.drawUniform(drawLoss) < w.Loss
	}
	leave := 1 / w.Burst
	if w.bad {
		w.bad = w.drawUniform(drawRun) >= leave
	} else {
		w.bad = w.drawUniform(drawRun) < leave*w.Loss/(1-w.Loss)
	}
	return w.bad
}
