package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"
)

// spread is the median and the range of what the rounds yielded.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(v []float64) (s spread, ok bool) {
	if len(v) == 0 {
		return s, false
	}
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return spread{Median: (v[(n-1)/2] + v[n/2]) / 2, Min: v[0], Max: v[n-1]}, true
}

// quantity is a number that a run yields.
type quantity func(f *figures) (v float64, ok bool)

func throughputOf(f *figures) (float64, bool)  { return f.GBps, f.GBps > 0 }         // GB/s
func medianLatency(f *figures) (float64, bool) { return f.P50, f.P50 > 0 }           // us
func cpuPerOctet(f *figures) (float64, bool)   { return f.cpuPerGB(), f.Octets > 0 } // s/GB

// Of shapes and growth.
func latencyP99(f *figures) (float64, bool)  { return f.P99, f.P99 > 0 }         // us
func messageRate(f *figures) (float64, bool) { return f.Rate, f.Rate > 0 }       // round trips a second
func tripCPU(f *figures) (float64, bool)     { return f.TripCPU, f.TripCPU > 0 } // us

func growthQuantity(of func(g *growthResult) float64) quantity {
	return func(f *figures) (float64, bool) {
		if f.Growth == nil {
			return 0, false
		}
		v := of(f.Growth)
		return v, v > 0
	}
}

var (
	setups    = growthQuantity(func(g *growthResult) float64 { return g.Setups })
	heapEach  = growthQuantity(func(g *growthResult) float64 { return g.Heap })
	stackEach = growthQuantity(func(g *growthResult) float64 { return g.Stack })
	idleCPU   = growthQuantity(func(g *growthResult) float64 { return g.Idle })
	beats     = growthQuantity(func(g *growthResult) float64 { return g.Beats })
	beatCPU   = growthQuantity(func(g *growthResult) float64 { return g.BeatCPU })
	restart   = growthQuantity(func(g *growthResult) float64 { return g.Restart })
)

// allocsPerMessage are those of the end that makes more of them for a message.
func allocsPerMessage(f *figures) (v float64, ok bool) {
	for _, a := range f.Allocs {
		if a != nil {
			v, ok = max(v, *a), true
		}
	}
	return v, ok
}

// valuesOf are a quantity of a spec, one for each round, NaN where there is none.
func (bd *board) valuesOf(s spec, q quantity) []float64 {
	var list []float64
	for _, f := range bd.Results[s.String()] {
		v := math.NaN()
		if f != nil {
			if got, ok := q(f); ok {
				v = got
			}
		}
		list = append(list, v)
	}
	return list
}

// spreadOf sums the rounds of one spec up.
func (bd *board) spreadOf(s spec, q quantity) (spread, bool) {
	return spreadOf(slices.DeleteFunc(bd.valuesOf(s, q), math.IsNaN))
}

// bestThroughput is the spec with the highest median throughput: the configuration that suits a
// peer best.
func (bd *board) bestThroughput(list []spec) spec {
	best, top := list[0], -1.0
	for _, s := range list {
		if v, ok := bd.spreadOf(s, throughputOf); ok && v.Median > top {
			best, top = s, v.Median
		}
	}
	return best
}

// lastObject finds the last line of a process that is a JSON object.
func lastObject(out []byte) ([]byte, error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if last := lines[len(lines)-1]; len(last) > 0 && last[0] == '{' {
		return last, nil
	}
	return nil, fmt.Errorf("%w: %q", errNoReport, out)
}
