// Package tsnset holds sets of TSNs as bitmaps over a sliding window. The sending half keeps what
// is in flight, marked and gap-acked in such sets. The receiving half keeps what has arrived beyond
// the cumulative TSN (RFC 9260 sections 6.2 and 6.7).
//
//   - In: TSNs of a window of at most 65536.
//   - Out: the next member, or the next gap, in a few steps however far away it is. So a SACK costs
//     what it changes.
//   - Invariant: memory follows the window, and not what a peer names.
package tsnset
