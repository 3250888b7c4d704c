package crc32c

import "golang.org/x/sys/cpu"

// wide says whether the processor has what fold takes: VPCLMULQDQ with AVX-512, and the CRC32 of
// SSE 4.2.
var wide = cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// fold is the remainder, neither inverted before nor after, of p behind what leaves sum.
//
//go:noescape
func fold(sum uint32, p []byte, powers *[16]uint64) uint32
