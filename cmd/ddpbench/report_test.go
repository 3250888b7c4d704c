package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestPerftestLetters compares with what perftest's printf formats yield in C.
func TestPerftestLetters(t *testing.T) {
	const (
		bw  = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
		lat = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
		dur = " #bytes        #iterations       t_avg[usec]    tps average\n"
	)
	l := latency{iters: 1000, min: 1.891, max: 58.62, typical: 1.97, avg: 2.6, stdev: 3.38, p99: 16.59, p999: 32.03}
	for _, tt := range []struct {
		name, want string
		p          params
		print      func(*reporter)
	}{
		{"bandwidth header", bw, params{iters: 1}, func(r *reporter) { r.print("%s", r.header()) }},
		{"latency header", lat, params{lat: true, iters: 1}, func(r *reporter) { r.print("%s", r.header()) }},
		{"latency header with a duration", dur, params{lat: true, duration: 1}, func(r *reporter) { r.print("%s", r.header()) }},
		{
			"bandwidth row", " 65536      5000             3303.29            3126.99\t\t   0.050032\n", params{iters: 1},
			func(r *reporter) { r.bandwidth("result", 65536, bandwidth{5000, 3303.294, 3126.987, 0.0500321}) },
		},
		{
			"bandwidth row wider than its columns", " 8388608    12345678901       0.00               12345.50\t\t   1.250000\n", params{iters: 1},
			func(r *reporter) { r.bandwidth("result", 8388608, bandwidth{12345678901, 0, 12345.5, 1.25}) },
		},
		{
			"latency row", " 64      1000          1.89           58.62        1.97     \t       2.60        \t3.38   \t\t16.59   \t\t32.03  \n", params{lat: true, iters: 1},
			func(r *reporter) { r.latency("result", 64, l) },
		},
		{
			"latency row with a duration", " 2             71950            13.90          35973.94\n", params{lat: true, duration: 1},
			func(r *reporter) { r.latency("result", 2, latency{iters: 71950, avg: 13.9, rate: 35973.94}) },
		},
		{
			"line", strings.Repeat("-", 87) + "\n", params{}, func(r *reporter) { r.print(resultLine) },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			tt.print(newReporter(&options{params: tt.p}, &out, ""))
			if out.String() != tt.want {
				t.Errorf("got  %q\nwant %q", out.String(), tt.want)
			}
		})
	}
}

func TestHeaderBlock(t *testing.T) {
	out, _, _ := bench(t, "read", "--self", "--link", "mem", "-n", "10", "-q", "2", "-b")
	for _, want := range []string{
		"                    RDMA_Read Bidirectional BW Test\n", " Number of qps   : 2\t\tTransport type : SCTP\n", " Connection type : RC\t\tUsing SRQ      : OFF\n",
		" TX depth        : 128\n", " CQ Moderation   : 32\n", " Outstand reads  : 128\n", " Link type       : memory of this process\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "local address: "); n != 2 {
		t.Errorf("%d local addresses for 2 QPs:\n%s", n, out)
	}
	if strings.Contains(out, "WARNING") {
		t.Errorf("a peak was measured:\n%s", out)
	}
	if out, _, _ = bench(t, "write", "--self", "--link", "mem", "-D", "0.05"); !strings.HasPrefix(out, noPeakWarning) {
		t.Errorf("with a duration there is no peak:\n%s", out)
	}
}

func TestPeak(t *testing.T) {
	at := func(ms ...int) (list []time.Duration) {
		for _, v := range ms {
			list = append(list, time.Duration(v)*time.Millisecond)
		}
		return list
	}
	for _, tt := range []struct {
		name   string
		posted []time.Duration
		ends   []batch
		want   float64 // messages a second
	}{
		{"none measured", nil, nil, 0},
		{"one message", at(0), []batch{{1, at(10)[0]}}, 100},
		{"a fast message after a slow one", at(0, 100), []batch{{1, at(100)[0]}, {2, at(101)[0]}}, 1000},
		{"several complete at once", at(0, 0, 0, 0), []batch{{4, at(4)[0]}}, 1000},
		{"the best stretch is in the middle", at(0, 50, 50, 50), []batch{{1, at(50)[0]}, {3, at(51)[0]}, {4, at(100)[0]}}, 2000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&peak{posted: tt.posted, ends: tt.ends}).rate(); got != tt.want {
				t.Errorf("%v messages a second, want %v", got, tt.want)
			}
		})
	}
}
