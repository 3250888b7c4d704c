package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/internal/fair"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// service answers pings.
type service struct {
	dev          *rdma.Device
	out          io.Writer
	stamp, quiet bool
	memory       fair.Store  // octets that sessions take
	lines        *fair.Lines // that are written
}

// serveMemory bounds what all sessions together take: two of the longest pings. One address may take half.
const serveMemory = 512 << 20

var errBusy = errors.New("the server is busy with other clients: try again later, or with shorter pings")

// patience is how long a session lasts without a ping.
const patience = 10 * time.Minute

var errSilent = fmt.Errorf("no ping has come for %v", patience)

func (s *service) accept(ctx context.Context, l *rdma.Listener) {
	s.memory.Max = cmp.Or(s.memory.Max, serveMemory)
	s.lines = fair.OfServer()
	for {
		req, err := l.Accept(ctx)
		if err != nil {
			return
		}
		go func() {
			if err := s.serve(ctx, req); err != nil && ctx.Err() == nil {
				s.say(req.RemoteAddr(), "%s", cli.Explain(err))
			}
		}()
	}
}

// say writes a line about a client.
func (s *service) say(from netip.AddrPort, format string, args ...any) {
	left, ok := s.lines.Allow(time.Now(), from.Addr())
	if s.quiet || !ok {
		return
	}
	line := fair.Line(fmt.Sprintf("%v: ", from)+fmt.Sprintf(format, args...), left)
	if s.stamp {
		line = timestamp(time.Now()) + line
	}
	fmt.Fprintln(s.out, line)
}

// readSeq is the number of the ping whose data a client reads.
const readSeq = 0

// serve handles one client until it goes.
func (s *service) serve(ctx context.Context, req *rdma.Request) error {
	var client hello
	err := client.decode(req.PrivateData())
	if err == nil && client.size > maxSize {
		err = fmt.Errorf("%d bytes are too many, %d is the most", client.size, maxSize)
	}
	if err != nil {
		req.Reject([]byte(err.Error()))
		return err
	}
	from, octets := req.RemoteAddr().Addr(), int64(memory(int(client.size)))
	if !s.memory.Take(from, octets) {
		req.Reject([]byte(errBusy.Error()))
		return errBusy
	}
	defer s.memory.Give(from, octets)
	e, err := newEnd(s.dev, int(client.size), client.pattern)
	if err != nil {
		req.Reject([]byte(err.Error()))
		return err
	}
	defer e.close()
	fill(e.readable, readSeq, e.pattern)
	mine := e.hello()
	if err := req.Accept(e.qp, mine.encode()); err != nil {
		return err
	}
	s.say(req.RemoteAddr(), "connected, %d bytes a ping", client.size)
	ctx, cancel := context.WithCancelCause(ctx)
	silent := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silent.Stop()
	var pings int
	defer func() { s.say(req.RemoteAddr(), "gone after %d pings", pings) }()
	for {
		wc, err := e.next(ctx)
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		silent.Reset(patience)
		switch {
		case wc.Status == rdmap.StatusWRFlushErr:
			return e.qp.Err() // the client has gone
		case wc.Status != rdmap.StatusSuccess:
			return e.failure(wc)
		case wc.Opcode == rdmap.WCRecv:
			pings++
			if err := s.answer(e, &client, wc); errors.Is(err, rdmap.ErrState) {
				return e.qp.Err() // the client has gone meanwhile
			} else if err != nil {
				return err
			}
		}
	}
}

// answer replies to one Send, and by RDMA Write to what was written before it.
func (s *service) answer(e *end, client *hello, wc rdma.WC) error {
	msg := e.message(wc)
	if len(msg) < headerLen {
		return fmt.Errorf("a message of %d octets is not a ping", len(msg))
	}
	op, seq := operation(msg[0]), binary.BigEndian.Uint64(msg[2:])
	data := msg[headerLen:]
	if op == opWrite {
		data = e.taken(seq)
	}
	verdict := verdictGood
	if !e.same(data, seq) {
		verdict = verdictBad
	}
	if op == opWrite {
		if err := e.write(client.write, seq, data); err != nil {
			return err
		}
		data = nil
	}
	if err := e.send(op, verdict, seq, data); err != nil {
		return err
	}
	return e.postRecv(int(wc.ID))
}
