// Package assoc is one SCTP association (RFC 9260) as a pure function of packets, time and
// requests.
//
//   - In: received packets ([Assoc.HandlePackets]), the present time ([Assoc.HandleTimeout]) and
//     the user's requests, as calls of its owner, from one goroutine at a time.
//   - Out: packets ([Assoc.PollTransmit]), events ([Assoc.PollEvent]), messages ([Assoc.Receive])
//     and the next deadline ([Assoc.NextTimeout]).
//   - Invariant: the same calls at the same times, with the same [Env.Rand], produce the same
//     packets. It opens no socket, reads no clock, starts no goroutine and takes no lock.
//   - Read first: packet.go, data.go, transmit.go, timers.go.
//
// # A harness of one's own
//
// Fuzzers, simulators and others that want SCTP without I/O import four packages. This one is an
// association. endpoint finds the association of a packet and makes new ones. wire has the chunks,
// and rawio/simnet is a network in virtual time. Programs need none of them. The example is a
// harness for a fuzzer's octets.
//
// What an owner does:
//
//   - A packet goes to Endpoint.Lookup, and what that finds nothing for to HandleUnmatched; an association that comes of it, or of Connect, is the owner's to keep.
//   - Behind each call, for each association: PollEvent until there is none, Receive, PollTransmit as long as it has more, and NextTimeout, when to call HandleTimeout.
//   - On EventUp, EventRestart, EventPathUp and EventPathDown Endpoint.Refresh, on EventDown Endpoint.Remove, then [Assoc.Successor].
//   - The packets of a TxBatch are the owner's until Reset, those that it hands in the association's until HandlePacket returns.
//
// An owner of many associations calls PollTransmit once more, IdleAfter behind the last DATA. An
// association that has nothing to do then becomes idle ([Assoc.GoIdle]). It needs little more than
// half of its memory.
//
// # How an association ends
//
// Event.Err of EventDown is one of these; switch on it by [errors.Is] and [errors.As]:
//
//   - [ErrShutdown]: gracefully, all was delivered.
//   - [ErrInitTimeout]: nobody answered the setup.
//   - [NoRouteError]: there was no way to any address of the peer, as this host or a router says.
//   - [RefusedError]: this host did not let anything go, as its firewall or an interface that is down.
//   - [ErrOvertaken]: the peer has answered another attempt of the same Dial.
//   - [ErrTimeout]: the peer has stopped answering.
//   - [StuckError]: it answers, but what is under way has become too long for the path.
//   - [ErrShutdownTimeout]: the peer answers, but never completes the shutdown.
//   - [ErrTSNResetUnanswered]: the peer answers, but not a reset of TSNs.
//   - [ErrSucceeded]: the peer has restarted during the shutdown.
//   - [ErrProtoUnreachable]: the peer's host has no SCTP.
//   - [AbortError] with ByPeer: the peer's program or stack has aborted it, for the causes that are listed.
//   - [AbortError] with cause 12 (User-Initiated Abort): this side's program has.
//   - [AbortError] with any other cause: this side's stack has, because the peer broke the protocol.
//   - [AdaptationError]: the peer does not speak the protocol above that Config asks for.
//   - [KeyFailure]: there are no keys, as a TLS handshake has failed, or they could not be replaced.
//   - [MemoryError]: what the peer made this host hold was more than its share.
//   - What [Assoc.Fail] was given: what lies below the association has failed.
//   - [InternalError]: this side has contradicted itself, which is worth a report.
//
// A restart by the peer is no end. It is an EventRestart, and another [Assoc.Incarnation]. During a
// shutdown it is an end, and the peer sets up another association ([Assoc.Successor]).
//
// # States
//
// An association begins in COOKIE-WAIT, or by the peer's cookie in ESTABLISHED, and ends in CLOSED.
// One function changes its state, by this table (section 4, Figure 3). A transition that is not in
// it ends the association ([InternalError]). What exists in one state only comes and goes with it:
// the INIT or COOKIE ECHO that waits for its answer, with T1 and the peer's cookie. So does the
// SHUTDOWN or SHUTDOWN ACK that waits, with T2.
//
//	COOKIE-WAIT       init ack: COOKIE-ECHOED, cookie ack: ESTABLISHED, end: CLOSED
//	COOKIE-ECHOED     cookie ack: ESTABLISHED, stale: COOKIE-WAIT, end: CLOSED
//	ESTABLISHED       restart: ESTABLISHED, shutdown: SHUTDOWN-PENDING, peer shutdown: SHUTDOWN-RECEIVED, end: CLOSED
//	SHUTDOWN-PENDING  peer shutdown: SHUTDOWN-RECEIVED, drained: SHUTDOWN-SENT, end: CLOSED
//	SHUTDOWN-SENT     peer shutdown: SHUTDOWN-ACK-SENT, shutdown ack: CLOSED, end: CLOSED
//	SHUTDOWN-RECEIVED drained: SHUTDOWN-ACK-SENT, end: CLOSED
//	SHUTDOWN-ACK-SENT shutdown ack: CLOSED, complete: CLOSED, end: CLOSED
//
// cookie ack: the peer's, or its own cookie (section 5.2.4, actions B and D). restart: action A.
// shutdown: the user's. drained: in a shutdown, all own data is acknowledged. end: ABORT from
// either side, a contradiction, or a limit is reached.
//
// # What happens in which state
//
// Behind each chunk, report, call or timer stands what is sent at once in answer. Behind a > stands
// the state that it leads to. What most states do comes first, then those that differ. In
// ESTABLISHED, SHUTDOWN-PENDING and SHUTDOWN-RECEIVED one message is not acknowledged. What is
// ignored is counted and changes nothing. In CLOSED the endpoint answers, if anything does (section
// 8.4).
//
//	INIT                       INIT ACK; SHUTDOWN-ACK-SENT: SHUTDOWN ACK
//	INIT, another address      ABORT; CLOSED, COOKIE-WAIT: INIT ACK; SHUTDOWN-ACK-SENT: SHUTDOWN ACK
//	INIT ACK                   ignored; CLOSED: ABORT; COOKIE-WAIT: COOKIE ECHO > COOKIE-ECHOED
//	COOKIE ACK                 ignored; COOKIE-ECHOED: > ESTABLISHED
//	DATA                       ignored; CLOSED: ABORT; ESTABLISHED, SHUTDOWN-PENDING: SACK; SHUTDOWN-SENT: SHUTDOWN
//	DATA, empty                ignored; CLOSED: ABORT; ESTABLISHED, SHUTDOWN-PENDING, SHUTDOWN-SENT: ABORT > CLOSED
//	SACK                       ignored; CLOSED: ABORT; ESTABLISHED: taken; SHUTDOWN-PENDING: SHUTDOWN > SHUTDOWN-SENT; SHUTDOWN-RECEIVED: SHUTDOWN ACK > SHUTDOWN-ACK-SENT
//	SACK, not sent             ignored; CLOSED: ABORT; ESTABLISHED, SHUTDOWN-PENDING, SHUTDOWN-RECEIVED: ABORT > CLOSED
//	HEARTBEAT                  HEARTBEAT ACK; CLOSED: ABORT; COOKIE-WAIT, SHUTDOWN-ACK-SENT: ignored; SHUTDOWN-SENT: SHUTDOWN
//	HEARTBEAT ACK              ignored; CLOSED: ABORT
//	ABORT                      > CLOSED; CLOSED: ignored
//	SHUTDOWN                   ignored; CLOSED: ABORT; ESTABLISHED, SHUTDOWN-PENDING: > SHUTDOWN-RECEIVED; SHUTDOWN-SENT: SHUTDOWN ACK > SHUTDOWN-ACK-SENT; SHUTDOWN-RECEIVED: taken; SHUTDOWN-ACK-SENT: SHUTDOWN ACK
//	SHUTDOWN, all acknowledged SHUTDOWN ACK > SHUTDOWN-ACK-SENT; CLOSED: ABORT; COOKIE-WAIT, COOKIE-ECHOED: ignored; SHUTDOWN-ACK-SENT: SHUTDOWN ACK
//	SHUTDOWN ACK               SHUTDOWN COMPLETE; ESTABLISHED, SHUTDOWN-PENDING, SHUTDOWN-RECEIVED: ignored; SHUTDOWN-SENT, SHUTDOWN-ACK-SENT: SHUTDOWN COMPLETE > CLOSED
//	SHUTDOWN COMPLETE          ignored; SHUTDOWN-ACK-SENT: > CLOSED
//	ERROR, stale cookie        ignored; COOKIE-ECHOED: INIT > COOKIE-WAIT
//	ERROR, other               taken; CLOSED: ABORT; COOKIE-WAIT: ignored
//	ECNE                       ignored; CLOSED: ABORT
//	CWR                        taken; CLOSED: ABORT; COOKIE-WAIT: ignored
//	PAD                        taken; CLOSED: ABORT; COOKIE-WAIT: ignored
//	unknown, 00                ignored; CLOSED: ABORT
//	unknown, 01                ERROR; CLOSED: ABORT; COOKIE-WAIT: ignored
//	unknown, 10                ignored; CLOSED: ABORT
//	unknown, 11                ERROR; CLOSED: ABORT; COOKIE-WAIT: ignored
//	wrong tag                  ignored
//	ICMP, no SCTP              > CLOSED; CLOSED: ignored
//	Send                       ErrClosing; COOKIE-WAIT, COOKIE-ECHOED: ErrNotUp; ESTABLISHED: DATA
//	Shutdown                   taken; CLOSED: ErrClosing; COOKIE-WAIT, COOKIE-ECHOED: ErrNotUp; ESTABLISHED: > SHUTDOWN-PENDING
//	Abort                      ABORT > CLOSED; CLOSED: ignored; COOKIE-WAIT: > CLOSED
//	AbortForMemory             ABORT > CLOSED; CLOSED: ignored; COOKIE-WAIT: > CLOSED
//	Break                      ABORT > CLOSED; CLOSED: ignored; COOKIE-WAIT: > CLOSED
//	RequestHeartbeat           HEARTBEAT; CLOSED, SHUTDOWN-SENT, SHUTDOWN-ACK-SENT: ErrClosing; COOKIE-WAIT, COOKIE-ECHOED: ErrNotUp
//	T1, T2 or T3-rtx           DATA; CLOSED: ignored; COOKIE-WAIT: INIT; COOKIE-ECHOED: COOKIE ECHO; SHUTDOWN-SENT: SHUTDOWN; SHUTDOWN-ACK-SENT: SHUTDOWN ACK
//	T5-shutdown-guard          DATA; CLOSED: ignored; COOKIE-WAIT: INIT; COOKIE-ECHOED: COOKIE ECHO; SHUTDOWN-SENT: ABORT > CLOSED; SHUTDOWN-ACK-SENT: SHUTDOWN ACK
//	an hour of silence         > CLOSED; CLOSED: ignored
//	COOKIE ECHO, A             COOKIE ACK > CLOSED; CLOSED, ESTABLISHED: COOKIE ACK; COOKIE-WAIT, COOKIE-ECHOED: cannot be; SHUTDOWN-ACK-SENT: ERROR SHUTDOWN ACK
//	COOKIE ECHO, B             COOKIE ACK; CLOSED: ABORT; COOKIE-WAIT, COOKIE-ECHOED: COOKIE ACK > ESTABLISHED
//	COOKIE ECHO, C             ignored; CLOSED: COOKIE ACK
//	COOKIE ECHO, D             COOKIE ACK; CLOSED: ABORT; COOKIE-WAIT: cannot be; COOKIE-ECHOED: COOKIE ACK > ESTABLISHED
//	COOKIE ECHO, expired       ERROR
//	COOKIE ECHO, forged        ignored
//
// A is the cookie of a restart, B that of an INIT which has met our own. C is one of before, D one
// that has both tags (section 5.2.4).
//
// # Files
//
// Each file holds one topic. In brackets are the sections that it is about.
//
//   - The association: assoc.go (its fields), state.go (4), timers.go, config.go, events.go,
//     errors.go, stats.go.
//   - Set-up: handshake.go (5.1), init.go and init_params.go (5.2), cookie.go (5.1.3),
//     cookie_echo.go (5.2.4).
//   - The layer above: upper.go (messages and the Placer), expire.go (11.1.5), streams.go.
//   - Packets: packet.go (8.5), row.go, transmit.go, control.go (6.10), outbox.go, answers.go (8.4).
//   - What a packet says: data.go and sack.go (6), error_chunk.go (3.2, 3.3.10), icmp.go (10),
//     ecn.go (RFC 3168).
//   - Protection: protection.go, key_offer.go, key_messages.go, sealed_packet.go.
//   - Paths: path.go, addresses.go (5.1.2), failover.go (6.4, 8.1, 8.2, RFC 7829), heartbeat.go
//     (5.4, 8.3).
//   - Path MTU and UDP: pmtu.go, too_long.go (7.3, RFC 8899), arrival.go (RFC 6951), marking.go.
//   - This host: local_addr.go, local_refusal.go, address_return.go.
//   - Ends: shutdown.go (9.2), abort.go (9.1), restart.go (5.2.4 action A).
//   - Memory: halves.go, idle.go, memory.go, prefetch.go.
//
// The halves that send and receive DATA are the internal packages tx and rx.
package assoc
