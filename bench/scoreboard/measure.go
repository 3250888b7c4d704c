package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/rddp-go/rddp/bench/machine"
)

// A peer knows how to run its two ends and to read what they print.
type peer struct {
	command func(b *bench, e *end) []string
	ready   string // in the output of a server that can be called
	parse   func(s spec, server, client []byte) (figures, error)
}

var peers = map[string]peer{
	"pump":     goPeer,
	"sctp":     goPeer,
	"tcp":      goPeer,
	"pion":     goPeer,
	"rdma":     goPeer,
	"ddpbench": {ddpbenchCommand, `"type":"serving"`, parseDDPBench},
	"iperf3":   {iperfCommand, "Server listening", parseIperf},
	"usrsctp":  {usrsctpCommand, "ready", parseReports},
	"diameter": {diameterCommand, "ready", parseReports},
}

// figures are what one run yields. Index 0 is the client's, 1 the server's.
type figures struct {
	GBps   float64     `json:"GBps,omitempty"`     // 10^9 octets of messages a second, where they arrive
	Octets float64     `json:"octets,omitempty"`   // that CPU is divided by, in all directions
	P50    float64     `json:"p50_us,omitempty"`   // of a round trip
	P99    float64     `json:"p99_us,omitempty"`   //
	Batch  [2]float64  `json:"packets_per_call"`   // out of the client and into the server; 0: unknown
	Allocs [2]*float64 `json:"allocs_per_message"` // nil: unknown
	CPU    [2]float64  `json:"cpu_seconds"`        // of the whole process
	RSS    [2]int64    `json:"peak_rss_octets"`

	Rate    float64       `json:"round_trips_a_second,omitempty"`
	TripCPU float64       `json:"cpu_us_a_round_trip,omitempty"` // of both ends
	Growth  *growthResult `json:"growth,omitempty"`

	Line [2]time.Duration `json:"line_ns"` // from one processor to another and back, before and after; 0: unknown
}

// cpuPerGB is the processor time of both ends, in seconds.
func (f *figures) cpuPerGB() float64 { return (f.CPU[0] + f.CPU[1]) / (f.Octets / 1e9) }

// bench runs specs.
type bench struct {
	self     string // this program
	ddpbench string
	usrsctp  string
	diameter string
	nets     map[string]*network
	quick    bool // no more round trips than there is time for
	tryout   bool // it matters only that ends find each other: figures of runs that short stand for nothing
}

// newEnd is one end of a run of s.
func (b *bench) newEnd(n *network, s spec, server bool, seconds float64) *end {
	e := n.addressEnd(s, server, seconds)
	if b.quick {
		e.Trips = 0
	}
	return e
}

// patience is how much longer than it should a run may take. A message that is sent at the end may
// have to wait for a retransmission timer or two, and the machine may have other work.
const patience = 30 * time.Second

// measureTask runs s once.
func (b *bench) measureTask(ctx context.Context, t task) (f figures, err error) {
	s, seconds := t.spec, t.run.Seconds()
	n := b.nets[s.Net]
	if n == nil {
		if n, err = networks[s.Net](); err != nil {
			return f, err
		}
		b.nets[s.Net] = n
	}
	files, err := sharedFiles()
	if err != nil {
		return f, err
	}
	defer closeAll(files)
	p := peers[s.Peer]
	ctx, cancel := context.WithTimeout(ctx, t.run+3*t.extra+time.Duration(s.Trips)*time.Millisecond/2+patience)
	defer cancel()
	server, err := startProcess(ctx, n.ns[1], p.command(b, b.newEnd(n, s, true, seconds)), p.ready, files)
	if err != nil {
		return f, err
	}
	defer server.stopServer()
	if err := server.waitUntilReady(ctx); err != nil {
		return f, fmt.Errorf("server: %w: %s", err, server.lastErrors())
	}
	others := make([]*process, s.numBusyProcs())
	for i := range others {
		if others[i], err = startProcess(ctx, n.ns[0], []string{b.self, computeCommand}, "", nil); err != nil {
			return f, err
		}
		defer others[i].stopServer()
	}
	client, err := startProcess(ctx, n.ns[0], p.command(b, b.newEnd(n, s, false, seconds)), "", files)
	if err != nil {
		return f, err
	}
	<-client.over
	server.stopServer()
	if client.err != nil {
		return f, fmt.Errorf("client: %w: %s; server: %s", client.err, client.lastErrors(), server.lastErrors())
	}
	for _, other := range others {
		if other.stopServer(); other.cpuSeconds() < seconds/float64(4*len(others)) {
			return f, fmt.Errorf("one of %d processes beside has computed for %.3f s only of %.3f", len(others),
				other.cpuSeconds(), seconds)
		}
	}
	if f, err = p.parse(s, server.out.b, client.out.b); err != nil {
		return f, err
	}
	f.CPU = [2]float64{client.cpuSeconds(), server.cpuSeconds()}
	f.RSS = [2]int64{client.peak.Load(), server.peak.Load()}
	if b.tryout {
		return f, nil
	}
	return f, f.checkPlausible(s, seconds)
}

// checkPlausible refuses what does not stand for the run it comes from.
func (f *figures) checkPlausible(s spec, seconds float64) error {
	switch took := f.Octets / 1e9 / f.GBps; {
	case s.Shape == idle && f.Growth != nil:
		return nil
	case s.Shape != "" && !(f.Rate > 0):
		return errors.New("no round trip was measured")
	case s.Shape != "":
		return nil
	case s.PingPong && !(f.P50 > 0):
		return errors.New("no round trip was measured")
	case s.PingPong:
		return nil
	case !(f.GBps > 0 && f.Octets > 0):
		return errors.New("nothing arrived")
	case took < seconds/4:
		return fmt.Errorf("data arrived for %.3f s only of %.3f", took, seconds)
	}
	return nil
}

// sharedFiles are the descriptors 3 and 4 of both ends, for the gates of a pump.
func sharedFiles() (files []*os.File, err error) {
	for range 2 {
		f, err := os.CreateTemp("", "scoreboard")
		if err != nil {
			closeAll(files)
			return nil, err
		}
		files = append(files, f)
		if err := os.Remove(f.Name()); err != nil {
			closeAll(files)
			return nil, err
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// board is what was measured: for each spec a result of each round.
type board struct {
	Machine machine.Machine       `json:"machine"`
	Part    string                `json:"part"`
	Tasks   []task                `json:"-"`
	Specs   []spec                `json:"-"`       // of the tasks
	Results map[string][]*figures `json:"results"` // by name; nil: failed
	Errors  map[string]string     `json:"errors,omitempty"`
}

// errNoTime is in place of what was not measured.
var errNoTime = errors.New("there was no time left")

// runTasks measures all tasks in each round, so that whatever else the machine does hits all of
// them, in every other round the last first. After limit it measures no more.
func (b *bench) runTasks(ctx context.Context, bd *board, limit time.Duration, progress io.Writer) error {
	bd.Results, bd.Errors, bd.Specs = make(map[string][]*figures), make(map[string]string), nil
	rounds := 0
	for _, t := range bd.Tasks {
		bd.Specs = append(bd.Specs, t.spec)
		rounds = max(rounds, t.rounds)
	}
	end := time.Now().Add(limit)
	for round := range rounds {
		list := slices.DeleteFunc(slices.Clone(bd.Tasks), func(t task) bool { return t.rounds <= round })
		if round%2 == 1 {
			slices.Reverse(list)
		}
		for i, t := range list {
			name := t.String()
			fmt.Fprintf(progress, "round %d of %d, %d of %d: %s\n", round+1, rounds, i+1, len(list), name)
			f, err := figures{}, errNoTime
			if time.Now().Before(end) {
				before := machine.Line()
				f, err = b.measureTask(ctx, t)
				if f.Line[0] == 0 {
					f.Line = [2]time.Duration{before, machine.Line()}
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				bd.Errors[name] = err.Error()
				bd.Results[name] = append(bd.Results[name], nil)
				fmt.Fprintf(progress, "%s: %v\n", name, err)
				continue
			}
			bd.Results[name] = append(bd.Results[name], &f)
		}
	}
	return nil
}
