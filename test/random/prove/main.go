// Command prove lets worlds of hosts live in virtual time (test/random) for so long, one after the
// other on each processor, and tells what has come to pass. Its last line is the number of
// violations; each is shown with its seed, and with the shortest schedule found that violates the
// same invariant, as a Go test.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/counters"
	"github.com/rddp-go/rddp/test/attack"
	"github.com/rddp-go/rddp/test/random"
)

func main() {
	p := new(prover)
	var length, every time.Duration
	var workers int
	flag.Var(cli.Duration(&length, time.Minute, time.Millisecond, cli.Year), "time", "for how long")
	flag.Var(cli.Int(&p.first, 1, 0, math.MaxUint64), "seed", "the first seed")
	flag.Var(cli.Int(&p.count, 0, 0, math.MaxUint64), "n", "stop after so many seeds (0: when the time is over)")
	flag.Var(cli.Int(&workers, runtime.GOMAXPROCS(0), 1, 4096), "workers", "worlds at a time")
	flag.Var(cli.Duration(&every, 30*time.Second, time.Millisecond, cli.Year), "every", "how often to report")
	flag.Var(cli.Int(&p.tries, 300, 0, 1<<30), "tries", "schedules tried to shrink one that fails")
	flag.Var(cli.Int(&p.most, 10, 1, 1<<30), "most", "stop after so many violations")
	flag.BoolVar(&p.extended, "extensions", false, "only associations with extensions (random.DrawExtended), and no sieges")
	flag.BoolVar(&p.overTCP, "tcp", false, "only RDMA over TCP (random.DrawOverTCP), and no sieges")
	flag.BoolVar(&p.encrypted, "encrypted", false, "only encrypted associations (random.DrawEncrypted), and no sieges")
	flag.Parse()
	p.end = time.Now().Add(length)
	if p.runWorkers(workers, every); p.violations > 0 {
		os.Exit(1)
	}
}

// siegePackets is how many packets the attackers of one siege send.
const siegePackets = 10000

// patience is how long one schedule is shrunk.
const patience = 3 * time.Minute

type prover struct {
	first, count uint64
	end          time.Time
	tries, most  int
	extended     bool
	overTCP      bool
	encrypted    bool

	next       atomic.Uint64
	mu         sync.Mutex
	tally      random.Tally
	sieges     attack.Stats
	violations int
	began      time.Time
}

func (p *prover) runWorkers(workers int, every time.Duration) {
	p.began = time.Now()
	var wg sync.WaitGroup
	for range workers {
		wg.Go(p.runWorlds)
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for tick := time.NewTicker(every); ; {
		select {
		case <-tick.C:
			p.printReport()
			continue
		case <-done:
		}
		break
	}
	p.printReport()
	fmt.Printf("violations: %d\n", p.violations)
}

// runWorlds plays one world after the other.
func (p *prover) runWorlds() {
	for {
		i := p.next.Add(1) - 1
		if time.Now().After(p.end) || p.count > 0 && i >= p.count {
			return
		}
		draw := random.Draw
		switch {
		case p.extended:
			draw = random.DrawExtended
		case p.encrypted:
			draw = random.DrawEncrypted
		case p.overTCP:
			draw = random.DrawOverTCP
		case i%4 == 3:
			p.runAttack(p.first + i)
			continue
		}
		s := draw(p.first + i)
		res := s.Run()
		p.mu.Lock()
		p.tally.Add(&res.Tally)
		over := p.violations >= p.most
		p.mu.Unlock()
		if over {
			return
		}
		if res.Violation != nil {
			p.reportViolation(&s, res.Violation)
		}
	}
}

// runAttack plays one siege: a host under attack by a peer that breaks the protocol.
func (p *prover) runAttack(seed uint64) {
	s := attack.ForSeed(seed)
	err := s.Run(siegePackets)
	p.mu.Lock()
	defer p.mu.Unlock()
	st := s.Stats()
	counters.Add(&p.sieges, &st)
	if err != nil {
		p.violations++
		fmt.Printf("VIOLATION in a siege: %v (go test ./test/attack -run Hurts -seed %d -seeds 1 -packets %d)\n", err,
			seed, siegePackets)
	}
}

// reportViolation shows a violation, and shrinks it.
func (p *prover) reportViolation(s *random.Schedule, v *random.Violation) {
	p.mu.Lock()
	p.violations++
	fmt.Printf("VIOLATION %v\n", v)
	p.mu.Unlock()
	fails, end := random.Fails(v.Invariant), time.Now().Add(patience)
	short := random.Shrink(*s, p.tries, func(s *random.Schedule) bool { return time.Now().Before(end) && fails(s) })
	p.mu.Lock()
	fmt.Printf("seed %d, %d acts of %d are left: %v\n%s", v.Seed, len(short.Acts), len(s.Acts), short.Run().Violation,
		short.Test(fmt.Sprintf("Seed%d", v.Seed)))
	p.mu.Unlock()
}

func (p *prover) printReport() {
	p.mu.Lock()
	defer p.mu.Unlock()
	wall := time.Since(p.began)
	fmt.Printf("%v: ", wall.Round(time.Second))
	p.tally.Write(os.Stdout)
	fmt.Printf("  sieges %+v\n", p.sieges)
	fmt.Printf("  %.0f virtual hours in an hour; violations %d\n", p.tally.Virtual.Hours()/wall.Hours(), p.violations)
}
