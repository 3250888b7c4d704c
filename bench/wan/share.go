package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rddp-go/rddp/bench/wan/relay"
	"github.com/rddp-go/rddp/bench/wan/simulated"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// sharedRun is what stacks made of a road, in bulk, that has one queue for all of them.
type sharedRun struct {
	Mbits  []float64
	Waited relay.Hist
}

// jainIndex is Jain's index of fairness: 1 where all have the same, 1/n where one has everything.
func (s *sharedRun) jainIndex() float64 {
	sum, squares := 0.0, 0.0
	for _, v := range s.Mbits {
		sum += v
		squares += v * v
	}
	return sum * sum / (float64(len(s.Mbits)) * squares)
}

// runShared runs stacks side by side through one queue, a flow each.
func runShared(ctx context.Context, stacks []string, c *simulated.Cell, seed uint64, d time.Duration) (*sharedRun,
	error) {
	r, err := newRelay(c, seed, len(stacks), true)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(ctx, d+patience)
	defer cancel()
	r.Start()
	type got struct {
		bins []int
		err  error
	}
	all := make([]chan got, len(stacks))
	for i, stack := range stacks {
		all[i] = make(chan got, 1)
		go func() {
			cr, _, err := runEnds(ctx, r, &end{Stack: stack, From: 1 + i, Flows: 1, Time: d})
			if err != nil {
				all[i] <- got{nil, fmt.Errorf("%s: %w", stack, err)}
				return
			}
			all[i] <- got{cr.Flows[0].Bins, nil}
		}()
	}
	s := &sharedRun{}
	var errs []error
	for i := range stacks {
		g := <-all[i]
		errs = append(errs, g.err)
		s.Mbits = append(s.Mbits, (&simulated.Sample{Bins: g.bins}).Mbits(0, d))
	}
	if err := errors.Join(append(errs, r.Stop())...); err != nil {
		return nil, err
	}
	for i := range stacks {
		s.Waited.Merge(&r.Counts[relay.Down][1+i].Waited)
	}
	if err := checkRelay(r, c.RTT); err != nil {
		return nil, err
	}
	return s, nil
}

// settle is how long stacks have in virtual time to find their shares, which are not measured.
const settle = 5 * time.Second

// shareVirtually does in virtual time what runShared does, with stacks of ours alone, and begins
// them a second apart.
func (o *options) shareVirtually(ctx context.Context, cells []simulated.Cell, out io.Writer) error {
	t := table{{"RTT, loss", "stacks", "Mbit/s of each", "Jain's index", "queue, mean ms"}}
	for i := range cells {
		c := &cells[i]
		for _, set := range o.share {
			if c.Size != 0 {
				continue
			}
			var cfgs []*assoc.Config
			for _, s := range strings.Split(set, "+") {
				if !isOurs(s) || !slices.Contains(stackNames, s) {
					return fmt.Errorf("no stack of ours: %q", s)
				}
				_, control, _ := strings.Cut(s, "-")
				cfgs = append(cfgs, &assoc.Config{NewController: simulated.Controllers[control]})
			}
			for round := range o.rounds {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				mbits, wait, err := simulated.Share(c, o.seed+uint64(round), settle, settle+o.bulk, cfgs...)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c, set, err)
				}
				s := sharedRun{Mbits: mbits}
				t = append(t, []string{roadName(c), set, strings.Join(mapTexts(mbits, threeDigits), ", "),
					fmt.Sprintf("%.3f", s.jainIndex()), threeDigits(milliseconds(wait))})
			}
		}
	}
	t.write(out)
	return nil
}

// runShared runs each set of stacks, which plus signs join, over the cells in bulk.
func (o *options) runShared(ctx context.Context, cells []simulated.Cell, out io.Writer) (failed bool, err error) {
	t := table{{"RTT, loss", "stacks", "Mbit/s of each", "Jain's index", "queue p50, p99 ms"}}
	for i := range cells {
		c := &cells[i]
		if c.Size != 0 {
			continue
		}
		for _, set := range o.share {
			stacks := strings.Split(set, "+")
			for _, s := range stacks {
				if !slices.Contains(stackNames, s) {
					return false, fmt.Errorf("no stack %q", s)
				}
			}
			for round := range o.rounds {
				s, err := runShared(ctx, stacks, c, o.seed+uint64(round), o.bulk)
				if err != nil {
					failed = true
					t = append(t, []string{roadName(c), set, err.Error(), "", ""})
					continue
				}
				t = append(t, []string{roadName(c), set, strings.Join(mapTexts(s.Mbits, threeDigits), ", "),
					fmt.Sprintf("%.3f", s.jainIndex()),
					threeDigits(milliseconds(s.Waited.Quantile(0.5))) + ", " +
						threeDigits(milliseconds(s.Waited.Quantile(0.99)))})
			}
		}
	}
	t.write(out)
	return failed, nil
}
