package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// client pings one server, over one session after the other.
type client struct {
	*options
	dev *rdma.Device
	to  netip.AddrPort
	ops []operation
	rep *reporter

	session            // its end is nil: there is none
	met     bool       // there was one
	hinted  bool       // it was said what to do
	trying  chan tried // gets what becomes of the attempt to connect that is under way; nil: none is
	after   time.Time  // no other before then

	life  context.Context  // of run; attempts end with it
	turn  time.Time        // when that of the last ping began
	due   uint64           // the ping that waits for a session; 0: none
	dueAt time.Time        // since when it does
	sent  map[uint64]*ping // without an answer yet
}

// session is what is agreed with a server, and what was seen of it.
type session struct {
	e           *end
	server      hello
	retransmits uint64
	paths       []rdma.PathStats
	carried     []netip.Addr // the last answer
}

// ping is one without an answer.
type ping struct {
	op   operation
	at   time.Time
	told bool // that it has none
}

// tried is what has become of an attempt to connect.
type tried struct {
	session
	err   error
	fatal bool
}

const (
	overdue  = time.Second           // a ping that has no answer then is named
	outage   = 2 * time.Second       // and then it is not a packet that is missing
	flooding = 10 * time.Millisecond // how long a flood waits for an answer before the next ping
)

func (o *options) ping(ctx context.Context, dev *rdma.Device, to netip.AddrPort, out io.Writer) (int, error) {
	ops, _ := operations(o.op) // check has seen to it
	c := &client{options: o, dev: dev, to: to, ops: ops, rep: newReporter(o, to.Addr(), out), sent: make(map[uint64]*ping)}
	c.rep.begin(to.Port())
	err := c.run(ctx)
	if c.e != nil {
		c.look()
	}
	if !c.met && !c.hinted && c.rep.errors == 0 && err == nil {
		c.hint(context.DeadlineExceeded)
	}
	code := c.rep.end()
	if c.e != nil {
		if len(c.sent) == 0 {
			c.e.leave(dev)
		}
		c.e.close()
	}
	return code, err
}

// run pings until it is over, or ctx ends.
func (c *client) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		if c.trying != nil {
			if t := <-c.trying; t.e != nil {
				t.e.close()
			}
		}
	}()
	c.life, c.turn = ctx, time.Now()
	c.rep.started = c.turn
	for seq := uint64(1); !c.over(seq) && ctx.Err() == nil; seq++ {
		if err := c.room(ctx, seq); err != nil || ctx.Err() != nil {
			return err
		}
		c.rep.sent()
		if c.due, c.dueAt = seq, c.turn; c.e != nil {
			if err := c.post(); err != nil {
				return err
			}
		}
		if c.count > 0 && c.deadline == 0 && seq == uint64(c.count) {
			return c.linger(ctx)
		}
		// With several operations they follow one another at once, and then comes the pause.
		answered := func() bool {
			return (c.eager || seq%uint64(len(c.ops)) != 0) && c.due == 0 && c.sent[seq] == nil && c.e != nil
		}
		if err := c.wait(ctx, c.pause, answered); err != nil {
			return err
		}
		if now := time.Now(); answered() || now.Sub(c.turn) > 2*c.pause() {
			c.turn = now
		} else {
			c.turn = c.turn.Add(c.pause())
		}
		if ctx.Err() == nil && !c.over(seq) {
			c.remind()
		}
	}
	return nil
}

// over reports whether there is nothing to do before ping seq: all were sent, or with a deadline answered, be it by an error.
func (c *client) over(seq uint64) bool {
	if c.count > 0 && c.deadline > 0 {
		return c.rep.received+c.rep.errors >= c.count
	}
	return c.count > 0 && seq > uint64(c.count)
}

// pause is how long a turn lasts. While an attempt to connect fails nothing can be sent, and there is no hurry. When a session has
// just been lost the next ping comes in its turn, and with it the attempt.
func (c *client) pause() time.Duration {
	d := flooding
	if c.interval > 0 {
		d = c.interval
	}
	if c.e == nil && (c.due != 0 || time.Now().Before(c.after)) {
		d = max(d, overdue)
	}
	return d
}

// room waits until ping seq may be under way with those that are.
func (c *client) room(ctx context.Context, seq uint64) error {
	full := func() bool { return c.e != nil && len(c.sent) > 0 && seq >= c.oldest()+uint64(window(c.size)) }
	for full() && ctx.Err() == nil {
		if err := c.wait(ctx, c.pause, func() bool { return !full() }); err != nil {
			return err
		}
		if now := time.Now(); full() && ctx.Err() == nil {
			c.turn = now
			c.rep.unanswered(c.oldest())
		}
	}
	return nil
}

// oldest is the first ping without an answer.
func (c *client) oldest() uint64 { return slices.Min(slices.Collect(maps.Keys(c.sent))) }

// linger waits for the last replies.
func (c *client) linger(ctx context.Context) error {
	answered := func() bool { return c.due == 0 && len(c.sent) == 0 }
	for end := c.turn.Add(c.timeout); !answered() && ctx.Err() == nil && c.turn.Before(end); {
		pause := func() time.Duration { return min(max(c.pause(), overdue), end.Sub(c.turn)) }
		if err := c.wait(ctx, pause, answered); err != nil {
			return err
		}
		c.turn = c.turn.Add(pause())
		if !answered() && ctx.Err() == nil && c.turn.Before(end) {
			due := c.due
			c.remind()
			c.due = due // the last one goes on waiting
		}
	}
	return nil
}

// remind names the pings that are without an answer for long.
func (c *client) remind() {
	now := time.Now()
	for _, seq := range slices.Sorted(maps.Keys(c.sent)) {
		p := c.sent[seq]
		age := now.Sub(p.at)
		if !p.told && (c.report || age >= overdue) {
			p.told = true
			c.rep.unanswered(seq)
		}
		if age >= outage {
			c.rep.silent(p.at)
		}
	}
	if c.due != 0 { // nobody was there to send it to
		c.rep.unanswered(c.due)
		c.rep.silent(c.dueAt)
		c.due = 0
	}
	if c.e != nil {
		c.look()
	}
}

// wait handles what comes until the turn has lasted so long, or done, or it is over.
func (c *client) wait(ctx context.Context, d func() time.Duration, done func() bool) error {
	for !done() && ctx.Err() == nil && !c.over(0) {
		until := c.turn.Add(d())
		if !time.Now().Before(until) {
			return nil
		}
		if err := c.step(ctx, until); err != nil {
			return err
		}
	}
	return nil
}

// step handles one thing that comes until then.
func (c *client) step(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if c.e == nil {
		return c.connect(ctx)
	}
	wc, err := c.e.next(ctx)
	if err != nil {
		return ended(err)
	}
	if wc.Status != rdmap.StatusSuccess {
		c.lost(cmp.Or(c.e.qp.Err(), error(net.ErrClosed)))
		return nil
	}
	return c.handle(wc)
}

// ended turns the end of a context into no error.
func ended(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// connect waits for an attempt to connect, and begins one if a ping needs it.
func (c *client) connect(ctx context.Context) error {
	now := time.Now()
	if c.trying == nil && c.due != 0 && !now.Before(c.after) {
		c.trying = make(chan tried, 1)
		c.after = now.Add(overdue)
		go c.try(c.trying)
	}
	again := time.NewTimer(c.after.Sub(now))
	defer again.Stop()
	if c.trying != nil || c.due == 0 {
		again.Stop()
	}
	select {
	case t := <-c.trying:
		c.trying = nil
		return c.connected(t)
	case <-again.C:
	case <-ctx.Done():
	}
	return nil
}

// try makes one attempt to connect.
func (c *client) try(done chan<- tried) {
	e, err := newEnd(c.dev, c.size, c.pattern)
	if err != nil {
		done <- tried{err: err, fatal: true}
		return
	}
	t := tried{session: session{e: e}}
	ctx, cancel := context.WithTimeout(c.life, c.timeout)
	defer cancel()
	mine := e.hello()
	answer, err := e.qp.Connect(ctx, c.to, mine.encode())
	if err == nil {
		err = t.server.decode(answer)
	}
	if err != nil {
		e.close()
		t = tried{err: err}
	}
	done <- t
}

// connected takes what has become of an attempt. What the server's program says ends everything, unless it took us before.
func (c *client) connected(t tried) error {
	var rejected *ddpadapt.RejectedError
	var foreign *sctp.AdaptationError
	switch {
	case c.life.Err() != nil:
		if t.e != nil {
			t.e.close()
		}
		return nil
	case t.fatal, !c.met && (errors.As(t.err, &rejected) || errors.As(t.err, &foreign) || errors.Is(t.err, errHello)):
		return t.err
	case errors.Is(t.err, context.DeadlineExceeded), errors.Is(t.err, sctp.ErrInitTimeout):
		c.hint(t.err)
		return nil
	case t.err != nil:
		c.rep.refused(c.due, cli.Explain(t.err))
		c.rep.silent(c.dueAt)
		c.due = 0
		return nil
	}
	c.session = t.session
	if !c.met && c.rep.transmitted == 1 { // what setting up takes is no part of the first ping
		c.rep.started = time.Now()
	}
	c.met, c.turn = true, time.Now()
	c.look()
	if c.due == 0 {
		return nil
	}
	return c.post()
}

// hint says what to do where nothing answers.
func (c *client) hint(err error) {
	c.hinted = true
	c.rep.note("unreachable", cli.Explain(err), nil)
}

// lost: the session has ended, and with it all pings that are under way.
func (c *client) lost(err error) {
	c.look()
	with := ""
	if n := len(c.sent); n > 0 {
		with = ", and " + plural(n, "ping") + " with it"
	}
	c.rep.note("lost", "connection lost"+with+": "+cli.Printable(err.Error()), map[string]any{"pings": len(c.sent)})
	since := time.Now()
	if len(c.sent) > 0 {
		since = c.sent[c.oldest()].at
	}
	c.rep.silent(since)
	c.e.close()
	c.session, c.after = session{}, time.Time{}
	clear(c.sent)
}

// post sends the ping that is due.
func (c *client) post() error {
	seq := c.due
	op := c.ops[(seq-1)%uint64(len(c.ops))]
	data := c.e.scratch
	if op != opRead {
		fill(data, seq, c.pattern)
	}
	c.due, c.sent[seq] = 0, &ping{op: op, at: time.Now()}
	var err error
	switch op {
	case opRead:
		err = c.e.read(c.server.read, seq)
	case opWrite:
		if err = c.e.write(c.server.write, seq, data); err == nil {
			err = c.e.send(op, verdictGood, seq, nil)
		}
	default:
		err = c.e.send(op, verdictGood, seq, data)
	}
	return c.posted(err)
}

// posted tells what is wrong with a request from the end of the session, which completions will tell.
func (c *client) posted(err error) error {
	if c.e.qp.State() != rdma.StateRTS {
		return nil
	}
	return err
}

func (c *client) handle(wc rdma.WC) error {
	now := time.Now()
	switch wc.Opcode {
	case rdmap.WCRead:
		c.reply(wc.ID, now, c.e.same(c.e.bytes(c.e.sink[c.e.slot(wc.ID)]), readSeq))
	case rdmap.WCRecv:
		msg := c.e.message(wc)
		if len(msg) < headerLen {
			return fmt.Errorf("a message of %d bytes is not a reply", len(msg))
		}
		seq := binary.BigEndian.Uint64(msg[2:])
		data := msg[headerLen:]
		if operation(msg[0]) == opWrite {
			data = c.e.written(seq)
		}
		c.reply(seq, now, msg[1] == verdictGood && c.e.same(data, seq))
		return c.posted(c.e.postRecv(int(wc.ID)))
	}
	return nil
}

func (c *client) reply(seq uint64, now time.Time, good bool) {
	p := c.sent[seq]
	if p == nil {
		return
	}
	delete(c.sent, seq)
	again, paths := c.look()
	c.rep.reply(reply{seq: seq, op: p.op, rtt: now.Sub(p.at), good: good, retransmits: again, paths: paths})
}

// look shows which paths have changed, and returns how much was sent again since the last look, and by which paths answers have come.
func (c *client) look() (retransmits uint64, carried []netip.Addr) {
	if s, ok := c.e.qp.Stats(); ok {
		retransmits = s.Retransmits - c.retransmits
		c.retransmits = s.Retransmits
		c.rep.retransmits += retransmits
	}
	paths := c.e.qp.Paths()
	for i, p := range paths {
		if i < len(c.paths) { // they are never fewer, nor in another order
			if p.DataIn > c.paths[i].DataIn {
				carried = append(carried, p.Remote.Addr())
			}
			if before := c.paths[i]; len(paths) > 1 && (p.State != before.State || p.Primary != before.Primary) {
				c.rep.path(p)
			}
		} else if len(paths) > 1 {
			c.rep.path(p)
		}
	}
	c.paths, c.rep.paths = paths, paths
	if len(carried) > 0 { // else it came with the last one
		c.carried = carried
	}
	return retransmits, c.carried
}
