package rx

import (
	"github.com/rddp-go/rddp/sctp/wire"
)

// ForwardTSN takes a FORWARD TSN (RFC 3758 section 3.6). TSNs that are missing up to the new
// cumulative TSN count as received. Messages that lack one of them are dropped, and those that have
// waited for them in their streams become ready. It returns false for a chunk that is out of date.
// PacketDone ends the packet, as with DATA.
func (r *Receiver) ForwardTSN(f wire.ForwardTSN) bool {
	if r.isFrozen() {
		return r.freezeForwardTSN(f.NewCumTSN(), wire.Chunk(f))
	}
	cum, g := r.tracker.Cum(), &r.reassembly
	if !r.forwardCumTSN(f.NewCumTSN()) {
		return false
	}
	g.skipAll(f, cum)
	return true
}

// skipAll stops waiting for the messages that a FORWARD TSN names. All TSNs up to cum had come
// before.
func (r *Reassembly) skipAll(f wire.ForwardTSN, cum wire.TSN) {
	for i := range f.NumSkips() {
		*r.workSteps++
		k := f.Skip(i)
		r.skipThrough(k.Stream, k.SSN, f.NewCumTSN(), cum)
	}
}

// GiveUpMissing counts all that is missing as given up by the peer, which will send nothing more.
// It is for a peer that may give messages up. What lacks something among frozen DATA is known when
// that is thawed.
func (r *Receiver) GiveUpMissing() {
	if r.tracker.HasGaps() {
		r.tracker.Forward(r.tracker.Highest())
	}
	if r.isFrozen() {
		r.aside.isGivenUp = true
		return
	}
	r.reassembly.giveUpMissing(r.tracker.Cum())
}

// giveUpMissing is GiveUpMissing for what is held. All up to cum has come, or is given up.
func (r *Reassembly) giveUpMissing(cum wire.TSN) {
	_ = r.Check(cum)
	if m := r.byLastTSN.endsAtBase; m != nil {
		r.abandon(m)
	}
	if r.interleaves() {
		r.dropAllOpen(r.abandonOpen)
	}
	for id, w := range r.ext.waiting.All {
		if last := w.tree.last(); last != nil {
			w.skipTo = last.order + 1
			r.markDue(wire.StreamID(id))
		}
	}
}

// forwardCumTSN moves the cumulative TSN on to t at least. It returns false if that is no step
// forward.
func (r *Receiver) forwardCumTSN(t wire.TSN) bool {
	if !r.tracker.Cum().Less(t) { // our SACK may be lost
		r.ackPolicy.NoteLoss()
		r.ackPolicy.NoteData(true)
		return false
	}
	r.ackPolicy.NoteData(false)
	r.tracker.Forward(t)
	_ = r.reassembly.Check(r.tracker.Cum()) // with mayAbandon there is no error
	r.noteRoom()
	return true
}

// Forward counts all TSNs up to t, which is beyond the cumulative one, as received, and goes on
// over those that have come.
func (k *Tracker) Forward(t wire.TSN) {
	last := t
	if k.highTSN.Less(t) {
		last = k.highTSN
	}
	k.forget(last)
	if k.cumTSN = t; last != t || t == k.highTSN {
		k.highTSN = t
		return
	}
	k.advanceCum(t)
}

// forget removes the TSNs up to t from those above the cumulative one. It looks only at such as
// have come.
func (k *Tracker) forget(t wire.TSN) {
	from, left := k.cumTSN+1, int(uint32(t-k.cumTSN))
	for {
		first, ok := k.aboveCum.Next(from, left)
		if !ok {
			return
		}
		left -= int(uint32(first - from))
		n := left
		if gap, ok := k.aboveCum.NextGap(first, left); ok {
			n = int(uint32(gap - first))
		}
		k.aboveCum.RemoveRange(first, n)
		from, left = first+wire.TSN(n), left-n
	}
}

// abandon drops a message in assembly that the peer has given up. If pieces of it were delivered,
// the reader learns that there will be no more. Its stream does not wait for it.
func (r *Reassembly) abandon(m *Message) {
	r.byLastTSN.take(m.lastTSN)
	if r.partial.message == m {
		r.CutOff()
	}
	if !m.Unordered {
		r.skipThrough(m.Stream, m.SSN, m.firstTSN, m.firstTSN-1)
	}
	*r.workSteps++
	r.ext.abandoned++
	r.Release(m)
}

// TakeAbandoned returns how many messages were dropped since the last call because the peer has
// given them up.
func (r *Receiver) TakeAbandoned() (n uint64) {
	if x := r.reassembly.ext; x != nil {
		n, x.abandoned = x.abandoned, 0
	}
	return n
}
