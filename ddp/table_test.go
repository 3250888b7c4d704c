package ddp

import (
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"testing"
)

func TestSTagsAreUnpredictableAndSlowToReturn(t *testing.T) {
	tab := NewTable(new(entropy))
	const n = 20000
	seen := make(map[STag]bool, n)
	var prev STag
	close, sorted := 0, 0
	for range n {
		r, err := tab.Register(Spec{PD: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := r.STag()
		// req 5042-6.1.1-5: a freed value does not come back soon; 0 is never issued.
		if s == 0 || seen[s] {
			t.Fatalf("STag %#x issued again", s)
		}
		seen[s] = true
		if s-prev < 1<<16 || prev-s < 1<<16 {
			close++
		}
		if s > prev {
			sorted++
		}
		prev = s
		if err := tab.Deregister(r); err != nil {
			t.Fatal(err)
		}
	}
	// req 5040-8.1.1-8, 5040-8.1.1-9
	// Uniform values are within 2^16 of their predecessor once in 2^15, and above it every other time.
	if close > 10 || sorted < n*4/10 || sorted > n*6/10 {
		t.Errorf("%d of %d STags close to their predecessor, %d above it", close, n, sorted)
	}
	other := NewTable(&entropy{n: 1})
	a, _ := NewTable(new(entropy)).Register(Spec{})
	b, _ := other.Register(Spec{})
	if a.STag() == b.STag() {
		t.Error("STags do not depend on the secret")
	}
}

func TestTaggerIsAPermutation(t *testing.T) {
	tags, err := newTagger(new(entropy))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[STag]uint32, 1<<16)
	for i := range uint32(1 << 16) {
		s := tags.permute(i * 65537)
		if j, dup := seen[s]; dup {
			t.Fatalf("%d and %d both give %#x", i, j, s)
		}
		seen[s] = i
	}
}

func TestTableGrowsAndShrinksWithoutLosingRegions(t *testing.T) {
	tab := NewTable(new(entropy))
	var live []*Region
	for i := range 5000 {
		r, err := tab.Register(Spec{PD: PD(i % 7)})
		if err != nil {
			t.Fatal(err)
		}
		live = append(live, r)
		if i%3 == 2 {
			gone := live[0]
			live = live[1:]
			if err := tab.Deregister(gone); err != nil {
				t.Fatal(err)
			}
			if tab.Lookup(gone.STag()) != nil || gone.Valid() {
				t.Fatal("deregistered region still found or valid")
			}
		}
	}
	if tab.Len() != len(live) {
		t.Fatalf("%d regions, want %d", tab.Len(), len(live))
	}
	for _, r := range live {
		if tab.Lookup(r.STag()) != r {
			t.Fatalf("region %#x lost", r.STag())
		}
	}
	if s := *tab.slots.Load(); len(s) > 8*len(live) {
		t.Errorf("%d slots for %d regions", len(s), len(live))
	}
	for _, r := range live {
		_ = tab.Deregister(r)
	}
	if tab.Len() != 0 || len(tab.perPD) != 0 {
		t.Error("something is left of deregistered regions")
	}
}

func TestTableRefuses(t *testing.T) {
	tab := NewTable(new(entropy))
	tab.MaxPerPD = 2
	mem := Bytes(make([]byte, 16))
	if _, err := tab.Register(Spec{Mem: mem, Base: math.MaxUint64 - 15}); err != ErrRange {
		t.Errorf("range that ends at 2^64: %v", err) // req 5041-7.1-13
	}
	a, err := tab.Register(Spec{Mem: mem, Base: math.MaxUint64 - 16})
	if err != nil {
		t.Errorf("range that ends at 2^64-1: %v", err)
	}
	_, _ = tab.Register(Spec{})
	if _, err := tab.Register(Spec{}); err != ErrTooManyRegions {
		t.Errorf("third region of a PD that may have two: %v", err) // req 5041-8.3.2-5
	}
	if _, err := tab.Register(Spec{PD: 1}); err != nil {
		t.Errorf("another PD: %v", err)
	}
	if err := tab.Rebind(a, mem, math.MaxUint64, 0); err != ErrRange {
		t.Errorf("rebinding to a range that wraps: %v", err)
	}
	if err := tab.Deregister(a); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"deregister twice":    tab.Deregister(a),
		"deregister nil":      tab.Deregister(nil),
		"rebind":              tab.Rebind(a, mem, 0, 0),
		"change of rights":    tab.SetAccess(a, 0),
		"region of no table ": tab.SetAccess(new(Region), 0),
	} {
		if err != ErrNoSuchRegion {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := tab.Register(Spec{}); err != nil {
		t.Errorf("room after deregistration: %v", err)
	}
	if _, err := NewTable(dry{}).Register(Spec{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("no randomness: %v", err)
	}
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
		r, err := tab.Register(Spec{})
		if err != nil {
			t.Fatal(err)
		}
		_ = tab.Deregister(r)
	}
	done.Store(true)
	wg.Wait()
}
