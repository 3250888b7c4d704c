package rdmap

import "github.com/rddp-go/rddp/ddp"

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
	g, _, err := resolve(s, x.pieces[at:at:at+x.sge], x.sge, wr.SGL, ddp.LocalWrite)
	if err != nil {
		return err
	}
	b, err := ddp.MakeRecvBuffer(g, wr.ID)
	if err != nil {
		return err
	}
	x.waits = append(x.waits, b)
	x.held++
	if x.next++; x.next == x.most {
		x.next = 0
	}
	return nil
}

// empty moves all that waits to q, and reports whether anything did.
func (x *inbox) empty(q *ddp.Queue) (any bool) {
	x.lock.Lock()
	defer x.lock.Unlock()
	for _, b := range x.waits {
		if q.Post(b) != nil {
			panic("rdmap: the queue has no place for a receive that was taken")
		}
		any = true
	}
	clear(x.waits)
	x.waits = x.waits[:0]
	return any
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
