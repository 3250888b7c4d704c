// Package counters works on statistics, for sums and for export. They are structs whose counters
// are fields of type uint64, single, in arrays, or in structs of the same kind. A Histogram is one
// of them.
package counters
