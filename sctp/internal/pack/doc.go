// Package pack builds SCTP packets as vectors, into a batch that is reused without allocation.
//
// Headers, control chunks and padding are appended to an arena that the batch owns; user data is
// referenced where it lies. A finished packet alternates between the two: arena, user memory,
// arena, ... and carries its CRC32c (RFC 9260 section 6.8). Nothing is ever joined.
package pack
