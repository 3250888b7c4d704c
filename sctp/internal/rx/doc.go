// Package rx is the receiving half of an SCTP association: which TSNs have arrived, when a SACK is
// due and what it says, reassembly of fragments and delivery in stream order (RFC 9260 sections
// 6.2, 6.5 to 6.7 and 6.9).
//
// A Receiver ties three parts together: a Tracker of TSNs, an AckPolicy and a Reassembly. DATA that
// a Placer has consumed touches the first two only and costs no receive window. All three bound
// what a hostile peer can make them hold by the receive buffer and the 65535 TSNs that a SACK can
// report.
package rx
