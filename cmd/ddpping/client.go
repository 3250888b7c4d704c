package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// client pings one server.
type client struct {
	*options
	e      *end
	server hello
	rep    *reporter

	sent map[uint64]ping // without a reply yet
}

type ping struct {
	op operation
	at time.Time
}

func (o *options) ping(ctx context.Context, dev *rdma.Device, to netip.AddrPort, out io.Writer) (int, error) {
	ops, err := operations(o.op)
	if err != nil {
		return 0, err
	}
	e, err := newEnd(dev, o.size)
	if err != nil {
		return 0, err
	}
	defer e.close()
	c := &client{options: o, e: e, rep: newReporter(o, to.Addr(), out), sent: make(map[uint64]ping)}
	mine := e.hello()
	answer, err := c.connect(ctx, to, mine.encode())
	if err != nil {
		return 0, err
	}
	if err := c.server.decode(answer); err != nil {
		return 0, err
	}
	c.rep.begin(to.Port())
	started := time.Now()
	if err := c.loop(ctx, ops); err != nil {
		c.rep.end(time.Since(started))
		return 0, err
	}
	code := c.rep.end(time.Since(started))
	e.leave(dev)
	return code, nil
}

// connect waits for the server no longer than for a reply.
func (c *client) connect(ctx context.Context, to netip.AddrPort, private []byte) ([]byte, error) {
	dialing, cancel := context.WithTimeout(ctx, seconds(c.timeout))
	defer cancel()
	return c.e.qp.Connect(dialing, to, private)
}

// loop pings until enough replies have come, or ctx ends.
func (c *client) loop(ctx context.Context, ops []operation) error {
	next := time.Now()
	for seq := uint64(1); c.count == 0 || seq <= uint64(c.count*len(ops)); seq++ {
		op := ops[(seq-1)%uint64(len(ops))]
		if err := c.wait(ctx, next, 0); err != nil {
			return ended(err)
		}
		next = time.Now()
		if err := c.post(op, seq); err != nil {
			return err
		}
		if err := c.wait(ctx, next.Add(seconds(c.timeout)), seq); err != nil {
			return ended(err)
		}
		if _, open := c.sent[seq]; open {
			c.rep.missing(seq, op, seconds(c.timeout))
		}
		// With several operations they follow one another at once, and then comes the pause.
		if seq%uint64(len(ops)) == 0 {
			next = next.Add(seconds(c.interval))
		}
	}
	return nil
}

// ended turns ^C and the deadline into a normal end.
func ended(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

func (c *client) post(op operation, seq uint64) error {
	c.sent[seq] = ping{op, time.Now()}
	c.rep.sent()
	data := c.e.bytes(c.e.source)
	switch op {
	case opRead:
		clear(c.e.bytes(c.e.sink))
		return c.e.read(c.server.read, seq)
	case opWrite:
		fill(data, seq)
		if err := c.e.write(c.server.write); err != nil {
			return err
		}
		return c.e.send(op, verdictGood, seq, nil)
	}
	fill(data, seq)
	return c.e.send(op, verdictGood, seq, data)
}

// wait handles completions until the given time, or until ping seq is answered.
func (c *client) wait(ctx context.Context, until time.Time, seq uint64) error {
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	for {
		if _, open := c.sent[seq]; seq != 0 && !open {
			return nil
		}
		wc, err := c.e.next(waiting)
		if err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return nil // only our own time is up
			}
			return err
		}
		if err := c.handle(wc); err != nil {
			return err
		}
	}
}

func (c *client) handle(wc rdma.WC) error {
	now := time.Now()
	if wc.Status != rdmap.StatusSuccess {
		if err := c.e.qp.Err(); err != nil {
			return fmt.Errorf("the session ended: %w", err)
		}
		return fmt.Errorf("the server has ended the session: %w", net.ErrClosed)
	}
	switch wc.Opcode {
	case rdmap.WCRead:
		c.reply(wc.ID, now, same(c.e.bytes(c.e.sink), c.e.scratch, readSeq))
	case rdmap.WCRecv:
		msg := c.e.message(wc)
		if len(msg) < headerLen {
			return fmt.Errorf("a message of %d octets is not a reply", len(msg))
		}
		seq := binary.BigEndian.Uint64(msg[2:])
		data := msg[headerLen:]
		if operation(msg[0]) == opWrite {
			data = c.e.target
		}
		c.reply(seq, now, msg[1] == verdictGood && same(data, c.e.scratch, seq))
		return c.e.postRecv(int(wc.ID))
	}
	return nil
}

func (c *client) reply(seq uint64, now time.Time, good bool) {
	p, open := c.sent[seq]
	if !open {
		return
	}
	delete(c.sent, seq)
	c.rep.reply(seq, p.op, now.Sub(p.at), good)
}
