// Package ddpadapt runs DDP over SCTP (RFC 5043). It has sessions on pairs of like-numbered SCTP
// streams, and the DDP-SSN that puts unordered messages back into order.
//
//   - In: DATA chunks in any order, by [Mux.Place]; the calls of the user on a [Session].
//   - Out: segments, when there is room for one ([Mux.Next]); events ([Mux.PollEvent]).
//   - Invariant: placement happens at arrival, delivery in DDP-SSN order. Nothing is queued below
//     DDP.
//   - Read first: mux.go, then receive.go. All calls come from the owner of the association.
//
// # A session
//
// The active side opens a [Session] with [Mux.Open]. The passive side gets an [EventInitiate], and
// answers with [Session.Accept] or [Session.Reject]. Either side ends it with [Session.Terminate]
// or [Session.Abort]. After each round of calls the owner drains Mux.PollEvent.
//
// Sessions can be set up with negotiation of RDMA Read depths (RFC 6581): [Mux.OpenEnhanced],
// [Session.AcceptEnhanced], [Session.RejectEnhanced]. An Initiate is answered in kind.
//
// # How a session ends
//
// Session.Err, and Event.Err, is one of these; switch on it by [errors.Is] and [errors.As]:
//
//   - nil: both sides have ended it, or this side gave it up.
//   - [llp.RejectedError]: the peer's upper layer rejected it.
//   - [llp.TerminatedError] with ByPeer: the peer ended it in place of an answer, or before it had one.
//   - [llp.TerminatedError] with a [SequenceError] as its Cause: the peer left the legal sequences, and Fault says how.
//   - [ErrRestarted]: the peer has restarted the association, on which new sessions can be opened.
//   - the error that the association ended by, see package assoc; or [ErrNotDDP] where it never carried DDP.
//
// # States of a session
//
// A session is in one of these states, and what happens to it leads to another; what is not in the
// table cannot be, and ends the association ([assoc.InternalError]). The two sides of a session end
// one by one: each by a Terminate, or not at all (RFC 5043 section 6.2).
//
//	initiate-queued   initiate sent: initiate-sent, nothing sent: done, association down: ended
//	initiate-sent     accepted: open, refused: done, abort: canceled, fault: ending, unknown SSN: counting, association down: ended
//	initiate-received accept: open, reject: done, nothing sent: done, association down: ended
//	open              finish: closing, peer terminate: peer-closed, abort: ending, fault: ending, nothing sent: done, unknown SSN: counting, association down: ended
//	closing           peer terminate: both-closing, abort: ending, fault: ending, nothing sent: done, unknown SSN: counting, next session: reused, association down: ended
//	peer-closed       finish: both-closing, abort: done, fault: done, nothing sent: done, unknown SSN: done, association down: ended
//	both-closing      abort: done, fault: done, nothing sent: done, unknown SSN: done, next session: reused, all acked: ended, association down: ended
//	canceled          refused: done, late answer: ending, unknown SSN: counting, association down: ended
//	ending            peer terminate: done, unknown SSN: counting, next session: reused, association down: ended
//	counting          peer terminate: done, next session: reused, association down: ended
//	done              next session: reused, all acked: ended, association down: ended
//	rejecting         next session: reused, all acked: ended, association down: ended
//	reused            all acked: ended, association down: ended
//	ended
//
// The states:
//
//   - initiate-queued, initiate-sent: the active side; its Initiate waits to be sent, or its answer
//     is awaited.
//   - initiate-received: the passive side; the upper layer has not answered yet.
//   - open: both sides send.
//   - closing, peer-closed, both-closing: this side has ended, the peer has, or both have.
//   - canceled: given up before the answer, which the Terminate has to wait for.
//   - ending: the peer's last message is awaited; nothing that it sends is placed or delivered.
//   - counting: the same, but a message had no number, or was not kept, so that the peer's messages
//     are counted and not put in order.
//   - done: nothing is awaited but acknowledgements.
//   - rejecting: the same for a session that only exists to refuse what came on a free stream.
//   - reused: the first message of the peer's next session waits for our acknowledgements.
//   - ended: the stream is free.
//
// The events:
//
//   - initiate sent: the Initiate was handed to SCTP.
//   - accept, reject: the upper layer answers. accepted, refused: the peer's answer has its turn; a
//     Terminate refuses too. late answer: it comes after the session was given up.
//   - finish: this side has no more to send, and its Terminate follows.
//   - peer terminate: the peer's last message has its turn.
//   - abort, fault: the user gives the session up, or the peer breaks the sequence; a Terminate
//     says so. nothing sent: the same before anything of this side was handed over.
//   - unknown SSN: a message has come that has no number (a foreign PPID), or is not kept.
//   - next session: the first message of the peer's next session, which it may send when it has all
//     that is ours.
//   - all acked: everything of this side is acknowledged.
//   - association down: the association is gone, or was restarted.
//
// Each file holds one topic: codec.go (RFC 5043 section 5.2, RFC 6581 section 7),
// sequence.go (6.1 to 6.5, what a message means at its turn), out_of_order.go (10, the DDP-SSN
// window), receive.go (arrival and placement), send.go (6.6, 9 and 10, what may leave now),
// state.go (the table), session.go (the user's calls), mux.go (the association).
package ddpadapt
