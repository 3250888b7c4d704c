// Verbs is our end of operations with a program of rdma-core (verbs.c), each kind by itself. The
// client asks and the server answers; either may be ours.
//
//	send        the client sends data, and the server sends other data back
//	read        the server says where its data is, and the client reads it
//	write       the server says where it wants data; the client writes it there and says so
//	invalidate  as write, but the client's last Send invalidates the STag that the server gave
//
// After its last round of invalidate our client writes by an STag that it has invalidated, and the
// peer has to refuse that. It prints a line "result ok rounds=N", or what went wrong.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/test/interop/internal/completions"
)

const (
	noteLen  = 16 // octets of a note: round, STag and address
	numSlots = 4  // receives that are posted
)

// note is what a Send begins with. Data may follow.
type note struct {
	round uint32
	stag  rdma.STag
	addr  uint64
}

func (n note) put(b []byte) {
	binary.BigEndian.PutUint32(b, n.round)
	binary.BigEndian.PutUint32(b[4:], uint32(n.stag))
	binary.BigEndian.PutUint64(b[8:], n.addr)
}

// end is one end.
type end struct {
	kind      string
	size      int
	pd        *rdma.PD
	qp        *rdma.QP
	completed *completions.Queue
	mem       []byte // local data, a note to send, the target of the peer, and what is received
	mr        *rdma.MR
}

func main() {
	fs := cli.NewFlags("verbs")
	listen := fs.String("listen", "", "serve at this `address`, once")
	connect := fs.String("connect", "", "be the client of the server at this `address`")
	kind := fs.String("kind", "send", "what to do: send, read, write or invalidate")
	noCRC := fs.Bool("no-crc", false, "do without CRCs if the other end can")
	var rounds, size int
	var settle, limit time.Duration
	fs.Var(cli.Int(&rounds, 10, 1, 1e9), "rounds", "how often")
	fs.Var(cli.Int(&size, 64, 1, 1<<20), "size", "octets of data")
	fs.Var(cli.Duration(&settle, 0, 0, time.Minute), "settle", "how long a client waits before its first Send")
	fs.Var(cli.Duration(&limit, time.Minute, time.Second, time.Hour), "timeout", "for all of it")
	if err := cli.Parse(fs, os.Args[1:], os.Stdout, "Usage: verbs --listen ADDRESS | --connect ADDRESS"); err != nil {
		fmt.Println("result failed:", err)
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	dev, err := rdma.NewDevice(nil, &rdma.Config{TCP: rdma.TCPConfig{NoCRC: *noCRC}})
	if err != nil {
		fmt.Println("result failed:", err)
		os.Exit(1)
	}
	n, err := 0, error(nil)
	if e, setup := newEnd(dev, *kind, size); setup != nil {
		err = setup
	} else if *listen != "" {
		n, err = e.serveAll(ctx, dev, *listen, rounds)
	} else {
		n, err = e.driveAll(ctx, *connect, rounds, settle)
	}
	if err != nil {
		fmt.Printf("result failed rounds=%d: %v\n", n, err)
		os.Exit(1)
	}
	fmt.Printf("result ok rounds=%d\n", n)
}

func newEnd(dev *rdma.Device, kind string, size int) (e *end, err error) {
	e = &end{kind: kind, size: size, pd: dev.AllocPD(), mem: make([]byte, 2*size+noteLen+numSlots*(size+noteLen))}
	cq, err := dev.CreateCQ(64)
	if err != nil {
		return nil, err
	}
	e.completed = completions.New(cq)
	if e.mr, err = e.pd.Register(e.mem, rdma.LocalWrite|rdma.RemoteRead|rdma.RemoteWrite, nil); err != nil {
		return nil, err
	}
	e.qp, err = dev.CreateQP(&rdma.QPConfig{PD: e.pd, SendCQ: cq, RecvCQ: cq, MaxSend: 16, MaxRecv: 16,
		IRD: 4, ORD: 4, Negotiate: true})
	if err != nil {
		return nil, err
	}
	for i := range numSlots {
		if err := e.postRecv(uint64(i)); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *end) target() []byte { return e.mem[e.size+noteLen:][:e.size] }

// slotAt returns where receive id has its octets.
func (e *end) slotAt(id uint64) int { return 2*e.size + noteLen + int(id)*(e.size+noteLen) }

func (e *end) postRecv(id uint64) error {
	return e.qp.PostRecv(&rdma.RecvWR{ID: id, SGL: []rdma.SGE{e.mr.SGE(e.slotAt(id), e.size+noteLen)}})
}

// fill makes the data of a round.
func fill(b []byte, round uint32) {
	for k := range b {
		b[k] = octetOf(round, k)
	}
}

func octetOf(round uint32, k int) byte { return byte(round*31 + uint32(k)*7 + uint32(k)>>8) }

// check compares data with that of a round.
func check(b []byte, round uint32, what string) error {
	for k := range b {
		if b[k] != octetOf(round, k) {
			return fmt.Errorf("octet %d of %s is wrong", k, what)
		}
	}
	return nil
}

// await waits for a completion of one kind.
func (e *end) await(ctx context.Context, op rdmap.WCOpcode) (wc rdma.WC, err error) {
	if wc, err = e.completed.Next(ctx, op); err != nil {
		return wc, err
	}
	if wc.Status != rdmap.StatusSuccess {
		return wc, fmt.Errorf("%v: %v: %w", wc.Opcode, wc.Status, e.qp.Err())
	}
	return wc, nil
}

// takeNote waits for a Send.
func (e *end) takeNote(ctx context.Context) (n note, data []byte, wc rdma.WC, err error) {
	if wc, err = e.await(ctx, rdma.WCRecv); err != nil {
		return n, nil, wc, err
	}
	b := e.mem[e.slotAt(wc.ID):][:wc.ByteLen]
	if len(b) < noteLen {
		return n, nil, wc, fmt.Errorf("a Send of %d octets", len(b))
	}
	n = note{binary.BigEndian.Uint32(b), rdma.STag(binary.BigEndian.Uint32(b[4:])), binary.BigEndian.Uint64(b[8:])}
	data = append(data, b[noteLen:]...)
	return n, data, wc, e.postRecv(wc.ID)
}

// sendNote sends a note, and n octets of local data behind it. It invalidates an STag unless that is
// 0.
func (e *end) sendNote(ctx context.Context, what note, n int, invalidates rdma.STag) error {
	what.put(e.mem[e.size:])
	wr := rdma.SendWR{Op: rdma.OpSend, SGL: []rdma.SGE{e.mr.SGE(e.size, noteLen)}}
	if n > 0 {
		wr.SGL = append(wr.SGL, e.mr.SGE(0, n))
	}
	if invalidates != 0 {
		wr.Op, wr.InvalidateSTag = rdma.OpSendInv, invalidates
	}
	if err := e.qp.PostSend(&wr); err != nil {
		return err
	}
	_, err := e.await(ctx, rdma.WCSend)
	return err
}

// reach reads or writes local data at the peer.
func (e *end) reach(ctx context.Context, op rdmap.WROpcode, where note) error {
	wr := rdma.SendWR{Op: op, SGL: []rdma.SGE{e.mr.SGE(0, e.size)}, RemoteSTag: where.stag, RemoteTO: where.addr}
	if err := e.qp.PostSend(&wr); err != nil {
		return err
	}
	done := rdma.WCWrite
	if op == rdma.OpRead {
		done = rdma.WCRead
	}
	_, err := e.await(ctx, done)
	return err
}

// driveAll is the client.
func (e *end) driveAll(ctx context.Context, address string, rounds int, settle time.Duration) (n int, err error) {
	if _, err = e.qp.Dial(ctx, "tcp", address, nil); err != nil {
		return 0, err
	}
	time.Sleep(settle)
	var last note
	for ; n < rounds; n++ {
		if last, err = e.driveOnce(ctx, uint32(n)); err != nil {
			return n, err
		}
	}
	if e.kind == "invalidate" {
		return n, e.writeInvalid(ctx, last)
	}
	if err := e.sendNote(ctx, note{round: uint32(n)}, 0, 0); err != nil {
		return n, err
	}
	return n, e.awaitEnd(ctx)
}

// awaitEnd waits until the peer has ended the session.
func (e *end) awaitEnd(ctx context.Context) error {
	select {
	case <-e.qp.Done():
		return e.qp.Err()
	case <-ctx.Done():
		return errors.New("the other end does not end the session")
	}
}

// driveOnce is a round of the client. It returns what the server has said of its memory.
func (e *end) driveOnce(ctx context.Context, i uint32) (theirs note, err error) {
	local := e.mem[:e.size]
	if e.kind == "send" {
		fill(local, i)
		if err = e.sendNote(ctx, note{round: i}, e.size, 0); err != nil {
			return theirs, err
		}
		_, data, _, err := e.takeNote(ctx)
		if err != nil {
			return theirs, err
		}
		return theirs, check(data, ^i, "the answer")
	}
	if err = e.sendNote(ctx, note{round: i}, 0, 0); err != nil {
		return theirs, err
	}
	if theirs, _, _, err = e.takeNote(ctx); err != nil {
		return theirs, err
	}
	if e.kind == "read" {
		if err = e.reach(ctx, rdma.OpRead, theirs); err != nil {
			return theirs, err
		}
		return theirs, check(local, i, "what was read")
	}
	fill(local, i)
	if err = e.reach(ctx, rdma.OpWrite, theirs); err != nil {
		return theirs, err
	}
	var invalidates rdma.STag
	if e.kind == "invalidate" {
		invalidates = theirs.stag
	}
	if err = e.sendNote(ctx, note{round: i}, 0, invalidates); err != nil {
		return theirs, err
	}
	_, _, _, err = e.takeNote(ctx)
	return theirs, err
}

// writeInvalid writes where nothing may be written any more. The peer ends the session by a
// Terminate of DDP: an STag that is not valid (RFC 5041 section 7).
func (e *end) writeInvalid(ctx context.Context, where note) error {
	if err := e.reach(ctx, rdma.OpWrite, where); err != nil {
		return err // over TCP it is done when it is sent
	}
	err := e.awaitEnd(ctx)
	var refused *rdmap.StreamError
	if !errors.As(err, &refused) || !refused.Remote {
		return fmt.Errorf("a Write by an STag that was invalidated ends by %v, and not by a Terminate", err)
	}
	fmt.Println("refused:", refused)
	return nil
}

// serveAll is the server.
func (e *end) serveAll(ctx context.Context, dev *rdma.Device, address string, rounds int) (n int, err error) {
	l, err := dev.ListenOn("tcp", address)
	if err != nil {
		return 0, err
	}
	fmt.Println("listening")
	req, err := l.Accept(ctx)
	if err != nil {
		return 0, err
	}
	if err := req.Accept(e.qp, nil); err != nil {
		return 0, err
	}
	for ; n < rounds; n++ {
		if err := e.serveOnce(ctx, uint32(n)); err != nil {
			return n, err
		}
	}
	if _, _, _, err := e.takeNote(ctx); err != nil { // that was all
		return n, err
	}
	return n, e.qp.Disconnect(ctx)
}

// serveOnce is a round of the server.
func (e *end) serveOnce(ctx context.Context, i uint32) error {
	_, data, _, err := e.takeNote(ctx)
	if err != nil {
		return err
	}
	if e.kind == "send" {
		if err := check(data, i, "what was sent"); err != nil {
			return err
		}
		fill(e.mem[:e.size], ^i)
		return e.sendNote(ctx, note{round: i}, e.size, 0)
	}
	where := note{i, e.mr.STag(), e.mr.Base() + uint64(e.size+noteLen)}
	switch e.kind {
	case "read":
		fill(e.target(), i)
		return e.sendNote(ctx, where, 0, 0)
	case "invalidate":
		window, err := e.pd.Register(e.target(), rdma.LocalWrite|rdma.RemoteWrite, &rdma.RegionOptions{QP: e.qp})
		if err != nil {
			return err
		}
		defer window.Deregister()
		where.stag, where.addr = window.STag(), window.Base()
	}
	if err := e.sendNote(ctx, where, 0, 0); err != nil {
		return err
	}
	_, _, wc, err := e.takeNote(ctx)
	if err != nil {
		return err
	}
	if e.kind == "invalidate" && (!wc.Invalidated || wc.InvalidatedSTag != where.stag) {
		return fmt.Errorf("%+v, and not the invalidation of %v", wc, where.stag)
	}
	if err := check(e.target(), i, "what was written"); err != nil {
		return err
	}
	return e.sendNote(ctx, note{round: i}, 0, 0)
}
