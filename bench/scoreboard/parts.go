package main

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// part is what can be measured alone, by --part.
type part struct {
	name, about string
	rounds      int           // by default
	run         time.Duration // of a run, by default
	extra       time.Duration // what a run takes besides: start, set-up, end
	specs       []spec
	asked       bool // only by name
}

// How shapes are measured. Medians of channel, the shape that most programs have, are to be trusted
// most.
const (
	shapeRounds   = 5
	channelRounds = 9
	channelTrips  = 50_000
	shapeRun      = time.Second
	message       = 100 // octets
	ordinary      = 1 << 10
	long          = 16 << 10
)

// shapeSpec is a shape over one connection, messages of 100 octets.
func shapeSpec(peer, name, link, net string) spec {
	return spec{Peer: peer, Shape: name, Link: link, Net: net, Size: message}
}

// pairing is a link of ours and the device that TCP has at its side.
type pairing struct{ link, net, tcpNet string }

var (
	overUDP  = pairing{"udp", lo1500, lo1500}
	overRaw  = pairing{"raw", lo64K, lo64K}
	overTun  = pairing{"tun", tun1500, lo1500}  // a device of our own, which TCP cannot have
	unasked  = pairing{"default", lo64K, lo64K} // what compat takes by itself, of raw and udp
	twoLinks = []pairing{overUDP, overRaw}
)

// withTCP is a spec of ours and TCP's, TCP first.
func (p pairing) withTCP(name string, with ...func(spec) spec) []spec {
	t, s := shapeSpec("tcp", name, "", p.tcpNet), shapeSpec("sctp", name, p.link, p.net)
	if name == handed {
		t.Trips, s.Trips = channelTrips, channelTrips
	}
	for _, f := range with {
		t, s = f(t), f(s)
	}
	return []spec{t, s}
}

func withConns(n int) func(spec) spec {
	return func(s spec) spec { s.Conns = n; s.Trips = 0; return s }
}

func withSize(n int) func(spec) spec {
	return func(s spec) spec {
		if s.Size = n; n != message {
			s.Trips = 0
		}
		return s
	}
}

func withProcs(n int) func(spec) spec {
	return func(s spec) spec { s.Procs = n; s.Trips = 0; return s }
}

func withPipelining(s spec) spec { s.Shape = pipelined; return s }

func withBusyCPU(s spec) spec { s.Busy, s.Trips = true, 0; return s }

func besideAnother(s spec) spec { s.Beside, s.Trips = true, 0; return s }

func withCrowd(s spec) spec { s.Crowd, s.Trips = true, 0; return s }

// Connections and processors that are tried.
var (
	goroutines = []int{16, 256, 4096}
	onOneLink  = []int{16, 256}
	sizes      = []int{ordinary, long, mid}
	rdmaSizes  = []int{message, long}
)

// procCounts are the numbers of processors that are tried, but for all of them, which is the
// default.
func procCounts() []int {
	return slices.DeleteFunc([]int{1, 2}, func(n int) bool { return n >= runtime.NumCPU() })
}

// verbBeside is an RDMA operation, and the TCP program that moves the same octets the same way.
func (p pairing) verbBeside(verb string, n int) []spec {
	name := handed
	if verb == "read" {
		name = fetch
	}
	t := p.withTCP(name, withSize(n))[0]
	return []spec{t, {Peer: "rdma", Verb: verb, Shape: handed, Link: p.link, Net: p.net, Size: n, Trips: t.Trips}}
}

// verbsBeside is RDMA Send over n connections whose completions one goroutine sees to, and TCP with
// a goroutine for each.
func (p pairing) verbsBeside(n int) []spec {
	return []spec{p.withTCP(direct, withConns(n))[0],
		{Peer: "rdma", Verb: "send", Shape: direct, Link: p.link, Net: p.net, Size: message, Conns: n}}
}

func bareBeside(p pairing) spec {
	s := bareLinkPingPong(p.link, p.net)
	s.Size = message
	return s
}

// manyAssocsSpec is n associations.
func manyAssocsSpec(name, link string, n int, beat time.Duration) spec {
	return spec{Peer: "sctp", Shape: name, Link: link, Net: lo1500, Conns: n, Beat: beat}
}

const (
	idlers          = 1000
	crowd           = 10_000
	hundredThousand = 100_000
)

// heartbeatInterval is an HB.interval with which n associations send no more than 10,000 HEARTBEATs
// a second.
func heartbeatInterval(n int) time.Duration { return time.Second * time.Duration(max(1, n/10_000-1)) }

func growthSpec(link string, n int, sockets bool) spec {
	s := manyAssocsSpec(growth, link, n, 0)
	s.Socket = sockets
	return s
}

func growthSpecs(sockets bool, counts ...int) (list []spec) {
	for _, link := range []string{"mem", "udp"} {
		for _, n := range counts {
			list = append(list, growthSpec(link, n, sockets))
		}
	}
	return list
}

// allParts are all there are. What is compared stands close together, as it then runs so.
func allParts() []part {
	shapes := func(name, about string, rounds int) part {
		return part{name: name, about: about, rounds: rounds, run: shapeRun, extra: 600 * time.Millisecond}
	}
	a := shapes("a", "direct ping-pong", shapeRounds)
	b := shapes("b", "a reader goroutine, a channel, a worker", channelRounds)
	c := shapes("c", "a goroutine for each connection", shapeRounds)
	d := shapes("d", "connections over one link, as b", shapeRounds)
	e := shapes("e", "pipelined requests", shapeRounds)
	f := shapes("f", "messages of several sizes, as b", shapeRounds)
	g := shapes("g", "GOMAXPROCS, as b", shapeRounds)
	h := shapes("h", "a goroutine of each end, or another process, computes, as b", shapeRounds)
	i := shapes("i", "RDMA, completions to a channel", shapeRounds)
	b.run, c.extra = 3*time.Second, time.Second
	h.run = 3 * time.Second // the kernel leaves threads where they are for a second and longer
	for _, p := range twoLinks {
		a.specs = append(append(a.specs, p.withTCP(direct)...), bareBeside(p))
		b.specs = append(b.specs, p.withTCP(handed)...)
		e.specs = append(e.specs, p.withTCP(pipelined)...)
		for _, n := range sizes {
			f.specs = append(f.specs, p.withTCP(handed, withSize(n))...)
		}
		for _, n := range procCounts() {
			g.specs = append(g.specs, p.withTCP(handed, withProcs(n))...)
		}
		h.specs = append(append(h.specs, p.withTCP(handed, withBusyCPU)...), p.withTCP(handed, besideAnother)...)
		for _, n := range rdmaSizes {
			for _, v := range verbs {
				i.specs = append(i.specs, p.verbBeside(v, n)...)
			}
		}
	}
	for _, n := range goroutines {
		c.specs = append(c.specs, overUDP.withTCP(direct, withConns(n))...)
	}
	c.specs = append(c.specs, overUDP.withTCP(direct, withConns(underWay), withSize(ordinary))...)
	c.specs = append(c.specs, overUDP.verbsBeside(underWay)...)
	for _, n := range onOneLink {
		for _, p := range []pairing{overUDP, overTun, overRaw} {
			d.specs = append(d.specs, p.withTCP(handed, withConns(n))...)
		}
	}
	d.specs = append(d.specs, overTun.withTCP(handed)...)
	k := shapes("k", "twice as many processes compute as there are processors, as b, d, e and f", shapeRounds)
	for _, p := range twoLinks {
		k.specs = append(append(k.specs, p.withTCP(handed, withCrowd)...),
			p.withTCP(handed, withConns(onOneLink[0]), withCrowd)...)
		k.specs = append(append(k.specs, p.withTCP(pipelined, withCrowd)...),
			p.withTCP(handed, withSize(mid), withCrowd)...)
	}
	j := shapes("j", "requests and answers of go-diameter", shapeRounds)
	for _, p := range append(twoLinks, unasked) {
		t, s := shapeSpec("diameter", direct, "", p.tcpNet), shapeSpec("diameter", direct, p.link, p.net)
		j.specs = append(j.specs, withPipelining(t), withPipelining(s), withConns(64)(t), withConns(64)(s), t, s)
	}
	changing := part{name: "change", about: "a load that changes from ping-pong to bulk, or back",
		rounds: shapeRounds, run: 4 * time.Second, extra: 600 * time.Millisecond}
	for _, p := range twoLinks {
		changing.specs = append(changing.specs, shapeSpec("sctp", toBulk, p.link, p.net),
			shapeSpec("sctp", toDirect, p.link, p.net))
	}
	resting := part{name: "idle", about: "1,000 and 10,000 idle associations", rounds: shapeRounds,
		run: 5 * time.Second, extra: 3 * time.Second,
		specs: []spec{manyAssocsSpec(idle, "udp", idlers, noBeats),
			manyAssocsSpec(idle, "udp", idlers, heartbeatInterval(idlers)),
			manyAssocsSpec(idle, "udp", crowd, heartbeatInterval(crowd))}}
	growing := part{name: "growth", about: "1 to 10,000 associations", rounds: shapeRounds, run: 2 * time.Second,
		extra: 6 * time.Second,
		specs: growthSpecs(false, 1, 100, underWay, crowd)}
	huge := part{name: "100000", about: "100,000 associations, served through a Socket; only by name",
		rounds: shapeRounds, run: 4 * time.Second, extra: time.Minute,
		specs: append(growthSpecs(true, underWay, crowd, hundredThousand),
			manyAssocsSpec(idle, "udp", hundredThousand, heartbeatInterval(hundredThousand))), asked: true}
	mpa := part{name: linkTCP, about: "RDMA over TCP by MPA, beside TCP and the links of SCTP", rounds: channelRounds,
		run: shapeRun, extra: startTime, specs: mpaPlan()}
	sealed := part{name: "encryption", about: "encrypted QPs beside those in the clear, and crypto/tls over TCP",
		rounds: shapeRounds, run: 2 * time.Second, extra: startTime, specs: encryptionSpecs()}
	return []part{{name: "bulk", about: "throughput and ping-pong beside the bare links and other stacks",
		specs: measurePlan()}, a, b, c, d, e, f, g, h, i, j, k, changing, resting, growing, mpa, sealed, huge}
}

// partsNamed are the parts with these names, separated by commas; by default all that need not be
// asked for.
func partsNamed(names string) (list []part, err error) {
	all := allParts()
	if names == "" {
		return slices.DeleteFunc(all, func(p part) bool { return p.asked }), nil
	}
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(p part) bool { return p.name == name })
		if i < 0 {
			var known []string
			for _, p := range all {
				known = append(known, p.name+": "+p.about)
			}
			return nil, fmt.Errorf("--part %s: it is one of\n%s", name, strings.Join(known, "\n"))
		}
		list = append(list, all[i])
	}
	return list, nil
}

// allSpecs is all that can be measured, once.
func allSpecs() (list []spec) {
	for _, p := range allParts() {
		for _, s := range p.specs {
			if !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

// tableKind is the table of a spec.
func (s spec) tableKind() *kind {
	switch s.Shape {
	case "":
		return bulkRows
	case growth, idle:
		return growthRows
	}
	return shapeRows
}

// ofKind are those of list in one table.
func ofKind(k *kind, list []spec) []spec {
	return slices.DeleteFunc(slices.Clone(list), func(s spec) bool { return s.tableKind() != k })
}

// task is a spec and how it is measured.
type task struct {
	spec
	rounds int
	run    time.Duration
	extra  time.Duration
}

// perTrip is how long a round trip takes, more or less, where so many are wanted.
const perTrip = 100 * time.Microsecond

// totalTime is how long tasks take, more or less.
func totalTime(list []task) (d time.Duration) {
	for _, t := range list {
		d += time.Duration(t.rounds) * (max(t.run, time.Duration(t.Trips)*perTrip) + t.extra)
	}
	return d
}
