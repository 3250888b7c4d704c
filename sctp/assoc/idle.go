package assoc

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// dataState holds the sending and the receiving half of an association. They are more than a third
// of its memory, and hardly needed while there is no DATA. So an association that has sent and
// received none for IdleAfter, or none yet, has no halves. It gets them back when something has to
// do with DATA again. HEARTBEATs and MTU probes do without.
//
// With very many associations, the processor takes longer to find a page of memory than to read it.
// So the halves, with the runtime's header, take half a page and never lie on two. They have space
// for what a short message needs on its way out, and in.
type dataState struct {
	sender   tx.Sender
	receiver rx.Receiver
	_        [pageSize/2 - objectHeaderSize - unsafe.Sizeof(tx.Sender{}) - unsafe.Sizeof(rx.Receiver{})]byte
}

// page is the length of a page, or a part of it. header is what the runtime puts before an object
// of that length that has pointers.
const (
	pageSize         = 4096
	objectHeaderSize = 8
)

// idleState is what an idle association has instead of the halves.
type idleState struct {
	sender   tx.IdleState
	receiver rx.IdleState
}

// IdleAfter is how long an association has sent and received no DATA when PollTransmit makes it
// idle.
const IdleAfter = 10 * time.Second

// IsIdle says whether the association has no halves.
func (a *Assoc) IsIdle() bool { return a.dataState.Load() == nil }

// sender returns the sending half. From then on there is one, and a receiving half too, until
// GoIdle.
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

// restoreDataState ends the idle state.
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

// mayGoIdle says whether there is reason to become idle.
func (a *Assoc) mayGoIdle(now rawio.Time) bool {
	return now.Sub(a.lastDataAt) >= IdleAfter || a.stats.DataIn == 0 && a.DataSent() == 0
}

// GoIdle makes the association idle now, if nothing would be lost by that. It says whether the
// association is idle.
func (a *Assoc) GoIdle() bool {
	if a.IsIdle() {
		return true
	}
	h := a.dataState.Load()
	if a.state != Established || a.send.hasUnackedSends || a.send.burstContinues || len(a.failedSenders()) > 0 ||
		!h.sender.CanIdle() {
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

// outstandingChunks returns how many DATA chunks are outstanding.
func (a *Assoc) outstandingChunks() int {
	if a.IsIdle() {
		return 0
	}
	return a.sender().Outstanding()
}
