package main

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// Over TCP each verb is measured too, and the report has nothing of SCTP's.
func TestVerbsMeasureThemselvesOverTCP(t *testing.T) {
	for _, args := range []string{"write -n 300 -s 4K -q 3", "read -n 100 -s 100001", "send -n 200 -b", "write --lat -n 200",
		"write -D 0.3 --interval 0.1"} {
		out, errs, code := runBench(t, append(strings.Fields(args), "--self", "--link", "tcp", "--verify")...)
		check.That(t, code == exitOK && errs == "" && !strings.Contains(out, "SCTP") && !strings.Contains(out, "SACK") &&
			!strings.Contains(out, "cwnd") && strings.Contains(out, "Transport type : TCP") &&
			strings.Contains(out, " FPDUs           : ") && !strings.Contains(out, "FPDUs           : 0 out") &&
			strings.Contains(out, "Verification    : 0 messages with wrong content"), "%s: exit %d, %s\n%s", args, code,
			errs, out)
	}
	_, errs, code := runBench(t, "--sweep", t.TempDir(), "--link", "tcp")
	check.That(t, code == exitError && strings.Contains(errs, "--link tcp has none of its own"), "exit %d, %s", code, errs)
}

func TestEveryVerbMeasuresItself(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   string
		header string
		iters  string
	}{
		{"write bandwidth", "write -n 300 -s 4K", resultHeader, "300"},
		{"write of one octet", "write -n 300 -s 1", resultHeader, "300"},
		{"write of odd size, larger than a packet", "write -n 50 -s 100001", resultHeader, "50"},
		{"write on several QPs", "write -n 100 -s 64K -q 3", resultHeader, "300"},
		{"write on several associations", "write -n 100 -s 64K -q 3 --own", resultHeader, "300"},
		{"write both ways", "write -n 200 -b -q 2", resultHeader, "200"},
		{"write one at a time", "write -n 100 -t 1", resultHeader, "100"},
		{"read bandwidth", "read -n 300 -s 4K", resultHeader, "300"},
		{"read deeper than the outstanding reads", "read -n 600 -s 64 -t 300", resultHeader, "600"},
		{"read on several QPs, both ways", "read -n 100 -q 2 -b", resultHeader, "200"},
		{"send bandwidth", "send -n 300 -s 4K", resultHeader, "300"},
		{"send both ways", "send -n 200 -b -q 2", resultHeader, "400"},
		{"send for a time", "send -D 0.2 -s 64", resultHeader, ""},
		{"read for a time, without a completion for the last ones", "read -D 0.2 -s 64", resultHeader, ""},
		{"write latency", "write --lat -n 200", latencyHeader, "200"},
		{"read latency", "read --lat -n 200", latencyHeader, "200"},
		{"send latency", "send --lat -n 200", latencyHeader, "200"},
		{"send latency of messages of many packets", "send --lat -n 20 -s 1M", latencyHeader, "20"},
		{"write latency for a time", "write --lat -D 0.2", durationHeader, ""},
		{"write latency, polling", "write --lat -n 200 --poll 50us", latencyHeader, "200"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, errs, code := runBench(t, append(strings.Fields(tt.args), "--self", "--link", "mem", "--verify")...)
			must.That(t, code == exitOK && errs == "", "exit code %d: %s", code, errs)
			_, rest, found := strings.Cut(out, tt.header)
			must.That(t, found, "no header %q in\n%s", tt.header, out)
			line, _, _ := strings.Cut(rest, "\n")
			row := strings.Fields(line)
			want := tt.iters
			check.That(t, want == "" || row[1] == want || strings.Contains(tt.args, "-b"),
				"%s messages, want %s:\n%s", row[1], want, out)
			for i, f := range row {
				v, err := strconv.ParseFloat(f, 64)
				// no peak, too little for two digits, no time
				none := i == 2 || i == 3 && strings.HasSuffix(tt.args, "-s 1") ||
					strings.Contains(latencyHeader, tt.header)
				check.That(t, err == nil && v >= 0 && (v != 0 || none),
					"column %d is %s:\n%s", i, f, out)
			}
			check.That(t, strings.Contains(out, "Verification    : 0 messages with wrong content"), "no verdict:\n%s",
				out)
		})
	}
}

func TestAllSizesAreMeasured(t *testing.T) {
	out, errs, code := runBench(t, "write", "--self", "--link", "mem", "-a", "-n", "5")
	must.That(t, code == exitOK, "exit code %d: %s", code, errs)
	_, rest, _ := strings.Cut(out, resultHeader)
	lines := strings.Split(rest, "\n")
	for i := range 23 {
		f := strings.Fields(lines[i])
		check.That(t, f[0] == strconv.Itoa(2<<i) && f[1] == "5", "line %d is %q", i, lines[i])
	}
	check.That(t, strings.HasPrefix(lines[23], "-----") && strings.Count(out, "\n Path ") == 1,
		"after 2^23 comes\n%s", strings.Join(lines[23:], "\n"))
}

func TestInterruptedRunTellsWhatItHas(t *testing.T) {
	for _, args := range []string{"write -D 600", "send -b -D 600", "read -q 2 -b -D 600",
		"send --lat -D 600 --interval 0.01", "write -n 90000000 -s 64"} {
		t.Run(args, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, done := &buffer{}, make(chan int)
			var errs bytes.Buffer
			go func() {
				done <- runProgram(ctx, append(strings.Fields(args), "--self", "--link", "mem", "--verify"), out, &errs)
			}()
			lines := 0 // below the header
			if strings.Contains(args, "--interval") {
				lines = 1
			}
			waitUntil(t, "the run is under way", func() bool {
				_, rows, begun := strings.Cut(out.String(), "#bytes")
				return begun && strings.Count(rows, "\n") > lines
			})
			cancel()
			code := <-done
			must.That(t, code == exitOK, "exit code %d: %s", code, errs.String())
			check.That(t, strings.Contains(out.String(), "Verification    : 0 messages"), "no results:\n%s", out)
		})
	}
}

func TestServesConcurrently(t *testing.T) {
	x := newLab(t)
	errs := make(chan error)
	all := []string{"write -n 200 -b", "read -n 200 --own -q 2", "send -n 200 --verify", "send --lat -n 50"}
	for _, args := range all {
		c := x.newClient(t, strings.Fields(args)...)
		go func() { errs <- c.measureAllSizes(t.Context()) }()
	}
	for range all {
		check.OK(t, <-errs)
	}
	waitUntil(t, "the server prints a line for each run", func() bool {
		return strings.Count(x.out.String(), "\n") == len(all)
	})
	for _, want := range []string{
		"RDMA_Write Bidirectional BW, 65536 octets, 1 QPs: 400 messages",
		"RDMA_Read BW, 65536 octets, 2 QPs: 400 messages",
		"Send BW, 65536 octets, 1 QPs: 200 messages", "Send Latency, 2 octets, 1 QPs: 50 messages",
		", 0 with wrong content",
	} {
		check.That(t, strings.Contains(x.out.String(), want), "the server does not say %q:\n%s", want, x.out)
	}
	waitUntil(t, "the server has forgotten the runs", func() bool {
		x.server.mu.Lock()
		defer x.server.mu.Unlock()
		return len(x.server.runs)+len(x.server.dev.QPs()) == 0 && x.server.memoryQuota.UsedUnits() == 0 &&
			x.server.runQuota.UsedUnits() == 0
	})
}
