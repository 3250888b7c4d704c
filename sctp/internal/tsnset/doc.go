// Package tsnset holds sets of TSNs as bitmaps over a sliding window.
//
// The sending half keeps what is in flight, marked and gap-acked in such sets. The receiving half
// keeps what has arrived beyond the cumulative TSN (RFC 9260 sections 6.2 and 6.7). Finding the
// next member, or the next gap, takes a few steps however far away it is. So a SACK costs what it
// changes.
package tsnset
