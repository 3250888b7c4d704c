package ddp

import (
	"encoding/binary"
	"io"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// AtomicLen is the length in octets of the value that an AtomicOp works on.
const AtomicLen = 8

// AtomicOp is one atomic read-modify-write operation on 64 bits of tagged memory (RFC 7306 section
// 5.1). The zero value adds nothing: it reads.
//
// The 8 octets hold the value in the byte order of this host (binary.NativeEndian), in RAM and on a
// device alike. Their address must be a multiple of 8. In RAM that is the address of the octets,
// not their Tagged Offset; on a device it is their offset.
type AtomicOp struct {
	Swap bool   // CmpSwap; otherwise FetchAdd
	Data uint64 // what is added, or swapped in
	// Mask of a FetchAdd has the top bit set of each field that adds by itself; 0 is one field of
	// 64 bits. Mask of a CmpSwap has the bits that are swapped.
	Mask        uint64
	Compare     uint64 // CmpSwap: what is expected
	CompareMask uint64 // CmpSwap: the bits of it that matter
}

// FetchAdd adds n modulo 2^64.
func FetchAdd(n uint64) AtomicOp { return AtomicOp{Data: n} }

// CmpSwap replaces a value that equals compare by swap.
func CmpSwap(compare, swap uint64) AtomicOp {
	const all = ^uint64(0)
	return AtomicOp{Swap: true, Data: swap, Mask: all, Compare: compare, CompareMask: all}
}

// applyTo returns what takes the place of old.
func (o *AtomicOp) applyTo(old uint64) uint64 {
	if !o.Swap {
		// Without their top bits no field carries into the next; the top bits add without carry.
		return (old&^o.Mask + o.Data&^o.Mask) ^ (old^o.Data)&o.Mask
	}
	if (old^o.Compare)&o.CompareMask != 0 {
		return old
	}
	return old&^o.Mask | o.Data&o.Mask
}

// Atomic carries out op for the peer on the octets at the Tagged Offset to. It makes the checks of
// a tagged access; the region needs RemoteAtomic. It returns the value before. An address that is
// not a multiple of 8 gives TypeLocal with the Cause ErrUnaligned. A device that fails gives
// TypeLocal with its own error.
func (s *Stream) Atomic(tag STag, to uint64, op *AtomicOp) (old uint64, err *Error) {
	r, err := s.acquireRegion(tag)
	if err != nil {
		return 0, err
	}
	off, err := r.checkTaggedAccess(to, AtomicLen, RemoteAtomic)
	if err == nil {
		var cause error
		if old, cause = r.applyAtomic(off, op); cause != nil {
			err = &Error{Type: TypeLocal, Cause: cause}
		}
	}
	r.endAccess()
	return old, err
}

// Atomic carries out op on the 8 octets at off of the region for the local user, whatever rights
// the region grants. It returns the value before. It is atomic against the operations of all
// streams and other local users, and safe for concurrent use. Errors: ErrRevoked, ErrRange,
// ErrUnaligned, or that of a device.
func (r *Region) Atomic(off uint64, op AtomicOp) (old uint64, err error) {
	if !r.beginAccess() {
		return 0, ErrRevoked
	}
	defer r.endAccess()
	if !r.mem.hasRange(off, AtomicLen) {
		return 0, ErrRange
	}
	return r.applyAtomic(off, &op)
}

// applyAtomic carries out op in an acquired region; the caller has checked the range.
func (r *Region) applyAtomic(off uint64, op *AtomicOp) (uint64, error) {
	if r.mem.dev != nil {
		return r.table.devices.applyAtomic(r.mem.dev, r.mem.devOffset+off, op)
	}
	p := unsafe.Pointer(&r.mem.b[off])
	if uintptr(p)%AtomicLen != 0 {
		return 0, ErrUnaligned
	}
	for word := (*uint64)(p); ; {
		old := atomic.LoadUint64(word)
		next := op.applyTo(old)
		if next == old || atomic.CompareAndSwapUint64(word, old, next) {
			return old, nil
		}
	}
}

// deviceAtomics allows one operation at a time on all devices of a table. Two regions may share a
// device without our knowing. To wait for the lock is to wait for a device.
type deviceAtomics struct {
	lock  atomic.Uint32
	value [AtomicLen]byte
}

func (d *deviceAtomics) applyAtomic(dev DeviceAt, off uint64, op *AtomicOp) (old uint64, err error) {
	if off%AtomicLen != 0 {
		return 0, ErrUnaligned
	}
	for !d.lock.CompareAndSwap(0, 1) {
		runtime.Gosched()
	}
	defer d.lock.Store(0)
	b := d.value[:]
	if n, err := dev.ReadAt(b, int64(off)); n < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	old = binary.NativeEndian.Uint64(b)
	next := op.applyTo(old)
	if next == old {
		return old, nil
	}
	binary.NativeEndian.PutUint64(b, next)
	n, err := dev.WriteAt(b, int64(off))
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return old, err
}
