package rdma

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// counter registers 8 octets of a side that its peer may only do atomics on.
func (s *side) counter() (*MR, []byte) {
	s.t.Helper()
	b := make([]byte, 8)
	mr := must.Get(s.pd.Register(b, RemoteAtomic, nil))(s.t)
	return mr, b
}

func atomicWR(id uint64, mr *MR, op AtomicOp) SendWR {
	return SendWR{ID: id, Op: OpAtomic, RemoteSTag: mr.STag(), RemoteTO: mr.Base(), Atomic: op}
}

func TestAtomicsOnRemoteAndLocalMemory(t *testing.T) {
	a, b := newLab(t, nil).join(nil)
	mr, mem := b.counter()
	a.post(atomicWR(1, mr, FetchAdd(40)))
	wc := a.good()
	check.That(t, wc.ID == 1 && wc.Opcode == rdmap.WCAtomic && wc.Original == 0, "completion %+v", wc)
	old, err := mr.Atomic(0, FetchAdd(2))
	check.That(t, err == nil && old == 40, "local FetchAdd: %d, %v", old, err)
	a.post(atomicWR(2, mr, CmpSwap(42, 7)))
	check.Equal(t, "original value", a.good().Original, 42)
	// The value stands in memory in the byte order of the host, for package sync/atomic and others.
	v := binary.NativeEndian.Uint64(mem)
	check.That(t, v == 7 && atomic.LoadUint64((*uint64)(unsafe.Pointer(&mem[0]))) == 7, "memory holds %d", v)
	for _, row := range []struct {
		off  int
		want error
	}{{1, ddp.ErrRange}, {8, ddp.ErrRange}, {-8, ddp.ErrRange}} {
		_, err := mr.Atomic(row.off, FetchAdd(1))
		check.That(t, errors.Is(err, row.want), "offset %d: %v", row.off, err)
	}
	check.Fails(b.mr.Atomic(4, FetchAdd(1)))(t, "unaligned", ddp.ErrUnaligned)
	mr.Invalidate()
	check.Fails(mr.Atomic(0, FetchAdd(1)))(t, "invalidated", ddp.ErrRevoked)
}

// QPs on several associations, a QP on the other Device's side, and the local program add to one
// counter at once.
func TestAtomicsFromAllSides(t *testing.T) {
	// req 7306-5-1
	for _, kind := range []string{"RAM", "file"} {
		t.Run(kind, func(t *testing.T) {
			x := newLab(t, nil)
			pb := x.b.AllocPD()
			var mr *MR
			var err error
			if kind == "RAM" {
				mr, err = pb.Register(make([]byte, 8), RemoteAtomic, nil)
			} else {
				f, e := os.Create(filepath.Join(t.TempDir(), "counter"))
				must.OK(t, e)
				defer f.Close()
				must.OK(t, f.Truncate(8))
				mr, err = pb.RegisterDevice(f, 8, RemoteAtomic, nil)
			}
			must.OK(t, err)
			const each = 300
			var wg sync.WaitGroup
			for range 3 {
				a, _ := x.joinIn(nil, pb, func(c *QPConfig) { c.OwnAssociation = true })
				wg.Add(1)
				go func() {
					defer wg.Done()
					for i := range uint64(each) {
						if err := a.qp.PostSend(&SendWR{ID: i, Op: OpAtomic, RemoteSTag: mr.STag(),
							Atomic: FetchAdd(1)}); err != nil {
							t.Error(err)
							return
						}
						if i%16 == 15 || i == each-1 {
							for range i%16 + 1 {
								a.good()
							}
						}
					}
				}()
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range each {
					if _, err := mr.Atomic(0, FetchAdd(1)); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			wg.Wait()
			v, err := mr.Atomic(0, FetchAdd(0))
			check.That(t, err == nil && v == 4*each, "%d additions counted, %v; want %d", v, err, 4*each)
		})
	}
}

func TestAtomicNeedsItsRight(t *testing.T) {
	// req 7306-8.2-4
	a, b := newLab(t, nil).join(nil)
	a.post(atomicWR(1, b.mr, FetchAdd(0))) // open for reading and writing
	check.Equal(t, "status", a.wc().Status, rdmap.StatusRemAccessErr)
	var se *rdmap.StreamError
	check.That(t, errors.As(a.qp.Err(), &se) && se.Remote && se.Terminate.Code == rdmap.CodeAccess, "error %v",
		a.qp.Err())
}

func TestImmediateDataWakesItsReceiver(t *testing.T) {
	// req 7306-6.1-2, 7306-7-1: the Event of Immediate Data with SE; behind a Write that is in
	// place then.
	a, b := newLab(t, nil).join(nil)
	for i := range uint64(4) {
		must.OK(t, b.qp.PostRecv(&RecvWR{ID: i}))
	}
	b.cq.Arm(true)
	fill(a.buf[:50_000], 1)
	a.post(SendWR{ID: 1, Op: OpImm, Immediate: 1})
	a.post(SendWR{ID: 2, Op: OpWriteImm, SGL: []SGE{a.mr.SGE(0, 50_000)}, RemoteSTag: b.mr.STag(), RemoteTO: 9,
		Immediate: 2})
	a.post(SendWR{ID: 3, Op: OpImmSE, Immediate: 3})
	a.post(SendWR{ID: 4, Op: OpWriteImmSE, Immediate: 4})
	select {
	case <-b.cq.Ready():
	case <-ctx(t).Done():
		t.Fatal("no event")
	}
	for i := range uint64(4) {
		wc := b.good()
		check.That(t, wc.ID == i && wc.Opcode == rdmap.WCRecvImm && wc.Immediate == i+1 && wc.Solicited == (i >= 2),
			"received %+v", wc)
		check.That(t, i != 1 || string(b.buf[9:50_009]) == string(a.buf[:50_000]), "the Write is not in place")
	}
	for i, op := range []rdmap.WCOpcode{rdmap.WCImm, rdmap.WCWrite, rdmap.WCImm, rdmap.WCWrite} {
		wc := a.good()
		check.That(t, wc.ID == uint64(i+1) && wc.Opcode == op, "sent %+v, want %d %v", wc, i+1, op)
	}
}

func TestDeviceWithoutExtensions(t *testing.T) {
	// req 7306-1.1-1
	x := newLab(t, nil)
	check.That(t, x.a.Atomics() && x.a.ImmediateData(), "a Device has both unless told otherwise")
	x = newLab(t, &Config{NoAtomics: true, NoImmediate: true})
	check.That(t, !x.a.Atomics() && !x.a.ImmediateData(), "a Device has what it was told not to have")
	a, _ := x.join(nil)
	for _, op := range []rdmap.WROpcode{OpAtomic, OpImm, OpWriteImm} {
		err := a.qp.PostSend(&SendWR{Op: op})
		check.That(t, errors.Is(err, rdmap.ErrDisabled), "operation %d: %v", op, err)
	}
}
