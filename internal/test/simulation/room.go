package simulation

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
)

// room is the memory of one side of a lane. The sessions of the lane use it one after the other.
type room struct {
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

func newRoom(m *memory, slot int) *room {
	r := &room{
		src: newSlots(m, 8, slot), target: newSlots(m, 6, slot), sink: newSlots(m, 4, slot),
		echo: newSlots(m, 3, (slot+7)&^7), win: newSlots(m, 2, slot),
		readable: m.alloc(slot), words: m.allocAligned(8 * 4),
	}
	for range recvs {
		r.recv = append(r.recv, m.alloc(slot))
	}
	return r
}

// areas lists all of it.
func (r *room) areas() []area {
	list := []area{r.src.all, r.target.all, r.sink.all, r.echo.all, r.win.all, r.readable, r.words}
	return append(list, r.recv...)
}

// receives is the area from the first receive to the last.
func (r *room) receives() area {
	first, last := r.recv[0], r.recv[recvs-1]
	return area{first.m, first.off, last.off + last.n - first.off}
}

// clear makes the room ready for a session.
func (r *room) clear() {
	for _, s := range []*slots{r.src, r.target, r.sink, r.echo, r.win} {
		s.free = s.free[:0]
		for i := range s.all.n / s.size {
			s.free = append(s.free, i)
		}
	}
}

// close says that nothing may write to the room any more.
func (r *room) close() {
	for _, a := range r.areas() {
		a.mark(false)
	}
}

func newSlots(m *memory, count, size int) *slots {
	return &slots{all: m.allocAligned(count * size), size: size}
}

func (s *slots) take() (area, bool) {
	if len(s.free) == 0 {
		return area{n: -1}, false
	}
	i := s.free[0]
	s.free = s.free[1:]
	return s.all.sub(i*s.size, s.size), true
}

func (s *slots) give(a area) { s.free = append(s.free, (a.off-s.all.off)/s.size) }

// words is memory for the atomics of one QP's peer: what each of them finds is known when it is
// posted.
type words struct {
	area  area
	r     *ddp.Region
	model [4]uint64   // once all that was posted is carried out
	past  [][4]uint64 // before each of those that have not completed
}

func newWords(l *load) *words {
	x := &words{area: l.room.words}
	x.r = l.register(x.area, ddp.RemoteAtomic, l.w.rand.Uint64()>>1, 0)
	x.area.fill()
	for i := range x.model {
		x.model[i] = binary.NativeEndian.Uint64(x.area.bytes()[8*i:])
	}
	return x
}

func octets(model [4]uint64) []byte {
	var b []byte
	for _, v := range model {
		b = binary.NativeEndian.AppendUint64(b, v)
	}
	return b
}

// done takes note of a completed atomic; with none under way, memory must be as the model.
func (x *words) done() {
	if x.past = x.past[1:]; len(x.past) == 0 {
		x.area.settle(octets(x.model), "atomics")
	}
}

// end is called when the session is over: some of those that have not completed were carried out,
// the first ones and none twice.
func (x *words) end() {
	for _, m := range append(x.past, x.model) {
		if string(octets(m)) == string(x.area.bytes()) {
			x.area.settle(octets(m), "atomics")
			return
		}
	}
	x.area.m.w.failf("%s: words are %x: not what some of %d atomics have made of %x", x.area.m.h.name, x.area.bytes(),
		len(x.past), x.area.expected())
}
