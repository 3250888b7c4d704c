// Package tsnset holds sets of TSNs as bitmaps over a sliding window.
//
// The sending half keeps what is in flight, marked and gap-acknowledged in such sets, the receiving
// half what has arrived beyond the cumulative TSN (RFC 9260 sections 6.2 and 6.7). To find the next
// member, or the next TSN that is none, takes a few steps however far away it is, so a SACK costs
// what it changes.
package tsnset
