// Package llp has what all lower layers of DDP tell the upper layer alike (RFC 6581): how the ends
// of a stream set it up, and how one of them refuses.
//
//   - In: what both ends can do, as a [Setup]; private data.
//   - Out: the depths and the first message that both agree on; typed errors.
//   - Invariant: after an agreement no ORD is above the IRD of the other end.
//   - Read first: setup.go. Package ddpadapt carries it over SCTP.
package llp
