package ddp

import (
	"bytes"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestSTagsAreUnpredictableAndSlowToReturn(t *testing.T) {
	tab := NewTable(new(entropy))
	const n = 20000
	seen := make(map[STag]bool, n)
	var prev STag
	close, sorted := 0, 0
	for range n {
		r := must.Get(tab.Register(Spec{PD: 1}))(t)
		s := r.STag()
		// req 5042-6.1.1-5: a freed value does not come back soon; 0 is never issued.
		must.That(t, s != 0 && !seen[s], "STag %#x issued again", s)
		seen[s] = true
		if s-prev < 1<<16 || prev-s < 1<<16 {
			close++
		}
		if s > prev {
			sorted++
		}
		prev = s
		must.OK(t, tab.Deregister(r))
	}
	// req 5040-8.1.1-8, 5040-8.1.1-9 Uniform values are within 2^16 of their predecessor once in
	// 2^15, and above it every other time.
	check.That(t, close <= 10 && sorted >= n*4/10 && sorted <= n*6/10,
		"%d of %d STags close to their predecessor, %d above it", close, n, sorted)
	// Every bit of the secret counts: what depends on fewer could be tried out.
	first := make(map[STag]int)
	for bit := range 8 * 16 {
		secret := make([]byte, 16)
		secret[bit/8] = 1 << (bit % 8)
		r := must.Get(NewTable(bytes.NewReader(secret)).Register(Spec{}))(t)
		first[r.STag()] = bit
	}
	check.Equal(t, "STags of secrets that differ in a bit", len(first), 8*16)
}

func TestTaggerIsAPermutation(t *testing.T) {
	tags := must.Get(newSTagGenerator(new(entropy)))(t)
	turned := func(s STag) uint32 { return uint32(s)<<16 | uint32(s)>>16 }
	check.That(t, turned(tags.permute(turned(tags.permute(1)))) != 1,
		"all rounds are the same: turned round, it is its own inverse")
	for _, step := range []uint32{1, 1 << 16, 1<<16 + 1} {
		seen := make(map[STag]uint32, 1<<16)
		for i := range uint32(1 << 16) {
			s := tags.permute(i * step)
			j, dup := seen[s]
			must.That(t, !dup, "%d and %d times %d both give %#x", i, j, step, s)
			seen[s] = i
		}
	}
}

func TestTableGrowsAndShrinksWithoutLosingRegions(t *testing.T) {
	tab := NewTable(new(entropy))
	var live []*Region
	moved, last := 0, tab.slots.Load()
	for i := range 5000 {
		r := must.Get(tab.Register(Spec{PD: PD(i % 7)}))(t)
		if now := tab.slots.Load(); now != last {
			moved, last = moved+1, now
		}
		live = append(live, r)
		if i%3 == 2 {
			gone := live[0]
			live = live[1:]
			must.OK(t, tab.Deregister(gone))
			must.That(t, tab.Lookup(gone.STag()) == nil && !gone.Valid(), "deregistered region still found or valid")
		}
	}
	must.Equal(t, "regions", tab.Len(), len(live))
	for _, r := range live {
		must.Equal(t, "the region of an STag", tab.Lookup(r.STag()), r)
	}
	s := *tab.slots.Load()
	all := make(map[*Region]bool)
	for r := range tab.All {
		all[r] = true
		if len(all) == 1000 {
			break
		}
	}
	check.Equal(t, "regions before it was enough", len(all), 1000)
	for r := range tab.All {
		all[r] = true
	}
	check.Equal(t, "regions of All", len(all), len(live))
	for range NewTable(nil).All {
		t.Error("a table without regions has one")
	}
	check.That(t, len(s) <= 8*len(live) && moved <= 20, "%d slots for %d regions, which were moved %d times", len(s),
		len(live), moved)
	for _, r := range live {
		_ = tab.Deregister(r)
	}
	moved = 0
	small := NewTable(new(entropy))
	for range 1000 { // what is gone takes no place for ever
		r, _ := small.Register(Spec{PD: 1})
		_ = small.Deregister(r)
		if now := small.slots.Load(); now != last {
			moved, last = moved+1, now
		}
	}
	check.That(t, moved <= 50, "one region after the other moves the table %d times in 1000", moved)
	check.That(t, tab.Len() == 0 && len(tab.regionsPerPD) == 0 && len(small.regionsPerPD) == 0,
		"something is left of deregistered regions")
}

func TestTableRefuses(t *testing.T) {
	tab := NewTable(new(entropy))
	tab.MaxPerPD = 2
	mem := Bytes(make([]byte, 16))
	if _, err := tab.Register(Spec{Mem: mem, Base: math.MaxUint64 - 15}); err != ErrRange {
		t.Errorf("range that ends at 2^64: %v", err) // req 5041-7.1-13
	}
	a, err := tab.Register(Spec{Mem: mem, Base: math.MaxUint64 - 16})
	check.Error(t, "range that ends at 2^64-1", err, nil)
	_, _ = tab.Register(Spec{})
	if _, err := tab.Register(Spec{}); err != ErrTooManyRegions {
		t.Errorf("third region of a PD that may have two: %v", err) // req 5041-8.3.2-5
	}
	_, err = tab.Register(Spec{PD: 1})
	check.That(t, err == nil, "another PD: %v", err)
	check.Equal(t, "rebinding to a range that wraps", tab.Rebind(a, mem, math.MaxUint64, 0), ErrRange)
	check.OK(t, tab.Deregister(a))
	for what, err := range map[string]error{
		"deregister twice":    tab.Deregister(a),
		"deregister nil":      tab.Deregister(nil),
		"rebind":              tab.Rebind(a, mem, 0, 0),
		"change of rights":    tab.SetAccess(a, 0),
		"region of no table ": tab.SetAccess(new(Region), 0),
	} {
		check.Equal(t, what, err, ErrNoSuchRegion)
	}
	_, err = tab.Register(Spec{})
	check.That(t, err == nil, "room after deregistration: %v", err)
	check.Fails(NewTable(dry{}).Register(Spec{}))(t, "no randomness", io.ErrUnexpectedEOF)
}

// dry is a source of randomness that gives too little.
type dry struct{}

func (dry) Read(p []byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestLookupDuringChanges(t *testing.T) {
	tab := NewTable(new(entropy))
	keep, _ := tab.Register(Spec{})
	gone, _ := tab.Register(Spec{})
	_ = tab.Deregister(gone)
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			if tab.Lookup(keep.STag()) != keep || tab.Lookup(gone.STag()) != nil {
				t.Error("lookup wrong while the table changes")
				return
			}
		}
	})
	for range 20000 {
		r := must.Get(tab.Register(Spec{}))(t)
		_ = tab.Deregister(r)
	}
	done.Store(true)
	wg.Wait()
}

func TestScopeOfAnSTag(t *testing.T) {
	// req 5042-2.2.5-1, 5042-2.2.4-2, 5042-6.1.1-3: streams of one Protection Domain share what is
	// not bound to one stream; a stream in a domain of its own shares nothing.
	tab := NewTable(new(entropy))
	streams := map[string]*Stream{}
	for _, s := range []struct {
		name string
		id   StreamID
		pd   PD
	}{{"first", 1, 5}, {"second", 2, 5}, {"alone", 3, 6}} {
		streams[s.name] = NewStream(StreamConfig{ID: s.id, PD: s.pd, Table: tab, ULP: &recorder{need: RemoteWrite},
			Queues: 1})
		streams[s.name].Attach(&lower{mulpdu: 1500})
	}
	for _, row := range []struct {
		name  string
		spec  Spec
		valid map[string]bool
	}{
		{"Protection Domain", Spec{PD: 5}, map[string]bool{"first": true, "second": true}},
		{"single stream", Spec{PD: 5, Scope: 2}, map[string]bool{"second": true}},
	} {
		row.spec.Mem, row.spec.Access = Bytes(make([]byte, 4)), RemoteWrite
		reg := must.Get(tab.Register(row.spec))(t)
		for name, s := range streams {
			var p Placed
			s.Place(taggedSeg(true, 0, reg.STag(), 0, []byte{1}), &p)
			check.That(t, (p.Err == nil) == row.valid[name], "scope %s, stream %s: %v", row.name, name, p.Err)
		}
	}
}
