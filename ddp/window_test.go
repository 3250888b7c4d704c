package ddp

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func (r *rig) bindWindow(t *testing.T, of *Region, w Window) *Region {
	t.Helper()
	w.PD, w.Stream = testPD, testStream
	return must.Get(r.table.Bind(of, w))(t)
}

func TestWindowOpensItsPartAlone(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 30)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: LocalWrite})
	win := r.bindWindow(t, reg, Window{Off: 10, Len: 10, Base: 500, Access: RemoteWrite})
	for _, row := range []struct {
		name string
		tag  STag
		to   uint64
		n    int
		code int // -1: placed
	}{
		// req 5042-6.2.1-1: to the octet, as for a region.
		{"the whole window", win.STag(), 500, 10, -1},
		{"one octet past its end", win.STag(), 501, 10, int(CodeBaseBounds)},
		{"one octet before its start", win.STag(), 499, 1, int(CodeBaseBounds)},
		{"the region, which grants nothing to the peer", reg.STag(), 10, 1, int(CodeInvalidSTag)},
	} {
		clear(mem)
		p := r.placeSegment(taggedSeg(true, 0, row.tag, row.to, bytes.Repeat([]byte{7}, row.n)))
		code := -1
		if p.Err != nil {
			code = int(p.Err.Code)
		}
		check.Equal(t, row.name, code, row.code)
		placed := bytes.Equal(mem[10:20], bytes.Repeat([]byte{7}, 10))
		check.That(t, placed == (row.code < 0) &&
			isZero(mem[:10]) && isZero(mem[20:]), "%s: memory % x", row.name, mem)
	}
}

// What is only read needs no right of the owner to write.
func TestWindowToReadFromWhatIsNotWritten(t *testing.T) {
	r := newRig(t)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(patternOf(8))})
	win := r.bindWindow(t, reg, Window{Len: 8, Access: RemoteRead})
	p, err := r.Resolve(win.STag(), 0, 8, RemoteRead)
	check.That(t, err == nil && p.Len == 8 && win.Valid(), "%+v, %v, valid %v", p, err, win.Valid())
	p, err = r.Resolve(win.STag()+1, 0, 8, RemoteRead)
	check.That(t, err != nil && err.Code == CodeInvalidSTag, "an STag that nobody has: %+v, %v", p, err)
}

func TestWindowIsForOneStream(t *testing.T) {
	// req 5042-6.1.1-4, 5042-2.2.5-1
	r := newRig(t)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 8)), Access: LocalWrite})
	win := r.bindWindow(t, reg, Window{Len: 8, Access: RemoteWrite})
	other := NewStream(StreamConfig{ID: testStream + 1, PD: testPD, Table: r.table, ULP: &recorder{need: RemoteWrite}})
	other.Attach(new(lower))
	var p Placed
	other.Place(taggedSeg(true, 0, win.STag(), 0, []byte{1}), &p)
	check.That(t, p.Err != nil && p.Err.Code == CodeNotAssociated, "another stream of the domain: %v", p.Err)
}

func TestWindowEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(t *Table, reg, win *Region) error
		code uint8
	}{
		{"when it is invalidated itself", func(_ *Table, _, win *Region) error { win.Invalidate(); return nil }, CodeInvalidSTag},
		{"when it is given up", func(t *Table, _, win *Region) error { return t.Deregister(win) }, CodeInvalidSTag},
		{"with the region invalidated", func(_ *Table, reg, _ *Region) error { reg.Invalidate(); return nil }, CodeInvalidSTag},
		{"with the region deregistered", func(t *Table, reg, _ *Region) error { return t.Deregister(reg) }, CodeInvalidSTag},
		{"when the region gets another buffer", func(t *Table, reg, _ *Region) error {
			return t.Rebind(reg, Bytes(make([]byte, 64)), 0, LocalWrite|RemoteWrite)
		}, CodeInvalidSTag},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			mem := make([]byte, 4096)
			for range 10 {
				reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: LocalWrite})
				win := r.bindWindow(t, reg, Window{Len: 4096, Access: RemoteWrite})
				stop := hammerRegion(t, r.table, win.STag(), len(mem))
				must.OK(t, row.end(r.table, reg, win))
				clear(mem) // req 5042-6.2.2-2: the race detector watches
				check.That(t, !win.Valid(), "the window is valid")
				stop()
				must.That(t, isZero(mem), "memory was written after the window's end")
				p := r.placeSegment(taggedSeg(true, 0, win.STag(), 0, []byte{1}))
				check.That(t, p.Err != nil && p.Err.Code == row.code, "written through it: %v", p.Err)
			}
		})
	}
}

func TestWindowOfOneRegionLeavesOthersAlone(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 8)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: LocalWrite | RemoteWrite})
	a := r.bindWindow(t, reg, Window{Len: 8, Access: RemoteWrite})
	b := r.bindWindow(t, reg, Window{Len: 8, Access: RemoteWrite})
	a.Invalidate()
	for _, tag := range []STag{b.STag(), reg.STag()} {
		p := r.placeSegment(taggedSeg(true, 0, tag, 0, []byte{1}))
		check.That(t, p.Err == nil, "STag %#x: %v", tag, p.Err)
	}
	check.That(t, !a.Within(b) && a.Within(reg) && reg.Within(reg) && !reg.Within(a) && !(*Region)(nil).Within(reg),
		"which lies within which")
}

func TestWindowRefused(t *testing.T) {
	// req 5041-8.3.2-4, 5040-8.1.2-3: an STag is bound to what the user has a right to. (Of a
	// region the slice is the right.)
	tab := NewTable(new(entropy))
	register := func(sp Spec) *Region {
		sp.PD, sp.Mem = testPD, Bytes(make([]byte, 8))
		return must.Get(tab.Register(sp))(t)
	}
	open, closed := register(Spec{Access: LocalWrite}), register(Spec{})
	scoped, gone := register(Spec{Scope: testStream + 1}), register(Spec{})
	gone.Invalidate()
	win := must.Get(tab.Bind(open, Window{PD: testPD, Stream: testStream, Len: 8}))(t)
	for _, row := range []struct {
		name string
		of   *Region
		w    Window
		want error
	}{
		{"no region", nil, Window{}, ErrNoSuchRegion},
		{"a window of a window", win, Window{Len: 1}, ErrWindow},
		{"an invalidated region", gone, Window{Len: 1}, ErrRevoked},
		{"a region of another stream", scoped, Window{Len: 1}, ErrScope},
		{"another protection domain", open, Window{PD: testPD + 1, Len: 1}, ErrScope},
		{"no stream", open, Window{Stream: ^StreamID(0), Len: 1}, ErrScope},
		{"remote writing where the user may not write", closed, Window{Len: 1, Access: RemoteWrite}, ErrRights},
		{"remote atomics where the user may not write", closed, Window{Len: 1, Access: RemoteAtomic}, ErrRights},
		{"remote reading where the user may not write", closed, Window{Len: 1, Access: RemoteRead}, nil},
		{"one octet past the end", open, Window{Off: 1, Len: 8}, ErrRange},
		{"an offset that wraps", open, Window{Off: ^uint64(0), Len: 2}, ErrRange},
		{"a Tagged Offset that wraps", open, Window{Len: 8, Base: ^uint64(0) - 6}, ErrRange},
	} {
		if row.w.PD == 0 {
			row.w.PD = testPD
		}
		switch row.w.Stream {
		case 0:
			row.w.Stream = testStream
		case ^StreamID(0):
			row.w.Stream = 0
		}
		_, err := tab.Bind(row.of, row.w)
		check.That(t, errors.Is(err, row.want), "%s: %v, want %v", row.name, err, row.want)
	}
	check.Error(t, "another buffer for a window", tab.Rebind(win, Bytes(nil), 0, 0), ErrWindow)
	tab.MaxPerPD = 6
	if _, err := tab.Bind(open, Window{PD: testPD, Stream: testStream}); !errors.Is(err, ErrTooManyRegions) {
		t.Errorf("beyond the limit: %v", err) // req 5042-6.4.1-1
	}
}

func TestWindowOfAFile(t *testing.T) {
	f := must.Get(os.Create(filepath.Join(t.TempDir(), "f")))(t)
	defer f.Close()
	must.OK(t, f.Truncate(32))
	r := newRig(t)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Device(f, 32), Access: LocalWrite})
	win := r.bindWindow(t, reg, Window{Off: 8, Len: 16, Access: RemoteWrite | RemoteAtomic})
	p := r.placeSegment(taggedSeg(true, 0, win.STag(), 3, []byte("abc")))
	must.That(t, p.Err == nil, "%v", p.Err)
	if old, err := r.Atomic(win.STag(), 8, &AtomicOp{Data: 5}); old != 0 || err != nil {
		t.Errorf("atomic: %d, %v", old, err)
	}
	v, err := reg.Atomic(16, FetchAdd(0))
	check.That(t, v == 5 && err == nil, "the counter is %d, %v", v, err)
	got, err := os.ReadFile(f.Name())
	check.That(t, err == nil && string(got[11:14]) == "abc" && isZero(got[:11]), "file % x, %v", got, err)
}

// What was accepted before a change of its region does not outlive it.
func TestAcceptedRequestsEndWithTheirRights(t *testing.T) {
	for _, row := range []struct {
		name   string
		need   Access
		change func(*Table, *Region) error
		ok     bool
	}{
		{"source of a Read, right to read revoked", RemoteRead, func(t *Table, r *Region) error { return t.SetAccess(r, LocalWrite) }, false},
		{"source of a Read, further rights granted", RemoteRead, func(t *Table, r *Region) error { return t.SetAccess(r, LocalWrite|RemoteRead|RemoteWrite) }, true},
		{"source of a Send, all rights revoked", 0, func(t *Table, r *Region) error { return t.SetAccess(r, 0) }, true},
		{"source of a Read, another buffer", RemoteRead, func(t *Table, r *Region) error {
			return t.Rebind(r, Bytes(make([]byte, 64)), 0, LocalWrite|RemoteRead)
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t)
			reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 64)), Access: LocalWrite | RemoteRead})
			piece, e := r.Resolve(reg.STag(), 0, 64, row.need)
			must.That(t, e == nil, "%v", e)
			must.OK(t, row.change(r.table, reg)) // req 5041-8.3.1-1, 5040-8.1.1-6
			_, err := piece.sliceAt(0, 64)
			check.That(t, (err == nil) == row.ok && (err == nil || errors.Is(err, ErrRevoked)),
				"used after the change: %v", err)
		})
	}
}

func TestPostedReceiveDoesNotFollowItsRegion(t *testing.T) {
	r := newRig(t)
	old, fresh := make([]byte, 8), make([]byte, 8)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(old), Access: LocalWrite})
	piece, e := r.Resolve(reg.STag(), 0, 8, LocalWrite)
	must.That(t, e == nil, "%v", e)
	b := must.Get(MakeRecvBuffer(Gather{piece}, 1))(t)
	must.OK(t, r.ulp.queues[0].Post(b))
	must.OK(t, r.table.Rebind(reg, Bytes(fresh), 0, LocalWrite))
	p := r.placeSegment(untaggedSeg(true, 0, 1, 0, []byte{1}))
	check.That(t, p.Err != nil && errors.Is(p.Err.Cause, ErrRevoked) && isZero(old) && isZero(fresh),
		"%v; old % x, new % x", p.Err, old, fresh)
}
