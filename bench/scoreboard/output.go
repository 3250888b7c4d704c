package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// table is rows of cells, the first one the heading.
type table [][]string

// text is for a terminal.
func (t table) text(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range t {
		fmt.Fprintln(tw, strings.TrimRight(strings.Join(row, "\t"), "\t"))
	}
	tw.Flush()
}

// markdown is for the documentation.
func (t table) markdown(w io.Writer) {
	for i, row := range t {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(w, strings.Repeat("|---", len(row))+"|")
		}
	}
}

// results is a row for each spec.
func (bd *board) results() table {
	t := table{{"what", "GB/s", "range", "round trip us", "range", "p99", "CPU s/GB", "peak MiB", "packets/call", "allocs/message"}}
	for _, s := range bd.Specs {
		row := make([]string, len(t[0]))
		row[0] = s.String()
		for i := range row[1:] {
			row[i+1] = "-"
		}
		if v, ok := bd.spread(s, throughput); ok {
			row[1], row[2] = number(v.Median), number(v.Min)+"-"+number(v.Max)
			if c, ok := bd.spread(s, processor); ok {
				row[6] = number(c.Median)
			}
		}
		if v, ok := bd.spread(s, latency); ok {
			row[3], row[4] = number(v.Median), number(v.Min)+"-"+number(v.Max)
		}
		if f := bd.middle(s); f != nil {
			if s.PingPong {
				row[5] = number(f.P99)
			}
			row[7] = fmt.Sprintf("%d, %d", f.RSS[0]>>20, f.RSS[1]>>20)
			row[8], row[9] = calls(f.Batch), allocs(f.Allocs)
		} else if bd.Errors[s.String()] != "" {
			row[1] = "failed"
		}
		t = append(t, row)
	}
	return t
}

// middle is the run with the median of what s is about, the slower one of two.
func (bd *board) middle(s spec) *figures {
	list := slices.DeleteFunc(slices.Clone(bd.Results[s.String()]), func(f *figures) bool { return f == nil })
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b *figures) int {
		if s.PingPong {
			return compare(a.P50, b.P50)
		}
		return compare(a.GBps, b.GBps)
	})
	return list[(len(list)-1)/2]
}

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// number writes three significant digits.
func number(v float64) string {
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

// calls writes packets out of the client, and into the server, for each system call.
func calls(v [2]float64) string {
	return pair(v[0] > 0, v[1] > 0, fmt.Sprintf("%.1f", v[0]), fmt.Sprintf("%.1f", v[1]))
}

func allocs(v [2]*float64) string {
	var s [2]string
	for i, a := range v {
		if a != nil {
			s[i] = fmt.Sprintf("%.2f", *a)
		}
	}
	return pair(v[0] != nil, v[1] != nil, s[0], s[1])
}

func pair(okA, okB bool, a, b string) string {
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

// targets is a row for each check.
func (bd *board) targets() table {
	t := table{{"target", "what", "measured", "range", "wanted", ""}}
	for _, o := range bd.outcomes() {
		row := []string{fmt.Sprint(o.Target), o.What, "-", "-", o.limit(), o.verdict()}
		if o.Ratio != nil {
			row[2], row[3] = number(o.Ratio.Median), number(o.Ratio.Min)+"-"+number(o.Ratio.Max)
		}
		t = append(t, row)
	}
	return append(t,
		[]string{"7", "benchmarks of codec, CRC, SACKs, placement, sending", "-", "-", "make bench", "not a ratio"},
		[]string{"8", "nothing regressed with GSO, GRO and shards", "-", "-", "make conformance interop", "not a ratio"})
}

// notes say how to read the tables.
const notes = "GB/s is 10^9 octets of messages where they arrive, the median of the rounds. Round trips are medians of a run, and of the rounds. " +
	"Processor time and peak resident memory are those of whole processes; CPU s/GB adds both sides up. Pairs are client, server. " +
	"Packets/call is what left the client and reached the server in one system call, for ddpbench in one batch. " +
	"A - is not known. Pumps checksum on both sides and copy once, without a protocol. " +
	"libusrsctp computes its checksums, as on any network, and counts with the better of two buffer sizes."

// print writes what was measured, for people.
func (bd *board) print(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n\n", &bd.Machine, bd.about())
	bd.results().text(w)
	fmt.Fprintln(w)
	bd.targets().text(w)
	fmt.Fprintf(w, "\n%s\n", notes)
	for _, name := range slices.Sorted(maps.Keys(bd.Errors)) {
		fmt.Fprintf(w, "failed: %s: %s\n", name, bd.Errors[name])
	}
}

func (bd *board) about() string {
	return fmt.Sprintf("%d rounds, %.3g s a run.", bd.Rounds, bd.Seconds)
}

func (bd *board) json(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "\t")
	return enc.Encode(struct {
		*board
		Targets []outcome `json:"targets"`
	}{bd, bd.outcomes()})
}

// Marks around what this program writes into a document.
const (
	docsBegin = "<!-- scoreboard: written by make scoreboard -->"
	docsEnd   = "<!-- end of the scoreboard -->"
)

// section is what goes into the documentation.
func (bd *board) section() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n## Scoreboard\n\n%s %s\n\n", docsBegin, &bd.Machine, bd.about())
	bd.targets().markdown(&b)
	fmt.Fprintln(&b)
	bd.results().markdown(&b)
	fmt.Fprintf(&b, "\n%s\n%s", notes, docsEnd)
	return b.String()
}

// insert puts section in the place of the one that doc has, or else at its end.
func insert(doc, section string) string {
	begin := strings.Index(doc, docsBegin)
	end := strings.Index(doc, docsEnd)
	if begin >= 0 && end > begin {
		return doc[:begin] + section + doc[end+len(docsEnd):]
	}
	if doc != "" {
		doc = strings.TrimRight(doc, "\n") + "\n\n"
	}
	return doc + section + "\n"
}

// writeDocs puts the scoreboard into a document, which need not exist.
func (bd *board) writeDocs(file string) error {
	doc, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(file, []byte(insert(string(doc), bd.section())), 0o644)
}
