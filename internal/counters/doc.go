// Package counters works on statistics: structs whose counters are fields of type uint64, by
// themselves, in arrays, or in structs of the same kind: for sums and for export. A Histogram is
// one of them.
package counters
