// Perftest is our end of ib_send_bw, ib_write_bw and ib_read_bw of perftest with -R, as the server.
// By Sends of one queue pair a client says what it wants to know of the server, and of the result.
// The server has the same to say, but for where its memory is. Another queue pair, of a second
// connection, is measured. It prints a line "result ok said=N", with the number of messages of the
// first one, or what went wrong.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/test/interop/internal/completions"
)

// A message about a queue pair has 56 octets, big-endian. What else stands in it is of InfiniBand.
const (
	destLen = 56
	stagAt  = 16
	addrAt  = 24
)

const (
	numSlots   = 512 // receives that are posted, as perftest does
	creditStep = 16  // Sends after which the client hears of them
	maxSend    = 4
	targetLen  = 1 << 20 // octets of the memory for the client
	untold     = 0xa5    // each octet of it, before somebody writes
)

// end is the server.
type end struct {
	dev     *rdma.Device
	pd      *rdma.PD
	credits atomic.Pointer[memory] // what the client has said last
}

func main() {
	fs := cli.NewFlags("perftest")
	listen := fs.String("listen", "", "serve one client at this `address`")
	kind := fs.String("kind", "send", "what the client measures: send, write or read")
	noCRC := fs.Bool("no-crc", false, "do without CRCs if the other end can")
	var iters, size int
	var limit time.Duration
	fs.Var(cli.Int(&iters, 1000, 1, 1e9), "iters", "how many operations")
	fs.Var(cli.Int(&size, 1024, destLen+1, 1<<20), "size", "octets of each")
	fs.Var(cli.Duration(&limit, time.Minute, time.Second, time.Hour), "timeout", "for all of it")
	if err := cli.Parse(fs, os.Args[1:], os.Stdout, "Usage: perftest --listen ADDRESS"); err != nil {
		fmt.Println("result failed:", err)
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	said, err := 0, error(nil)
	if dev, setup := rdma.NewDevice(nil, &rdma.Config{TCP: rdma.TCPConfig{NoCRC: *noCRC}}); setup != nil {
		err = setup
	} else {
		e := &end{dev: dev, pd: dev.AllocPD()}
		said, err = e.serve(ctx, *listen, *kind, iters, size)
	}
	if err != nil {
		fmt.Printf("result failed said=%d: %v\n", said, err)
		os.Exit(1)
	}
	fmt.Printf("result ok said=%d\n", said)
}

// memory is where the client has some. Before it measures Sends it waits there for their number, as
// without flow control it would send more than there are receives for.
type memory struct {
	stag rdma.STag
	addr uint64
}

// channel is a queue pair whose receives lie in slots of a memory, and what it sends behind them.
type channel struct {
	qp        *rdma.QP
	completed *completions.Queue
	mem       []byte
	mr        *rdma.MR
	slots     int
	slotLen   int
}

func (e *end) newChannel(slots, slotLen int) (c *channel, err error) {
	c = &channel{mem: make([]byte, (slots+1)*slotLen), slots: slots, slotLen: slotLen}
	cq, err := e.dev.CreateCQ(slots + maxSend)
	if err != nil {
		return nil, err
	}
	c.completed = completions.New(cq)
	if c.mr, err = e.pd.Register(c.mem, rdma.LocalWrite, nil); err != nil {
		return nil, err
	}
	c.qp, err = e.dev.CreateQP(&rdma.QPConfig{PD: e.pd, SendCQ: cq, RecvCQ: cq, MaxSend: maxSend, MaxRecv: slots,
		IRD: 16, ORD: 16, Negotiate: true})
	for i := 0; i < slots && err == nil; i++ {
		err = c.postRecv(uint64(i))
	}
	return c, err
}

func (c *channel) postRecv(id uint64) error {
	return c.qp.PostRecv(&rdma.RecvWR{ID: id, SGL: []rdma.SGE{c.mr.SGE(int(id)*c.slotLen, c.slotLen)}})
}

// receive waits for a Send, and returns a copy of it.
func (c *channel) receive(ctx context.Context) ([]byte, error) {
	wc, err := c.await(ctx, rdma.WCRecv)
	if err != nil {
		return nil, err
	}
	b := bytes.Clone(c.mem[int(wc.ID)*c.slotLen:][:wc.ByteLen])
	return b, c.postRecv(wc.ID)
}

func (c *channel) send(ctx context.Context, b []byte) error {
	return c.post(ctx, &rdma.SendWR{Op: rdma.OpSend}, b, rdma.WCSend)
}

// write writes to the memory of the client.
func (c *channel) write(ctx context.Context, to *memory, b []byte) error {
	return c.post(ctx, &rdma.SendWR{Op: rdma.OpWrite, RemoteSTag: to.stag, RemoteTO: to.addr}, b, rdma.WCWrite)
}

func (c *channel) post(ctx context.Context, wr *rdma.SendWR, b []byte, done rdmap.WCOpcode) error {
	at := c.slots * c.slotLen
	copy(c.mem[at:], b)
	wr.SGL = []rdma.SGE{c.mr.SGE(at, len(b))}
	if err := c.qp.PostSend(wr); err != nil {
		return err
	}
	_, err := c.await(ctx, done)
	return err
}

// errEnded is for a queue pair that the client has ended.
var errEnded = errors.New("the client has ended the session")

func (c *channel) await(ctx context.Context, op rdmap.WCOpcode) (wc rdma.WC, err error) {
	wc, err = c.completed.Next(ctx, op)
	switch {
	case err != nil || wc.Status == rdmap.StatusSuccess:
	case wc.Status == rdmap.StatusWRFlushErr && c.qp.Err() == nil:
		err = errEnded
	default:
		err = fmt.Errorf("%v: %v: %w", wc.Opcode, wc.Status, c.qp.Err())
	}
	return wc, err
}

// serve serves one client until it goes, and returns how many messages it has answered.
func (e *end) serve(ctx context.Context, address, kind string, iters, size int) (said int, err error) {
	l, err := e.dev.ListenOn("tcp", address)
	if err != nil {
		return 0, err
	}
	target := bytes.Repeat([]byte{untold}, targetLen)
	mr, err := e.pd.Register(target, rdma.LocalWrite|rdma.RemoteRead|rdma.RemoteWrite, nil)
	if err != nil {
		return 0, err
	}
	fmt.Println("listening")
	talk, err := e.accept(ctx, l, 2, destLen)
	if err != nil {
		return 0, err
	}
	type outcome struct {
		sends int
		err   error
	}
	measured := make(chan outcome, 1)
	go func() {
		n, err := e.measure(ctx, l, size)
		measured <- outcome{n, err}
	}()
	if said, err = e.answerAll(ctx, talk, mr); err != nil {
		return said, fmt.Errorf("what is said: %w", err)
	}
	o := <-measured
	isWritten := slices.ContainsFunc(target, func(b byte) bool { return b != untold })
	switch {
	case o.err != nil:
		return said, fmt.Errorf("what is measured: %w", o.err)
	case kind == "send" && o.sends != iters:
		return said, fmt.Errorf("%d of %d Sends have come", o.sends, iters)
	case (kind == "write") != isWritten:
		return said, errors.New("the memory for the client is not as it should be")
	}
	return said, nil
}

// accept takes a connection.
func (e *end) accept(ctx context.Context, l *rdma.Listener, slots, slotLen int) (*channel, error) {
	c, err := e.newChannel(slots, slotLen)
	if err != nil {
		return nil, err
	}
	req, err := l.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return c, req.Accept(c.qp, nil)
}

// measure takes the connection that is measured, counts the Sends that come, and tells the client.
// Its processor is little-endian.
func (e *end) measure(ctx context.Context, l *rdma.Listener, size int) (sends int, err error) {
	c, err := e.accept(ctx, l, numSlots, size)
	for err == nil {
		if _, err = c.receive(ctx); err != nil {
			break
		}
		if sends++; sends%creditStep == 0 {
			err = c.write(ctx, e.credits.Load(), binary.LittleEndian.AppendUint32(nil, uint32(sends)))
		}
	}
	if errors.Is(err, errEnded) {
		err = nil
	}
	return sends, err
}

// answerAll answers each message by the same, and what is about a queue pair by where the memory is.
func (e *end) answerAll(ctx context.Context, c *channel, mr *rdma.MR) (said int, err error) {
	for {
		b, err := c.receive(ctx)
		if err == nil {
			if len(b) == destLen {
				e.credits.Store(&memory{rdma.STag(binary.BigEndian.Uint32(b[stagAt:])), binary.BigEndian.Uint64(b[addrAt:])})
				binary.BigEndian.PutUint32(b[stagAt:], uint32(mr.STag()))
				binary.BigEndian.PutUint64(b[addrAt:], mr.Base())
			}
			err = c.send(ctx, b)
		}
		switch {
		case errors.Is(err, errEnded):
			return said, nil
		case err != nil:
			return said, err
		}
		said++
	}
}
