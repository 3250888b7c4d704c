// Package assoc is one SCTP association (RFC 9260) as a pure function of packets, time and requests.
//
// It opens no socket, reads no clock, starts no goroutine and takes no lock: received packets, the
// present time and the user's requests come in as calls; packets to send, events and the next
// deadline are asked for. Whoever calls, the owner, does so from one goroutine at a time, and after
// each round of calls drains PollTransmit and PollEvent and arms a timer for NextTimeout.
//
// Each file holds one topic: packet.go (tag rules, section 8.5), handshake.go, initack.go and offer.go
// (5), cookie.go and cookieecho.go (5.1.3 to 5.1.5, 5.2.4), data.go and sack.go (6), transmit.go and
// control.go (6.10), addresses.go (5.1.2), path.go and failover.go (6.4, 8.1, 8.2, RFC 7829),
// heartbeat.go (5.4, 8.3), shutdown.go (9.2), abort.go (9.1), error.go (3.2, 3.3.10), icmp.go (10),
// pmtu.go (7.3, RFC 8899), ecn.go (RFC 3168), encap.go (RFC 6951).
// The halves that send and receive DATA are the internal packages tx and rx.
package assoc
