// Package pack builds SCTP packets as vectors, into a batch that is reused without allocation.
//
//   - In: headers, control chunks and padding, which are appended to an arena that the batch owns;
//     user data, which is referenced where it lies.
//   - Out: packets. A finished one alternates between arena and user memory, and carries its CRC32c
//     (RFC 9260 section 6.8).
//   - Invariant: nothing is ever joined.
package pack
