package simulation

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// sharedCounter is memory that all QPs and the local user of a host count in at once: each finds
// another value.
type sharedCounter struct {
	area  area
	r     *ddp.Region
	adds  int
	maybe int // of the adds, those that ended with their session
	seen  map[uint64]bool
}

func newTally(h *Host) *sharedCounter {
	t := &sharedCounter{area: h.mem.allocAligned(8), seen: make(map[uint64]bool)}
	binary.NativeEndian.PutUint64(t.area.actualBytes(), 0)
	t.r = t.area.newRegion(ddp.RemoteAtomic, h.w.rand.Uint64()>>1, 0)
	t.area.allowWrites()
	return t
}

// noteFound takes the value that an addition met.
func (t *sharedCounter) noteFound(v uint64) {
	if t.seen[v] || v >= uint64(t.adds) {
		t.area.m.w.recordViolation(Twice, t.area.m.h, "counter at %d met once more after %d additions", v, t.adds)
	}
	t.seen[v] = true
}

// addLocally counts for the host's own user.
func (t *sharedCounter) addLocally() {
	t.adds++
	old, err := t.r.Atomic(0, ddp.FetchAdd(1))
	if err != nil {
		t.area.m.w.failf("%s: local addition: %v", t.area.m.h.name, err)
	}
	t.noteFound(old)
}

// checkCount compares the counter with the number of additions, when none is under way.
func (t *sharedCounter) checkCount() {
	if v := binary.NativeEndian.Uint64(t.area.actualBytes()); v > uint64(t.adds) || v < uint64(t.adds-t.maybe) {
		t.area.m.w.failf("%s: counter is %d after %d additions, %d of them not completed", t.area.m.h.name, v, t.adds,
			t.maybe)
	}
}

// postAtomic posts an Atomic Operation: on the peer's words, or an addition to its host's tally.
func (l *workload) postAtomic() bool {
	if !l.hasRoomFor(1) || l.q.core.ORD() == 0 {
		return false
	}
	rnd := l.w.rand
	wr := l.newRequest(rdmap.WRAtomic)
	o := postedOp{opcode: rdmap.WCAtomic, src: area{n: -1}}
	if rnd.IntN(3) == 0 {
		t := l.peer.q.h.sharedCounter
		t.adds++
		o.tally = t
		wr.Atomic, wr.RemoteSTag, wr.RemoteTO = ddp.FetchAdd(1), t.r.STag(), t.r.Base()
		if rnd.IntN(4) == 0 {
			l.q.h.sharedCounter.addLocally()
		}
		return l.submitOp(wr, o)
	}
	x := l.peer.words
	i := rnd.IntN(len(x.model))
	before, old := x.model, x.model[i]
	switch rnd.IntN(5) {
	case 0:
		wr.Atomic = ddp.FetchAdd(rnd.Uint64())
		x.model[i] += wr.Atomic.Data
	case 1: // two fields of 32 bits
		wr.Atomic = ddp.AtomicOp{Data: rnd.Uint64(), Mask: 1<<63 | 1<<31}
		x.model[i] = uint64(uint32(old)+uint32(wr.Atomic.Data)) | uint64(uint32(old>>32)+uint32(wr.Atomic.Data>>32))<<32
	case 2: // Swap
		wr.Atomic = ddp.AtomicOp{Swap: true, Data: rnd.Uint64(), Mask: ^uint64(0), Compare: rnd.Uint64()}
		x.model[i] = wr.Atomic.Data
	case 3: // some bits, if some bits are right
		wr.Atomic = ddp.AtomicOp{Swap: true, Data: rnd.Uint64(), Mask: rnd.Uint64(),
			Compare: old ^ uint64(rnd.IntN(2))<<rnd.IntN(64), CompareMask: rnd.Uint64()}
		right := true
		for bit := uint64(1); bit != 0; bit <<= 1 {
			right = right && (wr.Atomic.CompareMask&bit == 0 || wr.Atomic.Compare&bit == old&bit)
		}
		for bit := uint64(1); bit != 0 && right; bit <<= 1 {
			if wr.Atomic.Mask&bit != 0 {
				x.model[i] = x.model[i]&^bit | wr.Atomic.Data&bit
			}
		}
	default:
		wr.Atomic = ddp.CmpSwap(old+uint64(rnd.IntN(2)), rnd.Uint64())
		if wr.Atomic.Compare == old {
			x.model[i] = wr.Atomic.Data
		}
	}
	x.values = append(x.values, before)
	x.area.allowWrites()
	o.words, o.original = x, old
	wr.RemoteSTag, wr.RemoteTO = x.r.STag(), x.r.Base()+uint64(8*i)
	return l.submitOp(wr, o)
}

// checkAnswer judges a completed atomic. wc is its own completion, nil if it has none.
func (o *postedOp) checkAnswer(w *World, wc *rdmap.WC) {
	switch {
	case wc == nil:
	case o.tally != nil:
		o.tally.noteFound(wc.Original)
	case wc.Original != o.original:
		w.recordViolation(Octets, nil, "atomic %d met %#x, want %#x", o.id, wc.Original, o.original)
	}
	if o.words != nil {
		o.words.noteCompleted()
	}
}

// postImmediate posts Immediate Data, alone or behind a Write.
func (l *workload) postImmediate() bool {
	if !l.hasRoomFor(2) || l.peer.credits == 0 {
		return false
	}
	rnd := l.w.rand
	msg := &message{imm: true, value: rnd.Uint64(), solicited: rnd.IntN(3) == 0}
	o := postedOp{opcode: rdmap.WCImm, src: area{n: -1}}
	wr := l.newRequest(rdmap.WRImm)
	if rnd.IntN(2) == 0 {
		if !l.prepareWrite(wr, &o) {
			return false
		}
		wr.Op, o.places = rdmap.WRWriteImm, 2
	}
	if msg.solicited {
		wr.Op++ // the same with Solicited Event
	}
	wr.Immediate = msg.value
	l.expectMessage(msg)
	return l.submitOp(wr, o)
}
