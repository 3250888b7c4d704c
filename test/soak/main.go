//go:build linux

// Command soak lets two hosts work on each other for a long time while everything goes wrong. It
// compares what each end has written down of every message. It needs root, iproute2 and nftables.
//
//	soak [-link raw|udp|conn|both] [-duration 2m] [-rate 500] [-cycle 20s] [-loss 1] [-seed N]
//
// It makes two network namespaces with two cables between them that lose packets. It runs clients
// in one and servers in the other, pulls cables, changes MTUs, kills processes with kill -9, and
// starts them again. In each namespace one process lives as long as the run, and its memory has to
// stay flat. Another one is killed again and again.
//
// It exits with 1 if one message was lost, wrong, delivered twice or out of order. It does so too
// if a session has failed that no kill explains, or if memory, goroutines or descriptors grow.
package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"golang.org/x/sys/unix"
)

// options are the command line.
type options struct {
	link     string
	duration time.Duration
	cycle    time.Duration
	rate     float64
	loss     float64
	seed     uint64

	encrypted bool
}

func main() {
	var o options
	text := flag.String("child", "", "run as a process of a soak, by these `orders`")
	flag.StringVar(&o.link, "link", "both", "`link`: raw, udp, both at the same time, or conn, a socket of net")
	flag.Var(cli.Duration(&o.duration, 2*time.Minute, time.Second, cli.Year), "duration", "how long")
	flag.Var(cli.Duration(&o.cycle, 20*time.Second, time.Second, 24*time.Hour), "cycle",
		"from one rest, where everything is compared, to the next")
	flag.Var(cli.Float(&o.rate, 500, 0.001, 1e6), "rate",
		"operations a second of each client, of which there are two on each link")
	flag.Var(cli.Float(&o.loss, 1, 0, 100), "loss", "`percent` of the packets that are lost")
	flag.Var(cli.Int(&o.seed, uint64(time.Now().UnixNano()), 0, math.MaxUint64), "seed", "of the faults and the load")
	flag.BoolVar(&o.encrypted, "encrypted", false, "encrypt all, with keys for restarts after kills")
	flag.Parse()
	if *text != "" {
		if err := serveOrders(*text); err != nil {
			exitWith(err)
		}
		return
	}
	links := []string{o.link}
	switch o.link {
	case "both":
		links = []string{"raw", "udp"}
	case "raw", "udp", "conn":
	default:
		exitWith(fmt.Errorf("-link %s: it is raw, udp, conn or both", o.link))
	}
	if err := checkPrerequisites(); err != nil {
		exitWith(err)
	}
	// All processes inherit it. Huge pages would make the resident set go up and down by 2 MB.
	if err := unix.Prctl(unix.PR_SET_THP_DISABLE, 1, 0, 0, 0); err != nil {
		exitWith(fmt.Errorf("transparent huge pages: %w", err))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("soak over %v for %v: %g%% loss, %g operations a second and client, seed %d\n", links, o.duration,
		o.loss, o.rate, o.seed)
	runs := make([]*run, len(links))
	var all sync.WaitGroup
	for i, link := range links {
		runs[i] = newRun(&o, link)
		all.Go(func() { runs[i].runCycles(ctx) })
	}
	all.Wait()
	if !printSummary(runs) {
		os.Exit(1)
	}
}

func exitWith(err error) {
	fmt.Fprintln(os.Stderr, "soak:", err)
	os.Exit(2)
}

// checkPrerequisites tells what is missing here.
func checkPrerequisites() error {
	if os.Getuid() != 0 {
		return fmt.Errorf("network namespaces need root")
	}
	for _, c := range []string{"ip -V", "nft --version"} {
		if err := runCommand("%s", c); err != nil {
			return fmt.Errorf("install iproute2 and nftables: %w", err)
		}
	}
	if _, err := os.Stat("/proc/net/sctp"); err == nil {
		return fmt.Errorf("this kernel has an SCTP of its own, which would abort our associations: rmmod sctp")
	}
	return nil
}
