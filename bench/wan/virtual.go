package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/rddp-go/rddp/bench/wan/simulated"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// virtualResult is what came of a cell in virtual time. The same code, flags and seed give the same
// figures.
type virtualResult struct {
	Cell, Controller          string
	Flows                     int
	First, P50, P90, P99, Max float64 `json:",omitempty"` // ms
	Mbits                     float64 `json:",omitempty"` // of a flow
	Hit                       int     // transfers during which a packet was lost
}

// What a run in virtual time makes.
const (
	virtualFlows   = 10_000
	virtualShort   = 100
	virtualBulks   = 10 // flows in bulk, for a thousand of others
	shortBulkFlows = 2
	afterFirst     = 4 // transfers of a flow, the first aside
	afterFirstLong = 1
)

// shortGrid is the part of the grid that the short form goes over.
func shortGrid(c *simulated.Cell) bool {
	return (c.RTT == 20*time.Millisecond || c.RTT == 100*time.Millisecond && c.Loss == 0) && c.Size != 1_000_000
}

// runVirtual goes over the grid in virtual time, with each controller that a chosen stack of ours
// has.
func (o *options) runVirtual(ctx context.Context, cells []simulated.Cell, out io.Writer) (failed bool, err error) {
	var old []virtualResult
	if o.against != "" {
		b, err := os.ReadFile(o.against)
		if err != nil {
			return false, err
		}
		if err := json.Unmarshal(b, &old); err != nil {
			return false, fmt.Errorf("%s: %w", o.against, err)
		}
	}
	var list []virtualResult
	fmt.Fprintln(out,
		"| RTT/loss/size | controller | flows | first p50 | p50 | p90 | p99 | max | met a loss |\n|---|---|---|---|---|---|---|---|---|")
	for i := range cells {
		c := &cells[i]
		if o.short && !shortGrid(c) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(simulated.Controllers)) {
			if !slices.ContainsFunc(o.stacks, func(s string) bool { return isOurs(s) && s[len("udp-"):] == name }) {
				continue
			}
			if ctx.Err() != nil {
				return true, ctx.Err()
			}
			v, err := o.virtualCell(c, name)
			if err != nil {
				fmt.Fprintf(out, "%s, %s: %v\n", c, name, err)
				failed = true
				continue
			}
			fmt.Fprintln(out, v)
			for _, text := range v.compareWith(old) {
				fmt.Fprintf(out, "%s, %s: %s\n", c, name, text)
				failed = true
			}
			list = append(list, *v)
		}
	}
	if bad, err := o.measureFailover(ctx, out); bad || err != nil {
		return true, err
	}
	if o.json == "" {
		return failed, nil
	}
	b, err := json.MarshalIndent(list, "", "\t")
	if err != nil {
		return failed, err
	}
	return failed, os.WriteFile(o.json, append(b, '\n'), 0o644)
}

// measureFailover cuts one of two roads, again and again, and has delays rise for a while. bad says
// that more was noticed of it than may be.
func (o *options) measureFailover(ctx context.Context, out io.Writer) (bad bool, err error) {
	cuts, lasts := 200, time.Hour
	if o.short {
		cuts, lasts = 20, 5*time.Minute
	}
	half := func(list []time.Duration) time.Duration { return list[len(list)/2] }
	most := func(list []time.Duration) time.Duration { return list[len(list)*99/100] }
	bulk, trickle := simulated.Twins()
	fmt.Fprintln(out,
		"\n| two roads of 20 ms | cuts | silence p50 | p99 | own interface down | its MTU falls from 9000 to 1500, p50 | p99 | spikes | data moved | at most, for one | sent again | paths inactive |\n|---|---|---|---|---|---|---|---|---|---|---|---|")
	for _, t := range []*simulated.TwoPaths{&bulk, &trickle} {
		if ctx.Err() != nil {
			return true, ctx.Err()
		}
		list, err := t.Cuts(o.seed, cuts, false)
		if err != nil {
			return true, fmt.Errorf("cuts, %v: %w", t, err)
		}
		own, err := t.Cuts(o.seed, cuts, true)
		if err != nil {
			return true, fmt.Errorf("own interface down, %v: %w", t, err)
		}
		falls, err := t.Jumbo().Falls(o.seed, cuts)
		if err != nil {
			return true, fmt.Errorf("falls of the MTU, %v: %w", t, err)
		}
		s, err := t.Shaky().Spikes(o.seed, lasts)
		if err != nil {
			return true, fmt.Errorf("spikes, %v: %w", t, err)
		}
		fmt.Fprintf(out, "| %v | %d | %s | %s | %s | %s | %s | %d | %d | %d | %.1f %% | %d |\n", t, cuts,
			threeDigits(milliseconds(half(list))), threeDigits(milliseconds(most(list))),
			threeDigits(milliseconds(most(own))),
			threeDigits(milliseconds(half(falls))), threeDigits(milliseconds(most(falls))), s.Spikes, s.Moves, s.Most,
			100*s.Again, s.PathsDown)
		bad = bad || half(list) > 150*time.Millisecond || most(list) > 250*time.Millisecond ||
			most(own) > 50*time.Millisecond || most(falls) > 3*t.RTT || s.Most > 1 || s.Again > 0.02 ||
			s.PathsDown > 0 || s.Ended
	}
	return bad, nil
}

func (o *options) virtualCell(c *simulated.Cell, controller string) (*virtualResult, error) {
	flows, transfers, bulk := virtualFlows, afterFirst, o.bulk
	if o.short {
		flows, bulk = virtualShort, 10*time.Second
	}
	if o.transfers > 0 {
		flows = o.transfers
	}
	if c.Size > 100_000 {
		transfers = afterFirstLong
	}
	if c.Size == 0 {
		if flows = virtualBulks; o.short {
			flows = shortBulkFlows
		}
	}
	s, err := simulated.Virtual(c, &assoc.Config{NewController: simulated.Controllers[controller]}, o.seed, flows,
		transfers, bulk)
	if err != nil {
		return nil, err
	}
	v := &virtualResult{Cell: c.String(), Controller: controller, Flows: flows, Hit: s.Hit}
	if c.Size == 0 {
		v.Mbits = s.Mbits(0, bulk) / float64(flows)
		return v, nil
	}
	v.First = milliseconds(medianOf(s.First))
	v.P50, v.P90, v.P99, v.Max = milliseconds(s.Quantile(0.5)), milliseconds(s.Quantile(0.9)),
		milliseconds(s.Quantile(0.99)), milliseconds(s.Quantile(1))
	return v, nil
}

func (v *virtualResult) String() string {
	if v.Mbits > 0 {
		return fmt.Sprintf("| %s | %s | %d | | %s Mbit/s | | | | |", v.Cell, v.Controller, v.Flows,
			threeDigits(v.Mbits))
	}
	return fmt.Sprintf("| %s | %s | %d | %s | %s | %s | %s | %s | %d |", v.Cell, v.Controller, v.Flows,
		threeDigits(v.First), threeDigits(v.P50), threeDigits(v.P90),
		threeDigits(v.P99), threeDigits(v.Max), v.Hit)
}

// compareWith compares with what a run of as many flows had before. Losses fall elsewhere when code
// changes, so that the tails need room, the more the fewer transfers they are of.
func (v *virtualResult) compareWith(old []virtualResult) (list []string) {
	i := slices.IndexFunc(old, func(o virtualResult) bool {
		return o.Cell == v.Cell && o.Controller == v.Controller && o.Flows == v.Flows
	})
	if i < 0 {
		return nil
	}
	o := &old[i]
	tail := 1.1
	if v.Flows < virtualFlows {
		tail = 1.5
	}
	for _, x := range []struct {
		what        string
		now, then   float64
		most, slack float64
	}{
		{"first", v.First, o.First, 1.1, 0.3}, {"p50", v.P50, o.P50, 1.1, 0.3}, {"p90", v.P90, o.P90, max(1.2, tail-0.2), 0.3}, {"p99", v.P99, o.P99, tail, 0.3},
		{"time for a bit", 1 / max(v.Mbits, 1e-9), 1 / max(o.Mbits, 1e-9), 1.15, 0},
	} {
		if x.now > x.then*x.most+x.slack {
			list = append(list, fmt.Sprintf("%s is %.2f times what it was", x.what, x.now/x.then))
		}
	}
	return list
}
