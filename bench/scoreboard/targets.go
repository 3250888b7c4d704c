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
	return check{target: target, what: what, q: throughput, num: num, den: den, bound: bound}
}

func slower(bound float64, what string, num, den spec) check {
	return check{target: 5, what: what, q: latency, num: num, den: []spec{den}, bound: bound, atMost: true}
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
}

// checks are the project's targets, each with a name of its own.
func checks() (list []check) {
	raw, udp, veth, tun := ddp("write", "raw", lo64K, big), ddp("write", "udp", lo1500, big),
		ddp("write", "raw", veth1500, big), ddp("write", "tun", tun1500, big)
	loop := ddp("write", "raw", lo1500, big)
	list = append(list,
		atLeast(1, 0.75, "RDMA Write of 1M over raw, 64K packets, to its pump", raw, pumpOver("raw", lo64K)),
		atLeast(1, 0.75,
			"RDMA Write of 1M over raw from and to 64 MiB of memory, to a pump that goes through as much", cold(raw),
			cold(pumpOver("raw", lo64K))),
		atLeast(1, 1, "RDMA Write of 1M over raw to iperf3, one stream, default size", raw, iperf(lo64K, 0)),
		atLeast(2, 0.85, "RDMA Write of 1M over udp, MTU 1500, to its pump", udp, pumpOver("udp", lo1500)),
		atLeast(2, 0.65,
			"RDMA Write of 1M over udp from and to 64 MiB of memory, to a pump that goes through as much", cold(udp),
			cold(pumpOver("udp", lo1500))),
		atLeast(2, 20, "RDMA Write of 1M over udp to libusrsctp over UDP", udp, usrsctp("udp", lo1500, big)...),
		atLeast(2, 1, "RDMA Write of 1M over udp to iperf3 at MTU 1500", udp, iperf(lo1500, 0)),
		atLeast(3, 0.8, "RDMA Write of 1M over raw, MTU 1500, veth, to its pump", veth, pumpOver("raw", veth1500)),
		atLeast(3, 2.3, "RDMA Write of 1M over raw, MTU 1500, veth, to libusrsctp over raw", veth,
			usrsctp("raw", veth1500, big)...),
		atLeast(3, 0.8, "RDMA Write of 1M over raw, MTU 1500, loopback, to its pump", loop, pumpOver("raw", lo1500)),
		atLeast(3, 2.3, "RDMA Write of 1M over raw, MTU 1500, loopback, to libusrsctp over raw, which works "+
			"over veth only", loop, usrsctp("raw", veth1500, big)...),
		atLeast(3, 0.7, "RDMA Write of 1M over tun, MTU 1500, to its pump", tun, pumpOver("tun", tun1500)),
		atLeast(4, 10, "messages of 64K over udp, MTU 1500, to pion/sctp", messages("udp", lo1500, mid), pionOver(mid)),
		atLeast(4, 10, "messages of 64K over udp, MTU 1500, to libusrsctp", messages("udp", lo1500, mid),
			usrsctp("udp", lo1500, mid)...),
		atLeast(4, 4, "messages of 64K over raw, 64K packets, to libusrsctp at its best MTU",
			messages("raw", veth64K, mid), usrsctpForced(veth64K, mid)...),
	)
	for _, l := range []struct{ link, net string }{{"raw", lo64K}, {"udp", lo1500}} {
		b := bare(l.link, l.net)
		verb := func(v string) spec { return pingPong(ddp(v, l.link, l.net, tiny)) }
		list = append(list,
			slower(1.3, "Send of 64 octets over "+l.link+" to the bare ping-pong, both blocking",
				blocked(verb("send")), blocked(b)),
			slower(1.3, "Write with notification over "+l.link+", both blocking", blocked(verb("write")), blocked(b)),
			slower(2, "Send over "+l.link+", both as by default, polling for 40 us at most", verb("send"), b),
			slower(2, "Write with notification over "+l.link+", both as by default", verb("write"), b),
			slower(2, "Send over "+l.link+", both polling", polled(verb("send")), polled(b)),
			slower(2, "Write with notification over "+l.link+", both polling", polled(verb("write")), polled(b)),
			slower(1.2, "Read over "+l.link+" to Send, a round trip each", verb("read"), verb("send")),
		)
	}
	for _, w := range []spec{raw, udp} {
		// Receive buffers take more memory than a Write's target: all three go through as much
		// here.
		write, read, send := cold(w), cold(ddp("read", w.Link, w.Net, big)), cold(ddp("send", w.Link, w.Net, big))
		pump := pumpOver(w.Link, w.Net)
		list = append(list,
			atLeast(6, 0.9, "Read of 1M to Write over "+w.Link+", 64 MiB of memory each", read, write),
			atLeast(6, 0.85, "Send of 1M to Write over "+w.Link+", 64 MiB of memory each", send, write),
			together("both directions together to one over "+w.Link+", or as much as the pump, less 5 %", w, pump),
			together("both directions over "+w.Link+" from and to 64 MiB of memory, or as much as the pump, less 5 %",
				write, cold(pump)),
		)
	}
	list = append(list,
		atLeast(6, 0.95, "64 QPs to one, 64 MiB of memory each", cold(qps(raw, 64)), cold(raw)),
		check{target: 6, what: "processor time of both sides for an octet to iperf3's", q: processor, num: raw,
			den: []spec{iperf(lo64K, 0)}, bound: 1.5, atMost: true},
	)
	list = append(list, shapeChecks()...)
	for _, s := range []spec{ddp("write", "raw", lo64K, mid), ddp("write", "udp", lo1500, mid),
		messages("raw", lo64K, mid), messages("udp", lo1500, mid)} {
		list = append(list, check{target: 6, what: "allocations for a message, " + s.String(), q: allocations, num: s,
			bound: allocated, atMost: true})
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
			pair[0]), q: rate, num: pair[1], den: pair[:1], bound: bound})
	}
	// In these parts each spec of ours stands behind that of TCP.
	for target, names := range map[int][]string{9: {"b", "g"}, 10: {"c", "d"}, 11: {"a"}, 12: {"e", "f", "h", "i"},
		15: {"j"}} {
		for _, p := range parts() {
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
					to(target, "p50", latency, 1.5, 15, pair)
					to(target, "p99", tail, 1.5, 50, pair)
				case 10:
					if pair[1].conns() > 1 {
						least(target, 1, pair)
						to(target, "processor time a round trip", tripCPU, 1.25, 0, pair)
					}
				case 11:
					to(target, "p50", latency, 1.3, 0, pair)
					to(target, "p50", latency, 2, 0, []spec{pair[2], pair[1]})
				case 12:
					least(target, 1, pair)
					to(target, "processor time a round trip", tripCPU, 1.5, 0, pair)
				case 15:
					bound := 1.0
					if pair[1].Shape == direct && pair[1].conns() == 1 {
						bound = 0.67
					}
					least(target, bound, pair)
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b check) int { return a.target - b.target })
	for _, p := range twoLinks {
		from, to := shape("sctp", toBulk, p.link, p.net), shape("sctp", toDirect, p.link, p.net)
		list = append(list,
			check{target: 14, what: "round trips over " + p.link + " a second after bulk, to those before", q: rate,
				num: to, den: []spec{from}, bound: 0.9},
			check{target: 14, what: "bulk over " + p.link + " a second after ping-pong, to that before",
				q: throughput, num: from, den: []spec{to}, bound: 0.9})
	}
	for _, link := range []string{"mem", "udp"} {
		least(13, 0.7, []spec{grow(link, underWay, false), grow(link, crowd, false)})
		least(13, 0.5, []spec{grow(link, underWay, true), grow(link, throng, true)})
	}
	return append(list,
		check{target: 13, what: "processor time of 1,000 idle associations without heartbeats, ms a second",
			q: idleCPU, num: many(idle, "udp", idlers, noBeats), bound: 2, atMost: true},
		check{target: 13, what: "processor time of 1,000 idle associations for a heartbeat, us", q: beatCPU,
			num: many(idle, "udp", idlers, beat(idlers)), bound: 20, atMost: true})
}

// together wants of both directions of w what two processors should give, or what they give to a
// pump that goes through as much memory.
func together(what string, w, pump spec) check {
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

// ratio is what a check comes to, and how many rounds do not count as the processors were moved.
func (c *check) ratio(bd *board) (r spread, moved int, ok bool) {
	if len(c.den) == 0 {
		r, ok = bd.spread(c.num, c.q)
		return r, 0, ok
	}
	list, moved := bd.compared(c.num, bd.best(c.den), c.q, quotient)
	r, ok = spreadOf(list)
	return r, moved, ok
}

func (c *check) outcome(bd *board) outcome {
	o := outcome{Target: c.target, What: c.what, Bound: c.bound, AtMost: c.atMost, More: c.more}
	if c.allowed != nil {
		if a, _, ok := c.allowed.ratio(bd); ok {
			o.Bound = math.Min(o.Bound, a.Median*(1-slack))
		}
	}
	r, moved, ok := c.ratio(bd)
	if !ok {
		return o
	}
	o.Ratio, o.Moved = &r, moved
	if c.atMost {
		o.Met = r.Median <= o.Bound || c.more > 0 && c.within(bd)
	} else {
		o.Met = r.Median >= o.Bound
	}
	return o
}

// within reports whether the difference is allowed, whatever the ratio.
func (c *check) within(bd *board) bool {
	list, _ := bd.compared(c.num, c.den[0], c.q, difference)
	d, ok := spreadOf(list)
	return ok && d.Median <= c.more
}

// specs are what a check is about.
func (c *check) specs() []spec {
	list := append([]spec{c.num}, c.den...)
	if c.allowed != nil {
		list = append(list, c.allowed.specs()...)
	}
	return list
}

// outcomes are those of the checks whose specs were all to be measured.
func (bd *board) outcomes() (list []outcome) {
	for _, c := range checks() {
		asked := func(s spec) bool { return slices.Contains(bd.Specs, s) }
		if !slices.ContainsFunc(c.specs(), func(s spec) bool { return !asked(s) }) {
			list = append(list, c.outcome(bd))
		}
	}
	return list
}

// met is the verdict that is wanted.
const met = "met"

// verdict is for people.
func (o *outcome) verdict() string {
	switch {
	case o.Ratio == nil:
		return "not measured"
	case o.Met:
		return met
	}
	return "not met"
}

// limit is for people.
func (o *outcome) limit() string {
	sign := ">="
	if o.AtMost {
		sign = "<="
	}
	if o.More > 0 {
		return fmt.Sprintf("%s %.3g or %.3g us more", sign, o.Bound, o.More)
	}
	return fmt.Sprintf("%s %.3g", sign, o.Bound)
}

// needed are the specs that the checks are about, in the order of the plan.
func needed() []spec {
	var all []spec
	for _, c := range checks() {
		all = append(all, c.specs()...)
	}
	return slices.DeleteFunc(plan(), func(s spec) bool { return !slices.Contains(all, s) })
}
