package wire

import (
	"github.com/klauspost/crc32"
	"golang.org/x/sys/cpu"
)

// canFold is set on processors that multiply polynomials 512 bits at a time.
var canFold = cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512DQ && cpu.X86.HasSSE42

// fold adds p to the inverted CRC32c state by folding (V. Gopal et al., "Fast CRC Computation for
// Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009).
//
//go:noescape
func fold(state uint32, p []byte) uint32

// crc32c adds p to the CRC32c sum.
func crc32c(sum uint32, p []byte) uint32 {
	if canFold {
		return ^fold(^sum, p)
	}
	return crc32.Update(sum, castagnoli, p)
}
