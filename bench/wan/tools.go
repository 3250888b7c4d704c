package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rddp-go/rddp/bench/machine"
	"github.com/rddp-go/rddp/bench/wan/relay"
)

// toolsRTT and toolsRate are those of the road that the tools themselves measure; a hundredth of
// them is what they may be wrong.
const (
	toolsRTT  = 50 * time.Millisecond
	toolsRate = 12_500_000 // octets a second
)

// figure is one that a tool prints, beside what the road knows: all of it, or with least what it is
// at least, since DATA may be sent again for nothing.
type figure struct {
	what         string
	printed, own float64
	least        bool
}

// runTools has ddpping and ddpbench, which lie in a directory, measure a road of known delay, rate
// and loss, and compares what they print with it. It fails where a figure is wrong by more than 1
// %, unless the road was late itself or the machine had other work to do.
func (o *options) runTools(ctx context.Context, dir string, out io.Writer) (failed bool, err error) {
	for _, loss := range []float64{0, 0.002} {
		list, late, err := toolsOver(ctx, dir, loss, o.seed)
		if err != nil {
			return true, err
		}
		for _, f := range list {
			off := f.printed/f.own - 1
			verdict := ""
			load, _ := strconv.ParseFloat(machine.Load(), 64)
			switch {
			case math.Abs(off) <= 0.01, f.least && off > 0:
			case late > toolsRTT/100:
				verdict = fmt.Sprintf(", but the road was late: one of a hundred packets by more than %v",
					late.Round(time.Microsecond))
			case load > float64(relay.Processors()):
				verdict = fmt.Sprintf(", but the machine had other work to do, a load of %g", load)
			default:
				verdict, failed = ", WRONG", true
			}
			fmt.Fprintf(out, "%g %% loss: %s: %.6g, by the road %.6g: %+.2f %%%s\n", 100*loss, f.what, f.printed,
				f.own, 100*off, verdict)
		}
	}
	return failed, nil
}

// toolsOver runs both tools over one road.
func toolsOver(ctx context.Context, dir string, loss float64, seed uint64) (list []figure, late time.Duration,
	err error) {
	r, err := relay.New()
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	p := relay.Params{Delay: toolsRTT / 2, Rate: toolsRate}
	r.Set(relay.Down, 1, relay.NewWay(p, 2*seed))
	p.Loss = loss
	r.Set(relay.Up, 1, relay.NewWay(p, 2*seed+1))
	r.Set(relay.Up, relay.Canary, relay.NewWay(relay.Params{Delay: toolsRTT / 2}, 0))
	r.Start()
	defer func() { err = errors.Join(err, r.Stop()) }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	run := func(side int, name string, args ...string) (*exec.Cmd, *bytes.Buffer, error) {
		c, said := exec.CommandContext(ctx, filepath.Join(dir, name), append(args, "--link=udp", "--json")...),
			new(bytes.Buffer)
		c.Stdout, c.Stderr, c.WaitDelay = said, said, time.Second
		return c, said, r.Run(side, c.Start)
	}
	local := "--local=" + relay.Client(1).String()
	both := func(tool string, serve, ask []string) (all []map[string]any, err error) {
		server, _, err := run(1, tool, append(serve, "--local="+relay.Server(1).String())...)
		if err != nil {
			return nil, err
		}
		defer server.Wait()
		defer server.Process.Kill()
		client, said, err := run(0, tool, append(ask, local, relay.Server(1).String())...)
		if err != nil {
			return nil, err
		}
		if err := client.Wait(); err != nil {
			return nil, fmt.Errorf("%s: %w: %s", tool, err, said)
		}
		for line := range strings.Lines(said.String()) {
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				return nil, fmt.Errorf("%s: %w: %s", tool, err, line)
			}
			all = append(all, v)
		}
		return all, nil
	}
	if loss == 0 {
		watch, unwatch := context.WithCancel(ctx)
		watched := make(chan error, 1)
		var canary relay.Hist
		go func() {
			var err error
			canary, _, err = r.Probe(watch, toolsRTT/2, canaryEvery, 1, 100)
			watched <- err
		}()
		lines, err := both("ddpping", []string{"-l"}, []string{"-c", "40", "-i", "0.02", "-n"})
		unwatch()
		if err = errors.Join(err, <-watched); err != nil {
			return nil, 0, err
		}
		// with what the kernel takes each way
		sum, trip := lines[len(lines)-1], milliseconds(toolsRTT+2*canary.Quantile(0.5))
		late = canary.Quantile(0.99)
		list = append(list, figure{"ddpping, shortest round trip in ms", sum["rtt_min_ms"].(float64), trip, false},
			figure{"ddpping, mean round trip in ms", sum["rtt_avg_ms"].(float64), trip, false})
	}
	lost, octets := r.Counts[relay.Up][1].Lost, r.Counts[relay.Up][1].Octets
	lines, err := both("ddpbench", []string{"write"}, []string{"write", "-s", "64K", "-D", "4", "--interval", "1"})
	if err != nil {
		return nil, 0, err
	}
	lost, octets = r.Counts[relay.Up][1].Lost-lost, r.Counts[relay.Up][1].Octets-octets
	var resent, moved float64
	for _, l := range lines {
		switch l["type"] {
		case "result":
			moved = l["bytes"].(float64) * l["iterations"].(float64)
		case "summary":
			resent = l["usage"].(map[string]any)["retransmits"].(float64)
		}
	}
	if loss > 0 {
		return append(list, figure{"ddpbench, DATA chunks sent again", resent, float64(lost), true}),
			r.Late.Quantile(0.99), nil
	}
	for _, l := range lines {
		if l["type"] == "interval" && l["from_s"].(float64) > 0 { // the road is full
			list = append(list, figure{fmt.Sprintf("ddpbench, MiB/s from %.2f s on", l["from_s"]),
				l["bw_avg_MiBps"].(float64), toolsRate * moved / float64(octets) / (1 << 20), false})
		}
	}
	return list, max(late, r.Late.Quantile(0.99)), nil
}
