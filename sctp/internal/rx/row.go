package rx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A row is packets that came together, with one DATA chunk each and in order, of which none asks for more than the one before it. They are either all placed, or
// all fragments in the middle of one message.

// Row says whether DATA from the next TSN on, each in a packet of its own and placed, would be admitted, and ask for nothing but to be counted: nothing was lost of late, so that
// nothing is missing, and nothing is held.
func (r *Receiver) Row() bool {
	return !r.squeezed && !r.shrinks() && r.reasm.Empty() && r.ack.plain()
}

// PlacedRow is Admit and Placed for unordered DATA of n packets of which Row has said so.
func (r *Receiver) PlacedRow(n int) {
	r.track.Skip(n)
	_ = r.reasm.Check(r.track.Cum()) // nothing is held that could be wrong
}

// RowDone is PacketDone for n packets that PlacedRow or Continue has taken.
func (r *Receiver) RowDone(now rawio.Time, n int) { r.ack.PacketsDone(now, n) }

// Middle says whether a message is in assembly to which fragments from the next TSN on, each in a packet of its own, may be added by Continue: nothing was lost of late, so that
// nothing is missing, and all that has come last is of it. For a receiver of which nothing is placed.
func (r *Receiver) Middle() (unordered, ok bool) {
	m := r.reasm.held.edge
	if m == nil || r.squeezed || !r.ack.plain() {
		return false, false
	}
	return m.Unordered, true
}

// Continue is Admit and Queue, where Middle has said so, for the next fragment, which neither begins nor ends a message. It returns false, and has not taken it, where it is of another
// message, or asks for more than to be added to that.
func (r *Receiver) Continue(d wire.Data, buf *rawio.Buf) bool {
	n := len(d.Payload())
	if !r.reasm.continues(d) || r.reasm.spills(r.reasm.held.edge.Size+n, r.aside(), r.cfg.Partial) {
		return false
	}
	r.track.Skip(1)
	r.credit = max(r.credit-n, 0)
	r.reading.came += n
	r.reasm.extend(d, buf)
	return true
}

// continues says whether a fragment that neither begins nor ends a message is of the one that the cumulative TSN ends in, and there is room for it, in the buffer and in that message.
func (r *Reassembly) continues(d wire.Data) bool {
	m := r.held.edge
	return same(d, m) && r.Window() > 0 && m.Offset+m.Size+len(d.Payload()) < r.maxMessage
}

// extend is Add for such a fragment.
func (r *Reassembly) extend(d wire.Data, buf *rawio.Buf) {
	m := r.held.edge
	m.append(r.store.keep(d.Payload(), buf))
	m.last++
	r.held.base = m.last
	r.used += len(d.Payload())
	*r.steps++
}
