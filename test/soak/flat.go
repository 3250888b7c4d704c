//go:build linux

package main

import (
	"fmt"
	"slices"
	"time"
)

const (
	warmUp  = time.Minute // memory may grow for so long
	flatBy  = 5           // percent
	medians = 5           // samples that a median is taken of, at least
)

// sampleAt is one measurement of a process at rest.
type sampleAt struct {
	at time.Duration // since the beginning
	answer
}

// series is what was measured of one process over time.
type series struct {
	name   string
	mortal bool // not one process, but several, each of which is as old as its kill allows
	s      []sampleAt
}

// judgeSamples compares the samples. Goroutines and descriptors must all be the same. The memory of
// a process that lives as long as the run must not grow, by each of three measures. The median of
// the last quarter of the samples after the first minute is no more than 5 % above that of the
// first quarter. The receive buffers that are idle differ from sample to sample. judge returns a
// line, and how many of these rules do not hold.
func (r *series) judgeSamples() (line string, broken int) {
	if len(r.s) == 0 {
		return r.name + ": never at rest", 1
	}
	first := r.s[0]
	for _, s := range r.s[1:] {
		if s.Goroutines != first.Goroutines || s.FDs != first.FDs {
			broken++
			line = fmt.Sprintf("%s: goroutines %d, descriptors %d at %v; %d and %d at %v", r.name,
				first.Goroutines, first.FDs, first.at.Round(time.Second), s.Goroutines, s.FDs, s.at.Round(time.Second))
			break
		}
	}
	if broken == 0 {
		line = fmt.Sprintf("%s: %d samples at rest: goroutines %d, descriptors %d in all", r.name, len(r.s),
			first.Goroutines, first.FDs)
	}
	if r.mortal {
		return line, broken
	}
	warm := slices.DeleteFunc(slices.Clone(r.s), func(s sampleAt) bool { return s.at < warmUp })
	if len(warm) < 2*medians {
		return line + "; too short a run to judge memory", broken
	}
	part := max(medians, len(warm)/4)
	for _, m := range []struct {
		name string
		of   func(sampleAt) uint64
	}{
		{"live heap", func(s sampleAt) uint64 { return s.Heap }},
		{"in use", func(s sampleAt) uint64 { return s.Used }},
		{"resident set", func(s sampleAt) uint64 { return s.RSS }},
	} {
		before, after := medianOf(warm[:part], m.of), medianOf(warm[len(warm)-part:], m.of)
		change := 100 * (float64(after)/float64(before) - 1)
		line += fmt.Sprintf("; %s %.2f MB, then %.2f MB (%+.1f%%)", m.name, megabytes(before), megabytes(after), change)
		if change > flatBy { // less is what a burst in the beginning leaves behind
			broken++
			line += " GROWS"
		}
	}
	return line, broken
}

func medianOf(s []sampleAt, of func(sampleAt) uint64) uint64 {
	v := make([]uint64, 0, len(s))
	for _, x := range s {
		v = append(v, of(x))
	}
	slices.Sort(v)
	return v[len(v)/2]
}

func megabytes(n uint64) float64 { return float64(n) / 1e6 }
