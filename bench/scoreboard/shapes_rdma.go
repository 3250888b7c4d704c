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
// those of direct are with sharedCQ.
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

// recvBufferSize is how long a receive buffer is.
func (e *rdmaEnd) recvBufferSize() int {
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
		err = newCQEnds(list, cq).runEnd(c, &rep)
	} else {
		err = list[0].runEnd(cq, c, &rep)
	}
	if err == nil {
		err = rep.printJSON(out)
	}
	if err == nil && e.Server {
		if err = list[0].postMark(); err == nil {
			select {}
		}
	}
	return err
}

// runEnd has a goroutine wait for completions and a worker see to them.
func (e *rdmaEnd) runEnd(cq *rdma.CQ, c *cost, r *report) error {
	go e.pollCompletions(cq)
	if e.Server {
		return e.answerAll(c, r)
	}
	return e.askAll(c, r)
}

// rdmaEnds connects a QP for each connection, each over an association of its own. All complete on
// one CQ.
func (e *end) rdmaEnds(out io.Writer) (list []*rdmaEnd, cq *rdma.CQ, err error) {
	link, err := e.openLink()
	if err != nil {
		return nil, nil, err
	}
	dev, err := rdma.NewDevice(link, &rdma.Config{Transport: *manyPeers()})
	if err != nil {
		return nil, nil, err
	}
	if cq, err = dev.CreateCQ(512 * e.numConns()); err != nil {
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
	for range e.numConns() {
		r := &rdmaEnd{end: e, wcs: make(chan rdma.WC, queued)}
		if err = r.connectQP(dev, cq, l); err != nil {
			return nil, nil, err
		}
		list = append(list, r)
	}
	return list, cq, nil
}

func (e *rdmaEnd) connectQP(dev *rdma.Device, cq *rdma.CQ, l *rdma.Listener) (err error) {
	pd := dev.AllocPD()
	e.mr, err = pd.Register(make([]byte, 2*e.Size+rdmaRecvs*e.recvBufferSize()),
		rdma.LocalWrite|rdma.RemoteWrite|rdma.RemoteRead, nil)
	if err != nil {
		return err
	}
	if e.qp, err = dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxRecv: rdmaRecvs,
		OwnAssociation: true}); err != nil {
		return err
	}
	for i := range rdmaRecvs {
		e.recvs[i] = rdma.RecvWR{ID: uint64(i),
			SGL: []rdma.SGE{e.mr.SGE(2*e.Size+i*e.recvBufferSize(), e.recvBufferSize())}}
		if err := e.postRecv(uint64(i)); err != nil {
			return err
		}
	}
	own := binary.BigEndian.AppendUint32(nil, uint32(e.mr.STag()))
	theirs, err := e.exchangePrivateData(l, own)
	if err == nil && len(theirs) != len(own) {
		err = fmt.Errorf("private data of %d octets", len(theirs))
	}
	if err == nil {
		e.remote = rdma.STag(binary.BigEndian.Uint32(theirs))
		e.wrs = e.buildRequests()
	}
	return err
}

// exchangePrivateData exchanges private data with the peer.
func (e *rdmaEnd) exchangePrivateData(l *rdma.Listener, own []byte) ([]byte, error) {
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

// pollCompletions is the goroutine that waits for completions.
func (e *rdmaEnd) pollCompletions(cq *rdma.CQ) {
	defer close(e.wcs)
	e.failed = forEachCompletion(cq, func(wc *rdma.WC) (bool, error) {
		e.wcs <- *wc
		return true, nil
	})
}

// forEachCompletion calls f for each, until it says that this is all: what is polled already is of
// no interest then.
func forEachCompletion(cq *rdma.CQ, f func(*rdma.WC) (more bool, err error)) error {
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

func (e *rdmaEnd) postRecv(i uint64) error { return e.qp.PostRecv(&e.recvs[i]) }

func (e *rdmaEnd) postMark() error {
	return e.qp.PostSend(&rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Unsignaled, Inline: make([]byte, mark)})
}

// buildRequests are what is posted for each message.
func (e *rdmaEnd) buildRequests() []rdma.SendWR {
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

func (e *rdmaEnd) postRequests() error {
	_, err := e.qp.PostSendList(e.wrs)
	return err
}

// nextCompletion is the next completion. Its receive buffer is posted again.
func (e *rdmaEnd) nextCompletion() (rdma.WC, error) {
	wc, ok := <-e.wcs
	if !ok {
		return wc, e.failed
	}
	if wc.Opcode == rdma.WCRecv {
		return wc, e.postRecv(wc.ID)
	}
	return wc, nil
}

// exchangeMarks is a mark, and the peer's.
func (e *rdmaEnd) exchangeMarks() error {
	if err := e.postMark(); err != nil {
		return err
	}
	_, err := e.nextCompletion()
	return err
}

func (e *rdmaEnd) askAll(c *cost, r *report) error {
	if err := e.exchangeMarks(); err != nil {
		return err
	}
	c.startClock()
	began := time.Now()
	list := e.newTrips(1)
	t := &list[0]
	for now := began; t.wantsMore(now, t.n); {
		if err := e.postRequests(); err != nil {
			return err
		}
		if _, err := e.nextCompletion(); err != nil {
			return err
		}
		after := time.Now()
		t.addTrip(after.Sub(now))
		now = after
	}
	r.sumTrips(list, time.Since(began))
	c.stopClock(r)
	return e.exchangeMarks()
}

// answerAll ends after the second mark, which playRDMA answers.
func (e *rdmaEnd) answerAll(c *cost, r *report) error {
	for marks := 0; ; {
		wc, err := e.nextCompletion()
		if err != nil {
			return err
		}
		if wc.ByteLen != mark {
			if err := e.postRequests(); err != nil {
				return err
			}
			continue
		}
		if marks++; marks == 2 {
			c.stopClock(r)
			return nil
		}
		c.startClock()
		if err := e.postMark(); err != nil {
			return err
		}
	}
}
