// Package rdmap is the RDMA Protocol of RFC 5040 over package ddp: Send in its four types, RDMA
// Write, RDMA Read and Terminate; with the extensions of RFC 7306: Atomic Operations and Immediate
// Data; and what RFC 6581 asks of a QP that is being set up.
//
// A QP is one end of an RDMAP stream. Requests are posted with QP.PostSend and QP.PostRecv,
// completions come out through a CQ, and QP.Stream is the DDP stream to attach to a lower layer.
// The package does no I/O, starts nothing, takes no locks and reads no clock: all calls of one QP,
// those that come up from ddp included, are made under the one gate of the association that carries
// the stream; PostRecv alone may come from beside it, behind Config.RecvLock. Only the STag table
// is shared between associations; a SharedQueue is too, behind a lock of its owner.
//
// # Order
//
// ddp is given one message at a time and asks for the next when it has cut the last segment, so the
// user's requests and the responses to the peer's RDMA Reads and atomics take turns, and a
// Terminate overtakes all that waits. Requests go out and complete in the order of posting (section
// 5.5): a Send behind an unanswered Read waits with its completion, and a Read or atomic beyond ORD
// waits with all behind it.
//
// # Atomics and Immediate Data
//
// A peer says nothing of whether it supports them: the programs agree on that (RFC 7306 section
// 1.1). What a peer does not support ends the stream with an unexpected opcode, StatusRemInvReqErr;
// a FetchAdd of 0 is a probe that changes nothing. Atomics are carried out when their request is
// delivered, atomically against all operations of all streams on a ddp.Table and against
// ddp.Region.Atomic; on memory in RAM also against package sync/atomic. Immediate Data takes a
// receive of the peer, of any length, and arrives in its completion.
//
// # Memory
//
// The memory of a request belongs to the stack from posting to completion. Local pieces are checked
// when a request is posted and guarded until they are used: a region that is invalidated meanwhile
// fails the request, and with it the stream. When requests complete before the lower layer is done
// with their memory, as happens only when a stream fails, Host.Detach has it copied out first.
//
// # Errors
//
// There is no recovery: the first error ends the stream (section 7). One found here is sent to the
// peer in a Terminate and one found by the peer arrives in a Terminate; Host.Failed and QP.Err tell
// the user either way, and all requests complete in error, the one at fault with a status that says
// so.
package rdmap
