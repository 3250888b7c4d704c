// Package rx is the receiving half of an SCTP association (RFC 9260 sections 6.2, 6.5 to 6.7 and
// 6.9), with messages that the peer gives up (RFC 3758).
//
//   - In: DATA chunks, by Receiver.Admit and then Queue, Placed or LeaveUnacked, and FORWARD TSN;
//     PacketDone ends a packet.
//   - Out: SACKs by AppendSack, messages in stream order by Receive.
//   - Invariant: what a hostile peer can make it hold is bounded, by the receive buffer and by the
//     65535 TSNs that a SACK can report. DATA that was placed costs no receive window.
//   - Read first: receiver.go, which ties a Tracker of TSNs, an AckPolicy and a Reassembly
//     together; then reassembly.go.
package rx
