package ddp

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestWhatIsLikelyToBeUsedNext(t *testing.T) {
	b := make([]byte, 100<<10)
	for _, tt := range []struct{ off, n, from, octets int }{
		{0, 1000, 2000, 1000},
		{3000, 1000, 5000, 1000},
		{0, 30 << 10, 34 << 10, 30 << 10}, // a page further on
		{0, 60 << 10, 64 << 10, 36 << 10}, // as far as there is any
		{100<<10 - 2001, 1000, 100<<10 - 1, 1},
		{100<<10 - 2000, 1000, 0, 0},
		{99 << 10, 1 << 10, 0, 0},
		{0, 100 << 10, 0, 0},
		{100 << 10, 0, 0, 0},
		{5000, 0, 5000, 0},
	} {
		next, from := prefetchRange(b, uint64(tt.off), uint64(tt.n)), 0
		if next != nil {
			from = cap(b) - cap(next)
		}
		check.Equal(t, fmt.Sprintf("after %d octets at %d", tt.n, tt.off), fmt.Sprint(from, len(next)),
			fmt.Sprint(tt.from, tt.octets))
	}
}

// Memory that is asked for ahead is as other memory is, up to its last octet; what is resolved in
// it knows that it is.
func TestWideMemory(t *testing.T) {
	for _, size := range []int{prefetchMinMemory - 1, prefetchMinMemory, prefetchMinMemory + 4097} {
		r := newRig(t)
		mem := make([]byte, size)
		reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
		for _, off := range []int{0, 5, size / 2, size - 4000, size - 2000, size - 1000} {
			want := bytes.Repeat([]byte{byte(off>>8) + 1}, 1000)
			placed := r.placeSegment(taggedSeg(true, 0, reg.STag(), uint64(off), want))
			check.That(t, placed.Err == nil && bytes.Equal(mem[off:][:1000], want), "what was placed at %d of %d: %v",
				off, size, placed.Err)
			p, fault := r.Resolve(reg.STag(), uint64(off), 1000, RemoteWrite)
			check.That(t, fault == nil && p.Region.shouldPrefetch(1000) == (size >= prefetchMinMemory),
				"resolved at %d of %d: %v", off, size, fault)
			for _, p := range []Piece{p, {Mem: Bytes(mem), Off: uint64(off), Len: 1000}} {
				got, err := p.sliceAt(0, 1000)
				check.That(t, err == nil && bytes.Equal(got, want), "what is cut at %d of %d: %v", off, size, err)
			}
		}
	}
}

// How much memory there is counts, not how much of it is one region; windows are no more of it, and
// devices are none.
func TestMemoryOfAllRegionsCounts(t *testing.T) {
	tab := NewTable(new(entropy))
	piece := make([]byte, prefetchMinMemory/4)
	var all []*Region
	for i := range 4 {
		must.That(t, !shouldPrefetch(tab.ramOctets.Load(), prefetchMaxLen),
			"%d regions are taken for as much as caches hold", i)
		all = append(all, must.Get(tab.Register(Spec{PD: testPD, Mem: Bytes(piece)}))(t))
		must.Get(tab.Register(Spec{PD: testPD, Mem: Device(new(disk), prefetchMinMemory)}))(t)
	}
	check.That(t, all[0].shouldPrefetch(prefetchMaxLen) && !all[0].mem.shouldPrefetch(prefetchMaxLen),
		"all together are not")
	win := must.Get(tab.Bind(all[0], Window{PD: testPD, Stream: testStream, Len: prefetchMinMemory / 4}))(t)
	check.That(t, win.shouldPrefetch(prefetchMaxLen), "a window is not of it")
	for _, step := range []struct {
		name string
		do   func() error
		far  bool
	}{
		{"one has less", func() error { return tab.Rebind(all[1], Bytes(piece[1:]), 0, 0) }, false},
		{"and as much again", func() error { return tab.Rebind(all[1], Bytes(piece), 0, 0) }, true},
		{"a window is gone", func() error { return tab.Deregister(win) }, true},
		{"one is gone", func() error { return tab.Deregister(all[0]) }, false},
	} {
		must.OK(t, step.do())
		check.Equal(t, step.name, shouldPrefetch(tab.ramOctets.Load(), prefetchMaxLen), step.far)
	}
}

// Long segments are asked for ahead only where there is twice as much memory.
func TestLongSegmentsAreAskedForLater(t *testing.T) {
	for _, row := range []struct {
		octets int64
		n      uint64
		far    bool
	}{
		{prefetchMinMemory - 1, 1, false}, {prefetchMinMemory, 1, true}, {prefetchMinMemory, prefetchMaxLen, true}, {prefetchMinMemory, prefetchMaxLen + 1, false}, {2*prefetchMinMemory - 1, prefetchMaxLen + 1, false}, {2 * prefetchMinMemory, prefetchMaxLen + 1, true}, {2 * prefetchMinMemory, 1, true},
	} {
		check.Equal(t, fmt.Sprintf("ask ahead in %d octets, of %d at a time", row.octets, row.n),
			shouldPrefetch(row.octets, row.n), row.far)
	}
}
