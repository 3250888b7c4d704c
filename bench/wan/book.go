package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/rddp-go/rddp/bench/machine"
	"github.com/rddp-go/rddp/bench/wan/simulated"
)

// The book keeps rows, so that a grid can be measured in several sittings. A row is of one commit.

// readBook returns the rows of a file that writeBook has written on such a machine; none if there
// is no file.
func readBook(file string, m *machine.Machine) ([]*row, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var b resultBoard
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if b.Machine.CPU != m.CPU {
		return nil, fmt.Errorf("%s is of another machine, %s, and this is %s", file, b.Machine.CPU, m.CPU)
	}
	return b.Rows, nil
}

// writeBook replaces the file, all of it or nothing.
func (b *resultBoard) writeBook(file string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// missingStacks returns those of the stacks with which a cell has not been measured. Stacks are
// compared at one commit, this one if any is missing.
func (b *resultBoard) missingStacks(c *simulated.Cell, stacks []string) (list []string) {
	r := b.rowOf(c)
	if r == nil {
		return stacks
	}
	for _, s := range stacks {
		if r.resultOf(s) == nil {
			list = append(list, s)
		}
	}
	if len(list) > 0 && r.Commit != b.Machine.Commit {
		return stacks
	}
	return list
}

// rowOf returns that of a cell, or nil.
func (b *resultBoard) rowOf(c *simulated.Cell) *row {
	i := slices.IndexFunc(b.Rows, func(r *row) bool { return r.Cell == *c })
	if i < 0 {
		return nil
	}
	return b.Rows[i]
}

// putRow adds a row, with the results of other stacks that were there for the same cell at that
// commit.
func (b *resultBoard) putRow(r *row) {
	if old := b.rowOf(&r.Cell); old != nil && old.Commit == r.Commit {
		for _, res := range old.Results {
			if !slices.ContainsFunc(r.Results, func(n *result) bool { return n.Stack == res.Stack }) {
				r.Results = append(r.Results, res)
			}
		}
	}
	b.Rows = append(slices.DeleteFunc(b.Rows, func(o *row) bool { return o.Cell == r.Cell }), r)
	slices.SortStableFunc(b.Rows, func(x, y *row) int {
		// bulk, 0, comes last
		return cmp.Or(cmp.Compare(uint(x.Cell.Size-1), uint(y.Cell.Size-1)), cmp.Compare(x.Cell.RTT, y.Cell.RTT),
			cmp.Compare(x.Cell.Loss, y.Cell.Loss))
	})
}

// commitNames names those that were measured.
func (b *resultBoard) commitNames() string {
	var list []string
	for _, r := range b.Rows {
		if !slices.Contains(list, r.Commit) {
			list = append(list, r.Commit)
		}
	}
	return strings.Join(list, " and ")
}
