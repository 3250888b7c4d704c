// Package count works on statistics: structs whose counters are fields of type uint64, by themselves, in
// arrays, or in structs of the same kind. It is for sums and for export, not for counting.
package count
