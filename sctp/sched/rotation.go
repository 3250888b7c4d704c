package sched

// rotation holds the active streams in the order of their turns: a ring that grows by doubling.
type rotation struct {
	ring   []uint16
	head   int
	length int
}

func (r *rotation) at(i int) *uint16 { return &r.ring[(r.head+i)&(len(r.ring)-1)] }

// first returns the stream whose turn it is.
func (r *rotation) first() uint16 { return *r.at(0) }

// indexOf returns where a stream is, -1 if it is not there.
func (r *rotation) indexOf(stream uint16) int {
	for i := range r.length {
		if *r.at(i) == stream {
			return i
		}
	}
	return -1
}

func (r *rotation) add(stream uint16) {
	if r.length == len(r.ring) {
		ring := make([]uint16, max(4, 2*len(r.ring)))
		for i := range r.length {
			ring[i] = *r.at(i)
		}
		r.ring, r.head = ring, 0
	}
	r.length++
	*r.at(r.length - 1) = stream
}

// remove takes a stream out, wherever it is, and says whether it was there.
func (r *rotation) remove(stream uint16) bool {
	i := r.indexOf(stream)
	if i < 0 {
		return false
	}
	for ; i > 0; i-- { // those before it move up by one: mostly there are none
		*r.at(i) = *r.at(i - 1)
	}
	r.head = (r.head + 1) & (len(r.ring) - 1)
	r.length--
	return true
}

// moveToEnd gives the others their turn before a stream comes again.
func (r *rotation) moveToEnd(stream uint16) {
	if r.remove(stream) {
		r.add(stream)
	}
}
