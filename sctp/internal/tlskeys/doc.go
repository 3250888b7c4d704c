// Package tlskeys runs TLS 1.3 handshakes whose records travel as messages of key management, and
// exports keys for DTLS chunks from them. It is the part of key management that is not sans-IO:
// package crypto/tls blocks, so each session has a goroutine.
//
//   - In: the program's tls.Config; records of the peer.
//   - Out, by calls of an Owner: records; the exported keys with the peer's identity; an error.
//   - Invariant: a client's Finished is handed over together with the keys, never before. A session
//     that is closed, or whose peer sends too much, ends; goroutines are bounded.
//   - Read first: session.go; internal/mutualtls has what becomes of a tls.Config.
package tlskeys
