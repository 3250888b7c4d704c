// Package rx is the receiving half of an SCTP association (RFC 9260 sections 6.2, 6.5 to 6.7 and
// 6.9). It knows which TSNs have arrived, when a SACK is due and what it says. It reassembles
// fragments and delivers messages in stream order.
//
// A Receiver ties three parts together: a Tracker of TSNs, an AckPolicy and a Reassembly. DATA that
// was placed touches the first two only and costs no receive window. All three bound what a hostile
// peer can make them hold. The bounds are the receive buffer, and the 65535 TSNs that a SACK can
// report.
package rx
