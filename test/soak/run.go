//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// The processes of a run. The mortal ones are killed.
const (
	server       = "server"
	mortalServer = "mortal server"
	client       = "client"
	mortalClient = "mortal client"
)

var (
	serverNames = []string{server, mortalServer}
	clientNames = []string{client, mortalClient}
)

// grace is for how long, after a killed server serves again, its peers may still find out that the
// one before is gone. An association that has nothing to send learns it by a heartbeat.
const grace = 5 * time.Second

const (
	// between two faults of the network, so that associations outlive any number of them
	calm = time.Second
	// ports of associations that have ended stay bound for four RTOs of at most a second
	settle = 4500 * time.Millisecond
)

// run is a soak over one link.
type run struct {
	*options
	link  string
	dir   string
	net   *network
	rng   *rand.Rand
	began time.Time

	alive   map[string]*process
	dead    []*process // since the last audit
	kills   []kill     // of servers, since the last audit
	numbers uint32

	sum    auditResult
	series map[string]*series
	mu     sync.Mutex
	faults map[string]int // guarded by mu
	cuts   []outage       // since the last audit; guarded by mu
	cpu    time.Duration  // of processes that are no more
	told   time.Duration
	err    error
}

func newRun(o *options, link string) *run {
	seed := o.seed
	for _, c := range link {
		seed = seed*31 + uint64(c)
	}
	return &run{options: o, link: link, rng: rand.New(rand.NewPCG(seed, 1)),
		alive: make(map[string]*process), series: make(map[string]*series), faults: make(map[string]int)}
}

// runCycles runs until the time is up or ctx ends.
func (r *run) runCycles(ctx context.Context) {
	if r.err = r.openRun(); r.err == nil {
		for r.err == nil && ctx.Err() == nil && (len(r.series) == 0 || r.timeSinceBegin()+r.cycle/2 < r.duration) {
			r.err = r.runCycle(ctx)
			r.printReport(false)
		}
	}
	r.closeRun()
}

func (r *run) timeSinceBegin() time.Duration { return time.Since(r.began) }

func (r *run) openRun() (err error) {
	r.began = time.Now()
	if r.dir, err = os.MkdirTemp("", "soak"); err != nil {
		return err
	}
	if r.net, err = newNetwork(fmt.Sprintf("soak-%s-%d", r.link, os.Getpid()), r.loss); err != nil {
		return err
	}
	for _, name := range []string{server, mortalServer, client, mortalClient} {
		if err := r.startProcess(name); err != nil {
			return err
		}
	}
	return nil
}

// startProcess starts a process, or its successor.
func (r *run) startProcess(name string) error {
	services := make([]service, len(serverNames))
	for i, name := range serverNames {
		services[i] = service{Name: name, Addr: hostAddrs(2)[0], UDPPort: uint16(9899 + len(clientNames)*i),
			RDMAPort: uint16(5043 + i), SCTPPort: uint16(6000 + i)}
	}
	r.numbers++
	o := order{Name: name, Number: r.numbers, Link: r.link, Rate: r.rate, Seed: r.rng.Uint64(), Local: hostAddrs(1),
		Servers: services}
	if r.encrypted {
		var err error
		if o.Certificate, err = makeCertificate(r.dir, name); err != nil {
			return err
		}
	}
	if name == mortalClient {
		o.OwnPorts, o.Local = 1000, hostAddrs(11)
	} else {
		o.OwnPorts = 2000
	}
	ns := r.net.a
	if i := slices.Index(serverNames, name); i >= 0 {
		o.Server, o.Local, ns = true, hostAddrs(2), r.net.b
		o.Serve = []service{services[i]}
		if r.link == "conn" {
			o.Serve = []service{services[i].forClient(0, hostAddrs(1)[0]), services[i].forClient(1, hostAddrs(11)[0])}
		}
	} else if r.link == "conn" {
		for k := range services {
			services[k] = services[k].forClient(slices.Index(clientNames, name), services[k].Addr)
		}
	}
	p, err := startProcess(ns, o, r.dir)
	if p != nil && p.cmd != nil {
		r.alive[name] = p
	}
	return err
}

// runCycle is one cycle: work and faults, then rest, measurement and audit.
func (r *run) runCycle(ctx context.Context) error {
	if err := r.commandAll("go", server, mortalServer, client, mortalClient); err != nil {
		return err
	}
	work, cancel := context.WithTimeout(ctx, r.cycle*4/5)
	defer cancel()
	troubled := make(chan error)
	seed := r.rng.Uint64()
	go func() { troubled <- r.injectFaults(work, rand.New(rand.NewPCG(seed, 2))) }()
	err := r.killOne(work)
	<-work.Done()
	if err = errors.Join(err, <-troubled); err != nil {
		return err
	}
	return r.restAndAudit()
}

// injectFaults plagues the network, but not at the very end of a cycle.
func (r *run) injectFaults(ctx context.Context, rng *rand.Rand) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(calm + time.Duration(rng.Int64N(int64(r.cycle/5)))):
		}
		from := time.Now().UnixNano()
		what, err := r.net.injectFault(rng)
		if err != nil {
			return err
		}
		r.countFault(what)
		if what != "mtu" {
			r.mu.Lock()
			r.cuts = append(r.cuts, outage{from, time.Now().UnixNano()})
			r.mu.Unlock()
		}
	}
}

func (r *run) countFault(fault string) {
	r.mu.Lock()
	r.faults[fault]++
	r.mu.Unlock()
}

// killOne kills a process, or both that are mortal, and starts its successor. A server notices
// after some 15 s that a client has gone without a word, too late for a short cycle to wait for.
func (r *run) killOne(ctx context.Context) error {
	choices := [][]string{{mortalServer}, {mortalClient}, {mortalServer, mortalClient}}
	if r.cycle < 10*time.Second {
		choices = choices[:1]
	}
	victims := choices[r.rng.IntN(len(choices))]
	for _, name := range victims {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(r.cycle/10 + time.Duration(r.rng.Int64N(int64(r.cycle/5)))):
		}
		p := r.alive[name]
		r.cpu += p.cpuTime()
		p.killProcess()
		r.dead = append(r.dead, p)
		r.countFault("kill")
		delete(r.alive, name)
		if err := r.startProcess(name); err != nil {
			return err
		}
		r.kills = append(r.kills, kill{name, p.killedAt, time.Now().Add(grace).UnixNano()})
		if err := r.commandAll("go", name); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) commandAll(command string, names ...string) error {
	for _, name := range names {
		if _, err := r.alive[name].sendCommand(command); err != nil {
			return err
		}
	}
	return nil
}

// restAndAudit has all sessions end, measures, and compares the books.
func (r *run) restAndAudit() error {
	for _, name := range []string{client, mortalClient, server, mortalServer} {
		a, err := r.alive[name].sendCommand("rest")
		if err != nil {
			return err
		}
		if a.Left != "" {
			r.sum.countFault(&r.sum.stuck, 1, "%s: %s", name, a.Left)
			r.alive[name].sendCommand("stacks")
			return fmt.Errorf("%s does not come to rest: %s", name, a.Left)
		}
	}
	if r.link == "raw" { // where each is a descriptor
		time.Sleep(settle)
	}
	for name, p := range r.alive {
		a, err := p.sendCommand("sample")
		if err != nil {
			return err
		}
		if r.series[name] == nil {
			r.series[name] = &series{name: name, mortal: name == mortalClient || name == mortalServer}
		}
		r.series[name].s = append(r.series[name].s, sampleAt{r.timeSinceBegin(), a})
	}
	r.auditCycle()
	return r.commandAll("clear", server, mortalServer, client, mortalClient)
}

// auditCycle compares the books of the cycle and empties them.
func (r *run) auditCycle() {
	var books []ledgerCopy
	for _, p := range slices.Concat(slices.Collect(maps.Values(r.alive)), r.dead) {
		books = append(books, p.copyLedger())
	}
	t := auditBooks(books, r.kills, r.cuts, serverNames)
	for _, f := range t.faults {
		fmt.Printf("%s: VIOLATION: %s\n", r.link, f)
	}
	r.sum.addResult(t)
	for _, p := range r.alive {
		p.clearBook()
	}
	for _, p := range r.dead {
		p.removeLedger()
	}
	r.dead, r.kills, r.cuts = nil, nil, nil
}

// printReport prints a line a minute.
func (r *run) printReport(now bool) {
	if r.timeSinceBegin() < r.told+time.Minute && !now {
		return
	}
	r.told = r.timeSinceBegin().Truncate(time.Minute)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: sessions %d, messages %d, uncertain %d, violations %d",
		r.timeSinceBegin().Round(time.Second),
		r.link,
		r.sum.sessions, r.sum.messages, r.sum.uncertain, r.sum.numViolations())
	for _, name := range []string{client, server} {
		if s := r.series[name]; s != nil {
			last := s.s[len(s.s)-1]
			fmt.Fprintf(&b, " | %s: heap %.2f MB, resident %.2f MB, goroutines %d, descriptors %d", name,
				megabytes(last.Heap), megabytes(last.RSS), last.Goroutines, last.FDs)
		}
	}
	fmt.Fprintf(&b, " | cpu %.0f%%", 100*r.cpuUsed().Seconds()/r.timeSinceBegin().Seconds())
	fmt.Println(b.String())
}

// cpuUsed is the processor time of all processes so far.
func (r *run) cpuUsed() time.Duration {
	t := r.cpu
	for _, p := range r.alive {
		t += p.cpuTime()
	}
	return t
}

func (r *run) closeRun() {
	r.printReport(true)
	for _, p := range r.alive {
		r.cpu += p.cpuTime()
		p.quitProcess()
	}
	clear(r.alive)
	if r.net != nil {
		r.faults["packet dropped"] = int(r.net.numDropped())
		r.net.removeNetwork()
	}
	os.RemoveAll(r.dir)
}

// printSummary prints the outcome of all runs and reports whether it is good.
func printSummary(runs []*run) bool {
	var sum auditResult
	leaks, good := 0, true
	for _, r := range runs {
		t := &r.sum
		fmt.Printf("%s: %v, %d sessions: %d ended in order, %d cut on purpose, %d broken by kills, %d refused "+
			"meanwhile\n",
			r.link, r.timeSinceBegin().Round(time.Second), t.sessions, t.graceful, t.cut, t.broken, t.refused)
		fmt.Printf("%s: %d messages posted, %d delivered; %d Reads and atomics; uncertain %d, of which %d "+
			"arrived; %d died with their receiver\n",
			r.link, t.messages, t.delivered, t.oneSided, t.uncertain, t.arrived, t.untaken)
		fmt.Printf("%s: faults:", r.link)
		for _, k := range slices.Sorted(maps.Keys(r.faults)) {
			fmt.Printf(" %d %s,", r.faults[k], k)
		}
		fmt.Printf(" processor %.1f%% of one\n", 100*r.cpu.Seconds()/r.timeSinceBegin().Seconds())
		for _, name := range slices.Sorted(maps.Keys(r.series)) {
			s := r.series[name]
			line, broken := s.judgeSamples()
			leaks += broken
			fmt.Printf("%s: %s\n", r.link, line)
		}
		if r.err != nil {
			fmt.Printf("%s: ended early: %v\n", r.link, r.err)
			good = false
		}
		good = good && t.messages > 0 && t.delivered > 0
		sum.addResult(t)
	}
	fmt.Printf("lost: %d · wrong: %d · twice: %d · out of order: %d · invented: %d · stuck: %d · "+
		"unexplained ends: %d · leaks: %d\n",
		sum.lost, sum.wrong, sum.twice, sum.disorder, sum.invented, sum.stuck, sum.unexplained, leaks)
	return good && leaks == 0 && sum.numViolations() == 0
}
