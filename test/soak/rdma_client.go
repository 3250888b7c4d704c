//go:build linux

package main

import (
	"context"
	"math/rand/v2"
	"net/netip"
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
	peer  terms
	slots [rdmaWindow]request
	seq   int    // of the next message
	turn  uint32 // of the next reply
}

// rdmaSession runs one session to its end, which now and then is a sudden one.
func (l *lane) rdmaSession() {
	e, err := l.begin(kindRDMA, rdmaWindow)
	if err != nil {
		return
	}
	s, err := l.newSide(l.dev, e, l.own)
	if err != nil {
		e.stuck++
		l.log(e, "%v", err)
		l.book.end(e, stateRefused)
		return
	}
	c := &rdmaClient{side: s, rng: l.rng}
	ctx, cancel := context.WithTimeout(l.ctx, stuckFor)
	reply, err := s.qp.Connect(ctx, netip.AddrPortFrom(l.to.Addr, l.to.RDMAPort), (&terms{id: e.id}).encode())
	cancel()
	if err != nil || !c.peer.decode(reply) {
		e.because("%v", err)
		s.qp.Close()
		s.drop()
		l.refused(e)
		return
	}
	c.leave(c.run(l), c.handle)
}

// run posts requests and handles their replies; it returns how the session is to end.
func (c *rdmaClient) run(l *lane) uint32 {
	total, cut := 1+l.rng.IntN(120), -1
	if l.rng.IntN(8) == 0 {
		cut = l.rng.IntN(total)
	}
	for n := 0; n < total && !c.broken; n++ {
		if n == cut {
			return stateCut
		}
		l.pace()
		c.each(time.Time{}, c.handle)
		slot := c.slot()
		if slot < 0 {
			break
		}
		c.request(slot, l.rng.IntN(opBye), l.size())
	}
	for slot := range c.slots {
		c.await(func() bool { return c.slots[slot].waits == 0 })
	}
	if !c.broken {
		c.request(0, opBye, 0)
		c.await(func() bool { return c.slots[0].waits == 0 && c.open == 0 })
	}
	return stateGraceful
}

// await handles completions until done, or until the session is broken.
func (c *rdmaClient) await(done func() bool) {
	for until := time.Now().Add(stuckFor); !done() && !c.broken; {
		c.each(until, c.handle)
		if time.Now().After(until) {
			c.e.stuck++
			c.log(c.e, "waits for %+v", c.slots)
			c.breakBy("stuck")
		}
	}
}

// slot returns one where nothing is outstanding, and waits for it.
func (c *rdmaClient) slot() int {
	free := -1
	c.await(func() bool {
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

func (c *rdmaClient) request(slot, op, n int) {
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
		wr := c.message(&h, forRequest, n)
		if c.rng.IntN(2) == 0 {
			wr.Op = rdma.OpSendSE
		}
		c.post(r.seq, wr)
	case opWrite:
		c.post(r.seq, target(rdma.SendWR{ID: wrID(wrQuiet, 0, 0), Op: rdma.OpWrite, Flags: rdma.Unsignaled,
			SGL: []rdma.SGE{c.piece(r.seq, forWrite, n)}}), c.message(&h, 0, 0))
	case opWriteImm:
		c.post(r.seq, target(rdma.SendWR{ID: wrID(wrSend, 0, r.seq), Op: rdma.OpWriteImm,
			SGL: []rdma.SGE{c.piece(r.seq, forWrite, n)}, Immediate: immediate(op, slot, r.seq, n)}))
	case opImm:
		c.post(r.seq, rdma.SendWR{ID: wrID(wrSend, 0, r.seq), Op: rdma.OpImmSE,
			Immediate: immediate(op, slot, r.seq, n)})
	case opPull, opPush:
		c.exchange(r, slot, &h)
	case opRead:
		r.waits = 1
		r.seq = int(c.e.reads) % perSession
		c.e.reads++
		c.post(-1, rdma.SendWR{ID: wrID(wrRead, slot, 0), Op: rdma.OpRead, SGL: []rdma.SGE{c.mr.SGE(dataAt(slot), n)},
			RemoteSTag: c.peer.source, RemoteTO: uint64(pieceAt(c.e.id, r.seq, forRead, n))})
	case opAtomic:
		c.atomic(r, slot)
	case opBye:
		wr := c.message(&h, 0, 0)
		wr.Op, wr.InvalidateSTag = rdma.OpSendInv, c.peer.target
		c.post(r.seq, wr)
	}
}

// exchange opens a window on the memory of a slot and has the server read or write there.
func (c *rdmaClient) exchange(r *request, slot int, h *head) {
	access := rdma.RemoteWrite
	if r.op == opPull {
		access = rdma.RemoteRead
		copy(c.data(slot), piece(c.e.id, r.seq, forPull, r.n))
	}
	w, err := c.mr.Bind(c.qp, dataAt(slot), max(r.n, 1), access)
	if err != nil {
		c.breakBy("bind: %v", err) // the stream is at its end
		return
	}
	r.window = w
	h.stag = uint32(w.STag())
	c.post(r.seq, c.message(h, 0, 0))
}

// atomic adds one to the session's counter, of which nobody else knows: its value before tells
// whether each one so far was carried out once.
func (c *rdmaClient) atomic(r *request, slot int) {
	r.waits = 1
	r.swap = uint64(c.e.adds)
	op := rdma.FetchAdd(1)
	if c.rng.IntN(2) == 0 {
		op = rdma.CmpSwap(r.swap, r.swap+1)
	}
	c.e.adds++
	c.post(-1, rdma.SendWR{ID: wrID(wrAdd, slot, 0), Op: rdma.OpAtomic, RemoteSTag: c.peer.counters,
		RemoteTO: c.peer.counter, Atomic: op})
}

func (c *rdmaClient) handle(wc *rdma.WC) {
	if !c.completed(wc) {
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
		if int(wc.ByteLen) != r.n || !placed(c.data(slot), r.n, piece(c.e.id, r.seq, forRead, r.n)) {
			c.wrongf("Read %d of %d octets", r.seq, r.n)
		}
		c.e.readsDone++
		r.waits = 0
	case wrAdd:
		r := &c.slots[slot]
		if wc.Original != r.swap {
			c.wrongf("atomic %d found %d", r.swap, wc.Original)
		}
		c.e.addsDone++
		r.waits = 0
	case wrRecv:
		c.reply(wc, slot)
	}
}

// reply takes the server's reply in the receive at.
func (c *rdmaClient) reply(wc *rdma.WC, at int) {
	var h head
	msg := c.arena[inAt(at):][:wc.ByteLen]
	if wc.Opcode == rdma.WCRecvImm {
		_, slot, seq, turn := immParts(wc.Immediate)
		h = head{id: c.e.id, op: opImm, slot: uint8(slot), seq: uint32(seq), turn: uint32(turn)}
	} else if !h.get(msg) || h.id != c.e.id || len(msg) != headLen+int(h.n) || int(h.slot) >= rdmaWindow {
		c.wrongf("a reply of %d octets is none", len(msg))
		return
	}
	if h.turn != c.turn {
		c.e.disorder++
		c.log(c.e, "reply %d came as number %d", h.turn, c.turn)
	}
	c.turn++
	r := &c.slots[h.slot]
	seq := int(h.seq)
	if r.waits == 0 || r.seq != seq || r.op != int(h.op) {
		c.wrongf("reply to request %d %d on slot %d, where there is %+v", h.op, h.seq, h.slot, *r)
		return
	}
	if len(msg) > headLen && string(msg[headLen:]) != string(piece(c.e.id, seq, forReply, int(h.n))) {
		c.wrongf("content of the reply to %d", seq)
	}
	if w := r.window; w != nil {
		if w.Valid() || !wc.Invalidated || wc.InvalidatedSTag != w.STag() {
			c.wrongf("the reply to %d did not end the window", seq)
		}
		w.Invalidate()
		use := forPull
		if r.op == opPush {
			use = forPush
		}
		if !placed(c.data(int(h.slot)), r.n, piece(c.e.id, seq, use, r.n)) {
			c.wrongf("what request %d of %d octets had placed", seq, r.n)
		}
		r.window = nil
	}
	c.e.take(seq)
	r.waits--
	c.over = r.op == opBye
	fillPoison(msg)
	if err := c.postRecv(at); err != nil && !c.over {
		c.breakBy("post receive: %v", err)
	}
}
