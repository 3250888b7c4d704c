// Package crc32c computes the checksum of SCTP (RFC 9260 appendix A). The library
// github.com/klauspost/crc32 does it, except on processors with 512-bit carry-less multiplication,
// where this package folds. There, packets of 1,452 octets take a third of the library's time. The
// library took an eighth of all that bulk over udp cost.
package crc32c

import "github.com/klauspost/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Update returns the checksum of what sum is that of, followed by p. That of nothing is 0.
func Update(sum uint32, p []byte) uint32 {
	if wide {
		return ^fold(^sum, p, &powers)
	}
	return crc32.Update(sum, castagnoli, p)
}
