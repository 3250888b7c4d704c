package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/fair"
)

// What perftest prints, to the letter: its RESULT_LINE, RESULT_FMT..., REPORT_FMT...
const (
	resultLine      = "---------------------------------------------------------------------------------------\n"
	resultHeader    = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
	resultRow       = " %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\n"
	latencyHeader   = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
	latencyRow      = " %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n"
	durationHeader  = " #bytes        #iterations       t_avg[usec]    tps average\n"
	durationRow     = " %-7d       %d            %-7.2f        %-7.2f\n"
	noPeakWarning   = " WARNING: BW peak won't be measured in this run.\n"
	waitingForPeers = "\n************************************\n* Waiting for client to connect... *\n************************************\n"
)

// reporter prints results as perftest does, or JSON. A server prints from several goroutines.
type reporter struct {
	*options
	mu   sync.Mutex
	out  io.Writer
	link string // for people

	lines *fair.Lines // about clients
}

func newReporter(o *options, out io.Writer, link string) *reporter {
	return &reporter{options: o, out: out, link: link, lines: fair.OfServer()}
}

func (r *reporter) print(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

func (r *reporter) object(kind string, v map[string]any) {
	v["type"] = kind
	b, _ := json.Marshal(v) // numbers, strings, booleans and usage always marshal
	r.print("%s\n", b)
}

// start prints the block above the results.
func (r *reporter) start(e *engine, to netip.AddrPort) {
	test := e.title()
	path, _ := e.lanes[0].qp.Path()
	if r.json {
		r.object("start", map[string]any{
			"test": test, "verb": e.verb.String(), "latency": e.lat, "bidirectional": e.both, "link": r.link, "mtu": path.MTU,
			"server": to.String(), "qps": e.qps, "own_associations": e.own, "tx_depth": e.depth, "verify": e.verify,
		})
		return
	}
	if !e.lat && !e.measurable() {
		r.print(noPeakWarning)
	}
	r.print(resultLine)
	r.print("                    %s Test\n", test)
	r.print(" Dual-port       : %s\t\tDevice         : %s\n", "OFF", "ddpbench")
	r.print(" Number of qps   : %d\t\tTransport type : %s\n", e.qps, "SCTP")
	r.print(" Connection type : %s\t\tUsing SRQ      : %s\n", "RC", "OFF")
	r.print(" TX depth        : %d\n", e.depth)
	if e.verb == verbSend {
		r.print(" RX depth        : %d\n", e.slots())
	}
	if !e.lat {
		r.print(" CQ Moderation   : %d\n", e.moderation())
	}
	r.print(" Mtu             : %d[B]\n", path.MTU)
	r.print(" Link type       : %s\n", r.link)
	if e.verb.pulls() {
		r.print(" Outstand reads  : %d\n", e.reads())
	} else {
		r.print(" Max inline data : %d[B]\n", 0)
	}
	r.print(" rdma_cm QPs\t : %s\n", "OFF")
	r.print(" Data ex. method : %s\n", "private data of DDP stream sessions")
	r.print(resultLine)
	for _, l := range e.lanes {
		r.address("local", &l.own, path.Local.Addr())
		r.address("remote", &l.peer, path.Remote.Addr())
	}
	r.print(resultLine)
	r.print("%s", r.header())
}

// title is the name of a test.
func (p *params) title() string {
	switch {
	case p.lat:
		return p.verb.String() + " Latency"
	case p.both:
		return p.verb.String() + " Bidirectional BW"
	}
	return p.verb.String() + " BW"
}

func (r *reporter) address(side string, t *target, addr netip.Addr) {
	if r.verb == verbSend {
		r.print(" %s address: IP %v QPN 0x%04x\n", side, addr, t.qpn)
		return
	}
	r.print(" %s address: IP %v QPN 0x%04x RKey 0x%06x VAddr 0x%014x\n", side, addr, t.qpn, uint32(t.stag), t.to)
}

func (r *reporter) header() string {
	switch {
	case !r.lat && r.gbits:
		return strings.ReplaceAll(resultHeader, "MiB/sec", "Gb/sec")
	case !r.lat:
		return resultHeader
	case r.duration > 0:
		return durationHeader
	}
	return latencyHeader
}

// gigabit is 10^9 bits a second, in MiB a second.
const gigabit = 1e9 / 8 / mega

// bandwidth prints a result.
func (r *reporter) bandwidth(size int, b bandwidth) {
	if r.json {
		r.object("result", r.figures(size, b))
		return
	}
	if r.gbits {
		b.peak, b.avg = b.peak/gigabit, b.avg/gigabit
	}
	r.print(resultRow, size, b.iters, b.peak, b.avg, b.rate)
}

func (r *reporter) figures(size int, b bandwidth) map[string]any {
	v := map[string]any{"bytes": size, "iterations": b.iters, "bw_peak_MiBps": round(b.peak), "bw_avg_MiBps": round(b.avg), "msg_rate_Mpps": round(b.rate)}
	if r.gbits {
		v["bw_peak_Gbps"], v["bw_avg_Gbps"] = round(b.peak/gigabit), round(b.avg/gigabit)
	}
	return v
}

// span is a part of a run: from when to when, in seconds, and what SCTP did in it.
type span struct {
	from, to    float64
	retransmits uint64
	path        path // that data goes by at its end
	paths       int  // of which
}

// by names the path, where there are several.
func (s *span) by() string {
	if s.paths < 2 {
		return ""
	}
	return "  to " + s.path.Remote
}

// interval prints what a part of a run has brought: bandwidth, or latency in microseconds.
func (r *reporter) interval(size int, s span, b bandwidth, avg float64) {
	rate := 0.0
	if avg > 0 {
		rate = 1e6 / avg
	}
	if !r.verb.pulls() {
		rate /= 2
	}
	if r.json {
		v := r.figures(size, b)
		delete(v, "bw_peak_MiBps")
		delete(v, "bw_peak_Gbps")
		if r.lat {
			v = map[string]any{"bytes": size, "iterations": b.iters, "t_avg_us": round(avg), "tps": round(rate)}
		}
		v["from_s"], v["to_s"], v["retransmits"], v["cwnd"], v["srtt_us"] = round(s.from), round(s.to), s.retransmits, s.path.Cwnd, round(s.path.SRTT)
		if s.paths > 1 {
			v["path"] = s.path.Remote
		}
		r.object("interval", v)
		return
	}
	figure, unit := b.avg, "MiB/sec"
	switch {
	case r.lat:
		figure, unit = avg, "usec"
	case r.gbits:
		figure, unit = b.avg/gigabit, "Gb/sec"
	}
	r.print(" %6.2f-%-6.2f sec  %10.2f %s  %d messages  %d retransmissions  cwnd %d[B]  RTT %.0f[usec]%s\n", s.from, s.to, figure, unit, b.iters, s.retransmits, s.path.Cwnd, s.path.SRTT, s.by())
}

// all prints each result of a latency run, as perftest does for -H, or in their order for -U.
func (r *reporter) all(results []time.Duration) {
	if !r.unsorted {
		slices.Sort(results)
	}
	if r.json {
		list := make([]float64, len(results))
		for i, d := range results {
			list[i] = round(r.trip(d))
		}
		r.object("results", map[string]any{"t_us": list, "sorted": !r.unsorted})
		return
	}
	r.print("#, usec\n")
	for i, d := range results {
		r.print("%d, %g\n", i+1, r.trip(d))
	}
}

func (r *reporter) latency(kind string, size int, l latency) {
	switch {
	case r.json:
		r.object(kind, map[string]any{
			"bytes": size, "iterations": l.iters, "t_min_us": round(l.min), "t_max_us": round(l.max), "t_typical_us": round(l.typical),
			"t_avg_us": round(l.avg), "t_stdev_us": round(l.stdev), "p99_us": round(l.p99), "p999_us": round(l.p999), "tps": round(l.rate),
		})
	case r.duration > 0:
		r.print(durationRow, size, l.iters, l.avg, l.rate)
	default:
		r.print(latencyRow, size, l.iters, l.min, l.max, l.typical, l.avg, l.stdev, l.p99, l.p999)
	}
}

// round leaves six decimals, as many as perftest prints at most.
func round(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// end prints what perftest does not: what SCTP and the processor had to do with it.
func (r *reporter) end(u *usage, bad uint64, last *latency) {
	if r.json {
		v := map[string]any{"link": r.link, "usage": u, "both_ends": r.self, "command": r.command()}
		if r.verify {
			v["bad"] = bad
		}
		r.object("summary", v)
		return
	}
	r.print(resultLine)
	if last != nil && r.duration > 0 {
		r.print(" Latency[usec]   : min %.2f, 50%% %.2f, 99%% %.2f, 99.9%% %.2f, max %.2f\n", last.min, last.typical, last.p99, last.p999, last.max)
	}
	r.print(" Packets         : %d out, %d in; DATA chunks: %d out, %d in\n", u.PacketsOut, u.PacketsIn, u.DataOut, u.DataIn)
	r.print(" Retransmissions : %d DATA chunks, %d fast recoveries, %d timeouts; %d duplicates in\n", u.Retransmits, u.FastRetransmits, u.Timeouts, u.DuplicatesIn)
	r.print(" SACKs           : %d out, %d in\n", u.SacksOut, u.SacksIn)
	r.print(" Link            : %s; batches: %d out, %d in; %d packets refused, %d dropped\n", r.link, u.BatchesOut, u.BatchesIn, u.Refused, u.Dropped)
	for _, p := range u.Paths {
		used := ""
		if p.InUse {
			used = ", in use"
		}
		r.print(" Path            : %s -> %s %s%s: cwnd %d[B], SRTT %.0f[usec], MTU %d[B]\n", p.Local, p.Remote, p.State, used, p.Cwnd, p.SRTT, p.MTU)
	}
	if u.cpu {
		ends := "this end"
		if r.self {
			ends = "both ends"
		}
		r.print(" CPU             : %.3f s user, %.3f s system in %.3f s (%.0f%%), %s\n", u.User, u.System, u.Wall, (u.User+u.System)/u.Wall*100, ends)
	}
	if u.Allocs != nil {
		r.print(" Allocations     : %.2f on the heap for a message\n", *u.Allocs)
	}
	r.print(" Failovers       : %d times a silent path was left, %d paths became inactive\n", u.Suspected, u.Down)
	r.print(" Duration        : %.3f s\n", u.Wall)
	r.print(" Command         : %s\n", r.command())
	if r.verify {
		r.print(" Verification    : %d messages with wrong content\n", bad)
	}
	r.print(resultLine)
}

// serving says that clients may come.
func (r *reporter) serving() {
	if r.json {
		r.object("serving", map[string]any{"port": r.port, "link": r.link})
		return
	}
	r.print("%s SCTP port %d over %s\n", waitingForPeers, r.port, r.link)
}

// served prints a line for a run that a client had here. took is 0 if the run never ended.
func (r *reporter) served(from netip.AddrPort, e *engine, took time.Duration, err error) {
	left, ok := r.lines.Allow(time.Now(), from.Addr())
	if !ok {
		return
	}
	b := e.moved(took)
	if r.json {
		v := map[string]any{"client": from.String(), "test": e.title(), "bytes": e.size, "qps": e.qps, "iterations": b.iters, "seconds": round(took.Seconds())}
		if !e.lat {
			v["bw_avg_MiBps"] = round(b.avg)
		}
		if e.verify {
			v["bad"] = e.bad()
		}
		if err != nil {
			v["error"] = cli.Explain(err)
		}
		r.object("run", v)
		return
	}
	line := fmt.Sprintf(" %v: %s, %d octets, %d QPs: %d messages in %.3f s", from, e.title(), e.size, e.qps, b.iters, took.Seconds())
	if !e.lat {
		line += fmt.Sprintf(", %.2f MiB/sec", b.avg)
	}
	if e.verify {
		line += fmt.Sprintf(", %d with wrong content", e.bad())
	}
	if err != nil {
		line += ": " + cli.Explain(err)
	}
	r.print("%s\n", fair.Line(line, left))
}

// refused prints a line for a request that was rejected.
func (r *reporter) refused(from netip.AddrPort, err error) {
	left, ok := r.lines.Allow(time.Now(), from.Addr())
	if !ok {
		return
	}
	if r.json {
		r.object("refused", map[string]any{"client": from.String(), "error": cli.Explain(err)})
		return
	}
	r.print("%s\n", fair.Line(fmt.Sprintf(" %v: refused: %s", from, cli.Explain(err)), left))
}
