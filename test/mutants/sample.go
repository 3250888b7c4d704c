package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/rddp-go/rddp/test/conformance"
)

// sampleSize is how many rows a sample has.
const sampleSize = 200

// sampleRows draws rows of level MUST and MUST NOT that a test cites, over all RFCs.
func sampleRows(r *conformance.Report, seed string, n int) (rows []*conformance.Row) {
	for _, f := range r.Files {
		for i := range f.Rows {
			if row := &f.Rows[i]; r.Provable(row) {
				rows = append(rows, row)
			}
		}
	}
	return sampleBy(rows, seed, n, func(row *conformance.Row) string { return row.ID })
}

// sampleBy draws n of a list. The seed decides: they are those whose SHA-256 of seed and name is
// lowest, so that anyone can draw them again.
func sampleBy[T any](list []T, seed string, n int, name func(T) string) []T {
	key := func(x T) string {
		sum := sha256.Sum256([]byte(seed + " " + name(x)))
		return string(sum[:])
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
	return list[:min(n, len(list))]
}

// treeID returns the first 8 digits of the id of the committed tree.
func treeID() (string, error) {
	id, err := exec.Command("git", "rev-parse", "HEAD^{tree}").Output()
	if err != nil {
		return "", fmt.Errorf("git rev-parse: %w", err)
	}
	return string(id[:8]), nil
}

// printSample prints a sample and what became of its rows.
func printSample(seed string) (ok bool, err error) {
	if _, err := strconv.ParseUint(seed, 16, 32); err != nil || len(seed) != 8 {
		return false, fmt.Errorf("a seed is 8 hexadecimal digits, as of git rev-parse HEAD^{tree}: %q", seed)
	}
	root := "."
	r, err := conformance.Examine(filepath.Join(root, "test", "conformance"), root)
	if err != nil {
		return false, err
	}
	count := make(map[string]int)
	rows := sampleRows(r, seed, sampleSize)
	for _, row := range rows {
		state := r.State(row)
		count[state]++
		fmt.Printf("%-12s %-18s %-9s %s\n", state, row.ID, row.Level, row.Text)
	}
	fmt.Printf("mutants: of %d rows by %s %d are proved, %d cannot be, %d are only cited\n", len(rows), seed,
		count[conformance.Proved], count[conformance.NoProof], count[conformance.OnlyCited])
	return count[conformance.OnlyCited] == 0, nil
}
