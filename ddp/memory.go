package ddp

import (
	"io"
	"math"

	"github.com/rddp-go/rddp/internal/prefetch"
)

// DeviceAt is an addressable store of octets that is not memory, such as a file. RFC 4296 section
// 2.1 lets a buffer be any addressable collection of octets.
type DeviceAt interface {
	io.ReaderAt
	io.WriterAt
}

// Memory is what a buffer is made of: a slice, or a device. It is a small value; the zero Memory
// has no octets.
type Memory struct {
	b         []byte
	dev       DeviceAt
	devOffset uint64 // where on dev it begins
	devSize   uint64 // octets of dev
}

// Bytes is memory in RAM. Its owner may read b at any time; DDP writes to it as registered or
// posted.
func Bytes(b []byte) Memory { return Memory{b: b} }

// Device is the first size octets of rw, at most 2^63-1, the limit of io.WriterAt. Segments are
// written to it as they arrive, in any order. A failing write is a local catastrophic error of the
// stream (section 7.2).
func Device(rw DeviceAt, size uint64) Memory {
	return Memory{dev: rw, devSize: min(size, math.MaxInt64)}
}

// Len returns the length in octets.
func (m Memory) Len() uint64 {
	if m.dev != nil {
		return m.devSize
	}
	return uint64(len(m.b))
}

// RAM returns the slice behind Bytes, or nil for a device.
func (m Memory) RAM() []byte { return m.b }

// subRange returns octets [off, off+n); the caller has checked the range.
func (m Memory) subRange(off, n uint64) Memory {
	if m.dev != nil {
		return Memory{dev: m.dev, devOffset: m.devOffset + off, devSize: n}
	}
	return Memory{b: m.b[off : off+n : off+n]}
}

// shouldPrefetch reports whether the memory, which is in no region, is likely to be in no cache. n
// is the octets that are placed or cut at a time.
func (m Memory) shouldPrefetch(n uint64) bool { return shouldPrefetch(int64(len(m.b)), n) }

// hasRange reports whether octets [off, off+n) exist.
func (m Memory) hasRange(off, n uint64) bool {
	size := m.Len()
	return off <= size && n <= size-off
}

// writeAt writes p at off; the caller has checked the range. far: what comes next is in no cache
// and is to be prefetched.
func (m Memory) writeAt(off uint64, p []byte, far bool) error {
	if m.dev == nil {
		copy(m.b[off:], p)
		if far {
			prefetch.ForWrite(prefetchRange(m.b, off, uint64(len(p))))
		}
		return nil
	}
	n, err := m.dev.WriteAt(p, int64(m.devOffset+off))
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// sliceAt returns octets [off, off+n). It reads them into fresh memory if they are on a device. The
// caller has checked the range. far is as for writeAt.
func (m Memory) sliceAt(off, n uint64, far bool) ([]byte, error) {
	if m.dev == nil {
		if far {
			prefetch.ForRead(prefetchRange(m.b, off, n))
		}
		return m.b[off : off+n : off+n], nil
	}
	p := make([]byte, n)
	k, err := m.dev.ReadAt(p, int64(m.devOffset+off))
	if uint64(k) == n {
		return p, nil // io.ReaderAt may return io.EOF with a full read
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}
