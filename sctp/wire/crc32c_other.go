//go:build !amd64

package wire

import "github.com/klauspost/crc32"

// crc32c adds p to the CRC32c sum.
func crc32c(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }
