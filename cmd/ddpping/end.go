package main

import (
	"context"
	"fmt"
	"time"

	"github.com/rddp-go/rddp/rdma"
)

// end is one end of a ping session: a QP and its memory.
type end struct {
	pd *rdma.PD
	cq *rdma.CQ
	qp *rdma.QP

	size             int
	target, readable []byte // the peer writes there and reads from there
	local            []byte // the parts below, one region
	source, sink     part   // written from, read to
	out, in          []part // messages to and from the peer
	scratch          []byte
	sends            int

	targetMR, readableMR, localMR *rdma.MR
	wcs                           [1]rdma.WC
}

// part is a part of the local region.
type part struct{ off, n int }

// messages says how many Sends one end can take at a time. A ping costs one, and a client has one
// under way; the rest is for replies that come late. Together they take 64 MiB at most.
func messages(size int) int { return min(64, max(4, 64<<20/(headerLen+size))) }

// sessionMemory is what a session takes besides its data: queues, completions, the session itself.
const sessionMemory = 64 << 10

// memory is what one end takes.
func memory(size int) int { return 5*size + 2*messages(size)*(headerLen+size) + sessionMemory }

func newEnd(dev *rdma.Device, size int) (*end, error) {
	e := &end{pd: dev.AllocPD(), size: size}
	e.target, e.readable, e.scratch = make([]byte, size), make([]byte, size), make([]byte, size)
	at := 0
	cut := func(n int) part {
		p := part{at, n}
		at += n
		return p
	}
	e.source, e.sink = cut(size), cut(size)
	n := messages(size)
	for range n {
		e.out = append(e.out, cut(headerLen+size))
		e.in = append(e.in, cut(headerLen+size))
	}
	e.local = make([]byte, at)
	var err error
	if e.cq, err = dev.CreateCQ(8 * n); err != nil {
		return nil, err
	}
	for _, r := range []struct {
		mr     **rdma.MR
		buf    []byte
		access rdma.Access
	}{
		{&e.targetMR, e.target, rdma.RemoteWrite},
		{&e.readableMR, e.readable, rdma.RemoteRead},
		{&e.localMR, e.local, rdma.LocalWrite},
	} {
		if *r.mr, err = e.pd.Register(r.buf, r.access, nil); err != nil {
			return nil, err
		}
	}
	e.qp, err = dev.CreateQP(&rdma.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, MaxSend: 2 * n, MaxRecv: n})
	if err != nil {
		return nil, err
	}
	for i := range e.in {
		if err := e.postRecv(i); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *end) close() {
	e.qp.Close()
	for _, mr := range []*rdma.MR{e.targetMR, e.readableMR, e.localMR} {
		mr.Deregister()
	}
}

func (e *end) hello() hello {
	return hello{
		size:  uint32(e.size),
		write: remote{e.targetMR.STag(), e.targetMR.Base()},
		read:  remote{e.readableMR.STag(), e.readableMR.Base()},
	}
}

func (e *end) bytes(p part) []byte { return e.local[p.off : p.off+p.n] }

func (e *end) sge(p part) []rdma.SGE { return []rdma.SGE{e.localMR.SGE(p.off, p.n)} }

func (e *end) postRecv(i int) error {
	return e.qp.PostRecv(&rdma.RecvWR{ID: uint64(i), SGL: e.sge(e.in[i])})
}

func (e *end) message(wc rdma.WC) []byte { return e.bytes(e.in[wc.ID])[:wc.ByteLen] }

// send posts a message with a copy of data.
func (e *end) send(op operation, verdict byte, seq uint64, data []byte) error {
	p := e.out[e.sends%len(e.out)]
	e.sends++
	b := e.bytes(p)
	putHeader(b, op, verdict, seq)
	p.n = headerLen + copy(b[headerLen:], data)
	return e.qp.PostSend(&rdma.SendWR{ID: seq, Op: rdma.OpSend, SGL: e.sge(p)})
}

// write posts an RDMA Write of source.
func (e *end) write(to remote) error {
	return e.qp.PostSend(&rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Unsignaled, SGL: e.sge(e.source), RemoteSTag: to.stag, RemoteTO: to.to})
}

// read posts an RDMA Read into sink.
func (e *end) read(from remote, seq uint64) error {
	return e.qp.PostSend(&rdma.SendWR{ID: seq, Op: rdma.OpRead, SGL: e.sge(e.sink), RemoteSTag: from.stag, RemoteTO: from.to})
}

// next waits for a completion.
func (e *end) next(ctx context.Context) (rdma.WC, error) {
	for {
		n, err := e.cq.Poll(e.wcs[:])
		if n == 1 || err != nil {
			return e.wcs[0], err
		}
		if err := e.cq.Wait(ctx); err != nil {
			return rdma.WC{}, err
		}
	}
}

// failure says why a request failed.
func (e *end) failure(wc rdma.WC) error {
	if err := e.qp.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%v failed: %v", wc.Opcode, wc.Status)
}

// leave ends the session and its association gracefully, but not for long.
func (e *end) leave(dev *rdma.Device) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if e.qp.Disconnect(ctx) == nil {
		dev.Wait(ctx)
	}
}
