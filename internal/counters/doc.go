// Package counters works on statistics, for sums and for export.
//
//   - In: structs whose counters are fields of type uint64, single, in arrays, or in structs of the
//     same kind. A Histogram is one of them.
//   - Out: their sums, and their fields by name.
package counters
