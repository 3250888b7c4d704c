package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// readerRole is the right to read the link. The receive goroutine has it, until a goroutine that is
// about to wait for what a packet brings asks for it, and reads the link itself: so the packet
// wakes that one, not another that has to wake it in turn. On the way out it leaves the turn to
// nobody, as it will be back at once, and handing the turn over each time would cost as much as is
// won. If it is not, a timer has the receive goroutine go on; who was not back soon does not get
// the turn, unless those who read the link mostly are, as somebody may have lost the processor for
// a while; nor does anybody while packets come in numbers for several, which are handled while the
// program handles what they bring.
type readerRole struct {
	interrupter rawio.Interrupter // nil: the receive goroutine always reads
	state       atomic.Int32

	readMu       sync.Mutex             // held by who has the turn, for Close
	rx           receiver               // guarded by reading, but for what its pace tells
	err          error                  // guarded by reading: the link is good for nothing more
	readerSignal atomic.Pointer[Signal] // of the goroutine that reads, while that may block

	handOverCh chan struct{} // the receive goroutine hands over the turn
	summonCh   chan struct{} // one token: it is to take the turn
	closeCh    chan struct{} // closed by Close
	endedCh    chan struct{} // closed when it has ended

	leftAt       atomicTime   // when it was left to nobody last
	promptScore  atomic.Int32 // of those who have read the link, how many were back soon, less slowReturnCost for each other; changed by who has the turn
	summonTimer  *time.Timer  // calls it
	timerRunning atomic.Bool  // the timer is
}

// States of a turn.
const (
	roleReceiver  int32 = iota // the receive goroutine has it
	roleRequested              // and somebody waits for it to be handed over
	roleCaller                 // somebody else has it
	roleFree                   // nobody has it
	roleEnded                  // the link is gone
)

// maxLeftAlone is how long the link may be left alone by one that was quick before.
const maxLeftAlone = 10 * time.Millisecond

// prompt is from 0 to maxPromptScore.
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
	if w := u.rx.waiter; w != nil {
		u.rx.waiter, u.rx.flushesOnWait = flushingWaiter{w, t}, true
	}
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
			u.rx.threadPin.setPinned(u.rx.pollPolicy.KeepsThread() && t.readsInKernel)
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

// takeRole asks for the turn on behalf of a goroutine that is to have it if any is (lends), and is
// back soon (quick), or mostly was. Without the turn the caller has to wait for others.
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

// scorePrompt counts how soon the one was back who has the turn now.
func (u *readerRole) scorePrompt(quick bool) {
	if n := u.promptScore.Load(); !quick {
		u.promptScore.Store(max(n-slowReturnCost, 0))
	} else if n < maxPromptScore {
		u.promptScore.Store(n + 1)
	}
}

// leaveRole gives the turn up.
func (u *readerRole) leaveRole(now rawio.Time) {
	if u.rx.flushesOnWait {
		u.rx.t.setReaderFlushes(false)
	}
	u.leftAt.Store(now)
	u.state.Store(roleFree)
	if u.rx.pollPolicy.LendLimit() == 0 {
		u.summonReceiver()
	} else if !u.timerRunning.Load() && !u.timerRunning.Swap(true) {
		u.summonTimer.Reset(maxLeftAlone)
	}
}

// summonReceiver has the receive goroutine take the turn, unless somebody else has.
func (u *readerRole) summonReceiver() {
	select {
	case u.summonCh <- struct{}{}:
	default:
	}
}

// checkLeftAlone is the timer's function. Who is away now may have been here meanwhile.
func (u *readerRole) checkLeftAlone() {
	u.timerRunning.Store(false) // before it looks: who leaves now starts the timer again
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

// closeRole waits until nobody reads any more. The link is closed. It gives back what it had ready
// to receive into when its reader learns of that, so there is one at least.
func (u *readerRole) closeRole() {
	close(u.closeCh)
	<-u.endedCh
	u.readMu.Lock()
	for u.err == nil {
		u.err = u.readBatch()
	}
	u.state.Store(roleEnded)
	u.readMu.Unlock()
	u.summonTimer.Stop()
}

// readBatch waits for packets and handles them. After an error the link is good for nothing more.
func (u *readerRole) readBatch() error {
	u.err = u.rx.runBatch(u.rx.waitBatch())
	return u.err
}
