//go:build linux

// Command hostile attacks servers of this module over the wire and measures what that costs them.
//
//	hostile [-6] [--run regexp] [--short] [--json] [--write-docs file]
//	hostile [-6] --crowd n
//
// It makes three network namespaces. One is for the victim, a program on packages sctp and rdma
// over the raw link and over UDP. One is for an honest client of it. One is for the attacker, which
// sends raw packets under any source address it likes. Each row of the table is one attack of RFC
// 5062 or RFC 5042, or another abuse of the protocols. With -6 all of it is over IPv6. It needs
// root. The exit code is 1 when a verdict is a failure.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"runtime"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
)

// Roles in which this program starts itself.
const (
	roleVictim = "victim"
	roleFriend = "friend"
)

func main() {
	var (
		role  = flag.String("role", "", "")
		link  = flag.String("link", "raw", "")
		six   = flag.Bool("6", false, "attack over IPv6")
		o     = options{}
		c     = crowdOptions{}
		match = flag.String("run", "", "only attacks whose name matches this regexp")
		short = flag.Bool("short", false,
			"fewer packets, and no judgement of times: reactions, survival, memory and counted steps")
		js   = flag.Bool("json", false, "write JSON")
		docs = flag.String("write-docs", "", "write the table into this document too")
	)
	flag.Var(cli.Int(&o.rate, 2000, 1, 1_000_000), "rate", "packets a second of the attacker")
	flag.Var(cli.Duration(&o.quiet, 500*time.Millisecond, time.Millisecond, time.Hour), "quiet",
		"as many packets as go in so much time make the attack while nothing else is done")
	flag.Var(cli.Duration(&o.window, 200*time.Millisecond, time.Millisecond, time.Hour), "window",
		"how long each throughput window is")
	flag.Var(cli.Int(&o.rounds, 3, 0, 10_000), "rounds", "throughput windows of each kind")
	flag.BoolVar(&o.verbose, "v", false, "tell which attack runs")
	flag.Var(cli.Int(&c.size, 0, 0, 100_000), "crowd",
		"instead of single attacks, measure a bystander beside so many hostile associations at once")
	flag.Var(cli.Int(&c.memory, 0, 0, 1<<40), "memory", "MaxMemory of the crowd's victim, octets")
	flag.Var(cli.Duration(&c.window, 4*time.Second, time.Millisecond, time.Hour), "crowd-window",
		"how long each crowd sends")
	flag.Var(cli.Int(&c.rounds, 4, 1, 10_000), "crowd-rounds", "crowds of each kind")
	flag.Var(cli.Int(&c.seed, 1, 0, math.MaxUint64), "seed", "what the crowd's attackers do")
	flag.Parse()
	var err error
	switch *role {
	case roleVictim:
		err = runVictim(familyOf(*six), *link, c.memory)
	case roleFriend:
		err = runFriend(familyOf(*six), *link)
	default:
		if c.size > 0 {
			err = besideCrowds(familyOf(*six), c)
			break
		}
		if *six && *docs != "" {
			err = errors.New("documents have the table of IPv4")
			break
		}
		if *short {
			o.quiet, o.rounds = 100*time.Millisecond, 0
		}
		var r *report
		if r, err = attackAll(familyOf(*six), o, *match); err != nil {
			break
		}
		if *js {
			err = r.writeJSON(os.Stdout)
		} else {
			r.writeText(os.Stdout)
		}
		if err == nil && *docs != "" {
			err = r.writeDocs(*docs)
		}
		if err == nil && r.numFailed() > 0 {
			os.Exit(1)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(2)
	}
}

// allAttacks are all rows.
func allAttacks(f *family) (list []attack) {
	for _, g := range []struct {
		flow string
		list []attack
	}{
		{flowSCTP, blindAttacks(f)}, {flowSCTP, setupAttacks(f)}, {flowSCTP, bombAttacks(f)}, {flowSCTP, dataAttacks()},
		{flowSCTP, peerAttacks()}, {flowRDMA, rdmaAttacks()}, {flowRDMA, sessionAttacks()}, {flowRDMA, reachAttacks()}, {flowSCTP, lateAttacks()}, {flowSCTP, sealedAttacks()}, {flowSCTP, udpAttacks(f)},
	} {
		for _, t := range g.list {
			t.flow = g.flow
			list = append(list, t)
		}
	}
	return list
}

// attackAll carries the attacks out that match, over raw first and then over UDP.
func attackAll(f *family, o options, match string) (*report, error) {
	re, err := regexp.Compile(match)
	if err != nil {
		return nil, err
	}
	r := &report{Family: f.name, Rate: o.rate, Quiet: o.quiet.Seconds(), Window: o.window.Seconds(), Rounds: o.rounds,
		Machine: fmt.Sprintf("%d processors, %s, veth with an MTU of 1500", runtime.NumCPU(), runtime.Version())}
	for _, udp := range []bool{false, true} {
		var chosen []attack
		for _, t := range allAttacks(f) {
			if t.udp == udp && re.MatchString(t.name) {
				chosen = append(chosen, t)
			}
		}
		if len(chosen) == 0 {
			continue
		}
		if err := attackOver(f, o, udp, chosen, r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func attackOver(f *family, o options, udp bool, chosen []attack, r *report) error {
	a, err := newArena(f, o, udp)
	if err != nil {
		return err
	}
	defer a.closeArena()
	for i := range chosen {
		t := &chosen[i]
		row, err := a.runAttack(t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if o.verbose {
			fmt.Fprintln(os.Stderr, row.tableCells())
		}
		r.Rows = append(r.Rows, row)
	}
	return nil
}
