package rdma

import "github.com/rddp-go/rddp/rdma/rdmap"

// AtomicOp is an Atomic Operation on 64 bits (RFC 7306 section 5.1), for SendWR.Atomic and
// MR.Atomic. Make it with FetchAdd or CmpSwap, or fill in masks for the masked variants.
//
// The 8 octets hold the value in the byte order of the host that has the memory
// (binary.NativeEndian), in RAM and in a file alike. Between hosts it travels as a number, so they
// need not agree. The address must be a multiple of 8. In RAM that is the address of the octets, as
// Go aligns a []uint64 and any large []byte; in a file it is their offset. Keep such octets out of
// Reads and Writes: these are not atomic.
type AtomicOp = rdmap.AtomicOp

// FetchAdd adds n modulo 2^64. FetchAdd(0) reads.
func FetchAdd(n uint64) AtomicOp { return rdmap.FetchAdd(n) }

// CmpSwap replaces a value that equals compare by swap.
func CmpSwap(compare, swap uint64) AtomicOp { return rdmap.CmpSwap(compare, swap) }

// Atomic carries out op on the 8 octets at off of the region for the local program. It returns the
// value before. It is atomic against the peers' operations on the same memory through any region of
// the Device, and against other calls of Atomic. In RAM, package sync/atomic may be used as well.
// Errors: ddp.ErrUnaligned, ddp.ErrRange, ddp.ErrRevoked, or that of a device.
func (m *MR) Atomic(off int, op AtomicOp) (old uint64, err error) {
	return m.region.Atomic(uint64(off), op)
}

// Atomics reports whether this Device takes part in Atomic Operations, both FetchAdd and CmpSwap.
// It says nothing of the peer: the programs agree on that. Or they probe with a FetchAdd of 0,
// which ends the stream if it is not supported (RFC 7306 section 1.1).
func (d *Device) Atomics() bool { return !d.cfg.NoAtomics }

// ImmediateData reports whether this Device takes part in Immediate Data (RFC 7306 section 6). It
// says nothing of the peer.
func (d *Device) ImmediateData() bool { return !d.cfg.NoImmediate }
