// Ddpbench measures RDMA over SCTP the way perftest (ib_write_bw, ib_read_lat, ...) measures other
// transports, and prints what perftest prints.
//
//	ddpbench write             serve
//	ddpbench write HOST        measure RDMA Writes to a server; read and send likewise
//	ddpbench send HOST --lat   latency instead of bandwidth
//	ddpbench write --self      both ends in this process
//	ddpbench trace FILE        draw what --trace has written
//	ddpbench --sweep DIR       how the cost of a packet grows with everything, as plots
//
// A server follows the client's parameters, the verb included. Ddpbench exits 0 when all went well.
// It exits 1 when the content was wrong (--verify) or no server answered, and 2 on any other error.
package main

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"slices"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/sctp"
)

const (
	exitOK    = 0
	exitBad   = 1
	exitError = 2
)

// errContent ends a run whose data did not arrive as it was sent.
var errContent = errors.New("verification failed: the data did not arrive as it was sent")

func main() {
	out := &cli.Output{To: os.Stdout}
	code := runProgram(cli.UntilSignal(os.Interrupt, syscall.SIGTERM), os.Args[1:], out, os.Stderr)
	os.Exit(out.Exit(code, exitError, os.Stderr, "ddpbench"))
}

func runProgram(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseArgs(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		return o.runAndReport(ctx, stdout, stderr)
	}
	cli.ReportFailure(stdout, stderr, "ddpbench", slices.Contains(args, "--json"), err)
	return exitError
}

// runAndReport does what the command line asks for and returns the exit code.
func (o *options) runAndReport(ctx context.Context, stdout, stderr io.Writer) int {
	err := o.metrics.Open(stderr)
	if err == nil {
		defer o.metrics.Close()
		err = o.link.Trace.Open("ddpbench", o.traceVantage())
	}
	if err == nil {
		err = o.link.Encryption.Open("ddpbench", o.self, stderr)
	}
	written := true
	if err == nil {
		if err = o.runMode(ctx, stdout); err == nil {
			err = o.link.RecordingError()
		}
		written = o.link.Trace.Close("ddpbench", stderr)
	}
	if err != nil {
		cli.ReportFailure(stdout, stderr, "ddpbench", o.asJSON, err)
	} else if !written {
		return exitError
	}
	return exitCode(err)
}

// traceVantage is the end that a trace is seen from.
func (o *options) traceVantage() string {
	switch {
	case o.self:
		return "unknown"
	case o.host == "":
		return "server"
	}
	return "client"
}

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errContent), errors.Is(err, context.DeadlineExceeded), errors.Is(err, sctp.ErrInitTimeout):
		return exitBad
	}
	return exitError
}

func (o *options) runMode(ctx context.Context, out io.Writer) error {
	switch {
	case o.traceFile != "":
		return o.drawTrace(out)
	case o.sweepDir != "":
		return o.runSweeps(ctx, out)
	case o.self:
		return o.runSelf(ctx, out)
	case o.host == "":
		return o.runServer(ctx, out)
	}
	addr, err := o.link.Resolve(o.host)
	if err != nil {
		return err
	}
	dev, err := o.link.Device(false, nil, &o.metrics)
	if err != nil {
		return err
	}
	defer dev.Close()
	c := &client{options: o, dev: dev, serverAddr: netip.AddrPortFrom(addr, o.port),
		reporter: newReporter(o, out, o.link.Name())}
	return c.measureAllSizes(ctx)
}

func (o *options) runSelf(ctx context.Context, out io.Writer) error {
	self, err := o.link.Devices(nil, &o.metrics)
	if err != nil {
		return err
	}
	defer self.Close()
	port := o.port
	if !o.portGiven {
		port = 0 // any free port
	}
	l, err := self.Listen(port)
	if err != nil {
		return err
	}
	defer l.Close()
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	go newService(self.Server, newReporter(o, io.Discard, "")).acceptRequests(serving, l)
	c := &client{options: o, dev: self.Client, serverAddr: netip.AddrPortFrom(self.Addr, l.Port()),
		reporter: newReporter(o, out, self.Description)}
	return c.measureAllSizes(ctx)
}

func (o *options) runServer(ctx context.Context, out io.Writer) error {
	dev, err := o.link.Device(true, nil, &o.metrics)
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
		cli.Warn("ddpbench", w)
	}
	rep := newReporter(o, out, o.link.Name())
	rep.printServing()
	newService(dev, rep).acceptRequests(ctx, l)
	return nil
}
