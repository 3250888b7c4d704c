package assoc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// halves are the sending and the receiving half of an association: more than a third of its memory, of which hardly anything is needed while there is no DATA. So an
// association that has sent and received none for RestAfter, or none yet, rests: it has no halves. It gets them back when something has to do with DATA again;
// HEARTBEATs and probes of the MTU do without.
type halves struct {
	sender   tx.Sender
	receiver rx.Receiver
}

// rested is what there is instead.
type rested struct {
	sender   tx.Rest
	receiver rx.Rest
}

// RestAfter is how long an association has sent and received no DATA when PollTransmit has it rest.
const RestAfter = 10 * time.Second

// rests says whether the association has no halves.
func (a *Assoc) rests() bool { return a.halves.Load() == nil }

// sender is the sending half. There is one from then on, and a receiving half too, until rest.
func (a *Assoc) sender() *tx.Sender {
	if h := a.halves.Load(); h != nil {
		return &h.sender
	}
	return a.wake()
}

// ready returns the halves, which are empty if there were none.
func (a *Assoc) ready() *halves {
	if a.rests() {
		a.halves.Store(new(halves))
	}
	return a.halves.Load()
}

// wake ends a rest.
func (a *Assoc) wake() *tx.Sender {
	h, r := a.ready(), &a.rested
	a.beginSender(&h.sender)
	for _, p := range a.paths {
		_ = h.sender.AddPath(&p.Path) // it has as many as before
	}
	h.sender.Resume(&r.sender)
	a.recv = &h.receiver
	*a.recv = *rx.NewReceiver(r.receiver.Config(a.receiving(0)))
	a.recv.Resume(&r.receiver)
	*r = rested{}
	return &h.sender
}

// restIfIdle begins a rest if there is reason.
func (a *Assoc) restIfIdle(now rawio.Time) {
	if now.Sub(a.moved) >= RestAfter || a.stats.DataIn == 0 && a.DataSent() == 0 {
		a.Rest()
	}
}

// Rest begins a rest now, if nothing would be lost by that, and says whether the association rests.
func (a *Assoc) Rest() bool {
	if a.rests() {
		return true
	}
	h := a.halves.Load()
	if a.state != Established || a.unsettled || a.continues || len(a.failing) > 0 || !h.sender.Rests() {
		return false
	}
	if h.receiver.Trim(); !h.receiver.Rests() {
		return false
	}
	a.steps += h.sender.Steps() + h.receiver.Steps()
	a.rested = rested{h.sender.Rest(), h.receiver.Rest()}
	a.recv = nil
	a.halves.Store(nil)
	return true
}

// outstanding is how many DATA chunks are.
func (a *Assoc) outstanding() int {
	if a.rests() {
		return 0
	}
	return a.sender().Outstanding()
}

// Rests says whether the association rests, or is at its end: whether PollTransmit need not be called, RestAfter from now, for it to rest.
func (a *Assoc) Rests() bool { return a.rests() || a.state != Established }
