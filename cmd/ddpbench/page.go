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

// document is what --report writes. Nil writes nothing.
type document struct {
	*options
	file *os.File
	over string // which link

	setting [][]string // what was measured
	head    []string   // of the results
	results [][]string // a row for each size
	sizes   chart.Series

	last   int             // the size that the rest is of
	lines  []timeline.Line // both ends
	there  machine
	times  *hdrhistogram.Histogram // nanoseconds
	trip   func(time.Duration) float64
	timing string // what they are
}

// newDocument makes sure that the report can be written, before anything is measured.
func newDocument(o *options, over string) (*document, error) {
	if o.page == "" {
		return nil, nil
	}
	f, err := os.Create(o.page)
	if err != nil {
		return nil, cli.Usagef("--report: %v", err)
	}
	return &document{options: o, file: f, over: over}, nil
}

// prepare has an engine gather what the report shows.
func (d *document) prepare(e *engine) error {
	if d == nil {
		return nil
	}
	if !e.lat {
		e.served = newHistogram()
	}
	return e.takeNotes()
}

// measured notes what was measured.
func (d *document) measured(e *engine) {
	path, _ := current(e.lanes[0].qp)
	content := "not checked"
	if e.verify {
		content = "checked"
	}
	d.setting = [][]string{
		{"Test", e.title()}, {"Client", path.Local.Addr().String()}, {"Server", path.Remote.Addr().String()}, {"Link", d.over}, {"MTU", fmt.Sprintf("%d bytes", path.MTU)},
		{"Command", d.command()},
		{"Congestion control", path.Controller}, {"QPs", strconv.Itoa(e.qps)}, {"Associations", strconv.Itoa(len(e.distinct()))},
		{"Outstanding on a QP", fmt.Sprintf("%d messages", e.depth)}, {"Content", content},
	}
}

// bandwidth and latency take the result of one size.
func (d *document) bandwidth(size int, b bandwidth) {
	if d == nil {
		return
	}
	unit, of := "MiB/s", 1.0
	if d.gbits {
		unit, of = "Gb/s", gigabit
	}
	d.head = []string{"Bytes", "Messages", "Peak, " + unit, "Average, " + unit, "Million messages/s"}
	peak := "–"
	if b.peak > 0 {
		peak = fmt.Sprintf("%.2f", b.peak/of)
	}
	d.results = append(d.results, []string{strconv.Itoa(size), strconv.FormatUint(b.iters, 10), peak, fmt.Sprintf("%.2f", b.avg/of), fmt.Sprintf("%.6f", b.rate)})
	d.figure(size, b.avg/of)
}

func (d *document) latency(size int, l latency) {
	if d == nil {
		return
	}
	d.head = []string{"Bytes", "Messages", "Least, µs", "Median, µs", "Average, µs", "Deviation, µs", "99 %, µs", "99.9 %, µs", "Most, µs"}
	row := []string{strconv.Itoa(size), strconv.FormatUint(l.iters, 10)}
	for _, v := range []float64{l.min, l.typical, l.avg, l.stdev, l.p99, l.p999, l.max} {
		row = append(row, fmt.Sprintf("%.2f", v))
	}
	d.results = append(d.results, row)
	d.figure(size, l.typical)
}

// figure takes the result as one number.
func (d *document) figure(size int, v float64) {
	d.sizes.X, d.sizes.Y = append(d.sizes.X, math.Log2(float64(size))), append(d.sizes.Y, v)
}

// end takes what was seen of a run that has ended.
func (d *document) end(e *engine, round *hdrhistogram.Histogram) {
	if d == nil {
		return
	}
	e.rest()
	d.measured(e)
	d.last, d.there = e.size, e.theirs.Machine
	d.lines = []timeline.Line{{Name: "client", Points: e.seen}, {Name: "server", Points: e.theirs.Line.Points}}
	d.times, d.trip = e.served, func(t time.Duration) float64 { return float64(t) / 1e3 }
	d.timing = "from the posting of a message to its completion, of the messages that ask for one"
	if e.lat {
		d.times, d.trip, d.timing = round, e.params.trip, "half of a round trip"
		if e.verb.pulls() {
			d.timing = "a round trip"
		}
	}
}

// close writes the report, or removes the file of one that has nothing to show.
func (d *document) close(u *usage) error {
	if d == nil {
		return nil
	}
	var err error
	if len(d.results) > 0 {
		err = d.write(d.file, u)
	}
	if failed := d.file.Close(); err == nil {
		err = failed
	}
	if len(d.results) == 0 {
		os.Remove(d.page)
	}
	if err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	return nil
}

func (d *document) write(w io.Writer, u *usage) error {
	rate := timeline.MiB
	if d.gbits {
		rate = timeline.Gbit
	}
	here := thisMachine()
	p := chart.Page{
		Title: fmt.Sprintf("ddpbench: %s", d.title()),
		Lead:  fmt.Sprintf("RDMA over SCTP, measured %s.", time.Now().Format("2006-01-02 15:04:05 MST")),
		Tables: []chart.Table{
			d.table(), {Title: "What was measured", Rows: d.setting},
			{Title: "Client", Rows: here.rows()}, {Title: "Server, as it says of itself", Rows: d.there.rows()}, {Title: "What it took, at the client", Rows: u.rows(d.self)},
		},
		Notes: []string{fmt.Sprintf("Plots over time are of messages of %d bytes. Both ends count from when the last QP was connected.", d.last)},
	}
	if len(d.results) > 1 {
		p.Figures = append(p.Figures, d.bySize())
	}
	p.Figures = append(p.Figures, timeline.Figures(d.lines, rate)...)
	if d.times != nil && d.times.TotalCount() > 0 {
		p.Figures = append(p.Figures, distribution(d.times, d.trip, d.timing), percentiles(d.times, d.trip))
	}
	return p.Write(w)
}

// table has the results; those of one size stand below each other.
func (d *document) table() chart.Table {
	t := chart.Table{Title: "Results", Head: d.head, Rows: d.results}
	if len(d.results) == 1 {
		t.Head, t.Rows = nil, nil
		for i, h := range d.head {
			t.Rows = append(t.Rows, []string{h, d.results[0][i]})
		}
	}
	return t
}

// bySize is the result over the message size.
func (d *document) bySize() chart.Figure {
	f := chart.Figure{Title: "By message size", YLabel: d.head[3], XLabel: "bytes in a message", Series: []chart.Series{d.sizes},
		X: func(x float64) string { return strconv.Itoa(1 << int(math.Round(x))) }}
	f.Series[0].Name = d.head[3]
	for x := d.sizes.X[0]; x <= d.sizes.X[len(d.sizes.X)-1]; x += 4 {
		f.XTicks = append(f.XTicks, chart.Tick{At: x, Label: power(int(math.Round(x)))})
	}
	return f
}

// power writes a power of two.
func power(x int) string { return strconv.Itoa(1<<(x%10)) + [...]string{"", "K", "M", "G"}[x/10] }

// bins is how many bars the distribution of latencies has.
const bins = 40

// distribution is how many messages took how long, on a logarithmic axis.
func distribution(h *hdrhistogram.Histogram, trip func(time.Duration) float64, what string) chart.Figure {
	log := func(ns int64) float64 { return math.Log10(trip(time.Duration(max(ns, 1)))) }
	least, most := log(h.Min()), log(h.Max())
	least, most = least-0.01, max(most, least+0.1)+0.01
	step := (most - least) / bins
	s := chart.Series{Name: "messages"}
	for i := range bins + 1 {
		s.X, s.Y = append(s.X, least+float64(i)*step), append(s.Y, 0)
	}
	for _, b := range h.Distribution() {
		if b.Count > 0 {
			i := int((log((b.From+b.To)/2) - least) / step)
			s.Y[i] += 100 * float64(b.Count) / float64(h.TotalCount())
		}
	}
	f := chart.Figure{Title: "Latency, distribution", Note: "It is " + what + ".", XLabel: "µs", YLabel: "% of messages", Bars: true, Series: []chart.Series{s},
		X: func(x float64) string { return fmt.Sprintf("%.4g", math.Pow(10, x)) }}
	for e := math.Floor(least); e <= most; e++ {
		for _, k := range []float64{1, 2, 5} {
			if most-least < 2 || k == 1 {
				f.XTicks = append(f.XTicks, chart.Tick{At: e + math.Log10(k), Label: strconv.FormatFloat(k*math.Pow(10, e), 'f', int(max(0, -e)), 64)})
			}
		}
	}
	return f
}

// percentiles is how long the quickest so many percent took at most, with each nine as far from the one before.
func percentiles(h *hdrhistogram.Histogram, trip func(time.Duration) float64) chart.Figure {
	f := chart.Figure{Title: "Latency, percentiles", XLabel: "% of messages", YLabel: "µs", Series: []chart.Series{{Name: "at most"}},
		X: func(x float64) string { return fmt.Sprintf("%.6g %%", 100*(1-math.Pow(10, -x))) }}
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

// rows are what runs cost, for the report.
func (u *usage) rows(self bool) [][]string {
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
		rows = append(rows, []string{"Path", fmt.Sprintf("%s to %s, %s%s; cwnd %d bytes, SRTT %.0f µs", p.Local, p.Remote, p.State, used, p.Cwnd, p.SRTT)})
	}
	if u.cpu {
		ends := "this end"
		if self {
			ends = "both ends"
		}
		rows = append(rows, []string{"Processor", fmt.Sprintf("%.3f s user, %.3f s system in %.3f s, %s", u.User, u.System, u.Wall, ends)})
	}
	return rows
}
