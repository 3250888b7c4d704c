package assoc

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// dataState are the sending and the receiving half of an association: more than a third of its
// memory, of which hardly anything is needed while there is no DATA. So an association that has
// sent and received none for IdleAfter, or none yet, rests: it has no halves. It gets them back
// when something has to do with DATA again; HEARTBEATs and probes of the MTU do without.
//
// Where there are very many associations, each page of memory that they lie on takes the processor
// longer to find than to read. So the halves take half a page, with what the runtime puts before
// them, and never lie on two; and in them there is room for what a short message needs on its way
// out, and in.
type dataState struct {
	sender   tx.Sender
	receiver rx.Receiver
	_        [pageSize/2 - objectHeaderSize - unsafe.Sizeof(tx.Sender{}) - unsafe.Sizeof(rx.Receiver{})]byte
}

// page is how long a page is, or a part of it, and header what the runtime puts before an object of
// that length that has pointers.
const (
	pageSize         = 4096
	objectHeaderSize = 8
)

// idleState is what there is instead.
type idleState struct {
	sender   tx.IdleState
	receiver rx.IdleState
}

// IdleAfter is how long an association has sent and received no DATA when PollTransmit has it rest.
const IdleAfter = 10 * time.Second

// IsIdle says whether the association has no halves.
func (a *Assoc) IsIdle() bool { return a.dataState.Load() == nil }

// sender is the sending half. There is one from then on, and a receiving half too, until rest.
func (a *Assoc) sender() *tx.Sender {
	if h := a.dataState.Load(); h != nil {
		return &h.sender
	}
	return a.restoreDataState()
}

// ensureDataState returns the halves, which are empty if there were none.
func (a *Assoc) ensureDataState() *dataState {
	if a.IsIdle() {
		a.dataState.Store(new(dataState))
	}
	return a.dataState.Load()
}

// restoreDataState ends a rest.
func (a *Assoc) restoreDataState() *tx.Sender {
	h, r := a.ensureDataState(), &a.idleState
	a.initSender(&h.sender)
	for _, p := range a.paths {
		_ = h.sender.AddPath(&p.Path) // it has as many as before
	}
	h.sender.RestoreFrom(&r.sender)
	a.recv = &h.receiver
	a.recv.Init(r.receiver.Config(a.receiverConfig(0)))
	a.recv.RestoreFrom(&r.receiver)
	*r = idleState{}
	return &h.sender
}

// mayGoIdle says that there is reason to rest.
func (a *Assoc) mayGoIdle(now rawio.Time) bool {
	return now.Sub(a.lastDataAt) >= IdleAfter || a.stats.DataIn == 0 && a.DataSent() == 0
}

// GoIdle begins a rest now, if nothing would be lost by that, and says whether the association
// rests.
func (a *Assoc) GoIdle() bool {
	if a.IsIdle() {
		return true
	}
	h := a.dataState.Load()
	if a.state != Established || a.hasUnackedSends || a.burstContinues || len(a.failedSenders) > 0 || !h.sender.CanIdle() {
		return false
	}
	if h.receiver.Trim(); !h.receiver.CanIdle() {
		return false
	}
	a.idleState = idleState{h.sender.IdleState(), h.receiver.IdleState()}
	a.recv = nil
	a.dataState.Store(nil)
	return true
}

// outstandingChunks is how many DATA chunks are.
func (a *Assoc) outstandingChunks() int {
	if a.IsIdle() {
		return 0
	}
	return a.sender().Outstanding()
}
