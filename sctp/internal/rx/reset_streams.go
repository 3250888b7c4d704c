package rx

import (
	"cmp"
	"slices"

	"github.com/rddp-go/rddp/internal/sparse"
	"github.com/rddp-go/rddp/sctp/internal/tsnset"
	"github.com/rddp-go/rddp/sctp/wire"
)

// AddStreams adds streams (RFC 6525 section 5.2.5).
func (r *Receiver) AddStreams(n int) { r.reassembly.inStreams += n }

// ResetStreams makes 0 the next SSN that is expected of some streams, for DATA with TSNs beyond
// after (RFC 6525 section 5.2.2, E3). No list means all streams. All DATA up to after has come, so
// that a message which still waits is an error, a *ViolationError.
func (r *Receiver) ResetStreams(list []wire.StreamID, after wire.TSN) error {
	if r.isFrozen() {
		r.aside.marks = append(r.aside.marks, resetMark{after: after, streams: list})
		return nil
	}
	return r.reassembly.resetStreams(list, after)
}

// resetStreams is ResetStreams for what is not frozen.
func (r *Reassembly) resetStreams(list []wire.StreamID, after wire.TSN) error {
	for len(r.streams.due) > 0 { // they come before the reset
		r.deliverDue()
	}
	if r.interleaves() {
		return r.resetInterleaved(list, after)
	}
	if m := r.byLastTSN.endsAtBase; m != nil && m.firstTSN.LessEq(after) && isListed(list, m.Stream) {
		return &ViolationError{m.firstTSN, "a stream is reset in the middle of a message"}
	}
	if list == nil {
		if r.outOfOrder.count > 0 {
			return &ViolationError{after, "all streams are reset before an SSN has come"}
		}
		r.forgetStreams()
		return nil
	}
	for _, id := range list {
		*r.workSteps++
		switch s := r.streams.table.At(uint16(id)); {
		case s == nil:
		case s.hasWaiting:
			return &ViolationError{after, "a stream is reset before an SSN has come"}
		default:
			s.nextSSN = 0
		}
	}
	return nil
}

func isListed(list []wire.StreamID, id wire.StreamID) bool {
	return list == nil || slices.Contains(list, id)
}

// forgetStreams has all streams begin with SSN 0. Nothing waits for an SSN.
func (r *Reassembly) forgetStreams() {
	r.streams = streamStates{}
	if r.outOfOrder = (outOfOrderMessages{}); r.ext != nil {
		r.ext.waiting = sparse.Table[orderedQueue]{}
	}
	if r.interleaves() {
		r.ext.interleaving.mids = sparse.Table[nextMIDs]{}
	}
}

// RestartTSN expects the peer to go on with TSN first, and with SSN 0 in all streams (RFC 6525
// section 5.2.4, G4 and G5). What was sent before and is complete becomes ready, in the order of
// its streams. What is incomplete is dropped. It ends Freeze. After an error, a *ViolationError or
// ErrMessageTooBig, the association is to be aborted.
func (r *Receiver) RestartTSN(first wire.TSN) error {
	isGivenUp := false
	if last, cum := first-1, r.tracker.Cum(); r.isFrozen() {
		isGivenUp = r.aside.isGivenUp
		isFar := uint32(cum-last) >= tsnset.MaxWindow && uint32(last-cum) >= tsnset.MaxWindow
		if err := r.thaw(&resetMark{after: last, restarts: true, isFar: isFar}); err != nil {
			return err
		}
	} else {
		r.reassembly.restart(first)
	}
	switch cum, last := r.tracker.Cum(), first-1; {
	case uint32(cum-last) < tsnset.MaxWindow: // some of it may have come already
	case uint32(last-cum) < tsnset.MaxWindow:
		r.tracker.Forward(last)
	default:
		r.tracker, r.hadGaps = *NewTracker(first), false
	}
	if err := r.checkThawed(isGivenUp); err != nil || !r.reassembly.interleaves() {
		return err
	}
	r.reassembly.dropRests()
	return nil
}

// restart is RestartTSN for the messages that are held.
func (r *Reassembly) restart(first wire.TSN) {
	for m := r.byLastTSN.firstIncomplete(); m != nil; m = r.byLastTSN.firstIncomplete() {
		r.byLastTSN.take(m.lastTSN)
		if r.partial.message == m {
			r.CutOff()
		}
		r.Release(m)
	}
	if r.interleaves() {
		r.dropAllOpen(r.dropOpen) // the rest of them will not come
	}
	var list []*Message
	note := func(m *Message) { list = append(list, m) }
	if r.outOfOrder.forEach(note); r.ext != nil {
		for _, w := range r.ext.waiting.All {
			w.tree.forEach(note)
		}
	}
	slices.SortFunc(list, func(a, b *Message) int {
		return cmp.Or(cmp.Compare(a.Stream, b.Stream), cmp.Compare(int32(a.order-b.order), 0))
	})
	*r.workSteps += uint64(len(list))
	for _, m := range list {
		switch m.children, m.level = [2]*Message{}, 0; {
		case m.isPlaceholder:
			r.freePlaceholder(m)
		case r.interleaves():
			r.pushReadyInStream(m)
		default:
			r.pushReady(m)
		}
	}
	if r.forgetStreams(); r.interleaves() {
		r.ext.interleaving.hasRestarted, r.ext.interleaving.index = true, pieceIndex{}
	}
	r.byLastTSN = lastTSNIndex{baseTSN: first - 1, restTSN: first}
}

// isRest says whether m is of the rest of a message that the peer has begun with old TSNs. Nothing
// in RFC 6525 keeps a reset of TSNs from the middle of a message: libusrsctp goes on with the rest.
// It is dropped, as what was under way.
func (h *lastTSNIndex) isRest(m *Message) bool {
	return h.restTSN != 0 && !m.hasBegin && m.firstTSN == h.restTSN
}

// dropRest drops a part of the rest. Its stream does not wait for it: the peer has given it a new
// SSN.
func (r *Reassembly) dropRest(m *Message) {
	r.byLastTSN.take(m.lastTSN)
	if r.byLastTSN.restTSN = m.lastTSN + 1; m.hasEnd {
		r.byLastTSN.restTSN = 0
	}
	if m.hasEnd && !m.Unordered {
		r.MarkDelivered(m.Stream, m.SSN, m.firstTSN)
	}
	r.Release(m)
}
