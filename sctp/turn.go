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
// go on; who was not back soon the last time does not get the turn, nor does anybody while packets come in numbers for several, which
// are handled while the program handles what they bring.
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

	timer   *time.Timer // calls it
	running atomic.Bool // the timer is
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

// take asks for the turn on behalf of a goroutine that is likely to be back soon when it has what it waits
// for, if quick. Without the turn the caller has to wait for others.
func (u *turn) take(quick bool) bool {
	switch {
	case u.link == nil:
		return false
	case !quick:
		if u.state.Load() == turnFree {
			u.summon()
		}
		return false
	case u.state.CompareAndSwap(turnFree, turnTaken):
		return true
	case !u.state.CompareAndSwap(turnReceiver, turnAsked):
		return false // another goroutine reads
	}
	u.link.Interrupt()
	select {
	case <-u.given:
		return true
	case <-u.over:
		return false
	}
}

// leave gives the turn up.
func (u *turn) leave() {
	if u.rx.collects {
		u.rx.t.collect(false)
	}
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

// late is the timer's function.
func (u *turn) late() {
	u.running.Store(false) // before it looks: who leaves now starts the timer again
	if u.state.Load() == turnFree {
		u.summon()
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
