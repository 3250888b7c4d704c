package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table is rows of cells, the first one the heading.
type table [][]string

// writeText is for a terminal.
func (t table) writeText(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	tw.Flush()
}

// writeMarkdown is for the documentation.
func (t table) writeMarkdown(w io.Writer) {
	for i, row := range t {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(w, strings.Repeat("|---", len(row))+"|")
		}
	}
}

// bulkTable is a row for each spec that is no shape.
func (bd *board) bulkTable() table {
	t := table{bulkRows.headingCells()}
	for _, s := range ofKind(bulkRows, bd.Specs) {
		row := make([]string, len(t[0]))
		row[0] = s.String()
		for i := range row[1:] {
			row[i+1] = "-"
		}
		if v, ok := bd.spreadOf(s, throughputOf); ok {
			row[1], row[2] = formatNumber(v.Median), formatNumber(v.Min)+"-"+formatNumber(v.Max)
			if c, ok := bd.spreadOf(s, cpuPerOctet); ok {
				row[6] = formatNumber(c.Median)
			}
		}
		if v, ok := bd.spreadOf(s, medianLatency); ok {
			row[3], row[4] = formatNumber(v.Median), formatNumber(v.Min)+"-"+formatNumber(v.Max)
		}
		if f := bd.medianRun(s); f != nil {
			if s.PingPong {
				row[5] = formatNumber(f.P99)
			}
			row[7] = fmt.Sprintf("%d, %d", f.RSS[0]>>20, f.RSS[1]>>20)
			row[8], row[9] = formatCalls(f.Batch), formatAllocs(f.Allocs)
		} else if bd.Errors[s.String()] != "" {
			row[1] = "failed"
		}
		t = append(t, row)
	}
	return t
}

// shapeTable is a row for each shape.
func (bd *board) shapeTable() table {
	t := table{shapeRows.headingCells()}
	for _, s := range ofKind(shapeRows, bd.Specs) {
		r := append([]string{s.String()}, bd.withRange(s, messageRate)...)
		r = append(append(r, bd.withRange(s, medianLatency)...), bd.withRange(s, latencyP99)...)
		r = append(r, bd.medianText(s, tripCPU), bd.medianText(s, throughputOf), "-")
		if f := bd.medianRun(s); f != nil {
			r[len(r)-1] = fmt.Sprintf("%d, %d", f.RSS[0]>>20, f.RSS[1]>>20)
		}
		t = append(t, r)
	}
	return t
}

// growthTable is a row for each number of associations.
func (bd *board) growthTable() table {
	t := table{growthRows.headingCells()}
	for _, s := range ofKind(growthRows, bd.Specs) {
		r := []string{s.String()}
		for _, q := range []quantity{setups, heapEach, stackEach, idleCPU, beats, beatCPU, messageRate, medianLatency,
			latencyP99,
			tripCPU, restart} {
			r = append(r, bd.medianText(s, q))
		}
		t = append(t, r)
	}
	return t
}

// medianText is that of the rounds, for people.
func (bd *board) medianText(s spec, q quantity) string {
	if v, ok := bd.spreadOf(s, q); ok {
		return formatNumber(v.Median)
	}
	if bd.Errors[s.String()] != "" {
		return "failed"
	}
	return "-"
}

func (bd *board) withRange(s spec, q quantity) []string {
	if v, ok := bd.spreadOf(s, q); ok {
		return []string{formatNumber(v.Median), formatNumber(v.Min) + "-" + formatNumber(v.Max)}
	}
	return []string{bd.medianText(s, q), "-"}
}

// medianRun is the run with the median of what s is about, the slower one of two.
func (bd *board) medianRun(s spec) *figures {
	list := slices.DeleteFunc(slices.Clone(bd.Results[s.String()]), func(f *figures) bool { return f == nil })
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *figures) int {
		if s.Shape != "" {
			return compareFloats(a.Rate, b.Rate)
		}
		if s.PingPong {
			return compareFloats(a.P50, b.P50)
		}
		return compareFloats(a.GBps, b.GBps)
	})
	return list[(len(list)-1)/2]
}

func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// formatNumber writes three significant digits.
func formatNumber(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// formatCalls writes packets out of the client, and into the server, for each system call.
func formatCalls(v [2]float64) string {
	return formatPair(v[0] > 0, v[1] > 0, fmt.Sprintf("%.1f", v[0]), fmt.Sprintf("%.1f", v[1]))
}

func formatAllocs(v [2]*float64) string {
	var s [2]string
	for i, a := range v {
		if a != nil {
			s[i] = fmt.Sprintf("%.2f", *a)
		}
	}
	return formatPair(v[0] != nil, v[1] != nil, s[0], s[1])
}

func formatPair(okA, okB bool, a, b string) string {
	if !okA {
		a = "-"
	}
	if !okB {
		b = "-"
	}
	if !okA && !okB {
		return "-"
	}
	return a + ", " + b
}

// targetTable is a row for each check.
func (bd *board) targetTable() table {
	t := table{targetRows.headingCells()}
	for _, o := range bd.checkOutcomes() {
		row := []string{fmt.Sprint(o.Target), o.What, "-", "-", o.limitText(), o.verdictText()}
		if o.Ratio != nil {
			row[2], row[3] = formatNumber(o.Ratio.Median), formatNumber(o.Ratio.Min)+"-"+formatNumber(o.Ratio.Max)
			if o.Moved > 0 {
				row[3] += fmt.Sprintf(", %d left out", o.Moved)
			}
		}
		t = append(t, row)
	}
	return t
}

// tableOf is what a run yields of a kind of table.
func (bd *board) tableOf(k *kind) table {
	return map[*kind]func(*board) table{targetRows: (*board).targetTable, bulkRows: (*board).bulkTable,
		shapeRows: (*board).shapeTable, growthRows: (*board).growthTable}[k](bd)
}

// headingCells are the heading without the commit, which is the same for all of a run.
func (k *kind) headingCells() []string { return k.heading[:len(k.heading)-1] }

// notes say how to read the tables.
const notes = "GB/s is 10^9 octets of messages where they arrive, the median of the rounds. Round trips are " +
	"medians of a run, and of the rounds. " +
	"Processor time and peak resident memory are those of whole processes; CPU s/GB adds both sides up. Pairs " +
	"are client, server. " +
	"Packets/call is what left the client and reached the server in one system call, for ddpbench in one batch. " +
	"A - is not known. Pumps checksum on both sides and copy once, without a protocol. " +
	"libusrsctp computes its checksums, as on any network, and counts with the better of two buffer sizes. " +
	"Shapes of programs: direct, who reads a message answers it; channel, a goroutine reads and hands each " +
	"message to a worker through a channel; " +
	"pipelined, 32 requests outstanding; fetch, as channel, 16 octets ask for a message. TCP is Go's, on the " +
	"same device; beside tun it is on loopback. " +
	"Processor time a round trip is that of both processes while round trips were made, without what a " +
	"goroutine or another process computes beside. " +
	"Growth: 100 octets there and back, 256 round trips at a time over all associations in turn; memory and " +
	"heartbeats are those of one end. " +
	"A ratio leaves out the rounds in which the host moved the processors between the runs that it compares, if " +
	"three or more are left; how many stands behind its range. " +
	"Targets 7, benchmarks of the parts, and 8, nothing regressed with offloads and shards, are no ratios: make " +
	"bench, make conformance, make interop."

// printTables writes what was measured, for people.
func (bd *board) printTables(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n\n", &bd.Machine, bd.describeRuns())
	for i := range kinds { // the targets last
		if t := bd.tableOf(kinds[(i+1)%len(kinds)]); len(t) > 1 {
			t.writeText(w)
			fmt.Fprintln(w)
		}
	}
	fmt.Fprintf(w, "%s\n", notes)
	for _, name := range slices.Sorted(maps.Keys(bd.Errors)) {
		fmt.Fprintf(w, "failed: %s: %s\n", name, bd.Errors[name])
	}
}

func (bd *board) describeRuns() string {
	var how []string
	for _, t := range bd.Tasks {
		if h := fmt.Sprintf("%d rounds of %s", t.rounds, t.run.Round(time.Millisecond)); !slices.Contains(how, h) {
			how = append(how, h)
		}
	}
	return fmt.Sprintf("Part %s: %s.%s", bd.Part, strings.Join(how, ", "), bd.lineTimes())
}

func (bd *board) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "\t")
	return enc.Encode(struct {
		*board
		Targets []outcome `json:"targets"`
	}{bd, bd.checkOutcomes()})
}
