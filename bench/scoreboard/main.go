// Command scoreboard measures this project beside its peers, and says which of the project's
// performance targets are met.
//
//	scoreboard [flags]
//
// It runs as root, in network namespaces of its own. In each round it runs everything once, so that
// other load on the machine hits all alike. Ratios are taken within a round, if the processors
// stayed where they were. It exits 0 when everything was measured, whether targets are met or not;
// 1 when something failed; 2 on a mistake.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/bench/machine"
)

type options struct {
	time   time.Duration
	rounds int
	quick  bool
	run    string
	list   bool
	json   bool
	part   string
	docs   string
	judge  bool
	bin    string
}

func main() {
	asChild(os.Args[1:])
	var o options
	pflag.DurationVar(&o.time, "time", 5*time.Minute,
		"how long the bulk part takes, more or less; the others have lengths of their own, see --list")
	pflag.IntVar(&o.rounds, "rounds", 3,
		"how often each thing is measured; other parts than bulk 5 times, b 9 times, unless this is given")
	pflag.BoolVar(&o.quick, "quick", false, "one short round of what the targets need, by default of bulk, a minute")
	pflag.StringVar(&o.part, "part", "",
		"only these `parts`, separated by commas: bulk, the shapes of programs a to k, change, idle, growth, "+
			"tcp, encryption, 100000 (default all but the last)")
	pflag.StringVar(&o.run, "run", "", "only what matches this `regexp`")
	pflag.BoolVar(&o.list, "list", false, "list what would be measured")
	pflag.BoolVar(&o.json, "json", false, "print JSON")
	pflag.StringVar(&o.docs, "write-docs", "",
		"put the rows into this `file` too, docs/dev/scoreboard.md in this repository")
	pflag.BoolVar(&o.judge, "judge", false, "measure nothing: mark what is stale in the file of --write-docs")
	pflag.StringVar(&o.bin, "bin", "", "`directory` of ddpbench, usrsctp-end and diameter-end (default: where "+
		"this program is)")
	pflag.Parse()
	if o.quick && !pflag.CommandLine.Changed("time") {
		o.time = time.Minute
	}
	if o.quick && !pflag.CommandLine.Changed("rounds") {
		o.rounds = 1
	}
	if o.quick && o.part == "" {
		o.part = "bulk"
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

// tasksAsked are those that the flags ask for.
func (o *options) tasksAsked() (list []task, err error) {
	re, err := regexp.Compile(o.run)
	if err != nil {
		return nil, err
	}
	parts, err := partsNamed(o.part)
	if err != nil {
		return nil, err
	}
	for _, p := range parts {
		bulk := p.run == 0
		if o.quick && bulk {
			p.specs = specsNeeded()
		}
		var specs []spec
		for _, s := range p.specs {
			if re.MatchString(s.String()) && !slices.Contains(specs, s) &&
				!slices.ContainsFunc(list, func(t task) bool { return t.spec == s }) {
				specs = append(specs, s)
			}
		}
		switch {
		case bulk:
			p.rounds, p.extra, p.run = o.rounds, startTime,
				max(minRun, o.time/time.Duration(max(1, len(specs)*o.rounds))-startTime)
		case o.quick:
			p.rounds, p.run = 1, max(quickRun, p.run/10)
		case pflag.CommandLine.Changed("rounds"):
			p.rounds = o.rounds
		}
		for _, s := range specs {
			list = append(list, task{s, p.rounds, p.run, p.extra})
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("nothing matches %q: see --list", o.run)
	}
	return list, nil
}

// A run is not shorter than this, or it would say little. What it takes besides is start and end.
const (
	minRun    = 200 * time.Millisecond
	quickRun  = 300 * time.Millisecond
	startTime = 400 * time.Millisecond
)

func (o *options) main(ctx context.Context, out, progress io.Writer) (failed bool, err error) {
	if o.judge {
		return false, keepBook(o.docs, nil)
	}
	if o.rounds < 1 {
		return false, errors.New("--rounds: at least one is needed")
	}
	tasks, err := o.tasksAsked()
	if err != nil {
		return false, err
	}
	long := totalTime(tasks).Round(time.Second)
	if o.list {
		for _, t := range tasks {
			fmt.Fprintf(out, "%s: %d rounds of %s\n", t, t.rounds, t.run.Round(time.Millisecond))
		}
		fmt.Fprintf(out, "%s in all\n", long)
		return false, nil
	}
	fmt.Fprintf(progress, "%d things to measure, about %s\n", len(tasks), long)
	b, err := newBench(o.bin, tasks)
	if err != nil {
		return false, err
	}
	b.quick = o.quick
	bd := &board{Machine: machine.This(peerVersions()), Part: cmp.Or(o.part, "all"), Tasks: tasks}
	if err := b.runTasks(ctx, bd, 2*long+time.Minute, progress); err != nil {
		return false, err
	}
	bd.Machine.Load[1] = machine.Load()
	if o.json {
		err = bd.writeJSON(out)
	} else {
		bd.printTables(out)
	}
	if err == nil && o.docs != "" {
		err = keepBook(o.docs, bd)
	}
	return len(bd.Errors) > 0, err
}

// peerVersions are those of the peers.
func peerVersions() map[string]string {
	return map[string]string{
		"iperf3":     machine.Said("dpkg-query", "-W", "-f", "${Version}", "iperf3"),
		"libusrsctp": machine.Said("dpkg-query", "-W", "-f", "${Version}", "libusrsctp2"),
		"pion/sctp":  machine.Module("github.com/pion/sctp"),
	}
}

// newBench finds the programs that tasks need.
func newBench(bin string, tasks []task) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if bin == "" {
		bin = filepath.Dir(self)
	}
	b := &bench{
		self: self, ddpbench: filepath.Join(bin, "ddpbench"), usrsctp: filepath.Join(bin, "usrsctp-end"),
		diameter: filepath.Join(bin, "diameter-end"),
		nets:     make(map[string]*network),
	}
	program := map[string]string{"ddpbench": b.ddpbench, "usrsctp": b.usrsctp, "diameter": b.diameter,
		"iperf3": "iperf3"}
	for _, s := range tasks {
		if p := program[s.Peer]; p != "" {
			if _, err := exec.LookPath(p); err != nil {
				return nil, fmt.Errorf("%s is missing: run make scoreboard, which builds and installs what is "+
					"needed (%w)", s.Peer, err)
			}
		}
	}
	return b, nil
}
