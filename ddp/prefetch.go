package ddp

const (
	// prefetchMinMemory is in octets. With so much memory, what a packet is placed in or cut from
	// is likely to be in no cache. The memory is that of all regions of a table, since programs go
	// through all of them. Below it a prefetch would cost more than it saves.
	prefetchMinMemory = 8 << 20

	// prefetchMaxLen bounds how far ahead memory is prefetched. A segment above it is long: there
	// the processor prefetches by itself.
	prefetchMaxLen = 4 << 10
)

// shouldPrefetch says whether to prefetch, given the octets of memory and the segments' n octets.
// In long segments the processor prefetches most by itself. There it pays only if hardly any of the
// memory is in a cache.
func shouldPrefetch(octets int64, n uint64) bool {
	return octets >= prefetchMinMemory && (n <= prefetchMaxLen || octets >= 2*prefetchMinMemory)
}

// prefetchRange returns what is likely to be used after the next octets: packets use memory in its
// order. The caller has checked that there are n octets at off.
func prefetchRange(b []byte, off, n uint64) []byte {
	size := uint64(len(b))
	if off += n + min(n, prefetchMaxLen); off >= size {
		return nil
	}
	return b[off:][:min(n, size-off)]
}
