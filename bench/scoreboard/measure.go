package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
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
	"ddpbench": {ddpbenchCommand, `"type":"serving"`, parseDDPBench},
	"iperf3":   {iperfCommand, "Server listening", parseIperf},
	"usrsctp":  {usrsctpCommand, "ready", parseReports},
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
}

// cpuPerGB is the processor time of both ends, in seconds.
func (f *figures) cpuPerGB() float64 { return (f.CPU[0] + f.CPU[1]) / (f.Octets / 1e9) }

// bench runs specs.
type bench struct {
	self     string // this program
	ddpbench string
	usrsctp  string
	nets     map[string]*network
}

// patience is how much longer than it should a run may take: a message that is sent at the end may
// have to wait for a retransmission timer or two.
const patience = 10 * time.Second

// measure runs s once.
func (b *bench) measure(ctx context.Context, s spec, seconds float64) (f figures, err error) {
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
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds*float64(time.Second))+patience)
	defer cancel()
	server, err := start(ctx, n.ns[1], p.command(b, n.end(s, true, seconds)), p.ready, files)
	if err != nil {
		return f, err
	}
	defer server.stop()
	if err := server.ready(ctx); err != nil {
		return f, fmt.Errorf("server: %w: %s", err, server.words())
	}
	client, err := start(ctx, n.ns[0], p.command(b, n.end(s, false, seconds)), "", files)
	if err != nil {
		return f, err
	}
	<-client.over
	server.stop()
	if client.err != nil {
		return f, fmt.Errorf("client: %w: %s; server: %s", client.err, client.words(), server.words())
	}
	if f, err = p.parse(s, server.out.b, client.out.b); err != nil {
		return f, err
	}
	f.CPU = [2]float64{client.cpu(), server.cpu()}
	f.RSS = [2]int64{client.peak.Load(), server.peak.Load()}
	return f, f.check(s, seconds)
}

// check refuses what does not stand for the run it comes from.
func (f *figures) check(s spec, seconds float64) error {
	switch took := f.Octets / 1e9 / f.GBps; {
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
	Machine machine               `json:"machine"`
	Seconds float64               `json:"seconds_of_a_run"`
	Rounds  int                   `json:"rounds"`
	Specs   []spec                `json:"-"`
	Results map[string][]*figures `json:"results"` // by name; nil: failed
	Errors  map[string]string     `json:"errors,omitempty"`
}

// errNoTime is in place of what was not measured.
var errNoTime = errors.New("there was no time left")

// run measures all specs in each round, so that whatever else the machine does hits all of them. After
// limit it measures no more.
func (b *bench) run(ctx context.Context, bd *board, limit time.Duration, progress io.Writer) error {
	bd.Results, bd.Errors = make(map[string][]*figures), make(map[string]string)
	end := time.Now().Add(limit)
	for round := range bd.Rounds {
		for i, s := range bd.Specs {
			name := s.String()
			fmt.Fprintf(progress, "round %d of %d, %d of %d: %s\n", round+1, bd.Rounds, i+1, len(bd.Specs), name)
			f, err := figures{}, errNoTime
			if time.Now().Before(end) {
				f, err = b.measure(ctx, s, bd.Seconds)
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
