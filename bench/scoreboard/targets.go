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
	allowed *check // bound is not more than what this one yields, less slack
}

// outcome is a check after a run.
type outcome struct {
	Target int     `json:"target"`
	What   string  `json:"what"`
	Ratio  *spread `json:"ratio"` // nil: not measured
	Bound  float64 `json:"bound"`
	AtMost bool    `json:"at_most"`
	Met    bool    `json:"met"`
}

func atLeast(target int, bound float64, what string, num spec, den ...spec) check {
	return check{target: target, what: what, q: throughput, num: num, den: den, bound: bound}
}

func slower(bound float64, what string, num, den spec) check {
	return check{target: 5, what: what, q: latency, num: num, den: []spec{den}, bound: bound, atMost: true}
}

// checks are the project's targets. Those without a ratio are held by tests: 7 by make bench, 8 by make
// conformance and make interop.
func checks() (list []check) {
	raw, udp, veth, tun := ddp("write", "raw", lo64K, big), ddp("write", "udp", lo1500, big), ddp("write", "raw", veth1500, big), ddp("write", "tun", tun1500, big)
	loop := ddp("write", "raw", lo1500, big)
	list = append(list,
		atLeast(1, 0.75, "RDMA Write of 1M over raw, 64K packets, to its pump", raw, pumpOver("raw", lo64K)),
		atLeast(1, 0.75, "the same from and to 64 MiB of memory, to a pump that goes through as much", cold(raw), cold(pumpOver("raw", lo64K))),
		atLeast(1, 1, "RDMA Write of 1M over raw to iperf3, one stream, default size", raw, iperf(lo64K, 0)),
		atLeast(2, 0.65, "RDMA Write of 1M over udp, MTU 1500, to its pump", udp, pumpOver("udp", lo1500)),
		atLeast(2, 0.65, "the same from and to 64 MiB of memory, to a pump that goes through as much", cold(udp), cold(pumpOver("udp", lo1500))),
		atLeast(2, 20, "RDMA Write of 1M over udp to libusrsctp over UDP", udp, usrsctp("udp", lo1500, big)...),
		atLeast(2, 1, "the same to iperf3 at MTU 1500", udp, iperf(lo1500, 0)),
		atLeast(3, 0.8, "RDMA Write of 1M over raw, MTU 1500, veth, to its pump", veth, pumpOver("raw", veth1500)),
		atLeast(3, 2.3, "the same to libusrsctp over raw", veth, usrsctp("raw", veth1500, big)...),
		atLeast(3, 0.8, "RDMA Write of 1M over raw, MTU 1500, loopback, to its pump", loop, pumpOver("raw", lo1500)),
		atLeast(3, 2.3, "the same to libusrsctp over raw, which works over veth only", loop, usrsctp("raw", veth1500, big)...),
		atLeast(3, 0.7, "RDMA Write of 1M over tun, MTU 1500, to its pump", tun, pumpOver("tun", tun1500)),
		atLeast(4, 10, "messages of 64K over udp, MTU 1500, to pion/sctp", messages("udp", lo1500, mid), pionOver(mid)),
		atLeast(4, 10, "the same to libusrsctp", messages("udp", lo1500, mid), usrsctp("udp", lo1500, mid)...),
		atLeast(4, 4, "messages of 64K over raw, 64K packets, to libusrsctp at its best MTU", messages("raw", veth64K, mid), usrsctpForced(veth64K, mid)...),
	)
	for _, l := range []struct{ link, net string }{{"raw", lo64K}, {"udp", lo1500}} {
		b := bare(l.link, l.net)
		verb := func(v string) spec { return pingPong(ddp(v, l.link, l.net, tiny)) }
		list = append(list,
			slower(1.3, "Send of 64 octets over "+l.link+" to the bare ping-pong, both blocking", blocked(verb("send")), blocked(b)),
			slower(1.3, "Write with notification over "+l.link+", both blocking", blocked(verb("write")), blocked(b)),
			slower(2, "Send over "+l.link+", both as by default, polling for 40 us at most", verb("send"), b),
			slower(2, "Write with notification over "+l.link+", both as by default", verb("write"), b),
			slower(2, "Send over "+l.link+", both polling", polled(verb("send")), polled(b)),
			slower(2, "Write with notification over "+l.link+", both polling", polled(verb("write")), polled(b)),
			slower(1.2, "Read over "+l.link+" to Send, a round trip each", verb("read"), verb("send")),
		)
	}
	for _, w := range []spec{raw, udp} {
		// Receive buffers take more memory than a Write's target: all three go through as much here.
		write, read, send := cold(w), cold(ddp("read", w.Link, w.Net, big)), cold(ddp("send", w.Link, w.Net, big))
		pump := pumpOver(w.Link, w.Net)
		list = append(list,
			atLeast(6, 0.9, "Read of 1M to Write over "+w.Link+", 64 MiB of memory each", read, write),
			atLeast(6, 0.85, "Send of 1M to Write over "+w.Link+", 64 MiB of memory each", send, write),
			together("both directions together to one over "+w.Link+", or as much as the pump, less 5 %", w, pump),
			together("the same from and to 64 MiB of memory", write, cold(pump)),
		)
	}
	list = append(list,
		atLeast(6, 0.95, "64 QPs to one, 64 MiB of memory each", cold(qps(raw, 64)), cold(raw)),
		check{target: 6, what: "processor time of both sides for an octet to iperf3's", q: processor, num: raw, den: []spec{iperf(lo64K, 0)}, bound: 1.5, atMost: true},
	)
	for _, s := range []spec{ddp("write", "raw", lo64K, mid), ddp("write", "udp", lo1500, mid), messages("raw", lo64K, mid), messages("udp", lo1500, mid)} {
		list = append(list, check{target: 6, what: "allocations for a message, " + s.String(), q: allocations, num: s, bound: allocated, atMost: true})
	}
	return list
}

// together wants of both directions of w what two processors should give, or what they give to a pump that goes through as
// much memory.
func together(what string, w, pump spec) check {
	allowed := atLeast(6, 0, "", bothWays(pump), pump)
	c := atLeast(6, 1.3, what, bothWays(w), w)
	c.allowed = &allowed
	return c
}

// allocated is how many allocations for a message count as none: the runtime and the measurement make
// a few, whatever the messages do.
const allocated = 0.05

// slack is how far a ratio may be below another that was measured as well and still count as the same: single rounds
// scatter by two tenths, their medians by about this.
const slack = 0.05

// ratio is what a check comes to.
func (c *check) ratio(bd *board) (spread, bool) {
	num := bd.values(c.num, c.q)
	if len(c.den) == 0 {
		return bd.spread(c.num, c.q)
	}
	return spreadOf(ratios(num, bd.values(bd.best(c.den), c.q)))
}

func (c *check) outcome(bd *board) outcome {
	o := outcome{Target: c.target, What: c.what, Bound: c.bound, AtMost: c.atMost}
	if c.allowed != nil {
		if a, ok := c.allowed.ratio(bd); ok {
			o.Bound = math.Min(o.Bound, a.Median*(1-slack))
		}
	}
	r, ok := c.ratio(bd)
	if !ok {
		return o
	}
	o.Ratio = &r
	if c.atMost {
		o.Met = r.Median <= o.Bound
	} else {
		o.Met = r.Median >= o.Bound
	}
	return o
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

// verdict is for people.
func (o *outcome) verdict() string {
	switch {
	case o.Ratio == nil:
		return "not measured"
	case o.Met:
		return "met"
	}
	return "not met"
}

// limit is for people.
func (o *outcome) limit() string {
	sign := ">="
	if o.AtMost {
		sign = "<="
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
