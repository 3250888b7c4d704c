//go:build !amd64

package crc32c

const wide = false

func fold(uint32, []byte, *[16]uint64) uint32 { panic("crc32c: no processor for fold") }
