// Package tx is the sending half of an SCTP association (RFC 9260 sections 6.1, 6.2.1, 6.3, 6.4,
// 6.9 and 7.2): the send queue, outstanding DATA, loss recovery and T3-rtx.
//
//   - In: messages, by Sender.Enqueue or pulled from a Source; SACKs by HandleSack; time by
//     HandleTimeout.
//   - Out: DATA chunks, by Fill into a pack.Batch. A message becomes chunks at the moment it can be
//     sent. Each chunk is one record in a ring indexed by TSN, with slices of the user's memory.
//   - Invariant: nothing is copied, and nothing is allocated for a chunk once the ring has its
//     size.
//   - Read first: sender.go, outstanding.go, send.go, sack.go.
//
// # States of a chunk
//
// outstanding (outstanding.go) has all chunks from the cumulative TSN on. Each is in one of these
// states, and an event leads to another. What is not in the table cannot be, and ends the
// association.
//
//	none            send: in-flight, withhold: withheld, abandon: abandoned
//	in-flight       mark lost: lost, gap ack: gap-acked, cum ack: acked, abandon: abandoned
//	withheld        probe copy: in-flight, mark lost: withheld-queued
//	reneged         mark lost: lost-reneged, gap ack: gap-acked, cum ack: acked, abandon: abandoned
//	lost            send: in-flight, undo loss: in-flight, gap ack: gap-acked, cum ack: acked, abandon: abandoned
//	withheld-queued send: in-flight, probe copy: lost
//	lost-reneged    send: in-flight, gap ack: gap-acked, cum ack: acked, abandon: abandoned
//	gap-acked       renege: reneged, cum ack: acked, abandon: abandoned
//	abandoned       cum ack: acked
//	acked
//
// The states:
//
//   - none: the chunk has got its TSN.
//   - in-flight: it was sent.
//   - withheld: it was not sent, and is counted as if it was, to find out a peer that acknowledges
//     what it has not received (optimistic_ack.go).
//   - lost, lost-reneged, withheld-queued: it is to be sent again, or at last.
//   - gap-acked: a gap block has named it.
//   - reneged: a later SACK did not name it. It counts as in flight again.
//   - abandoned: its message was given up (abandon.go). A FORWARD TSN tells the peer
//     (forward_tsn.go).
//   - acked: the cumulative TSN has passed it, or the association has ended.
//
// The events:
//
//   - send: it leaves, for the first time or again.
//   - withhold: it does not leave.
//   - probe copy: a tail-loss probe takes it over another path (suspicion.go), and so it has left.
//   - mark lost: it is taken for lost, or the link has refused it.
//   - undo loss: T3-rtx has marked it, and was early (spurious_timeout.go).
//   - gap ack, cum ack: a gap block names it, the cumulative TSN passes it.
//   - renege: a later SACK does not name it.
//   - abandon: its message is given up (RFC 3758).
//
// One function changes the state of a chunk: outstanding.applyEvent. recordNewSends and cumAckFirst
// do so for many at once. The sets and counts of chunks follow.
//
// Chunks that are in flight, withheld or reneged count in the flight size of the association and of
// one path, and against rwnd. Those that were sent before one that has arrived are loss-eligible
// (loss_eligible.go): RACK and miss indications look at them alone. A gap block acknowledges a
// reneged chunk only as far as the octets of SACKs have paid for the work (Sender.ackGapBlocks), so
// that no peer buys work by reneging.
//
// # The work of a SACK
//
// Sender.takeSackStep (sack.go) names the steps in their order, and each has a file of its own:
// acknowledge, grow cwnd, undo a timeout that was early, find what was overtaken, detect loss,
// renege, recover. What they do has no bound but the window, so that a work budget may cut them
// (work_budget.go). What only learns from SACKs is told of them in ack_observers.go.
//
// Everything is sans-IO: time comes in, packets go out through a pack.Batch.
package tx
