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

// noLock serves a QP all of whose calls are made under one connection lock.
type noLock struct{}

func (noLock) Lock()   {}
func (noLock) Unlock() {}

// inbox takes receives from the program and keeps them until a message needs one. It has a lock of
// its own, so that a program that posts a receive does not wait for packets to be handled.
type inbox struct {
	lock           Locker
	pending        []ddp.RecvBuffer // in the order of posting
	outstanding    int              // receives posted and not completed
	maxOutstanding int              // of them
	pieces         ddp.Gather       // maxSGE for each of maxOutstanding places, used round robin
	maxSGE         int
	nextPlace      int // place of the next receive
	closed         bool
}

func (x *inbox) init(cfg *Config) {
	if x.lock = cfg.RecvLock; x.lock == nil {
		x.lock = noLock{}
	}
	x.maxOutstanding, x.maxSGE = cfg.MaxRecv, cfg.MaxSGE
	x.pieces = make(ddp.Gather, x.maxOutstanding*x.maxSGE)
}

func (x *inbox) postRecv(s *ddp.Stream, wr *RecvWR) error {
	x.lock.Lock()
	defer x.lock.Unlock()
	switch {
	case x.closed:
		return ErrState
	case x.outstanding == x.maxOutstanding:
		return ErrQueueFull
	}
	at := x.nextPlace * x.maxSGE
	g, n, err := resolveSGL(s, x.pieces[at:at:at+x.maxSGE], x.maxSGE, wr.SGL, ddp.LocalWrite)
	if err != nil {
		return err
	}
	x.pending = append(x.pending, ddp.RecvBuffer{Pieces: g, Len: n, Token: wr.ID})
	x.outstanding++
	if x.nextPlace++; x.nextPlace == x.maxOutstanding {
		x.nextPlace = 0
	}
	return nil
}

// moveTo moves all that waits to q, and reports whether anything did. There is room for all that
// was posted; an error says that there is not.
func (x *inbox) moveTo(q *ddp.Queue) (any bool, err *invariant.Error) {
	x.lock.Lock()
	defer x.lock.Unlock()
	for i, b := range x.pending {
		if q.Post(b) != nil {
			x.pending = slices.Delete(x.pending, 0, i)
			return any, invariant.Violation("rdmap.inbox.moveTo", "no place for %d receives of %d held, at most %d",
				len(x.pending), x.outstanding, x.maxOutstanding)
		}
		any = true
	}
	x.pending = slices.Delete(x.pending, 0, len(x.pending))
	return any, nil
}

// takeLeftover takes a receive that moveTo has left behind.
func (x *inbox) takeLeftover() (b ddp.RecvBuffer, ok bool) {
	x.lock.Lock()
	defer x.lock.Unlock()
	if ok = len(x.pending) > 0; ok {
		b = x.pending[0]
		x.pending = slices.Delete(x.pending, 0, 1)
	}
	return b, ok
}

// freePlace makes room for another receive.
func (x *inbox) freePlace() {
	x.lock.Lock()
	x.outstanding--
	x.lock.Unlock()
}

// close has post fail from now on.
func (x *inbox) close() {
	x.lock.Lock()
	x.closed = true
	x.lock.Unlock()
}
