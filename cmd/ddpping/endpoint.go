package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
)

// endpoint is one end of a ping session: a QP and its memory.
type endpoint struct {
	pd *rdma.PD
	cq *rdma.CQ
	qp *rdma.QP

	size                    int
	pattern                 []byte
	writeTarget, readTarget []byte    // the peer writes there, a ping in each slot, and reads from there
	localMem                []byte    // the parts below, one region
	source, sink            []memPart // written from, read to, a ping in each slot
	outgoing, incoming      []memPart // messages to and from the peer
	scratch                 []byte
	sendCount               int

	targetMR, readableMR, localMR *rdma.MR
	wcs                           [1]rdma.WC
}

// memPart is a part of the local region.
type memPart struct{ off, n int }

// messageBufs is how many Sends one end can take at a time. A ping costs one, and a client has one
// under way. The rest is for late replies. Together they take 64 MiB at most.
func messageBufs(size int) int { return min(64, max(4, 64<<20/(headerLen+size))) }

// maxOutstanding is how many pings may be under way. Each has memory of its own to be written to
// and read to. Together that is 4 MiB, or one ping if that is larger.
func maxOutstanding(size int) int { return min(64, max(1, 4<<20/max(size, 1))) }

// sessionMemory is what a session takes besides its data and its QP.
const sessionMemory = 16 << 10

// maxReads is the most RDMA Reads of pings that are outstanding.
const maxReads = 16

// queueSizes are the queue sizes of a session.
func queueSizes(size int) cli.Queues {
	n := messageBufs(size)
	return cli.Queues{Send: 2 * n, Recv: n, Reads: maxReads, Completions: 8 * n, SGEs: 1, Inline: 1}
}

// endpointMemory is what one end takes, including queues and completions. A server counts it before
// it allocates.
func endpointMemory(size int) int {
	return (3*maxOutstanding(size)+2)*size + 2*messageBufs(size)*(headerLen+size) + sessionMemory +
		int(queueSizes(size).Memory())
}

func newEndpoint(dev *rdma.Device, size int, pattern []byte) (*endpoint, error) {
	e := &endpoint{pd: dev.AllocPD(), size: size, pattern: pattern}
	e.writeTarget, e.readTarget, e.scratch = make([]byte, maxOutstanding(size)*size), make([]byte, size),
		make([]byte, size)
	var at int
	cut := func(n int) memPart {
		p := memPart{at, n}
		at += n
		return p
	}
	for range maxOutstanding(size) {
		e.source, e.sink = append(e.source, cut(size)), append(e.sink, cut(size))
	}
	n := messageBufs(size)
	for range n {
		e.outgoing = append(e.outgoing, cut(headerLen+size))
		e.incoming = append(e.incoming, cut(headerLen+size))
	}
	e.localMem = make([]byte, at)
	if err := e.createResources(dev); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// createResources makes all that the device has room for, or a part of it.
func (e *endpoint) createResources(dev *rdma.Device) (err error) {
	q := queueSizes(e.size)
	if e.cq, err = dev.CreateCQ(q.Completions); err != nil {
		return err
	}
	for _, r := range []struct {
		mr     **rdma.MR
		buf    []byte
		access rdma.Access
	}{
		{&e.targetMR, e.writeTarget, rdma.RemoteWrite},
		{&e.readableMR, e.readTarget, rdma.RemoteRead},
		{&e.localMR, e.localMem, rdma.LocalWrite},
	} {
		if *r.mr, err = e.pd.Register(r.buf, r.access, nil); err != nil {
			return err
		}
	}
	e.qp, err = dev.CreateQP(&rdma.QPConfig{PD: e.pd, SendCQ: e.cq, RecvCQ: e.cq, MaxSend: q.Send, MaxRecv: q.Recv,
		MaxSGE: q.SGEs, MaxInline: q.Inline, IRD: q.Reads, ORD: q.Reads})
	if err != nil {
		return err
	}
	for i := range e.incoming {
		if err := e.postRecv(i); err != nil {
			return err
		}
	}
	return nil
}

func (e *endpoint) close() {
	if e.qp != nil {
		e.qp.Close()
	}
	for _, mr := range []*rdma.MR{e.targetMR, e.readableMR, e.localMR} {
		if mr != nil {
			mr.Deregister()
		}
	}
}

func (e *endpoint) makeHello() hello {
	return hello{
		size: uint32(e.size), pattern: e.pattern,
		write: remoteBuf{e.targetMR.STag(), e.targetMR.Base()},
		read:  remoteBuf{e.readableMR.STag(), e.readableMR.Base()},
	}
}

// slotOf returns the slot of ping seq in each kind of memory.
func (e *endpoint) slotOf(seq uint64) int { return int(seq % uint64(maxOutstanding(e.size))) }

// writtenData returns what the peer has written as ping seq.
func (e *endpoint) writtenData(seq uint64) []byte {
	return e.writeTarget[e.slotOf(seq)*e.size:][:e.size]
}

// copyWritten copies writtenData to the memory that the answer leaves from. The server must judge
// what goes back (RFC 5042 section 6.2.2), and the peer may still write to the original.
func (e *endpoint) copyWritten(seq uint64) []byte {
	b := e.partBytes(e.source[e.slotOf(seq)])
	copy(b, e.writtenData(seq))
	return b
}

// hasPingData reports whether b holds the data of ping seq.
func (e *endpoint) hasPingData(b []byte, seq uint64) bool {
	if len(b) != e.size {
		return false
	}
	fillData(e.scratch, seq, e.pattern)
	return bytes.Equal(b, e.scratch)
}

func (e *endpoint) partBytes(p memPart) []byte { return e.localMem[p.off : p.off+p.n] }

func (e *endpoint) partSGE(p memPart) []rdma.SGE { return []rdma.SGE{e.localMR.SGE(p.off, p.n)} }

func (e *endpoint) postRecv(i int) error {
	return e.qp.PostRecv(&rdma.RecvWR{ID: uint64(i), SGL: e.partSGE(e.incoming[i])})
}

func (e *endpoint) receivedMessage(wc rdma.WC) []byte {
	return e.partBytes(e.incoming[wc.ID])[:wc.ByteLen]
}

// postMessage posts a message with a copy of data.
func (e *endpoint) postMessage(op operation, verdict byte, seq uint64, data []byte) error {
	p := e.outgoing[e.sendCount%len(e.outgoing)]
	e.sendCount++
	b := e.partBytes(p)
	putHeader(b, op, verdict, seq)
	p.n = headerLen + copy(b[headerLen:], data)
	return e.qp.PostSend(&rdma.SendWR{ID: seq, Op: rdma.OpSend, SGL: e.partSGE(p)})
}

// postWrite posts an RDMA Write of data as ping seq.
func (e *endpoint) postWrite(to remoteBuf, seq uint64, data []byte) error {
	slot := e.slotOf(seq)
	copy(e.partBytes(e.source[slot]), data)
	return e.qp.PostSend(&rdma.SendWR{Op: rdma.OpWrite, Flags: rdma.Unsignaled, SGL: e.partSGE(e.source[slot]),
		RemoteSTag: to.stag, RemoteTO: to.to + uint64(slot*e.size)})
}

// postRead posts an RDMA Read of ping seq.
func (e *endpoint) postRead(from remoteBuf, seq uint64) error {
	sink := e.sink[e.slotOf(seq)]
	clear(e.partBytes(sink))
	return e.qp.PostSend(&rdma.SendWR{ID: seq, Op: rdma.OpRead, SGL: e.partSGE(sink), RemoteSTag: from.stag,
		RemoteTO: from.to})
}

// nextCompletion waits for a completion.
func (e *endpoint) nextCompletion(ctx context.Context) (rdma.WC, error) {
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

// requestError returns why a request failed.
func (e *endpoint) requestError(wc rdma.WC) error {
	if err := e.qp.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%v failed: %v", wc.Opcode, wc.Status)
}

// closeGracefully ends the session and its association gracefully, but does not wait long.
func (e *endpoint) closeGracefully(dev *rdma.Device) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if e.qp.Disconnect(ctx) == nil {
		dev.Wait(ctx)
	}
}
