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
	backlog []answerTo
}

// answerTo is a reply that is due.
type answerTo struct {
	h          head
	invalidate rdma.STag
}

func (c *child) serveSession(dev *rdma.Device, req *rdma.Request) {
	var t terms
	if !t.decode(req.PrivateData()) {
		req.Reject([]byte("what is this?"))
		return
	}
	e, err := c.book.begin(t.id, kindRDMA, rdmaWindow)
	if err != nil {
		req.Reject([]byte(err.Error()))
		return
	}
	_, negotiates := req.Setup()
	s := &rdmaServer{}
	if s.side, err = c.newSide(dev, e, negotiates); err == nil {
		s.order = unordered // a request may be answered before an earlier one; the turn has the order
		err = s.accept(req, &t)
	}
	if err != nil {
		e.because("not accepted: %v", err)
		if s.side != nil {
			s.qp.Close()
			s.drop()
		}
		c.book.end(e, stateRefused)
		return
	}
	for !s.broken && !(s.over && s.open == 0 && len(s.backlog) == 0) {
		s.each(time.Now().Add(time.Hour), s.handle)
		s.answer()
	}
	s.leave(stateGraceful, s.handle)
}

func (s *rdmaServer) accept(req *rdma.Request, t *terms) error {
	var err error
	if s.target, err = s.register(s.arena[:rdmaWindow*dataSize], rdma.LocalWrite|rdma.RemoteWrite,
		&rdma.RegionOptions{QP: s.qp}); err != nil {
		return err
	}
	counter, err := s.register(s.e.counterBytes(), rdma.RemoteAtomic|rdma.LocalWrite, nil)
	if err != nil {
		return err
	}
	t.target, t.source, t.counters, t.counter = s.target.STag(), s.source.STag(), counter.STag(), counter.Base()
	return req.Accept(s.qp, t.encode())
}

func (s *rdmaServer) handle(wc *rdma.WC) {
	if !s.completed(wc) {
		return
	}
	what, slot, _ := wrParts(wc.ID)
	switch what {
	case wrRead:
		h := s.pulls[slot]
		if int(wc.ByteLen) != int(h.n) ||
			!placed(s.data(slot), int(h.n), piece(s.e.id, int(h.seq), forPull, int(h.n))) {
			s.wrongf("what was pulled for request %d, %d octets", h.seq, h.n)
		}
		s.reply(h, rdma.STag(h.stag))
	case wrRecv:
		s.request(wc, slot)
	}
}

// request carries out the request in the receive at.
func (s *rdmaServer) request(wc *rdma.WC, at int) {
	var h head
	msg := s.arena[inAt(at):][:wc.ByteLen]
	if wc.Opcode == rdma.WCRecvImm {
		op, slot, seq, n := immParts(wc.Immediate)
		h = head{id: s.e.id, op: uint8(op), slot: uint8(slot), seq: uint32(seq), n: uint32(n)}
		msg = nil
	} else if !h.get(msg) || h.id != s.e.id {
		s.wrongf("a request of %d octets is none", len(msg))
		return
	}
	if int(h.seq) != s.seq {
		s.e.disorder++
		s.log(s.e, "request %d came as number %d", h.seq, s.seq)
	}
	s.seq = int(h.seq) + 1
	n, seq, slot := int(h.n), int(h.seq), int(h.slot)
	if slot >= rdmaWindow || n > dataSize {
		s.wrongf("request %d names slot %d, %d octets", seq, slot, n)
		return
	}
	invalidate := rdma.STag(0)
	switch h.op {
	case opSend:
		if string(msg[headLen:]) != string(piece(s.e.id, seq, forRequest, n)) {
			s.wrongf("content of request %d, %d octets, %d came", seq, n, len(msg)-headLen)
		}
	case opWrite, opWriteImm:
		if !placed(s.data(slot), n, piece(s.e.id, seq, forWrite, n)) {
			s.wrongf("what request %d has written, %d octets", seq, n)
		}
	case opBye:
		if !wc.Invalidated || wc.InvalidatedSTag != s.target.STag() {
			s.wrongf("the last request did not invalidate")
		}
		s.over = true
	case opPush:
		invalidate = rdma.STag(h.stag)
	}
	s.e.take(seq)
	fillPoison(msg)
	if err := s.postRecv(at); err != nil && !s.over {
		s.breakBy("post receive: %v", err)
	}
	if h.op == opPull {
		s.pulls[slot] = h
		s.post(-1, rdma.SendWR{ID: wrID(wrRead, slot, 0), Op: rdma.OpRead, SGL: []rdma.SGE{s.mr.SGE(dataAt(slot), n)},
			RemoteSTag: rdma.STag(h.stag)})
		return
	}
	s.reply(h, invalidate)
}

func (s *rdmaServer) reply(h head, invalidate rdma.STag) {
	s.backlog = append(s.backlog, answerTo{h, invalidate})
	s.answer()
}

// answer posts the replies that are due, as far as there are buffers to send from.
func (s *rdmaServer) answer() {
	for len(s.backlog) > 0 && len(s.free) > 0 && !s.broken {
		a := s.backlog[0]
		s.backlog = append(s.backlog[:0], s.backlog[1:]...)
		seq := int(a.h.seq)
		a.h.turn = s.turn
		s.turn++
		if a.h.op == opImm {
			s.post(seq, rdma.SendWR{ID: wrID(wrSend, 0, seq), Op: rdma.OpImm,
				Immediate: immediate(opImm, int(a.h.slot), seq, int(a.h.turn))})
			continue
		}
		n := int(a.h.n)
		a.h.n = uint32(seq % 900) // octets in the reply itself
		wr := s.message(&a.h, forReply, int(a.h.n))
		if a.invalidate == 0 {
			s.post(seq, wr)
			continue
		}
		wr.Op, wr.InvalidateSTag = rdma.OpSendSEInv, a.invalidate
		if a.h.op == opPull {
			s.post(seq, wr)
			continue
		}
		s.post(seq, rdma.SendWR{ID: wrID(wrQuiet, 0, 0), Op: rdma.OpWrite, Flags: rdma.Unsignaled,
			SGL: []rdma.SGE{s.piece(seq, forPush, n)}, RemoteSTag: a.invalidate}, wr)
	}
}

// startServer listens for sessions and for plain associations.
func (c *child) startServer() error {
	dev, err := c.open(c.Serve)
	if err != nil {
		return err
	}
	rl, err := dev.Listen(c.Serve.RDMAPort)
	if err != nil {
		return err
	}
	cfg := c.sctpConfig(c.Serve)
	cfg.Events, cfg.RecvBuffer, cfg.SendBuffer = sctpEvents, sctpRecvBuffer, sctpSendBuffer
	sl, err := dev.Transport().Listen(c.Serve.SCTPPort, &cfg)
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
