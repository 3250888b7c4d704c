package ddp

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// silent is a ULP that does what a receiver of a bulk transfer does, and keeps nothing.
type silent struct {
	q    *Queue
	buf  RecvBuffer
	done int
}

func (u *silent) AdmitTagged(uint8, *Region, STag, uint64, int) (Access, *Error) {
	return RemoteWrite, nil
}
func (u *silent) Buffer(_, msn uint32, _ [5]byte) (*RecvBuffer, uint8) { return u.q.Lookup(msn) }
func (u *silent) DeliverTagged(uint8, STag, uint64, uint64)            { u.done++ }
func (u *silent) Completed(uint64)                                     { u.done++ }
func (u *silent) Failed(uint64, error)                                 {}
func (u *silent) Drained()                                             {}
func (u *silent) PeerClosed()                                          {}
func (u *silent) Fatal(err *Error)                                     { panic(err) }
func (u *silent) DeliverUntagged(_, _ uint32, _ [5]byte, _ uint32, _ *RecvBuffer) {
	u.done++
	u.q.Pop()
	_ = u.q.Post(u.buf)
}

// newBulk returns a stream with a region of size octets and one posted buffer of as many.
func newBulk(tb testing.TB, size int) (*Stream, *silent, *Region) {
	u := &silent{q: NewQueue(2)}
	tab := NewTable(new(entropy))
	reg := must.Get(tab.Register(Spec{Mem: Bytes(make([]byte, size)), Access: RemoteWrite | RemoteRead}))(tb)
	u.buf, _ = MakeRecvBuffer(gatherOf(make([]byte, size/2), make([]byte, size-size/2)), 0)
	_ = u.q.Post(u.buf)
	s := NewStream(StreamConfig{ID: 1, Table: tab, ULP: u, Queues: 1})
	s.Attach(new(lower))
	return s, u, reg
}

func TestNothingIsAllocatedPerSegment(t *testing.T) {
	const size = 1400
	s, u, reg := newBulk(t, size)
	var p Placed
	tagged := taggedSeg(true, 0, reg.STag(), 0, make([]byte, size))
	untagged := untaggedSeg(true, 0, 1, 0, make([]byte, size))
	msn := uint32(0)
	var seg Segment
	g := gatherOf(make([]byte, size), make([]byte, size))
	for name, f := range map[string]func(){
		"place and deliver, tagged": func() {
			s.Place(tagged, &p)
			s.Deliver(&p)
		},
		"place and deliver, untagged": func() {
			msn++
			Untagged{Last: true, MSN: msn}.Put(untagged)
			s.Place(untagged, &p)
			s.Deliver(&p)
		},
		"submit, cut and complete": func() {
			_ = s.SendUntagged(0, [5]byte{}, g, 1)
			_ = s.SendTagged(1, 0, 0, g, 1)
			for s.NextSegment(1000, &seg) {
				s.Acked()
			}
		},
	} {
		before := u.done
		check.Equal(t, name+": allocations", testing.AllocsPerRun(100, f), 0)
		check.That(t, u.done != before && s.Unfinished() == 0, "%s: nothing was delivered or completed", name)
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, n := range []int{64, 1400, 64 << 10} {
		const size = 64 << 20 // larger than the caches, as a bulk transfer is
		s, _, reg := newBulk(b, size)
		seg := taggedSeg(true, 0, reg.STag(), 0, make([]byte, n))
		var p Placed
		b.Run(fmt.Sprintf("tagged/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			b.ReportAllocs()
			to := uint64(0)
			for b.Loop() {
				Tagged{Last: true, STag: reg.STag(), TO: to}.Put(seg)
				s.Place(seg, &p)
				s.Deliver(&p)
				if to += uint64(n); to > size-uint64(n) {
					to = 0
				}
			}
		})
		b.Run(fmt.Sprintf("untagged/%d", n), func(b *testing.B) {
			s, _, _ := newBulk(b, size)
			seg := untaggedSeg(true, 0, 1, 0, make([]byte, n))
			b.SetBytes(int64(n))
			b.ReportAllocs()
			msn := uint32(0)
			for b.Loop() {
				msn++
				Untagged{Last: true, MSN: msn}.Put(seg)
				s.Place(seg, &p)
				s.Deliver(&p)
			}
		})
	}
}

func BenchmarkNextSegment(b *testing.B) {
	s, _, reg := newBulk(b, 1<<20)
	piece := resolvedPiece(b, s, reg, 0, 1<<20)
	for name, g := range map[string]Gather{"memory": gatherOf(make([]byte, 1<<20)), "region": {piece}} {
		b.Run(name, func(b *testing.B) {
			var seg Segment
			b.ReportAllocs()
			for b.Loop() {
				if !s.NextSegment(1414, &seg) {
					_ = s.SendTagged(1, 0, 0, g, 1)
					continue
				}
				s.Acked()
			}
		})
		b.Run(name+" in runs", func(b *testing.B) {
			var seg Segment
			var run Run
			b.ReportAllocs()
			for left := 0; b.Loop(); {
				if left--; left > 0 {
					continue
				}
				if left = s.NextRun(1414, 8, &run); left > 0 {
					for i := range left {
						run.PutHeader(i, seg.Header[:])
					}
					s.AckedRun(left)
				} else if !s.NextSegment(1414, &seg) {
					_ = s.SendTagged(1, 0, 0, g, 1)
				} else {
					s.Acked()
				}
			}
		})
	}
}

func BenchmarkLookup(b *testing.B) {
	tab := NewTable(new(entropy))
	tags := make([]STag, 100_000)
	for i := range tags {
		r := must.Get(tab.Register(Spec{}))(b)
		tags[i] = r.STag()
	}
	b.Run("found", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if tab.Lookup(tags[i]) == nil {
				b.Fatal("lost")
			}
			if i++; i == len(tags) {
				i = 0
			}
		}
	})
	b.Run("made up by a peer", func(b *testing.B) {
		s := STag(1)
		for b.Loop() {
			tab.Lookup(s)
			s = s*1664525 + 1013904223
		}
	})
}

func BenchmarkRegister(b *testing.B) {
	tab := NewTable(new(entropy))
	b.ReportAllocs()
	for b.Loop() {
		r := must.Get(tab.Register(Spec{}))(b)
		_ = tab.Deregister(r)
	}
}
