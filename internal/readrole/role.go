package readrole

import (
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// Role is the right to read. A receive goroutine has it by default. A goroutine of the program that
// is about to wait asks for it, and reads itself. So what arrives wakes that goroutine directly,
// without another one in between. On its way out it leaves the role free, because it usually
// returns at once. Handing the role over each time would cost as much as is won. If it does not
// return, a timer makes the receive goroutine take over. A goroutine that was late does not get the
// role again, unless readers are usually quick. One may have lost the processor for a while.
type Role struct {
	now       func() rawio.Time
	interrupt func() // has the receive goroutine leave its read

	state        atomic.Int32
	handOver     chan struct{} // the receive goroutine hands over the role
	summoned     chan struct{} // one token: it has to take the role
	retired      chan struct{} // closed when it is gone
	leftAt       atomic.Int64  // when it was last left free
	summonTimer  *time.Timer   // calls checkLeftAlone
	timerRunning atomic.Bool

	// PromptScore counts the readers that were back soon, less SlowReturnCost for each other, from
	// 0 to MaxPromptScore. Its writer has the role.
	PromptScore atomic.Int32
}

// State is who has a Role.
type State int32

// States of a Role.
const (
	Receiver  State = iota // the receive goroutine has it
	Requested              // and another goroutine waits for it to be handed over
	Caller                 // another goroutine has it
	Free                   // no goroutine has it
	Ended                  // nothing can be read any more
)

// MaxLeftAlone is how long nobody reads after a reader that was quick before.
const MaxLeftAlone = 10 * time.Millisecond

// Of PromptScore.
const (
	MaxPromptScore = 64
	SlowReturnCost = 16
)

// Init makes it a role that the receive goroutine has. interrupt makes that goroutine leave its
// read; now is a clock that starts anywhere.
func (r *Role) Init(interrupt func(), now func() rawio.Time) {
	r.interrupt, r.now = interrupt, now
	r.handOver, r.summoned, r.retired = make(chan struct{}), make(chan struct{}, 1), make(chan struct{})
	r.summonTimer = time.AfterFunc(time.Hour, r.checkLeftAlone)
	r.summonTimer.Stop()
}

// State returns who has the role. It may change at once.
func (r *Role) State() State { return State(r.state.Load()) }

func (r *Role) swap(from, to State) bool { return r.state.CompareAndSwap(int32(from), int32(to)) }

// GrantRequest reports whether another goroutine has asked for the role, which it has then. The
// receive goroutine asks before each read. If so, it calls HandOver.
func (r *Role) GrantRequest() bool { return r.State() == Requested && r.swap(Requested, Caller) }

// HandOver wakes the goroutine whose request was granted, and waits until the receive goroutine has
// the role again. It reports false when closed is closed first.
func (r *Role) HandOver(closed <-chan struct{}) bool {
	r.handOver <- struct{}{}
	for {
		select {
		case <-r.summoned:
		case <-closed:
			return false
		}
		if r.swap(Free, Receiver) {
			return true
		}
	}
}

// End says that nothing can be read any more. Nobody reads.
func (r *Role) End() {
	r.state.Store(int32(Ended))
	r.summonTimer.Stop()
}

// Retire says that the receive goroutine is gone. It calls End first if the end is the reason.
func (r *Role) Retire() { close(r.retired) }

// Retired is closed by Retire.
func (r *Role) Retired() <-chan struct{} { return r.retired }

// Take asks for the role on behalf of a goroutine. lends says that callers may have it at all,
// quick that this one is back soon. One that is not quick gets a free role if readers usually are.
// Without the role the caller has to wait for others.
func (r *Role) Take(lends, quick bool) bool {
	switch {
	case !lends, !quick && r.PromptScore.Load() < SlowReturnCost:
		if r.State() == Free {
			r.Summon()
		}
		return false
	case r.swap(Free, Caller):
		r.scorePrompt(quick)
		return true
	case !quick, !r.swap(Receiver, Requested):
		return false // the receive goroutine reads, or another
	}
	r.interrupt()
	select {
	case <-r.handOver:
		return true
	case <-r.retired:
		return false
	}
}

// scorePrompt counts how soon the new holder of the role was back.
func (r *Role) scorePrompt(quick bool) {
	if n := r.PromptScore.Load(); !quick {
		r.PromptScore.Store(max(n-SlowReturnCost, 0))
	} else if n < MaxPromptScore {
		r.PromptScore.Store(n + 1)
	}
}

// Leave gives the role up, for the next that asks or, unless that one is soon, for the receive
// goroutine. If not lends, it is for that one at once.
func (r *Role) Leave(now rawio.Time, lends bool) {
	r.leftAt.Store(int64(now))
	r.state.Store(int32(Free))
	if !lends {
		r.Summon()
	} else if !r.timerRunning.Load() && !r.timerRunning.Swap(true) {
		r.summonTimer.Reset(MaxLeftAlone)
	}
}

// Summon makes the receive goroutine take the role, unless another goroutine has it.
func (r *Role) Summon() {
	select {
	case r.summoned <- struct{}{}:
	default:
	}
}

// checkLeftAlone is the timer's function. A reader that is away now may have been here meanwhile.
func (r *Role) checkLeftAlone() {
	r.timerRunning.Store(false) // before it looks: a reader that leaves now starts the timer again
	if r.State() != Free {
		return
	}
	rest := MaxLeftAlone - r.now().Sub(rawio.Time(r.leftAt.Load()))
	if rest <= 0 {
		r.Summon()
	} else if !r.timerRunning.Swap(true) {
		r.summonTimer.Reset(rest)
	}
}
