//go:build linux

package main

import (
	"context"
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// serveRDMA takes sessions for as long as the process lives.
func (c *child) serveRDMA(dev *rdma.Device, l *rdma.Listener) {
	for {
		req, err := l.Accept(c.ctx)
		if err != nil {
			return
		}
		c.working.Add(1)
		go func() {
			defer c.working.Add(-1)
			c.serveSession(dev, req)
		}()
	}
}

// rdmaServer is one RDMA session of a server.
type rdmaServer struct {
	*side
	target  *rdma.MR
	seq     int // of the next request
	turn    uint32
	pulls   [rdmaWindow]head // requests whose Read is under way
	backlog []dueReply
}

// dueReply is a reply that is due.
type dueReply struct {
	h          head
	invalidate rdma.STag
}

func (c *child) serveSession(dev *rdma.Device, req *rdma.Request) {
	var t privateTerms
	if !t.decodeFrom(req.PrivateData()) {
		req.Reject([]byte("what is this?"))
		return
	}
	e, err := c.book.beginEntry(t.id, kindRDMA, rdmaWindow)
	if err != nil {
		req.Reject([]byte(err.Error()))
		return
	}
	_, negotiates := req.Setup()
	s := &rdmaServer{}
	if s.side, err = c.newSide(dev, e, negotiates); err == nil {
		s.order = unordered // a request may be answered before an earlier one; the turn has the order
		err = s.acceptSession(req, &t)
	}
	if err != nil {
		e.noteReason("not accepted: %v", err)
		if s.side != nil {
			s.qp.Close()
			s.deregisterAll()
		}
		c.book.endEntry(e, stateRefused)
		return
	}
	for !s.broken && !(s.over && s.open == 0 && len(s.backlog) == 0) {
		s.forEachCompletion(time.Now().Add(time.Hour), s.handleCompletion)
		s.postReplies()
	}
	s.leaveSession(stateGraceful, s.handleCompletion)
}

func (s *rdmaServer) acceptSession(req *rdma.Request, t *privateTerms) error {
	var err error
	if s.target, err = s.registerMemory(s.arena[:rdmaWindow*dataSize], rdma.LocalWrite|rdma.RemoteWrite,
		&rdma.RegionOptions{QP: s.qp}); err != nil {
		return err
	}
	counter, err := s.registerMemory(s.e.counterBytes(), rdma.RemoteAtomic|rdma.LocalWrite, nil)
	if err != nil {
		return err
	}
	t.target, t.source, t.counters, t.counter = s.target.STag(), s.source.STag(), counter.STag(), counter.Base()
	return req.Accept(s.qp, t.encodeTerms())
}

func (s *rdmaServer) handleCompletion(wc *rdma.WC) {
	if !s.handleCommon(wc) {
		return
	}
	what, slot, _ := wrParts(wc.ID)
	switch what {
	case wrRead:
		h := s.pulls[slot]
		if int(wc.ByteLen) != int(h.n) ||
			!isPlaced(s.slotData(slot), int(h.n), contentPiece(s.e.id, int(h.seq), forPull, int(h.n))) {
			s.countWrong("what was pulled for request %d, %d octets", h.seq, h.n)
		}
		s.queueReply(h, rdma.STag(h.stag))
	case wrRecv:
		s.carryOutRequest(wc, slot)
	}
}

// carryOutRequest carries out the request in the receive at.
func (s *rdmaServer) carryOutRequest(wc *rdma.WC, at int) {
	var h head
	msg := s.arena[inAt(at):][:wc.ByteLen]
	if wc.Opcode == rdma.WCRecvImm {
		op, slot, seq, n := immParts(wc.Immediate)
		h = head{id: s.e.id, op: uint8(op), slot: uint8(slot), seq: uint32(seq), n: uint32(n)}
		msg = nil
	} else if !h.decodeFrom(msg) || h.id != s.e.id {
		s.countWrong("a request of %d octets is none", len(msg))
		return
	}
	if int(h.seq) != s.seq {
		s.e.disorder++
		s.logFault(s.e, "request %d came as number %d", h.seq, s.seq)
	}
	s.seq = int(h.seq) + 1
	n, seq, slot := int(h.n), int(h.seq), int(h.slot)
	if slot >= rdmaWindow || n > dataSize {
		s.countWrong("request %d names slot %d, %d octets", seq, slot, n)
		return
	}
	invalidate := rdma.STag(0)
	switch h.op {
	case opSend:
		if string(msg[headLen:]) != string(contentPiece(s.e.id, seq, forRequest, n)) {
			s.countWrong("content of request %d, %d octets, %d came", seq, n, len(msg)-headLen)
		}
	case opWrite, opWriteImm:
		if !isPlaced(s.slotData(slot), n, contentPiece(s.e.id, seq, forWrite, n)) {
			s.countWrong("what request %d has written, %d octets", seq, n)
		}
	case opBye:
		if !wc.Invalidated || wc.InvalidatedSTag != s.target.STag() {
			s.countWrong("the last request did not invalidate")
		}
		s.over = true
	case opPush:
		invalidate = rdma.STag(h.stag)
	}
	s.e.noteArrival(seq)
	fillPoison(msg)
	if err := s.postRecv(at); err != nil && !s.over {
		s.breakBy("post receive: %v", err)
	}
	if h.op == opPull {
		s.pulls[slot] = h
		s.postRequests(-1, rdma.SendWR{ID: wrID(wrRead, slot, 0), Op: rdma.OpRead,
			SGL:        []rdma.SGE{s.mr.SGE(dataAt(slot), n)},
			RemoteSTag: rdma.STag(h.stag)})
		return
	}
	s.queueReply(h, invalidate)
}

func (s *rdmaServer) queueReply(h head, invalidate rdma.STag) {
	s.backlog = append(s.backlog, dueReply{h, invalidate})
	s.postReplies()
}

// postReplies posts the replies that are due, as far as there are buffers to send from.
func (s *rdmaServer) postReplies() {
	for len(s.backlog) > 0 && len(s.free) > 0 && !s.broken {
		a := s.backlog[0]
		s.backlog = append(s.backlog[:0], s.backlog[1:]...)
		seq := int(a.h.seq)
		a.h.turn = s.turn
		s.turn++
		if a.h.op == opImm {
			s.postRequests(seq, rdma.SendWR{ID: wrID(wrSend, 0, seq), Op: rdma.OpImm,
				Immediate: packImmediate(opImm, int(a.h.slot), seq, int(a.h.turn))})
			continue
		}
		n := int(a.h.n)
		a.h.n = uint32(seq % 900) // octets in the reply itself
		wr := s.newMessage(&a.h, forReply, int(a.h.n))
		if a.invalidate == 0 {
			s.postRequests(seq, wr)
			continue
		}
		wr.Op, wr.InvalidateSTag = rdma.OpSendSEInv, a.invalidate
		if a.h.op == opPull {
			s.postRequests(seq, wr)
			continue
		}
		s.postRequests(seq, rdma.SendWR{ID: wrID(wrQuiet, 0, 0), Op: rdma.OpWrite, Flags: rdma.Unsignaled,
			SGL: []rdma.SGE{s.contentSGE(seq, forPush, n)}, RemoteSTag: a.invalidate}, wr)
	}
}

// startServer listens for sessions and for plain associations.
func (c *child) startServer() error {
	for _, s := range c.Serve {
		dev, err := c.openDevice(s)
		if err != nil {
			return err
		}
		if err := c.listenOn(dev, s); err != nil {
			return err
		}
	}
	return nil
}

func (c *child) listenOn(dev *rdma.Device, s service) error {
	rl, err := dev.Listen(s.RDMAPort)
	if err != nil {
		return err
	}
	cfg := c.plainConfig(s)
	sl, err := dev.Transport().Listen(s.SCTPPort, &cfg)
	if err != nil {
		return err
	}
	go c.serveRDMA(dev, rl)
	go func() {
		for {
			conn, err := sl.Accept(context.Background())
			if err != nil {
				return
			}
			c.working.Add(1)
			go func() {
				defer c.working.Add(-1)
				c.serveConn(conn)
			}()
		}
	}()
	return nil
}
