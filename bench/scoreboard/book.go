package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// book is the document that scoreboards of several machines are kept in: a block for each processor
// model, which is never deleted. A run replaces the rows that it has measured, in the block of its
// own machine, and leaves all others. The tables are read back from the document, so that it alone
// holds what is known.
type book struct {
	blocks []*block
}

// block is what was measured on one kind of machine.
type block struct {
	name string // how many processors of which model
	runs []string
	rows map[*kind][]row
}

// row is a line of a table. Its last cell is the commit that was measured.
type row []string

// kind is a kind of table. Rows have their name in column key.
type kind struct {
	heading row
	key     int
	order   func() []string // names of rows as they stand
	specs   func(name string) []spec
}

// Columns of rows of targets.
const (
	colTarget  = 0
	colVerdict = 5
)

var (
	targetRows = &kind{
		heading: row{"target", "what", "measured", "range", "wanted", "", "commit"}, key: 1,
		order: func() (names []string) {
			for _, c := range allChecks() {
				names = append(names, c.what)
			}
			return names
		},
		specs: func(name string) []spec {
			for _, c := range allChecks() {
				if c.what == name {
					return c.specsCompared()
				}
			}
			return nil
		},
	}
	bulkRows, shapeRows, growthRows *kind
	kinds                           []*kind
)

func init() {
	bulkRows = specRows("GB/s", "range", "round trip us", "range", "p99", "CPU s/GB", "peak MiB", "packets/call",
		"allocs/message")
	shapeRows = specRows("round trips/s", "range", "p50 us", "range", "p99 us", "range", "CPU us a trip", "bulk GB/s",
		"peak MiB")
	growthRows = specRows("set up/s", "octets each", "of stacks", "idle CPU ms/s", "heartbeats/s", "CPU us each",
		"round trips/s", "p50 us", "p99 us", "CPU us a trip", "restart s")
	kinds = []*kind{targetRows, bulkRows, shapeRows, growthRows}
}

// specRows is a table with a row for each spec.
func specRows(columns ...string) *kind {
	k := &kind{heading: append(append(row{"what"}, columns...), "commit")}
	k.order = func() (names []string) {
		for _, s := range ofKind(k, allSpecs()) {
			names = append(names, s.String())
		}
		return names
	}
	k.specs = func(name string) []spec {
		return slices.DeleteFunc(allSpecs(), func(s spec) bool { return s.String() != name })
	}
	return k
}

const (
	cellSep   = " | "
	blockMark = "## "
	runMark   = "- "
	// staleMark stands behind the commit of a row, and in place of its verdict.
	staleMark = "stale"
)

// readBook reads what writeTo has written; anything else in a document is passed over.
func readBook(doc []byte) (*book, error) {
	b := new(book)
	var of *block
	var table *kind
	lines := bufio.NewScanner(bytes.NewReader(doc))
	for lines.Scan() {
		line := lines.Text()
		cells, isRow := strings.CutPrefix(line, "| ")
		if name, ok := strings.CutPrefix(line, blockMark); ok {
			of, table = b.blockOf(name), nil
			continue
		}
		if run, ok := strings.CutPrefix(line, runMark); ok && of != nil {
			of.runs = append(of.runs, run)
		}
		if !isRow {
			if !strings.HasPrefix(line, "|") {
				table = nil
			}
			continue
		}
		if of == nil {
			continue
		}
		r := row(strings.Split(strings.TrimSuffix(cells, " |"), cellSep))
		if table == nil {
			i := slices.IndexFunc(kinds, func(k *kind) bool { return slices.Equal(k.heading, r) })
			if i < 0 {
				return nil, fmt.Errorf("a table of %q is none of this program's", r)
			}
			table = kinds[i]
			continue
		}
		if len(r) != len(table.heading) {
			return nil, fmt.Errorf("a row of %d cells in a table of %d: %q", len(r), len(table.heading), r)
		}
		of.rows[table] = append(of.rows[table], r)
	}
	return b, lines.Err()
}

// blockOf finds the block of a machine, or adds it.
func (b *book) blockOf(name string) *block {
	for _, bl := range b.blocks {
		if bl.name == name {
			return bl
		}
	}
	bl := &block{name: name, rows: make(map[*kind][]row)}
	b.blocks = append(b.blocks, bl)
	return bl
}

// putRows adds rows, each in the place of the one that has its name.
func (bl *block) putRows(k *kind, rows []row) {
	order := k.order()
	at := func(r row) int {
		if i := slices.Index(order, r[k.key]); i >= 0 {
			return i
		}
		return len(order) // no longer measured
	}
	for _, r := range rows {
		list := bl.rows[k]
		if i := slices.IndexFunc(list, func(old row) bool { return old[k.key] == r[k.key] }); i >= 0 {
			list[i] = r
		} else {
			bl.rows[k] = append(list, r)
		}
	}
	slices.SortStableFunc(bl.rows[k], func(a, b row) int { return at(a) - at(b) })
}

// commitOf is what a row was measured with.
func (r row) commitOf() string {
	c, _, _ := strings.Cut(r[len(r)-1], ",")
	return c
}

// verdictCell is that of a row of targets, whether it is stale or not.
func (r row) verdictCell() string {
	return strings.TrimSuffix(strings.TrimPrefix(r[colVerdict], staleMark+" ("), ")")
}

func (r row) isStale() bool { return strings.HasSuffix(r[len(r)-1], ", "+staleMark) }

// markStale marks the rows that are stale, and those that are not so any more. Runs that no row
// comes from are dropped.
func (b *book) markStale(stale func(commit string, about []spec) bool) {
	for _, bl := range b.blocks {
		used := make(map[string]bool)
		for k, rows := range bl.rows {
			for _, r := range rows {
				c := r.commitOf()
				used[c] = true
				old := stale(c, k.specs(r[k.key]))
				r[len(r)-1] = c
				if old {
					r[len(r)-1] += ", " + staleMark
				}
				if k == targetRows {
					if v := r.verdictCell(); old {
						r[colVerdict] = staleMark + " (" + v + ")"
					} else {
						r[colVerdict] = v
					}
				}
			}
		}
		bl.runs = slices.DeleteFunc(bl.runs, func(run string) bool {
			c, _, _ := strings.Cut(run, ":")
			return !used[c]
		})
	}
}

// summaryTable is a row for each target: it is met when every row that is not stale meets it, and
// there is one.
func (b *book) summaryTable() table {
	type count struct{ fresh, met, stale int }
	counts := make(map[int]count)
	for _, bl := range b.blocks {
		for _, r := range bl.rows[targetRows] {
			target, _ := strconv.Atoi(r[colTarget])
			c := counts[target]
			switch {
			case r.isStale():
				c.stale++
			case r.verdictCell() == met:
				c.met++
				fallthrough
			default:
				c.fresh++
			}
			counts[target] = c
		}
	}
	t := table{{"target", "about", "rows that are not stale", "of these met", "stale rows", ""}}
	for target, about := range targets {
		c, verdict := counts[target], met
		switch {
		case about == "":
			continue
		case c.fresh == 0:
			verdict = "not measured since the last change"
		case c.met < c.fresh:
			verdict = "not met"
		}
		t = append(t, []string{strconv.Itoa(target), about, strconv.Itoa(c.fresh), strconv.Itoa(c.met),
			strconv.Itoa(c.stale), verdict})
	}
	return t
}

// preface is for people.
const preface = `# Scoreboard

Written by ` + "`make scoreboard`" + `, which reads the tables back: its flag ` + "`--write-docs`" + ` replaces the rows that it has measured in the block of its own
machine, and leaves all others. There is a block for each processor model; none is ever deleted. Each row names the commit that was measured. It is
*stale* when lines of code other than comments and tests have changed since in the folders of what it measures: the link that it names, and the stack as far as it
takes part. A commit that is not in the history, or had changes that were not committed, is stale as well. ` + "`--judge`" + ` marks anew what is stale
without measuring. A target is met when every row that is not stale meets it and there is one.

`

// writeDocument writes the document.
func (b *book) writeDocument(w io.Writer) {
	fmt.Fprint(w, preface)
	b.summaryTable().writeMarkdown(w)
	fmt.Fprintf(w, "\n%s\n", notes)
	for _, bl := range b.blocks {
		fmt.Fprintf(w, "\n%s%s\n\n", blockMark, bl.name)
		for _, run := range bl.runs {
			fmt.Fprintf(w, "%s%s\n", runMark, run)
		}
		for _, k := range kinds {
			if rows := bl.rows[k]; len(rows) > 0 {
				fmt.Fprintln(w)
				t := table{k.heading}
				for _, r := range rows {
					t = append(t, r)
				}
				t.writeMarkdown(w)
			}
		}
	}
}

// addBoard puts what a run has measured into the block of its machine.
func (b *book) addBoard(bd *board) {
	m := &bd.Machine
	bl := b.blockOf(fmt.Sprintf("%d x %s", m.CPUs, m.CPU))
	run := fmt.Sprintf("%s: %s %s", m.Commit, m, bd.describeRuns())
	bl.runs = append(bl.runs, run)
	for _, k := range kinds {
		var rows []row
		for _, cells := range bd.tableOf(k)[1:] {
			rows = append(rows, append(slices.Clone(cells), m.Commit))
		}
		bl.putRows(k, rows)
	}
}

// keepBook brings a document up to date, which need not exist. Without a board it only judges anew.
func keepBook(file string, bd *board) error {
	doc, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	b, err := readBook(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if bd != nil {
		b.addBoard(bd)
	}
	b.markStale(newHistory().isStale)
	var out bytes.Buffer
	b.writeDocument(&out)
	return os.WriteFile(file, out.Bytes(), 0o644)
}
