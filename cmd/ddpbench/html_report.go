package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rddp-go/rddp/internal/chart"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/timeline"
)

// document is the report of --report. A nil document writes nothing.
type document struct {
	*options
	file     *os.File
	linkName string // which link

	settingRows [][]string // what was measured
	resultHead  []string   // of the results
	resultRows  [][]string // a row for each size
	sizeSeries  chart.Series

	lastSize      int             // the size that the rest is of
	timelines     []timeline.Line // both ends
	serverMachine machine
	messageTimes  *hdrhistogram.Histogram // nanoseconds
	toMicros      func(time.Duration) float64
	timesMeaning  string // what they are
}

// newDocument checks that the report can be written, before anything is measured.
func newDocument(o *options, over string) (*document, error) {
	if o.reportFile == "" {
		return nil, nil
	}
	f, err := os.Create(o.reportFile)
	if err != nil {
		return nil, cli.Usagef("--report: %v", err)
	}
	return &document{options: o, file: f, linkName: over}, nil
}

// prepareEngine makes an engine gather what the report shows.
func (d *document) prepareEngine(e *engine) error {
	if d == nil {
		return nil
	}
	if !e.isLatency {
		e.completionTimes = newHistogram()
	}
	return e.openNotesRegion()
}

// describeRun adds what was measured.
func (d *document) describeRun(e *engine) {
	path, _ := pathInUse(e.lanes[0].qp)
	content := "not checked"
	if e.verify {
		content = "checked"
	}
	d.settingRows = [][]string{
		{"Test", e.testTitle()}, {"Client", path.Local.Addr().String()}, {"Server", path.Remote.Addr().String()}, {"Link", d.linkName}, {"MTU", fmt.Sprintf("%d bytes", path.MTU)},
		{"Command", d.commandLine()},
		{"Congestion control", path.Controller}, {"QPs", strconv.Itoa(e.qps)}, {"Associations", strconv.Itoa(len(e.distinctAssociations()))},
		{"Outstanding on a QP", fmt.Sprintf("%d messages", e.depth)}, {"Content", content},
	}
}

// addBandwidth and latency add the result of one size.
func (d *document) addBandwidth(size int, b bandwidth) {
	if d == nil {
		return
	}
	unit, of := "MiB/s", 1.0
	if d.gbits {
		unit, of = "Gb/s", gigabitInMiB
	}
	d.resultHead = []string{"Bytes", "Messages", "Peak, " + unit, "Average, " + unit, "Million messages/s"}
	peak := "–"
	if b.peak > 0 {
		peak = fmt.Sprintf("%.2f", b.peak/of)
	}
	d.resultRows = append(d.resultRows, []string{strconv.Itoa(size), strconv.FormatUint(b.iters, 10), peak,
		fmt.Sprintf("%.2f", b.avg/of), fmt.Sprintf("%.6f", b.rate)})
	d.addToSizes(size, b.avg/of)
}

func (d *document) addLatency(size int, l latencyResult) {
	if d == nil {
		return
	}
	d.resultHead = []string{"Bytes", "Messages", "Least, µs", "Median, µs", "Average, µs", "Deviation, µs",
		"99 %, µs", "99.9 %, µs", "Most, µs"}
	row := []string{strconv.Itoa(size), strconv.FormatUint(l.iters, 10)}
	for _, v := range []float64{l.min, l.typical, l.avg, l.stdev, l.p99, l.p999, l.max} {
		row = append(row, fmt.Sprintf("%.2f", v))
	}
	d.resultRows = append(d.resultRows, row)
	d.addToSizes(size, l.typical)
}

// addToSizes adds the result as one number.
func (d *document) addToSizes(size int, v float64) {
	d.sizeSeries.X, d.sizeSeries.Y = append(d.sizeSeries.X, math.Log2(float64(size))), append(d.sizeSeries.Y, v)
}

// addRun adds the samples of a run that has ended.
func (d *document) addRun(e *engine, round *hdrhistogram.Histogram) {
	if d == nil {
		return
	}
	e.stopSampler()
	d.describeRun(e)
	d.lastSize, d.serverMachine = e.size, e.serverNotes.Machine
	d.timelines = []timeline.Line{{Name: "client", Points: e.samples},
		{Name: "server", Points: e.serverNotes.Line.Points}}
	d.messageTimes, d.toMicros = e.completionTimes, func(t time.Duration) float64 { return float64(t) / 1e3 }
	d.timesMeaning = "from the posting of a message to its completion, of the messages that ask for one"
	if e.isLatency {
		d.messageTimes, d.toMicros, d.timesMeaning = round, e.params.tripMicros, "half of a round trip"
		if e.verb.isPull() {
			d.timesMeaning = "a round trip"
		}
	}
}

// finishReport writes the report. If it has nothing to show, it removes the file.
func (d *document) finishReport(u *usage) error {
	if d == nil {
		return nil
	}
	var err error
	if len(d.resultRows) > 0 {
		err = d.writePage(d.file, u)
	}
	if failed := d.file.Close(); err == nil {
		err = failed
	}
	if len(d.resultRows) == 0 {
		os.Remove(d.reportFile)
	}
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

func (d *document) writePage(w io.Writer, u *usage) error {
	rate := timeline.MiB
	if d.gbits {
		rate = timeline.Gbit
	}
	here := thisMachine()
	p := chart.Page{
		Title: fmt.Sprintf("ddpbench: %s", d.testTitle()),
		Lead:  fmt.Sprintf("RDMA over SCTP, measured %s.", time.Now().Format("2006-01-02 15:04:05 MST")),
		Tables: []chart.Table{
			d.resultTable(), {Title: "What was measured", Rows: d.settingRows},
			{Title: "Client", Rows: here.machineRows()}, {Title: "Server, as it says of itself", Rows: d.serverMachine.machineRows()}, {Title: "What it took, at the client", Rows: u.usageRows(d.self)},
		},
		Notes: []string{fmt.Sprintf("Plots over time are of messages of %d bytes. Both ends count from when the "+
			"last QP was connected.", d.lastSize)},
	}
	if len(d.resultRows) > 1 {
		p.Figures = append(p.Figures, d.sizeFigure())
	}
	p.Figures = append(p.Figures, timeline.Figures(d.timelines, rate)...)
	if d.messageTimes != nil && d.messageTimes.TotalCount() > 0 {
		p.Figures = append(p.Figures, distributionFigure(d.messageTimes, d.toMicros, d.timesMeaning),
			percentileFigure(d.messageTimes, d.toMicros))
	}
	return p.Write(w)
}

// resultTable is the table of results. Those of one size are below each other.
func (d *document) resultTable() chart.Table {
	t := chart.Table{Title: "Results", Head: d.resultHead, Rows: d.resultRows}
	if len(d.resultRows) == 1 {
		t.Head, t.Rows = nil, nil
		for i, h := range d.resultHead {
			t.Rows = append(t.Rows, []string{h, d.resultRows[0][i]})
		}
	}
	return t
}

// sizeFigure is the result over the message size.
func (d *document) sizeFigure() chart.Figure {
	f := chart.Figure{Title: "By message size", YLabel: d.resultHead[3], XLabel: "bytes in a message",
		Series: []chart.Series{d.sizeSeries},
		X:      func(x float64) string { return strconv.Itoa(1 << int(math.Round(x))) }}
	f.Series[0].Name = d.resultHead[3]
	for x := d.sizeSeries.X[0]; x <= d.sizeSeries.X[len(d.sizeSeries.X)-1]; x += 4 {
		f.XTicks = append(f.XTicks, chart.Tick{At: x, Label: formatPower(int(math.Round(x)))})
	}
	return f
}

// formatPower writes a power of two.
func formatPower(x int) string { return strconv.Itoa(1<<(x%10)) + [...]string{"", "K", "M", "G"}[x/10] }

// distributionBars is the number of bars in the distribution of latencies.
const distributionBars = 40

// distributionFigure shows how many messages took how long, on a logarithmic axis.
func distributionFigure(h *hdrhistogram.Histogram, trip func(time.Duration) float64, what string) chart.Figure {
	log := func(ns int64) float64 { return math.Log10(trip(time.Duration(max(ns, 1)))) }
	least, most := log(h.Min()), log(h.Max())
	least, most = least-0.01, max(most, least+0.1)+0.01
	step := (most - least) / distributionBars
	s := chart.Series{Name: "messages"}
	for i := range distributionBars + 1 {
		s.X, s.Y = append(s.X, least+float64(i)*step), append(s.Y, 0)
	}
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			i := int((log((b.From+b.To)/2) - least) / step)
			s.Y[i] += 100 * float64(b.Count) / float64(h.TotalCount())
		}
	}
	f := chart.Figure{Title: "Latency, distribution", Note: "It is " + what + ".", XLabel: "µs",
		YLabel: "% of messages", Bars: true, Series: []chart.Series{s},
		X: func(x float64) string { return fmt.Sprintf("%.4g", math.Pow(10, x)) }}
	for e := math.Floor(least); e <= most; e++ {
		for _, k := range []float64{1, 2, 5} {
			if most-least < 2 || k == 1 {
				f.XTicks = append(f.XTicks,
					chart.Tick{At: e + math.Log10(k),
						Label: strconv.FormatFloat(k*math.Pow(10, e), 'f', int(max(0, -e)), 64)})
			}
		}
	}
	return f
}

// percentileFigure shows the longest time of each percentile. Each further nine takes the same
// distance on the axis.
func percentileFigure(h *hdrhistogram.Histogram, trip func(time.Duration) float64) chart.Figure {
	f := chart.Figure{Title: "Latency, percentiles", XLabel: "% of messages", YLabel: "µs",
		Series: []chart.Series{{Name: "at most"}},
		X:      func(x float64) string { return fmt.Sprintf("%.6g %%", 100*(1-math.Pow(10, -x))) }}
	s := &f.Series[0]
	for x := 0.0; ; x += 0.05 {
		q := 1 - math.Pow(10, -x)
		s.X, s.Y = append(s.X, x), append(s.Y, trip(time.Duration(h.ValueAtQuantile(100*q))))
		if x > 1 && math.Pow(10, x) >= float64(h.TotalCount()) {
			break
		}
	}
	for i, label := range []string{"0", "90", "99", "99.9", "99.99", "99.999", "99.9999", "99.99999"} {
		f.XTicks = append(f.XTicks, chart.Tick{At: float64(i), Label: label})
	}
	return f
}

// usageRows are what runs cost, as rows of the report.
func (u *usage) usageRows(self bool) [][]string {
	rows := [][]string{
		{"Packets", fmt.Sprintf("%d out, %d in", u.PacketsOut, u.PacketsIn)},
		{"DATA chunks", fmt.Sprintf("%d out, %d in", u.DataOut, u.DataIn)},
		{"Retransmissions", fmt.Sprintf("%d chunks, %d fast recoveries, %d timeouts", u.Retransmits, u.FastRetransmits, u.Timeouts)},
		{"SACKs", fmt.Sprintf("%d out, %d in", u.SacksOut, u.SacksIn)},
		{"Link", fmt.Sprintf("%d packets refused, %d dropped", u.Refused, u.Dropped)},
		{"Failovers", fmt.Sprintf("%d times a silent path was left, %d paths became inactive", u.Suspected, u.Down)},
		{"Duration", fmt.Sprintf("%.3f s", u.Wall)},
	}
	for _, p := range u.Paths {
		used := ""
		if p.InUse {
			used = ", in use"
		}
		rows = append(rows, []string{"Path", fmt.Sprintf("%s to %s, %s%s; cwnd %d bytes, SRTT %.0f µs", p.Local,
			p.Remote, p.State, used, p.Cwnd, p.SRTT)})
	}
	if u.cpuKnown {
		ends := "this end"
		if self {
			ends = "both ends"
		}
		rows = append(rows, []string{"Processor", fmt.Sprintf("%.3f s user, %.3f s system in %.3f s, %s", u.User,
			u.System, u.Wall, ends)})
	}
	return rows
}
