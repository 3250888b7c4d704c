package relay

import (
	"math/bits"
	"time"
)

// Hist counts times in steps of a thirty-second of their power of two.
type Hist struct {
	N     uint64
	Max   time.Duration
	Count [64 * histSteps]uint64
}

const histSteps = 32

// Add counts a time; negative ones are 0.
func (h *Hist) Add(d time.Duration) {
	d = max(d, 0)
	h.N++
	h.Max = max(h.Max, d)
	h.Count[stepOf(uint64(d))]++
}

func stepOf(v uint64) int {
	if v < histSteps {
		return int(v)
	}
	e := bits.Len64(v) - 6 // v>>e has 6 bits
	return (e+1)*histSteps + int(v>>e) - histSteps
}

// stepMinimum is the smallest value of a step.
func stepMinimum(i int) time.Duration {
	if i < histSteps {
		return time.Duration(i)
	}
	e := i/histSteps - 1
	return time.Duration(uint64(i%histSteps+histSteps) << e)
}

// Quantile returns the time that a share q of the counted ones does not exceed, to a thirty-second.
func (h *Hist) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.N))
	for i, c := range h.Count {
		if c > rank {
			return stepMinimum(i)
		}
		rank -= c
	}
	return h.Max
}

// Merge adds what another has counted.
func (h *Hist) Merge(o *Hist) {
	h.N += o.N
	h.Max = max(h.Max, o.Max)
	for i, c := range o.Count {
		h.Count[i] += c
	}
}
