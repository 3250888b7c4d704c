package rdmap

import (
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/invariant"
)

// Locker is a lock that a QP borrows from its owner.
type Locker interface {
	Lock()
	Unlock()
}

// noLock serves a QP all of whose calls are made under one gate.
type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// inbox takes receives from the program and keeps them until a message needs one. It has a lock of its own, so that who posts a
// receive does not wait for who handles packets.
type inbox struct {
	lock   Locker
	waits  []ddp.RecvBuffer // in the order of posting
	held   int              // receives posted and not completed
	most   int              // of them
	pieces ddp.Gather       // sge for each of most places, used round robin
	sge    int
	next   int // place of the next receive
	closed bool
}

func (x *inbox) init(cfg *Config) {
	if x.lock = cfg.RecvLock; x.lock == nil {
		x.lock = noLock{}
	}
	x.most, x.sge = cfg.MaxRecv, cfg.MaxSGE
	x.pieces = make(ddp.Gather, x.most*x.sge)
}

func (x *inbox) post(s *ddp.Stream, wr *RecvWR) error {
	x.lock.Lock()
	defer x.lock.Unlock()
	switch {
	case x.closed:
		return ErrState
	case x.held == x.most:
		return ErrQueueFull
	}
	at := x.next * x.sge
	g, n, err := resolve(s, x.pieces[at:at:at+x.sge], x.sge, wr.SGL, ddp.LocalWrite)
	if err != nil {
		return err
	}
	x.waits = append(x.waits, ddp.RecvBuffer{Pieces: g, Len: n, Token: wr.ID})
	x.held++
	if x.next++; x.next == x.most {
		x.next = 0
	}
	return nil
}

// empty moves all that waits to q, and reports whether anything did. There is room for what post has taken: an error says
// that there is not.
func (x *inbox) empty(q *ddp.Queue) (any bool, err *invariant.Error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	for i, b := range x.waits {
		if q.Post(b) != nil {
			x.waits = slices.Delete(x.waits, 0, i)
			return any, invariant.Broken("rdmap.inbox.empty", "no place for %d receives of %d held, at most %d", len(x.waits), x.held, x.most)
		}
		any = true
	}
	x.waits = slices.Delete(x.waits, 0, len(x.waits))
	return any, nil
}

// rest takes a receive that empty has left behind.
func (x *inbox) rest() (b ddp.RecvBuffer, ok bool) {
	x.lock.Lock()
	defer x.lock.Unlock()
	if ok = len(x.waits) > 0; ok {
		b = x.waits[0]
		x.waits = slices.Delete(x.waits, 0, 1)
	}
	return b, ok
}

// completed makes room for another receive.
func (x *inbox) completed() {
	x.lock.Lock()
	x.held--
	x.lock.Unlock()
}

// close has post fail from now on.
func (x *inbox) close() {
	x.lock.Lock()
	x.closed = true
	x.lock.Unlock()
}
