// Package tx is the sending half of an SCTP association: the send queue and the Source that is
// pulled when there is room, outstanding DATA, acknowledgement, loss recovery, retransmission
// timers and the limits of cwnd and rwnd (RFC 9260 sections 6.1, 6.2.1, 6.3, 6.4, 6.9 and 7.2).
//
// A user message becomes DATA chunks at the moment it can be sent. Each chunk is one record in a
// ring indexed by TSN, with slices of the user's memory: nothing is copied, and nothing is allocated
// for a chunk once the ring has its size. What is in flight, marked for retransmission or
// gap-acknowledged is kept in sets beside the ring, so that the cost of a SACK is that of what it
// newly says.
//
// Everything is sans-IO: time comes in, packets go out through a pack.Batch.
package tx
