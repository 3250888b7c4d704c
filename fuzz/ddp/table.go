package ddp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/fuzzinput"
)

// entry is an STag as the model sees it.
type entry struct {
	region     *ddp.Region
	pd         ddp.PD
	scope      ddp.StreamID
	access     ddp.Access
	base       uint64
	start, n   int // in the arena
	registered bool
	revoked    bool
	parent     *entry // of a window
	binding    int    // the parent's rebinds at the time
	rebinds    int
}

// ended: no access is possible, whatever its rights.
func (e *entry) hasEnded() bool {
	return e.revoked || e.parent != nil && (e.parent.hasEnded() || e.parent.rebinds != e.binding)
}

// resolved is an access that was allowed and may be made later.
type resolved struct {
	piece  ddp.Piece
	e      *entry
	need   ddp.Access
	rebind int
}

// tableLab is an STag table with three streams, and the model: a list of entries that is walked.
type tableLab struct {
	t       *testing.T
	s       fuzzinput.Script
	table   *ddp.Table
	words   [64]uint64 // so that the arena is aligned
	arena   []byte
	want    [512]byte
	entries []*entry
	pieces  []resolved
	streams [3]streamKey
}

// streamKey is one stream: its Protection Domain and identity.
type streamKey struct {
	pd ddp.PD
	id ddp.StreamID
}

const maxPerPD = 12

func (l *tableLab) streamOf(w streamKey) *ddp.Stream {
	s := ddp.NewStream(ddp.StreamConfig{ID: w.id, PD: w.pd, Table: l.table, ULP: &streamUnderTest{}, Queues: 1})
	s.Attach(idleLower{})
	return s
}

func (l *tableLab) pickEntry() *entry {
	if len(l.entries) == 0 {
		return &entry{revoked: true}
	}
	return l.entries[int(l.s.Byte())%len(l.entries)]
}

func (l *tableLab) pickStream() streamKey { return l.streams[int(l.s.Byte())%len(l.streams)] }

// bases are Tagged Offsets of first octets: a buffer of more than 64 octets wraps at the last two.
func (l *tableLab) drawBase() uint64 {
	return []uint64{0, 1, 1 << 32, math.MaxUint64 - 511, math.MaxUint64 - 63, math.MaxUint64}[int(l.s.Byte())%6]
}

func wrapsAround(base uint64, n int) bool { return uint64(n) > math.MaxUint64-base }

func (l *tableLab) checkSameError(what string, got, want error) {
	l.t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		l.t.Fatalf("%s: %v, want %v", what, got, want)
	}
}

// countLive returns the live STags of a Protection Domain.
func (l *tableLab) countLive(pd ddp.PD) (n int) {
	for _, e := range l.entries {
		if e.registered && e.pd == pd {
			n++
		}
	}
	return n
}

func (l *tableLab) drawMemory() (start, n int) {
	start = int(l.s.Byte()) * 2
	return start, min(int(l.s.Byte()), len(l.arena)-start)
}

func (l *tableLab) registerRegion() {
	start, n := l.drawMemory()
	w := l.pickStream()
	e := &entry{pd: w.pd, access: ddp.Access(l.s.Byte() & 15), base: l.drawBase(), start: start, n: n, registered: true}
	if l.s.Byte()%2 == 0 {
		e.scope = w.id
	}
	var want error
	switch {
	case wrapsAround(e.base, n):
		want = ddp.ErrRange
	case l.countLive(e.pd) >= maxPerPD:
		want = ddp.ErrTooManyRegions
	}
	r, err := l.table.Register(ddp.Spec{PD: e.pd, Mem: ddp.Bytes(l.arena[start : start+n]), Base: e.base,
		Access: e.access, Scope: e.scope})
	l.checkSameError("Register", err, want)
	l.addEntry(e, r)
}

// bindWindow makes a window.
func (l *tableLab) bindWindow() {
	of, w := l.pickEntry(), l.pickStream()
	if of.region == nil {
		return
	}
	e := &entry{pd: w.pd, scope: w.id * ddp.StreamID(l.s.Byte()%4+3) / 4, access: ddp.Access(l.s.Byte() & 15),
		base:       l.drawBase(),
		registered: true, parent: of, binding: of.rebinds}
	off := int(l.s.Byte())
	e.start, e.n = of.start+off, int(l.s.Byte())
	var want error
	switch {
	case !of.registered:
		want = ddp.ErrNoSuchRegion
	case of.parent != nil:
		want = ddp.ErrWindow
	case of.hasEnded():
		want = ddp.ErrRevoked
	case of.pd != e.pd || e.scope == 0 || of.scope != 0 && of.scope != e.scope:
		want = ddp.ErrScope
	case e.access&(ddp.RemoteWrite|ddp.RemoteAtomic) != 0 && of.access&ddp.LocalWrite == 0:
		want = ddp.ErrRights
	case off+e.n > of.n || wrapsAround(e.base, e.n):
		want = ddp.ErrRange
	case l.countLive(e.pd) >= maxPerPD:
		want = ddp.ErrTooManyRegions
	}
	r, err := l.table.Bind(of.region, ddp.Window{PD: e.pd, Stream: e.scope, Off: uint64(off), Len: uint64(e.n),
		Base: e.base, Access: e.access})
	l.checkSameError("Bind", err, want)
	l.addEntry(e, r)
}

func (l *tableLab) addEntry(e *entry, r *ddp.Region) {
	if r == nil {
		return
	}
	for _, o := range l.entries {
		if o.region.STag() == r.STag() {
			l.t.Fatalf("STag %#x twice", r.STag())
		}
	}
	e.region = r
	l.entries = append(l.entries, e)
}

// changeEntry revokes, gives up, or changes an STag.
func (l *tableLab) changeEntry(op byte) {
	e := l.pickEntry()
	if e.region == nil {
		return
	}
	var gone error
	if !e.registered {
		gone = ddp.ErrNoSuchRegion
	}
	switch op {
	case 0:
		e.region.Invalidate()
		e.revoked = true
	case 1:
		l.checkSameError("Deregister", l.table.Deregister(e.region), gone)
		e.registered, e.revoked = false, true
	case 2:
		a := ddp.Access(l.s.Byte() & 15)
		l.checkSameError("SetAccess", l.table.SetAccess(e.region, a), gone)
		if gone == nil {
			e.access = a
		}
	case 3:
		start, n := l.drawMemory()
		base, a := l.drawBase(), ddp.Access(l.s.Byte()&15)
		want := gone
		if want == nil && e.parent != nil {
			want = ddp.ErrWindow
		}
		if wrapsAround(base, n) {
			want = ddp.ErrRange
		}
		l.checkSameError("Rebind", l.table.Rebind(e.region, ddp.Bytes(l.arena[start:start+n]), base, a), want)
		if want == nil {
			e.start, e.n, e.base, e.access, e.revoked = start, n, base, a, false
			e.rebinds++
		}
	}
}

// judgeAccess says how an access of n > 0 octets must end, and where in the arena it goes.
func (l *tableLab) judgeAccess(e *entry, w streamKey, to uint64, n int, need ddp.Access) (at int, code uint8, ok bool) {
	switch {
	case !e.registered || e.hasEnded():
		return 0, ddp.CodeInvalidSTag, false
	case e.pd != w.pd || e.scope != 0 && e.scope != w.id:
		return 0, ddp.CodeNotAssociated, false
	case e.access&need != need:
		return 0, ddp.CodeInvalidSTag, false
	case wrapsAround(to, n):
		return 0, ddp.CodeTOWrap, false
	case to < e.base || to-e.base > uint64(e.n) || uint64(n) > uint64(e.n)-(to-e.base):
		return 0, ddp.CodeBaseBounds, false
	}
	return e.start + int(to-e.base), 0, true
}

// accessNow writes, does an Atomic Operation, or resolves for later.
func (l *tableLab) accessNow(op byte) {
	e, w := l.pickEntry(), l.pickStream()
	tag := ddp.STag(l.s.Next16())
	if e.region != nil {
		tag = e.region.STag()
	}
	to := e.base + uint64(int64(int16(l.s.Next16()))>>4)
	var err *ddp.Error
	var at int
	var code uint8
	var ok bool
	switch s := l.streamOf(w); op {
	case 0:
		n := int(l.s.Byte())%40 + 1
		at, code, ok = l.judgeAccess(e, w, to, n, ddp.RemoteWrite)
		seg := make([]byte, ddp.TaggedHeaderLen, ddp.TaggedHeaderLen+n)
		ddp.Tagged{Last: true, STag: tag, TO: to}.Put(seg)
		payload := bytes.Repeat([]byte{l.s.Byte()}, n)
		var p ddp.Placed
		s.Place(append(seg, payload...), &p)
		if err = p.Err; ok {
			copy(l.want[at:], payload)
		}
	case 1:
		at, code, ok = l.judgeAccess(e, w, to, ddp.AtomicLen, ddp.RemoteAtomic)
		add := ddp.FetchAdd(uint64(l.s.Next16()))
		var old uint64
		old, err = s.Atomic(tag, to, &add)
		if ok && at%ddp.AtomicLen != 0 {
			if err == nil || !errors.Is(err, ddp.ErrUnaligned) {
				l.t.Fatalf("atomic at %d: %v", at, err)
			}
			return
		}
		if ok {
			was := binary.NativeEndian.Uint64(l.want[at:])
			if old != was {
				l.t.Fatalf("atomic met %#x, want %#x", old, was)
			}
			binary.NativeEndian.PutUint64(l.want[at:], was+add.Data)
		}
	case 2:
		n, need := int(l.s.Byte())%40+1, ddp.Access(l.s.Byte()&15)
		_, code, ok = l.judgeAccess(e, w, to, n, need)
		var piece ddp.Piece
		if piece, err = s.Resolve(tag, to, uint64(n), need); ok && err == nil {
			l.pieces = append(l.pieces, resolved{piece, e, need, e.rebinds})
		}
	}
	if ok != (err == nil) || !ok && (err.Type != ddp.TypeTagged || err.Code != code) {
		l.t.Fatalf("access %d at %#x: %v, want ok %v or code %d", op, to, err, ok, code)
	}
}

// useResolved makes an access that was resolved before: it may have become void.
func (l *tableLab) useResolved() {
	if len(l.pieces) == 0 {
		return
	}
	p := &l.pieces[int(l.s.Byte())%len(l.pieces)]
	var want error
	if p.e.hasEnded() || p.rebind != p.e.rebinds || p.e.access&p.need != p.need {
		want = ddp.ErrRevoked
	}
	_, err := ddp.MakeRecvBuffer(ddp.Gather{p.piece}, 0)
	l.checkSameError("a resolved access", err, want)
}

func (l *tableLab) checkTable() {
	live := 0
	for _, e := range l.entries {
		found := l.table.Lookup(e.region.STag())
		if e.registered {
			live++
			if found != e.region {
				l.t.Fatalf("STag %#x is not found", e.region.STag())
			}
		} else if found != nil {
			l.t.Fatalf("STag %#x is found after its end", e.region.STag())
		}
		if e.region.Valid() == e.hasEnded() {
			l.t.Fatalf("STag %#x: valid %v", e.region.STag(), e.region.Valid())
		}
	}
	if l.table.Len() != live {
		l.t.Fatalf("%d STags, want %d", l.table.Len(), live)
	}
	if !bytes.Equal(l.arena, l.want[:]) {
		l.t.Fatal("memory differs from the model")
	}
}
