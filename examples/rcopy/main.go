// Rcopy copies a file to another host by RDMA Write. The server registers the new file as memory.
// What arrives goes straight from the packet to its place there.
//
//	rcopy -l --dir DIR          serve: store what comes into DIR
//	rcopy FILE HOST[:NAME]      copy FILE there, under NAME or its own name
//
// A file gets its name in DIR, in place of an older one, only when it is complete. It must have the
// SHA-256 that the client found, and be on the disk. If anything goes wrong before, nothing is left
// behind. (A server that is killed outright leaves the temporary file, whose name begins with
// .rcopy-.)
//
// Rcopy exits 0 when the file is stored, and 1 when the copy failed. It exits 2 when it could not
// even begin: a mistake in the command line, a file that cannot be read, or no link.
package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
)

const (
	exitWell   = 0
	exitFailed = 1
	exitError  = 2
)

// options is the command line.
type options struct {
	link     cli.LinkFlags
	listen   bool
	dir      string
	maxSize  uint64
	share    uint64        // percent
	timeout  time.Duration // without anything moving
	port     uint16
	quiet    bool
	file     string
	host     string
	name     string // on the server
	stdout   io.Writer
	terminal *os.File // to show the progress on, nil for none
}

func main() {
	ctx := cli.UntilSignal(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	var terminal *os.File
	if term.IsTerminal(int(os.Stderr.Fd())) {
		terminal = os.Stderr
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, terminal))
}

// failedError is a copy that failed after it had begun.
type failedError struct{ error }

func (e failedError) Unwrap() error { return e.error }

func run(ctx context.Context, args []string, stdout, stderr io.Writer, terminal *os.File) int {
	o, err := parse(args, stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return exitWell
	}
	if err == nil {
		o.stdout, o.terminal = stdout, terminal
		err = o.link.Trace.Open("rcopy", o.vantage())
	}
	if err == nil {
		err = o.link.Encryption.Open("rcopy", false, stderr)
	}
	if err == nil {
		if o.listen {
			err = o.serve(ctx)
		} else {
			err = o.copy(ctx)
		}
		if err == nil {
			err = o.link.RecordingError()
		}
		if written := o.link.Trace.Close("rcopy", stderr); err == nil {
			if !written {
				return exitError
			}
			return exitWell
		}
	}
	cli.PrintError(stderr, "rcopy", err)
	var failed failedError
	if errors.As(err, &failed) {
		return exitFailed
	}
	return exitError
}

// vantage is the end that a trace is seen from.
func (o *options) vantage() string {
	if o.listen {
		return "server"
	}
	return "client"
}

func parse(args []string, stdout io.Writer) (*options, error) {
	o := &options{}
	fs := cli.NewFlags("rcopy")
	o.flags(fs)
	const about = "Usage: rcopy [flags] FILE HOST[:NAME] | -l\n\n" +
		"Copies a file to another host by RDMA Write over SCTP, or TCP."
	if err := cli.Parse(fs, args, stdout, about); err != nil {
		return nil, err
	}
	args = fs.Args()
	switch {
	case o.listen && len(args) > 0:
		return nil, cli.Usagef("-l serves: it takes no FILE and no HOST")
	case o.listen:
		return o, nil
	case len(args) != 2:
		return nil, cli.Usagef("FILE and HOST are needed, or -l to serve")
	}
	o.file = args[0]
	o.host, o.name = splitTarget(args[1])
	if o.name == "" {
		o.name = filepath.Base(o.file)
	}
	if err := checkName(o.name); err != nil {
		return nil, cli.Usagef("%q: %v", o.name, err)
	}
	return o, nil
}

// flags adds the flags.
func (o *options) flags(fs *pflag.FlagSet) {
	fs.BoolVarP(&o.listen, "listen", "l", false, "serve: store what comes")
	fs.StringVar(&o.dir, "dir", ".", "with -l, the `directory` to store into")
	fs.Var(cli.Octets(&o.maxSize, 64<<30, 0, 1<<62), "max-size",
		"with -l, the most `octets` of one file; K, M, G or T may follow")
	fs.Var(cli.Int(&o.share, 50, 1, 100), "share",
		"with -l, the most `percent` of the free space that the copies of one client may reserve at a time")
	fs.VarP(cli.Seconds(&o.timeout, 30*time.Second, time.Millisecond, 1e6*time.Second), "timeout", "w",
		"give up when nothing has moved for so many `seconds`")
	fs.BoolVarP(&o.quiet, "quiet", "q", false, "print errors only")
	fs.VarP(cli.Port(&o.port, rdma.DefaultPort), "port", "p", "`port` of SCTP, or of TCP")
	o.link.Add(fs)
}

// splitTarget splits HOST[:NAME]. An IPv6 address with a name stands in brackets.
func splitTarget(s string) (host, name string) {
	if _, err := netip.ParseAddr(s); err == nil {
		return s, ""
	}
	if inner, ok := strings.CutPrefix(s, "["); ok {
		host, name, _ = strings.Cut(inner, "]")
		return host, strings.TrimPrefix(name, ":")
	}
	host, name, _ = strings.Cut(s, ":")
	return host, name
}

// device opens the link and a device over it.
func (o *options) device() (*rdma.Device, error) {
	cfg := &rdma.Config{}
	// HEARTBEATs alone show whether the other side is there. That matters while the server's disk
	// works, and when a client is silent.
	cfg.SCTP.HeartbeatInterval = 5 * time.Second
	// A lost packet that nothing follows costs a retransmission timeout. It is not the full second
	// of RFC 9260 section 16, which suits signalling. The other side's delay of SACKs must be well
	// below it.
	cfg.SCTP.RTOMin, cfg.SCTP.SackDelay = 100*time.Millisecond, 20*time.Millisecond
	return o.link.Device(o.listen, cfg, nil)
}

func (o *options) say(format string, args ...any) {
	if !o.quiet {
		fmt.Fprintln(o.stdout, cli.Printable(fmt.Sprintf(format, args...)))
	}
}

func (o *options) serve(ctx context.Context) error {
	root, err := os.OpenRoot(o.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	dev, err := o.device()
	if err != nil {
		return err
	}
	defer dev.Close()
	l, err := o.link.Listen(dev, o.port)
	if err != nil {
		return err
	}
	if w := o.link.Warning(); w != "" {
		o.say("warning: %s", w)
	}
	o.say("rcopy: storing into %s from %s port %d over %s", o.dir, o.link.Protocol(), o.port, o.link.Name())
	s := &server{dev: dev, root: root, maxSize: o.maxSize, patience: o.timeout, disk: newDisk(o.share), say: o.say}
	s.accept(ctx, l)
	return nil
}

func (o *options) copy(ctx context.Context) error {
	f, err := os.Open(o.file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return cli.Usagef("%s is not a regular file, whose size is known beforehand", o.file)
	}
	addr, err := o.link.Resolve(o.host)
	if err != nil {
		return err
	}
	dev, err := o.device()
	if err != nil {
		return err
	}
	defer dev.Close()
	u := &upload{offer: offer{uint64(info.Size()), o.name}, src: f, patience: o.timeout}
	done := o.show(u)
	began := time.Now()
	sum, err := u.run(ctx, dev, netip.AddrPortFrom(addr, o.port))
	done()
	if err != nil {
		return failedError{err}
	}
	o.say("%s: %s%s, SHA-256 %s", o.name, rate(u.size, time.Since(began)), again(u.stats), hex.EncodeToString(sum))
	return nil
}

// show shows the progress of u if the output is a terminal.
func (o *options) show(u *upload) (done func()) {
	if o.terminal == nil || o.quiet {
		u.progress = func(int) {}
		return func() {}
	}
	p := &progress{w: o.terminal, size: u.size, began: time.Now()}
	u.progress = p.add
	return p.end
}

// rate formats how much was copied, how long it took, and so how fast it was.
func rate(size uint64, took time.Duration) string {
	return fmt.Sprintf("%d octets in %.3f s, %.1f MB/s", size, took.Seconds(), float64(size)/1e6/took.Seconds())
}

// again formats what losses have cost, if there were any.
func again(s rdma.AssocStats) string {
	if s.Retransmits == 0 {
		return ""
	}
	return fmt.Sprintf(", %d of %d segments sent again after %d fast retransmits and %d timeouts", s.Retransmits,
		s.DataOut, s.FastRetransmits, s.Timeouts)
}
