// Aim attacks an SCTP implementation over a real link with the peer of test/attack/attacker, and
// tells when it dies or hangs:
//
//	go run ./fuzz/aim --link udp 127.0.0.1:5000
//
// The port is the SCTP port. The other side may be any implementation that accepts associations
// there. What is found is printed with the seed, the last packets are written to a pcapng file, and
// the exit status is 1.
//
// It attacks loopback addresses, and others from within a network namespace of its own. Anything
// else is refused unless --i-own-this-host says that it is yours to break.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/rddp-go/rddp/internal/cli"
)

type options struct {
	link     cli.LinkFlags
	target   netip.AddrPort // the address, and the SCTP port
	seed     uint64
	duration time.Duration
	life     int // packets of one attacker
	rate     int // packets a second, 0: as fast as the other side answers
	rdma     bool
	careful  bool
	mine     bool
	out      string // file of the last packets
	patience time.Duration
}

const about = `Usage: aim [flags] HOST:PORT

Attack the SCTP implementation that listens on that SCTP port, and tell when it dies or hangs.`

func parseOptions(args []string, stdout io.Writer) (*options, error) {
	o := new(options)
	fs := cli.NewFlags("aim")
	fs.StringVar(&o.link.Kind, "link", "udp", "how packets travel: udp (RFC 6951) or raw (needs CAP_NET_RAW)")
	fs.StringVar(&o.link.Local, "local", "", "local `address`")
	fs.Var(cli.Port(&o.link.EncapPort, 9899), "encap-port", "the other side's UDP encapsulation `port`")
	fs.Var(cli.Int(&o.seed, 1, 0, math.MaxUint64), "seed",
		"of what is done; over a real link the answers' timing plays a part too")
	fs.Var(cli.Duration(&o.duration, time.Minute, time.Millisecond, cli.Year), "duration", "how long")
	fs.Var(cli.Int(&o.life, 3000, 1, 1<<30), "life",
		"`packets` of one attacker, before the next takes another port and seed")
	fs.Var(cli.Int(&o.rate, 0, 0, 1_000_000), "rate",
		"`packets` a second at most (default: as fast as the other side answers)")
	fs.BoolVar(&o.rdma, "rdma", false, "DDP sessions and RDMA messages too (RFC 5043)")
	fs.BoolVar(&o.careful, "careful", false, "leave out what most implementations end the association for")
	fs.Var(cli.Duration(&o.patience, 3*time.Second, time.Millisecond, time.Hour), "patience",
		"what does not answer an INIT for so long hangs")
	fs.StringVar(&o.out, "out", "aim.pcapng", "`file` for the last packets, when something is found")
	fs.BoolVar(&o.mine, "i-own-this-host", false,
		"attack an address that is neither loopback nor in a namespace of one's own")
	if err := cli.Parse(fs, args, stdout, about); err != nil {
		return nil, err
	}
	if fs.NArg() != 1 {
		return nil, cli.Usagef("one target, such as 127.0.0.1:5000, is needed")
	}
	t, err := netip.ParseAddrPort(fs.Arg(0))
	switch {
	case err != nil || t.Port() == 0:
		return nil, cli.Usagef("%s is not an IP address with an SCTP port, such as 127.0.0.1:5000",
			cli.Printable(fs.Arg(0)))
	case o.link.Kind != "udp" && o.link.Kind != "raw":
		return nil, cli.Usagef("--link %s: it is udp or raw", cli.Printable(o.link.Kind))
	}
	if o.target = netip.AddrPortFrom(t.Addr().Unmap(), t.Port()); !o.mine &&
		!isAllowed(o.target.Addr(), ownNamespace()) {
		return nil, cli.Usagef("%s is neither a loopback address nor in a network namespace of its own: attack "+
			"only what is yours to break, and say so by --i-own-this-host", t.Addr())
	}
	return o, nil
}

// isAllowed says whether an address may be attacked without being asked for by name.
func isAllowed(a netip.Addr, ownNamespace bool) bool {
	return a.IsLoopback() || ownNamespace && (a.IsPrivate() || a.IsLinkLocalUnicast())
}

func main() {
	ctx := cli.UntilSignal(os.Interrupt, syscall.SIGTERM)
	o, err := parseOptions(os.Args[1:], os.Stdout)
	if errors.Is(err, pflag.ErrHelp) {
		return
	}
	found := false
	if err == nil {
		found, err = runAttack(ctx, o, os.Stdout)
	}
	switch {
	case err != nil:
		cli.PrintError(os.Stderr, "aim", err)
		os.Exit(2)
	case found:
		os.Exit(1)
	}
}

func runAttack(ctx context.Context, o *options, stdout io.Writer) (found bool, err error) {
	link, err := o.link.Open(false)
	if err != nil {
		return false, err
	}
	g := newGun(link, o)
	defer g.closeLink()
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	fmt.Fprintf(stdout, "aim at %s over %s, seed %d, for %v\n", o.target, o.link.Kind, o.seed, o.duration)
	if !g.checkAlive(ctx) {
		return false, fmt.Errorf("%s does not answer an INIT: is there a listener, and is --link right? %w", o.target,
			errors.Join(g.refused, net.ErrClosed))
	}
	return g.attackLoop(ctx, stdout)
}
