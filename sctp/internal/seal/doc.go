// Package seal protects the chunks of SCTP packets by DTLS 1.3 records in DTLS chunks
// (draft-ietf-tsvwg-sctp-dtls-chunk), without handshake, goroutine or clock.
//
//   - In: key material of epochs from a key-management method; chunks to seal; DTLS chunks to open.
//   - Out: DTLS chunks; the chunks that were in them; counts, and that a key is to be replaced.
//   - Invariant: no record number is used twice with a key, no record is opened twice, and no key is
//     used past its limits. What does not open costs one attempt, and changes nothing but counts.
//   - Read first: keyring.go, then sealer.go and opener.go; docs/dev/dtls-chunk.md has the decisions.
package seal
