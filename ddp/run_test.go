package ddp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// What NextRun gives is what NextSegment would, one after the other, whatever messages are made of.
func TestRunIsWhatNextSegmentGives(t *testing.T) {
	// req 5041-5.2-1, 5041-5.2-5
	runs := 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(5041, seed))
		one, many := newRig(t), newRig(t)
		memory := make([]byte, 20_000)
		for i := range memory {
			memory[i] = byte(rnd.Uint32())
		}
		var regions [2]Piece
		for i, r := range []*rig{one, many} {
			reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(memory), Access: RemoteRead})
			regions[i] = resolvedPiece(t, r.Stream, reg, 0, len(memory))
		}
		for token := range uint64(6) {
			var g [2]Gather
			for range 1 + rnd.IntN(3) {
				off := rnd.IntN(len(memory))
				n := uint64(rnd.IntN(len(memory) - off + 1))
				p := Piece{Mem: Bytes(memory), Off: uint64(off), Len: n}
				q := p
				switch rnd.IntN(6) {
				case 0:
					p.Mem = Device(&store{b: memory}, uint64(len(memory)))
					q = p
				case 1, 2:
					p, q = regions[0], regions[1]
				}
				g[0], g[1] = append(g[0], p), append(g[1], q)
			}
			tagged, to := rnd.IntN(2) == 0, rnd.Uint64()>>1
			for i, r := range []*rig{one, many} {
				if tagged {
					must.OK(t, r.SendTagged(STag(token), to, 9, g[i], token))
				} else {
					must.OK(t, r.SendUntagged(uint32(token%2), [5]byte{1, 2, 3, 4, 5}, g[i], token))
				}
			}
		}
		for out, more := 0, true; more || out > 0; {
			size := MaxHeaderLen + 1 + rnd.IntN(3000)
			var got, want [][]byte
			var run Run
			if n := many.NextRun(size, rnd.IntN(9), &run); n > 0 {
				runs++
				part := len(run.Body) / n
				must.That(t, n > 1 && n < 9 && part*n == len(run.Body) && run.HeaderLen()+part == size,
					"a run of %d with %d octets and %d of header, for segments of %d", n, len(run.Body),
					run.HeaderLen(), size)
				for i := range n {
					b := make([]byte, run.HeaderLen())
					run.PutHeader(i, b)
					got = append(got, append(b, run.Body[i*part:(i+1)*part]...))
				}
			} else {
				var seg Segment
				if more = many.NextSegment(size, &seg); more {
					got = append(got, wireBytes(&seg))
				}
			}
			for range got {
				var seg Segment
				must.That(t, one.NextSegment(size, &seg), "seed %d: more than NextSegment has", seed)
				want = append(want, wireBytes(&seg))
			}
			must.That(t, bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)), "seed %d: %x, want %x", seed, got,
				want)
			must.Equal(t, "octets that were cut", many.Cut(), one.Cut())
			must.Equal(t, "octets that are left", many.Rest(), one.Rest())
			out += len(got)
			acked := rnd.IntN(out + 1)
			for range acked {
				one.Acked()
			}
			many.AckedRun(acked)
			out -= acked
			must.Equal(t, "messages unfinished", many.Unfinished(), one.Unfinished())
		}
		many.AckedRun(5) // there is nothing
		check.That(t, many.Unfinished() == 0, "seed %d: %d messages unfinished", seed, many.Unfinished())
		check.Slice(t, "what the ULP hears", many.ulp.log, one.ulp.log)
	}
	check.That(t, runs > 300, "%d runs only", runs)
}

// A run ends in front of the last segment and of the end of a piece. There is none of a message
// whose memory is gone, or on a device, nor of a Stream that has ended.
func TestWhereARunEnds(t *testing.T) {
	const step = 100
	memory := func(lengths ...int) Gather {
		var g Gather
		for _, n := range lengths {
			g = append(g, Piece{Mem: Bytes(make([]byte, n)), Len: uint64(n)})
		}
		return g
	}
	for _, row := range []struct {
		name string
		of   Gather // nil: a region of ten segments
		then func(r *rig, reg *Region)
		n    int
		want int
	}{
		{"all but the last segment", memory(10 * step), nil, 20, 9},
		{"and an octet more", memory(10*step + 1), nil, 20, 10},
		{"as many as are asked for", memory(10 * step), nil, 3, 3},
		{"one", memory(10 * step), nil, 1, 0},
		{"fewer than none", memory(10 * step), nil, -1, 0},
		{"one and the last", memory(2 * step), nil, 20, 0},
		{"nothing", memory(0), nil, 20, 0},
		{"no message", memory(10 * step), func(r *rig, _ *Region) { r.CancelUnsent() }, 20, 0},
		{"two pieces", memory(5*step, 5*step), nil, 20, 5},
		{"two pieces that do not end with a segment", memory(5*step+1, 5*step), nil, 20, 5},
		{"a piece that is not there", Gather{{Mem: Bytes(make([]byte, 10*step)), Off: 1, Len: 10 * step}}, nil, 20, 0},
		{"a device", Gather{{Mem: Device(&store{b: make([]byte, 10*step)}, 10*step), Len: 10 * step}}, nil, 20, 0},
		{"a region", nil, nil, 20, 9},
		{"a region that was revoked", nil, func(_ *rig, reg *Region) { reg.Invalidate() }, 20, 0},
		{"a Stream that is over", memory(10 * step), func(r *rig, _ *Region) { r.Closed(nil) }, 20, 0},
		{"a Stream that is aborted", memory(10 * step), func(r *rig, _ *Region) { r.Abort() }, 20, 0},
	} {
		r := newRig(t)
		reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 10*step)), Access: RemoteRead})
		if row.of == nil {
			row.of = Gather{resolvedPiece(t, r.Stream, reg, 0, 10*step)}
		}
		err := r.SendTagged(1, 0, 0, row.of, 1)
		if row.then != nil {
			row.then(r, reg)
		}
		var run Run
		n := r.NextRun(TaggedHeaderLen+step, row.n, &run)
		check.That(t, n == row.want, "%s: a run of %d, want %d (%v)", row.name, n, row.want, err)
		check.That(t, r.NextRun(TaggedHeaderLen, row.n, &run) == 0, "%s: a run of segments without payload", row.name)
	}
}

// What lies beyond a run is asked for where memory is larger than caches: as far beyond each
// segment as for that alone.
func TestWhatLiesBeyondARun(t *testing.T) {
	b := make([]byte, 2*prefetchMinMemory)
	for _, row := range []struct{ off, n, step, at, len int }{
		{0, 8, 1400, 2800, 11200},
		{2*prefetchMinMemory - 16000, 8, 1400, 2*prefetchMinMemory - 16000 + 2800, 11200},
		{2*prefetchMinMemory - 12000, 8, 1400, 2*prefetchMinMemory - 12000 + 2800, 9200},
		{2*prefetchMinMemory - 11200, 8, 1400, 2*prefetchMinMemory - 11200 + 2800, 8400},
		{0, 2, 9000, 9000 + prefetchMaxLen, 18000},
		{2*prefetchMinMemory - 18000, 2, 9000, 2*prefetchMinMemory - 9000 + prefetchMaxLen, 9000 - prefetchMaxLen},
		{2*prefetchMinMemory - 9000, 1, 9000, 0, 0},
	} {
		p := Piece{Mem: Bytes(b), Len: 2 * prefetchMinMemory}
		body, beyond := p.sliceRun(uint64(row.off), uint64(row.n), uint64(row.step))
		check.That(t, len(body) == row.n*row.step && cap(body) == len(body) && &body[0] == &b[row.off],
			"%+v: a body of %d", row, len(body))
		if len(beyond) != row.len || row.len > 0 && &beyond[0] != &b[row.at] {
			t.Errorf("%+v: %d octets beyond", row, len(beyond))
		}
	}
	p := Piece{Mem: Bytes(b[:prefetchMinMemory-1]), Len: prefetchMinMemory - 1}
	body, beyond := p.sliceRun(0, 8, 1400)
	check.That(t, len(body) == 11200 && beyond == nil, "%d octets beyond what the caches have", len(beyond))
	tab := NewTable(new(entropy))
	reg := must.Get(tab.Register(Spec{PD: testPD, Mem: Bytes(b), Access: RemoteRead}))(t)
	s := NewStream(StreamConfig{ID: testStream, PD: testPD, Table: tab, ULP: new(recorder)})
	p = resolvedPiece(t, s, reg, 100, 20_000)
	body, beyond = p.sliceRun(5, 8, 1400)
	check.That(t, &body[0] == &b[105] && &beyond[0] == &b[2905], "%d octets of a region, %d beyond", len(body),
		len(beyond))
}

// resolvedPiece is n octets of a region, to be read.
func resolvedPiece(tb testing.TB, s *Stream, reg *Region, to, n int) Piece {
	tb.Helper()
	p, err := s.Resolve(reg.STag(), uint64(to), uint64(n), RemoteRead)
	must.That(tb, err == nil, "%v", err)
	return p
}
