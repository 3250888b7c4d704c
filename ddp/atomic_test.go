package ddp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// wordBytes returns n words of memory; the runtime aligns it.
func wordBytes(n int) []byte { return make([]byte, 8*n) }

// nativeWords reads octets in the byte order of the host.
func nativeWords(b []byte) (w []uint64) {
	for i := 0; i+8 <= len(b); i += 8 {
		w = append(w, binary.NativeEndian.Uint64(b[i:]))
	}
	return w
}

// literalAtomic is the pseudo-code of RFC 7306 sections 5.1.1 and 5.1.2.
func literalAtomic(op AtomicOp, original uint64) uint64 {
	if op.Swap {
		if (op.Compare^original)&op.CompareMask == 0 {
			return original&^op.Mask | op.Data&op.Mask
		}
		return original
	}
	bitLocation, carry, value := uint64(1), uint64(0), uint64(0)
	for bit := range 64 {
		if bit != 0 {
			bitLocation <<= 1
		}
		val1 := (original & bitLocation) >> bit
		val2 := (op.Data & bitLocation) >> bit
		sum := carry + val1 + val2
		carry = (sum & 2) >> 1
		sum &= 1
		if sum != 0 {
			value |= bitLocation
		}
		if carry != 0 && op.Mask&bitLocation == 0 {
			carry = 1
		} else {
			carry = 0
		}
	}
	return value
}

func TestAtomicOpsAreThePseudoCode(t *testing.T) {
	// req 7306-5.1.1-1, 7306-5.1.1-2, 7306-5.1.2-1, 7306-5-2, 7306-5.2.1-3
	const all = ^uint64(0)
	for _, row := range []struct {
		name      string
		op        AtomicOp
		old, next uint64
	}{
		{"plain addition wraps modulo 2^64", FetchAdd(3), all - 1, 1},
		{"adding 0 reads", FetchAdd(0), 77, 77},
		{"two fields of 32 bits: no carry from the lower into the upper", AtomicOp{Data: 1<<32 | 1, Mask: 1<<63 | 1<<31}, 5<<32 | 0xFFFFFFFF, 6 << 32},
		{"without a mask the carry goes through", AtomicOp{Data: 1}, 5<<32 | 0xFFFFFFFF, 6 << 32},
		{"every bit a field of its own: addition is exclusive or", AtomicOp{Data: 0xFF00FF, Mask: all}, 0xFFFF, 0xFFFF ^ 0xFF00FF},
		{"a field of 4 bits among others", AtomicOp{Data: 0x010, Mask: 0x88}, 0x7F5, 0x705},
		{"equal values swap", CmpSwap(10, 20), 10, 20},
		{"unequal values stay", CmpSwap(10, 20), 11, 11},
		{"only compared bits matter", AtomicOp{Swap: true, Compare: 0xAB, CompareMask: 0xF0, Data: 0xFFFF, Mask: all}, 0xA0, 0xFFFF},
		{"only masked bits are swapped", AtomicOp{Swap: true, Data: all, Mask: 0xF0}, 0x1234_0000, 0x1234_00F0},
		{"nothing compared: always swaps", AtomicOp{Swap: true, Data: 5, Mask: all}, 99, 5},
	} {
		got := row.op.applyTo(row.old)
		check.That(t, got == row.next && got == literalAtomic(row.op, row.old), "%s: %#x, want %#x (pseudo-code: %#x)",
			row.name, got, row.next, literalAtomic(row.op, row.old))
	}
	rnd := rand.New(rand.NewPCG(7306, 1))
	for range 20_000 {
		op := AtomicOp{Swap: rnd.IntN(2) == 0, Data: rnd.Uint64(), Mask: rnd.Uint64() & rnd.Uint64() & rnd.Uint64(),
			CompareMask: rnd.Uint64() & rnd.Uint64() & rnd.Uint64() & rnd.Uint64()}
		old := rnd.Uint64()
		if op.Compare = rnd.Uint64(); rnd.IntN(2) == 0 {
			op.Compare = old ^ rnd.Uint64()&^op.CompareMask
		}
		got, want := op.applyTo(old), literalAtomic(op, old)
		must.That(t, got == want, "%+v on %#x: %#x, want %#x", op, old, got, want)
	}
}

// store is a device in memory that can fail.
type store struct {
	b              []byte
	writes         int
	readErr        error
	short, partial bool
	ends           bool // behind three octets
}

// A device that ends within the operand has no value: what it says then, whichever way, is an end
// that was not expected. An error of its own stays as it is.
func TestAtomicOnADeviceThatEnds(t *testing.T) {
	failed := errors.New("failed")
	for name, row := range map[string]struct {
		dev  *store
		want error
	}{
		"without a word":      {&store{short: true}, io.ErrUnexpectedEOF},
		"by io.EOF":           {&store{ends: true}, io.ErrUnexpectedEOF},
		"by an error":         {&store{b: make([]byte, 3), readErr: failed}, failed},
		"not at all":          {&store{}, nil},
		"while it is written": {&store{partial: true}, io.ErrShortWrite},
	} {
		if row.dev.b == nil {
			row.dev.b = make([]byte, 8)
		}
		var d deviceAtomics
		op := FetchAdd(1)
		_, err := d.applyAtomic(row.dev, 0, &op)
		check.Equal(t, name, err, row.want)
		check.Equal(t, name+": the lock", d.lock.Load(), 0)
	}
}

func (s *store) ReadAt(p []byte, off int64) (int, error) {
	if s.ends {
		return copy(p[:3], s.b[off:]), io.EOF
	}
	if s.short {
		return copy(p[:3], s.b[off:]), nil
	}
	defer runtime.Gosched() // a device takes its time
	return copy(p, s.b[off:]), s.readErr
}

func (s *store) WriteAt(p []byte, off int64) (int, error) {
	s.writes++
	if s.partial {
		return 3, nil
	}
	return copy(s.b[off:], p), nil
}

func TestAtomicOnMemoryAndOnDevice(t *testing.T) {
	r := newRig(t)
	for _, row := range []struct {
		name string
		make func(b []byte) Memory
	}{
		{"RAM", func(b []byte) Memory { return Bytes(b) }},
		{"device", func(b []byte) Memory { return Device(&store{b: b}, uint64(len(b))) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := wordBytes(3)
			// req 7306-5.1.1-6: the value stands in memory in the byte order of the host.
			binary.NativeEndian.PutUint64(b[8:], 40)
			reg := r.registerRegion(t, Spec{PD: testPD, Mem: row.make(b), Base: 4099, Access: RemoteAtomic})
			add, swap := FetchAdd(2), CmpSwap(42, 7)
			// req 7306-5.2.1-5: the Tagged Offset is odd, the address is not.
			old, err := r.Atomic(reg.STag(), 4099+8, &add)
			must.That(t, err == nil && old == 40, "FetchAdd: %d, %v", old, err)
			old, err = r.Atomic(reg.STag(), 4099+8, &swap)
			must.That(t, err == nil && old == 42, "CmpSwap: %d, %v", old, err)
			if old, err := reg.Atomic(8, FetchAdd(1)); err != nil || old != 7 {
				t.Fatalf("local FetchAdd: %d, %v", old, err)
			}
			w := nativeWords(b)
			check.That(t, w[0] == 0 && w[1] == 8 && w[2] == 0, "memory holds %d", w)
			// req 7306-5.1.1-4, 7306-5.1.1-5, 7306-5.1.2-3, 7306-5.1.2-4, 7306-8.2-3
			before := bytes.Clone(b)
			for off := uint64(1); off < 8; off++ {
				for _, op := range []*AtomicOp{&add, &swap} {
					_, err := r.Atomic(reg.STag(), 4099+off, op)
					check.That(t, err != nil && err.Type == TypeLocal && err.Cause == ErrUnaligned,
						"offset %d: %v, want %v", off, err, ErrUnaligned)
				}
				_, err := reg.Atomic(off, add)
				check.That(t, err == ErrUnaligned, "local, offset %d: %v", off, err)
			}
			check.Slice(t, "memory after an unaligned operation", b, before)
		})
	}
}

// It is the address of the octets that must be aligned, not their offset in the region.
func TestAtomicAlignmentIsThatOfTheAddress(t *testing.T) {
	r := newRig(t)
	b := wordBytes(3)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(b[3:]), Access: RemoteAtomic})
	op := FetchAdd(1)
	_, err := r.Atomic(reg.STag(), 0, &op)
	check.That(t, err != nil && err.Cause == ErrUnaligned, "octets at an odd address: %v", err)
	_, err = r.Atomic(reg.STag(), 5, &op)
	check.That(t, err == nil && binary.NativeEndian.Uint64(b[8:]) == 1,
		"octets at address 8 of the slice: %v, memory % x", err, b)
}

func TestAtomicChecksLikeATaggedAccess(t *testing.T) {
	// req 7306-8.2-4
	r := newRig(t)
	reg := func(pd PD, scope StreamID, a Access) STag {
		b := wordBytes(2)
		return r.registerRegion(t, Spec{PD: pd, Mem: Bytes(b), Access: a, Base: 1 << 20, Scope: scope}).STag()
	}
	all := LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic
	dead := reg(testPD, 0, all)
	r.table.Lookup(dead).Invalidate()
	for _, row := range []struct {
		name string
		tag  STag
		to   uint64
		want uint8
	}{
		{"unknown STag", 12345, 1 << 20, CodeInvalidSTag},
		{"invalidated STag", dead, 1 << 20, CodeInvalidSTag},
		{"all rights but the one for atomics", reg(testPD, 0, all&^RemoteAtomic), 1 << 20, CodeInvalidSTag},
		{"another Protection Domain", reg(testPD+1, 0, all), 1 << 20, CodeNotAssociated},
		{"another stream", reg(testPD, testStream+1, all), 1 << 20, CodeNotAssociated},
		{"one octet beyond the end", reg(testPD, 0, all), 1<<20 + 9, CodeBaseBounds},
		{"before the start", reg(testPD, 0, all), 1<<20 - 8, CodeBaseBounds},
		{"wraps 64 bits", reg(testPD, 0, all), ^uint64(0) - 7, CodeTOWrap},
	} {
		t.Run(row.name, func(t *testing.T) {
			op := FetchAdd(1)
			old, err := r.Atomic(row.tag, row.to, &op)
			check.That(t, err != nil && err.Type == TypeTagged && err.Code == row.want && old == 0,
				"%v, want code %d", err, row.want)
			reg := r.table.Lookup(row.tag)
			check.That(t, reg == nil || bytes.Equal(reg.Memory().RAM(), make([]byte, 16)), "memory changed")
		})
	}
	b := wordBytes(1)
	local := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(b)})
	old, err := local.Atomic(1, FetchAdd(1))
	check.That(t, err == ErrRange && old == 0, "local, beyond the end: %d, %v", old, err)
	local.Invalidate()
	old, err = local.Atomic(0, FetchAdd(1))
	check.That(t, err == ErrRevoked && old == 0, "local, invalidated: %d, %v", old, err)
}

func TestAtomicOnAFailingDevice(t *testing.T) {
	r := newRig(t)
	broken := errors.New("broken")
	for _, row := range []struct {
		name string
		dev  *store
		want string
	}{
		{"read fails", &store{b: nil, readErr: broken}, "broken"},
		{"read ends early", &store{b: make([]byte, 8), short: true}, "unexpected EOF"},
		{"write ends early", &store{b: make([]byte, 8), partial: true}, "short write"},
	} {
		t.Run(row.name, func(t *testing.T) {
			reg := r.registerRegion(t, Spec{PD: testPD, Mem: Device(row.dev, 8), Access: RemoteAtomic})
			op := FetchAdd(1)
			_, err := r.Atomic(reg.STag(), 0, &op)
			check.That(t, err != nil && err.Type == TypeLocal && err.Cause != nil && err.Cause.Error() == row.want,
				"%v, want cause %s", err, row.want)
		})
	}
}

func TestFetchAddOfNothingWritesNothing(t *testing.T) {
	// req 7306-1.1-4
	dev := &store{b: make([]byte, 8)}
	r := newRig(t)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Device(dev, 8), Access: RemoteAtomic})
	op := FetchAdd(0)
	_, err := r.Atomic(reg.STag(), 0, &op)
	check.That(t, err == nil && dev.writes == 0, "%v, %d writes", err, dev.writes)
}

// Streams in goroutines of their own, local users, and two regions over the same memory: no
// addition is lost, and each value is seen once.
func TestAtomicsOfAllStreamsAndLocalUsers(t *testing.T) {
	// req 7306-5-1, 7306-5-3
	const workers, each = 6, 2000
	for _, row := range []struct {
		name string
		make func(b []byte) Memory
	}{
		{"RAM", func(b []byte) Memory { return Bytes(b) }},
		{"device", func(b []byte) Memory { return Device(&store{b: b}, 8) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			table := NewTable(new(entropy))
			b := wordBytes(1)
			mem := row.make(b)
			var regs [2]*Region
			for i := range regs {
				regs[i] = must.Get(table.Register(Spec{PD: testPD, Mem: mem, Access: RemoteAtomic}))(t)
			}
			var seen [workers * each]atomic.Bool
			var wg sync.WaitGroup
			for w := range workers {
				wg.Add(1)
				go func() {
					defer wg.Done()
					s := NewStream(StreamConfig{ID: StreamID(w + 1), PD: testPD, Table: table, ULP: &recorder{}})
					reg, op := regs[w%2], FetchAdd(1)
					for range each {
						var old uint64
						if w < 4 {
							v, err := s.Atomic(reg.STag(), 0, &op)
							if err != nil {
								t.Error(err)
								return
							}
							old = v
						} else {
							v, err := reg.Atomic(0, op)
							if err != nil {
								t.Error(err)
								return
							}
							old = v
						}
						if old >= workers*each || seen[old].Swap(true) {
							t.Errorf("value %d seen twice", old)
							return
						}
					}
				}()
			}
			wg.Wait()
			check.Equal(t, "the counter after all additions", binary.NativeEndian.Uint64(b), workers*each)
		})
	}
}

func TestAtomicsAllocateNothing(t *testing.T) {
	r := newRig(t)
	b := wordBytes(1)
	ram := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(b), Access: RemoteAtomic})
	dev := r.registerRegion(t, Spec{PD: testPD, Mem: Device(&store{b: make([]byte, 8)}, 8), Access: RemoteAtomic})
	op := FetchAdd(1)
	for _, reg := range []*Region{ram, dev} {
		n := testing.AllocsPerRun(100, func() {
			if _, err := r.Atomic(reg.STag(), 0, &op); err != nil {
				t.Fatal(err)
			}
		})
		check.That(t, n == 0, "%v allocations", n)
	}
}
