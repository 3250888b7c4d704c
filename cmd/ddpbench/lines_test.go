package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
)

// Each line of a result, letter by letter: what it has, and what it has not, as text and as JSON.
func TestEachLineOfAResult(t *testing.T) {
	b := bandwidth{iters: 5, peak: 200, avg: 100, rate: 0.5}
	l := latencyResult{iters: 9, min: 1, max: 7, typical: 2, avg: 3, stdev: 4, p99: 5, p999: 6, rate: 8}
	s := intervalStats{from: 1, to: 2.5, retransmits: 3, paths: 2, path: pathUsage{Remote: "10.0.0.2", Cwnd: 4, SRTT: 5}}
	one, none := s, s
	one.paths, none.paths = 1, 0
	trips := func() []time.Duration { return []time.Duration{3000, 1000, 2000} }
	interval := func(s intervalStats, avg float64) func(r *reporter) {
		return func(r *reporter) { r.printInterval(64, s, b, avg) }
	}
	results := func(r *reporter) { r.printAllResults(trips()) }
	of := func(o options) *options { o.verb = verbWrite; return &o }
	pull := func(o options) *options { o.verb = verbRead; return &o }
	lat := options{params: params{isLatency: true}}
	for _, row := range []struct {
		name       string
		o          *options
		print      func(r *reporter)
		text, json string
	}{
		{"an interval", of(options{}), interval(s, 0),
			"   1.00-2.50   sec      100.00 MiB/sec  5 messages  3 retransmissions  cwnd 4[B]  RTT 5[usec]  to 10.0.0.2\n",
			`{"bw_avg_MiBps":100,"bytes":64,"cwnd":4,"from_s":1,"iterations":5,"msg_rate_Mpps":0.5,"path":"10.0.0.2","retransmits":3,"srtt_us":5,"to_s":2.5,"type":"interval"}`},
		{"an interval over one path", of(options{}), interval(one, 0),
			"   1.00-2.50   sec      100.00 MiB/sec  5 messages  3 retransmissions  cwnd 4[B]  RTT 5[usec]\n",
			`{"bw_avg_MiBps":100,"bytes":64,"cwnd":4,"from_s":1,"iterations":5,"msg_rate_Mpps":0.5,"retransmits":3,"srtt_us":5,"to_s":2.5,"type":"interval"}`},
		{"an interval over TCP", of(options{}), interval(none, 0), "   1.00-2.50   sec      100.00 MiB/sec  5 messages\n",
			`{"bw_avg_MiBps":100,"bytes":64,"cwnd":4,"from_s":1,"iterations":5,"msg_rate_Mpps":0.5,"retransmits":3,"srtt_us":5,"to_s":2.5,"type":"interval"}`},
		{"an interval in gigabits", of(options{gbits: true}), interval(none, 0), "   1.00-2.50   sec        0.84 Gb/sec  5 messages\n",
			`{"bw_avg_Gbps":0.838861,"bw_avg_MiBps":100,"bytes":64,"cwnd":4,"from_s":1,"iterations":5,"msg_rate_Mpps":0.5,"retransmits":3,"srtt_us":5,"to_s":2.5,"type":"interval"}`},
		{"an interval of round trips", of(lat), interval(none, 8), "   1.00-2.50   sec        8.00 usec  5 messages\n",
			`{"bytes":64,"cwnd":4,"from_s":1,"iterations":5,"retransmits":3,"srtt_us":5,"t_avg_us":8,"to_s":2.5,"tps":62500,"type":"interval"}`},
		{"an interval of Reads", pull(lat), interval(s, 8),
			"   1.00-2.50   sec        8.00 usec  5 messages  3 retransmissions  cwnd 4[B]  RTT 5[usec]  to 10.0.0.2\n",
			`{"bytes":64,"cwnd":4,"from_s":1,"iterations":5,"path":"10.0.0.2","retransmits":3,"srtt_us":5,"t_avg_us":8,"to_s":2.5,"tps":125000,"type":"interval"}`},
		{"an interval without an answer", pull(lat), interval(none, 0), "   1.00-2.50   sec        0.00 usec  5 messages\n",
			`{"bytes":64,"cwnd":4,"from_s":1,"iterations":5,"retransmits":3,"srtt_us":5,"t_avg_us":0,"to_s":2.5,"tps":0,"type":"interval"}`},
		{"bandwidth", of(options{}), func(r *reporter) { r.printBandwidth(64, b) }, fmt.Sprintf(resultRow, 64, 5, 200.0, 100.0, 0.5),
			`{"bw_avg_MiBps":100,"bw_peak_MiBps":200,"bytes":64,"iterations":5,"msg_rate_Mpps":0.5,"type":"result"}`},
		{"bandwidth in gigabits", of(options{gbits: true}), func(r *reporter) { r.printBandwidth(64, b) }, fmt.Sprintf(resultRow, 64, 5, 1.6777216, 0.8388608, 0.5),
			`{"bw_avg_Gbps":0.838861,"bw_avg_MiBps":100,"bw_peak_Gbps":1.677722,"bw_peak_MiBps":200,"bytes":64,"iterations":5,"msg_rate_Mpps":0.5,"type":"result"}`},
		{"latency", of(lat), func(r *reporter) { r.printLatency("x", 64, l) }, fmt.Sprintf(latencyRow, 64, 9, 1.0, 7.0, 2.0, 3.0, 4.0, 5.0, 6.0),
			`{"bytes":64,"iterations":9,"p999_us":6,"p99_us":5,"t_avg_us":3,"t_max_us":7,"t_min_us":1,"t_stdev_us":4,"t_typical_us":2,"tps":8,"type":"x"}`},
		{"all round trips, sorted", of(lat), results, "#, usec\n1, 0.5\n2, 1\n3, 1.5\n", `{"sorted":true,"t_us":[0.5,1,1.5],"type":"results"}`},
		{"all of Reads", pull(lat), results, "#, usec\n1, 1\n2, 2\n3, 3\n", `{"sorted":true,"t_us":[1,2,3],"type":"results"}`},
		{"all, in their order", of(options{params: lat.params, unsorted: true}), results, "#, usec\n1, 1.5\n2, 0.5\n3, 1\n", `{"sorted":false,"t_us":[1.5,0.5,1],"type":"results"}`},
		{"a server that waits", of(options{port: 7}), func(r *reporter) { r.printServing() }, waitingForPeers + " SCTP port 7 over road\n", `{"link":"road","port":7,"type":"serving"}`},
	} {
		for asJSON, want := range map[bool]string{false: row.text, true: row.json + "\n"} {
			var out bytes.Buffer
			o := *row.o
			o.asJSON = asJSON
			row.print(newReporter(&o, &out, "road"))
			check.Equal(t, row.name, out.String(), want)
		}
	}
}

// A server's line about a run says whose it was, what it was, and how it went.
func TestLinesOfAServer(t *testing.T) {
	from := netip.MustParseAddrPort("192.0.2.1:7")
	for _, row := range []struct {
		name       string
		p          params
		err        error
		text, json string
	}{
		{"bandwidth", params{size: 1 << 20, qps: 2}, nil, " 192.0.2.1:7: RDMA_Write BW, 1048576 octets, 2 QPs: 10 messages in 2.500 s, 4.00 MiB/sec\n",
			`{"bw_avg_MiBps":4,"bytes":1048576,"client":"192.0.2.1:7","iterations":10,"qps":2,"seconds":2.5,"test":"RDMA_Write BW","type":"run"}`},
		{"latency", params{size: 64, qps: 1, isLatency: true}, nil, " 192.0.2.1:7: RDMA_Write Latency, 64 octets, 1 QPs: 10 messages in 2.500 s\n",
			`{"bytes":64,"client":"192.0.2.1:7","iterations":10,"qps":1,"seconds":2.5,"test":"RDMA_Write Latency","type":"run"}`},
		{"wrong content, and an error", params{size: 64, qps: 1, isLatency: true, verify: true}, errors.New("no"),
			" 192.0.2.1:7: RDMA_Write Latency, 64 octets, 1 QPs: 10 messages in 2.500 s, 3 with wrong content: no\n",
			`{"bad":3,"bytes":64,"client":"192.0.2.1:7","error":"no","iterations":10,"qps":1,"seconds":2.5,"test":"RDMA_Write Latency","type":"run"}`},
		{"both ways", params{size: 1 << 20, qps: 1, bidirectional: true, verb: verbSend}, nil, " 192.0.2.1:7: Send Bidirectional BW, 1048576 octets, 1 QPs: 10 messages in 2.500 s, 4.00 MiB/sec\n",
			`{"bw_avg_MiBps":4,"bytes":1048576,"client":"192.0.2.1:7","iterations":10,"qps":1,"seconds":2.5,"test":"Send Bidirectional BW","type":"run"}`},
	} {
		for asJSON, want := range map[bool]string{false: row.text, true: row.json + "\n"} {
			var out bytes.Buffer
			e := &engine{params: row.p, completed: 4, lanes: []*lane{{received: 6, badMessages: 1}, {badMessages: 2}}}
			newReporter(&options{asJSON: asJSON}, &out, "").printRun(from, e, 2500*time.Millisecond, row.err)
			check.Equal(t, row.name, out.String(), want)
		}
	}
}

// What a summary says besides, of round trips, of TCP, and of what was verified.
func TestSummaryOfEachKindOfRun(t *testing.T) {
	last := &latencyResult{min: 1, typical: 2, p99: 3, p999: 4, max: 5}
	u := usage{Wall: 2.5, traffic: traffic{FPDUsOut: 6, FPDUsIn: 7}}
	const end = " Duration        : 2.500 s\n Command         : ddpbench\n"
	const packets = " Packets         : 0 out, 0 in; DATA chunks: 0 out, 0 in\n" +
		" Retransmissions : 0 DATA chunks, 0 fast recoveries, 0 timeouts; 0 duplicates in\n" +
		" SACKs           : 0 out, 0 in\n Link            : road; batches: 0 out, 0 in; 0 packets refused, 0 dropped\n"
	for _, row := range []struct {
		name string
		o    options
		last *latencyResult
		want string
	}{
		{"over TCP", options{}, nil, " FPDUs           : 6 out, 7 in\n Link            : road\n" + end},
		{"over SCTP", options{}, nil, packets + end},
		{"round trips for a time", options{params: params{isLatency: true, duration: 1}}, last,
			" Latency[usec]   : min 1.00, 50% 2.00, 99% 3.00, 99.9% 4.00, max 5.00\n" + packets + end},
		{"round trips by their number", options{params: params{isLatency: true}}, last, packets + end},
		{"with --verify", options{params: params{verify: true}}, nil, packets + end + " Verification    : 8 messages with wrong content\n"},
	} {
		var out bytes.Buffer
		if row.name == "over TCP" {
			row.o.link.Kind = "tcp"
		}
		newReporter(&row.o, &out, "road").printSummary(&u, 8, row.last)
		check.Equal(t, row.name, out.String(), resultLine+row.want+resultLine)
	}
}
