// Command scoreboard measures this project beside its peers, and says which of the project's
// performance targets are met.
//
//	scoreboard [flags]
//
// It runs as root, in network namespaces of its own. In each round it runs everything once, so that
// whatever else the machine does hits all alike; ratios are taken within a round. It exits 0 when
// everything was measured, whether targets are met or not, 1 when something failed, 2 on a mistake.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/spf13/pflag"
)

type options struct {
	time   time.Duration
	rounds int
	quick  bool
	run    string
	list   bool
	json   bool
	docs   string
	bin    string
}

func main() {
	if len(os.Args) == 3 && os.Args[1] == endCommand {
		exit(runEnd(os.Args[2], os.Stdout))
	}
	var o options
	pflag.DurationVar(&o.time, "time", 5*time.Minute, "how long all of it takes, more or less")
	pflag.IntVar(&o.rounds, "rounds", 3, "how often each thing is measured")
	pflag.BoolVar(&o.quick, "quick", false, "a minute, one round, and only what the targets need")
	pflag.StringVar(&o.run, "run", "", "only what matches this `regexp`")
	pflag.BoolVar(&o.list, "list", false, "list what would be measured")
	pflag.BoolVar(&o.json, "json", false, "print JSON")
	pflag.StringVar(&o.docs, "write-docs", "", "put the tables into this `file` too")
	pflag.StringVar(&o.bin, "bin", "", "`directory` of ddpbench and usrsctp-end (default: where this program is)")
	pflag.Parse()
	if o.quick && !pflag.CommandLine.Changed("time") {
		o.time = time.Minute
	}
	if o.quick && !pflag.CommandLine.Changed("rounds") {
		o.rounds = 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	failed, err := o.main(ctx, os.Stdout, os.Stderr)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "scoreboard:", err)
		os.Exit(2)
	case failed:
		os.Exit(1)
	}
}

// specs are those that the flags ask for.
func (o *options) specs() (list []spec, err error) {
	re, err := regexp.Compile(o.run)
	if err != nil {
		return nil, err
	}
	all := plan()
	if o.quick {
		all = needed()
	}
	for _, s := range all {
		if re.MatchString(s.String()) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("nothing matches %q: see --list", o.run)
	}
	return list, nil
}

// A run is not shorter than this, or it would say little. What it takes besides is start and end.
const (
	minSeconds = 0.2
	startTime  = 400 * time.Millisecond
)

// seconds is how long one of n runs can be.
func (o *options) seconds(n int) float64 {
	return max(minSeconds, (o.time/time.Duration(n*o.rounds) - startTime).Seconds())
}

func (o *options) main(ctx context.Context, out, progress io.Writer) (failed bool, err error) {
	specs, err := o.specs()
	if err != nil {
		return false, err
	}
	if o.list {
		for _, s := range specs {
			fmt.Fprintln(out, s)
		}
		return false, nil
	}
	if o.rounds < 1 {
		return false, errors.New("--rounds: at least one is needed")
	}
	b, err := newBench(o.bin, specs)
	if err != nil {
		return false, err
	}
	bd := &board{Machine: thisMachine(), Seconds: o.seconds(len(specs)), Rounds: o.rounds, Specs: specs}
	if err := b.run(ctx, bd, 2*o.time, progress); err != nil {
		return false, err
	}
	bd.Machine.Load[1] = load()
	if o.json {
		err = bd.json(out)
	} else {
		bd.print(out)
	}
	if err == nil && o.docs != "" {
		err = bd.writeDocs(o.docs)
	}
	return len(bd.Errors) > 0, err
}

// newBench finds the programs that specs need.
func newBench(bin string, specs []spec) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if bin == "" {
		bin = filepath.Dir(self)
	}
	b := &bench{
		self: self, ddpbench: filepath.Join(bin, "ddpbench"), usrsctp: filepath.Join(bin, "usrsctp-end"),
		nets: make(map[string]*network),
	}
	program := map[string]string{"ddpbench": b.ddpbench, "usrsctp": b.usrsctp, "iperf3": "iperf3"}
	for _, s := range specs {
		if p := program[s.Peer]; p != "" {
			if _, err := exec.LookPath(p); err != nil {
				return nil, fmt.Errorf("%s is missing: run make scoreboard, which builds and installs what is needed (%w)", s.Peer, err)
			}
		}
	}
	return b, nil
}
