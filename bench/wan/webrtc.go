package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// webrtcPrefix begins the names of stacks that another program plays: data channels of pion/webrtc
// over pion/sctp, or over this project's SCTP. In one module only one of the two can be.
const webrtcPrefix = "webrtc-"

const webrtcOriginal = webrtcPrefix + "original"

// webrtcGoal is how much better ours is to be than the original.
type webrtcGoal struct {
	loss  float64
	stack string
	bulk  float64 // times the original's, at least
}

var webrtcGoals = []webrtcGoal{
	{0, "webrtc-cubic", 1.4}, {0.01, "webrtc-cubic", 1.5}, {0.01, "webrtc-bbr", 10},
}

// processorGoal is how much of the original's processor time an octet may take, without loss.
const processorGoal = 0.9

const webrtcRTT = 100 * time.Millisecond

// programOf returns the program that plays an end, and what it gets in its environment.
func programOf(e *end) (path string, env []string, err error) {
	control, ok := strings.CutPrefix(e.Stack, webrtcPrefix)
	switch {
	case !ok:
		path, err = os.Executable()
		return path, nil, err
	case e.Stack == webrtcOriginal:
		return filepath.Join(e.Programs, "wan-webrtc-original"), nil, nil
	}
	return filepath.Join(e.Programs, "wan-webrtc-ours"), []string{"RDDP_CC=" + control}, nil
}

// webrtcRuns are those of a stack over one road.
type webrtcRuns []*besideReport

// median is that of a figure of all runs.
func (r webrtcRuns) median(of func(*besideReport) float64) float64 {
	list := make([]float64, len(r))
	for i, rep := range r {
		list[i] = of(rep)
	}
	return medianOf(list)
}

func (r *besideReport) mbits() float64 { return float64(r.Octets) * 8 / r.Time.Seconds() / 1e6 }

// quantile is a one-way time of short messages, in ms.
func (r *besideReport) quantile(q float64) float64 {
	return milliseconds(r.OneWay[min(int(q*float64(len(r.OneWay))), len(r.OneWay)-1)])
}

// processor is what both ends took of the processors, in ns for each octet.
func (r *besideReport) processor() float64 { return float64(r.CPU) / float64(max(r.All, 1)) }

// runWebRTC measures short messages beside bulk over data channels, with the original SCTP and with
// ours, round by round over the same road. It fails where a goal is missed.
func (o *options) runWebRTC(ctx context.Context, out io.Writer) (failed bool, err error) {
	t := table{{"RTT, loss", "stack", "one way, ms: p50", "p99", "max", "bulk, Mbit/s", "longest silence, ms",
		"processors, ns an octet"}}
	var said []string
	for _, loss := range []float64{0, 0.01} {
		c := o.cell
		c.RTT, c.Loss, c.Size, c.Rate = webrtcRTT, loss, 0, int64(o.mbits*1e6/8)
		got := make(map[string]webrtcRuns)
		for round := range o.rounds {
			for _, stack := range []string{webrtcOriginal, "webrtc-cubic", "webrtc-bbr"} {
				r, err := o.measureWebRTC(ctx, stack, &c, o.seed+uint64(round))
				if err != nil {
					return true, err
				}
				got[stack] = append(got[stack], r)
				t = append(t, []string{roadName(&c), stack, threeDigits(r.quantile(0.5)), threeDigits(r.quantile(0.99)),
					threeDigits(r.quantile(1)), threeDigits(r.mbits()), threeDigits(milliseconds(r.Longest)),
					threeDigits(r.processor())})
			}
		}
		for _, g := range webrtcGoals {
			if g.loss == loss {
				text, missed := g.judge(got[g.stack], got[webrtcOriginal])
				said, failed = append(said, text...), failed || missed
			}
		}
	}
	t.write(out)
	fmt.Fprintln(out, strings.Join(said, "\n"))
	return failed, nil
}

// judge compares ours with the original.
func (g *webrtcGoal) judge(own, original webrtcRuns) (said []string, missed bool) {
	say := func(what string, ratio float64, ok bool, goal string) {
		verdict := ""
		if !ok {
			verdict, missed = ", MISSED", true
		}
		said = append(said, fmt.Sprintf("%s, %g %% loss: %s %.2f times the original's, %s%s", g.stack, 100*g.loss, what,
			ratio, goal, verdict))
	}
	ratio := own.median((*besideReport).mbits) / original.median((*besideReport).mbits)
	say("bulk", ratio, ratio >= g.bulk, fmt.Sprintf("at least %g", g.bulk))
	p99 := func(r *besideReport) float64 { return r.quantile(0.99) }
	ratio = own.median(p99) / original.median(p99)
	say("p99", ratio, ratio <= 1, "at most 1")
	if g.loss == 0 {
		ratio = own.median((*besideReport).processor) / original.median((*besideReport).processor)
		say("processor time an octet", ratio, ratio <= processorGoal, fmt.Sprintf("at most %g", processorGoal))
	}
	return said, missed
}

// measureWebRTC runs a stack over a road until that was in time.
func (o *options) measureWebRTC(ctx context.Context, stack string, c *simulated.Cell, seed uint64) (r *besideReport,
	err error) {
	for range o.tries {
		r, err = measureBeside(ctx, &end{Stack: stack, Programs: o.webrtc, Time: besideStartup + o.bulk}, c, seed)
		if err == nil {
			slices.Sort(r.OneWay)
			return r, nil
		}
	}
	return nil, err
}
