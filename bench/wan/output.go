package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// references are what ours are compared with.
var references = []string{"tcp-cubic", "quic-go"}

// resultOf finds a stack's, if it has one that counts.
func (r *row) resultOf(stack string) *result {
	for _, res := range r.Results {
		if res.Stack == stack && res.whyNone() == "" {
			return res
		}
	}
	return nil
}

// stackNames are those of the board, in order.
func (b *resultBoard) stackNames() (list []string) {
	for _, r := range b.Rows {
		for _, res := range r.Results {
			if !slices.Contains(list, res.Stack) {
				list = append(list, res.Stack)
			}
		}
	}
	return list
}

type table [][]string

func (t table) write(w io.Writer) {
	for i, row := range t {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
		if i == 0 {
			fmt.Fprintln(w, strings.Repeat("|---", len(row))+"|")
		}
	}
}

// threeDigits writes three digits.
func threeDigits(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

func roadName(c *simulated.Cell) string { return fmt.Sprintf("%v, %g %%", c.RTT, 100*c.Loss) }

// cellText writes a cell of a table: what a stack needed, or brought through.
func (r *row) cellText(stack string) string {
	res := r.resultOf(stack)
	switch {
	case res == nil:
		return "-"
	case r.Cell.Size == 0:
		low, high := slices.Min(res.Runs), slices.Max(res.Runs)
		if len(res.Runs) == 1 {
			return threeDigits(low)
		}
		return fmt.Sprintf("%s (%s-%s)", threeDigits(medianOf(res.Runs)), threeDigits(low), threeDigits(high))
	}
	s := &res.Sum
	return strings.Join([]string{threeDigits(milliseconds(s.Quantile(0.5))),
		threeDigits(milliseconds(s.Quantile(0.9))), threeDigits(milliseconds(s.Quantile(0.99))),
		threeDigits(milliseconds(s.Quantile(1)))}, ", ")
}

// forEachSize calls f with the rows of each size.
func (b *resultBoard) forEachSize(f func(size int, rows []*row)) {
	var sizes []int
	for _, r := range b.Rows {
		if !slices.Contains(sizes, r.Cell.Size) {
			sizes = append(sizes, r.Cell.Size)
		}
	}
	for _, size := range sizes {
		var rows []*row
		for _, r := range b.Rows {
			if r.Cell.Size == size {
				rows = append(rows, r)
			}
		}
		f(size, rows)
	}
}

// writeTables are one for each size: what came of every road and stack.
func (b *resultBoard) writeTables(w io.Writer) {
	b.forEachSize(func(size int, rows []*row) {
		what := "Answers of " + simulated.SizeName(size) + ", ms: p50, p90, p99, max"
		if size == 0 {
			what = "Bulk, Mbit/s: the median of the runs, and their range"
		}
		fmt.Fprintf(w, "\n%s:\n\n", what)
		t := table{append([]string{"RTT, loss"}, b.stackNames()...)}
		for _, r := range rows {
			line := []string{roadName(&r.Cell)}
			for _, s := range b.stackNames() {
				line = append(line, r.cellText(s))
			}
			t = append(t, line)
		}
		t.write(w)
	})
}

// detailTable is a row for each run: what else was seen.
func (b *resultBoard) detailTable() table {
	t := table{{"road, size", "stack", "transfers", "met a loss", "first p50 ms", "sent again",
		"octets on the road for one of data", "queue p50, p99 ms", "road late p99 us", "runs that did not count"}}
	for _, r := range b.Rows {
		for _, res := range r.Results {
			name := r.Cell.String()
			if none := res.whyNone(); none != "" {
				t = append(t, []string{name, res.Stack, none, "", "", "", "", "", "", fmt.Sprint(len(res.Late))})
				continue
			}
			s := &res.Sum
			resent := "-"
			if s.Resent >= 0 {
				resent = fmt.Sprint(s.Resent)
			}
			n, hit, first := fmt.Sprint(s.N()), fmt.Sprint(s.Hit), threeDigits(milliseconds(medianOf(s.First)))
			if r.Cell.Size == 0 {
				n, hit, first = "-", "-", "-"
			}
			late := max(s.Late.Quantile(0.99), s.Canary.Quantile(0.99))
			t = append(t, []string{name, res.Stack, n, hit, first, resent,
				threeDigits(float64(s.Wire) / max(1, float64(s.Octets))),
				threeDigits(milliseconds(s.Waited.Quantile(0.5))) + ", " +
					threeDigits(milliseconds(s.Waited.Quantile(0.99))),
				fmt.Sprint(late.Microseconds()), fmt.Sprint(len(res.Late))})
		}
	}
	return t
}

// judgeStack compares one of ours on a row. What is not compared is "-".
func (r *row) judgeStack(stack string) (text string, met, judged bool) {
	own := r.resultOf(stack)
	if own == nil {
		return "-", false, false
	}
	if r.Cell.Size == 0 {
		ref := "tcp-cubic"
		if strings.HasSuffix(stack, "bbr") {
			ref = "tcp-bbr"
		}
		peer := r.resultOf(ref)
		if peer == nil || medianOf(peer.Runs) == 0 {
			return "-", false, false
		}
		ratio, least := medianOf(own.Runs)/medianOf(peer.Runs), 0.95
		switch {
		case ref == "tcp-bbr" || r.Cell.Loss > 0.01:
			least = 0.9
		}
		return markUnmet(ratio >= least) + threeDigits(ratio), ratio >= least, true
	}
	var refs []simulated.Named
	for _, name := range references {
		if res := r.resultOf(name); res != nil {
			refs = append(refs, simulated.Named{Name: name, Sample: &res.Sum.Sample})
		}
	}
	m, tail, ok := simulated.Judge(&own.Sum.Sample, refs, 1)
	if !ok {
		return "-", false, false
	}
	interval := func(c simulated.Comparison) string {
		return fmt.Sprintf("%s%s (%s-%s)", markUnmet(c.Met), threeDigits(c.Ratio), threeDigits(c.In.Low),
			threeDigits(c.In.High))
	}
	text = fmt.Sprintf("%s; p%.0f %s", interval(m), 100*tail.Q, interval(tail))
	if len(refs) < len(references) {
		text += ", to " + refs[0].Name + " alone"
	}
	return text, m.Met && tail.Met, true
}

func markUnmet(met bool) string {
	if met {
		return ""
	}
	return "**missed** "
}

// verdictTable are ratios of ours to the better of TCP CUBIC and quic-go, and a line of how many
// are met.
func (b *resultBoard) verdictTable() (t table) {
	t = table{{"RTT, loss, size"}}
	var own []string
	for _, s := range b.stackNames() {
		if isOurs(s) {
			own = append(own, s)
		}
	}
	t[0] = append(t[0], own...)
	sum := make([][2]int, len(own))
	for _, r := range b.Rows {
		line := []string{r.Cell.String()}
		for i, s := range own {
			text, met, judged := r.judgeStack(s)
			if judged {
				sum[i][1]++
			}
			if met {
				sum[i][0]++
			}
			line = append(line, text)
		}
		t = append(t, line)
	}
	line := []string{"met, of those compared"}
	for _, n := range sum {
		line = append(line, fmt.Sprintf("%d of %d", n[0], n[1]))
	}
	return append(t, line)
}

const notes = "A transfer is a request of 16 octets and its answer, one after another over an established " +
	"connection; the first of each connection is told apart. " +
	"Flows run side by side, each over a road and a queue of its own; losses are those of the same packet " +
	"numbers for every stack, counted behind the queue. " +
	"Intervals are of 95 %, by drawing flows anew. Ratios are to the better of TCP CUBIC and quic-go, less 0.3 " +
	"ms for the median, and of the p99 where " +
	"20 transfers of each stack met a loss, else of the p90; in bulk to TCP with that controller. They are " +
	"missed where the lower end is above 1.05 and 1.2, " +
	"or bulk below 0.95 (0.9 at 3 % and for BBR). A run counts if the road was at most 2 % of the round trip " +
	"later than it always is for 99 of 100 packets. " +
	"The ends and the relay go before all other threads of the machine; all share its processors. A - was not " +
	"measured, or no run of it counts."

// about says of which roads and of which BBR the figures are.
func (b *resultBoard) about() string {
	var s strings.Builder
	if len(b.Rows) > 0 {
		c := &b.Rows[0].Cell
		fmt.Fprintf(&s, "%g Mbit/s, drop-tail queues of %g round trips (15 KB at least)", float64(c.Rate)*8/1e6, c.Hold)
		if c.Pause > 0 {
			fmt.Fprintf(&s, ", %v between transfers", c.Pause)
		}
		if c.BothWays {
			s.WriteString(", losses both ways")
		} else {
			s.WriteString(", losses towards the client")
		}
		for _, x := range []struct {
			on   bool
			text string
		}{
			{c.Burst > 1, fmt.Sprintf("in runs of %g", c.Burst)}, {c.Jitter > 0, fmt.Sprintf("jitter up to %v", c.Jitter)},
			{c.Reorder > 0, fmt.Sprintf("%g %% of packets overtaken for %v", 100*c.Reorder, c.ReorderDelay)},
			{c.Duplicate > 0, fmt.Sprintf("%g %% twice", 100*c.Duplicate)}, {c.MarkQueue > 0, fmt.Sprintf("marks above %d octets", c.MarkQueue)},
		} {
			if x.on {
				s.WriteString(", " + x.text)
			}
		}
		s.WriteString(". ")
	}
	bbr := "TCP BBR was not measured."
	for _, r := range b.Rows {
		for _, res := range r.Results {
			switch none := res.whyNone(); {
			case res.Stack != "tcp-bbr":
			case none == "":
				bbr = "TCP BBR: " + cmp.Or(res.Sum.About, "of unknown version") + "."
			case strings.Contains(none, noControl):
				bbr = "TCP BBR: this kernel has none."
			}
		}
	}
	s.WriteString(bbr)
	var late time.Duration
	missing := uint64(0)
	for _, r := range b.Rows {
		late = max(late, r.Alone.Quantile(0.99))
		missing += r.Missing
	}
	fmt.Fprintf(&s, " The road without a stack, 90 Mbit/s: p99 %d us late at worst, %d packets missing.",
		late.Microseconds(), missing)
	return s.String()
}

func (b *resultBoard) printBoard(w io.Writer) {
	fmt.Fprintf(w, "commit %s, %s\n%s\n", b.commitNames(), &b.Machine, b.about())
	b.writeTables(w)
	fmt.Fprintln(w)
	b.verdictTable().write(w)
	fmt.Fprintln(w)
	b.detailTable().write(w)
}

// The block in a document, one for each processor model.
const docsEnd = "<!-- end of the long roads -->"

func docsBegin(model string) string {
	return "<!-- long roads: written by make wan on " + model + " -->"
}

func (b *resultBoard) docSection(plots []string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s\n## Long roads\n\nCommit %s, %s %s\n", docsBegin(b.Machine.CPU), b.commitNames(), &b.Machine,
		b.about())
	for _, p := range plots {
		fmt.Fprintf(&s, "\n![long roads](%s)\n", p)
	}
	b.writeTables(&s)
	fmt.Fprintf(&s, "\nRatios of ours:\n\n")
	b.verdictTable().write(&s)
	fmt.Fprintln(&s)
	b.detailTable().write(&s)
	fmt.Fprintf(&s, "\n%s\n%s", notes, docsEnd)
	return s.String()
}

// insertSection puts a section in the place of the one of the same model, or else at the end.
func insertSection(doc, begin, section string) string {
	if at := strings.Index(doc, begin); at >= 0 {
		if n := strings.Index(doc[at:], docsEnd); n >= 0 {
			return doc[:at] + section + doc[at+n+len(docsEnd):]
		}
	}
	if doc != "" {
		doc = strings.TrimRight(doc, "\n") + "\n\n"
	}
	return doc + section + "\n"
}

func (b *resultBoard) writeDocs(file string, plots []string) error {
	doc, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(file, []byte(insertSection(string(doc), docsBegin(b.Machine.CPU), b.docSection(plots))), 0o644)
}

// figures are a cell's of a stack, for programs.
type figures struct {
	Cell, Stack          string
	N, Hit, Cut          int
	First, P50, P90, P99 float64   `json:",omitempty"` // ms
	Max                  float64   `json:",omitempty"`
	Mbits                []float64 `json:",omitempty"` // of each run
	Resent               int64
	Lost, Full           uint64
	QueueP50, QueueP99   float64
	LateP99, CanaryP99   float64 // us
	Uncounted            int
	Error                string `json:",omitempty"`
}

func (b *resultBoard) writeJSON(file string) error {
	var list []figures
	for _, r := range b.Rows {
		for _, res := range r.Results {
			s := &res.Sum
			list = append(list, figures{Cell: r.Cell.String(), Stack: res.Stack, N: s.N(), Hit: s.Hit, Cut: s.Cut,
				First: milliseconds(medianOf(s.First)),
				P50:   milliseconds(s.Quantile(0.5)), P90: milliseconds(s.Quantile(0.9)),
				P99: milliseconds(s.Quantile(0.99)), Max: milliseconds(s.Quantile(1)),
				Mbits:  res.Runs,
				Resent: s.Resent, Lost: s.Lost, Full: s.Full, QueueP50: milliseconds(s.Waited.Quantile(0.5)),
				QueueP99:  milliseconds(s.Waited.Quantile(0.99)),
				LateP99:   1e3 * milliseconds(s.Late.Quantile(0.99)),
				CanaryP99: 1e3 * milliseconds(s.Canary.Quantile(0.99)),
				Uncounted: len(res.Late), Error: res.whyNone()})
		}
	}
	out, err := json.MarshalIndent(struct {
		Machine any
		About   string
		Figures []figures
	}{b.Machine, b.about(), list}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(out, '\n'), 0o644)
}
