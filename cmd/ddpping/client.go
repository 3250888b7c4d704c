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

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// client pings one server, over one session after another.
type client struct {
	*options
	dev        *rdma.Device
	serverAddr netip.AddrPort
	ops        []operation
	reporter   *reporter

	session                          // its end is nil if there is none
	wasConnected  bool               // there was one
	hintGiven     bool               // it was printed what to do
	attempt       chan attemptResult // gets the result of the current attempt to connect; nil: none
	nextAttemptAt time.Time          // no other before then

	runCtx       context.Context      // of run; attempts end with it
	turnBeganAt  time.Time            // when the turn of the last ping began
	pendingSeq   uint64               // the ping that waits for a session; 0: none
	pendingSince time.Time            // since when it waits
	unanswered   map[uint64]*sentPing // without an answer yet
}

// session is what was agreed with a server, and what was seen of it.
type session struct {
	endpoint       *endpoint
	server         hello
	retransmits    uint64
	paths          []rdma.PathStats
	lastReplyPaths []netip.Addr // of the last reply
}

// sentPing is a ping without an answer.
type sentPing struct {
	op       operation
	sentAt   time.Time
	reported bool // that it has none
}

// attemptResult is the result of an attempt to connect.
type attemptResult struct {
	session
	err   error
	fatal bool
}

const (
	overdueAfter = time.Second           // a ping without an answer is named then
	outageAfter  = 2 * time.Second       // and then it is more than a lost packet
	floodTimeout = 10 * time.Millisecond // how long a flood waits for an answer before the next ping
)

func (o *options) pingServer(ctx context.Context, dev *rdma.Device, to netip.AddrPort, out io.Writer) (int, error) {
	ops, _ := parseOperations(o.opName) // check has made sure of it
	c := &client{options: o, dev: dev, serverAddr: to, ops: ops, reporter: newReporter(o, to.Addr(), out),
		unanswered: make(map[uint64]*sentPing)}
	c.reporter.printStart(to.Port())
	err := c.pingUntilDone(ctx)
	if c.endpoint != nil {
		c.updatePaths()
	}
	if !c.wasConnected && !c.hintGiven && c.reporter.sendErrors == 0 && err == nil {
		c.explainNoAnswer(context.DeadlineExceeded)
	}
	code := c.reporter.printSummary()
	if c.endpoint != nil {
		if len(c.unanswered) == 0 {
			c.endpoint.closeGracefully(dev)
		}
		c.endpoint.close()
	}
	return code, err
}

// pingUntilDone pings until it is over, or ctx ends.
func (c *client) pingUntilDone(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer func() {
		cancel()
		if c.attempt != nil {
			if t := <-c.attempt; t.endpoint != nil {
				t.endpoint.close()
			}
		}
	}()
	c.runCtx, c.turnBeganAt = ctx, time.Now()
	c.reporter.startedAt = c.turnBeganAt
	for seq := uint64(1); !c.isDone(seq) && ctx.Err() == nil; seq++ {
		if err := c.waitForSlot(ctx, seq); err != nil || ctx.Err() != nil {
			return err
		}
		c.reporter.countSent()
		if c.pendingSeq, c.pendingSince = seq, c.turnBeganAt; c.endpoint != nil {
			if err := c.sendPing(); err != nil {
				return err
			}
		}
		if c.count > 0 && c.deadline == 0 && seq == uint64(c.count) {
			return c.awaitLastReplies(ctx)
		}
		// Several operations follow one another at once, and then comes the pause.
		answered := func() bool {
			return (c.pingOnReply || seq%uint64(len(c.ops)) != 0) && c.pendingSeq == 0 && c.unanswered[seq] == nil &&
				c.endpoint != nil
		}
		if err := c.handleUntil(ctx, c.turnLength, answered); err != nil {
			return err
		}
		if now := time.Now(); answered() || now.Sub(c.turnBeganAt) > 2*c.turnLength() {
			c.turnBeganAt = now
		} else {
			c.turnBeganAt = c.turnBeganAt.Add(c.turnLength())
		}
		if ctx.Err() == nil && !c.isDone(seq) {
			c.reportOverdue()
		}
	}
	return nil
}

// isDone reports whether there is nothing to do before ping seq. Then all pings were sent. With a
// deadline they were also answered, be it by an error.
func (c *client) isDone(seq uint64) bool {
	if c.count > 0 && c.deadline > 0 {
		return c.reporter.received+c.reporter.sendErrors >= c.count
	}
	return c.count > 0 && seq > uint64(c.count)
}

// turnLength is how long a turn lasts. Nothing can be sent while an attempt to connect fails, and
// there is no hurry. When a session has just been lost, the next ping and the attempt come in their
// turn.
func (c *client) turnLength() time.Duration {
	d := floodTimeout
	if c.interval > 0 {
		d = c.interval
	}
	if c.endpoint == nil && (c.pendingSeq != 0 || time.Now().Before(c.nextAttemptAt)) {
		d = max(d, overdueAfter)
	}
	return d
}

// waitForSlot waits until the pings under way leave a slot for ping seq.
func (c *client) waitForSlot(ctx context.Context, seq uint64) error {
	full := func() bool {
		return c.endpoint != nil && len(c.unanswered) > 0 && seq >= c.oldestUnanswered()+uint64(maxOutstanding(c.size))
	}
	for full() && ctx.Err() == nil {
		if err := c.handleUntil(ctx, c.turnLength, func() bool { return !full() }); err != nil {
			return err
		}
		if now := time.Now(); full() && ctx.Err() == nil {
			c.turnBeganAt = now
			c.reporter.printUnanswered(c.oldestUnanswered())
		}
	}
	return nil
}

// oldestUnanswered returns the first ping without an answer.
func (c *client) oldestUnanswered() uint64 {
	return slices.Min(slices.Collect(maps.Keys(c.unanswered)))
}

// awaitLastReplies waits for the last replies.
func (c *client) awaitLastReplies(ctx context.Context) error {
	answered := func() bool { return c.pendingSeq == 0 && len(c.unanswered) == 0 }
	for end := c.turnBeganAt.Add(c.timeout); !answered() && ctx.Err() == nil && c.turnBeganAt.Before(end); {
		pause := func() time.Duration { return min(max(c.turnLength(), overdueAfter), end.Sub(c.turnBeganAt)) }
		if err := c.handleUntil(ctx, pause, answered); err != nil {
			return err
		}
		c.turnBeganAt = c.turnBeganAt.Add(pause())
		if !answered() && ctx.Err() == nil && c.turnBeganAt.Before(end) {
			due := c.pendingSeq
			c.reportOverdue()
			c.pendingSeq = due // the last ping goes on waiting
		}
	}
	return nil
}

// reportOverdue names the pings that have been without an answer for long.
func (c *client) reportOverdue() {
	now := time.Now()
	for _, seq := range slices.Sorted(maps.Keys(c.unanswered)) {
		p := c.unanswered[seq]
		age := now.Sub(p.sentAt)
		if !p.reported && (c.nameOutstanding || age >= overdueAfter) {
			p.reported = true
			c.reporter.printUnanswered(seq)
		}
		if age >= outageAfter {
			c.reporter.beginOutage(p.sentAt)
		}
	}
	if c.pendingSeq != 0 { // there was no session to send it over
		c.reporter.printUnanswered(c.pendingSeq)
		c.reporter.beginOutage(c.pendingSince)
		c.pendingSeq = 0
	}
	if c.endpoint != nil {
		c.updatePaths()
	}
}

// handleUntil handles completions until the turn has lasted for d, done holds, or the run is over.
func (c *client) handleUntil(ctx context.Context, d func() time.Duration, done func() bool) error {
	for !done() && ctx.Err() == nil && !c.isDone(0) {
		until := c.turnBeganAt.Add(d())
		if !time.Now().Before(until) {
			return nil
		}
		if err := c.handleNext(ctx, until); err != nil {
			return err
		}
	}
	return nil
}

// handleNext handles one completion or result that comes until then.
func (c *client) handleNext(ctx context.Context, until time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	if c.endpoint == nil {
		return c.awaitConnection(ctx)
	}
	wc, err := c.endpoint.nextCompletion(ctx)
	if err != nil {
		return ignoreContextEnd(err)
	}
	if wc.Status != rdmap.StatusSuccess {
		c.dropSession(cmp.Or(c.endpoint.qp.Err(), error(net.ErrClosed)))
		return nil
	}
	return c.handleCompletion(wc)
}

// ignoreContextEnd returns nil for the end of a context.
func ignoreContextEnd(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// awaitConnection waits for an attempt to connect, and begins one if a ping needs it.
func (c *client) awaitConnection(ctx context.Context) error {
	now := time.Now()
	if c.attempt == nil && c.pendingSeq != 0 && !now.Before(c.nextAttemptAt) {
		c.attempt = make(chan attemptResult, 1)
		c.nextAttemptAt = now.Add(overdueAfter)
		go c.tryConnect(c.attempt)
	}
	again := time.NewTimer(c.nextAttemptAt.Sub(now))
	defer again.Stop()
	if c.attempt != nil || c.pendingSeq == 0 {
		again.Stop()
	}
	select {
	case t := <-c.attempt:
		c.attempt = nil
		return c.handleAttempt(t)
	case <-again.C:
	case <-ctx.Done():
	}
	return nil
}

// tryConnect makes one attempt to connect.
func (c *client) tryConnect(done chan<- attemptResult) {
	e, err := newEndpoint(c.dev, c.size, c.pattern)
	if err != nil {
		done <- attemptResult{err: err, fatal: true}
		return
	}
	t := attemptResult{session: session{endpoint: e}}
	ctx, cancel := context.WithTimeout(c.runCtx, c.timeout)
	defer cancel()
	mine := e.makeHello()
	answer, err := e.qp.Connect(ctx, c.serverAddr, mine.encode())
	if err == nil {
		err = t.server.decode(answer)
	}
	if err != nil {
		e.close()
		t = attemptResult{err: err}
	}
	done <- t
}

// handleAttempt takes the result of an attempt. A refusal by the server's program ends everything,
// unless it accepted us before.
func (c *client) handleAttempt(t attemptResult) error {
	var rejected *llp.RejectedError
	var foreign *sctp.AdaptationError
	switch {
	case c.runCtx.Err() != nil:
		if t.endpoint != nil {
			t.endpoint.close()
		}
		return nil
	case t.fatal, !c.wasConnected && (errors.As(t.err, &rejected) || errors.As(t.err, &foreign) ||
		errors.Is(t.err, errHello) || cli.IsOfTLS(t.err)):
		return t.err
	case errors.Is(t.err, context.DeadlineExceeded), errors.Is(t.err, sctp.ErrInitTimeout):
		c.explainNoAnswer(t.err)
		return nil
	case t.err != nil:
		c.reporter.printSendError(c.pendingSeq, cli.Explain(t.err))
		c.reporter.beginOutage(c.pendingSince)
		c.pendingSeq = 0
		return nil
	}
	c.session = t.session
	if !c.wasConnected && c.reporter.transmitted == 1 { // connecting is no part of the first ping
		c.reporter.startedAt = time.Now()
	}
	c.wasConnected, c.turnBeganAt = true, time.Now()
	c.updatePaths()
	if c.pendingSeq == 0 {
		return nil
	}
	return c.sendPing()
}

// explainNoAnswer says what to do if nothing answers.
func (c *client) explainNoAnswer(err error) {
	c.hintGiven = true
	c.reporter.printNote("unreachable", cli.Explain(err), nil)
}

// dropSession handles the end of the session, which ends all pings under way too.
func (c *client) dropSession(err error) {
	c.updatePaths()
	with := ""
	if n := len(c.unanswered); n > 0 {
		with = ", and " + pluralize(n, "ping") + " with it"
	}
	c.reporter.printNote("lost", "connection lost"+with+": "+cli.Printable(err.Error()),
		map[string]any{"pings": len(c.unanswered)})
	since := time.Now()
	if len(c.unanswered) > 0 {
		since = c.unanswered[c.oldestUnanswered()].sentAt
	}
	c.reporter.beginOutage(since)
	c.endpoint.close()
	c.session, c.nextAttemptAt = session{}, time.Time{}
	clear(c.unanswered)
}

// sendPing sends the ping that is due.
func (c *client) sendPing() error {
	seq := c.pendingSeq
	op := c.ops[(seq-1)%uint64(len(c.ops))]
	data := c.endpoint.scratch
	if op != opRead {
		fillData(data, seq, c.pattern)
	}
	c.pendingSeq, c.unanswered[seq] = 0, &sentPing{op: op, sentAt: time.Now()}
	var err error
	switch op {
	case opRead:
		err = c.endpoint.postRead(c.server.read, seq)
	case opWrite:
		if err = c.endpoint.postWrite(c.server.write, seq, data); err == nil {
			err = c.endpoint.postMessage(op, verdictGood, seq, nil)
		}
	default:
		err = c.endpoint.postMessage(op, verdictGood, seq, data)
	}
	return c.localError(err)
}

// localError tells a mistake in a request from the end of the session. Completions will report the
// latter.
func (c *client) localError(err error) error {
	if c.endpoint.qp.State() != rdma.StateRTS {
		return nil
	}
	return err
}

func (c *client) handleCompletion(wc rdma.WC) error {
	now := time.Now()
	switch wc.Opcode {
	case rdmap.WCRead:
		c.handleReply(wc.ID, now,
			c.endpoint.hasPingData(c.endpoint.partBytes(c.endpoint.sink[c.endpoint.slotOf(wc.ID)]), readSeq))
	case rdmap.WCRecv:
		msg := c.endpoint.receivedMessage(wc)
		if len(msg) < headerLen {
			return fmt.Errorf("a message of %d bytes is not a reply", len(msg))
		}
		seq := binary.BigEndian.Uint64(msg[2:])
		data := msg[headerLen:]
		if operation(msg[0]) == opWrite {
			data = c.endpoint.writtenData(seq)
		}
		c.handleReply(seq, now, msg[1] == verdictGood && c.endpoint.hasPingData(data, seq))
		return c.localError(c.endpoint.postRecv(int(wc.ID)))
	}
	return nil
}

func (c *client) handleReply(seq uint64, now time.Time, good bool) {
	p := c.unanswered[seq]
	if p == nil {
		return
	}
	delete(c.unanswered, seq)
	again, paths := c.updatePaths()
	c.reporter.printReply(pingReply{seq: seq, op: p.op, rtt: now.Sub(p.sentAt), contentGood: good, retransmits: again,
		paths: paths})
}

// updatePaths prints which paths have changed. It returns how much was retransmitted since the last
// call, and the paths by which answers have come.
func (c *client) updatePaths() (retransmits uint64, carried []netip.Addr) {
	if s, ok := c.endpoint.qp.Stats(); ok {
		retransmits = s.Retransmits - c.retransmits
		c.retransmits = s.Retransmits
		c.reporter.retransmits += retransmits
	}
	paths := c.endpoint.qp.Paths()
	for i, p := range paths {
		if i < len(c.paths) { // there are never fewer, nor in another order
			if p.DataIn > c.paths[i].DataIn {
				carried = append(carried, p.Remote.Addr())
			}
			if before := c.paths[i]; len(paths) > 1 && (p.State != before.State || p.Primary != before.Primary) {
				c.reporter.printPathChange(p)
			}
		} else if len(paths) > 1 {
			c.reporter.printPathChange(p)
		}
	}
	c.paths, c.reporter.paths = paths, paths
	if len(carried) > 0 { // else it came with the last one
		c.lastReplyPaths = carried
	}
	return retransmits, c.lastReplyPaths
}
