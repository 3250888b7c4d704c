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

var serverNames = []string{server, mortalServer}

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

	sum    tally
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

// run runs until the time is up or ctx ends.
func (r *run) run(ctx context.Context) {
	if r.err = r.open(); r.err == nil {
		for r.err == nil && ctx.Err() == nil && (len(r.series) == 0 || r.since()+r.cycle/2 < r.duration) {
			r.err = r.turn(ctx)
			r.report(false)
		}
	}
	r.close()
}

func (r *run) since() time.Duration { return time.Since(r.began) }

func (r *run) open() (err error) {
	r.began = time.Now()
	if r.dir, err = os.MkdirTemp("", "soak"); err != nil {
		return err
	}
	if r.net, err = newNetwork(fmt.Sprintf("soak-%s-%d", r.link, os.Getpid()), r.loss); err != nil {
		return err
	}
	for _, name := range []string{server, mortalServer, client, mortalClient} {
		if err := r.start(name); err != nil {
			return err
		}
	}
	return nil
}

// start starts a process, or its successor.
func (r *run) start(name string) error {
	services := make([]service, len(serverNames))
	for i, name := range serverNames {
		services[i] = service{Name: name, Addr: hosts(2)[0], UDPPort: uint16(9899 + i), RDMAPort: uint16(5043 + i),
			SCTPPort: uint16(6000 + i)}
	}
	r.numbers++
	o := order{Name: name, Number: r.numbers, Link: r.link, Rate: r.rate, Seed: r.rng.Uint64(), Local: hosts(1),
		Servers: services}
	if name == mortalClient {
		o.OwnPorts, o.Local = 1000, hosts(11)
	} else {
		o.OwnPorts = 2000
	}
	ns := r.net.a
	if i := slices.Index(serverNames, name); i >= 0 {
		o.Server, o.Local, o.Serve, ns = true, hosts(2), services[i], r.net.b
	}
	p, err := start(ns, o, r.dir)
	if p != nil && p.cmd != nil {
		r.alive[name] = p
	}
	return err
}

// turn is one cycle: work and faults, then rest, measurement and audit.
func (r *run) turn(ctx context.Context) error {
	if err := r.tell("go", server, mortalServer, client, mortalClient); err != nil {
		return err
	}
	work, cancel := context.WithTimeout(ctx, r.cycle*4/5)
	defer cancel()
	troubled := make(chan error)
	seed := r.rng.Uint64()
	go func() { troubled <- r.trouble(work, rand.New(rand.NewPCG(seed, 2))) }()
	err := r.mischief(work)
	<-work.Done()
	if err = errors.Join(err, <-troubled); err != nil {
		return err
	}
	return r.rest()
}

// trouble plagues the network, but not at the very end of a cycle.
func (r *run) trouble(ctx context.Context, rng *rand.Rand) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(calm + time.Duration(rng.Int64N(int64(r.cycle/5)))):
		}
		from := time.Now().UnixNano()
		what, err := r.net.trouble(rng)
		if err != nil {
			return err
		}
		r.count(what)
		if what != "mtu" {
			r.mu.Lock()
			r.cuts = append(r.cuts, outage{from, time.Now().UnixNano()})
			r.mu.Unlock()
		}
	}
}

func (r *run) count(fault string) {
	r.mu.Lock()
	r.faults[fault]++
	r.mu.Unlock()
}

// mischief kills a process, or both that are mortal, and starts its successor. A server notices
// after some 15 s that a client has gone without a word, too late for a short cycle to wait for.
func (r *run) mischief(ctx context.Context) error {
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
		r.cpu += p.cpu()
		p.kill()
		r.dead = append(r.dead, p)
		r.count("kill")
		delete(r.alive, name)
		if err := r.start(name); err != nil {
			return err
		}
		r.kills = append(r.kills, kill{name, p.killedAt, time.Now().Add(grace).UnixNano()})
		if err := r.tell("go", name); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) tell(command string, names ...string) error {
	for _, name := range names {
		if _, err := r.alive[name].tell(command); err != nil {
			return err
		}
	}
	return nil
}

// rest has all sessions end, measures, and compares the books.
func (r *run) rest() error {
	for _, name := range []string{client, mortalClient, server, mortalServer} {
		a, err := r.alive[name].tell("rest")
		if err != nil {
			return err
		}
		if a.Left != "" {
			r.sum.fault(&r.sum.stuck, 1, "%s: %s", name, a.Left)
			r.alive[name].tell("stacks")
			return fmt.Errorf("%s does not come to rest: %s", name, a.Left)
		}
	}
	if r.link == "raw" { // where each is a descriptor
		time.Sleep(settle)
	}
	for name, p := range r.alive {
		a, err := p.tell("sample")
		if err != nil {
			return err
		}
		if r.series[name] == nil {
			r.series[name] = &series{name: name, mortal: name == mortalClient || name == mortalServer}
		}
		r.series[name].s = append(r.series[name].s, sampleAt{r.since(), a})
	}
	r.audit()
	return r.tell("clear", server, mortalServer, client, mortalClient)
}

// audit compares the books of the cycle and empties them.
func (r *run) audit() {
	var books []book
	for _, p := range slices.Concat(slices.Collect(maps.Values(r.alive)), r.dead) {
		books = append(books, p.snapshot())
	}
	t := audit(books, r.kills, r.cuts, serverNames)
	for _, f := range t.faults {
		fmt.Printf("%s: VIOLATION: %s\n", r.link, f)
	}
	r.sum.add(t)
	for _, p := range r.alive {
		p.clearBook()
	}
	for _, p := range r.dead {
		p.forget()
	}
	r.dead, r.kills, r.cuts = nil, nil, nil
}

// report prints a line a minute.
func (r *run) report(now bool) {
	if r.since() < r.told+time.Minute && !now {
		return
	}
	r.told = r.since().Truncate(time.Minute)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: sessions %d, messages %d, uncertain %d, violations %d", r.since().Round(time.Second),
		r.link,
		r.sum.sessions, r.sum.messages, r.sum.uncertain, r.sum.violations())
	for _, name := range []string{client, server} {
		if s := r.series[name]; s != nil {
			last := s.s[len(s.s)-1]
			fmt.Fprintf(&b, " | %s: heap %.2f MB, resident %.2f MB, goroutines %d, descriptors %d", name,
				mb(last.Heap), mb(last.RSS), last.Goroutines, last.FDs)
		}
	}
	fmt.Fprintf(&b, " | cpu %.0f%%", 100*r.used().Seconds()/r.since().Seconds())
	fmt.Println(b.String())
}

// used is the processor time of all processes so far.
func (r *run) used() time.Duration {
	t := r.cpu
	for _, p := range r.alive {
		t += p.cpu()
	}
	return t
}

func (r *run) close() {
	r.report(true)
	for _, p := range r.alive {
		r.cpu += p.cpu()
		p.quit()
	}
	clear(r.alive)
	if r.net != nil {
		r.faults["packet dropped"] = int(r.net.dropped())
		r.net.remove()
	}
	os.RemoveAll(r.dir)
}

// summary prints the outcome of all runs and reports whether it is good.
func summary(runs []*run) bool {
	var sum tally
	leaks, good := 0, true
	for _, r := range runs {
		t := &r.sum
		fmt.Printf("%s: %v, %d sessions: %d ended in order, %d cut on purpose, %d broken by kills, %d refused "+
			"meanwhile\n",
			r.link, r.since().Round(time.Second), t.sessions, t.graceful, t.cut, t.broken, t.refused)
		fmt.Printf("%s: %d messages posted, %d delivered; %d Reads and atomics; uncertain %d, of which %d "+
			"arrived; %d died with their receiver\n",
			r.link, t.messages, t.delivered, t.oneSided, t.uncertain, t.arrived, t.untaken)
		fmt.Printf("%s: faults:", r.link)
		for _, k := range slices.Sorted(maps.Keys(r.faults)) {
			fmt.Printf(" %d %s,", r.faults[k], k)
		}
		fmt.Printf(" processor %.1f%% of one\n", 100*r.cpu.Seconds()/r.since().Seconds())
		for _, name := range slices.Sorted(maps.Keys(r.series)) {
			s := r.series[name]
			line, broken := s.judge()
			leaks += broken
			fmt.Printf("%s: %s\n", r.link, line)
		}
		if r.err != nil {
			fmt.Printf("%s: ended early: %v\n", r.link, r.err)
			good = false
		}
		good = good && t.messages > 0 && t.delivered > 0
		sum.add(t)
	}
	fmt.Printf("lost: %d · wrong: %d · twice: %d · out of order: %d · invented: %d · stuck: %d · "+
		"unexplained ends: %d · leaks: %d\n",
		sum.lost, sum.wrong, sum.twice, sum.disorder, sum.invented, sum.stuck, sum.unexplained, leaks)
	return good && leaks == 0 && sum.violations() == 0
}
