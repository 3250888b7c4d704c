// Package ddpadapt runs DDP over SCTP (RFC 5043): DDP stream sessions on pairs of like-numbered SCTP
// streams, and the DDP-SSN that puts unordered messages back into the order of their submission.
//
// A [Mux] stands between one association and the DDP streams on it. It is the association's Placer:
// each DATA chunk is placed straight from the packet, in whatever order it arrives, and delivered in
// DDP-SSN order. It is the association's Source: segments are cut, numbered and handed over at the
// moment they can be sent, so nothing is queued below DDP.
//
// A [Session] is one use of a stream pair: the active side opens it with [Mux.Open], the passive side
// gets an [EventInitiate] and answers with [Session.Accept] or [Session.Reject], either side ends it
// with [Session.Terminate] or [Session.Abort].
//
// The package is sans-IO and takes no lock: all calls on a Mux and its sessions come from the owner
// of the association, one at a time. After each round of calls the owner drains [Mux.PollEvent].
//
// Sessions can be set up with negotiation of RDMA Read depths (RFC 6581): [Mux.OpenEnhanced],
// [Session.AcceptEnhanced], [Session.RejectEnhanced]. An Initiate is answered in kind.
//
// Each file holds one topic: codec.go (RFC 5043 section 5.2), setup.go (RFC 6581 sections 7 and 9), sequence.go (6.1 to 6.5, what a message
// means at its turn), order.go (10, the DDP-SSN window), receive.go (arrival and placement), send.go
// (6.6, 9 and 10, what may leave now), session.go (the user's calls), mux.go (the association).
package ddpadapt
