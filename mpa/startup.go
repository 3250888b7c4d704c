package mpa

import (
	"slices"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/rawio"
)

// checkFrame refuses what does not fit a frame.
func checkFrame(setup *llp.Setup, private []byte) error {
	switch {
	case setup != nil:
		return llp.CheckSetup(*setup, private)
	case len(private) > llp.MaxPrivateData:
		return llp.ErrPrivateDataTooLong
	}
	return nil
}

// queueFrame has a start-up frame written. Its revision is that of what it carries (RFC 6581
// section 6), or of the Request that it answers.
func (c *Conn) queueFrame(f Frame) {
	f.Markers, f.CRC, f.Revision = c.cfg.Markers, !c.cfg.NoCRC, c.revision
	if c.initiator {
		f.Revision = Revision
		if f.Setup != nil {
			f.Revision = EnhancedRevision
		}
	}
	c.control = f.Append(make([]byte, 0, FrameHeaderLen+llp.SetupLen+len(f.Private)))
}

// receiveFrame takes the start-up frame that b begins with, and returns its octets. Nothing may
// follow it: the peer waits for an answer, so what does is no part of a frame (section 7.1.1).
func (c *Conn) receiveFrame(b []byte) (used int) {
	f, n, err := ParseFrame(b, c.initiator)
	switch {
	case err != nil:
		c.refuseFrame(err)
		return len(b)
	case n == 0:
		return 0
	case n < len(b):
		c.refuseFrame(&FrameError{Fault: FaultPrivateData})
		return len(b)
	}
	f.Private = slices.Clone(f.Private)
	c.revision = f.Revision
	if c.initiator {
		c.receiveReply(&f)
	} else {
		c.receiveRequest(&f)
	}
	return n
}

// refuseFrame ends the connection for the peer's start-up frame (section 8, code 4).
func (c *Conn) refuseFrame(err error) { c.endConn(&Error{Code: CodeFrame, Cause: err}) }

// receiveRequest takes the Request. How long the upper layer takes for its answer is not the peer's
// matter.
func (c *Conn) receiveRequest(f *Frame) {
	c.asked, c.deadline = f.Setup, rawio.Never
	c.applyModes(f)
	c.changeState(onRequested)
	c.events.push(Event{Kind: EventRequest, Private: f.Private, Setup: f.Setup})
}

// receiveReply takes the Reply. One that accepts is of the kind of the Request (RFC 6581 section
// 10).
func (c *Conn) receiveReply(f *Frame) {
	c.deadline = rawio.Never
	if f.Rejected {
		err := &llp.RejectedError{Private: f.Private, Setup: f.Setup}
		c.changeState(onRejected)
		c.leave(err)
		c.events.push(Event{Kind: EventRejected, Private: f.Private, Setup: f.Setup, Err: err})
		return
	}
	if (f.Setup != nil) != (c.asked != nil) {
		c.refuseFrame(&FrameError{Fault: FaultKind})
		return
	}
	c.applyModes(f)
	c.changeState(onAccepted)
	c.events.push(Event{Kind: EventAccepted, Private: f.Private, Setup: f.Setup})
	if c.finWanted { // its user is done with it already
		c.changeState(onFinish)
	}
}

// applyModes takes what both frames say of Markers and CRCs (section 7.1.1). CRCs are used unless
// both ends can do without.
func (c *Conn) applyModes(f *Frame) {
	c.in.HasMarkers, c.out.MakesMarkers = c.cfg.Markers, f.Markers
	c.in.ChecksCRC = f.CRC || !c.cfg.NoCRC
	c.out.MakesCRC = c.in.ChecksCRC
	c.SetEMSS(c.cfg.EMSS)
}

// leave exits MPA: the TCP connection stays open for the upper layer (section 7.1.2).
func (c *Conn) leave(err error) {
	c.err, c.deadline, c.isDeaf = err, rawio.Never, true
	if ds := c.ds; ds != nil {
		c.ds = nil
		ds.Closed(err)
	}
}

// Accept answers the peer's Request: ds is attached. It sends when an FPDU of the peer has come
// (section 7.1.2 rule 4). setup is what llp.Setup.Answer makes of the peer's, or nil: then depths
// of an enhanced Request are left to the upper layer.
//
// Errors: llp.ErrPrivateDataTooLong, llp.ErrDepth, llp.ErrState also for a setup in answer to a
// plain Request, or why the connection has ended.
func (c *Conn) Accept(ds *ddp.Stream, setup *llp.Setup, private []byte) error {
	setup, err := c.answer(setup, private)
	if err != nil {
		return err
	}
	c.changeState(onAccept)
	c.queueFrame(Frame{IsReply: true, Setup: setup, Private: private})
	c.ds = ds
	ds.Attach(c)
	return nil
}

// Reject answers the peer's Request; MPA is exited when the Reply is written. setup says what would
// have been acceptable (RFC 6581 section 9.1). Errors as for Accept.
func (c *Conn) Reject(setup *llp.Setup, private []byte) error {
	setup, err := c.answer(setup, private)
	if err != nil {
		return err
	}
	c.changeState(onReject)
	c.queueFrame(Frame{IsReply: true, Rejected: true, Setup: setup, Private: private})
	return nil
}

// answer returns the connection data of an answer: of the kind that was asked for.
func (c *Conn) answer(setup *llp.Setup, private []byte) (*llp.Setup, error) {
	switch {
	case c.err != nil:
		return nil, c.err
	case c.state != Pending || setup != nil && c.asked == nil:
		return nil, llp.ErrState
	}
	if c.asked != nil {
		reply := llp.LeftToULP
		if setup != nil {
			reply = *setup
		}
		reply = llp.MatchModel(reply, *c.asked)
		setup = &reply
	}
	return setup, checkFrame(setup, private)
}
