// Board is RDMA in a hundred lines: a board of notes in the memory of a server, to which clients
// add theirs, and which they read, without the server's program doing anything. docs/guide.md goes
// through it.
//
//	go run ./examples/board -l
//	go run ./examples/board 127.0.0.1 "buy milk"
//
// With -tcp at both ends it runs over TCP (iWARP) in place of SCTP.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/rdma"
)

// The board: 8 octets that count the notes, then the notes.
const (
	notes   = 100
	noteLen = 64
	first   = noteLen // where the first note is; the counter has a line of its own
	size    = first + notes*noteLen
)

const clients = 100 // at a time

func main() {
	listen := flag.Bool("l", false, "keep the board")
	tcp := flag.Bool("tcp", false, "go over TCP in place of SCTP")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *listen, *tcp, flag.Arg(0), flag.Arg(1)); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "board:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, listen, tcp bool, host, note string) error {
	if listen {
		link, err := openLink(tcp, udp.Config{})
		if err != nil {
			return err
		}
		return serve(ctx, link, os.Stdout)
	}
	peer, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	link, err := openLink(tcp, udp.Config{Port: udp.AnyPort})
	if err != nil {
		return err
	}
	dev, err := rdma.NewDevice(link, nil)
	if err != nil {
		return err
	}
	defer dev.Close()
	return add(ctx, dev, netip.AddrPortFrom(peer, rdma.DefaultPort), note, os.Stdout)
}

// openLink opens what SCTP goes over. A device without a link is one for TCP.
func openLink(tcp bool, cfg udp.Config) (rawio.Link, error) {
	if tcp {
		return nil, nil
	}
	return udp.Open(cfg)
}

// serve registers the board and lets clients in. All that they do there, the library does.
func serve(ctx context.Context, link rawio.Link, out io.Writer) error {
	// What clients can have the server hold is bounded: so many of them, and none that does
	// nothing.
	dev, err := rdma.NewDevice(link, &rdma.Config{Limits: rdma.Limits{MaxQPs: clients}, IdleTimeout: time.Minute})
	if err != nil {
		return err
	}
	defer dev.Close()
	pd := dev.AllocPD()
	board, err := pd.Register(make([]byte, size), rdma.RemoteRead|rdma.RemoteWrite|rdma.RemoteAtomic, nil)
	if err != nil {
		return err
	}
	l, err := dev.Listen(rdma.DefaultPort)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "listening on port", rdma.DefaultPort)
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			return err
		}
		qp, _, err := newQP(dev, pd, 1)
		if err != nil {
			_ = req.Reject([]byte("the server has too many clients"))
			continue
		}
		name := binary.BigEndian.AppendUint32(nil, uint32(board.STag())) // what a client has to know of the memory
		if err := req.Accept(qp, name); err != nil {
			slog.Warn("client", "address", req.RemoteAddr(), "error", err)
			_ = qp.Close()
			continue
		}
		go func() {
			<-qp.Done() // the client has left
			_ = qp.Close()
		}()
	}
}

// newQP makes a QP whose queues are so deep. The server posts nothing: its are as short as they can
// be.
func newQP(dev *rdma.Device, pd *rdma.PD, depth int) (*rdma.QP, *rdma.CQ, error) {
	cq, err := dev.CreateCQ(2 * depth) // as deep as both queues
	if err != nil {
		return nil, nil, err
	}
	qp, err := dev.CreateQP(&rdma.QPConfig{PD: pd, SendCQ: cq, RecvCQ: cq, MaxSend: depth, MaxRecv: depth})
	return qp, cq, err
}

// client is a session with a server, and the name of its board.
type client struct {
	qp    *rdma.QP
	cq    *rdma.CQ
	board rdma.STag
}

// do posts one request and waits until it is done.
func (c *client) do(ctx context.Context, wr rdma.SendWR) (rdma.WC, error) {
	var wcs [1]rdma.WC
	if err := c.qp.PostSend(&wr); err != nil {
		return wcs[0], err
	}
	if err := c.cq.Wait(ctx); err != nil {
		return wcs[0], err
	}
	if _, err := c.cq.Poll(wcs[:]); err != nil {
		return wcs[0], err
	}
	if wcs[0].Status != rdma.StatusSuccess {
		return wcs[0], errors.Join(fmt.Errorf("%v: %v", wr.Op, wcs[0].Status), c.qp.Err())
	}
	return wcs[0], nil
}

// add takes the next free place, writes a note there, and prints the whole board.
func add(ctx context.Context, dev *rdma.Device, server netip.AddrPort, note string, out io.Writer) error {
	pd := dev.AllocPD()
	qp, cq, err := newQP(dev, pd, 16)
	if err != nil {
		return err
	}
	name, err := qp.Connect(ctx, server, nil)
	if err != nil {
		return err
	}
	if len(name) != 4 {
		return errors.New("the server keeps no board")
	}
	c := &client{qp, cq, rdma.STag(binary.BigEndian.Uint32(name))}

	// Fetch and add: two clients never get the same place.
	got, err := c.do(ctx, rdma.SendWR{Op: rdma.OpAtomic, RemoteSTag: c.board, RemoteTO: 0, Atomic: rdma.FetchAdd(1)})
	if err != nil {
		return err
	}
	if got.Original >= notes {
		return errors.New("the board is full")
	}
	// Write: the note, at its place.
	line := []byte(note)[:min(len(note), noteLen)]
	at := first + got.Original*noteLen
	if _, err := c.do(ctx, rdma.SendWR{Op: rdma.OpWrite, Inline: line, RemoteSTag: c.board, RemoteTO: at}); err != nil {
		return err
	}
	// Read: the whole board, into our own memory.
	mine := make([]byte, size)
	copyOf, err := pd.Register(mine, rdma.LocalWrite, nil)
	if err != nil {
		return err
	}
	read := rdma.SendWR{Op: rdma.OpRead, SGL: []rdma.SGE{copyOf.SGE(0, size)}, RemoteSTag: c.board}
	if _, err := c.do(ctx, read); err != nil {
		return err
	}
	for i := range int(got.Original) + 1 {
		note := bytes.TrimRight(mine[first+i*noteLen:][:noteLen], "\x00")
		fmt.Fprintf(out, "%d. %q\n", i+1, note) // %q, as a terminal obeys what others may have written
	}
	return qp.Disconnect(ctx)
}
