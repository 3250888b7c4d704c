// Package rdma is Remote Direct Memory Access over SCTP and TCP for ordinary programs: a software
// RNIC with an API shaped after verbs.
//
//   - In: registered memory ([MR]) and work requests ([QP.PostSend], [QP.PostRecv]).
//   - Out: work completions, at a [CQ].
//   - Invariant: data goes from the packet to its place without passing through queues or the
//     program. Once [MR.Invalidate] has returned, not one octet changes any more.
//   - Read first: [Device], [QP], [CQ]. Package rdmap has the protocol.
//
// # Objects
//
// A [Device] runs over one link (package rawio), over TCP, or over both. On it live protection
// domains ([PD]), registered memory ([MR]), completion queues ([CQ]), shared receive queues ([SRQ])
// and queue pairs ([QP]). A QP is one end of an RDMAP stream (RFC 5040) on a DDP stream (RFC 5041).
// QPs to the same peer share an SCTP association (RFC 5043). Over TCP each has a connection of its
// own (RFC 5044).
//
// A server listens and answers requests; a client connects:
//
//	l, err := dev.Listen(5043)              qp, err := dev.CreateQP(&rdma.QPConfig{...})
//	req, err := l.Accept(ctx)               err = qp.PostRecv(...)
//	qp, err := dev.CreateQP(...)            reply, err := qp.Connect(ctx, addr, private)
//	err = qp.PostRecv(...)                  err = qp.PostSend(...)
//	err = req.Accept(qp, private)           err = cq.Wait(ctx); n, err := cq.Poll(wcs)
//
// Both sides post receives before the session starts. A Send that finds no buffer does not wait: it
// is an error that ends the stream (RFC 5041 section 7.1).
//
// # TCP
//
// [QP.Dial] and [Device.ListenOn] take a network by its name: "tcp" is iWARP. Its peers are RDMA
// adapters that speak it, Linux's siw, and this package. A Device without a link knows TCP alone:
//
//	dev, err := rdma.NewDevice(nil, nil)
//	l, err := dev.ListenOn("tcp", ":5043")   reply, err := qp.Dial(ctx, "tcp", "host:5043", private)
//
// One Device serves both, with one table of STags. [QP.ConnectOver] and [Device.RequestOver] take a
// connection that the program has. With Config.TLS both networks are encrypted. Differences:
//
//   - A QP has a connection of its own. Each costs two goroutines, and 4 KiB to 256 KiB to read
//     into.
//   - One path, and no placement out of order: TCP keeps back what follows a loss.
//   - The side that connects sends first (RFC 5044 section 7.1.2). Unless TCPConfig.Plain is set,
//     Connect negotiates (RFC 6581), and sends an empty message, so that both may send at once.
//   - QP.Paths is empty, and Device.Transport is nil without a link.
//
// # What a completion means over TCP
//
// Over SCTP a Send or Write completes when the peer's stack has acknowledged all of it. A TCP
// socket shows no acknowledgements, so it completes when the system has taken its octets.
//
//	A completion of        over SCTP                    over TCP
//	Send, Immediate Data   the peer's stack has it      the memory is the program's again
//	Write                  it is in the peer's memory   the memory is the program's again
//	Read, Atomic           the answer is here           the answer is here
//	Receive                all before it is in place    all before it is in place
//	any, by an error       the peer may have some of it the peer may have some of it
//
// A connection may still be lost behind a good completion. A program that must know that a Write
// is in place posts a Read behind it, of no octets if it likes. The answer comes behind what was
// before. So does an answer of the peer's program. Disconnect waits in either case until the peer
// has ended too, and returns an error otherwise.
//
// # Ordering
//
// Requests complete in the order they were posted, and so do receives. Between the two there is no
// order: over TCP the answer to a Send may have been received before the Send completes. What a
// Write has put into remote memory may be looked at once a Send posted after it has been received
// there (RFC 5040 section 5.5). Octets of an operation under way are indeterminate.
//
// A Read is answered after later requests have arrived. So a Send with Invalidate of the STag that
// an earlier Read names may end the stream. Post it with [Fence], which waits for the Read.
//
// # Atomics and Immediate Data
//
// [OpAtomic] adds to, or compares and swaps, 64 bits of the peer's memory (RFC 7306); MR.Atomic
// does the same locally. [OpImm] takes one receive of the peer and shows 8 octets in its
// completion. [OpWriteImm] does so behind an RDMA Write. The programs must agree to use them: no
// message says whether the peer's stack has them.
//
// # Setup
//
// By default both ends must be configured so that no ORD is above the peer's IRD. With
// QPConfig.Negotiate, Connect has the stacks agree on it (RFC 6581).
//
// # Memory
//
// Memory named by a work request belongs to the QP until the request completes. The peer may change
// registered memory, as its access rights say, until Invalidate or Deregister returns. Then not one
// octet changes any more. The same goes for Reregister, which gives an STag other memory, and
// SetAccess.
//
// A memory window ([MW]) opens part of a region to the peer of one QP, with an STag and rights of
// its own. It costs little: bind one for each exchange. End it before the program looks at what was
// written, or have the peer end it by a Send with Invalidate (RFC 5042 section 6.2.2).
//
// # Resources
//
// [Limits] bounds all that a peer can make a Device hold; a PD, as a user of the Device, has its
// share of it. A CQ is made as deep as all queues attached to it: CreateQP fails with a
// [*CQSizeError] otherwise. SRQ.SetLimit and QP.SetHighWater watch the receives shared by an SRQ.
// Config.IdleTimeout reclaims idle QPs. Device.Peers and QP.StreamStats show which peers cost more
// than others. Device.NextEvent reports what concerns no single request: streams that fail, limits
// that are reached, associations that come and go.
//
// CQ.Destroy, SRQ.Destroy and PD.Destroy end what was made. They fail with an [*InUseError], which
// is EBUSY, while something uses it. CQ.Resize makes a CQ deeper before more QPs are attached. One
// goroutine may wait for many CQs: at a [CompChannel].
//
// # Lossy paths
//
// Two timers of SCTP decide how fast a transfer goes on after losses. Config.SCTP.LoneSackDelay is
// 1 ms here and SackDelay 10 ms instead of 200 ms, as completions wait for acknowledgements.
// Config.SCTP.RTOMin keeps its second, as RFC 9260 section 16 says: a retransmission too early
// harms the network.
//
// A loss at the very end of a message then costs a second, as nothing follows that would reveal it.
// Set RTOMin to 100 ms or so if the round-trip time is short and steady, as within a data centre.
// That is a choice about the path, which the library cannot make.
//
// # Errors
//
// An error found in what the peer sent, or reported by it, ends the stream. Outstanding requests
// complete with a status other than rdmap.StatusSuccess. QP.Err has the *rdmap.StreamError with the
// Terminate message.
//
// # How a QP ends
//
// QP.Err, and Event.Err of EventQPFatal, is one of these; switch on it by [errors.Is] and
// [errors.As]:
//
//   - nil: gracefully, or not at all yet.
//   - [rdmap.StreamError] with Terminate: this side has found an error in what the peer sent, or cannot do what was asked of it.
//   - [rdmap.StreamError] with Terminate and Remote: the peer has.
//   - [rdmap.StreamError] without Terminate: there was no way to tell the peer more, or nothing to tell. Its Cause is one of those that follow.
//   - [net.ErrClosed]: QP.Close, or a Connect whose context ended.
//   - [ErrIdle]: nothing moved for Config.IdleTimeout.
//   - [ErrCQOverflow]: the program left its completions where they were.
//   - [rdmap.ErrPeerClosed]: the peer closed its half and owed answers.
//   - [llp.RejectedError]: the peer's program rejected the Connect.
//   - [llp.TerminatedError], [ddpadapt.ErrRestarted] or another error of the session: see "How a session ends" in package ddpadapt.
//   - the error that the association ended by: see "How an association ends" in package assoc.
//   - over TCP the error that the connection ended by: see "How a connection ends" in package mpa.
//   - [llp.ErrInsufficientIRD], [llp.ErrNoRTR]: the ends could not agree on a setup; Connect returns it too.
//
// # The operations of RFC 4296
//
// The architecture document names abstract operations; these are ours.
//
//	RFC 4296 section 2.1.2 (DDP)                   here
//	ddp_send(s, m)                                 QP.PostSend with OpSend
//	ddp_send_ddp(s, m, d, n), no notification      QP.PostSend with OpWrite
//	ddp_send_ddp(s, m, d, n), with notification    OpWrite, then OpSend or OpSendSE, posted by PostSendList; or OpWriteImm
//	ddp_post_recv(s, b)                            QP.PostRecv; on several sockets at once: SRQ.PostRecv
//	ddp_recv(s), untagged indication               CQ.Poll, CQ.Wait: WC with WCRecv
//	ddp_recv(s), tagged indication                 the WC of the Send that follows the Write
//	ddp_register(s, b)                             PD.Register; one QP only: RegionOptions.QP or MR.Bind; a file: PD.RegisterDevice
//	ddp_deregister(bh)                             MR.Deregister
//	ddp_max_msizes(s)                              QP.MULPDU for one segment; messages are 2^32-1 octets at most
//
//	RFC 4296 section 2.2.1 (RDMA)                  here
//	rdma_send(s, m)                                QP.PostSend with OpSend
//	rdma_write(s, m, d, n)                         QP.PostSend with OpWrite; notification as above
//	rdma_read(s, s, l, d)                          QP.PostSend with OpRead
//	rdma_post_recv(s, b)                           QP.PostRecv, SRQ.PostRecv
//	rdma_recv(s)                                   CQ.Poll, CQ.Wait; a completed Read is a WC with WCRead
//	rdma_register(s, b, mode)                      PD.Register with Access: RemoteRead, RemoteWrite
//	rdma_deregister(bh)                            MR.Deregister
//	rdma_max_msizes(s)                             as ddp_max_msizes
//
// A buffer may be registered several times, and regions may overlap: each registration has its own
// STag, rights and end. A buffer posted to an SRQ is posted on all its QPs, and the first message
// takes it from all.
package rdma
