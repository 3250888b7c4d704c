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
	"github.com/rddp-go/rddp/internal/wan"
)

// The book keeps rows, so that a grid can be measured in several sittings. A row is of one commit.

// readBook returns the rows of a file that writeBook has written on such a machine; none if there is no file.
func readBook(file string, m *machine.Machine) ([]*row, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	var b board
	if err := json.Unmarshal(text, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if b.Machine.CPU != m.CPU {
		return nil, fmt.Errorf("%s is of another machine, %s, and this is %s", file, b.Machine.CPU, m.CPU)
	}
	return b.Rows, nil
}

// writeBook replaces the file, all of it or nothing.
func (b *board) writeBook(file string) error {
	text, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// has reports whether a cell has been measured with all these stacks.
func (b *board) has(c *wan.Cell, stacks []string) bool {
	i := slices.IndexFunc(b.Rows, func(r *row) bool { return r.Cell == *c })
	return i >= 0 && !slices.ContainsFunc(stacks, func(s string) bool { return b.Rows[i].result(s) == nil })
}

// put adds a row, in the place of one of the same cell.
func (b *board) put(r *row) {
	b.Rows = append(slices.DeleteFunc(b.Rows, func(o *row) bool { return o.Cell == r.Cell }), r)
	slices.SortStableFunc(b.Rows, func(x, y *row) int {
		return cmp.Or(cmp.Compare(uint(x.Cell.Size-1), uint(y.Cell.Size-1)), cmp.Compare(x.Cell.RTT, y.Cell.RTT), cmp.Compare(x.Cell.Loss, y.Cell.Loss)) // bulk, 0, comes last
	})
}

// commits names those that were measured.
func (b *board) commits() string {
	var list []string
	for _, r := range b.Rows {
		if !slices.Contains(list, r.Commit) {
			list = append(list, r.Commit)
		}
	}
	return strings.Join(list, " and ")
}
