package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
)

// end is one end of a ping session: a QP and its memory.
type end struct {
	pd *rdma.PD
	cq *rdma.CQ
	qp *rdma.QP

	size             int
	pattern          []byte
	target, readable []byte // the peer writes there, a ping in each slot, and reads from there
	local            []byte // the parts below, one region
	source, sink     []part // written from, read to, a ping in each slot
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

// window is how many pings may be under way: as many have memory of their own to be written to and read to, 4 MiB if that is enough for one.
func window(size int) int { return min(64, max(1, 4<<20/max(size, 1))) }

// sessionMemory is what a session takes besides its data and its QP.
const sessionMemory = 16 << 10

// reads is how many RDMA Reads of pings are outstanding at most.
const reads = 16

// queues are those of a session.
func queues(size int) cli.Queues {
	n := messages(size)
	return cli.Queues{Send: 2 * n, Recv: n, Reads: reads, Completions: 8 * n, Pieces: 1, Inline: 1}
}

// memory is what one end takes, queues and completions included: a server counts it before it allocates.
func memory(size int) int {
	return (3*window(size)+2)*size + 2*messages(size)*(headerLen+size) + sessionMemory + int(queues(size).Memory())
}

func newEnd(dev *rdma.Device, size int, pattern []byte) (*end, error) {
	e := &end{pd: dev.AllocPD(), size: size, pattern: pattern}
	e.target, e.readable, e.scratch = make([]byte, window(size)*size), make([]byte, size), make([]byte, size)
	var at int
	cut := func(n int) part {
		p := part{at, n}
		at += n
		return p
	}
	for range window(size) {
		e.source, e.sink = append(e.source, cut(size)), append(e.sink, cut(size))
	}
	n := messages(size)
	for range n {
		e.out = append(e.out, cut(headerLen+size))
		e.in = append(e.in, cut(headerLen+size))
	}
	e.local = make([]byte, at)
	if err := e.open(dev); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// open makes what the device has room for, or a part of it.
func (e *end) open(dev *rdma.Device) (err error) {
	q := queues(e.size)
	if e.cq, err = dev.CreateCQ(q.Completions); err != nil {
		return err
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
			return err
		}
	}
	e.qp, err = dev.CreateQP(&rdma.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, MaxSend: q.Send, MaxRecv: q.Recv,
		MaxSGE: q.Pieces, MaxInline: q.Inline, IRD: q.Reads, ORD: q.Reads})
	if err != nil {
		return err
	}
	for i := range e.in {
		if err := e.postRecv(i); err != nil {
			return err
		}
	}
	return nil
}

func (e *end) close() {
	if e.qp != nil {
		e.qp.Close()
	}
	for _, mr := range []*rdma.MR{e.targetMR, e.readableMR, e.localMR} {
		if mr != nil {
			mr.Deregister()
		}
	}
}

func (e *end) hello() hello {
	return hello{
		size: uint32(e.size), pattern: e.pattern,
		write: remote{e.targetMR.STag(), e.targetMR.Base()},
		read:  remote{e.readableMR.STag(), e.readableMR.Base()},
	}
}

// slot is which memory of each kind belongs to ping seq.
func (e *end) slot(seq uint64) int { return int(seq % uint64(window(e.size))) }

// written is what the peer has written as ping seq.
func (e *end) written(seq uint64) []byte { return e.target[e.slot(seq)*e.size:][:e.size] }

// taken is a copy of it, where the answer leaves from: the peer may still write to what it has written, and what is
// judged is what goes back (RFC 5042 section 6.2.2).
func (e *end) taken(seq uint64) []byte {
	b := e.bytes(e.source[e.slot(seq)])
	copy(b, e.written(seq))
	return b
}

// same reports whether b holds the data of ping seq.
func (e *end) same(b []byte, seq uint64) bool {
	if len(b) != e.size {
		return false
	}
	fill(e.scratch, seq, e.pattern)
	return bytes.Equal(b, e.scratch)
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

// write posts an RDMA Write of data as ping seq.
func (e *end) write(to remote, seq uint64, data []byte) error {
	slot := e.slot(seq)
	copy(e.bytes(e.source[slot]), data)
	return e.qp.PostSend(&rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Unsignaled, SGL: e.sge(e.source[slot]), RemoteSTag: to.stag, RemoteTO: to.to + uint64(slot*e.size)})
}

// read posts an RDMA Read of ping seq.
func (e *end) read(from remote, seq uint64) error {
	sink := e.sink[e.slot(seq)]
	clear(e.bytes(sink))
	return e.qp.PostSend(&rdma.SendWR{ID: seq, Op: rdma.OpRead, SGL: e.sge(sink), RemoteSTag: from.stag, RemoteTO: from.to})
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
