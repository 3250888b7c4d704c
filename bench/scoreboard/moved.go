package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A host moves the processors of a virtual machine about: now they share a cache, now they do not,
// and then a line takes several times as long from one to the other. What many goroutines share
// takes twice the processor time then, so that two runs say little about each other if that happens
// between them. It is looked at before and after each.

// apart is how many times as long a line takes, at least, if the processors were moved. Where they
// stay it varies by half.
const apart = 2

// lineTimeRange is the shortest and the longest that a line took before and after runs. The
// shortest is 0 where one is unknown.
func lineTimeRange(runs ...*figures) (least, most time.Duration) {
	var all []time.Duration
	for _, f := range runs {
		all = append(all, f.Line[:]...)
	}
	return slices.Min(all), slices.Max(all)
}

// sameProcessors reports whether the processors were in the same place before and after all runs,
// as far as is known.
func sameProcessors(runs ...*figures) bool {
	least, most := lineTimeRange(runs...)
	return least == 0 || most < apart*least
}

// enough rounds of those in which the processors stayed are better than all rounds.
const enough = 3

// compareRounds is what of makes of two specs in each round, without those in which the processors
// were moved.
func (bd *board) compareRounds(num, den spec, q quantity, of func(num, den float64) float64) (list []float64,
	moved int) {
	a, b := bd.valuesOf(num, q), bd.valuesOf(den, q)
	runs := [2][]*figures{bd.Results[num.String()], bd.Results[den.String()]}
	var all []float64
	for i := range min(len(a), len(b)) {
		v := of(a[i], b[i])
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		all = append(all, v)
		if sameProcessors(runs[0][i], runs[1][i]) {
			list = append(list, v)
		}
	}
	if len(list) < enough {
		return all, 0
	}
	return list, len(all) - len(list)
}

func divide(a, b float64) float64   { return a / b }
func subtract(a, b float64) float64 { return a - b }

// lineTimes says between what times a line took from one processor to the other, and how often they
// were moved during a run.
func (bd *board) lineTimes() string {
	var known []*figures
	moved := 0
	for _, list := range bd.Results {
		for _, f := range list {
			if f == nil || slices.Contains(f.Line[:], 0) {
				continue
			}
			known = append(known, f)
			if !sameProcessors(f) {
				moved++
			}
		}
	}
	if len(known) == 0 {
		return ""
	}
	least, most := lineTimeRange(known...)
	return fmt.Sprintf(" A line between two processors and back took %d-%d ns; in %d of %d runs they were moved.",
		least.Nanoseconds(), most.Nanoseconds(), moved, len(known))
}
