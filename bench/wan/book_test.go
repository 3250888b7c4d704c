package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/rddp-go/rddp/bench/machine"
	"github.com/rddp-go/rddp/bench/wan/simulated"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// What is in the book is not measured again, unless a stack has no figures, and what is added to a
// cell is of its commit; rows come back as they were, in the order of the grid.
func TestBook(t *testing.T) {
	file := filepath.Join(t.TempDir(), "book")
	m := machine.Machine{CPU: "one"}
	rows := must.Get(readBook(file, &m))(t)
	check.Equal(t, "rows of no file", len(rows), 0)
	b := resultBoard{Machine: m}
	cell := func(size int, rtt time.Duration) simulated.Cell {
		return simulated.Cell{Size: size, RTT: rtt, Loss: 0.01}
	}
	for i, c := range []simulated.Cell{cell(0, 1), cell(1400, 2), cell(1400, 1), cell(100_000, 1)} {
		r := &row{Commit: fmt.Sprint("c", i/2), Cell: c,
			Results: []*result{{Stack: "a"}, {Stack: "late", Late: []string{"by an hour"}}}}
		r.Results[0].Sum.Groups = []simulated.Group{{time.Second, time.Minute}}
		r.Results[0].Sum.Waited.Add(time.Millisecond)
		b.putRow(r)
	}
	must.OK(t, b.writeBook(file))
	again := resultBoard{Rows: must.Get(readBook(file, &m))(t)}
	got := ""
	for _, r := range again.Rows {
		got += fmt.Sprintf("%s, %d of %v, %v; ", &r.Cell, r.Results[0].Sum.N(), r.Results[0].Sum.Waited.Quantile(1),
			r.Results[1].whyNone())
	}
	const each = "/1%%/%s, 2 of 1ms, no run counts: by an hour; "
	want := fmt.Sprintf("1ns"+each+"2ns"+each+"1ns"+each+"1ns"+each, "1.4K", "1.4K", "100K", "bulk")
	check.Equal(t, "rows", got, want)
	check.Equal(t, "commits", again.commitNames(), "c1 and c0")
	known, unknown := cell(1400, 1), cell(1400, 3)
	again.Machine.Commit = "c1" // as known is
	missing := func(c *simulated.Cell, stacks ...string) string { return fmt.Sprint(again.missingStacks(c, stacks)) }
	check.Equal(t, "missing", fmt.Sprint(missing(&known, "a"), missing(&known, "a", "late"),
		missing(&known, "b", "a"), missing(&unknown, "a")), "[][late][b][a]")
	again.Machine.Commit = "c2"
	check.Equal(t, "missing at another commit", missing(&known, "a")+missing(&known, "a", "b"), "[][a b]")
	again.putRow(&row{Commit: "c1", Cell: known, Results: []*result{{Stack: "b"}, {Stack: "late"}}})
	check.Equal(t, "results of one commit", len(again.rowOf(&known).Results), 3)
	again.putRow(&row{Cell: known})
	check.That(t, len(again.Rows) == 4 && again.Rows[0].Results == nil, "a row beside the one of the same cell: %d",
		len(again.Rows))
	_, err := readBook(file, &machine.Machine{CPU: "another"})
	check.That(t, err != nil, "a book of another machine is taken")
}
