package mpa

import (
	"bytes"

	"github.com/rddp-go/rddp/internal/overlap"
	"github.com/rddp-go/rddp/rawio"
)

// Action is what the owner is to do with the TCP connection.
type Action uint8

// The actions.
const (
	ActNone   Action = iota
	ActWrite         // write the pieces, and call Written
	ActFinish        // close the sending half, and call Finished
)

// Next says what to do now, and with ActWrite what to write: all in order, or as much as goes. It
// stops at most octets, with the FPDU that reaches them. The pieces are valid, and Next is not to
// be called again, until Written was.
func (c *Conn) Next(_ rawio.Time, most int) (Action, [][]byte) {
	switch {
	case c.inFlight || finalStates.has(c.state):
	case len(c.rest) > 0 || c.fill(most):
		c.inFlight = true
		return ActWrite, c.rest
	case c.finIsDue():
		return ActFinish, nil
	}
	return ActNone, nil
}

// HasOutput reports whether Next has something to do.
func (c *Conn) HasOutput() bool {
	return !c.inFlight && !finalStates.has(c.state) && (len(c.rest) > 0 || c.control != nil || c.maySend() ||
		c.finIsDue())
}

// finIsDue reports whether TCP is to close the sending half, behind what there is to write.
func (c *Conn) finIsDue() bool { return c.finWanted && !c.finWritten && fullOperation.has(c.state) }

// maySend reports whether there are segments that may leave.
func (c *Conn) maySend() bool {
	return fullOperation.has(c.state) && !c.fenced && c.ds != nil && c.ds.Pending()
}

// NextLen returns about how many octets Next has to give at least. They are those that were given
// out and not written, or else those of the message that goes on.
func (c *Conn) NextLen() (n int) {
	switch {
	case len(c.rest) > 0 && c.control == nil:
		return c.batch.octets - c.written
	case c.maySend():
		return int(c.ds.Rest())
	}
	return 0
}

// fill makes rest of what there is to send: a start-up frame, or FPDUs up to most octets.
func (c *Conn) fill(most int) bool {
	if c.control != nil {
		c.rest = append(c.batch.pieces[:0], c.control)
		return true
	}
	if !c.maySend() {
		return false
	}
	c.batch.Reset()
	c.written, c.acked, c.copied = 0, 0, false
	for c.maySend() && c.batch.octets < most && c.out.HasRoom(&c.batch, c.mulpdu) {
		if n := c.ds.NextRun(c.mulpdu, c.out.RoomForRun(&c.batch, c.mulpdu, most), &c.run); n > 0 {
			c.out.AppendRun(&c.batch, &c.run, n)
			c.stats.FPDUsOut += uint64(n)
			continue
		}
		if !c.ds.NextSegment(c.mulpdu, &c.segment) || !fullOperation.has(c.state) {
			break
		}
		c.out.Append(&c.batch, &c.segment)
		c.stats.FPDUsOut++
	}
	c.rest = c.batch.Pieces()
	return len(c.rest) > 0
}

// Written takes that TCP has taken the first n octets of what Next gave out.
func (c *Conn) Written(now rawio.Time, n int) {
	defer c.boundFaulted(now)
	c.inFlight = false
	if c.state == Ended {
		c.closeStream()
		return
	}
	c.consume(n)
	if c.control != nil {
		if len(c.rest) == 0 {
			c.control = nil
			c.finishReject()
		}
		return
	}
	c.written += n
	done := 0
	for ; c.acked+done < len(c.batch.ends) && c.batch.ends[c.acked+done] <= c.written; done++ {
	}
	c.acked += done
	if c.detaching {
		c.copyRest(nil)
	}
	if done > 0 && c.ds != nil {
		c.ds.AckedRun(done)
	}
}

// consume takes n octets off rest.
func (c *Conn) consume(n int) {
	for len(c.rest) > 0 && n >= len(c.rest[0]) {
		n -= len(c.rest[0])
		c.rest[0] = nil
		c.rest = c.rest[1:]
	}
	if n > 0 {
		c.rest[0] = c.rest[0][n:]
	}
}

// finishReject exits MPA behind a Reply that rejects.
func (c *Conn) finishReject() {
	if c.state == Rejecting {
		c.changeState(onAllWritten)
		c.leave(nil)
		c.events.push(Event{Kind: EventLeft})
	}
}

// Finished takes that TCP has closed the sending half.
func (c *Conn) Finished(now rawio.Time) {
	c.finWritten = true
	c.boundFaulted(now)
	c.endIfBothClosed()
}

// Detach copies what was given out of memory inside within (nil: of all), so that the caller may
// change it. more says that the owner is writing, and has to stop: the copy is made in Written.
func (c *Conn) Detach(within []byte) (more bool) {
	if c.inFlight {
		c.detaching = c.detaching || c.refersTo(within)
		return c.detaching
	}
	c.copyRest(within)
	return false
}

// CopyOut joins what Next gave out in buf, from its beginning, and returns that. It is for an owner
// that cannot stop writing: Detach need not wait for it then. buf is the owner's again when Written
// was called.
func (c *Conn) CopyOut(buf []byte) []byte {
	buf = buf[:0]
	for _, p := range c.rest {
		buf = append(buf, p...)
	}
	c.rest = append(c.batch.pieces[:0], buf)
	c.copied = true
	return buf
}

// refersTo reports whether what is to be written has memory of the user inside within (nil: any).
func (c *Conn) refersTo(within []byte) bool {
	for _, p := range c.rest {
		if c.isUsers(p) && (within == nil || overlap.Slices(p, within)) {
			return true
		}
	}
	return false
}

// copyRest makes what is to be written independent of memory of the user inside within (nil: any).
func (c *Conn) copyRest(within []byte) {
	c.detaching = false
	for i, p := range c.rest {
		if c.isUsers(p) && (within == nil || overlap.Slices(p, within)) {
			c.rest[i] = bytes.Clone(p)
		}
	}
}

// isUsers reports whether a piece is memory of the user, or a copy of it.
func (c *Conn) isUsers(p []byte) bool {
	return c.control == nil && !c.copied && !overlap.Slices(p, c.batch.own[:cap(c.batch.own)])
}
