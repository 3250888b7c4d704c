package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// readerRole is the right to read the link. The receive goroutine has it by default. A goroutine
// that is about to wait for a packet asks for the role, and reads the link itself. So the packet
// wakes that goroutine directly, without another one in between. On its way out it leaves the role
// free, because it usually returns at once. Handing the role over each time would cost as much as
// is won. If it does not return, a timer makes the receive goroutine take over. A goroutine that
// was late does not get the role again, unless readers of the link are usually quick. One may have
// lost the processor for a while. No caller gets the role while many packets come for several:
// these are handled while the program handles what they bring.
type readerRole struct {
	interrupter rawio.Interrupter // nil: the receive goroutine always reads
	state       atomic.Int32

	readMu       sync.Mutex             // held by the holder of the role, for Close
	rx           receiver               // guarded by readMu, but for the policy
	err          error                  // guarded by readMu: the link is good for nothing more
	readerSignal atomic.Pointer[signal] // of the goroutine that reads, while that may block

	handOverCh chan struct{} // the receive goroutine hands over the role
	summonCh   chan struct{} // one token: it has to take the role
	closeCh    chan struct{} // closed by Close
	endedCh    chan struct{} // closed when it has ended

	leftAt atomicTime // when it was last left free
	// readers that were back soon, less slowReturnCost for each other; its writer has the role
	promptScore  atomic.Int32
	summonTimer  *time.Timer // calls it
	timerRunning atomic.Bool // the timer is
}

// States of a role.
const (
	roleReceiver  int32 = iota // the receive goroutine has it
	roleRequested              // and another goroutine waits for it to be handed over
	roleCaller                 // another goroutine has it
	roleFree                   // no goroutine has it
	roleEnded                  // the link is gone
)

// maxLeftAlone is how long the link may be left alone by a reader that was quick before.
const maxLeftAlone = 10 * time.Millisecond

// promptScore is from 0 to maxPromptScore.
const (
	maxPromptScore = 64
	slowReturnCost = 16
)

func (u *readerRole) init(t *Transport) {
	if rawio.FeaturesOf(t.link)&rawio.Interruptible != 0 {
		u.interrupter, _ = t.link.(rawio.Interrupter)
	}
	u.handOverCh, u.summonCh = make(chan struct{}), make(chan struct{}, 1)
	u.closeCh, u.endedCh = make(chan struct{}), make(chan struct{})
	u.rx = newReceiver(t, t.link, rawio.FeaturesOf(t.link)&rawio.Waitable != 0)
	u.rx.waitSignal = &u.readerSignal
	u.rx.flushesOnWait = u.rx.policy.FlushOnWait(t)
	u.summonTimer = time.AfterFunc(time.Hour, u.checkLeftAlone)
	u.summonTimer.Stop()
}

// receiveLoop is the receive goroutine.
func (t *Transport) receiveLoop() {
	u := &t.readerRole
	defer close(u.endedCh)
	for {
		u.readMu.Lock()
		var err error
		for err == nil && !u.state.CompareAndSwap(roleRequested, roleCaller) {
			err = u.readBatch()
			u.rx.threadPin.setPinned(u.rx.policy.KeepsThread() && t.readsInKernel)
		}
		u.rx.threadPin.unpinThread()
		u.readMu.Unlock()
		if err != nil {
			u.state.Store(roleEnded)
			return
		}
		u.handOverCh <- struct{}{}
		for ok := false; !ok; ok = u.state.CompareAndSwap(roleFree, roleReceiver) {
			select {
			case <-u.summonCh:
			case <-u.closeCh:
				return
			}
		}
	}
}

// takeRole asks for the role on behalf of a goroutine. lends says that callers may have it at all,
// quick that this one is back soon. One that is not quick gets a free role if readers usually are.
// Without the role the caller has to wait for others.
func (u *readerRole) takeRole(lends, quick bool) bool {
	switch {
	case u.interrupter == nil:
		return false
	case !lends, !quick && u.promptScore.Load() < slowReturnCost:
		if u.state.Load() == roleFree {
			u.summonReceiver()
		}
		return false
	case u.state.CompareAndSwap(roleFree, roleCaller):
		u.scorePrompt(quick)
		return true
	case !quick, !u.state.CompareAndSwap(roleReceiver, roleRequested):
		return false // the receive goroutine reads, or another
	}
	u.interrupter.Interrupt()
	select {
	case <-u.handOverCh:
		return true
	case <-u.endedCh:
		return false
	}
}

// scorePrompt counts how soon the new holder of the role was back.
func (u *readerRole) scorePrompt(quick bool) {
	if n := u.promptScore.Load(); !quick {
		u.promptScore.Store(max(n-slowReturnCost, 0))
	} else if n < maxPromptScore {
		u.promptScore.Store(n + 1)
	}
}

// leaveRole gives the role up.
func (u *readerRole) leaveRole(now rawio.Time) {
	if u.rx.flushesOnWait {
		u.rx.t.setReaderFlushes(false)
	}
	u.leftAt.Store(now)
	u.state.Store(roleFree)
	if u.rx.policy.LendLimit() == 0 {
		u.summonReceiver()
	} else if !u.timerRunning.Load() && !u.timerRunning.Swap(true) {
		u.summonTimer.Reset(maxLeftAlone)
	}
}

// summonReceiver makes the receive goroutine take the role, unless another goroutine has it.
func (u *readerRole) summonReceiver() {
	select {
	case u.summonCh <- struct{}{}:
	default:
	}
}

// checkLeftAlone is the timer's function. A reader that is away now may have been here meanwhile.
func (u *readerRole) checkLeftAlone() {
	u.timerRunning.Store(false) // before it looks: a reader that leaves now starts the timer again
	if u.state.Load() != roleFree {
		return
	}
	rest := maxLeftAlone - u.rx.t.now().Sub(u.leftAt.Load())
	if rest <= 0 {
		u.summonReceiver()
	} else if !u.timerRunning.Swap(true) {
		u.summonTimer.Reset(rest)
	}
}

// closeRole waits until the link is read no more. The link is closed. Its reader gets an error at
// once and gives back its receive buffers, so closeRole reads at least once. A link that does not
// keep to that is left alone after a second: closeRole is false then.
func (u *readerRole) closeRole() bool {
	close(u.closeCh)
	patience := time.NewTimer(abortTimeout)
	defer patience.Stop()
	select {
	case <-u.endedCh:
	case <-patience.C:
		return false
	}
	u.readMu.Lock()
	for u.err == nil {
		u.err = u.readBatch()
	}
	u.state.Store(roleEnded)
	u.readMu.Unlock()
	u.summonTimer.Stop()
	return true
}

// readBatch waits for packets and handles them. After an error the link is good for nothing more.
func (u *readerRole) readBatch() error {
	u.err = u.rx.runBatch(u.rx.waitBatch())
	return u.err
}
