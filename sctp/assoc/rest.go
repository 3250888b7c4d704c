package assoc

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// halves are the sending and the receiving half of an association: more than a third of its memory, of which hardly anything is needed while there is no DATA. So an
// association that has sent and received none for RestAfter, or none yet, rests: it has no halves. It gets them back when something has to do with DATA again;
// HEARTBEATs and probes of the MTU do without.
//
// Where there are very many associations, each page of memory that they lie on takes the processor longer to find than to read. So the halves take half a page, with what the
// runtime puts before them, and never lie on two; and in them there is room for what a short message needs on its way out, and in.
type halves struct {
	sender   tx.Sender
	receiver rx.Receiver
	_        [page/2 - header - unsafe.Sizeof(tx.Sender{}) - unsafe.Sizeof(rx.Receiver{})]byte
}

// page is how long a page is, or a part of it, and header what the runtime puts before an object of that length that has pointers.
const (
	page   = 4096
	header = 8
)

// rested is what there is instead.
type rested struct {
	sender   tx.Rest
	receiver rx.Rest
}

// RestAfter is how long an association has sent and received no DATA when PollTransmit has it rest.
const RestAfter = 10 * time.Second

// Rests says whether the association has no halves.
func (a *Assoc) Rests() bool { return a.halves.Load() == nil }

// sender is the sending half. There is one from then on, and a receiving half too, until rest.
func (a *Assoc) sender() *tx.Sender {
	if h := a.halves.Load(); h != nil {
		return &h.sender
	}
	return a.wake()
}

// ready returns the halves, which are empty if there were none.
func (a *Assoc) ready() *halves {
	if a.Rests() {
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
	a.recv.Init(r.receiver.Config(a.receiving(0)))
	a.recv.Resume(&r.receiver)
	*r = rested{}
	return &h.sender
}

// idle says that there is reason to rest.
func (a *Assoc) idle(now rawio.Time) bool {
	return now.Sub(a.moved) >= RestAfter || a.stats.DataIn == 0 && a.DataSent() == 0
}

// Rest begins a rest now, if nothing would be lost by that, and says whether the association rests.
func (a *Assoc) Rest() bool {
	if a.Rests() {
		return true
	}
	h := a.halves.Load()
	if a.state != Established || a.unsettled || a.continues || len(a.failing) > 0 || !h.sender.Rests() {
		return false
	}
	if h.receiver.Trim(); !h.receiver.Rests() {
		return false
	}
	a.rested = rested{h.sender.Rest(), h.receiver.Rest()}
	a.recv = nil
	a.halves.Store(nil)
	return true
}

// outstanding is how many DATA chunks are.
func (a *Assoc) outstanding() int {
	if a.Rests() {
		return 0
	}
	return a.sender().Outstanding()
}
