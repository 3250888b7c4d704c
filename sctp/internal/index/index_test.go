package index

import (
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/concurrent"
)

// number is a key, of which some share a hash.
type number uint64

func (n number) Hash() uint64 { return uint64(n / 3) }

// A table has what a map has, whatever is done with both.
func TestTableIsAMap(t *testing.T) {
	var m Map[number, int]
	want := map[number]int{}
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 20_000 {
		k := number(r.Uint64N(200))
		if i > 10_000 {
			k *= 8 // they share chains, too
		}
		if r.Uint64N(3) == 0 {
			m.Delete(k)
			delete(want, k)
		} else {
			m.Put(k, i)
			want[k] = i
		}
		k = number(r.Uint64N(200))
		m.Prefetch(k.Hash())
		m.PrefetchNode(k.Hash())
		m.PrefetchValue(k.Hash()) // it leads nowhere, and is asked for all the same
		got, ok := m.Get(k)
		hashed, found := m.GetHashed(k, k.Hash())
		check.That(t, hashed == got && found == ok, "step %d, key %d: %d, %v by its hash", i, k, hashed, found)
		value, is := want[k]
		check.That(t, got == value && ok == is && m.Len() == len(want),
			"step %d, key %d: %d, %v, want %d, %v; %d keys of %d", i, k, got, ok, value, is, m.Len(), len(want))
	}
}

// A reader of a table that changes finds what is there all the time, and never what has another
// key.
func TestTableIsReadWhileItChanges(t *testing.T) {
	var m Map[number, number]
	const stays, comes = 50, 500
	for k := range number(stays) {
		m.Put(k, k)
	}
	look := func(int) {
		for k := range number(comes) {
			v, ok := m.Get(k)
			check.That(t, (ok || k >= stays) && (!ok || v == k), "key %d: %d, %v", k, v, ok)
		}
	}
	concurrent.RunTogether(200, look, look, func(i int) {
		for k := number(stays); k < comes; k++ {
			if i%2 == 0 {
				m.Put(k, k)
			} else {
				m.Delete(k)
			}
		}
		for k := range number(stays) {
			m.Put(k, k)
		}
	})
}

// A look allocates nothing.
func TestLookAllocatesNothing(t *testing.T) {
	var m Map[number, int]
	m.Put(1, 2)
	check.Equal(t, "allocations", testing.AllocsPerRun(100, func() { m.Get(1); m.Get(2) }), 0)
}
