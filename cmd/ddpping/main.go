// Ddpping checks that data can be placed into the memory of another host over SCTP, or over TCP, as
// ping checks that packets arrive.
//
//	ddpping -l             serve
//	ddpping HOST           ping a server
//	ddpping --self         both ends in this process
//
// It has the flags of ping(8). For those that make no sense here it says why (docs/tools.md). Only
// the count, the deadline or ^C ends it. It goes on while nothing answers, and connects again when
// the server has come back.
//
// It exits as ping does: 0 when replies came, and 1 when none came, or too few for -c before the
// deadline -w. It exits 1 also when a reply had the wrong content, and 2 on any other error.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/cmd/internal/monitor"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
)

const (
	exitOK    = 0
	exitLost  = 1
	exitError = 2
)

// options is the command line.
type options struct {
	link            cli.LinkFlags
	metrics         monitor.Metrics
	listen          bool
	self            bool
	count           int // 0: without end
	interval        time.Duration
	size            int
	deadline        time.Duration
	timeout         time.Duration
	quiet           bool
	flood           bool
	adaptive        bool
	pingOnReply     bool // the next ping goes when this one is answered
	ringBell        bool
	nameOutstanding bool
	precise         bool
	verbose         bool
	pattern         []byte
	timestamps      bool
	numeric         bool
	statAddr        string
	opName          string
	port            uint16
	asJSON          bool
	host            string
	linkName        string // of the link, for people
}

func main() {
	out := &cli.Output{To: os.Stdout}
	code := runProgram(cli.UntilSignal(os.Interrupt, syscall.SIGTERM), os.Args[1:], out, os.Stderr)
	os.Exit(out.Exit(code, exitError, os.Stderr, "ddpping"))
}

func runProgram(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseArgs(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		return o.runAndReport(ctx, stdout, stderr)
	}
	cli.ReportFailure(stdout, stderr, "ddpping", slices.Contains(args, "--json"), err)
	return exitError
}

// runAndReport does what the command line asks for and returns the exit code.
func (o *options) runAndReport(ctx context.Context, stdout, stderr io.Writer) int {
	err := o.metrics.Open(stderr)
	if err == nil {
		defer o.metrics.Close()
		err = o.link.Trace.Open("ddpping", o.traceVantage())
	}
	if err == nil {
		err = o.link.Encryption.Open("ddpping", o.self, stderr)
	}
	if err == nil {
		var code int
		if code, err = o.runMode(ctx, stdout); err == nil {
			err = o.link.RecordingError()
		}
		if written := o.link.Trace.Close("ddpping", stderr); err == nil {
			if !written {
				return exitError
			}
			return code
		}
	}
	cli.ReportFailure(stdout, stderr, "ddpping", o.asJSON, err)
	return exitError
}

// traceVantage is the end that a trace is seen from.
func (o *options) traceVantage() string {
	switch {
	case o.self:
		return "unknown"
	case o.listen:
		return "server"
	}
	return "client"
}

// refusedFlags are the flags of ping(8) that make no sense here.
var refusedFlags = []cli.RefusedFlag{
	{Short: "b", Why: "an association has one peer, so there is no broadcast"},
	{Short: "C", Why: "there is no socket to connect: the session is connected anyway"},
	{Short: "d", Why: "there is no socket to debug: --pcap FILE writes every packet down"},
	{Short: "e", Why: "pings of different clients cannot be mixed up: each has a session of its own"},
	{Short: "F", Why: "the flow label of IPv6 is always 0"},
	{Short: "L", Why: "an association has one peer, so there is no multicast to loop back"},
	{Short: "m", Why: "packets have no firewall mark: -I chooses the address or interface that they leave by"},
	{Short: "N", Why: "node information is a matter of ICMPv6"},
	{Short: "r", Why: "the routing table decides: -I chooses the address or interface that packets leave by"},
	{Short: "R", Why: "routers drop packets with the option to record their route: traceroute shows it"},
	{Short: "S", Why: "the buffers follow what the path holds"},
	{Short: "T", Why: "routers drop packets with the timestamp option"},
	{Short: "U", Why: "all times here are those that the program sees: no kernel in between takes others"},
}

func parseArgs(args []string, stdout io.Writer) (*options, error) {
	o := &options{}
	fs := cli.NewFlags("ddpping")
	var mark markFlags
	check := o.addFlags(fs, &mark)
	fs.StringVar(&o.statAddr, "stat", "", "print what the tool with --metrics `host:port` is doing, and exit")
	fs.BoolVar(&o.asJSON, "json", false, "print JSON, an object a line")
	fs.BoolVar(&o.self, "self", false, "both ends in this process, over the best link that needs no set-up")
	o.metrics.Add(fs)
	o.link.Add(fs)
	const about = "Usage: ddpping [flags] HOST | -l | --self | --stat ADDRESS\n\n" +
		"Pings by placing data into the memory of another host over SCTP, or TCP."
	if err := cli.Parse(fs, args, stdout, about); err != nil {
		return nil, err
	}
	if err := cmp.Or(check(), mark.applyTo(&o.link)); err != nil {
		return nil, err
	}
	if o.flood && !fs.Changed("interval") {
		o.interval = 0
	}
	o.pingOnReply = o.adaptive || o.interval == 0
	return o, o.checkArgs(fs.Args())
}

// maxDuration is the longest time that a flag takes: thirty years. No calculation with times
// overflows by it.
const maxDuration = 1e9 * time.Second

// addFlags adds the flags, and those that are refused. check reports a refused flag.
func (o *options) addFlags(fs *pflag.FlagSet, mark *markFlags) (check func() error) {
	fs.BoolVarP(&o.listen, "listen", "l", false,
		"serve pings. There is no preload: a short -i sends pings ahead of the answers")
	fs.VarP(cli.Int(&o.count, 0, 1, math.MaxInt32), "count", "c",
		"stop after `n` pings; with -w, after n replies (default: at ^C)")
	fs.VarP(cli.Seconds(&o.interval, time.Second, time.Microsecond, maxDuration).OrZero(), "interval", "i",
		"`seconds` between pings; 0: as fast as replies come")
	fs.VarP(cli.Octets(&o.size, 56, 0, maxSize), "size", "s", "data `bytes` in each ping, K and M as suffixes")
	fs.VarP(cli.Seconds(&o.deadline, 0, time.Millisecond, maxDuration).OrZero(), "deadline", "w",
		"stop after so many `seconds`, whatever has come")
	fs.VarP(cli.Seconds(&o.timeout, 10*time.Second, time.Millisecond, maxDuration), "timeout", "W",
		"`seconds` to wait for the last replies, and for each attempt to connect")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "print the summary only")
	fs.BoolVarP(&o.flood, "flood", "f", false,
		"ping as fast as replies come, or a hundred times a second; a dot is a ping, a backspace a reply")
	fs.BoolVarP(&o.adaptive, "adaptive", "A", false,
		"send the next ping when a reply has come, and after -i at the latest")
	fs.BoolVarP(&o.nameOutstanding, "outstanding", "O", false,
		"before each ping, name all that have no reply yet, not only those of a second ago")
	fs.BoolVarP(&o.timestamps, "timestamp", "D", false, "print the time before each line")
	fs.BoolVarP(&o.numeric, "numeric", "n", false, "print addresses, not names")
	fs.BoolVarP(&o.ringBell, "audible", "a", false, "ring the bell at each reply")
	fs.BoolVarP(&o.precise, "precise", "3", false, "print times to the microsecond, however long they are")
	fs.BoolVarP(&o.verbose, "verbose", "v", false, "show the path in the summary even if there is only one")
	fs.BoolVarP(&o.link.V4, "ipv4", "4", false, "use IPv4")
	fs.BoolVarP(&o.link.V6, "ipv6", "6", false, "use IPv6")
	fs.StringVarP(&o.link.Local, "interface", "I", "", "send from this `address` or interface, as --local")
	fs.BoolP("sticky", "B", false, "keep the first source address, as an association always does")
	fs.BoolP("names", "H", false, "look names up, the default without -n")
	mark.addFlags(fs, &o.link)
	fs.BytesHexVarP(&o.pattern, "pattern", "p", nil,
		"fill pings with these 1 to 16 bytes in `hex` (default: bytes that differ from ping to ping)")
	fs.StringVar(&o.opName, "op", "send", "how data travels: send, write, read or all")
	fs.Var(cli.Port(&o.port, rdma.DefaultPort), "port", "`port` of SCTP, or of TCP")
	return cli.AddRefusedFlags(fs, refusedFlags)
}

// markFlags are the marks in IP headers that the command line asks for.
type markFlags struct {
	mtuDiscovery string // how to treat packets that are too long
}

func (m *markFlags) addFlags(fs *pflag.FlagSet, link *cli.LinkFlags) {
	fs.VarP(cli.Int(&link.Mark.TTL, 0, 1, 255), "ttl", "t",
		"time to `live` of packets, or hop limit (default: the system's)")
	fs.VarP(cli.Int(&link.Mark.Class, 0, 0, 255), "tos", "Q",
		"traffic class of packets, a `number` in decimal or hex; its lower two bits are ECN's")
	fs.StringVarP(&m.mtuDiscovery, "mtu-discovery", "M", "do",
		"`how` path MTUs are found: do and want search for them, dont takes the link's MTU")
}

// applyTo applies the marks to the link.
func (m *markFlags) applyTo(link *cli.LinkFlags) error {
	if link.Mark.Class&3 != 0 {
		return cli.Usagef("-Q %d: the lower two bits are those of ECN, which SCTP negotiates: take a multiple of 4",
			link.Mark.Class)
	}
	switch m.mtuDiscovery {
	case "do", "want":
	case "dont":
		link.NoSearch = true
	default:
		return cli.Usagef("-M %s: it is one of do, want, dont", m.mtuDiscovery)
	}
	return nil
}

func (o *options) checkArgs(args []string) error {
	switch {
	case o.listen && (o.self || len(args) > 0):
		return cli.Usagef("-l serves: it takes no HOST and no --self; ping's preload is not offered, a short -i " +
			"sends ahead of the answers")
	case o.link.V4 && o.link.V6:
		return cli.Usagef("-4 and -6: it is one or the other")
	case len(o.pattern) > maxPattern:
		return cli.Usagef("-p: a pattern is 1 to %d bytes", maxPattern)
	case o.statAddr != "":
		if o.listen || o.self || len(args) > 0 {
			return cli.Usagef("--stat asks a tool that runs: it takes no HOST, no -l and no --self")
		}
		return nil
	case o.self && len(args) > 0:
		return cli.Usagef("--self takes no HOST")
	case !o.listen && !o.self && len(args) != 1:
		return cli.Usagef("one HOST is needed, or -l to serve, or --self")
	}
	if _, err := parseOperations(o.opName); err != nil {
		return err
	}
	if len(args) == 1 {
		o.host = args[0]
	}
	return nil
}

// runMode serves or pings. The exit code counts only if there is no error.
func (o *options) runMode(ctx context.Context, out io.Writer) (int, error) {
	if o.statAddr != "" {
		return exitOK, monitor.PrintStatus(ctx, o.statAddr, out)
	}
	if o.listen {
		return exitOK, o.runServer(ctx, out)
	}
	if o.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.deadline)
		defer cancel()
	}
	if o.self {
		return o.pingSelf(ctx, out)
	}
	addr, err := o.link.Resolve(o.host)
	if err != nil {
		return 0, err
	}
	dev, err := o.link.Device(false, deviceConfig(), &o.metrics)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	o.linkName = o.link.Name()
	return o.pingServer(ctx, dev, netip.AddrPortFrom(addr, o.port), out)
}

func (o *options) pingSelf(ctx context.Context, out io.Writer) (int, error) {
	self, err := o.link.Devices(deviceConfig(), &o.metrics)
	if err != nil {
		return 0, err
	}
	defer self.Close()
	l, err := self.Listen(o.port)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	go (&service{dev: self.Server, out: io.Discard}).acceptClients(serving, l)
	o.host, o.linkName = "self", self.Description
	return o.pingServer(ctx, self.Client, netip.AddrPortFrom(self.Addr, o.port), out)
}

func (o *options) runServer(ctx context.Context, out io.Writer) error {
	dev, err := o.link.Device(true, deviceConfig(), &o.metrics)
	if err != nil {
		return err
	}
	defer dev.Close()
	l, err := o.link.Listen(dev, o.port)
	if err != nil {
		return err
	}
	defer l.Close()
	if w := o.link.Warning(); w != "" {
		fmt.Fprintln(out, "warning: "+w)
	}
	fmt.Fprintf(out, "ddpping: serving on %s port %d over %s\n", o.link.Protocol(), o.port, o.link.Name())
	(&service{dev: dev, out: out, timestamps: o.timestamps, quiet: o.quiet}).acceptClients(ctx, l)
	return nil
}

// maxRTO is the longest time until a packet is sent again. Ping sends one a second in any case, so
// retransmissions are nearly as frequent. The end of an outage shows at once. A peer that is gone
// is given up after ten of them.
const maxRTO = 2 * time.Second

func deviceConfig() *rdma.Config {
	c := &rdma.Config{}
	c.SCTP.RTOMax = maxRTO
	return c
}
