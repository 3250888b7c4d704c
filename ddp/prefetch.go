package ddp

const (
	// prefetchMinMemory is the length of memory, in octets, from which on what a packet is placed
	// in, or cut from, is taken to be in no cache of the processor's: that of all regions of a
	// table together, as programs go through all of them. To ask for what is there takes time as
	// well.
	prefetchMinMemory = 8 << 20

	// prefetchMaxLen bounds how far ahead is asked, and a longer segment is long: within it the
	// processor sees by itself what comes next.
	prefetchMaxLen = 4 << 10
)

// shouldPrefetch says whether to ask ahead where there are so many octets of memory, and segments
// of n. Within a long one the processor asks by itself for most, so there it pays only where hardly
// any of the memory is in a cache.
func shouldPrefetch(octets int64, n uint64) bool {
	return octets >= prefetchMinMemory && (n <= prefetchMaxLen || octets >= 2*prefetchMinMemory)
}

// prefetchRange returns what is likely to be used after the next octets: packets are placed in
// memory, and cut from it, in its order. The caller has checked that there are n octets at off.
func prefetchRange(b []byte, off, n uint64) []byte {
	size := uint64(len(b))
	if off += n + min(n, prefetchMaxLen); off >= size {
		return nil
	}
	return b[off:][:min(n, size-off)]
}
