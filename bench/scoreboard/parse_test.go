package main

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/bench/machine"
	"github.com/rddp-go/rddp/internal/test/must"
)

func almostEqual(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// What the programs print, shortened.
const (
	ddpbenchBW = `{"type":"start","test":"RDMA_Write BW","mtu":65515}
{"type":"result","bytes":1048576,"iterations":2000,"bw_avg_MiBps":4000,"bw_peak_MiBps":0,"msg_rate_Mpps":0.004}
{"type":"summary","link":"raw","usage":{"packets_out":3000,"packets_in":900,"link_batches_out":600,"link_batches_in":300,"allocs_per_message":0.25},"both_ends":false}
`
	ddpbenchLat = `{"type":"result","bytes":64,"iterations":5000,"t_typical_us":10.5,"p99_us":20}
`
	iperfReport = `{
	"start": {"version": "iperf 3.12"},
	"end": {
		"sum_sent": {"seconds": 1, "bytes": 5000000000},
		"sum_received": {"start": 0, "end": 1.25, "seconds": 1.25, "bytes": 5000000000, "bits_per_second": 32000000000}
	}
}
`
	goServer = `ready
{"messages":100,"octets":6553600,"seconds":0.5,"allocs_per_message":0,"packets_in":400,"calls_in":100}
`
	goClient = `{"messages":101,"octets":6619136,"seconds":0.4,"allocs_per_message":1.5,"packets_out":500,"calls_out":50,"p50_us":12,"p99_us":34}
`
)

func TestThroughputIsReadFromEachProgram(t *testing.T) {
	for _, test := range []struct {
		name           string
		parse          func(spec, []byte, []byte) (figures, error)
		s              spec
		server, client string
		gbps, octets   float64
		batch          [2]float64
	}{
		{"ddpbench counts in MiB and in batches", parseDDPBench, ddpbenchSpec("write", "raw", lo64K, big), "", ddpbenchBW, 4000 * 1.048576e-3, 2000 << 20, [2]float64{5, 0}},
		{"the client of a Read receives the data", parseDDPBench, ddpbenchSpec("read", "raw", lo64K, big), "", ddpbenchBW, 4000 * 1.048576e-3, 2000 << 20, [2]float64{3, 0}},
		{"a TUN device has no batches", parseDDPBench, ddpbenchSpec("write", "tun", tun1500, big), "", ddpbenchBW, 4000 * 1.048576e-3, 2000 << 20, [2]float64{}},
		{"iperf3 counts what was received", parseIperf, iperfSpec(lo64K, 0), "", iperfReport, 4, 5e9, [2]float64{}},
		{"of our own ends the server counts", parseReports, tcpSpec(lo64K, mid), goServer, goClient, 6553600 / 0.5 / 1e9, 6553600, [2]float64{10, 4}},
		{"both ways, both ends count", parseReports, bothWays(pumpOver("raw", lo64K)), goServer, goClient, 6553600/0.5/1e9 + 6619136/0.4/1e9, 6553600 + 6619136, [2]float64{10, 4}},
	} {
		f, err := test.parse(test.s, []byte(test.server), []byte(test.client))
		must.That(t, err == nil && almostEqual(f.GBps, test.gbps) && almostEqual(f.Octets, test.octets) &&
			f.Batch == test.batch,
			"%s: %+v, %v", test.name, f, err)
	}
}

func TestLatencyIsThatOfARoundTrip(t *testing.T) {
	for _, test := range []struct {
		name     string
		f        func() (figures, error)
		p50, p99 float64
	}{
		{"ddpbench halves it for Send", func() (figures, error) {
			return parseDDPBench(pingPong(ddpbenchSpec("send", "raw", lo64K, tiny)), nil, []byte(ddpbenchLat))
		}, 21, 40},
		{"ddpbench does not for Read", func() (figures, error) {
			return parseDDPBench(pingPong(ddpbenchSpec("read", "raw", lo64K, tiny)), nil, []byte(ddpbenchLat))
		}, 10.5, 20},
		{"of our own ends the client knows it", func() (figures, error) {
			return parseReports(pingPong(tcpSpec(lo64K, tiny)), []byte(goServer), []byte(goClient))
		}, 12, 34},
	} {
		f, err := test.f()
		must.That(t, err == nil && f.P50 == test.p50 && f.P99 == test.p99, "%s: %+v, %v", test.name, f, err)
	}
}

// An end that has set up much before its round trips says itself where the processors were.
func TestAnEndMaySayWhereTheProcessorsWere(t *testing.T) {
	f, err := parseReports(growthSpec("mem", 2, false), nil,
		[]byte(`{"messages":1,"seconds":1,"growth":{},"line_ns":[50,170]}`))
	must.That(t, err == nil && f.Line == [2]time.Duration{50, 170}, "%+v, %v", f, err)
}

func TestAllocationsAreKnownOrNot(t *testing.T) {
	f, err := parseReports(tcpSpec(lo64K, mid), []byte(goServer), []byte(goClient))
	must.That(t, err == nil && f.Allocs[0] != nil && *f.Allocs[0] == 1.5 && f.Allocs[1] != nil && *f.Allocs[1] == 0,
		"%+v, %v", f, err)
	f, err = parseDDPBench(ddpbenchSpec("write", "raw", lo64K, big), nil, []byte(ddpbenchBW))
	must.That(t, err == nil && f.Allocs[0] != nil && *f.Allocs[0] == 0.25 && f.Allocs[1] == nil, "%+v, %v", f, err)
	got := formatAllocs(f.Allocs)
	must.That(t, got == "0.25, -", "printed as %q", got)
}

func TestProgramsThatFailAreNoResults(t *testing.T) {
	for _, test := range []struct {
		name           string
		parse          func(spec, []byte, []byte) (figures, error)
		server, client string
	}{
		{"ddpbench without a result", parseDDPBench, "", `{"type":"start"}`},
		{"ddpbench with something else", parseDDPBench, "", "hello"},
		{"iperf3 that says why", parseIperf, "", `{"error":"unable to connect"}`},
		{"iperf3 cut short", parseIperf, "", `{"end":`},
		{"a server without a report", parseReports, "ready\n", goClient},
		{"a client without a report", parseReports, goServer, ""},
	} {
		f, err := test.parse(tcpSpec(lo64K, mid), []byte(test.server), []byte(test.client))
		must.That(t, err != nil, "%s: %+v", test.name, f)
	}
	if _, err := lastReport([]byte("ready\n")); !errors.Is(err, errNoReport) {
		t.Error(err)
	}
}

func TestRunsThatSayLittleAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		s    spec
		f    figures
		want string
	}{
		{"nothing arrived", tcpSpec(lo64K, mid), figures{}, "nothing arrived"},
		{"it came in a moment", tcpSpec(lo64K, mid), figures{GBps: 1, Octets: 0.2e9}, "only"},
		{"it took long enough", tcpSpec(lo64K, mid), figures{GBps: 1, Octets: 0.3e9}, ""},
		{"no round trip", pingPong(tcpSpec(lo64K, tiny)), figures{GBps: 1, Octets: 1e9}, "no round trip"},
		{"round trips", pingPong(tcpSpec(lo64K, tiny)), figures{P50: 1}, ""},
		{"no round trip of a program", shapeSpec("tcp", direct, "", lo1500), figures{Octets: 1}, "no round trip"},
	} {
		err := test.f.checkPlausible(test.s, 1)
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestProcIsRead(t *testing.T) {
	if a, b := highWater("Name:\tx\nVmPeak:\t  900 kB\nVmHWM:\t  123 kB\nVmRSS:\t 7 kB\n"),
		highWater("VmHWM:\t123\n"); a != 123<<10 || b != 0 {
		t.Error(a, b)
	}
	const info = "processor\t: 0\nmodel name\t: Foo 9\ncpu family\t: 26\nmodel\t\t: 2\n\nprocessor\t: 1\nmodel name\t: Bar\n"
	if a, b := machine.CPUModel(info), machine.CPUModel(""); a != "Foo 9 (family 26, model 2)" || b != machine.Unknown {
		t.Error(a, b)
	}
}
