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

func registerRegion(pd *rdma.PD, size int, access rdma.Access) (*region, error) {
	r := &region{buf: make([]byte, size)}
	mr, err := pd.Register(r.buf, access, nil)
	if err != nil {
		return nil, err
	}
	r.mr, r.stag, r.base = mr, mr.STag(), mr.Base()
	return r, nil
}

func (r *region) sgeAt(off, n int) rdma.SGE {
	return rdma.SGE{LKey: r.stag, Addr: r.base + uint64(off), Len: uint32(n)}
}

// endAccess ends the peer's access. Nothing writes to the memory once it has returned.
func (r *region) endAccess() { r.mr.Invalidate() }

func (r *region) close() {
	if r != nil {
		r.mr.Deregister()
	}
}

// lane is one QP of a run with its memory, and its progress.
type lane struct {
	index int
	qp    *rdma.QP

	src, dst                *region // messages from here; of the peer, or read from it; nil if not needed
	recvBufs                *region // receive buffers
	bufLen                  int
	localTarget, peerTarget target // memory open to the peer, and the peer's

	recvSGL             [1]rdma.SGE
	controlBuf          [controlLen]byte
	controlsOutstanding int // control messages without a completion

	hasBegun bool // go was sent, or has come

	// The active side.
	toPost       uint64 // messages to be posted
	posted       uint64
	completed    uint64            // messages completed
	credits      int               // Sends that the peer has buffers for
	doneSent     bool              // done was sent
	doneAcked    bool              // and answered
	verdictKnown bool              // and there is a verdict, if one is needed
	signaled     []signaledMessage // completions to come, for a report

	// The passive side.
	received     uint64 // messages received
	usedRecvBuf  int    // a receive buffer, to be posted again if owes
	owesRecv     bool
	granter      creditGranter
	badMessages  uint64 // of them with wrong content
	peerDone     bool
	sessionEnded bool // the session has ended
}

// newLane makes a lane that is ready to be connected, with its receives posted.
func newLane(e *engine, index int) (*lane, error) {
	l := &lane{index: index, credits: e.slotCount(), granter: creditGranter{slots: e.slotCount()}}
	if err := l.createResources(e); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *lane) createResources(e *engine) (err error) {
	r := e.roleOf(e.client)
	n, bufLen := e.recvBuffers(e.client)
	l.bufLen = bufLen
	if l.recvBufs, err = registerRegion(e.pd, n*bufLen, rdma.LocalWrite); err != nil {
		return err
	}
	spoilContent(l.recvBufs.buf, e.seed)
	if e.hasSource(e.client) {
		access := rdma.Access(0)
		switch {
		case e.verb == verbRead && r.passive:
			access = rdma.RemoteRead
		case e.verb == verbAtomic && r.passive:
			access = rdma.RemoteAtomic
		}
		if l.src, err = registerRegion(e.pd, e.slotCount()*e.size, access); err != nil {
			return err
		}
		for slot := range e.slotCount() {
			fillContent(e.slotBytes(l.src, slot), e.slotSeed(l.index, e.client, slot))
		}
	}
	if e.hasSink(e.client) {
		access := rdma.LocalWrite
		if e.verb == verbWrite && r.passive {
			access = rdma.RemoteWrite
		}
		if l.dst, err = registerRegion(e.pd, e.slotCount()*e.size, access); err != nil {
			return err
		}
		spoilContent(l.dst.buf, e.seed)
	}
	l.qp, err = e.dev.CreateQP(&rdma.QPConfig{
		PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, MaxSend: e.sendQueueDepth(e.client), MaxRecv: n, MaxSGE: 1,
		IRD: e.readDepth(), ORD: e.readDepth(), OwnAssociation: e.ownAssociations,
	})
	if err != nil {
		return err
	}
	for i := range n {
		if err := l.postRecv(i); err != nil {
			return err
		}
	}
	l.localTarget = l.openTarget(e, r)
	return nil
}

// openTarget opens the memory that the peer writes to or reads from.
func (l *lane) openTarget(e *engine, r role) target {
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
	for _, r := range []*region{l.src, l.dst, l.recvBufs} {
		r.close()
	}
}

// A work request ID has the lane and the number of the message or receive buffer. Control messages
// have idControl set.
const (
	idLane    = 40
	idControl = 1 << 63
	idNumber  = 1<<idLane - 1
)

func (l *lane) requestID(n uint64) uint64 { return uint64(l.index)<<idLane | n&idNumber }

func (l *lane) postRecv(i int) error {
	l.recvSGL[0] = l.recvBufs.sgeAt(i*l.bufLen, l.bufLen)
	return l.qp.PostRecv(&rdma.RecvWR{ID: l.requestID(uint64(i)), SGL: l.recvSGL[:]})
}

// repostRecv posts the receive buffer of the last message of a ping-pong.
func (l *lane) repostRecv() error {
	if !l.owesRecv {
		return nil
	}
	l.owesRecv = false
	return l.postRecv(l.usedRecvBuf)
}

// sendControl posts a control message. The message that all is done waits for RDMA Reads.
func (l *lane) sendControl(c control) error {
	wr := rdma.SendWR{Op: rdma.OpSendSE, Inline: l.controlBuf[:]}
	if c.kind == controlDone {
		wr.Flags = rdma.Fence
	}
	c.encodeTo(&l.controlBuf)
	return l.postControl(wr)
}

// postControl posts a request that is no message of the run.
func (l *lane) postControl(wr rdma.SendWR) error {
	wr.ID = l.requestID(0) | idControl
	l.controlsOutstanding++
	return l.qp.PostSend(&wr)
}
