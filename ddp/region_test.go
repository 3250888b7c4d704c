package ddp

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// hammerRegion places whole segments in the region of tag over and over, until the returned stop is
// called. The plain writes of the test into the same memory make the race detector a judge, too.
func hammerRegion(t *testing.T, tab *Table, tag STag, n int) (stop func()) {
	s := NewStream(StreamConfig{ID: testStream, PD: testPD, Table: tab, ULP: &recorder{need: RemoteWrite}})
	s.Attach(new(lower))
	seg := taggedSeg(true, 0, tag, 0, bytes.Repeat([]byte{0xEE}, n))
	var wg sync.WaitGroup
	var done atomic.Bool
	var placed atomic.Int64
	wg.Go(func() {
		var p Placed
		for !done.Load() {
			s.Place(seg, &p)
			if p.Err == nil {
				placed.Add(1)
			} else if p.Err.Type != TypeTagged || p.Err.Code != CodeInvalidSTag {
				t.Errorf("fault %v", p.Err)
				return
			}
		}
	})
	for placed.Load() == 0 {
		runtime.Gosched()
	}
	return func() { done.Store(true); wg.Wait() }
}

func TestNothingIsWrittenAfterRevocation(t *testing.T) {
	const size = 8192
	for _, c := range []struct {
		name   string
		revoke func(*Table, *Region) error
	}{
		// req 5041-8.3.1-2, 5041-8.3-1, 5041-8.3-2, 5041-8.3.1-1, 5040-8.1.1-6, 5042-6.2.2-2
		{"invalidated", func(_ *Table, r *Region) error { r.Invalidate(); return nil }},
		{"deregistered", func(t *Table, r *Region) error { return t.Deregister(r) }},
		{"right to write revoked", func(t *Table, r *Region) error { return t.SetAccess(r, RemoteRead) }},
		{"given another buffer", func(t *Table, r *Region) error { return t.Rebind(r, Bytes(make([]byte, size)), 0, RemoteWrite) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			mem := make([]byte, size)
			for range 25 {
				reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
				stop := hammerRegion(t, r.table, reg.STag(), size)
				must.OK(t, c.revoke(r.table, reg))
				clear(mem)
				for range 10 {
					runtime.Gosched()
					must.That(t, isZero(mem), "memory was written after its revocation")
				}
				stop()
			}
		})
	}
}

func TestInvalidateByManyAtOnce(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 64)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	stop := hammerRegion(t, r.table, reg.STag(), len(mem))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(reg.Invalidate)
	}
	wg.Wait()
	clear(mem)
	stop()
	check.That(t, isZero(mem) && !reg.Valid(), "memory was written after its revocation")
	reg.Invalidate()
}

func TestChangesDoNotDisturbValidUse(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 64)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	window := must.Get(r.table.Bind(reg, Window{PD: testPD, Stream: 1, Access: RemoteRead}))(t)
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			// The stream that places meanwhile must wait, not fail.
			_ = r.table.SetAccess(reg, RemoteWrite|RemoteRead)
			_ = r.table.Rebind(reg, Bytes(mem), 0, RemoteWrite)
		}
	})
	seg := taggedSeg(true, 0, reg.STag(), 0, make([]byte, 64))
	for range 5000 {
		_, _ = reg.Access(), window.Valid() // safe at any time
		if p := r.placeSegment(seg); p.Err != nil {
			t.Errorf("valid placement failed: %v", p.Err)
			break
		}
	}
	done.Store(true)
	wg.Wait()
}

// What arrives in the middle of a change of rights waits for it, and is not refused.
func TestAccessWaitsForAChange(t *testing.T) {
	r := newRig(t)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 1)), Access: RemoteWrite})
	reg.blockAccesses()
	placed := make(chan *Error)
	go func() { p := r.placeSegment(taggedSeg(true, 0, reg.STag(), 0, []byte{1})); placed <- p.Err }()
	for range 1000 {
		runtime.Gosched()
	}
	reg.unblockAccesses()
	check.That(t, <-placed == nil, "a transfer that began before is refused")
}

func TestRebindMovesTheRange(t *testing.T) {
	r := newRig(t)
	old, fresh := make([]byte, 10), make([]byte, 4)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(old), Base: 100, Access: RemoteWrite})
	must.OK(t, r.table.Rebind(reg, Bytes(fresh), 200, RemoteWrite|RemoteRead))
	// req 5041-8.3-1: the old range is gone, the new one counts to the octet.
	p := r.placeSegment(taggedSeg(true, 0, reg.STag(), 100, []byte{1}))
	check.That(t, p.Err != nil && p.Err.Code == CodeBaseBounds, "old range: %v", p.Err)
	p = r.placeSegment(taggedSeg(true, 0, reg.STag(), 203, []byte{1, 2}))
	check.That(t, p.Err != nil && p.Err.Code == CodeBaseBounds, "past the new range: %v", p.Err)
	p = r.placeSegment(taggedSeg(true, 0, reg.STag(), 203, []byte{9}))
	check.That(t, p.Err == nil && fresh[3] == 9 && isZero(old), "new range: %v, memory % x", p.Err, fresh)
	check.That(t, reg.Base() == 200 && reg.Len() == 4 && reg.Access() == RemoteWrite|RemoteRead &&
		reg.Memory().Len() == 4,
		"region %d+%d rights %b", reg.Base(), reg.Len(), reg.Access())
}

func TestARegionIsTheSliceAndNoMore(t *testing.T) {
	// req 5041-8.3-5, 5042-2.2.2-2, 5042-7.3-1: what lies behind it in the same array was not
	// handed in.
	r := newRig(t)
	array := make([]byte, 100)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(array[10:20]), Access: RemoteWrite | RemoteRead})
	for _, to := range []uint64{10, 89, 1<<64 - 10} {
		check.That(t, r.placeSegment(taggedSeg(true, 0, reg.STag(), to, []byte{1})).Err != nil,
			"an octet at TO %d was placed", to)
		_, err := r.Resolve(reg.STag(), to, 1, RemoteRead)
		check.That(t, err != nil, "an octet at TO %d can be read", to)
	}
	check.That(t, isZero(array), "memory outside of the slice was written")
	must.OK(t, r.table.Rebind(reg, Bytes(array[10:20:20]), 5, RemoteWrite))
	check.That(t, r.placeSegment(taggedSeg(true, 0, reg.STag(), 4, []byte{1})).Err != nil,
		"placed in front of a slice bound to TO 5")
}

func TestAccessRights(t *testing.T) {
	// req 5042-2.2.2-1, 5040-8.1.1-5: each right alone, granted and taken away.
	r := newRig(t)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 8)), Access: LocalWrite})
	for _, row := range []struct {
		name        string
		access      Access
		write, read bool
	}{
		{"local only", LocalWrite, false, false},
		{"nothing", 0, false, false},
		{"remote write", RemoteWrite, true, false},
		{"remote read", RemoteRead, false, true},
		{"both", RemoteWrite | RemoteRead, true, true},
		{"local only again", LocalWrite, false, false},
	} {
		must.OK(t, r.table.SetAccess(reg, row.access))
		p := r.placeSegment(taggedSeg(true, 0, reg.STag(), 0, []byte{1}))
		_, err := r.Resolve(reg.STag(), 0, 1, RemoteRead)
		check.That(t, (p.Err == nil) == row.write && (err == nil) == row.read,
			"%s: written %v, read %v", row.name, p.Err == nil, err == nil)
	}
}

// An access that needs two rights is not granted by one of them.
func TestEachRightIsNeeded(t *testing.T) {
	// req 5041-7.1-10
	r := newRig(t)
	for _, row := range []struct {
		name  string
		has   Access
		taken bool
	}{
		{"both", RemoteRead | RemoteWrite, true},
		{"one", RemoteRead, false},
		{"the other", RemoteWrite, false},
	} {
		reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 8)), Access: row.has})
		_, err := r.Resolve(reg.STag(), 0, 8, RemoteRead|RemoteWrite)
		check.That(t, (err == nil) == row.taken && (err == nil || err.Code == CodeInvalidSTag), "%s: %v", row.name, err)
	}
}
