package mpa

import (
	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rawio"
)

// rowMost is how many ULPDUs are placed at once.
const rowMost = 64

// Receive takes octets of the TCP connection, from the first that was not taken before. It returns
// how many it has taken; the others are to come again, with those that follow them. It has not kept
// any of b, which may have changed.
func (c *Conn) Receive(now rawio.Time, b []byte) (used int) {
	defer c.boundFaulted(now)
	for used < len(b) {
		n := 0
		switch {
		case c.isDeaf || c.state == PeerClosed || c.state == BothClosing:
			n = len(b) - used // nobody is there for it
		case receivingStates.has(c.state):
			n = c.receiveFPDUs(b[used:])
		case startingStates.has(c.state):
			n = c.receiveFrame(b[used:])
		default: // the peer is to wait for the answer
			c.refuseFrame(&FrameError{Fault: FaultPrivateData})
		}
		if n == 0 {
			break
		}
		used += n
	}
	return used
}

// Need returns how many octets Receive needs for more, of which b are the first: those of an FPDU,
// or of a start-up frame.
func (c *Conn) Need(b []byte) int {
	if receivingStates.has(c.state) && !c.isDeaf {
		return c.in.Need(b)
	}
	return MaxFrameLen
}

// receiveFPDUs takes the FPDUs that b begins with. Those of one message that follow each other are
// placed at once.
func (c *Conn) receiveFPDUs(b []byte) (used int) {
	if c.initiator && c.stats.FPDUsOut == 0 {
		// The responder is to wait for our first FPDU: what comes ahead of it is none.
		c.refuseFrame(&FrameError{Fault: FaultPrivateData})
		return len(b)
	}
	n := 0 // ULPDUs in row
	for receivingStates.has(c.state) && !c.isDeaf {
		ulpdu, size, err := c.in.Next(b[used:])
		if err != nil {
			c.placeRow(n)
			c.failReception(err.(*Error))
			return len(b)
		}
		if size == 0 {
			break
		}
		used += size
		c.stats.FPDUsIn++
		c.fenced = false
		c.row[n] = ulpdu
		if n++; n == rowMost || len(ulpdu) == 0 || ddp.Control(ulpdu[0]).Last() {
			c.placeRow(n)
			n = 0
		}
	}
	c.placeRow(n)
	return used
}

// placeRow places and delivers the first n ULPDUs of row. The stream may end meanwhile.
func (c *Conn) placeRow(n int) {
	for segs := c.row[:n]; len(segs) > 0; {
		if c.ds == nil {
			break
		}
		if k := c.ds.PlaceRow(segs); k > 0 {
			segs = segs[k:]
			continue
		}
		c.ds.Place(segs[0], &c.placed)
		c.ds.Deliver(&c.placed)
		segs = segs[1:]
	}
	clear(c.row[:n])
}

// failReception tells DDP of an FPDU that is wrong. Nothing more is passed on, and the TCP
// connection stays open for what DDP's user has to say (section 8).
func (c *Conn) failReception(err *Error) {
	c.isDeaf = true
	if c.ds != nil {
		c.ds.LLPFailed(err.Code, err)
	}
}

// PeerFinished takes that the peer has closed its half of the TCP connection (FIN). left is how
// many octets Receive has not taken.
func (c *Conn) PeerFinished(_ rawio.Time, left int) {
	switch {
	case finalStates.has(c.state) || c.state == PeerClosed || c.state == BothClosing:
	case left > 0 && !c.isDeaf:
		c.Lost(ErrTruncated)
	case !receivingStates.has(c.state), c.fenced && c.ds.Pending(): // which can never leave
		c.Lost(ErrClosedEarly)
	default:
		c.changeState(onPeerFinished)
		c.ds.HalfClosed()
		c.endIfBothClosed()
	}
}

// endIfBothClosed ends the connection when both halves are closed.
func (c *Conn) endIfBothClosed() {
	if c.state == BothClosing && c.finWritten {
		c.endConn(nil)
	}
}
