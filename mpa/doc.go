// Package mpa runs DDP over TCP (RFC 5044), with the enhanced setup of RFC 6581. It frames segments
// in the octet stream, and sets the connection up.
//
//   - In: octets, by [Conn.Receive], from a buffer that holds many FPDUs; the calls of the user.
//   - Out: octets to write, by [Conn.Next], in pieces that refer to the user's memory; events.
//   - Invariant: nothing reaches DDP before its FPDU is whole and its CRC is right. Nothing is
//     copied or allocated for an FPDU.
//   - Read first: conn.go, then fpdu_in.go and fpdu_out.go. All calls come from one owner.
//
// # A connection
//
// [NewInitiator] asks for a session on a TCP connection, [NewResponder] waits to be asked. The
// responder gets an [EventRequest], and answers with [Conn.Accept] or [Conn.Reject]. The owner
// reads from TCP into Receive, does what Next says, and polls events after each round of calls. A
// connection that has carried other data can be upgraded: octets are MPA's from the first call on.
//
// # How a connection ends
//
// [Conn.Err], and Event.Err, is one of these; switch on it by [errors.Is] and [errors.As]:
//
//   - nil: both sides have closed their half, or this side gave it up.
//   - [llp.RejectedError]: the peer's upper layer rejected it. The TCP connection is left open.
//   - [Error] with CodeFrame: the peer's start-up frame is wrong, and its [FrameError] says how.
//   - [Error] with CodeLost: TCP has lost the connection, and Cause says why.
//   - [Error] with CodeLost and [ErrTruncated], or [ErrClosedEarly]: the peer closed it too soon.
//   - [ErrStartupTimeout]: the peer did not say what was due.
//   - [ErrLingerTimeout]: the peer did not close its half after an error.
//   - [InternalError]: this code has contradicted itself.
//
// An [Error] with CodeCRC or CodeMarker ends what is received, and not the connection (section 8).
// DDP hears of it, and its user closes.
//
// # States of a connection
//
// A connection is in one of these states, and what happens to it leads to another; what is not in
// the table cannot be, and ends the connection ([InternalError]).
//
//	requesting    accepted: open, rejected: left, end: ended
//	awaiting      requested: pending, end: ended
//	pending       accept: open, reject: rejecting, end: ended
//	rejecting     all written: left, end: ended
//	open          finish: closing, peer finished: peer-closed, end: ended
//	closing       peer finished: both-closing, end: ended
//	peer-closed   finish: both-closing, end: ended
//	both-closing  end: ended
//	left
//	ended
//
// The states:
//
//   - requesting: the initiator, whose Request is on its way; the Reply is awaited.
//   - awaiting, pending: the responder; the Request is awaited, or the answer of the upper layer.
//   - rejecting: the same, whose Reply is on its way.
//   - open: FPDUs go both ways.
//   - closing, peer-closed, both-closing: this side has ended, the peer has, or both have.
//   - left: MPA was exited; the TCP connection is the upper layer's.
//   - ended: the TCP connection is to be closed.
package mpa
