// Package simulated is what the measurement of long roads (make wan) consists of: the grid of
// cells, the statistics, and the verdict. It also has the same grid in virtual time, where the
// roads are those of rawio/simnet and nothing but this project's stack runs.
package simulated

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Cell is a road and what is sent over it.
type Cell struct {
	RTT   time.Duration
	Loss  float64       // share of packets; towards the client, where BothWays is not set
	Size  int           // octets of an answer; 0: in bulk
	Rate  int64         // octets a second, each way
	Hold  float64       // the queue, in round trips at that rate
	Pause time.Duration // between two transfers

	Jitter             time.Duration
	Burst              float64 // mean run of losses
	Reorder, Duplicate float64
	ReorderDelay       time.Duration
	MarkQueue          int // octets in the queue above which packets are marked
	BothWays           bool
}

// The grid.
var (
	RTTs = []time.Duration{2 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond,
		300 * time.Millisecond}
	Losses = []float64{0, 0.001, 0.01, 0.03}
	Sizes  = []int{1400, 14000, 100_000, 1_000_000, 0}
)

// Queue is how many octets may wait: never less than ten packets.
func (c *Cell) Queue() int {
	return max(15000, int(c.Hold*c.RTT.Seconds()*float64(c.Rate)))
}

// Transfers is how many the full form makes.
func (c *Cell) Transfers() int {
	if c.Size > 100_000 {
		return 200
	}
	return 2000
}

// packet is the user data in a packet, more or less.
const packet = 1400

// Ideal is about how long a transfer takes without loss: a round trip for each doubling of ten
// packets, and the time on the wire.
func (c *Cell) Ideal() time.Duration {
	size := max(c.Size, 1)
	trips := 1 + max(0, math.Log2(float64(size)/(10*packet)))
	wire := time.Duration(float64(size) * 1.05 / float64(c.Rate) * 1e9)
	// Slow start ends where the road is full.
	return min(time.Duration(trips*float64(c.RTT)), 2*c.RTT+wire) + min(wire, c.RTT) + c.Pause
}

// busy is how many packets a second all flows of a cell together send, so that two processors carry
// them. Over short round trips a relay may be less late, and has fewer.
const (
	busy  = 6000
	short = 10 * time.Millisecond
)

// Flows is how many run side by side, each over ways of its own: more over roads that lose packets,
// of stacks that send less there.
func (c *Cell) Flows(lossBased bool) int {
	rate, most := float64(c.Rate)/packet, float64(busy) // packets a second
	if lossBased && c.Loss > 0 {                        // Mathis, Semke, Mahdavi and Ott, 1997
		rate = min(rate, 1.22/math.Sqrt(c.Loss)/c.RTT.Seconds())
	}
	if c.RTT < short {
		most /= 4
	}
	if c.Size == 0 {
		return int(min(max(most/(1.5*rate), 1), 5))
	}
	data := math.Ceil(float64(c.Size) / packet)
	takes := max(c.Ideal().Seconds(), data/rate)
	return int(min(max(most*takes/(2+1.5*data), 1), 40))
}

// SizeName writes the size of an answer as the grid's names do.
func SizeName(size int) string {
	switch {
	case size == 0:
		return "bulk"
	case size >= 1_000_000:
		return fmt.Sprintf("%gM", float64(size)/1e6)
	}
	return fmt.Sprintf("%gK", float64(size)/1e3)
}

func (c *Cell) String() string {
	s := fmt.Sprintf("%v/%g%%/%s", c.RTT, 100*c.Loss, SizeName(c.Size))
	return s
}

// ParseSize reads what SizeName writes.
func ParseSize(s string) (int, error) {
	unit := 1.0
	number := s
	switch {
	case s == "bulk":
		return 0, nil
	case strings.HasSuffix(s, "K"):
		number, unit = s[:len(s)-1], 1e3
	case strings.HasSuffix(s, "M"):
		number, unit = s[:len(s)-1], 1e6
	}
	v, err := strconv.ParseFloat(number, 64)
	if n := math.Round(v * unit); err == nil && n >= 1 && n <= MaxSize {
		return int(n), nil
	}
	return 0, fmt.Errorf("%q is no size from 1 to 1M octets, nor bulk", s)
}

// MaxSize is the longest answer.
const MaxSize = 1_000_000
