// Rping is our end of the program of that name, which comes with Linux's RDMA. Each round has two
// Sends each way, a Read and a Write:
//
//	the client says where its data is, and the server reads it;
//	the client says where it wants it back, and the server writes it there.
//
// It prints a line "result ok rounds=N", or what went wrong.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/test/interop/internal/completions"
)

// adLen is the length of an advertisement: address, STag and length of a buffer.
const adLen = 16

// end is one end.
type end struct {
	qp        *rdma.QP
	completed *completions.Queue
	mem       []byte // the data, an advertisement to send, and two that come
	mr        *rdma.MR
	size      int
}

func main() {
	fs := cli.NewFlags("rping")
	listen := fs.String("listen", "", "serve at this `address`, once")
	connect := fs.String("connect", "", "ping the server at this `address`")
	noCRC := fs.Bool("no-crc", false, "do without CRCs if the other end can")
	noRTR := fs.Bool("no-rtr", false, "send no empty message ahead of others (RFC 6581 section 9.2)")
	var rounds, size int
	var settle, limit time.Duration
	fs.Var(cli.Int(&rounds, 10, 1, 1e9), "rounds", "of a client")
	fs.Var(cli.Int(&size, 64, 1, 1<<20), "size", "octets of data")
	fs.Var(cli.Duration(&settle, 0, 0, time.Minute), "settle", "how long a client waits before its first Send")
	fs.Var(cli.Duration(&limit, time.Minute, time.Second, time.Hour), "timeout", "for all of it")
	if err := cli.Parse(fs, os.Args[1:], os.Stdout, "Usage: rping --listen ADDRESS | --connect ADDRESS"); err != nil {
		fmt.Println("result failed:", err)
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	n, err := run(ctx, *listen, *connect, rounds, size, settle, rdma.TCPConfig{NoCRC: *noCRC, Plain: *noRTR})
	if err != nil {
		fmt.Printf("result failed rounds=%d: %v\n", n, err)
		os.Exit(1)
	}
	fmt.Printf("result ok rounds=%d\n", n)
}

func run(ctx context.Context, listen, connect string, rounds, size int, settle time.Duration,
	cfg rdma.TCPConfig) (n int, err error) {
	dev, err := rdma.NewDevice(nil, &rdma.Config{TCP: cfg})
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	e, err := newEnd(dev, size)
	if err != nil {
		return 0, err
	}
	if listen == "" {
		if _, err = e.qp.Dial(ctx, "tcp", connect, nil); err != nil {
			return 0, err
		}
		time.Sleep(settle)
		for ; n < rounds; n++ {
			if err := e.pingOnce(ctx); err != nil {
				return n, err
			}
		}
		return n, e.qp.Disconnect(ctx)
	}
	l, err := dev.ListenOn("tcp", listen)
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
	for ; ; n++ {
		if err := e.answerOnce(ctx); errors.Is(err, errGone) && e.qp.Err() == nil {
			return n, nil
		} else if err != nil {
			return n, err
		}
	}
}

// errGone: the client has ended the session.
var errGone = errors.New("the other end has gone")

func newEnd(dev *rdma.Device, size int) (e *end, err error) {
	e = &end{mem: make([]byte, size+3*adLen), size: size}
	pd := dev.AllocPD()
	cq, err := dev.CreateCQ(64)
	if err != nil {
		return nil, err
	}
	e.completed = completions.New(cq)
	if e.mr, err = pd.Register(e.mem, rdma.LocalWrite|rdma.RemoteRead|rdma.RemoteWrite, nil); err != nil {
		return nil, err
	}
	// rping serves one Read at a time.
	e.qp, err = dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxSend: 16, MaxRecv: 16,
		IRD: 1, ORD: 1, Negotiate: true})
	if err != nil {
		return nil, err
	}
	for i := range 2 {
		if err := e.postRecv(uint64(i)); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// recvAt returns where receive id has its octets.
func (e *end) recvAt(id uint64) int { return e.size + adLen*int(1+id) }

func (e *end) postRecv(id uint64) error {
	return e.qp.PostRecv(&rdma.RecvWR{ID: id, SGL: []rdma.SGE{e.mr.SGE(e.recvAt(id), adLen)}})
}

// send sends an advertisement of the data.
func (e *end) send() error {
	ad := e.mem[e.size:][:adLen]
	binary.BigEndian.PutUint64(ad, e.mr.Base())
	binary.BigEndian.PutUint32(ad[8:], uint32(e.mr.STag()))
	binary.BigEndian.PutUint32(ad[12:], uint32(e.size))
	return e.qp.PostSend(&rdma.SendWR{Op: rdma.OpSend, Flags: rdma.Unsignaled,
		SGL: []rdma.SGE{e.mr.SGE(e.size, adLen)}})
}

// await waits for a completion of one kind.
func (e *end) await(ctx context.Context, op rdmap.WCOpcode) (wc rdma.WC, err error) {
	if wc, err = e.completed.Next(ctx, op); err != nil {
		return wc, err
	}
	switch {
	case wc.Status == rdmap.StatusWRFlushErr:
		return wc, errors.Join(errGone, e.qp.Err())
	case wc.Status != rdmap.StatusSuccess:
		return wc, fmt.Errorf("%v: %v: %w", wc.Opcode, wc.Status, e.qp.Err())
	}
	return wc, nil
}

// receive waits for a Send, and returns what it holds.
func (e *end) receive(ctx context.Context) (ad [adLen]byte, err error) {
	wc, err := e.await(ctx, rdma.WCRecv)
	if err != nil {
		return ad, err
	}
	copy(ad[:], e.mem[e.recvAt(wc.ID):][:adLen])
	return ad, e.postRecv(wc.ID)
}

// pingOnce is a round of a client.
func (e *end) pingOnce(ctx context.Context) error {
	data, want := e.mem[:e.size], make([]byte, e.size)
	for i := range want {
		want[i] = byte(' ' + 1 + rand.IntN('~'-' ')) // text, as rping's server copies up to a zero
	}
	want[e.size-1] = 0
	copy(data, want)
	for _, step := range []func() error{e.send, func() error { clear(data); return e.send() }} {
		if err := step(); err != nil {
			return err
		}
		if _, err := e.receive(ctx); err != nil { // the server goes ahead
			return err
		}
	}
	if string(data) != string(want) {
		return fmt.Errorf("what came back is %q, and not %q", data, want)
	}
	return nil
}

// answerOnce is a round of a server.
func (e *end) answerOnce(ctx context.Context) error {
	n := 0
	for _, op := range []rdma.SendWR{{Op: rdma.OpRead}, {Op: rdma.OpWrite, Flags: rdma.Unsignaled}} {
		ad, err := e.receive(ctx)
		if err != nil {
			return err
		}
		op.RemoteTO, op.RemoteSTag = binary.BigEndian.Uint64(ad[:]), rdma.STag(binary.BigEndian.Uint32(ad[8:]))
		if op.Op == rdma.OpRead {
			n = int(binary.BigEndian.Uint32(ad[12:]))
		}
		if n > e.size {
			return fmt.Errorf("%d octets are more than --size %d", n, e.size)
		}
		op.SGL = []rdma.SGE{e.mr.SGE(0, n)}
		if err := e.qp.PostSend(&op); err != nil {
			return err
		}
		if op.Op == rdma.OpRead {
			if _, err := e.await(ctx, rdma.WCRead); err != nil {
				return err
			}
		}
		if err := e.send(); err != nil { // go ahead
			return err
		}
	}
	return nil
}
