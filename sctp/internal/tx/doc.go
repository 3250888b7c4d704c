// Package tx is the sending half of an SCTP association: the send queue and the Source that is
// pulled when there is room, outstanding DATA, acknowledgement, loss recovery, retransmission
// timers and the limits of cwnd and rwnd (RFC 9260 sections 6.1, 6.2.1, 6.3, 6.4, 6.9 and 7.2).
//
// A user message becomes DATA chunks at the moment it can be sent. Each chunk is one record in a
// ring indexed by TSN, with slices of the user's memory: nothing is copied, and nothing is
// allocated for a chunk once the ring has its size.
//
// # States of a chunk
//
// The ledger (outstanding.go) has all chunks from the cumulative TSN on. Each is in one of these
// states, and what happens to it leads to another; what is not in the table cannot be, and ends the
// association.
//
//	none      send: sent, withhold: withheld
//	sent      mark: marked, gap: gapped, cover: gone
//	withheld  copy: sent, mark: released
//	back      mark: disowned, gap: gapped, cover: gone
//	marked    send: sent, restore: sent, gap: gapped, cover: gone
//	released  send: sent, copy: marked
//	disowned  send: sent, gap: gapped, cover: gone
//	gapped    take back: back, cover: gone
//	gone
//
// none: it has got its TSN. send: it leaves, for the first time or again; sent: it is in flight.
// withhold: it does not leave, and is counted as if it did (optimistic_ack.go); withheld: no honest
// peer acknowledges it. copy: a tail-loss probe takes it over another path (suspicion.go), and so
// it has left. mark: it is taken for lost, or a link has refused it; marked, released, disowned: it
// is in the queue of what is to be sent again, or, released, at last. restore: T3-rtx has marked it
// and was early (spurious_timeout.go). gap: a gap block names it; gapped: it may be taken back.
// take back: a later SACK does not name it; back: it is in flight again. cover: the cumulative TSN
// passes it; gone: or the association has ended.
//
// One function changes the state of a chunk (ledger.move; ledger.departAll and ledger.cover do for
// trains), and the accounts follow. sent, withheld and back count in the flight size of the
// association and of one path, and against rwnd. Some of them are ripe (loss_eligible.go): they
// were sent before one that has arrived, so that RACK and miss indications are about them. A gap
// block acknowledges back and disowned only as long as the octets of SACKs have paid for that
// (Sender.ackGaps): nobody has work done by taking back what he said.
//
// Everything is sans-IO: time comes in, packets go out through a pack.Batch.
package tx
