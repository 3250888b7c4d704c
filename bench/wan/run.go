package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rddp-go/rddp/bench/wan/relay"
	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// outcome is what one run of a stack over a cell yields.
type outcome struct {
	simulated.Sample
	Runs    []float64     // in bulk, Mbit/s of each flow
	Resent  int64         // -1: unknown
	Octets  int64         // of user data that the server's stack took
	Wire    uint64        // octets that it put on the road
	Lost    uint64        // packets lost by the road
	Full    uint64        // packets dropped by queues
	Waited  relay.Hist    // in the queue towards the client
	Late    relay.Hist    // packets of the relay that left too late
	Canary  relay.Hist    // how late the road was from end to end
	Missing uint64        // canaries that did not come
	Took    time.Duration // all of it
	About   string
}

// lateLimit is how late a road may be: a fiftieth of the round trip.
func lateLimit(rtt time.Duration) time.Duration { return rtt / 50 }

// checkInTime says whether the road was in time: of a hundred packets and of a hundred canaries,
// 99. What canaries always take is not late: their median, and that of the road alone.
func (o *outcome) checkInTime(rtt, alone time.Duration) error {
	own := min(o.Canary.Quantile(0.5), alone)
	for _, h := range []struct {
		what string
		late time.Duration
	}{{"packets left", o.Late.Quantile(0.99)}, {"canaries came", o.Canary.Quantile(0.99) - own}} {
		if h.late > lateLimit(rtt) {
			return fmt.Errorf("the relay was late: one of a hundred %s more than %v late", h.what,
				h.late.Round(time.Microsecond))
		}
	}
	if o.Missing > 0 {
		return fmt.Errorf("%d canaries were lost", o.Missing)
	}
	return nil
}

// checkRelay says whether a relay that has stopped was in time: of a hundred packets, 99.
func checkRelay(r *relay.Relay, rtt time.Duration) error {
	if late := r.Late.Quantile(0.99); late > lateLimit(rtt) {
		return fmt.Errorf("the relay was late: one of a hundred packets left more than %v late",
			late.Round(time.Microsecond))
	}
	return nil
}

// process is one end. It ends when its standard input does, and so with this program.
type process struct {
	cmd    *exec.Cmd
	stdin  interface{ Close() error }
	out    *bufio.Reader
	errors bytes.Buffer
}

func startEnd(ctx context.Context, r *relay.Relay, side int, e *end) (*process, error) {
	e.Local, e.Remote = relay.Client(e.From), relay.Server(e.From)
	if e.Server {
		e.Local, e.Remote = e.Remote, e.Local
	}
	arg, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	program, env, err := programOf(e)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, program, endCommand, string(arg))}
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stderr = &p.errors
	p.cmd.WaitDelay = time.Second
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, r.Run(side, p.cmd.Start)
}

// readLine is the next that the process prints, read into v unless that is nil.
func (p *process) readLine(v any) error {
	line, err := p.out.ReadBytes('\n')
	if err == nil && v != nil {
		err = json.Unmarshal(line, v)
	}
	if err != nil {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		return fmt.Errorf("%w: %s%s", err, line, strings.TrimSpace(p.errors.String()))
	}
	return nil
}

func (p *process) endProcess() {
	p.stdin.Close()
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// patience is how long the ends may take to begin and to end.
const patience = 20 * time.Second

// canaryEvery is the time between two canaries.
const canaryEvery = 5 * time.Millisecond

// newRelay makes a relay for a cell, each flow with ways of its own, or all with those of the
// first.
func newRelay(c *simulated.Cell, seed uint64, flows int, shared bool) (*relay.Relay, error) {
	r, err := relay.New()
	if err != nil {
		return nil, err
	}
	if c.RTT < 10*time.Millisecond {
		r.Restless = true
	}
	down, up := relay.Params{
		Delay: c.RTT / 2, Jitter: c.Jitter, Rate: c.Rate, Queue: c.Queue(), Loss: c.Loss, Burst: c.Burst,
		Reorder:      c.Reorder,
		ReorderDelay: c.ReorderDelay, Duplicate: c.Duplicate, MarkQueue: c.MarkQueue,
	}, relay.Params{Delay: c.RTT / 2, Rate: c.Rate, Queue: c.Queue()}
	if c.BothWays {
		up = down
	}
	var ways [2]*relay.Way
	for i := 1; i <= flows; i++ {
		s := seed*relay.MaxFlows + uint64(i)
		if i == 1 || !shared {
			ways = [2]*relay.Way{relay.Up: relay.NewWay(up, 2*s+1), relay.Down: relay.NewWay(down, 2*s)}
		}
		for direction, w := range ways {
			r.Set(direction, i, w)
		}
	}
	r.Set(relay.Up, relay.Canary, relay.NewWay(relay.Params{Delay: c.RTT / 2}, 0))
	return r, nil
}

// aloneTime is how long the road is measured alone: 4000 packets.
const aloneTime = 500 * time.Millisecond

// measureAlone measures the road without any stack: trains of long packets, 90 Mbit/s in all.
func measureAlone(ctx context.Context, c *simulated.Cell) (late relay.Hist, missing uint64, err error) {
	r, err := newRelay(c, 0, 0, false)
	if err != nil {
		return late, 0, err
	}
	defer r.Close()
	r.Start()
	ctx, cancel := context.WithTimeout(ctx, aloneTime)
	defer cancel()
	late, missing, err = r.Probe(ctx, c.RTT/2, time.Millisecond, 8, 1400)
	return late, missing, errors.Join(err, r.Stop())
}

// measureOnce runs a stack over a cell once.
func measureOnce(ctx context.Context, stack string, c *simulated.Cell, seed uint64, total int,
	d time.Duration) (o *outcome, err error) {
	flows := c.Flows(!strings.HasSuffix(stack, "bbr"))
	e := &end{Stack: stack, From: 1, Flows: flows, Size: c.Size, Count: (total + flows - 1) / flows, Time: d,
		Pause: c.Pause}
	r, err := newRelay(c, seed, flows, false)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if c.MarkQueue > 0 {
		for _, dev := range r.Dev {
			if err := dev.NS.Sysctl("net.ipv4.tcp_ecn", "1"); err != nil {
				return nil, err
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d+patience)
	defer cancel()
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // which would stop the relay
	began := time.Now()
	r.Start()
	o = &outcome{}
	watch, unwatch := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() {
		var err error
		o.Canary, o.Missing, err = r.Probe(watch, c.RTT/2, canaryEvery, 1, 100)
		watched <- err
	}()
	cr, sr, err := runEnds(ctx, r, e)
	unwatch()
	err = errors.Join(err, <-watched, r.Stop())
	if err != nil {
		return nil, fmt.Errorf("%s, %s: %w", stack, c, err)
	}
	o.Took = time.Since(began)
	o.Resent, o.Octets, o.About = sr.Resent, sr.Octets, sr.About
	for i := range cr.Flows {
		up, down := &r.Counts[relay.Up][i+1], &r.Counts[relay.Down][i+1]
		o.Wire += down.Octets
		o.Lost += down.Lost + up.Lost
		o.Full += down.Full + up.Full
		o.Waited.Merge(&down.Waited)
		o.addFlow(&cr.Flows[i], append(down.Drops, up.Drops...))
		if c.Size == 0 {
			s := simulated.Sample{Bins: cr.Flows[i].Bins}
			o.Runs = append(o.Runs, s.Mbits(0, d))
		}
	}
	if c.Size == 0 { // what the stack still holds has not been sent
		o.Octets = 0
		for _, n := range o.Bins {
			o.Octets += int64(n)
		}
	}
	o.Late = r.Late
	return o, nil
}

// runEnds has both ends of a run play.
func runEnds(ctx context.Context, r *relay.Relay, e *end) (cr clientReport, sr serverReport, err error) {
	err = runEndsTo(ctx, r, e, &cr, &sr)
	return cr, sr, err
}

// runEndsTo has both ends of a run play, and reads what they report.
func runEndsTo(ctx context.Context, r *relay.Relay, e *end, ofClient, ofServer any) error {
	se := *e
	se.Server = true
	server, err := startEnd(ctx, r, 1, &se)
	if err != nil {
		return err
	}
	defer server.endProcess()
	if err := server.readLine(nil); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	client, err := startEnd(ctx, r, 0, e)
	if err != nil {
		return err
	}
	defer client.endProcess()
	if err := client.readLine(ofClient); err != nil {
		return fmt.Errorf("client: %w; server: %s", err, server.errors.String())
	}
	server.stdin.Close()
	if err := server.readLine(ofServer); err != nil {
		return fmt.Errorf("server: %w", err)
	}
	return nil
}

// addFlow adds what a flow's client saw. A transfer met a loss if a packet of its flow was dropped
// during it.
func (o *outcome) addFlow(f *flowReport, drops []int64) {
	var g simulated.Group
	for _, t := range f.Rest {
		g = append(g, t.Took)
		for _, at := range drops {
			if at >= t.At && at <= t.At+int64(t.Took) {
				o.Hit++
				break
			}
		}
	}
	o.Cut += f.Cut
	if f.First.Took > 0 {
		o.First = append(o.First, f.First.Took)
	}
	if len(g) > 0 {
		o.Groups = append(o.Groups, g)
	}
	for i, n := range f.Bins {
		for len(o.Bins) <= i {
			o.Bins = append(o.Bins, 0)
		}
		o.Bins[i] += n
	}
}
