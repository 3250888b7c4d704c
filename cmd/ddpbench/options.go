package main

import (
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/cmd/internal/monitor"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
)

// options is the command line.
type options struct {
	params
	args                []string // as they were typed
	link                cli.LinkFlags
	metrics             monitor.Metrics
	allSizes            bool
	interval            time.Duration
	asJSON              bool
	self                bool
	ownAssociations     bool
	port                uint16
	portGiven           bool          // the port was given
	timeout             time.Duration // for the server to answer
	host                string        // empty: serve
	gbits               bool
	histogram, unsorted bool   // all results of a latency run
	traceFile           string // file to draw; nothing else is done then
	reportFile          string // file of the report; empty: none
	sweepDir            string // directory for plots; nothing else is done then
}

// Defaults of perftest.
const (
	defaultSizeBW     = 65536
	defaultSizeLat    = 2
	defaultIters      = 1000
	defaultItersWrite = 5000
	defaultDepth      = 128
)

// sizes of -a
const (
	minSweepSize = 2
	maxSweepSize = 1 << 23
)

// addFlags adds the flags, and those that are refused. check reports a refused flag.
func (o *options) addFlags(fs *pflag.FlagSet) (w *perftestFlags, check func() error) {
	w = &perftestFlags{}
	fs.BoolVar(&o.isLatency, "lat", false, "measure latency instead of bandwidth")
	fs.VarP(cli.Octets(&o.size, 0, 1, maxSize), "size", "s",
		"`bytes` in a message, K and M as suffixes (default 64K, with --lat 2)")
	fs.Var(cli.Octets(&o.memoryOctets, 0, 1, maxMemory), "memory",
		"`bytes` of memory that messages use in turn on each side, K and M as suffixes: 64M is more than caches "+
			"hold (default 4M for all QPs, for send 16M)")
	fs.VarP(cli.Int(&o.iters, 0, 1, maxIters), "iters", "n",
		"messages on each QP (default 1000, for write bandwidth 5000)")
	fs.VarP(cli.Seconds(&o.duration, 0, time.Millisecond, maxDuration), "duration", "D",
		"run for so many `seconds` instead of a number of messages")
	fs.VarP(cli.Int(&o.depth, 0, 1, maxDepth), "tx-depth", "t",
		"messages outstanding on a QP (default 128, with --lat 1)")
	fs.VarP(cli.Int(&o.qps, 1, 1, maxQPs), "qp", "q", "`number` of QPs")
	fs.BoolVarP(&o.bidirectional, "bidirectional", "b", false, "both sides transmit; the sum is shown")
	fs.BoolVarP(&o.allSizes, "all", "a", false, "run sizes from 2 to 2^23")
	fs.Var(cli.Seconds(&o.interval, 0, time.Millisecond, maxDuration), "interval",
		"with -D, print a line every so many `seconds`")
	fs.StringVar(&o.reportFile, "report", "",
		"write what was measured, with plots of both ends, as one HTML page into this `file`")
	fs.BoolVar(&o.asJSON, "json", false, "print JSON, an object a line")
	fs.BoolVar(&o.self, "self", false, "both ends in this process, over the best link that needs no set-up")
	fs.BoolVar(&o.ownAssociations, "own", false, "an SCTP association for each QP instead of a shared one")
	fs.BoolVar(&o.verify, "verify", false, "check the content of messages, which takes time")
	fs.StringVar(&o.sweepDir, "sweep", "",
		"measure in this process how the cost of a packet grows with message size, QPs, associations and "+
			"regions, and write plots into this `directory`")
	fs.VarP(cli.Port(&o.port, rdma.DefaultPort), "port", "p",
		"`port` of SCTP, or of TCP; --self takes a free one unless it is given")
	fs.Var(cli.Seconds(&o.timeout, 10*time.Second, time.Millisecond, maxDuration), "timeout",
		"`seconds` to wait for the server to answer")
	w.addFlags(fs, o)
	check = cli.AddRefusedFlags(fs, refusedFlags)
	o.metrics.Add(fs)
	o.link.Add(fs)
	return w, check
}

// commandLine returns the command line as text.
func (o *options) commandLine() string {
	return cli.Printable(strings.Join(append([]string{"ddpbench"}, o.args...), " "))
}

func parseArgs(args []string, stdout io.Writer) (*options, error) {
	o := &options{args: args}
	fs := cli.NewFlags("ddpbench")
	w, refuse := o.addFlags(fs)
	const about = `Usage: ddpbench write|read|send|atomic [HOST | --self] [flags]
       ddpbench trace FILE [--report out.html]
       ddpbench --sweep DIRECTORY [-D seconds for each point] [--link raw|udp|mem] [--mtu octets]

Measures RDMA over SCTP, or TCP. Without HOST it serves, and follows what clients ask for.`
	if err := cli.Parse(fs, args, stdout, about); err != nil {
		return nil, err
	}
	if err := refuse(); err != nil {
		return nil, err
	}
	if fs.Arg(0) == "trace" {
		return o, o.checkTrace(fs)
	}
	if o.sweepDir == "" {
		if err := o.parseArguments(fs.Args()); err != nil {
			return nil, err
		}
	}
	if o.sweepDir != "" {
		return o, o.checkSweep(fs)
	}
	o.portGiven, o.wantsNotes = fs.Changed("port"), o.reportFile != ""
	if err := w.applyTo(fs, o); err != nil {
		return nil, err
	}
	return o, o.checkFlags(fs)
}

// checkTrace checks and takes the file to draw.
func (o *options) checkTrace(fs *pflag.FlagSet) (err error) {
	if fs.NArg() != 2 {
		return cli.Usagef("trace FILE: one file that --trace has written, whose older part, FILE.1, is taken as well")
	}
	fs.Visit(func(f *pflag.Flag) {
		if f.Name != "report" && f.Name != "report_gbits" {
			err = cli.Usagef("--%s does not go with trace, which takes --report and --report_gbits", f.Name)
		}
	})
	o.traceFile = fs.Arg(1)
	return err
}

// parseArguments takes the verb and the host.
func (o *options) parseArguments(args []string) error {
	if len(args) == 0 {
		return cli.Usagef("the verb comes first: write, read, send, atomic or trace")
	}
	v, ok := verbs[args[0]]
	switch {
	case !ok:
		return cli.Usagef("%s: the verb is one of write, read, send, atomic", args[0])
	case len(args) > 2:
		return cli.Usagef("one HOST is enough, or none to serve")
	case len(args) == 2 && o.self:
		return cli.Usagef("--self takes no HOST")
	case len(args) == 2:
		o.host = args[1]
	}
	o.verb = v
	return nil
}

func (o *options) checkFlags(fs *pflag.FlagSet) error {
	switch {
	case o.allSizes && o.duration > 0:
		return cli.Usagef("-a runs a number of messages of each size: it does not go with -D")
	case o.allSizes && fs.Changed("size"):
		return cli.Usagef("-a runs all sizes: it does not go with -s")
	case fs.Changed("iters") && o.duration > 0:
		return cli.Usagef("-n and -D: the run ends by one or the other")
	case o.interval > 0 && o.duration == 0:
		return cli.Usagef("--interval goes with -D")
	case fs.Changed("tx-depth") && o.isLatency:
		return cli.Usagef("-t: with --lat one message is outstanding at a time")
	case o.reportFile != "" && o.host == "" && !o.self:
		return cli.Usagef("--report is the client's: it shows the server too")
	}
	o.setDefaults(fs.Changed("size"))
	for _, size := range o.messageSizes() {
		p := o.params
		p.size = size
		if err := p.checkBounds(); err != nil {
			return err
		}
	}
	return nil
}

// checkSweep allows only -D and the choice of the link.
func (o *options) checkSweep(fs *pflag.FlagSet) error {
	if fs.NArg() > 0 {
		return cli.Usagef("--sweep takes no verb and no HOST")
	}
	for _, name := range []string{"lat", "size", "memory", "iters", "tx-depth", "qp", "bidirectional", "all",
		"interval", "json", "own", "verify", "port", "timeout", "metrics", "report", "trace",
		"report_gbits", "noPeak", "report-histogram", "report-unsorted", "events", "cq-mod", "post_list", "rx-depth",
		"atomic_type", "tos", "hop_limit"} {
		if fs.Changed(name) {
			return cli.Usagef("--%s does not go with --sweep, which sets all that itself", name)
		}
	}
	if o.link.Protocol() == "TCP" {
		return cli.Usagef("--sweep measures what packets cost, and --link tcp has none of its own: it is one of raw, " +
			"udp and mem")
	}
	if o.duration == 0 {
		o.duration = defaultSweep
	}
	return nil
}

func (o *options) setDefaults(sized bool) {
	if !sized {
		o.size = defaultSizeBW
		switch {
		case o.verb == verbAtomic:
			o.size = atomicSize
		case o.isLatency:
			o.size = defaultSizeLat
		}
	}
	if o.depth == 0 {
		o.depth = defaultDepth
		if o.isLatency {
			o.depth = 1
		}
	}
	if o.iters == 0 && o.duration == 0 {
		o.iters = defaultIters
		if o.verb == verbWrite && !o.isLatency {
			o.iters = defaultItersWrite
		}
	}
}

// messageSizes are the message sizes to run.
func (o *options) messageSizes() []int {
	if !o.allSizes {
		return []int{o.size}
	}
	var list []int
	for size := minSweepSize; size <= maxSweepSize; size *= 2 {
		list = append(list, size)
	}
	return list
}
