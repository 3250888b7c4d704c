package ddp

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

// hammer places whole segments in the region of tag over and over, until the returned stop is called.
// The plain writes of the test into the same memory make the race detector a judge, too.
func hammer(t *testing.T, tab *Table, tag STag, n int) (stop func()) {
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
		{"given another buffer", func(t *Table, r *Region) error {
			return t.Rebind(r, Bytes(make([]byte, size)), 0, RemoteWrite)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			mem := make([]byte, size)
			for range 25 {
				reg := r.register(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
				stop := hammer(t, r.table, reg.STag(), size)
				if err := c.revoke(r.table, reg); err != nil {
					t.Fatal(err)
				}
				clear(mem)
				for range 10 {
					runtime.Gosched()
					if !zero(mem) {
						t.Fatal("memory was written after its revocation")
					}
				}
				stop()
			}
		})
	}
}

func TestInvalidateByManyAtOnce(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 64)
	reg := r.register(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	stop := hammer(t, r.table, reg.STag(), len(mem))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(reg.Invalidate)
	}
	wg.Wait()
	clear(mem)
	if stop(); !zero(mem) || reg.Valid() {
		t.Error("memory was written after its revocation")
	}
	reg.Invalidate()
}

func TestChangesDoNotDisturbValidUse(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 64)
	reg := r.register(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
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
		if p := r.place(seg); p.Err != nil {
			t.Errorf("valid placement failed: %v", p.Err)
			break
		}
	}
	done.Store(true)
	wg.Wait()
}

func TestRebindMovesTheRange(t *testing.T) {
	r := newRig(t)
	old, fresh := make([]byte, 10), make([]byte, 4)
	reg := r.register(t, Spec{PD: testPD, Mem: Bytes(old), Base: 100, Access: RemoteWrite})
	if err := r.table.Rebind(reg, Bytes(fresh), 200, RemoteWrite|RemoteRead); err != nil {
		t.Fatal(err)
	}
	// req 5041-8.3-1: the old range is gone, the new one counts to the octet.
	if p := r.place(taggedSeg(true, 0, reg.STag(), 100, []byte{1})); p.Err == nil || p.Err.Code != CodeBaseBounds {
		t.Errorf("old range: %v", p.Err)
	}
	if p := r.place(taggedSeg(true, 0, reg.STag(), 203, []byte{1, 2})); p.Err == nil || p.Err.Code != CodeBaseBounds {
		t.Errorf("past the new range: %v", p.Err)
	}
	if p := r.place(taggedSeg(true, 0, reg.STag(), 203, []byte{9})); p.Err != nil || fresh[3] != 9 || !zero(old) {
		t.Errorf("new range: %v, memory % x", p.Err, fresh)
	}
	if reg.Base() != 200 || reg.Len() != 4 || reg.Access() != RemoteWrite|RemoteRead || reg.Memory().Len() != 4 {
		t.Errorf("region %d+%d rights %b", reg.Base(), reg.Len(), reg.Access())
	}
}
