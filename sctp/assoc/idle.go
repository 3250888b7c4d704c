package assoc

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// idleState is what an idle association has instead of the halves.
type idleState struct {
	sender   tx.IdleState
	receiver rx.IdleState
}

// idleExtensions is what it has beside where extensions were agreed on.
type idleExtensions struct {
	sender   *tx.IdleExtensions
	receiver *rx.IdleExtensions
}

// Held returns the octets of memory behind it.
func (x idleExtensions) Held() int { return x.sender.Held() + x.receiver.Held() }

// IdleAfter is how long an association has sent and received no DATA when PollTransmit makes it
// idle.
const IdleAfter = 10 * time.Second

// IsIdle says whether the association has no halves.
func (a *Assoc) IsIdle() bool { return a.dataState.Load() == nil }

// restoreDataState ends the idle state.
func (a *Assoc) restoreDataState() *tx.Sender {
	h, r := a.ensureDataState(), &a.idleState
	a.initSender(&h.sender)
	for _, p := range a.paths {
		_ = h.sender.AddPath(&p.Path) // it has as many as before
	}
	h.sender.RestoreFrom(&r.sender)
	if a.rareState != nil {
		h.sender.RestoreExtensions(a.rareState.extensions.sender)
	}
	a.recv = &h.receiver
	a.recv.Init(r.receiver.Config(a.receiverConfig(0)))
	a.recv.RestoreFrom(&r.receiver)
	if a.rareState != nil {
		a.recv.RestoreExtensions(a.rareState.extensions.receiver)
		a.rareState.extensions = idleExtensions{}
	}
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
	if x := (idleExtensions{h.sender.IdleExtensions(), h.receiver.IdleExtensions()}); x != (idleExtensions{}) {
		a.ensureRareState().extensions = x
	}
	if s := a.protection(); s != nil {
		s.compact()
	}
	a.idleState = idleState{h.sender.IdleState(), h.receiver.IdleState()}
	a.recv = nil
	a.dataState.Store(nil)
	return true
}
