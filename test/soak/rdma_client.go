//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// request is one that is outstanding.
type request struct {
	op, seq, n int
	waits      int // completions and replies that are still to come
	window     *rdma.MW
	swap       uint64 // opAtomic: the value before
}

// rdmaClient is one RDMA session of a client.
type rdmaClient struct {
	*side
	rng   *rand.Rand
	peer  privateTerms
	slots [rdmaWindow]request
	seq   int    // of the next message
	turn  uint32 // of the next reply
}

// rdmaSession runs one session to its end, which now and then is a sudden one.
func (l *lane) rdmaSession() {
	e, err := l.beginEntry(kindRDMA, rdmaWindow)
	if err != nil {
		return
	}
	s, err := l.newSide(l.dev, e, l.own)
	if err != nil {
		e.stuck++
		l.logFault(e, "%v", err)
		l.book.endEntry(e, stateRefused)
		return
	}
	c := &rdmaClient{side: s, rng: l.rng}
	ctx, cancel := context.WithTimeout(l.ctx, stuckFor)
	reply, err := s.qp.Connect(ctx, l.peerAddr(l.to.RDMAPort),
		(&privateTerms{id: e.id}).encodeTerms())
	cancel()
	if err != nil || !c.peer.decodeFrom(reply) {
		e.noteReason("%v", err)
		s.qp.Close()
		s.deregisterAll()
		l.endRefused(e)
		return
	}
	c.leaveSession(c.runSession(l), c.handleCompletion)
}

// runSession posts requests and handles their replies; it returns how the session is to end.
func (c *rdmaClient) runSession(l *lane) uint32 {
	total, cut := 1+l.rng.IntN(120), -1
	if l.rng.IntN(8) == 0 {
		cut = l.rng.IntN(total)
	}
	for n := 0; n < total && !c.broken; n++ {
		if n == cut {
			return stateCut
		}
		l.keepRate()
		c.forEachCompletion(time.Time{}, c.handleCompletion)
		slot := c.freeSlot()
		if slot < 0 {
			break
		}
		c.postRequest(slot, l.rng.IntN(opBye), l.drawSize())
	}
	for slot := range c.slots {
		c.awaitUntil(func() bool { return c.slots[slot].waits == 0 })
	}
	if !c.broken {
		c.postRequest(0, opBye, 0)
		c.awaitUntil(func() bool { return c.slots[0].waits == 0 && c.open == 0 })
	}
	return stateGraceful
}

// awaitUntil handles completions until done, or until the session is broken.
func (c *rdmaClient) awaitUntil(done func() bool) {
	for until := time.Now().Add(stuckFor); !done() && !c.broken; {
		c.forEachCompletion(until, c.handleCompletion)
		if time.Now().After(until) {
			c.e.stuck++
			c.logFault(c.e, "waits for %+v", c.slots)
			c.breakBy("stuck")
		}
	}
}

// freeSlot returns one where nothing is outstanding, and waits for it.
func (c *rdmaClient) freeSlot() int {
	free := -1
	c.awaitUntil(func() bool {
		for i := range c.slots {
			if c.slots[i].waits == 0 {
				free = i
				return true
			}
		}
		return false
	})
	return free
}

func (c *rdmaClient) postRequest(slot, op, n int) {
	n = min(n, dataSize)
	if op == opSend {
		n = min(n, msgSize-headLen)
	}
	r := &c.slots[slot]
	*r = request{op: op, seq: c.seq, n: n, waits: 2}
	h := head{id: c.e.id, seq: uint32(c.seq), n: uint32(n), op: uint8(op), slot: uint8(slot)}
	target := func(wr rdma.SendWR) rdma.SendWR {
		wr.RemoteSTag, wr.RemoteTO = c.peer.target, uint64(dataAt(slot))
		return wr
	}
	if op != opRead && op != opAtomic {
		c.seq++
	}
	switch op {
	case opSend:
		wr := c.newMessage(&h, forRequest, n)
		if c.rng.IntN(2) == 0 {
			wr.Op = rdma.OpSendSE
		}
		c.postRequests(r.seq, wr)
	case opWrite:
		c.postRequests(r.seq, target(rdma.SendWR{ID: wrID(wrQuiet, 0, 0), Op: rdma.OpWrite, Flags: rdma.Unsignaled,
			SGL: []rdma.SGE{c.contentSGE(r.seq, forWrite, n)}}), c.newMessage(&h, 0, 0))
	case opWriteImm:
		c.postRequests(r.seq, target(rdma.SendWR{ID: wrID(wrSend, 0, r.seq), Op: rdma.OpWriteImm,
			SGL: []rdma.SGE{c.contentSGE(r.seq, forWrite, n)}, Immediate: packImmediate(op, slot, r.seq, n)}))
	case opImm:
		c.postRequests(r.seq, rdma.SendWR{ID: wrID(wrSend, 0, r.seq), Op: rdma.OpImmSE,
			Immediate: packImmediate(op, slot, r.seq, n)})
	case opPull, opPush:
		c.exchangeWindow(r, slot, &h)
	case opRead:
		r.waits = 1
		r.seq = int(c.e.reads) % perSession
		c.e.reads++
		c.postRequests(-1, rdma.SendWR{ID: wrID(wrRead, slot, 0), Op: rdma.OpRead,
			SGL:        []rdma.SGE{c.mr.SGE(dataAt(slot), n)},
			RemoteSTag: c.peer.source, RemoteTO: uint64(pieceAt(c.e.id, r.seq, forRead, n))})
	case opAtomic:
		c.postAtomic(r, slot)
	case opBye:
		wr := c.newMessage(&h, 0, 0)
		wr.Op, wr.InvalidateSTag = rdma.OpSendInv, c.peer.target
		c.postRequests(r.seq, wr)
	}
}

// exchangeWindow opens a window on the memory of a slot and has the server read or write there.
func (c *rdmaClient) exchangeWindow(r *request, slot int, h *head) {
	access := rdma.RemoteWrite
	if r.op == opPull {
		access = rdma.RemoteRead
		copy(c.slotData(slot), contentPiece(c.e.id, r.seq, forPull, r.n))
	}
	w, err := c.mr.Bind(c.qp, dataAt(slot), max(r.n, 1), access)
	if err != nil {
		c.breakBy("bind: %v", err) // the stream is at its end
		return
	}
	r.window = w
	h.stag = uint32(w.STag())
	c.postRequests(r.seq, c.newMessage(h, 0, 0))
}

// postAtomic adds one to the session's counter, of which nobody else knows: its value before tells
// whether each one so far was carried out once.
func (c *rdmaClient) postAtomic(r *request, slot int) {
	r.waits = 1
	r.swap = uint64(c.e.adds)
	op := rdma.FetchAdd(1)
	if c.rng.IntN(2) == 0 {
		op = rdma.CmpSwap(r.swap, r.swap+1)
	}
	c.e.adds++
	c.postRequests(-1, rdma.SendWR{ID: wrID(wrAdd, slot, 0), Op: rdma.OpAtomic, RemoteSTag: c.peer.counters,
		RemoteTO: c.peer.counter, Atomic: op})
}

func (c *rdmaClient) handleCompletion(wc *rdma.WC) {
	if !c.handleCommon(wc) {
		return
	}
	what, slot, seq := wrParts(wc.ID)
	switch what {
	case wrSend:
		for i := range c.slots {
			if r := &c.slots[i]; r.waits > 0 && r.seq == seq && r.op != opRead && r.op != opAtomic {
				r.waits--
			}
		}
	case wrRead:
		r := &c.slots[slot]
		if int(wc.ByteLen) != r.n || !isPlaced(c.slotData(slot), r.n, contentPiece(c.e.id, r.seq, forRead, r.n)) {
			c.countWrong("Read %d of %d octets", r.seq, r.n)
		}
		c.e.readsDone++
		r.waits = 0
	case wrAdd:
		r := &c.slots[slot]
		if wc.Original != r.swap {
			c.countWrong("atomic %d found %d", r.swap, wc.Original)
		}
		c.e.addsDone++
		r.waits = 0
	case wrRecv:
		c.handleReply(wc, slot)
	}
}

// handleReply takes the server's reply in the receive at.
func (c *rdmaClient) handleReply(wc *rdma.WC, at int) {
	var h head
	msg := c.arena[inAt(at):][:wc.ByteLen]
	if wc.Opcode == rdma.WCRecvImm {
		_, slot, seq, turn := immParts(wc.Immediate)
		h = head{id: c.e.id, op: opImm, slot: uint8(slot), seq: uint32(seq), turn: uint32(turn)}
	} else if !h.decodeFrom(msg) || h.id != c.e.id || len(msg) != headLen+int(h.n) || int(h.slot) >= rdmaWindow {
		c.countWrong("a reply of %d octets is none", len(msg))
		return
	}
	if h.turn != c.turn {
		c.e.disorder++
		c.logFault(c.e, "reply %d came as number %d", h.turn, c.turn)
	}
	c.turn++
	r := &c.slots[h.slot]
	seq := int(h.seq)
	if r.waits == 0 || r.seq != seq || r.op != int(h.op) {
		c.countWrong("reply to request %d %d on slot %d, where there is %+v", h.op, h.seq, h.slot, *r)
		return
	}
	if len(msg) > headLen && string(msg[headLen:]) != string(contentPiece(c.e.id, seq, forReply, int(h.n))) {
		c.countWrong("content of the reply to %d", seq)
	}
	if w := r.window; w != nil {
		if w.Valid() || !wc.Invalidated || wc.InvalidatedSTag != w.STag() {
			c.countWrong("the reply to %d did not end the window", seq)
		}
		w.Invalidate()
		use := forPull
		if r.op == opPush {
			use = forPush
		}
		if !isPlaced(c.slotData(int(h.slot)), r.n, contentPiece(c.e.id, seq, use, r.n)) {
			c.countWrong("what request %d of %d octets had placed", seq, r.n)
		}
		r.window = nil
	}
	c.e.noteArrival(seq)
	r.waits--
	c.over = r.op == opBye
	fillPoison(msg)
	if err := c.postRecv(at); err != nil && !c.over {
		c.breakBy("post receive: %v", err)
	}
}
