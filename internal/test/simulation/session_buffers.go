package simulation

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
)

// sessionBuffers is the memory of one side of a lane. The sessions of the lane use it one after the
// other.
type sessionBuffers struct {
	src, target, sink, echo, win *slots
	readable                     area
	recv                         []area
	words                        area
}

// slots are equal parts of one area.
type slots struct {
	all  area
	size int
	free []int
}

const recvs = 8

func newRoom(m *memory, slot int) *sessionBuffers {
	r := &sessionBuffers{
		src: newSlots(m, 8, slot), target: newSlots(m, 6, slot), sink: newSlots(m, 4, slot),
		echo: newSlots(m, 3, (slot+7)&^7), win: newSlots(m, 2, slot),
		readable: m.allocArea(slot), words: m.allocAligned(8 * 4),
	}
	for range recvs {
		r.recv = append(r.recv, m.allocArea(slot))
	}
	return r
}

// allAreas lists all of it.
func (r *sessionBuffers) allAreas() []area {
	list := []area{r.src.all, r.target.all, r.sink.all, r.echo.all, r.win.all, r.readable, r.words}
	return append(list, r.recv...)
}

// recvArea is the area from the first receive to the last.
func (r *sessionBuffers) recvArea() area {
	first, last := r.recv[0], r.recv[recvs-1]
	return area{first.m, first.off, last.off + last.n - first.off}
}

// clearBuffers makes the room ready for a session.
func (r *sessionBuffers) clearBuffers() {
	for _, s := range []*slots{r.src, r.target, r.sink, r.echo, r.win} {
		s.free = s.free[:0]
		for i := range s.all.n / s.size {
			s.free = append(s.free, i)
		}
	}
}

// closeBuffers says that nothing may write to the room any more.
func (r *sessionBuffers) closeBuffers() {
	for _, a := range r.allAreas() {
		a.markLoose(false)
	}
}

func newSlots(m *memory, count, size int) *slots {
	return &slots{all: m.allocAligned(count * size), size: size}
}

func (s *slots) takeSlot() (area, bool) {
	if len(s.free) == 0 {
		return area{n: -1}, false
	}
	i := s.free[0]
	s.free = s.free[1:]
	return s.all.subArea(i*s.size, s.size), true
}

func (s *slots) giveBack(a area) { s.free = append(s.free, (a.off-s.all.off)/s.size) }

// atomicWords is memory for the atomics of one QP's peer: what each of them finds is known when it
// is posted.
type atomicWords struct {
	area   area
	r      *ddp.Region
	model  [4]uint64   // once all that was posted is carried out
	values [][4]uint64 // before each of those that have not completed
}

func newWords(l *workload) *atomicWords {
	x := &atomicWords{area: l.buffers.words}
	x.r = l.registerArea(x.area, ddp.RemoteAtomic, l.w.rand.Uint64()>>1, 0)
	x.area.fillRandom()
	for i := range x.model {
		x.model[i] = binary.NativeEndian.Uint64(x.area.actualBytes()[8*i:])
	}
	return x
}

func wordOctets(model [4]uint64) []byte {
	var b []byte
	for _, v := range model {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

// noteCompleted takes note of a completed atomic; with none under way, memory must be as the model.
func (x *atomicWords) noteCompleted() {
	if x.values = x.values[1:]; len(x.values) == 0 {
		x.area.expectExactly(wordOctets(x.model), "atomics")
	}
}

// endSession is called when the session is over: some of those that have not completed were carried
// out, the first ones and none twice.
func (x *atomicWords) endSession() {
	for _, m := range append(x.values, x.model) {
		if string(wordOctets(m)) == string(x.area.actualBytes()) {
			x.area.expectExactly(wordOctets(m), "atomics")
			return
		}
	}
	x.area.m.w.failf("%s: words are %x: not what some of %d atomics have made of %x", x.area.m.h.name,
		x.area.actualBytes(),
		len(x.values), x.area.expectedBytes())
}
