package sctp

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/readrole"
	"github.com/rddp-go/rddp/rawio"
)

// readerRole is the right to read the link. No caller gets it while many packets come for several:
// these are handled while the program handles what they bring.
type readerRole struct {
	readrole.Role
	interrupter rawio.Interrupter // nil: the receive goroutine always reads

	readMu       sync.Mutex             // held by the holder of the role, for Close
	rx           receiver               // guarded by readMu, but for the policy
	err          error                  // guarded by readMu: the link is good for nothing more
	readerSignal atomic.Pointer[signal] // of the goroutine that reads, while that may block

	closeCh chan struct{} // closed by Close
}

func (u *readerRole) init(t *Transport) {
	if rawio.FeaturesOf(t.link)&rawio.Interruptible != 0 {
		u.interrupter, _ = t.link.(rawio.Interrupter)
	}
	u.Init(func() { u.interrupter.Interrupt() }, t.now)
	u.closeCh = make(chan struct{})
	u.rx = newReceiver(t, t.link, rawio.FeaturesOf(t.link)&rawio.Waitable != 0)
	u.rx.waitSignal = &u.readerSignal
	u.rx.flushesOnWait = u.rx.policy.FlushOnWait(t)
}

// receiveLoop is the receive goroutine.
func (t *Transport) receiveLoop() {
	u := &t.readerRole
	defer u.Retire()
	for {
		u.readMu.Lock()
		var err error
		for err == nil && !u.GrantRequest() {
			err = u.readBatch()
			u.rx.threadPin.setPinned(u.rx.policy.KeepsThread() && t.readsInKernel)
		}
		u.rx.threadPin.unpinThread()
		u.readMu.Unlock()
		if err != nil {
			u.End()
			return
		}
		if !u.HandOver(u.closeCh) {
			return
		}
	}
}

// takeRole asks for the role as Role.Take does.
func (u *readerRole) takeRole(lends, quick bool) bool {
	return u.interrupter != nil && u.Take(lends, quick)
}

// leaveRole gives the role up.
func (u *readerRole) leaveRole(now rawio.Time) {
	if u.rx.flushesOnWait {
		u.rx.t.setReaderFlushes(false)
	}
	u.Leave(now, u.rx.policy.LendLimit() > 0)
}

// closeRole waits until the link is read no more. The link is closed. Its reader gets an error at
// once and gives back its receive buffers, so closeRole reads at least once. A link that does not
// keep to that is left alone after a second: closeRole is false then.
func (u *readerRole) closeRole() bool {
	close(u.closeCh)
	patience := time.NewTimer(abortTimeout)
	defer patience.Stop()
	select {
	case <-u.Retired():
	case <-patience.C:
		return false
	}
	u.readMu.Lock()
	for u.err == nil {
		u.err = u.readBatch()
	}
	u.End()
	u.readMu.Unlock()
	return true
}

// readBatch waits for packets and handles them. After an error the link is good for nothing more.
func (u *readerRole) readBatch() error {
	u.err = u.rx.runBatch(u.rx.waitBatch())
	return u.err
}
