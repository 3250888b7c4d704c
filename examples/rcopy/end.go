package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// end is one end of a copy: a QP with room for one message of the other side.
type end struct {
	pd *rdma.PD
	cq *rdma.CQ
	qp *rdma.QP

	in   [1 + maxText]byte // the message
	inMR *rdma.MR
	wcs  [1]rdma.WC
}

// farewell is how long either side waits for the other to end the session in order.
const farewell = 2 * time.Second

var errGone = errors.New("the other side has ended the session")

// newEnd makes an end that can have depth requests under way.
func newEnd(dev *rdma.Device, depth int) (*end, error) {
	e := &end{pd: dev.AllocPD()}
	var err error
	if e.inMR, err = e.pd.Register(e.in[:], rdma.LocalWrite, nil); err != nil {
		return nil, err
	}
	if e.cq, err = dev.CreateCQ(depth + 1); err == nil {
		e.qp, err = dev.CreateQP(&rdma.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq,
			MaxSend: depth, MaxRecv: 1, MaxSGE: 1, MaxInline: len(e.in), IRD: -1, ORD: -1})
	}
	if err == nil {
		err = e.qp.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{e.inMR.SGE(0, len(e.in))}})
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

func (e *end) close() {
	if e.qp != nil {
		e.qp.Close()
	}
	e.inMR.Deregister()
}

// say posts a small message.
func (e *end) say(msg []byte) error {
	return e.reason(e.qp.PostSend(&rdma.SendWR{Op: rdma.OpSend, Inline: msg}))
}

// received returns the message that wc completes.
func (e *end) received(wc rdma.WC) []byte { return e.in[:wc.ByteLen] }

// next waits for a completion. After patience it fails with context.DeadlineExceeded. A request
// that failed is an error.
func (e *end) next(ctx context.Context, patience time.Duration) (rdma.WC, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		n, err := e.cq.Poll(e.wcs[:])
		switch wc := e.wcs[0]; {
		case err != nil:
			return wc, err
		case n == 1 && wc.Status == rdmap.StatusSuccess:
			return wc, nil
		case n == 1 && wc.Status == rdmap.StatusWRFlushErr:
			return wc, e.reason(errGone)
		case n == 1:
			return wc, e.reason(fmt.Errorf("%v failed: %v", wc.Opcode, wc.Status))
		}
		if err := e.cq.Wait(ctx); err != nil {
			return rdma.WC{}, err
		}
	}
}

// reason returns why the session failed, if it did, in place of the errors that it led to.
func (e *end) reason(err error) error {
	if why := e.qp.Err(); err != nil && why != nil {
		return &cli.SessionError{Err: why}
	}
	return err
}
