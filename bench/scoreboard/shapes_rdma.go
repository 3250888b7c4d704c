package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// rdmaEnd is one end of a QP. In the shape channel a goroutine hands its completions to a worker;
// those of direct are with cqEnds.
type rdmaEnd struct {
	*end
	qp     *rdma.QP
	mr     *rdma.MR // to send from, to be written or read into, and the receive buffers
	remote rdma.STag
	wcs    chan rdma.WC
	failed error         // once wcs is closed
	wrs    []rdma.SendWR // a request, or the answer to one
	recvs  [rdmaRecvs]rdma.RecvWR
}

const (
	rdmaRecvs = 32
	notice    = 1 // octets of the Send behind a Write
	mark      = 2 // octets of the Sends before and after the measurement
)

// room is how long a receive buffer is.
func (e *rdmaEnd) room() int {
	if e.Verb == "send" {
		return max(e.Size, mark)
	}
	return mark
}

// playRDMA measures Sends that are answered by Sends, Writes with notification that are by such
// Writes, or Reads.
func playRDMA(e *end, out io.Writer) error {
	list, cq, err := e.rdmaEnds(out)
	if err != nil {
		return err
	}
	var rep report
	c := newCost(e.Busy)
	if e.Shape == direct {
		err = newCQEnds(list, cq).play(c, &rep)
	} else {
		err = list[0].play(cq, c, &rep)
	}
	if err == nil {
		err = rep.print(out)
	}
	if err == nil && e.Server {
		if err = list[0].mark(); err == nil {
			select {}
		}
	}
	return err
}

// play has a goroutine wait for completions and a worker see to them.
func (e *rdmaEnd) play(cq *rdma.CQ, c *cost, r *report) error {
	go e.complete(cq)
	if e.Server {
		return e.answerAll(c, r)
	}
	return e.askAll(c, r)
}

// rdmaEnds connects a QP for each connection, each over an association of its own. All complete on
// one CQ.
func (e *end) rdmaEnds(out io.Writer) (list []*rdmaEnd, cq *rdma.CQ, err error) {
	link, err := e.open()
	if err != nil {
		return nil, nil, err
	}
	dev, err := rdma.NewDevice(link, &rdma.Config{Transport: *manyPeers()})
	if err != nil {
		return nil, nil, err
	}
	if cq, err = dev.CreateCQ(512 * e.conns()); err != nil {
		return nil, nil, err
	}
	var l *rdma.Listener
	if e.Server {
		if l, err = dev.Listen(rdma.DefaultPort); err != nil {
			return nil, nil, err
		}
		if err = sayReady(out); err != nil {
			return nil, nil, err
		}
	}
	for range e.conns() {
		r := &rdmaEnd{end: e, wcs: make(chan rdma.WC, queued)}
		if err = r.connect(dev, cq, l); err != nil {
			return nil, nil, err
		}
		list = append(list, r)
	}
	return list, cq, nil
}

func (e *rdmaEnd) connect(dev *rdma.Device, cq *rdma.CQ, l *rdma.Listener) (err error) {
	pd := dev.AllocPD()
	e.mr, err = pd.Register(make([]byte, 2*e.Size+rdmaRecvs*e.room()),
		rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteRead, nil)
	if err != nil {
		return err
	}
	if e.qp, err = dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxRecv: rdmaRecvs,
		OwnAssociation: true}); err != nil {
		return err
	}
	for i := range rdmaRecvs {
		e.recvs[i] = rdma.RecvWR{ID: uint64(i), SGL: []rdma.SGE{e.mr.SGE(2*e.Size+i*e.room(), e.room())}}
		if err := e.recv(uint64(i)); err != nil {
			return err
		}
	}
	own := binary.BigEndian.AppendUint32(nil, uint32(e.mr.STag()))
	theirs, err := e.meet(l, own)
	if err == nil && len(theirs) != len(own) {
		err = fmt.Errorf("private data of %d octets", len(theirs))
	}
	if err == nil {
		e.remote = rdma.STag(binary.BigEndian.Uint32(theirs))
		e.wrs = e.requests()
	}
	return err
}

// meet exchanges private data with the peer.
func (e *rdmaEnd) meet(l *rdma.Listener, own []byte) ([]byte, error) {
	ctx := context.Background()
	if !e.Server {
		return e.qp.Connect(ctx, netip.AddrPortFrom(e.Remote, rdma.DefaultPort), own)
	}
	req, err := l.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return req.PrivateData(), req.Accept(e.qp, own)
}

// complete is the goroutine that waits for completions.
func (e *rdmaEnd) complete(cq *rdma.CQ) {
	defer close(e.wcs)
	e.failed = completions(cq, func(wc *rdma.WC) (bool, error) {
		e.wcs <- *wc
		return true, nil
	})
}

// completions calls f for each, until it says that this is all: what is polled already is of no
// interest then.
func completions(cq *rdma.CQ, f func(*rdma.WC) (more bool, err error)) error {
	var wcs [64]rdma.WC
	for {
		if err := cq.Wait(context.Background()); err != nil {
			return err
		}
		n, err := cq.Poll(wcs[:])
		if err != nil {
			return err
		}
		for i := range wcs[:n] {
			if wcs[i].Status != rdma.StatusSuccess {
				return fmt.Errorf("a request completed with %v", wcs[i].Status)
			}
			if more, err := f(&wcs[i]); err != nil || !more {
				return err
			}
		}
	}
}

func (e *rdmaEnd) recv(i uint64) error { return e.qp.PostRecv(&e.recvs[i]) }

func (e *rdmaEnd) mark() error {
	return e.qp.PostSend(&rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Unsignaled, Inline: make([]byte, mark)})
}

// requests are what is posted for each message.
func (e *rdmaEnd) requests() []rdma.SendWR {
	data := []rdma.SGE{e.mr.SGE(0, e.Size)}
	switch e.Verb {
	case "send":
		return []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Unsignaled, SGL: data}}
	case "write":
		return []rdma.SendWR{
			{Op: rdma.OpWrite, Flags: rdma.Unsignaled, SGL: data, RemoteSTag: e.remote, RemoteTO: uint64(e.Size)},
			{Op: rdma.OpSend, Flags: rdma.Unsignaled, Inline: make([]byte, notice)},
		}
	}
	return []rdma.SendWR{{Op: rdma.OpRead, SGL: []rdma.SGE{e.mr.SGE(e.Size, e.Size)}, RemoteSTag: e.remote}}
}

func (e *rdmaEnd) post() error {
	_, err := e.qp.PostSendList(e.wrs)
	return err
}

// next is the next completion. Its receive buffer is posted again.
func (e *rdmaEnd) next() (rdma.WC, error) {
	wc, ok := <-e.wcs
	if !ok {
		return wc, e.failed
	}
	if wc.Opcode == rdma.WCRecv {
		return wc, e.recv(wc.ID)
	}
	return wc, nil
}

// exchange is a mark, and the peer's.
func (e *rdmaEnd) exchange() error {
	if err := e.mark(); err != nil {
		return err
	}
	_, err := e.next()
	return err
}

func (e *rdmaEnd) askAll(c *cost, r *report) error {
	if err := e.exchange(); err != nil {
		return err
	}
	c.begin()
	began := time.Now()
	list := e.newTrips(1)
	t := &list[0]
	for now := began; t.more(now, t.n); {
		if err := e.post(); err != nil {
			return err
		}
		if _, err := e.next(); err != nil {
			return err
		}
		after := time.Now()
		t.add(after.Sub(now))
		now = after
	}
	r.trips(list, time.Since(began))
	c.end(r)
	return e.exchange()
}

// answerAll ends after the second mark, which playRDMA answers.
func (e *rdmaEnd) answerAll(c *cost, r *report) error {
	for marks := 0; ; {
		wc, err := e.next()
		if err != nil {
			return err
		}
		if wc.ByteLen != mark {
			if err := e.post(); err != nil {
				return err
			}
			continue
		}
		if marks++; marks == 2 {
			c.end(r)
			return nil
		}
		c.begin()
		if err := e.mark(); err != nil {
			return err
		}
	}
}
