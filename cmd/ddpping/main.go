// Ddpping checks that data can be placed into the memory of another host over SCTP, as ping checks
// that packets arrive.
//
//	ddpping -l             serve
//	ddpping HOST           ping a server
//	ddpping --self         both ends in this process
//
// It exits 0 when every reply came and had the right content, 1 when one did not, 2 on any other error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/spf13/pflag"

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
	metrics   cli.Metrics
	listen    bool
	self      bool
	count     int
	interval  float64
	size      int
	deadline  float64
	timeout   float64
	quiet     bool
	flood     bool
	stamp     bool
	numeric   bool
	op        string
	port      uint16
	json      bool
	host      string
	transport string // of the link, for people
}

func main() {
	os.Exit(run(cli.UntilSignal(os.Interrupt, syscall.SIGTERM), os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitWell
	}
	if err == nil {
		return o.execute(ctx, stdout, stderr)
	}
	cli.Complain(stderr, "ddpping", err)
	return exitError
}

// execute does what the command line asks for and returns the exit code.
func (o *options) execute(ctx context.Context, stdout, stderr io.Writer) int {
	err := o.metrics.Open(stderr)
	if err == nil {
		defer o.metrics.Close()
		var code int
		code, err = o.run(ctx, stdout)
		if err == nil {
			return code
		}
	}
	cli.Complain(stderr, "ddpping", err)
	if errors.Is(err, context.DeadlineExceeded) {
		return exitLost
	}
	return exitError
}

func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{}
	fs := cli.NewFlags("ddpping")
	fs.BoolVarP(&o.listen, "listen", "l", false, "serve pings")
	fs.IntVarP(&o.count, "count", "c", 0, "stop after `n` replies (default: at ^C)")
	fs.Float64VarP(&o.interval, "interval", "i", 1, "`seconds` between pings")
	fs.IntVarP(&o.size, "size", "s", 56, "data `octets` in each ping")
	fs.Float64VarP(&o.deadline, "deadline", "w", 0, "stop after so many `seconds`, whatever has come")
	fs.Float64VarP(&o.timeout, "timeout", "W", 10, "`seconds` to wait for a reply")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "print the summary only")
	fs.BoolVarP(&o.flood, "flood", "f", false, "ping as fast as replies come; a dot is a ping, a backspace a reply")
	fs.BoolVarP(&o.stamp, "timestamp", "D", false, "print the time before each line")
	fs.BoolVarP(&o.numeric, "numeric", "n", false, "print addresses, not names")
	fs.StringVar(&o.op, "op", "send", "how data travels: send, write, read or all")
	fs.Uint16VarP(&o.port, "port", "p", rdma.DefaultPort, "SCTP `port`")
	fs.BoolVar(&o.json, "json", false, "print JSON, an object a line")
	fs.BoolVar(&o.self, "self", false, "both ends in this process, over the best link that needs no set-up")
	o.metrics.Add(fs)
	o.link.Add(fs)
	const about = "Usage: ddpping [flags] HOST | -l | --self\n\nPings by placing data into the memory of another host over SCTP."
	if err := cli.Parse(fs, args, stdout, about); err != nil {
		return nil, err
	}
	if o.flood && !fs.Changed("interval") {
		o.interval = 0
	}
	return o, o.check(fs.Args())
}

func (o *options) check(args []string) error {
	switch {
	case o.listen && (o.self || len(args) > 0):
		return cli.Usagef("-l serves: it takes no HOST and no --self")
	case o.self && len(args) > 0:
		return cli.Usagef("--self takes no HOST")
	case !o.listen && !o.self && len(args) != 1:
		return cli.Usagef("one HOST is needed, or -l to serve, or --self")
	case o.size < 0 || o.size > maxSize:
		return cli.Usagef("-s %d: the size is 0 to %d octets", o.size, maxSize)
	case o.count < 0:
		return cli.Usagef("-c %d: the count cannot be negative", o.count)
	case o.interval < 0 || o.deadline < 0 || o.timeout <= 0:
		return cli.Usagef("-i, -w and -W are seconds and cannot be negative, -W not 0")
	case o.port == 0:
		return cli.Usagef("--port 0: an SCTP port is 1 to 65535")
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
	if o.listen {
		return exitWell, o.serve(ctx, out)
	}
	if o.deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, seconds(o.deadline))
		defer cancel()
	}
	if o.self {
		return o.pingSelf(ctx, out)
	}
	addr, err := o.link.Resolve(o.host)
	if err != nil {
		return 0, err
	}
	dev, err := o.link.Device(false, nil, &o.metrics)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	o.transport = o.link.Name()
	return o.ping(ctx, dev, netip.AddrPortFrom(addr, o.port), out)
}

func (o *options) pingSelf(ctx context.Context, out io.Writer) (int, error) {
	self, err := o.link.Devices(nil, &o.metrics)
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
	dev, err := o.link.Device(true, nil, &o.metrics)
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

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
