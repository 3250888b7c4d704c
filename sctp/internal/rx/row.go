package rx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A row is packets that came together, with one DATA chunk each and in order. None asks for more
// than the one before it. They are either all placed, or all fragments in the middle of one
// message.

// CanPlaceRow says whether DATA from the next TSN on, each in a packet of its own and placed, only
// has to be admitted and counted. That is so if nothing was lost recently, so that nothing is
// missing, and nothing is held.
func (r *Receiver) CanPlaceRow() bool {
	return !r.underPressure && r.aside == nil && !r.isShrinking() && r.reassembly.Empty() &&
		r.ackPolicy.allowsFastPath()
}

// PlacedRow is Admit and Placed for unordered DATA of n packets, after CanPlaceRow has returned
// true.
func (r *Receiver) PlacedRow(n int) {
	r.tracker.AddInOrder(n)
	_ = r.reassembly.Check(r.tracker.Cum()) // nothing is held that could be wrong
}

// RowDone is PacketDone for n packets that PlacedRow or QueueMiddle has taken.
func (r *Receiver) RowDone(now rawio.Time, n int) { r.ackPolicy.PacketsDone(now, n) }

// MidMessage says whether QueueMiddle may add fragments from the next TSN on, each in a packet of
// its own, to a message in assembly. That is so if nothing was lost recently, so that nothing is
// missing, and the last chunks are all of that message. It is for a receiver of which nothing is
// placed.
func (r *Receiver) MidMessage() (unordered, ok bool) {
	m := r.reassembly.byLastTSN.endsAtBase
	if m == nil || r.underPressure || r.aside != nil || !r.ackPolicy.allowsFastPath() {
		return false, false
	}
	return m.Unordered, true
}

// QueueMiddle is Admit and Queue for the next fragment, after MidMessage has returned true. The
// fragment neither begins nor ends a message. QueueMiddle returns false, and has not taken it, if
// it is of another message, or asks for more than to be added.
func (r *Receiver) QueueMiddle(d wire.Data, buf *rawio.Buf) bool {
	n := len(d.Payload())
	if !r.reassembly.fitsMidMessage(d) || r.reassembly.isPartialDue(r.reassembly.byLastTSN.endsAtBase.Size+n,
		r.reservedWindow(), r.cfg.PartialPoint) {
		return false
	}
	r.tracker.AddInOrder(1)
	r.advertisedWindow = max(r.advertisedWindow-n, 0)
	r.readRate.received += n
	r.reassembly.extendMessage(d, buf)
	return true
}

// fitsMidMessage says whether a fragment, which neither begins nor ends a message, is of the
// message that the cumulative TSN ends in. The buffer and that message must have room for it.
func (r *Reassembly) fitsMidMessage(d wire.Data) bool {
	m := r.byLastTSN.endsAtBase
	return isSameMessage(d, m) && r.Window() > 0 && m.Offset+m.Size+len(d.Payload()) < r.maxMessage
}

// extendMessage is Add for such a fragment.
func (r *Reassembly) extendMessage(d wire.Data, buf *rawio.Buf) {
	m := r.byLastTSN.endsAtBase
	m.appendPiece(r.keepData(d, buf))
	m.lastTSN++
	r.byLastTSN.baseTSN = m.lastTSN
	*r.workSteps++
}
