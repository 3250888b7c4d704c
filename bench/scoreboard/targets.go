package main

import (
	"fmt"
	"math"
	"slices"
)

// check is one thing that has to hold: a ratio of two measurements of one run, or a quantity.
type check struct {
	target  int
	what    string
	q       quantity
	num     spec
	den     []spec // the best of them; none: the quantity of num itself
	bound   float64
	atMost  bool
	more    float64 // a difference of so much is allowed as well, in the unit of q
	allowed *check  // bound is not more than what this one yields, less slack
}

// outcome is a check after a run.
type outcome struct {
	Target int     `json:"target"`
	What   string  `json:"what"`
	Ratio  *spread `json:"ratio"` // nil: not measured
	Bound  float64 `json:"bound"`
	AtMost bool    `json:"at_most"`
	More   float64 `json:"or_more_by,omitempty"`
	Met    bool    `json:"met"`
	Moved  int     `json:"rounds_moved,omitempty"` // that do not count
}

func atLeast(target int, bound float64, what string, num spec, den ...spec) check {
	return check{target: target, what: what, q: throughputOf, num: num, den: den, bound: bound}
}

func latencyCheck(bound float64, what string, num, den spec) check {
	return check{target: 5, what: what, q: medianLatency, num: num, den: []spec{den}, bound: bound, atMost: true}
}

// targets are what checks hold, by number. 7 and 8 are no ratios: make bench, make conformance and
// make interop hold them.
var targets = []string{
	1: "RDMA Write over raw, 64K packets",
	2: "RDMA Write over udp",
	3: "RDMA Write over raw and tun, MTU 1500",
	4: "messages beside pion/sctp and libusrsctp",
	5: "ping-pong beside the bare link",
	6: "verbs, directions, QPs, processor time, allocations",

	9:  "a reader goroutine, a channel, a worker, beside TCP",
	10: "many connections beside TCP",
	11: "direct ping-pong beside TCP and the bare link",
	12: "pipelined requests, sizes, a busy processor, RDMA, beside TCP",
	13: "growth",
	14: "a load that changes",
	15: "go-diameter beside itself over TCP",
	16: "RDMA over TCP by MPA, beside TCP",
	17: "encryption beside the clear and crypto/tls",
}

// allChecks are the project's targets, each with a name of its own.
func allChecks() (list []check) {
	raw, udp, veth, tun := ddpbenchSpec("write", "raw", lo64K, big), ddpbenchSpec("write", "udp", lo1500, big),
		ddpbenchSpec("write", "raw", veth1500, big), ddpbenchSpec("write", "tun", tun1500, big)
	loop := ddpbenchSpec("write", "raw", lo1500, big)
	list = append(list,
		atLeast(1, 0.75, "RDMA Write of 1M over raw, 64K packets, to its pump", raw, pumpOver("raw", lo64K)),
		atLeast(1, 0.75,
			"RDMA Write of 1M over raw from and to 64 MiB of memory, to a pump that goes through as much",
			withColdMemory(raw),
			withColdMemory(pumpOver("raw", lo64K))),
		atLeast(1, 1, "RDMA Write of 1M over raw to iperf3, one stream, default size", raw, iperfSpec(lo64K, 0)),
		atLeast(2, 0.85, "RDMA Write of 1M over udp, MTU 1500, to its pump", udp, pumpOver("udp", lo1500)),
		atLeast(2, 0.65,
			"RDMA Write of 1M over udp from and to 64 MiB of memory, to a pump that goes through as much",
			withColdMemory(udp),
			withColdMemory(pumpOver("udp", lo1500))),
		atLeast(2, 20, "RDMA Write of 1M over udp to libusrsctp over UDP", udp, usrsctpSpecs("udp", lo1500, big)...),
		atLeast(2, 1, "RDMA Write of 1M over udp to iperf3 at MTU 1500", udp, iperfSpec(lo1500, 0)),
		atLeast(3, 0.8, "RDMA Write of 1M over raw, MTU 1500, veth, to its pump", veth, pumpOver("raw", veth1500)),
		atLeast(3, 2.3, "RDMA Write of 1M over raw, MTU 1500, veth, to libusrsctp over raw", veth,
			usrsctpSpecs("raw", veth1500, big)...),
		atLeast(3, 0.8, "RDMA Write of 1M over raw, MTU 1500, loopback, to its pump", loop, pumpOver("raw", lo1500)),
		atLeast(3, 2.3, "RDMA Write of 1M over raw, MTU 1500, loopback, to libusrsctp over raw, which works "+
			"over veth only", loop, usrsctpSpecs("raw", veth1500, big)...),
		atLeast(3, 0.7, "RDMA Write of 1M over tun, MTU 1500, to its pump", tun, pumpOver("tun", tun1500)),
		atLeast(4, 10, "messages of 64K over udp, MTU 1500, to pion/sctp", sctpSpec("udp", lo1500, mid), pionOver(mid)),
		atLeast(4, 10, "messages of 64K over udp, MTU 1500, to libusrsctp", sctpSpec("udp", lo1500, mid),
			usrsctpSpecs("udp", lo1500, mid)...),
		atLeast(4, 4, "messages of 64K over raw, 64K packets, to libusrsctp at its best MTU",
			sctpSpec("raw", veth64K, mid), usrsctpForced(veth64K, mid)...),
	)
	for _, l := range []struct{ link, net string }{{"raw", lo64K}, {"udp", lo1500}} {
		b := bareLinkPingPong(l.link, l.net)
		verb := func(v string) spec { return pingPong(ddpbenchSpec(v, l.link, l.net, tiny)) }
		list = append(list,
			latencyCheck(1.3, "Send of 64 octets over "+l.link+" to the bare ping-pong, both blocking",
				withBlocking(verb("send")), withBlocking(b)),
			latencyCheck(1.3, "Write with notification over "+l.link+", both blocking", withBlocking(verb("write")),
				withBlocking(b)),
			latencyCheck(2, "Send over "+l.link+", both as by default, polling for 40 us at most", verb("send"), b),
			latencyCheck(2, "Write with notification over "+l.link+", both as by default", verb("write"), b),
			latencyCheck(2, "Send over "+l.link+", both polling", withPolling(verb("send")), withPolling(b)),
			latencyCheck(2, "Write with notification over "+l.link+", both polling", withPolling(verb("write")),
				withPolling(b)),
			latencyCheck(1.2, "Read over "+l.link+" to Send, a round trip each", verb("read"), verb("send")),
		)
	}
	for _, w := range []spec{raw, udp} {
		// Receive buffers take more memory than a Write's target: all three go through as much
		// here.
		write, read, send := withColdMemory(w), withColdMemory(ddpbenchSpec("read", w.Link, w.Net, big)),
			withColdMemory(ddpbenchSpec("send", w.Link, w.Net, big))
		pump := pumpOver(w.Link, w.Net)
		list = append(list,
			atLeast(6, 0.9, "Read of 1M to Write over "+w.Link+", 64 MiB of memory each", read, write),
			atLeast(6, 0.85, "Send of 1M to Write over "+w.Link+", 64 MiB of memory each", send, write),
			bothDirectionsCheck("both directions together to one over "+w.Link+", or as much as the pump, less 5 %",
				w, pump),
			bothDirectionsCheck("both directions over "+w.Link+
				" from and to 64 MiB of memory, or as much as the pump, less 5 %",
				write, withColdMemory(pump)),
		)
	}
	list = append(list,
		atLeast(6, 0.95, "64 QPs to one, 64 MiB of memory each", withColdMemory(withQPs(raw, 64)), withColdMemory(raw)),
		check{target: 6, what: "processor time of both sides for an octet to iperf3's", q: cpuPerOctet, num: raw,
			den: []spec{iperfSpec(lo64K, 0)}, bound: 1.5, atMost: true},
	)
	overTLS, pinged := encrypted(tcpSpec(lo1500, record)), pingPong(ddpbenchSpec("send", "udp", lo1500, tiny))
	for _, s := range []spec{loop, udp} {
		clear := map[string]float64{"raw": 0.85, "udp": 0.35}[s.Link]
		list = append(list,
			atLeast(17, clear, "encrypted RDMA Write of 1M over "+s.Link+", MTU 1500, to the clear", encrypted(s), s),
			atLeast(17, 1, "encrypted RDMA Write of 1M over "+s.Link+", MTU 1500, to crypto/tls over TCP, records of 16K",
				encrypted(s), overTLS))
	}
	list = append(list, check{target: 17, what: "encrypted ping-pong by Send over udp to the clear", q: medianLatency,
		num: encrypted(pinged), den: []spec{pinged}, bound: 1, atMost: true, more: 3})
	list = append(list, shapeChecks()...)
	for _, s := range []spec{ddpbenchSpec("write", "raw", lo64K, mid), ddpbenchSpec("write", "udp", lo1500, mid),
		sctpSpec("raw", lo64K, mid), sctpSpec("udp", lo1500, mid)} {
		list = append(list, check{target: 6, what: "allocations for a message, " + s.String(), q: allocsPerMessage,
			num:   s,
			bound: allocated, atMost: true})
	}
	return append(list, mpaChecks()...)
}

// mpaChecks hold RDMA over TCP to what Go's TCP does on the same device.
func mpaChecks() (list []check) {
	for _, net := range []string{lo64K, lo1500, veth1500} {
		list = append(list, atLeast(16, 0.85, "RDMA Write of 1M over tcp, "+net+", to TCP",
			ddpbenchSpec("write", linkTCP, net, big), tcpSpec(net, big)))
		for _, v := range []string{"send", "write"} {
			list = append(list, check{target: 16,
				what: "ping-pong by " + v + " of 64 octets over tcp, " + net + ", to TCP's",
				q:    medianLatency, num: pingPong(ddpbenchSpec(v, linkTCP, net, tiny)),
				den: []spec{pingPong(tcpSpec(net, tiny))}, bound: 1.3, atMost: true})
		}
	}
	return list
}

// shapeChecks hold programs of ours to those that use Go's TCP.
func shapeChecks() (list []check) {
	to := func(target int, what string, q quantity, bound, more float64, pair []spec) {
		num, den := pair[1], pair[0]
		list = append(list, check{target: target, what: fmt.Sprintf("%s of %s to %s", what, num, den), q: q, num: num,
			den: []spec{den}, bound: bound, atMost: true, more: more})
	}
	least := func(target int, bound float64, pair []spec) {
		list = append(list, check{target: target, what: fmt.Sprintf("round trips a second of %s to %s", pair[1],
			pair[0]), q: messageRate, num: pair[1], den: pair[:1], bound: bound})
	}
	// In these parts each spec of ours stands behind that of TCP.
	for target, names := range map[int][]string{9: {"b", "g"}, 10: {"c", "d"}, 11: {"a"}, 12: {"e", "f", "h", "i"},
		15: {"j"}} {
		for _, p := range allParts() {
			if !slices.Contains(names, p.name) {
				continue
			}
			step := 2
			if target == 11 {
				step = 3 // the bare link as well
			}
			for pair := range slices.Chunk(p.specs, step) {
				switch target {
				case 9:
					to(target, "p50", medianLatency, 1.5, 15, pair)
					to(target, "p99", latencyP99, 1.5, 50, pair)
				case 10:
					if pair[1].numConns() > 1 {
						least(target, 1, pair)
						to(target, "processor time a round trip", tripCPU, 1.25, 0, pair)
					}
				case 11:
					to(target, "p50", medianLatency, 1.3, 0, pair)
					to(target, "p50", medianLatency, 2, 0, []spec{pair[2], pair[1]})
				case 12:
					least(target, 1, pair)
					to(target, "processor time a round trip", tripCPU, 1.5, 0, pair)
				case 15:
					bound := 1.0
					if pair[1].Shape == direct && pair[1].numConns() == 1 {
						bound = 0.67
					}
					least(target, bound, pair)
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b check) int { return a.target - b.target })
	for _, p := range twoLinks {
		from, to := shapeSpec("sctp", toBulk, p.link, p.net), shapeSpec("sctp", toDirect, p.link, p.net)
		list = append(list,
			check{target: 14, what: "round trips over " + p.link + " a second after bulk, to those before",
				q:   messageRate,
				num: to, den: []spec{from}, bound: 0.9},
			check{target: 14, what: "bulk over " + p.link + " a second after ping-pong, to that before",
				q: throughputOf, num: from, den: []spec{to}, bound: 0.9})
	}
	for _, link := range []string{"mem", "udp"} {
		least(13, 0.7, []spec{growthSpec(link, underWay, false), growthSpec(link, crowd, false)})
		least(13, 0.5, []spec{growthSpec(link, underWay, true), growthSpec(link, hundredThousand, true)})
	}
	return append(list,
		check{target: 13, what: "processor time of 1,000 idle associations without heartbeats, ms a second",
			q: idleCPU, num: manyAssocsSpec(idle, "udp", idlers, noBeats), bound: 2, atMost: true},
		check{target: 13, what: "processor time of 1,000 idle associations for a heartbeat, us", q: beatCPU,
			num: manyAssocsSpec(idle, "udp", idlers, heartbeatInterval(idlers)), bound: 20, atMost: true})
}

// bothDirectionsCheck wants of both directions of w what two processors should give, or what they
// give to a pump that goes through as much memory.
func bothDirectionsCheck(what string, w, pump spec) check {
	allowed := atLeast(6, 0, "", bothWays(pump), pump)
	c := atLeast(6, 1.3, what, bothWays(w), w)
	c.allowed = &allowed
	return c
}

// allocated is how many allocations for a message count as none: the runtime and the measurement
// make a few, whatever the messages do.
const allocated = 0.05

// slack is how far a ratio may be below another that was measured as well and still count as the
// same: single rounds scatter by two tenths, their medians by about this.
const slack = 0.05

// ratioOn is what a check comes to, and how many rounds do not count as the processors were moved.
func (c *check) ratioOn(bd *board) (r spread, moved int, ok bool) {
	if len(c.den) == 0 {
		r, ok = bd.spreadOf(c.num, c.q)
		return r, 0, ok
	}
	list, moved := bd.compareRounds(c.num, bd.bestThroughput(c.den), c.q, divide)
	r, ok = spreadOf(list)
	return r, moved, ok
}

func (c *check) outcomeOn(bd *board) outcome {
	o := outcome{Target: c.target, What: c.what, Bound: c.bound, AtMost: c.atMost, More: c.more}
	if c.allowed != nil {
		if a, _, ok := c.allowed.ratioOn(bd); ok {
			o.Bound = math.Min(o.Bound, a.Median*(1-slack))
		}
	}
	r, moved, ok := c.ratioOn(bd)
	if !ok {
		return o
	}
	o.Ratio, o.Moved = &r, moved
	if c.atMost {
		o.Met = r.Median <= o.Bound || c.more > 0 && c.isAllowedDifference(bd)
	} else {
		o.Met = r.Median >= o.Bound
	}
	return o
}

// isAllowedDifference reports whether the difference is allowed, whatever the ratio.
func (c *check) isAllowedDifference(bd *board) bool {
	list, _ := bd.compareRounds(c.num, c.den[0], c.q, subtract)
	d, ok := spreadOf(list)
	return ok && d.Median <= c.more
}

// specsCompared are what a check is about.
func (c *check) specsCompared() []spec {
	list := append([]spec{c.num}, c.den...)
	if c.allowed != nil {
		list = append(list, c.allowed.specsCompared()...)
	}
	return list
}

// checkOutcomes are those of the checks whose specs were all to be measured.
func (bd *board) checkOutcomes() (list []outcome) {
	for _, c := range allChecks() {
		asked := func(s spec) bool { return slices.Contains(bd.Specs, s) }
		if !slices.ContainsFunc(c.specsCompared(), func(s spec) bool { return !asked(s) }) {
			list = append(list, c.outcomeOn(bd))
		}
	}
	return list
}

// met is the verdict that is wanted.
const met = "met"

// verdictText is for people.
func (o *outcome) verdictText() string {
	switch {
	case o.Ratio == nil:
		return "not measured"
	case o.Met:
		return met
	}
	return "not met"
}

// limitText is for people.
func (o *outcome) limitText() string {
	sign := ">="
	if o.AtMost {
		sign = "<="
	}
	if o.More > 0 {
		return fmt.Sprintf("%s %.3g or %.3g us more", sign, o.Bound, o.More)
	}
	return fmt.Sprintf("%s %.3g", sign, o.Bound)
}

// specsNeeded are the specs that the checks are about, in the order of the plan.
func specsNeeded() []spec {
	var all []spec
	for _, c := range allChecks() {
		all = append(all, c.specsCompared()...)
	}
	return slices.DeleteFunc(measurePlan(), func(s spec) bool { return !slices.Contains(all, s) })
}
