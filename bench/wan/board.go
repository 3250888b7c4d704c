package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rddp-go/rddp/bench/machine"
	"github.com/rddp-go/rddp/bench/wan/relay"
	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// result is what the runs of a stack over a cell have in common.
type result struct {
	Stack string
	Sum   outcome
	Runs  []float64 // in bulk, Mbit/s of each
	Late  []string  // why runs did not count
	Error string
}

// row is a cell and its results.
type row struct {
	Commit  string
	Cell    simulated.Cell
	Alone   relay.Hist // the road without a stack
	Missing uint64
	Results []*result
}

// resultBoard is all that was measured.
type resultBoard struct {
	Machine machine.Machine
	Rows    []*row
}

// measureCell measures stacks over a cell, round by round.
func (b *resultBoard) measureCell(ctx context.Context, o *options, c *simulated.Cell, stacks []string) error {
	r := &row{Commit: b.Machine.Commit, Cell: *c}
	for _, s := range stacks {
		r.Results = append(r.Results, &result{Stack: s})
	}
	var err error
	if r.Alone, r.Missing, err = measureAlone(ctx, c); err != nil {
		return err
	}
	total := o.transfers
	if total == 0 {
		total = c.Transfers()
	}
	d := o.time
	if c.Size == 0 {
		d = o.bulk
	}
	for round := range o.rounds {
		n := total*(round+1)/o.rounds - total*round/o.rounds
		for _, res := range r.Results {
			if c.Size == 0 && len(res.Runs) >= o.rounds { // several flows, side by side, were as many runs
				continue
			}
			if err := res.addRun(ctx, c, o.seed+uint64(round), n, o.tries, d, r.Alone.Quantile(0.5)); err != nil {
				return err
			}
			fmt.Fprintf(os.Stderr, "%s round %d: %s\n", c, round+1, res)
		}
	}
	b.putRow(r)
	return nil
}

// addRun adds a run that counts, the first of so many tries. alone is what the road takes by
// itself.
func (res *result) addRun(ctx context.Context, c *simulated.Cell, seed uint64, n, tries int, d,
	alone time.Duration) error {
	if res.Error != "" {
		return nil
	}
	for range tries {
		one, err := measureOnce(ctx, res.Stack, c, seed, n, d)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			res.Error = err.Error()
			return nil
		}
		if err := one.checkInTime(c.RTT, alone); err != nil {
			res.Late = append(res.Late, err.Error())
			continue
		}
		res.addOutcome(c, one)
		return nil
	}
	return nil
}

// whyNone says why there are no figures, or nothing.
func (res *result) whyNone() string {
	switch {
	case res.Error != "":
		return res.Error
	case res.Sum.N() > 0 || len(res.Runs) > 0:
		return ""
	case len(res.Late) > 0:
		return "no run counts: " + res.Late[len(res.Late)-1]
	}
	return "it was not run"
}

func (res *result) addOutcome(c *simulated.Cell, one *outcome) {
	s := &res.Sum
	s.Merge(&one.Sample)
	if c.Size == 0 {
		s.Bins = one.Bins
		res.Runs = append(res.Runs, one.Runs...)
	}
	if s.Resent += one.Resent; one.Resent < 0 {
		s.Resent = -1
	}
	s.Octets += one.Octets
	s.Wire += one.Wire
	s.Lost += one.Lost
	s.Full += one.Full
	s.Waited.Merge(&one.Waited)
	s.Late.Merge(&one.Late)
	s.Canary.Merge(&one.Canary)
	s.Took += one.Took
	s.About = one.About
}

func (res *result) String() string {
	s := &res.Sum
	if none := res.whyNone(); none != "" {
		return fmt.Sprintf("%-16s failed: %s", res.Stack, none)
	}
	late := fmt.Sprintf("late %v, canary %v", s.Late.Quantile(0.99), s.Canary.Quantile(0.99))
	if len(res.Runs) > 0 {
		return fmt.Sprintf("%-16s %.1f Mbit/s; queue %v; lost %d+%d, resent %d; %s", res.Stack, medianOf(res.Runs),
			s.Waited.Quantile(0.5), s.Lost, s.Full, s.Resent, late)
	}
	return fmt.Sprintf("%-16s n %d first %.1f p50 %.1f p90 %.1f p99 %.1f max %.1f ms; hit %d, cut %d; lost "+
		"%d+%d, resent %d; queue %v; %s; took %v",
		res.Stack, s.N(), milliseconds(medianOf(s.First)), milliseconds(s.Quantile(0.5)),
		milliseconds(s.Quantile(0.9)), milliseconds(s.Quantile(0.99)),
		milliseconds(s.Quantile(1)), s.Hit, s.Cut,
		s.Lost, s.Full, s.Resent, s.Waited.Quantile(0.99), late, s.Took.Round(time.Millisecond))
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// medianOf is the middle of a list, the lower one of two; 0 of none.
func medianOf[T ~int64 | ~float64](list []T) (m T) {
	if len(list) == 0 {
		return m
	}
	return slices.Sorted(slices.Values(list))[(len(list)-1)/2]
}

// hasFailures says whether there is a stack without figures.
func (b *resultBoard) hasFailures() bool {
	for _, r := range b.Rows {
		for _, res := range r.Results {
			if res.whyNone() != "" {
				return true
			}
		}
	}
	return false
}
