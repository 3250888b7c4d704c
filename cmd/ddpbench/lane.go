package main

import (
	"github.com/rddp-go/rddp/rdma"
)

// region is registered memory.
type region struct {
	mr   *rdma.MR
	buf  []byte
	stag rdma.STag
	base uint64 // Tagged Offset of the first octet
}

func register(pd *rdma.PD, size int, access rdma.Access) (*region, error) {
	r := &region{buf: make([]byte, size)}
	mr, err := pd.Register(r.buf, access, nil)
	if err != nil {
		return nil, err
	}
	r.mr, r.stag, r.base = mr, mr.STag(), mr.Base()
	return r, nil
}

func (r *region) sge(off, n int) rdma.SGE {
	return rdma.SGE{LKey: r.stag, Addr: r.base + uint64(off), Len: uint32(n)}
}

// shut ends the peer's access: nothing writes to the memory once it has returned.
func (r *region) shut() { r.mr.Invalidate() }

func (r *region) close() {
	if r != nil {
		r.mr.Deregister()
	}
}

// lane is one QP of a run with its memory, and how far the run is on it.
type lane struct {
	index int
	qp    *rdma.QP

	src, dst  *region // messages from here; messages of the peer, or what is read from it; nil if not needed
	bufs      *region // receive buffers
	bufLen    int
	own, peer target // memory open to the peer, and the peer's

	recvSGL [1]rdma.SGE
	ctl     [ctlLen]byte
	ctlOut  int // control messages without a completion

	begun bool // go was sent, or has come

	// The active side.
	left    uint64 // messages to be posted
	posted  uint64
	done    uint64  // messages completed
	credits int     // Sends that the peer has buffers for
	closing bool    // done was sent
	acked   bool    // and answered
	judged  bool    // and there is a verdict, if one is needed
	asked   []asked // completions that are to come, for a report

	// The passive side.
	got      uint64 // messages received
	used     int    // a receive buffer, to be posted again if owes
	owes     bool
	grant    granter
	bad      uint64 // of them with wrong content
	peerDone bool
	gone     bool // the session has ended
}

// newLane makes a lane that is ready to be connected: its receives are posted.
func newLane(e *engine, index int) (*lane, error) {
	l := &lane{index: index, credits: e.slots(), grant: granter{slots: e.slots()}}
	if err := l.setup(e); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lane) setup(e *engine) (err error) {
	r := e.role(e.client)
	n, bufLen := e.buffers(e.client)
	l.bufLen = bufLen
	if l.bufs, err = register(e.pd, n*bufLen, rdma.LocalWrite); err != nil {
		return err
	}
	spoil(l.bufs.buf, e.seed)
	if e.source(e.client) {
		access := rdma.Access(0)
		switch {
		case e.verb == verbRead && r.passive:
			access = rdma.RemoteRead
		case e.verb == verbAtomic && r.passive:
			access = rdma.RemoteAtomic
		}
		if l.src, err = register(e.pd, e.slots()*e.size, access); err != nil {
			return err
		}
		for slot := range e.slots() {
			fill(e.slot(l.src, slot), e.slotSeed(l.index, e.client, slot))
		}
	}
	if e.sink(e.client) {
		access := rdma.LocalWrite
		if e.verb == verbWrite && r.passive {
			access = rdma.RemoteWrite
		}
		if l.dst, err = register(e.pd, e.slots()*e.size, access); err != nil {
			return err
		}
		spoil(l.dst.buf, e.seed)
	}
	l.qp, err = e.dev.CreateQP(&rdma.QPConfig{
		PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, MaxSend: e.maxSend(e.client), MaxRecv: n, MaxSGE: 1,
		IRD: e.reads(), ORD: e.reads(), OwnAssociation: e.own,
	})
	if err != nil {
		return err
	}
	for i := range n {
		if err := l.postRecv(i); err != nil {
			return err
		}
	}
	l.own = l.open(e, r)
	return nil
}

// open returns the memory that the peer writes to or reads from.
func (l *lane) open(e *engine, r role) target {
	t := target{qpn: l.qp.Num()}
	if !r.passive {
		return t
	}
	switch e.verb {
	case verbWrite:
		t.stag, t.to = l.dst.stag, l.dst.base
	case verbRead, verbAtomic:
		t.stag, t.to = l.src.stag, l.src.base
	}
	return t
}

func (l *lane) close() {
	if l.qp != nil {
		l.qp.Close()
	}
	for _, r := range []*region{l.src, l.dst, l.bufs} {
		r.close()
	}
}

// Work request IDs: the lane, and the number of the message or receive buffer. Control messages have
// idControl set.
const (
	idLane    = 40
	idControl = 1 << 63
	idNumber  = 1<<idLane - 1
)

func (l *lane) id(n uint64) uint64 { return uint64(l.index)<<idLane | n&idNumber }

func (l *lane) postRecv(i int) error {
	l.recvSGL[0] = l.bufs.sge(i*l.bufLen, l.bufLen)
	return l.qp.PostRecv(&rdma.RecvWR{ID: l.id(uint64(i)), SGL: l.recvSGL[:]})
}

// repost posts the receive buffer of the last message of a ping-pong.
func (l *lane) repost() error {
	if !l.owes {
		return nil
	}
	l.owes = false
	return l.postRecv(l.used)
}

// sendControl posts a control message. To say that all was done waits for RDMA Reads.
func (l *lane) sendControl(c control) error {
	wr := rdma.SendWR{Op: rdma.OpSendSE, Inline: l.ctl[:]}
	if c.kind == ctlDone {
		wr.Flags = rdma.Fence
	}
	c.put(&l.ctl)
	return l.postControl(wr)
}

// postControl posts what is no message of the run.
func (l *lane) postControl(wr rdma.SendWR) error {
	wr.ID = l.id(0) | idControl
	l.ctlOut++
	return l.qp.PostSend(&wr)
}
