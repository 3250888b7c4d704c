// Package tx is the sending half of an SCTP association: the send queue and the Source that is
// pulled when there is room, outstanding DATA, acknowledgement, loss recovery, retransmission
// timers and the limits of cwnd and rwnd (RFC 9260 sections 6.1, 6.2.1, 6.3, 6.4, 6.9 and 7.2).
//
// A user message becomes DATA chunks at the moment it can be sent. Each chunk is one record in a
// ring indexed by TSN, with slices of the user's memory: nothing is copied, and nothing is allocated
// for a chunk once the ring has its size.
//
// # States of a chunk
//
// The ledger (ledger.go) has all chunks from the cumulative TSN on. Each is in one of these states, and what happens to it leads to another; what
// is not in the table cannot be, and ends the association.
//
//	none      send: sent, withhold: withheld
//	sent      mark: marked, gap: gapped, cover: gone
//	withheld  copy: sent, mark: released
//	back      mark: disowned, gap: gapped, cover: gone
//	marked    send: sent, gap: gapped, cover: gone
//	released  send: sent, copy: marked
//	disowned  send: sent, gap: gapped, cover: gone
//	gapped    take back: back, cover: gone
//	gone
//
// none: a chunk has got its TSN. send: it leaves, for the first time or again. sent, withheld and back are in flight, and count in the flight size of
// the association and of one path. withhold: it leaves for all that is counted, but nothing is sent (trust.go), and no honest peer acknowledges it; copy: a
// tail-loss probe has taken it over another path (suspected.go). mark: RACK, the third miss indication, a timer, or a link
// that has refused it, has it sent again; marked, released and disowned are the queue of that, and their size counts no longer against rwnd. gap: a gap block names it.
// take back: one that comes later does not, so it is in flight again. back and disowned are owed: a gap block acknowledges them as long as the octets of SACKs pay
// for that, so that nobody has work done by taking back what he says. cover: the cumulative TSN passes it. Its state is what the ledger goes by, and
// one function changes it (ledger.move, and for whole runs of chunks ledger.departAll and ledger.cover); flight sizes, the queue, and the sets that find
// the chunks of an account for a gap block, follow. Of those in flight the ones that are ripe, in the order of sending (ripe.go), are what RACK and miss
// indications are about.
//
// Everything is sans-IO: time comes in, packets go out through a pack.Batch.
package tx
