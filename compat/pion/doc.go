// Package sctp is SCTP over a connection that keeps packets apart, as WebRTC needs it. It has the
// module path and all names of github.com/pion/sctp v1.12.1, and runs on package sctp of rddp.
//
//   - In, out: packets of a net.Conn, such as DTLS; messages of a [Stream].
//   - Invariant: a program that compiles with the original compiles with this module, and behaves
//     as before, but for what docs/migrating.md lists.
//   - Read first: association.go, then stream.go. semantics_test.go has what the original does.
package sctp
