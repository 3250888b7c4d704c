// Package rdmap is the RDMA Protocol (RFC 5040) over package ddp, with the extensions of RFC 7306
// and the QP setup of RFC 6581.
//
//   - In: requests, by [QP.PostSend] and [QP.PostRecv]; segments, through [QP.Stream], the DDP
//     stream.
//   - Out: completions, through a [CQ]; messages, when the DDP stream asks for one.
//   - Invariant: each request completes exactly once, in the order of posting (section 5.5).
//   - Read first: qp.go, deliver.go, responder.go.
//
// # Locks
//
// All calls of one QP are made under the lock of the association that carries the stream. Only
// PostRecv may come from elsewhere, behind Config.RecvLock. Associations share only the STag table
// and a SharedQueue, which is behind a lock of its owner.
//
// # Order
//
// ddp gets one message at a time, and asks for the next when it has cut the last segment. So the
// user's requests take turns with the responses to the peer's RDMA Reads and atomics. A Terminate
// overtakes all that waits. Requests go out and complete in the order of posting (section 5.5). A
// Send behind an unanswered Read waits with its completion. A Read or atomic beyond ORD waits, and
// all behind it.
//
// # Atomics and Immediate Data
//
// A peer does not say whether it supports them: the programs agree on that (RFC 7306 section 1.1).
// What a peer does not support ends the stream with an unexpected opcode, StatusRemInvReqErr. A
// FetchAdd of 0 is a probe that changes nothing.
//
// Atomics are carried out when their request is delivered. They are atomic against all operations
// of all streams on a ddp.Table and against ddp.Region.Atomic; in RAM also against package
// sync/atomic. Immediate Data takes a receive of the peer, of any length, and arrives in its
// completion.
//
// # Memory
//
// The memory of a request belongs to the stack from posting to completion. Local pieces are checked
// when a request is posted, and guarded until they are used. A region that is invalidated meanwhile
// fails the request, and with it the stream. When a stream fails, requests may complete before the
// lower layer is done with their memory. Host.Detach has it copied out first.
//
// # Errors
//
// There is no recovery: the first error ends the stream (section 7). An error found here is sent to
// the peer in a Terminate; one found by the peer arrives in a Terminate. Host.Failed and QP.Err
// tell the user either way. All requests complete in error, the one at fault with a status that
// says so.
package rdmap
