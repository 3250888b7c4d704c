package main

import (
	"cmp"
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
	"github.com/rddp-go/rddp/internal/quota"
)

// These are perftest's texts, to the letter: its RESULT_LINE, RESULT_FMT..., REPORT_FMT...
const (
	resultLine      = "---------------------------------------------------------------------------------------\n"
	resultHeader    = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
	resultRow       = " %-7d    %-10d       %-7.2f            %-7.2f\t\t   %-7.6f\n"
	latencyHeader   = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
	latencyRow      = " %-7d %d          %-7.2f        %-7.2f      %-7.2f  \t       %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n"
	durationHeader  = " #bytes        #iterations       t_avg[usec]    tps average\n"
	durationRow     = " %-7d       %d            %-7.2f        %-7.2f\n"
	noPeakWarning   = " WARNING: BW peak won't be measured in this run.\n"
	waitingForPeers = "\n************************************\n* Waiting for client to connect... " +
		"*\n************************************\n"
)

// reporter prints results as perftest does, or JSON. A server prints from several goroutines.
type reporter struct {
	*options
	mu       sync.Mutex
	out      io.Writer
	linkName string // for people

	logLimiter *quota.LogLimiter // about clients
}

func newReporter(o *options, out io.Writer, link string) *reporter {
	return &reporter{options: o, out: out, linkName: link, logLimiter: quota.NewServerLimiter()}
}

func (r *reporter) printFormat(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

func (r *reporter) printObject(kind string, v map[string]any) {
	v["type"] = kind
	b, _ := json.Marshal(v) // such values always marshal
	r.printFormat("%s\n", b)
}

// printStart prints the block above the results.
func (r *reporter) printStart(e *engine, to netip.AddrPort) {
	test := e.testTitle()
	path, _ := e.lanes[0].qp.Path()
	mtu := cmp.Or(path.MTU, e.lanes[0].qp.MULPDU()) // TCP has no paths
	if r.asJSON {
		r.printObject("start", map[string]any{
			"test": test, "verb": e.verb.String(), "latency": e.isLatency, "bidirectional": e.bidirectional,
			"link": r.linkName, "mtu": mtu,
			"server": to.String(), "qps": e.qps, "own_associations": e.ownAssociations, "tx_depth": e.depth,
			"verify": e.verify,
		})
		return
	}
	if !e.isLatency && !e.hasPeak() {
		r.printFormat(noPeakWarning)
	}
	r.printFormat(resultLine)
	r.printFormat("                    %s Test\n", test)
	r.printFormat(" Dual-port       : %s\t\tDevice         : %s\n", "OFF", "ddpbench")
	r.printFormat(" Number of qps   : %d\t\tTransport type : %s\n", e.qps, r.link.Protocol())
	r.printFormat(" Connection type : %s\t\tUsing SRQ      : %s\n", "RC", "OFF")
	r.printFormat(" TX depth        : %d\n", e.depth)
	if e.verb == verbSend {
		r.printFormat(" RX depth        : %d\n", e.slotCount())
	}
	if !e.isLatency {
		r.printFormat(" CQ Moderation   : %d\n", e.completionInterval())
	}
	r.printFormat(" Mtu             : %d[B]\n", mtu)
	r.printFormat(" Link type       : %s\n", r.linkName)
	if e.verb.isPull() {
		r.printFormat(" Outstand reads  : %d\n", e.readDepth())
	} else {
		r.printFormat(" Max inline data : %d[B]\n", 0)
	}
	r.printFormat(" rdma_cm QPs\t : %s\n", "OFF")
	r.printFormat(" Data ex. method : %s\n", "private data of DDP stream sessions")
	r.printFormat(resultLine)
	for _, l := range e.lanes {
		r.printAddress("local", &l.localTarget, path.Local.Addr())
		r.printAddress("remote", &l.peerTarget, l.qp.RemoteAddr().Addr())
	}
	r.printFormat(resultLine)
	r.printFormat("%s", r.columnHeader())
}

// testTitle is the name of a test.
func (p *params) testTitle() string {
	switch {
	case p.isLatency:
		return p.verb.String() + " Latency"
	case p.bidirectional:
		return p.verb.String() + " Bidirectional BW"
	}
	return p.verb.String() + " BW"
}

func (r *reporter) printAddress(side string, t *target, addr netip.Addr) {
	if !addr.IsValid() {
		addr = netip.IPv4Unspecified() // over TCP only the system knows its own
	}
	if r.verb == verbSend {
		r.printFormat(" %s address: IP %v QPN 0x%04x\n", side, addr, t.qpn)
		return
	}
	r.printFormat(" %s address: IP %v QPN 0x%04x RKey 0x%06x VAddr 0x%014x\n", side, addr, t.qpn, uint32(t.stag), t.to)
}

func (r *reporter) columnHeader() string {
	switch {
	case !r.isLatency && r.gbits:
		return strings.ReplaceAll(resultHeader, "MiB/sec", "Gb/sec")
	case !r.isLatency:
		return resultHeader
	case r.duration > 0:
		return durationHeader
	}
	return latencyHeader
}

// gigabitInMiB is 10^9 bits a second, in MiB a second.
const gigabitInMiB = 1e9 / 8 / mebi

// printBandwidth prints a result.
func (r *reporter) printBandwidth(size int, b bandwidth) {
	if r.asJSON {
		r.printObject("result", r.bandwidthFigures(size, b))
		return
	}
	if r.gbits {
		b.peak, b.avg = b.peak/gigabitInMiB, b.avg/gigabitInMiB
	}
	r.printFormat(resultRow, size, b.iters, b.peak, b.avg, b.rate)
}

func (r *reporter) bandwidthFigures(size int, b bandwidth) map[string]any {
	v := map[string]any{"bytes": size, "iterations": b.iters, "bw_peak_MiBps": roundDecimals(b.peak),
		"bw_avg_MiBps": roundDecimals(b.avg), "msg_rate_Mpps": roundDecimals(b.rate)}
	if r.gbits {
		v["bw_peak_Gbps"], v["bw_avg_Gbps"] = roundDecimals(b.peak/gigabitInMiB), roundDecimals(b.avg/gigabitInMiB)
	}
	return v
}

// intervalStats is a part of a run: its begin and end in seconds, and what SCTP did in it.
type intervalStats struct {
	from, to    float64
	retransmits uint64
	path        pathUsage // the path of the data at its end
	paths       int       // how many paths there are
}

// pathSuffix names the path, if there are several.
func (s *intervalStats) pathSuffix() string {
	if s.paths < 2 {
		return ""
	}
	return "  to " + s.path.Remote
}

// printInterval prints the result of a part of a run: bandwidth, or latency in microseconds.
func (r *reporter) printInterval(size int, s intervalStats, b bandwidth, avg float64) {
	rate := 0.0
	if avg > 0 {
		rate = 1e6 / avg
	}
	if !r.verb.isPull() {
		rate /= 2
	}
	if r.asJSON {
		v := r.bandwidthFigures(size, b)
		delete(v, "bw_peak_MiBps")
		delete(v, "bw_peak_Gbps")
		if r.isLatency {
			v = map[string]any{"bytes": size, "iterations": b.iters, "t_avg_us": roundDecimals(avg),
				"tps": roundDecimals(rate)}
		}
		v["from_s"], v["to_s"], v["retransmits"], v["cwnd"], v["srtt_us"] = roundDecimals(s.from),
			roundDecimals(s.to), s.retransmits, s.path.Cwnd, roundDecimals(s.path.SRTT)
		if s.paths > 1 {
			v["path"] = s.path.Remote
		}
		r.printObject("interval", v)
		return
	}
	figure, unit := b.avg, "MiB/sec"
	switch {
	case r.isLatency:
		figure, unit = avg, "usec"
	case r.gbits:
		figure, unit = b.avg/gigabitInMiB, "Gb/sec"
	}
	path := ""
	if s.paths > 0 {
		path = fmt.Sprintf("  %d retransmissions  cwnd %d[B]  RTT %.0f[usec]%s", s.retransmits, s.path.Cwnd,
			s.path.SRTT, s.pathSuffix())
	}
	r.printFormat(" %6.2f-%-6.2f sec  %10.2f %s  %d messages%s\n", s.from, s.to, figure, unit, b.iters, path)
}

// printAllResults prints each result of a latency run, as perftest does. For -H they are sorted,
// for -U in their order.
func (r *reporter) printAllResults(results []time.Duration) {
	if !r.unsorted {
		slices.Sort(results)
	}
	if r.asJSON {
		list := make([]float64, len(results))
		for i, d := range results {
			list[i] = roundDecimals(r.tripMicros(d))
		}
		r.printObject("results", map[string]any{"t_us": list, "sorted": !r.unsorted})
		return
	}
	r.printFormat("#, usec\n")
	for i, d := range results {
		r.printFormat("%d, %g\n", i+1, r.tripMicros(d))
	}
}

func (r *reporter) printLatency(kind string, size int, l latencyResult) {
	switch {
	case r.asJSON:
		r.printObject(kind, map[string]any{
			"bytes": size, "iterations": l.iters, "t_min_us": roundDecimals(l.min), "t_max_us": roundDecimals(l.max),
			"t_typical_us": roundDecimals(l.typical),
			"t_avg_us":     roundDecimals(l.avg), "t_stdev_us": roundDecimals(l.stdev), "p99_us": roundDecimals(l.p99),
			"p999_us": roundDecimals(l.p999), "tps": roundDecimals(l.rate),
		})
	case r.duration > 0:
		r.printFormat(durationRow, size, l.iters, l.avg, l.rate)
	default:
		r.printFormat(latencyRow, size, l.iters, l.min, l.max, l.typical, l.avg, l.stdev, l.p99, l.p999)
	}
}

// roundDecimals rounds to six decimals, the most that perftest prints.
func roundDecimals(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// printSummary prints what perftest does not: the share of SCTP and of the processor.
func (r *reporter) printSummary(u *usage, bad uint64, last *latencyResult) {
	if r.asJSON {
		v := map[string]any{"link": r.linkName, "usage": u, "both_ends": r.self, "command": r.commandLine()}
		if r.verify {
			v["bad"] = bad
		}
		r.printObject("summary", v)
		return
	}
	r.printFormat(resultLine)
	if last != nil && r.duration > 0 {
		r.printFormat(" Latency[usec]   : min %.2f, 50%% %.2f, 99%% %.2f, 99.9%% %.2f, max %.2f\n", last.min,
			last.typical, last.p99, last.p999, last.max)
	}
	if r.link.Protocol() == "TCP" {
		r.printFormat(" FPDUs           : %d out, %d in\n", u.FPDUsOut, u.FPDUsIn)
		r.printFormat(" Link            : %s\n", r.linkName)
	} else {
		r.printPackets(u)
	}
	if u.cpuKnown {
		ends := "this end"
		if r.self {
			ends = "both ends"
		}
		r.printFormat(" CPU             : %.3f s user, %.3f s system in %.3f s (%.0f%%), %s\n", u.User, u.System,
			u.Wall, (u.User+u.System)/u.Wall*100, ends)
	}
	if u.Allocs != nil {
		r.printFormat(" Allocations     : %.2f on the heap for a message\n", *u.Allocs)
	}
	if u.Paths != nil {
		r.printFormat(" Failovers       : %d times a silent path was left, %d paths became inactive\n",
			u.Suspected, u.Down)
	}
	r.printFormat(" Duration        : %.3f s\n", u.Wall)
	r.printFormat(" Command         : %s\n", r.commandLine())
	if r.verify {
		r.printFormat(" Verification    : %d messages with wrong content\n", bad)
	}
	r.printFormat(resultLine)
}

// printPackets prints what SCTP has sent and received.
func (r *reporter) printPackets(u *usage) {
	r.printFormat(" Packets         : %d out, %d in; DATA chunks: %d out, %d in\n", u.PacketsOut, u.PacketsIn,
		u.DataOut, u.DataIn)
	r.printFormat(" Retransmissions : %d DATA chunks, %d fast recoveries, %d timeouts; %d duplicates in\n",
		u.Retransmits, u.FastRetransmits, u.Timeouts, u.DuplicatesIn)
	r.printFormat(" SACKs           : %d out, %d in\n", u.SacksOut, u.SacksIn)
	r.printFormat(" Link            : %s; batches: %d out, %d in; %d packets refused, %d dropped\n", r.linkName,
		u.BatchesOut, u.BatchesIn, u.Refused, u.Dropped)
	for _, p := range u.Paths {
		used := ""
		if p.InUse {
			used = ", in use"
		}
		r.printFormat(" Path            : %s -> %s %s%s: cwnd %d[B], SRTT %.0f[usec], MTU %d[B]\n", p.Local, p.Remote,
			p.State, used, p.Cwnd, p.SRTT, p.MTU)
	}
}

// printServing says that clients may come.
func (r *reporter) printServing() {
	if r.asJSON {
		r.printObject("serving", map[string]any{"port": r.port, "link": r.linkName})
		return
	}
	r.printFormat("%s %s port %d over %s\n", waitingForPeers, r.link.Protocol(), r.port, r.linkName)
}

// printRun prints a line about a run of a client. took is 0 if the run never ended.
func (r *reporter) printRun(from netip.AddrPort, e *engine, took time.Duration, err error) {
	left, ok := r.logLimiter.Allow(time.Now(), from.Addr())
	if !ok {
		return
	}
	b := e.totalBandwidth(took)
	if r.asJSON {
		v := map[string]any{"client": from.String(), "test": e.testTitle(), "bytes": e.size, "qps": e.qps,
			"iterations": b.iters, "seconds": roundDecimals(took.Seconds())}
		if !e.isLatency {
			v["bw_avg_MiBps"] = roundDecimals(b.avg)
		}
		if e.verify {
			v["bad"] = e.badMessages()
		}
		if err != nil {
			v["error"] = cli.Explain(err)
		}
		r.printObject("run", v)
		return
	}
	line := fmt.Sprintf(" %v: %s, %d octets, %d QPs: %d messages in %.3f s", from, e.testTitle(), e.size, e.qps,
		b.iters, took.Seconds())
	if !e.isLatency {
		line += fmt.Sprintf(", %.2f MiB/sec", b.avg)
	}
	if e.verify {
		line += fmt.Sprintf(", %d with wrong content", e.badMessages())
	}
	if err != nil {
		line += ": " + cli.Explain(err)
	}
	r.printFormat("%s\n", quota.WithLeftOut(line, left))
}

// printRefused prints a line for a request that was rejected.
func (r *reporter) printRefused(from netip.AddrPort, err error) {
	left, ok := r.logLimiter.Allow(time.Now(), from.Addr())
	if !ok {
		return
	}
	if r.asJSON {
		r.printObject("refused", map[string]any{"client": from.String(), "error": cli.Explain(err)})
		return
	}
	r.printFormat("%s\n", quota.WithLeftOut(fmt.Sprintf(" %v: refused: %s", from, cli.Explain(err)), left))
}
