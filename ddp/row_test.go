package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// warden is a recorder that refuses what has the RsvdULP 0xEE, and is never to be asked about no
// octets.
type warden struct {
	*recorder
	t testing.TB
}

func (w *warden) AdmitTagged(rsvd uint8, r *Region, stag STag, to uint64, n int) (Access, *Error) {
	if n <= 0 {
		w.t.Errorf("asked about %d octets", n)
	}
	if rsvd == 0xEE {
		return 0, &Error{Type: TypeLocal, Cause: errRefused}
	}
	return w.recorder.AdmitTagged(rsvd, r, stag, to, n)
}

func (w *warden) Buffer(qn, msn uint32, rsvd [5]byte) (*RecvBuffer, uint8) {
	if rsvd[0] == 0xEE {
		return nil, 0xEE
	}
	return w.recorder.Buffer(qn, msn, rsvd)
}

var errRefused, errBroken = errors.New("refused"), errors.New("broken")

// brittle is a device that breaks in the middle of a write, and is broken from then on.
type brittle struct {
	b    []byte
	left int // writes that go well
}

func (d *brittle) ReadAt(p []byte, off int64) (int, error) { return copy(p, d.b[off:]), nil }
func (d *brittle) WriteAt(p []byte, off int64) (int, error) {
	if d.left--; d.left < 0 {
		return copy(d.b[off:], p[:len(p)/2]), errBroken
	}
	return copy(d.b[off:], p), nil
}

// rowSide is a rig with memory of all kinds to place to.
type rowSide struct {
	*rig
	memory  [5][]byte
	regions []*Region
	devices [2]*brittle
	buffers [][]byte
}

const rowMemory = 6000

// rowBase is the TO where a region begins, of which one is near the end of all.
var rowBase = [...]uint64{1000, 1<<64 - rowMemory - 500, 0, 70}

// newRowSide returns one whose devices break after so many writes.
func newRowSide(t testing.TB, left [2]int) *rowSide {
	s := &rowSide{rig: newRig(t)}
	s.Stream.ulp = &warden{s.rig.ulp, t}
	for i := range s.memory {
		s.memory[i] = make([]byte, rowMemory)
	}
	const rights = LocalWrite | RemoteWrite
	s.devices = [2]*brittle{{s.memory[2], left[0]}, {s.memory[4], left[1]}}
	for i, mem := range []Memory{Bytes(s.memory[0]), Bytes(s.memory[1]), Device(s.devices[0], rowMemory),
		Bytes(s.memory[3])} {
		s.regions = append(s.regions, s.registerRegion(t, Spec{PD: testPD, Mem: mem, Base: rowBase[i], Access: rights}))
	}
	s.regions = append(s.regions,
		must.Get(s.table.Bind(s.regions[0], Window{PD: testPD, Stream: testStream, Off: 500, Len: 3000,
			Base: rowBase[3], Access: RemoteWrite}))(t),
		s.registerRegion(t, Spec{PD: testPD, Mem: Bytes(s.memory[0]), Access: RemoteRead}),
		s.registerRegion(t, Spec{PD: testPD + 1, Mem: Bytes(s.memory[0]), Access: rights}))
	own, err := s.Resolve(s.regions[3].STag(), rowBase[3], 700, LocalWrite)
	must.That(t, err == nil, "%v", err)
	for qn, q := range s.ulp.queues {
		for i := range 3 {
			b := make([]byte, 1800)
			s.buffers = append(s.buffers, b)
			g := gatherOf(b[:900], b[900:])
			if qn == 1 {
				g = append(g, Piece{Mem: Device(s.devices[1], rowMemory), Off: uint64(2000 * i), Len: 700})
			} else if qn == 2 {
				g = append(g, own)
			}
			must.OK(t, q.Post(must.Get(MakeRecvBuffer(g, uint64(10*qn+i)))(t)))
		}
	}
	return s
}

// sameWritten says whether what has been written to the memory of both sides is the same.
func (s *rowSide) sameWritten(other *rowSide) bool {
	for i, b := range s.memory {
		if !bytes.Equal(b, other.memory[i]) {
			return false
		}
	}
	for i, b := range s.buffers {
		if !bytes.Equal(b, other.buffers[i]) {
			return false
		}
	}
	return true
}

// peer cuts messages into segments, and does what it should not now and then.
type peer struct {
	*rand.Rand
	msn  [4]uint32
	wild int // one of so many segments is not as it should be
}

func (p *peer) cutMessages(tags []STag) (list [][]byte) {
	step, rsvd := 50+p.IntN(300), uint8(p.IntN(4))
	if p.IntN(100) == 0 {
		rsvd = 0xEE
	}
	var segment func(last bool, at, n int) []byte
	size := p.IntN(2000)
	if p.IntN(2) == 0 {
		i := p.IntN(len(tags))
		if p.IntN(20) > 0 {
			i = p.IntN(4) // one that may be written to
		}
		tag, base := tags[i], rowBase[min(i, 3)]
		if i == 4 {
			base = rowBase[3]
		}
		to := base + uint64(p.IntN(2500))
		switch p.IntN(60) {
		case 0:
			to = base - uint64(p.IntN(1000))
		case 1:
			to = base + rowMemory - uint64(p.IntN(2000))
		}
		segment = func(last bool, at, n int) []byte { return taggedSeg(last, rsvd, tag, to+uint64(at), patternOf(n)) }
	} else {
		qn, wrong := uint32(p.IntN(3)), p.IntN(100) == 0
		if wrong {
			qn = 3
		}
		p.msn[qn]++
		msn := p.msn[qn]
		if p.IntN(100) == 0 {
			msn += p.Uint32N(4) - 1
		}
		if p.IntN(50) == 0 {
			size += 1000
		}
		segment = func(last bool, at, n int) []byte {
			b := untaggedSeg(last, qn, msn, uint32(at), patternOf(n))
			b[1] = rsvd
			return b
		}
	}
	for at := 0; at < size || at == 0; at += step {
		list = append(list, segment(at+step >= size, at, min(step, size-at)))
	}
	return list
}

// spoilSegments does to a list of segments what the network does, or a peer that errs.
func (p *peer) spoilSegments(list [][]byte) [][]byte {
	for i := 0; i < len(list); i++ {
		if p.IntN(p.wild) > 0 {
			continue
		}
		b := bytes.Clone(list[i])
		switch p.IntN(14) {
		case 0:
			b[0] ^= 1 // the version
		case 1:
			b[0] ^= flagLast
		case 2:
			b[0] ^= 4 // a reserved bit
		case 3:
			b[1] = 0xEE
		case 4:
			b[1]++
		case 5:
			b[5]++ // the STag, or the last octet of RsvdULP
		case 6:
			b = b[:p.IntN(len(b)+1)]
		case 7:
			b = b[:min(len(b), Control(b[0]).HeaderLen())]
		case 8:
			b[13]++ // the MSN, or the TO
		case 9:
			copy(list[i:], list[i+1:]) // lost, and the last comes twice
			continue
		case 10, 11, 12:
			if i > 0 {
				list[i], list[i-1] = list[i-1], list[i]
			}
			continue
		default:
			b = b[:min(len(b), Control(b[0]).HeaderLen()+p.IntN(9))]
		}
		list[i] = b
	}
	return list
}

// What PlaceRow does is what Place and Deliver do for each, one after the other, whatever segments
// come.
func TestRowIsWhatPlaceAndDeliverDo(t *testing.T) {
	rows, faults, broken, seeds := 0, 0, 0, 600
	if testing.Short() {
		seeds = 100
	}
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(5041, seed))
		left := [2]int{rnd.IntN(30), rnd.IntN(12)}
		one, many := newRowSide(t, left), newRowSide(t, left)
		p := peer{Rand: rnd, wild: 10 << rnd.IntN(7)}
		var tags []STag
		for i, r := range one.regions {
			tags = append(tags, r.STag())
			must.Equal(t, "STag", many.regions[i].STag(), r.STag())
		}
		tags = append(tags, 77)
		var list [][]byte
		for range 12 {
			list = append(list, p.cutMessages(tags)...)
		}
		list = p.spoilSegments(list)
		revoked, begun := false, false // begun: some of a segment may be in many's memory, and is for Place
		if seed%50 == 0 {
			one.receiving, many.receiving = false, false
		}
		for i := 0; i < len(list); {
			what := rnd.IntN(200)
			if begun {
				what = -1
			}
			switch what {
			case 0:
				revoked = true
				one.regions[3].Invalidate()
				many.regions[3].Invalidate()
			case 1:
				one.regions[0].Invalidate()
				many.regions[0].Invalidate()
			case 2:
				if rnd.IntN(4) == 0 {
					one.HalfClosed()
					many.HalfClosed()
				}
			}
			row := list[i:min(len(list), i+1+rnd.IntN(16))]
			before := many.devices[0].left + many.devices[1].left
			n := many.PlaceRow(row)
			failed := many.devices[0].left < 0 || many.devices[1].left < 0
			must.That(t, n >= 0 && n <= len(row) && (n != 1 || failed || revoked), "seed %d: %d of a row of %d", seed,
				n, len(row))
			must.That(t, n > 0 || failed || revoked || many.devices[0].left+many.devices[1].left == before,
				"seed %d: none placed, and written to", seed)
			if begun = n > 0 && (failed || revoked); n > 1 {
				rows++
			}
			if n > 0 && failed {
				broken++
			}
			if n == 0 {
				n = 1
				many.deliverSegment(row[0])
			}
			for _, seg := range row[:n] {
				one.deliverSegment(seg)
			}
			i += n
			must.Equal(t, "whether segments are taken", many.receiving, one.receiving)
			if one.receiving {
				must.That(t, many.taggedMsg == one.taggedMsg, "seed %d: delivering %+v, want %+v", seed,
					many.taggedMsg, one.taggedMsg)
			}
			for qn := range one.recvRanges {
				must.That(t, many.recvRanges[qn] == one.recvRanges[qn], "seed %d: queue %d has %+v, want %+v", seed,
					qn, many.recvRanges[qn], one.recvRanges[qn])
				must.Equal(t, "messages that have begun", many.ulp.queues[qn].InProcess(),
					one.ulp.queues[qn].InProcess())
			}
			must.That(t, begun || many.sameWritten(one), "seed %d: the memory differs behind segment %d", seed, i)
		}
		must.That(t, many.sameWritten(one), "seed %d: the memory differs", seed)
		check.Slice(t, "what the ULP hears", many.ulp.log, one.ulp.log)
		if one.ulp.fault != nil {
			faults++
			must.That(t, many.ulp.fault != nil && *many.ulp.fault == *one.ulp.fault, "seed %d: fault %+v, want %+v",
				seed, many.ulp.fault, one.ulp.fault)
		}
	}
	check.That(t, rows > 3*seeds && faults > seeds/3 && broken > seeds/60,
		"%d rows, %d faults and %d broken devices only", rows, faults, broken)
}

// rowLab is a stream that has a region of a thousand octets at 100, and buffers of two hundred.
type rowLab struct {
	*rig
	memory, buffer []byte
	region         *Region
}

func newRowLab(t testing.TB) *rowLab {
	l := &rowLab{rig: newRig(t), memory: make([]byte, 1000), buffer: make([]byte, 200)}
	l.Stream.ulp = &warden{l.ulp, t}
	l.region = l.registerRegion(t, Spec{PD: testPD, Mem: Bytes(l.memory), Base: 100, Access: RemoteWrite})
	l.postBuffer(t, 0, 1, l.buffer)
	return l
}

// taggedRow is a row of n segments of 100 octets at to.
func (l *rowLab) taggedRow(n int, to uint64) (row [][]byte) {
	for i := range uint64(n) {
		row = append(row, taggedSeg(false, 9, l.region.STag(), to+100*i, patternOf(100)))
	}
	return row
}

// untaggedRow is a row of n segments of 20 octets of the first message.
func (l *rowLab) untaggedRow(n int, mo uint32) (row [][]byte) {
	for i := range uint32(n) {
		row = append(row, untaggedSeg(false, 0, 1, mo+20*i, patternOf(20)))
	}
	return row
}

// A row ends in front of a segment that is not alike, and there is none of what Place would refuse.
func TestWhereARowOfSegmentsEnds(t *testing.T) {
	with := func(row [][]byte, i int, change func(b []byte) []byte) [][]byte {
		row[i] = change(row[i])
		return row
	}
	last := func(b []byte) []byte { b[0] |= flagLast; return b }
	octet := func(at int) func(b []byte) []byte { return func(b []byte) []byte { b[at]++; return b } }
	short := func(n int) func(b []byte) []byte { return func(b []byte) []byte { return b[:n] } }
	all := func(row [][]byte, change func(b []byte) []byte) [][]byte {
		for i := range row {
			row = with(row, i, change)
		}
		return row
	}
	for _, row := range []struct {
		name string
		row  func(l *rowLab) [][]byte
		want int
	}{
		{"none", func(l *rowLab) [][]byte { return nil }, 0},
		{"a segment of no octets", func(l *rowLab) [][]byte { return [][]byte{{}, {}} }, 0},

		{"all", func(l *rowLab) [][]byte { return l.taggedRow(10, 100) }, 10},
		{"two", func(l *rowLab) [][]byte { return l.taggedRow(2, 100) }, 2},
		{"one", func(l *rowLab) [][]byte { return l.taggedRow(1, 100) }, 0},
		{"the end of the region", func(l *rowLab) [][]byte { return l.taggedRow(2, 900) }, 2},
		{"beyond the end of the region", func(l *rowLab) [][]byte { return l.taggedRow(2, 901) }, 0},
		{"in front of the region", func(l *rowLab) [][]byte { return l.taggedRow(2, 99) }, 0},
		{"wraps", func(l *rowLab) [][]byte { return l.taggedRow(3, 1<<64-150) }, 0},
		{"the last", func(l *rowLab) [][]byte { return with(l.taggedRow(5, 100), 4, last) }, 4},
		{"the last of two", func(l *rowLab) [][]byte { return with(l.taggedRow(2, 100), 1, last) }, 0},
		{"messages of one segment", func(l *rowLab) [][]byte { return all(l.taggedRow(5, 100), last) }, 0},
		{"a reserved bit", func(l *rowLab) [][]byte {
			return with(l.taggedRow(5, 100), 2, func(b []byte) []byte { b[0] |= 4; return b })
		}, 2},
		{"another version", func(l *rowLab) [][]byte { return all(l.taggedRow(5, 100), octet(0)) }, 0},
		{"another RsvdULP", func(l *rowLab) [][]byte { return with(l.taggedRow(5, 100), 3, octet(1)) }, 3},
		{"another STag", func(l *rowLab) [][]byte { return with(l.taggedRow(5, 100), 3, octet(5)) }, 3},
		{"no region", func(l *rowLab) [][]byte { return all(l.taggedRow(5, 100), octet(5)) }, 0},
		{"a gap", func(l *rowLab) [][]byte { return append(l.taggedRow(3, 100), l.taggedRow(3, 401)...) }, 3},
		{"what was there", func(l *rowLab) [][]byte { return append(l.taggedRow(3, 100), l.taggedRow(3, 300)...) }, 3},
		{"no payload", func(l *rowLab) [][]byte { return with(l.taggedRow(5, 100), 3, short(TaggedHeaderLen)) }, 3},
		{"no payload at all", func(l *rowLab) [][]byte {
			return [][]byte{l.taggedRow(1, 100)[0][:TaggedHeaderLen], l.taggedRow(1, 100)[0][:TaggedHeaderLen]}
		}, 0},
		{"a short header", func(l *rowLab) [][]byte { return with(l.taggedRow(5, 100), 3, short(5)) }, 3},
		{"an empty one", func(l *rowLab) [][]byte { return with(l.taggedRow(5, 100), 3, short(0)) }, 3},
		{"a short header first", func(l *rowLab) [][]byte { return with(l.taggedRow(5, 100), 0, short(5)) }, 0},
		{"the ULP refuses", func(l *rowLab) [][]byte {
			return all(l.taggedRow(5, 100), func(b []byte) []byte { b[1] = 0xEE; return b })
		}, 0},
		{"not the right", func(l *rowLab) [][]byte { l.ulp.need = RemoteRead; return l.taggedRow(5, 100) }, 0},
		{"revoked", func(l *rowLab) [][]byte { l.region.Invalidate(); return l.taggedRow(5, 100) }, 0},
		{"the peer has closed", func(l *rowLab) [][]byte { l.HalfClosed(); l.ulp.log = nil; return l.taggedRow(5, 100) }, 0},
		{"over", func(l *rowLab) [][]byte { l.Abort(); return l.taggedRow(5, 100) }, 0},

		{"all untagged", func(l *rowLab) [][]byte { return l.untaggedRow(10, 0) }, 10},
		{"two untagged", func(l *rowLab) [][]byte { return l.untaggedRow(2, 0) }, 2},
		{"one untagged", func(l *rowLab) [][]byte { return l.untaggedRow(1, 0) }, 0},
		{"one untagged before another", func(l *rowLab) [][]byte { return append(l.untaggedRow(1, 0), l.untaggedRow(3, 40)...) }, 0},
		{"one tagged before another", func(l *rowLab) [][]byte { return append(l.taggedRow(1, 100), l.taggedRow(3, 300)...) }, 0},
		{"untagged before tagged", func(l *rowLab) [][]byte { return append(l.untaggedRow(3, 0), l.taggedRow(3, 100)...) }, 3},
		{"too long for the buffer", func(l *rowLab) [][]byte { return l.untaggedRow(11, 0) }, 0},
		{"a message that goes on", func(l *rowLab) [][]byte {
			must.Equal(t, "the first row", l.PlaceRow(l.untaggedRow(3, 0)), 3)
			return l.untaggedRow(3, 60)
		}, 3},
		{"a message from its middle", func(l *rowLab) [][]byte { return l.untaggedRow(3, 20) }, 0},
		{"what has come", func(l *rowLab) [][]byte { l.deliverSegment(l.untaggedRow(1, 0)[0]); return l.untaggedRow(3, 0) }, 0},
		{"one stands apart", func(l *rowLab) [][]byte {
			l.deliverSegment(l.untaggedRow(1, 60)[0])
			return l.untaggedRow(2, 0)
		}, 0},
		{"the last untagged", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 4, last) }, 4},
		{"untagged messages of one segment", func(l *rowLab) [][]byte { return all(l.untaggedRow(5, 0), last) }, 0},
		{"another RsvdULP, untagged", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 3, octet(5)) }, 3},
		{"another QN", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 3, octet(9)) }, 3},
		{"no such QN", func(l *rowLab) [][]byte {
			return all(l.untaggedRow(5, 0), func(b []byte) []byte { b[9] = 3; return b })
		}, 0},
		{"another MSN", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 3, octet(13)) }, 3},
		{"an MSN whose turn it is not", func(l *rowLab) [][]byte {
			l.postBuffer(t, 0, 2, make([]byte, 200))
			return all(l.untaggedRow(5, 0), octet(13))
		}, 5},
		{"an MSN that was", func(l *rowLab) [][]byte {
			return all(l.untaggedRow(5, 0), func(b []byte) []byte { b[13]--; return b })
		}, 0},
		{"another MO", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 3, octet(17)) }, 3},
		{"another control field", func(l *rowLab) [][]byte {
			return with(l.untaggedRow(5, 0), 2, func(b []byte) []byte { b[0] |= 4; return b })
		}, 2},
		{"no buffer", func(l *rowLab) [][]byte {
			return all(l.untaggedRow(5, 0), func(b []byte) []byte { b[9] = 1; return b })
		}, 0},
		{"the ULP has none", func(l *rowLab) [][]byte {
			return all(l.untaggedRow(5, 0), func(b []byte) []byte { b[1] = 0xEE; return b })
		}, 0},
		{"no payload, untagged", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 3, short(UntaggedHeaderLen)) }, 3},
		{"a short header, untagged", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 3, short(7)) }, 3},
		{"a short header first, untagged", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 0, short(7)) }, 0},
		{"no payload first, untagged", func(l *rowLab) [][]byte { return with(l.untaggedRow(5, 0), 0, short(UntaggedHeaderLen)) }, 0},
	} {
		l := newRowLab(t)
		segs := row.row(l)
		check.Equal(t, row.name, l.PlaceRow(segs), row.want)
		check.Equal(t, row.name+": what the ULP hears", len(l.ulp.log), 0)
		placed := len(bytes.Trim(l.memory, "\x00")) > 0
		check.That(t, placed == (row.want > 0 && Control(segs[0][0]).Tagged()), "%s: placed in the region: %v",
			row.name, placed)
	}
}

// A Stream without a lower layer places no row.
func TestNoRowBeforeAttach(t *testing.T) {
	l := newRowLab(t)
	l.receiving = false
	check.Equal(t, "tagged", l.PlaceRow(l.taggedRow(5, 100)), 0)
	check.Equal(t, "untagged", l.PlaceRow(l.untaggedRow(5, 0)), 0)
	check.That(t, isZero(l.memory) && isZero(l.buffer), "something was placed")
}

// A row is placed as a whole where its octets belong, and the message goes on behind it.
func TestMessageInRows(t *testing.T) {
	l := newRowLab(t)
	want := patternOf(100)
	must.Equal(t, "the first row", l.PlaceRow(l.taggedRow(3, 200)), 3)
	must.Equal(t, "the second row", l.PlaceRow(l.taggedRow(2, 500)), 2)
	l.deliverSegment(taggedSeg(true, 8, l.region.STag(), 700, patternOf(7)))
	check.That(t, bytes.Equal(l.memory[100:607], append(bytes.Repeat(want, 5), patternOf(7)...)), "the region has %x",
		l.memory)
	check.That(t, isZero(l.memory[:100]) && isZero(l.memory[607:]), "the region has %x", l.memory)
	must.Equal(t, "the first untagged row", l.PlaceRow(l.untaggedRow(3, 0)), 3)
	must.Equal(t, "the second untagged row", l.PlaceRow(l.untaggedRow(2, 60)), 2)
	l.deliverSegment(untaggedSeg(true, 0, 1, 100, patternOf(9)))
	check.That(t, bytes.Equal(l.buffer[:109], append(bytes.Repeat(want[:20], 5), patternOf(9)...)) &&
		isZero(l.buffer[109:]), "the buffer has %x", l.buffer)
	l.ulp.checkLog(t, "tagged rsvd=0x8 stag="+hexOf(l.region.STag())+" to=200 len=507",
		"untagged qn=0 msn=1 rsvd=0102030405 len=109 token=1")
}

// As many pieces stand apart as may: a row is one segment after the other, of which the first is
// too much.
func TestNoRowBeyondManyPieces(t *testing.T) {
	l := newRowLab(t)
	for i := range uint32(maxGapSpans) {
		l.deliverSegment(untaggedSeg(false, 0, 1, 10+10*i, patternOf(1)))
	}
	must.Equal(t, "a row", l.PlaceRow(l.untaggedRow(3, 120)), 0)
	check.That(t, isZero(l.buffer[120:]), "it was placed")
	l.deliverSegment(l.untaggedRow(1, 120)[0])
	must.That(t, l.ulp.fault != nil, "no fault")
	check.Equal(t, "octets of the segment", l.ulp.fault.SegmentLen, UntaggedHeaderLen+20)
}

// Of a row in which a write fails, those before are placed and delivered, and the others are for
// Place.
func TestRowEndsWhereAWriteFails(t *testing.T) {
	for left := range 5 {
		for _, tagged := range []bool{true, false} {
			l := newRowLab(t)
			dev := &brittle{make([]byte, 1000), left}
			reg := l.registerRegion(t, Spec{PD: testPD, Mem: Device(dev, 1000), Access: RemoteWrite})
			must.OK(t, l.ulp.queues[1].Post(must.Get(MakeRecvBuffer(Gather{{Mem: Device(dev, 1000), Len: 1000}}, 1))(
				t)))
			var row [][]byte
			for i := range uint32(4) {
				if tagged {
					row = append(row, taggedSeg(false, 0, reg.STag(), uint64(10*i), patternOf(10)))
				} else {
					row = append(row, untaggedSeg(false, 1, 1, 10*i, patternOf(10)))
				}
			}
			n := l.PlaceRow(row)
			check.Equal(t, "segments placed", n, min(left, 4))
			if tagged {
				check.Equal(t, "octets of the message", l.taggedMsg.length, uint64(10*n))
			} else {
				check.Equal(t, "octets of the message", l.recvRanges[1].contiguous, uint64(10*n))
			}
			check.Equal(t, "what the ULP hears", len(l.ulp.log), 0)
		}
	}
}

func TestRowAllocatesNothing(t *testing.T) {
	l := newRowLab(t)
	tagged, untagged := l.taggedRow(10, 100), l.untaggedRow(10, 0)
	check.Equal(t, "allocations for a tagged row", testing.AllocsPerRun(100, func() {
		if l.PlaceRow(tagged) != len(tagged) {
			t.Fatal("no row")
		}
	}), 0)
	check.Equal(t, "allocations for an untagged row", testing.AllocsPerRun(100, func() {
		if l.recvRanges[0].resetForNext(); l.PlaceRow(untagged) != len(untagged) {
			t.Fatal("no row")
		}
	}), 0)
}

func hexOf(tag STag) string { return fmt.Sprintf("%#x", uint32(tag)) }
