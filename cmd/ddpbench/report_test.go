package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/sctp"
)

// TestPerftestLetters compares with what perftest's printf formats yield in C.
func TestPerftestLetters(t *testing.T) {
	const (
		bw  = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
		lat = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
		dur = " #bytes        #iterations       t_avg[usec]    tps average\n"
	)
	l := latencyResult{iters: 1000, min: 1.891, max: 58.62, typical: 1.97, avg: 2.6, stdev: 3.38, p99: 16.59,
		p999: 32.03}
	for _, tt := range []struct {
		name, want string
		p          params
		print      func(*reporter)
	}{
		{"bandwidth header", bw, params{iters: 1}, func(r *reporter) { r.printFormat("%s", r.columnHeader()) }},
		{"latency header", lat, params{isLatency: true, iters: 1}, func(r *reporter) { r.printFormat("%s", r.columnHeader()) }},
		{"latency header with a duration", dur, params{isLatency: true, duration: 1}, func(r *reporter) { r.printFormat("%s", r.columnHeader()) }},
		{
			"bandwidth row", " 65536      5000             3303.29            3126.99\t\t   0.050032\n",
			params{iters: 1},
			func(r *reporter) { r.printBandwidth(65536, bandwidth{5000, 3303.294, 3126.987, 0.0500321}) },
		},
		{
			"bandwidth row wider than its columns",
			" 8388608    12345678901       0.00               12345.50\t\t   1.250000\n", params{iters: 1},
			func(r *reporter) { r.printBandwidth(8388608, bandwidth{12345678901, 0, 12345.5, 1.25}) },
		},
		{
			"latency row",
			" 64      1000          1.89           58.62        1.97     \t       2.60        \t3.38   \t\t16.59   \t\t32.03  \n", params{isLatency: true, iters: 1},
			func(r *reporter) { r.printLatency("result", 64, l) },
		},
		{
			"latency row with a duration", " 2             71950            13.90          35973.94\n",
			params{isLatency: true, duration: 1},
			func(r *reporter) { r.printLatency("result", 2, latencyResult{iters: 71950, avg: 13.9, rate: 35973.94}) },
		},
		{
			"line", strings.Repeat("-", 87) + "\n", params{}, func(r *reporter) { r.printFormat(resultLine) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			tt.print(newReporter(&options{params: tt.p}, &out, ""))
			check.Equal(t, "report", out.String(), tt.want)
		})
	}
}

func TestHeaderBlock(t *testing.T) {
	random := regexp.MustCompile(`QPN 0x[0-9a-f]{4}( RKey 0x[0-9a-f]{6,8} VAddr 0x[0-9a-f]{14,16})?\n`)
	line := strings.TrimSpace(resultLine)
	var out string
	for _, tt := range []struct{ args, want string }{
		{"send -q 2 -b -s 3M", `                    Send Bidirectional BW Test
 Dual-port       : OFF		Device         : ddpbench
 Number of qps   : 2		Transport type : SCTP
 Connection type : RC		Using SRQ      : OFF
 TX depth        : 128
 RX depth        : 2
 CQ Moderation   : 5
 Mtu             : as found[B]
 Link type       : memory of this process
 Max inline data : 0[B]
 rdma_cm QPs	 : OFF
 Data ex. method : private data of DDP stream sessions
` + line + "\n local address: IP 10.0.0.2 ID\n remote address: IP 10.0.0.1 ID\n local address: IP 10.0.0.2 ID\n remote address: IP 10.0.0.1 ID\n" + resultLine + resultHeader},
		{"read --lat", `                    RDMA_Read Latency Test
 Dual-port       : OFF		Device         : ddpbench
 Number of qps   : 1		Transport type : SCTP
 Connection type : RC		Using SRQ      : OFF
 TX depth        : 1
 Mtu             : as found[B]
 Link type       : memory of this process
 Outstand reads  : 1
 rdma_cm QPs	 : OFF
 Data ex. method : private data of DDP stream sessions
` + line + "\n local address: IP 10.0.0.2 ID and key\n remote address: IP 10.0.0.1 ID and key\n" + resultLine + latencyHeader},
	} {
		out, _, _ = runBench(t, append(strings.Fields(tt.args), "--self", "--link", "mem", "-n", "10")...)
		// the search may be under way
		out = regexp.MustCompile(`: (1220|65532)\[B\]\n Link type`).ReplaceAllString(out, ": as found[B]\n Link type")
		out = random.ReplaceAllStringFunc(out, func(id string) string {
			if strings.Contains(id, "RKey") {
				return "ID and key\n"
			}
			return "ID\n"
		})
		check.That(t, strings.HasPrefix(out, resultLine+tt.want), "%s: got\n%s\nwant\n%s", tt.args, out, tt.want)
	}
	check.That(t, !strings.Contains(out, "WARNING"), "a peak was measured:\n%s", out)
	for _, lat := range []bool{false, true} {
		out, _, _ = runBench(t, "write", "--self", "--link", "mem", "-D", "0.05", fmt.Sprint("--lat=", lat))
		check.That(t, strings.HasPrefix(out, noPeakWarning) != lat,
			"with a duration there is no peak, with latencies none is meant:\n%s", out)
	}
}

// What two runs used is their sum, and the share of the processor is of the time they took.
func TestUsageOfTwoRunsIsTheirSum(t *testing.T) {
	at := time.Unix(1000, 0)
	u, o := usage{}, &options{}
	for i, run := range []time.Duration{time.Second, 3 * time.Second} {
		from := usageMark{takenAt: at, user: time.Second, system: 2 * time.Second, cpuKnown: true}
		to := usageMark{takenAt: at.Add(run), user: time.Second + run/2, system: 2*time.Second + run/4, cpuKnown: true}
		for k, c := range from.counterFields() {
			*c = uint64(k)
			*to.counterFields()[k] = uint64(2*k + i + 1)
		}
		u.addBetween(from, to)
	}
	for k, c := range u.counterFields() {
		check.Equal(t, fmt.Sprint("counter ", k), *c, uint64(2*k+3))
	}
	per := 0.25
	u.Allocs = &per
	u.Paths = []pathUsage{{"a", "b", "active", true, 4380, 12.4, 1500},
		{"c", "d", "suspected, primary", false, 1, 2, 3}}
	o.args = []string{"write", "h\x1b"}
	for _, self := range []bool{false, true} {
		var out bytes.Buffer
		o.self = self
		newReporter(o, &out, "road").printSummary(&u, 0, nil)
		want := resultLine +
			" Packets         : 3 out, 5 in; DATA chunks: 7 out, 9 in\n Retransmissions : 11 DATA chunks, 13 fast recoveries, 15 timeouts; 17 duplicates in\n" +
			" SACKs           : 19 out, 21 in\n Link            : road; batches: 23 out, 25 in; 27 packets refused, 29 dropped\n" +
			" Path            : a -> b active, in use: cwnd 4380[B], SRTT 12[usec], MTU 1500[B]\n" +
			" Path            : c -> d suspected, primary: cwnd 1[B], SRTT 2[usec], MTU 3[B]\n" +
			" CPU             : 2.000 s user, 1.000 s system in 4.000 s (75%), " +
			map[bool]string{false: "this end", true: "both ends"}[self] +
			"\n Allocations     : 0.25 on the heap for a message\n Failovers       : 31 times a silent path was left, 33 paths became inactive\n" +
			" Duration        : 4.000 s\n Command         : ddpbench write h\uFFFD\n" + resultLine
		check.That(t, out.String() == want, "got\n%swant\n%s", &out, want)
	}
	for verify, want := range map[bool]string{
		false: `{"both_ends":true,"command":"ddpbench write h�","link":"","type":"summary","usage":{"packets_out":3,`,
		true:  `{"bad":7,"both_ends":true,`} {
		var out bytes.Buffer
		o.asJSON, o.verify = true, verify
		newReporter(o, &out, "").printSummary(&u, 7, nil)
		check.That(t, strings.HasPrefix(out.String(), want) &&
			strings.Contains(out.String(), `"link_refused":27,"link_dropped":29,`), "got %s, want %s", &out, want)
	}
}

// A refused request is one line, of JSON where that is asked for.
func TestRefusedRequestIsOneLine(t *testing.T) {
	for asJSON, want := range map[bool]string{false: " 192.0.2.1:7: refused: no\n",
		true: `{"client":"192.0.2.1:7","error":"no","type":"refused"}` + "\n"} {
		var out bytes.Buffer
		newReporter(&options{asJSON: asJSON}, &out, "").printRefused(netip.MustParseAddrPort("192.0.2.1:7"),
			errors.New("no"))
		check.Equal(t, "report", out.String(), want)
	}
}

// What the counters of an association and of its link are called in a report.
func TestTrafficIsThatOfTheCounters(t *testing.T) {
	var a rdma.AssocStats
	var link sctp.TransportStats
	n := uint64(0)
	for _, c := range []*uint64{&a.PacketsOut, &a.PacketsIn, &a.DataOut, &a.DataIn, &a.Retransmits,
		&a.FastRetransmits, &a.Timeouts,
		&a.DuplicatesIn, &a.SacksOut, &a.SacksIn, &link.TxBatches, &link.RxBatches, &link.TxFailed, &link.RxDropped,
		&a.PathsSuspected, &a.PathsDown} {
		n++
		*c = n
	}
	got := trafficOf(&a)
	got.setLinkCounters(&link)
	got.FPDUsOut, got.FPDUsIn = n+1, n+2 // of TCP, without an association
	for i, c := range got.counterFields() {
		check.That(t, *c == uint64(i+1), "counter %d has the value of counter %d", i+1, *c)
	}
}

// The allocations of the first half of a run are none of a message's.
func TestSteadyCountsTheSecondHalf(t *testing.T) {
	start := time.Now()
	for _, tt := range []struct {
		p     params
		early time.Duration // and n is not half of all messages either
		half  time.Duration
	}{{params{iters: 100, qps: 2}, 0, 0}, {params{duration: time.Second}, time.Second/2 - 1, time.Second / 2}} {
		e := &engine{params: tt.p, startedAt: start}
		var s steadyAllocs
		s.checkHalf(e, start.Add(tt.early), 99)
		check.That(t, s.perMessage(200) == nil, "%+v: a figure before the second half", tt.p)
		s.checkHalf(e, start.Add(tt.half), 100)
		before := mallocCount()
		keep := make([]*int, 50_000)
		for i := range keep {
			keep[i] = new(int)
		}
		s.checkHalf(e, start.Add(tt.half), 101)
		want := float64(mallocCount()-before) / 100
		per := s.perMessage(200)
		check.That(t, len(keep) != 0 && per != nil && *per >= want && *per <= want*1.01,
			"%+v: %v for a message, want %v", tt.p, per, want)
		check.That(t, s.perMessage(100) == nil, "%+v: a figure without a message", tt.p)
	}
}

func TestPeakIsMeasuredUpToItsLimitOnly(t *testing.T) {
	for p, want := range map[params]bool{{iters: maxPeakMessages, qps: 1}: true,
		{iters: maxPeakMessages + 1, qps: 1}: false, {iters: maxPeakMessages/2 + 1, qps: 2}: false,
		{duration: 1, qps: 1}: false} {
		got := p.hasPeak()
		check.That(t, got == want, "%d messages on %d QPs: measurable %v", p.iters, p.qps, got)
	}
	at := func(ms ...int) (list []time.Duration) {
		for _, v := range ms {
			list = append(list, time.Duration(v)*time.Millisecond)
		}
		return list
	}
	for _, tt := range []struct {
		name   string
		posted []time.Duration
		ends   []completionBatch
		want   float64 // messages a second
	}{
		{"none measured", nil, nil, 0},
		{"one message", at(0), []completionBatch{{1, at(10)[0]}}, 100},
		{"a fast message after a slow one", at(0, 100), []completionBatch{{1, at(100)[0]}, {2, at(101)[0]}}, 1000},
		{"several complete at once", at(0, 0, 0, 0), []completionBatch{{4, at(4)[0]}}, 1000},
		{"the best stretch is in the middle", at(0, 50, 50, 50), []completionBatch{{1, at(50)[0]}, {3, at(51)[0]}, {4, at(100)[0]}}, 2000},
		{"the last never completes", at(0, 5), []completionBatch{{1, at(10)[0]}}, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check.Equal(t, "messages a second", (&peak{postTimes: tt.posted, batches: tt.ends}).highestRate(), tt.want)
		})
	}
}
