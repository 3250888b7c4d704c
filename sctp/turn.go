package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// turn is the right to read the link. The receive goroutine has it, until a goroutine that is about to wait
// for what a packet brings asks for it, and reads the link itself: so the packet wakes that one, not another
// that has to wake it in turn. On the way out it leaves the turn to nobody, as it will be back at
// once, and handing the turn over each time would cost as much as is won. If it is not, a timer has the receive goroutine
// go on; who was not back soon does not get the turn, unless those who read the link mostly are, as somebody may have lost the processor for a while; nor does anybody
// while packets come in numbers for several, which are handled while the program handles what they bring.
type turn struct {
	link  rawio.Interrupter // nil: the receive goroutine always reads
	state atomic.Int32

	reading sync.Mutex             // held by who has the turn, for Close
	rx      receiver               // guarded by reading, but for what its pace tells
	err     error                  // guarded by reading: the link is good for nothing more
	reader  atomic.Pointer[Signal] // of the goroutine that reads, while that may block

	given chan struct{} // the receive goroutine hands over the turn
	call  chan struct{} // one token: it is to take the turn
	end   chan struct{} // closed by Close
	over  chan struct{} // closed when it has ended

	free    atomicTime   // when it was left to nobody last
	prompt  atomic.Int32 // of those who have read the link, how many were back soon, less promptCost for each other; changed by who has the turn
	timer   *time.Timer  // calls it
	running atomic.Bool  // the timer is
}

// States of a turn.
const (
	turnReceiver int32 = iota // the receive goroutine has it
	turnAsked                 // and somebody waits for it to be handed over
	turnTaken                 // somebody else has it
	turnFree                  // nobody has it
	turnOver                  // the link is gone
)

// leftAlone is how long the link may be left alone by one that was quick before.
const leftAlone = 10 * time.Millisecond

// prompt is from 0 to promptMost.
const (
	promptMost = 64
	promptCost = 16
)

func (u *turn) init(t *Transport) {
	if rawio.FeaturesOf(t.link)&rawio.Interruptible != 0 {
		u.link, _ = t.link.(rawio.Interrupter)
	}
	u.given, u.call = make(chan struct{}), make(chan struct{}, 1)
	u.end, u.over = make(chan struct{}), make(chan struct{})
	u.rx = newReceiver(t, t.link, rawio.FeaturesOf(t.link)&rawio.Waitable != 0)
	u.rx.waits = &u.reader
	if w := u.rx.waiter; w != nil {
		u.rx.waiter, u.rx.collects = collector{w, t}, true
	}
	u.timer = time.AfterFunc(time.Hour, u.late)
	u.timer.Stop()
}

// receive is the receive goroutine.
func (t *Transport) receive() {
	u := &t.turn
	defer close(u.over)
	for {
		u.reading.Lock()
		var err error
		for err == nil && !u.state.CompareAndSwap(turnAsked, turnTaken) {
			err = u.read()
			u.rx.thread.keep(u.rx.pace.Keeps() && t.blocks)
		}
		u.rx.thread.release()
		u.reading.Unlock()
		if err != nil {
			u.state.Store(turnOver)
			return
		}
		u.given <- struct{}{}
		for ok := false; !ok; ok = u.state.CompareAndSwap(turnFree, turnReceiver) {
			select {
			case <-u.call:
			case <-u.end:
				return
			}
		}
	}
}

// take asks for the turn on behalf of a goroutine that is to have it if any is (lends), and is back soon (quick), or mostly was. Without the turn the caller has to
// wait for others.
func (u *turn) take(lends, quick bool) bool {
	switch {
	case u.link == nil:
		return false
	case !lends, !quick && u.prompt.Load() < promptCost:
		if u.state.Load() == turnFree {
			u.summon()
		}
		return false
	case u.state.CompareAndSwap(turnFree, turnTaken):
		u.was(quick)
		return true
	case !quick, !u.state.CompareAndSwap(turnReceiver, turnAsked):
		return false // the receive goroutine reads, or another
	}
	u.link.Interrupt()
	select {
	case <-u.given:
		return true
	case <-u.over:
		return false
	}
}

// was counts how soon the one was back who has the turn now.
func (u *turn) was(quick bool) {
	if n := u.prompt.Load(); !quick {
		u.prompt.Store(max(n-promptCost, 0))
	} else if n < promptMost {
		u.prompt.Store(n + 1)
	}
}

// leave gives the turn up.
func (u *turn) leave(now rawio.Time) {
	if u.rx.collects {
		u.rx.t.collect(false)
	}
	u.free.Store(now)
	u.state.Store(turnFree)
	if u.rx.pace.Lends() == 0 {
		u.summon()
	} else if !u.running.Load() && !u.running.Swap(true) {
		u.timer.Reset(leftAlone)
	}
}

// summon has the receive goroutine take the turn, unless somebody else has.
func (u *turn) summon() {
	select {
	case u.call <- struct{}{}:
	default:
	}
}

// late is the timer's function. Who is away now may have been here meanwhile.
func (u *turn) late() {
	u.running.Store(false) // before it looks: who leaves now starts the timer again
	if u.state.Load() != turnFree {
		return
	}
	rest := leftAlone - u.rx.t.now().Sub(u.free.Load())
	if rest <= 0 {
		u.summon()
	} else if !u.running.Swap(true) {
		u.timer.Reset(rest)
	}
}

// close waits until nobody reads any more. The link is closed. It gives back what it had ready to receive
// into when its reader learns of that, so there is one at least.
func (u *turn) close() {
	close(u.end)
	<-u.over
	u.reading.Lock()
	for u.err == nil {
		u.err = u.read()
	}
	u.state.Store(turnOver)
	u.reading.Unlock()
	u.timer.Stop()
}

// read waits for packets and handles them. After an error the link is good for nothing more.
func (u *turn) read() error {
	u.err = u.rx.run(u.rx.next())
	return u.err
}
