// Package keymgmt establishes and replaces the keys of DTLS chunks: key-management method 192, TLS
// 1.3 in user messages (draft-porfiri-tsvwg-sctp-dtls-handshake). It runs no TLS itself.
//
//   - In: user messages with PPID 4242 of stream 0; what a TLS session writes, and that it is done
//     or has failed; time.
//   - Out: such messages; sessions to start, to feed and to close; that protection is established, or
//     that the association is to be aborted. Keys go into a seal.Keyring.
//   - Invariant: keys to open with are installed before the peer can seal with them, and there is one
//     session at a time.
//   - Read first: manager.go; docs/dev/dtls-chunk.md has where the draft is read otherwise.
package keymgmt
