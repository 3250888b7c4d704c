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
// A server follows the client's parameters, the verb included. Ddpbench exits 0 when all went well, 1 when
// the content was wrong (--verify) or no server answered, 2 on any other error.
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
	exitWell  = 0
	exitBad   = 1
	exitError = 2
)

// errContent ends a run whose data did not arrive as it was sent.
var errContent = errors.New("verification failed: the data did not arrive as it was sent")

func main() {
	out := &cli.Output{To: os.Stdout}
	code := run(cli.UntilSignal(os.Interrupt, syscall.SIGTERM), os.Args[1:], out, os.Stderr)
	os.Exit(out.Exit(code, exitError, os.Stderr, "ddpbench"))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitWell
	}
	if err == nil {
		return o.execute(ctx, stdout, stderr)
	}
	cli.Fail(stdout, stderr, "ddpbench", slices.Contains(args, "--json"), err)
	return exitError
}

// execute does what the command line asks for and returns the exit code.
func (o *options) execute(ctx context.Context, stdout, stderr io.Writer) int {
	err := o.metrics.Open(stderr)
	if err == nil {
		defer o.metrics.Close()
		err = o.link.Trace.Open("ddpbench", o.vantage())
	}
	written := true
	if err == nil {
		if err = o.run(ctx, stdout); err == nil {
			err = o.link.Recorded()
		}
		written = o.link.Trace.Close("ddpbench", stderr)
	}
	if err != nil {
		cli.Fail(stdout, stderr, "ddpbench", o.json, err)
	} else if !written {
		return exitError
	}
	return exitCode(err)
}

// vantage is from where a trace sees what happens.
func (o *options) vantage() string {
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
		return exitWell
	case errors.Is(err, errContent), errors.Is(err, context.DeadlineExceeded), errors.Is(err, sctp.ErrInitTimeout):
		return exitBad
	}
	return exitError
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	switch {
	case o.trace != "":
		return o.drawTrace(out)
	case o.sweep != "":
		return o.sweepAll(ctx, out)
	case o.self:
		return o.runSelf(ctx, out)
	case o.host == "":
		return o.serve(ctx, out)
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
	c := &client{options: o, dev: dev, to: netip.AddrPortFrom(addr, o.port), rep: newReporter(o, out, o.link.Name())}
	return c.run(ctx)
}

func (o *options) runSelf(ctx context.Context, out io.Writer) error {
	self, err := o.link.Devices(nil, &o.metrics)
	if err != nil {
		return err
	}
	defer self.Close()
	port := o.port
	if !o.ported {
		port = 0 // whichever is free
	}
	l, err := self.Server.Listen(port)
	if err != nil {
		return err
	}
	defer l.Close()
	serving, stop := context.WithCancel(context.Background())
	defer stop()
	go newService(self.Server, newReporter(o, io.Discard, "")).accept(serving, l)
	c := &client{options: o, dev: self.Client, to: netip.AddrPortFrom(self.Addr, l.Port()), rep: newReporter(o, out, self.About)}
	return c.run(ctx)
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
		cli.Warn("ddpbench", w)
	}
	rep := newReporter(o, out, o.link.Name())
	rep.serving()
	newService(dev, rep).accept(ctx, l)
	return nil
}
