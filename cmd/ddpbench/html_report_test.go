package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/chart"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/internal/test/simlink"
	"github.com/rddp-go/rddp/internal/timeline"
	"github.com/rddp-go/rddp/sctp/qlog"
)

// The report of a run over a path of known delay has its figures, of both ends, and of every kind
// of run it has all plots.
func TestReportHasTheFiguresOfBothEnds(t *testing.T) {
	race.Costly(t)
	const plots = "Throughput|Congestion window|Round trip time|Receive window|Queues|Retransmissions|Latency, distribution|Latency, percentiles"
	figures := regexp.MustCompile(`<h2 id="h\d">([^<]+)</h2>`)
	for _, tt := range []struct{ args, want string }{
		// 25 messages of 60,000 bytes in a quarter of a second of 10 ms round trips: 5.722 MiB/s,
		// and then twice as much.
		{"read -t 1 -D 1 -s 60000",
			`(?s)<th scope="row">Average, MiB/s</th><td>8\.58</td>.*<td>RDMA_Read BW</td>.*<th scope="row">Server</th><td>10\.0\.0\.1</td>.*` +
				`Throughput, MiB/s over seconds; client, received from [45]\.\d+ to 1[1-4]\.\d+; server, sent from [45]\.\d+ to 1[1-4]\.\d+".*` +
				`Round trip time, ms over seconds; client from 5 to 10; server from 5 to 10".*` +
				`<th scope="row">\d\.\d+</th><td>10</td><td>10</td>.*<th scope="row">0\.9\d+</th><td>5</td><td>5</td>.*` +
				`Latency, percentiles, µs over % of messages; at most from 4997 to 10002"`},
		{"send --lat -n 300", `(?s)<th scope="row">Median, µs</th><td>2500\.61</td>.*half of a round trip.*distribution, % of messages over µs; messages from 0 to 83\.33"`},
		{"write -a -n 1 -t 1 --report_gbits -q 2", `(?s)<th scope="row">8388608</th><td>2</td>.*<h2 id="h1">By message size</h2>`},
		{"write -b -D 0.5 -t 4", `(?s)client, sent.*client, received.*server, sent.*server, received`},
		{"atomic --lat -D 0.5", `(?s)It is a round trip\.`},
		{"send -q 3 --own -n 50 --cc bbr", `(?s)<th scope="row">Congestion control</th><td>bbr</td>.*<th scope="row">Associations</th><td>3</td>`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "out.html")
			synctest.Test(t, func(t *testing.T) {
				n := simlink.New(1)
				followPhases(n, []phase{{10 * time.Millisecond, 50}, {5 * time.Millisecond, 10_000}})
				stop := serveTool(t, n, io.Discard)
				var out strings.Builder
				code := runTool(t.Context(), t, n, clientAddr, &out,
					append(strings.Fields(tt.args), "--report", file, serverAddr.String())...)
				check.That(t, code == exitOK, "exit %d\n%s", code, &out)
				stop()
			})
			page := string(must.Get(os.ReadFile(file))(t))
			var names []string
			for _, m := range figures.FindAllStringSubmatch(page, -1) {
				names = append(names, m[1])
			}
			got := strings.TrimPrefix(strings.Join(names, "|"), "By message size|")
			check.That(t, got == plots, "plots: %s", got)
			check.That(t, regexp.MustCompile(tt.want).MatchString(page), "no %s in\n%s", tt.want,
				strings.Join(regexp.MustCompile(`<th scope="row">.*|role="img".*`).FindAllString(page, -1), "\n"))
		})
	}
}

// What a server says of itself can be anything: it is cut short, and is text.
func TestServerCannotWriteIntoTheReport(t *testing.T) {
	x := newLab(t)
	c, e := x.connectedClient(t, "write", "-n", "100", "--report", filepath.Join(t.TempDir(), "a.html"))
	c.document = must.Get(newDocument(c.options, "mem"))(t)
	evil := machine{Host: "<script>alert(1)</script>" + strings.Repeat("x", 500), System: "\x1b[2J\n",
		Release: strings.Repeat("y", 100)}
	b := must.Get(json.Marshal(notes{Machine: evil}))(t)
	copy(e.notesRegion.buf, b)
	must.OK(t, e.receiveNotes(uint64(len(b))))
	c.document.addBandwidth(2, bandwidth{iters: 1})
	c.document.addRun(e, nil)
	must.OK(t, c.document.finishReport(&c.usage))
	page := string(must.Get(os.ReadFile(c.reportFile))(t))
	check.Equal(t, "a script", strings.Contains(page, "<script"), false)
	check.That(t,
		regexp.MustCompile(
			`<td>&lt;script&gt;alert\(1\)&lt;/script&gt;x{74}…</td>.*\n.*<td>�\[2J�</td>(?s:.*)<td>y{100}</td>`).MatchString(page),
		"the server is not as it says:\n%s", page)
	for _, b := range []string{`{"line":{"points":[{"at":-1}]}}`, `{`, ``} {
		e.notesReceived = false
		copy(e.notesRegion.buf, b)
		err := e.receiveNotes(uint64(len(b)))
		check.That(t, err != nil && strings.Contains(err.Error(), "what the server tells for the report: "), "%q: %v",
			b, err)
	}
}

// Of a distribution each bar has its share of the messages, at their time; of percentiles each has
// the time of its quickest.
func TestLatenciesOfAReport(t *testing.T) {
	h, one, even, us := newHistogram(), newHistogram(), newHistogram(), func(d time.Duration) float64 {
		return float64(d) / 1e3
	}
	for i := range int64(1000) {
		h.RecordValue(10_000 + i/250*330_000) // 10, 340, 670 and 1000 µs
		one.RecordValue(50_000)
		even.RecordValue((i + 1) * 1000)
	}
	bars, single := distributionFigure(h, us, "x"), distributionFigure(one, us, "x")
	x, y, z := bars.Series[0].X, bars.Series[0].Y, single.Series[0].X
	check.That(t, len(x) == distributionBars+1 && y[0] == 25 && y[distributionBars-1] == 25 && x[0] < 1 &&
		x[0] > 0.98 && x[distributionBars] > 3 && x[distributionBars] < 3.02 && bars.X(2) == "100", "%v\n%v", x, y)
	check.That(t, z[distributionBars]-z[0] > 0.1 && z[distributionBars]-z[0] < 0.13,
		"all took the same: from %v to %v", z[0], z[distributionBars])
	check.That(t, bars.Bars && bars.XLabel == "µs" && bars.YLabel == "% of messages" && bars.Note == "It is x.", "%+v", bars)
	check.Equal(t, "marks", fmt.Sprintf("%.4v", append(bars.XTicks, single.XTicks...)),
		"[{0 1} {1 10} {2 100} {3 1000} {1 10} {1.301 20} {1.699 50}]")
	f := percentileFigure(even, us)
	check.That(t, !f.Bars && f.XLabel == "% of messages" && f.YLabel == "µs" && f.Series[0].Name == "at most", "%+v", f)
	check.Equal(t, "marks of percentiles", fmt.Sprint(f.XTicks),
		"[{0 0} {1 90} {2 99} {3 99.9} {4 99.99} {5 99.999} {6 99.9999} {7 99.99999}]")
	for nines, want := range map[float64]float64{0: 1, 0.5: 684, 1: 900, 2: 990, 3: 999} {
		i := slices.IndexFunc(f.Series[0].X, func(x float64) bool { return x > nines-0.01 })
		check.That(t, math.Abs(f.Series[0].Y[i]-want) < 2, "%v nines: %v, want %v", nines, f.Series[0].Y[i], want)
	}
	sizes := (&document{resultHead: []string{"", "", "", "MiB/s"},
		sizeSeries: chart.Series{X: []float64{1, 3, 21}}}).sizeFigure()
	check.Equal(t, "axes by size", fmt.Sprint(sizes.XTicks, sizes.YLabel, sizes.Series[0].Name, sizes.X(9)),
		"[{1 2} {5 32} {9 512} {13 8K} {17 128K} {21 2M}]MiB/sMiB/s512")
	d := &document{options: new(options)}
	d.addLatency(64, latencyResult{iters: 1, min: 2, max: 3, typical: 4, avg: 5, stdev: 6, p99: 7, p999: 8, rate: 9})
	d.addBandwidth(65, bandwidth{iters: 1, peak: 2, avg: 3, rate: 4})
	check.Equal(t, "rows", fmt.Sprint(d.resultRows),
		"[[64 1 2.00 4.00 5.00 6.00 7.00 8.00 3.00] [65 1 2.00 3.00 4.000000]]")
	d = &document{options: &options{gbits: true}}
	d.addBandwidth(65, bandwidth{iters: 1, peak: 2000, avg: 1000, rate: 4})
	d.addBandwidth(66, bandwidth{iters: 1, avg: 1000})
	check.Equal(t, "rows in gigabits", fmt.Sprint(d.resultRows, d.resultHead), "[[65 1 16.78 8.39 4.000000] [66 1 – 8.39 0.000000]] "+
		"[Bytes Messages Peak, Gb/s Average, Gb/s Million messages/s]")
	check.That(t, math.Abs(d.sizeSeries.Y[0]-8.388608) < 1e-9 && len(d.sizeSeries.Y) == 2, "by size: %v", d.sizeSeries.Y)
	last := f.Series[0].X[len(f.Series[0].X)-1]
	check.That(t, last > 2.99 && last < 3.06 && f.X(2) == "99 %", "the last is %v, of a thousand messages; %s", last,
		f.X(2))
}

// A report that cannot be written is no reason to measure first, and one of nothing leaves no file.
func TestReportThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"write --self --report " + dir:     "ddpbench: --report: open " + dir + ": is a directory\n",
		"write --report " + dir + "/a":     "ddpbench: --report is the client's: it shows the server too\n",
		"--sweep x --report " + dir + "/a": "ddpbench: --report does not go with --sweep, which sets all that itself\n",
		"write 127.0.0.1 --link udp --port 9 --timeout 0.01 --report " + dir + "/nothing": "ddpbench: ",
	} {
		out, errs, code := runBench(t, strings.Fields(args)...)
		check.That(t, code != exitOK && strings.HasPrefix(errs, want), "%s: exit %d, %q %q", args, code, out, errs)
	}
	check.Equal(t, "files", len(must.Get(os.ReadDir(dir))(t)), 0)
}

// A trace of a run over a path of known delay is drawn with its figures, and says what became of
// the association.
func TestTraceIsDrawn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "it.sqlog")
	synctest.Test(t, func(t *testing.T) {
		n := simlink.New(1)
		followPhases(n, []phase{{10 * time.Millisecond, 50}, {0, 500}, {10 * time.Millisecond, 10_000}})
		stop := serveTool(t, n, io.Discard)
		var out strings.Builder
		code := runTool(t.Context(), t, n, clientAddr, &out, "read", "-t", "1", "-s", "60000", "-n", "100", "--trace",
			file, serverAddr.String())
		check.That(t, code == exitOK, "exit %d\n%s", code, &out)
		stop()
	})
	out, errs, code := runBench(t, "trace", file)
	check.Equal(t, "what it says", out+errs, "1 associations, drawn in "+file+".html\n")
	check.Equal(t, "exit", code, exitOK)
	page := string(must.Get(os.ReadFile(file + ".html"))(t))
	const want = `(?s)By ddpbench, begun 2000-01-01T00:00:00Z.*<th scope="row">\d+\.\d{3}</th><td>client-1 with 10\.0\.0\.1:5043</td><td>association_started</td><td>initiator local, local port \d+, peer 10\.0\.0\.1:5043</td>.*` +
		`new ESTABLISHED, old COOKIE-ECHOED.*<th scope="row">537\.500</th><td>[^<]*</td><td>data_retransmitted</td><td>chunks 1, tail probes 1</td>.*<th scope="row">747\.500</th>.*<td>chunks 1, timeouts 1</td>.*new CLOSED, old SHUTDOWN-SENT</td>.*<td>association_closed</td>.*` +
		`Throughput, MiB/s over seconds; client-1 with 10\.0\.0\.1:5043, received from .*Round trip time, ms over seconds; client-1 with 10\.0\.0\.1:5043 from 10 to 10".*Retransmissions, chunks over seconds; [^;"]* from 0 to 3"`
	check.That(t, regexp.MustCompile(want).MatchString(page), "no %s in\n%s", want,
		strings.Join(regexp.MustCompile(`<th scope="row">.*|role="img".*`).FindAllString(page, -1), "\n"))
	for args, want := range map[string]string{
		"trace": "trace FILE: one file", "trace html_report_test.go": "trace html_report_test.go: it is no trace",
		"trace nothing": "trace: open nothing: no such file",
		"trace -n 5 x":  "--iters does not go with trace", "write --self --trace /no/such": "--trace: open /no/such",
		"--sweep x --trace y": "--trace does not go with --sweep",
	} {
		_, errs, code := runBench(t, strings.Fields(args)...)
		check.That(t, code == exitError && strings.Contains(errs, want), "%s: exit %d, %q", args, code, errs)
	}
}

// Of many associations those are drawn that have moved most, with what each line of their metrics
// says; what else there is, is said.
func TestTraceOfManyAssociations(t *testing.T) {
	d, ms := traceDrawing{associations: make(map[string]*assocTrace)}, 0.0
	take := func(group, name, data string) {
		ms += 1000
		must.OK(t, d.addRecord(&qlog.Record{Time: ms, Name: name, Group: group, Data: json.RawMessage(data)}))
	}
	for i, octets := range []int{5, 30, 10, 20, 30, 1, 5, 30, 10, 20, 30, 1} {
		take(string(rune('f'-i%6)), qlog.NameMetrics,
			fmt.Sprintf(`{"primary":true,"bytes_sent":%d,"bytes_received":1}`, octets))
	}
	take("a", qlog.NameMetrics,
		`{"primary":true,"congestion_window":3,"ssthresh":90,"bytes_in_flight":91,"smoothed_rtt":9,"rtt_variance":92,"rto":93,"mtu":94,"outstanding":4,"peer_window":5,`+
			`"own_window":6,"queued":7,"buffered":8,"packets_sent":95,"packets_received":96,"bytes_sent":11,"bytes_received":12,"data_chunks_sent":97,"data_chunks_received":98,"user_data_received":2,"data_chunks_retransmitted":10}`)
	want := timeline.Point{At: 13, Out: 11, In: 2, Cwnd: 3, Flight: 4, Rwnd: 5, Window: 6, Queue: 7, Buffered: 8,
		RTT: 9, Retransmits: 10}
	points := d.associations["a"].recorder.Points()
	check.Equal(t, "the last point", points[len(points)-1], want)
	for range maxEvents + 3 {
		take("a", "event", "{}")
	}
	take("", qlog.NameStarted, "{}") // of no association
	take("", qlog.NameMetrics, "{}")
	for range 3 {
		take("a", qlog.NameMetrics, "{")
	}
	p := d.buildPage(&options{})
	var names []string
	for _, s := range p.Figures[0].Series {
		names = append(names, s.Name[:1])
	}
	check.Equal(t, "those drawn", strings.Join(slices.Compact(names), ""), "beac")
	check.Slice(t, "notes", p.Notes, []string{"Drawn are the 4 associations that have moved most; 2 others are not.",
		"5 more events are in the trace.", "3 records were cut off or are not understood."})
}
