// Ddpping checks that data can be placed into the memory of another host over SCTP, as ping checks
// that packets arrive.
//
//	ddpping -l             serve
//	ddpping HOST           ping a server
//	ddpping --self         both ends in this process
//
// It has the flags of ping(8), and says of those that make no sense here why (docs/tools.md). Nothing but the count, the deadline or ^C ends it: it
// goes on while nothing answers, and connects again when the server has come back.
//
// As ping does, it exits 0 when replies came, 1 when none did, or fewer than -c asked for before the deadline -w, and 2 on any other error; also 1
// when one had the wrong content.
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
	exitWell  = 0
	exitLost  = 1
	exitError = 2
)

// options is the command line.
type options struct {
	link      cli.LinkFlags
	metrics   monitor.Metrics
	listen    bool
	self      bool
	count     int // 0: without end
	interval  time.Duration
	size      int
	deadline  time.Duration
	timeout   time.Duration
	quiet     bool
	flood     bool
	adaptive  bool
	eager     bool // the next ping goes when this one is answered
	audible   bool
	report    bool
	precise   bool
	verbose   bool
	pattern   []byte
	stamp     bool
	numeric   bool
	stat      string
	op        string
	port      uint16
	json      bool
	host      string
	transport string // of the link, for people
}

func main() {
	out := &cli.Output{To: os.Stdout}
	code := run(cli.UntilSignal(os.Interrupt, syscall.SIGTERM), os.Args[1:], out, os.Stderr)
	os.Exit(out.Exit(code, exitError, os.Stderr, "ddpping"))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitWell
	}
	if err == nil {
		return o.execute(ctx, stdout, stderr)
	}
	cli.Fail(stdout, stderr, "ddpping", slices.Contains(args, "--json"), err)
	return exitError
}

// execute does what the command line asks for and returns the exit code.
func (o *options) execute(ctx context.Context, stdout, stderr io.Writer) int {
	err := o.metrics.Open(stderr)
	if err == nil {
		defer o.metrics.Close()
		err = o.link.Trace.Open("ddpping", o.vantage())
	}
	if err == nil {
		var code int
		if code, err = o.run(ctx, stdout); err == nil {
			err = o.link.Recorded()
		}
		if written := o.link.Trace.Close("ddpping", stderr); err == nil {
			if !written {
				return exitError
			}
			return code
		}
	}
	cli.Fail(stdout, stderr, "ddpping", o.json, err)
	return exitError
}

// vantage is from where a trace sees what happens.
func (o *options) vantage() string {
	switch {
	case o.self:
		return "unknown"
	case o.listen:
		return "server"
	}
	return "client"
}

// refused are the flags of ping(8) that make no sense here.
var refused = []cli.Refused{
	{Short: "b", Why: "an association has one peer, so there is no broadcast"},
	{Short: "C", Why: "there is no socket to connect: the session is connected anyway"},
	{Short: "d", Why: "there is no socket to debug: --pcap FILE writes every packet down"},
	{Short: "e", Why: "pings of different clients cannot be mixed up: each has a session of its own"},
	{Short: "F", Why: "the flow label of IPv6 is always 0"},
	{Short: "L", Why: "an association has one peer, so there is no multicast to loop back"},
	{Short: "m", Why: "packets are not marked for the firewall: -I chooses the address or interface that they leave by"},
	{Short: "N", Why: "node information is a matter of ICMPv6"},
	{Short: "r", Why: "the routing table decides: -I chooses the address or interface that packets leave by"},
	{Short: "R", Why: "routers drop packets with the option to record their route: traceroute shows it"},
	{Short: "S", Why: "the buffers follow what the path holds"},
	{Short: "T", Why: "routers drop packets with the timestamp option"},
	{Short: "U", Why: "every time here is from user to user already: there is no kernel in between that could take another"},
}

func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{}
	fs := cli.NewFlags("ddpping")
	var mark marking
	check := o.flags(fs, &mark)
	fs.StringVar(&o.stat, "stat", "", "print what the tool with --metrics `host:port` is doing, and exit")
	fs.BoolVar(&o.json, "json", false, "print JSON, an object a line")
	fs.BoolVar(&o.self, "self", false, "both ends in this process, over the best link that needs no set-up")
	o.metrics.Add(fs)
	o.link.Add(fs)
	const about = "Usage: ddpping [flags] HOST | -l | --self | --stat ADDRESS\n\nPings by placing data into the memory of another host over SCTP."
	if err := cli.Parse(fs, args, stdout, about); err != nil {
		return nil, err
	}
	if err := cmp.Or(check(), mark.apply(&o.link)); err != nil {
		return nil, err
	}
	if o.flood && !fs.Changed("interval") {
		o.interval = 0
	}
	o.eager = o.adaptive || o.interval == 0
	return o, o.check(fs.Args())
}

// maxTime is the longest time that a flag takes: thirty years, which no calculation with times overflows by.
const maxTime = 1e9 * time.Second

// flags adds the flags, and those that are refused: check says so.
func (o *options) flags(fs *pflag.FlagSet, mark *marking) (check func() error) {
	fs.BoolVarP(&o.listen, "listen", "l", false, "serve pings. There is no preload: a short -i sends pings ahead of the answers")
	fs.VarP(cli.Int(&o.count, 0, 1, math.MaxInt32), "count", "c", "stop after `n` pings; with -w, after n replies (default: at ^C)")
	fs.VarP(cli.Seconds(&o.interval, time.Second, time.Microsecond, maxTime).OrZero(), "interval", "i", "`seconds` between pings; 0: as fast as replies come")
	fs.VarP(cli.Octets(&o.size, 56, 0, maxSize), "size", "s", "data `bytes` in each ping, K and M as suffixes")
	fs.VarP(cli.Seconds(&o.deadline, 0, time.Millisecond, maxTime).OrZero(), "deadline", "w", "stop after so many `seconds`, whatever has come")
	fs.VarP(cli.Seconds(&o.timeout, 10*time.Second, time.Millisecond, maxTime), "timeout", "W", "`seconds` to wait for the last replies, and for each attempt to connect")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "print the summary only")
	fs.BoolVarP(&o.flood, "flood", "f", false, "ping as fast as replies come, or a hundred times a second; a dot is a ping, a backspace a reply")
	fs.BoolVarP(&o.adaptive, "adaptive", "A", false, "send the next ping when a reply has come, and after -i at the latest")
	fs.BoolVarP(&o.report, "outstanding", "O", false, "before each ping name those that are not answered yet, and not only those of a second ago")
	fs.BoolVarP(&o.stamp, "timestamp", "D", false, "print the time before each line")
	fs.BoolVarP(&o.numeric, "numeric", "n", false, "print addresses, not names")
	fs.BoolVarP(&o.audible, "audible", "a", false, "ring the bell at each reply")
	fs.BoolVarP(&o.precise, "precise", "3", false, "print times to the microsecond, however long they are")
	fs.BoolVarP(&o.verbose, "verbose", "v", false, "show the path in the summary also where there is one only")
	fs.BoolVarP(&o.link.V4, "ipv4", "4", false, "use IPv4")
	fs.BoolVarP(&o.link.V6, "ipv6", "6", false, "use IPv6")
	fs.StringVarP(&o.link.Local, "interface", "I", "", "send from this `address` or interface, as --local")
	fs.BoolP("sticky", "B", false, "keep the source address of the beginning, as an association does anyway")
	fs.BoolP("names", "H", false, "look names up, as is done without -n anyway")
	mark.add(fs, &o.link)
	fs.BytesHexVarP(&o.pattern, "pattern", "p", nil, "fill pings with these 1 to 16 bytes in `hex` instead of what differs from ping to ping")
	fs.StringVar(&o.op, "op", "send", "how data travels: send, write, read or all")
	fs.Var(cli.Port(&o.port, rdma.DefaultPort), "port", "SCTP `port`")
	return cli.Refuse(fs, refused)
}

// marking is what the command line wants in IP headers.
type marking struct {
	discard string // what becomes of packets that are too long
}

func (m *marking) add(fs *pflag.FlagSet, link *cli.LinkFlags) {
	fs.VarP(cli.Int(&link.Mark.TTL, 0, 1, 255), "ttl", "t", "time to `live` of packets, or hop limit (default: the system's)")
	fs.VarP(cli.Int(&link.Mark.Class, 0, 0, 255), "tos", "Q", "traffic class of packets, a `number` in decimal or hex; its lower two bits are ECN's")
	fs.StringVarP(&m.discard, "mtu-discovery", "M", "do", "`how` long packets may be. do, want: search for the MTU of each path; dont: take what the link says")
}

// apply sets what was asked for.
func (m *marking) apply(link *cli.LinkFlags) error {
	if link.Mark.Class&3 != 0 {
		return cli.Usagef("-Q %d: the lower two bits are those of ECN, which SCTP negotiates: take a multiple of 4", link.Mark.Class)
	}
	switch m.discard {
	case "do", "want":
	case "dont":
		link.NoSearch = true
	default:
		return cli.Usagef("-M %s: it is one of do, want, dont", m.discard)
	}
	return nil
}

func (o *options) check(args []string) error {
	switch {
	case o.listen && (o.self || len(args) > 0):
		return cli.Usagef("-l serves: it takes no HOST and no --self; ping's preload is not offered, a short -i sends ahead of the answers")
	case o.link.V4 && o.link.V6:
		return cli.Usagef("-4 and -6: it is one or the other")
	case len(o.pattern) > maxPattern:
		return cli.Usagef("-p: a pattern is 1 to %d bytes", maxPattern)
	case o.stat != "":
		if o.listen || o.self || len(args) > 0 {
			return cli.Usagef("--stat asks a tool that runs: it takes no HOST, no -l and no --self")
		}
		return nil
	case o.self && len(args) > 0:
		return cli.Usagef("--self takes no HOST")
	case !o.listen && !o.self && len(args) != 1:
		return cli.Usagef("one HOST is needed, or -l to serve, or --self")
	}
	if _, err := operations(o.op); err != nil {
		return err
	}
	if len(args) == 1 {
		o.host = args[0]
	}
	return nil
}

// run serves or pings. The exit code counts only without an error.
func (o *options) run(ctx context.Context, out io.Writer) (int, error) {
	if o.stat != "" {
		return exitWell, monitor.Stat(ctx, o.stat, out)
	}
	if o.listen {
		return exitWell, o.serve(ctx, out)
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
	o.transport = o.link.Name()
	return o.ping(ctx, dev, netip.AddrPortFrom(addr, o.port), out)
}

func (o *options) pingSelf(ctx context.Context, out io.Writer) (int, error) {
	self, err := o.link.Devices(deviceConfig(), &o.metrics)
	if err != nil {
		return 0, err
	}
	defer self.Close()
	l, err := self.Server.Listen(o.port)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	go (&service{dev: self.Server, out: io.Discard}).accept(serving, l)
	o.host, o.transport = "self", self.About
	return o.ping(ctx, self.Client, netip.AddrPortFrom(self.Addr, o.port), out)
}

func (o *options) serve(ctx context.Context, out io.Writer) error {
	dev, err := o.link.Device(true, deviceConfig(), &o.metrics)
	if err != nil {
		return err
	}
	defer dev.Close()
	l, err := dev.Listen(o.port)
	if err != nil {
		return err
	}
	defer l.Close()
	if w := o.link.Warning(); w != "" {
		fmt.Fprintln(out, "warning: "+w)
	}
	fmt.Fprintf(out, "ddpping: serving on SCTP port %d over %s\n", o.port, o.link.Name())
	(&service{dev: dev, out: out, stamp: o.stamp, quiet: o.quiet}).accept(ctx, l)
	return nil
}

// longestRTO is how long a packet waits at most until it is sent again. Ping sends one a second whatever comes; so what was lost goes out again
// nearly as often, the end of an outage shows at once, and a peer that is gone is given up after ten of them.
const longestRTO = 2 * time.Second

func deviceConfig() *rdma.Config {
	c := &rdma.Config{}
	c.SCTP.RTOMax = longestRTO
	return c
}
