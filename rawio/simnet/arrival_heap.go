package simnet

import "github.com/rddp-go/rddp/rawio"

// scheduledPacket is a packet on its way, as it will be delivered.
type scheduledPacket struct {
	arrivesAt rawio.Time
	seq       uint64 // order of scheduling, which breaks ties
	link      *link  // the direction that the packet, or the packet a report is about, took
	pkt       rawio.Packet
}

func (f *scheduledPacket) isBefore(g *scheduledPacket) bool {
	return f.arrivesAt < g.arrivesAt || (f.arrivesAt == g.arrivesAt && f.seq < g.seq)
}

// arrivalHeap is a binary heap, earliest first.
type arrivalHeap []scheduledPacket

func (h *arrivalHeap) push(f scheduledPacket) {
	*h = append(*h, f)
	s := *h
	i := len(s) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !f.isBefore(&s[up]) {
			break
		}
		s[i] = s[up]
		i = up
	}
	s[i] = f
}

// pop takes the earliest packet of a heap that is not empty.
func (h *arrivalHeap) pop() scheduledPacket {
	s := *h
	first, last := s[0], s[len(s)-1]
	s[len(s)-1] = scheduledPacket{}
	s = s[:len(s)-1]
	*h = s
	if len(s) == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(s) {
			break
		}
		if down+1 < len(s) && s[down+1].isBefore(&s[down]) {
			down++
		}
		if !s[down].isBefore(&last) {
			break
		}
		s[i] = s[down]
		i = down
	}
	s[i] = last
	return first
}
