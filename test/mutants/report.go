package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"
)

// printReport prints what became of the faults of each layer and which took longest. It reports
// whether all were caught.
func printReport(w io.Writer, results []result, equivalent []*fault, took time.Duration) bool {
	var layers []string
	rows := make(map[string]*[5]int) // faults, then by outcome, then equivalent
	add := func(f *fault, column int) {
		l := f.layerOf()
		if rows[l] == nil {
			rows[l] = new([5]int)
			layers = append(layers, l)
		}
		rows[l][0]++
		rows[l][column]++
	}
	for _, r := range results {
		add(r.fault, 1+int(r.outcome))
	}
	for _, f := range equivalent {
		add(f, 4)
	}
	slices.Sort(layers)
	var sum [5]int
	fmt.Fprintf(w, "\n| Layer | Faults | Caught | Survived | Equivalent |\n|---|--:|--:|--:|--:|\n")
	for _, l := range layers {
		row := rows[l]
		fmt.Fprintf(w, "| %s | %d | %d | %d | %d |\n", l, row[0], row[1], row[2]+row[3], row[4])
		for i, n := range row {
			sum[i] += n
		}
	}
	fmt.Fprintf(w, "| **all** | %d | %d | %d | %d |\n\n", sum[0], sum[1], sum[2]+sum[3], sum[4])
	slices.SortFunc(results, func(a, b result) int { return cmp.Compare(b.took, a.took) })
	for _, r := range results[:min(5, len(results))] {
		fmt.Fprintf(w, "slowest %5.1fs  %s\n", r.took.Seconds(), r.fault.name)
	}
	fmt.Fprintf(w, "mutants: %d faults: %d caught, %d survived, %d not made, %d equivalent, in %v, %v of "+
		"processor time\n",
		sum[0], sum[1], sum[2], sum[3], sum[4], took.Round(time.Second),
		time.Duration(processor.Load()).Round(time.Second))
	return sum[2]+sum[3] == 0
}
