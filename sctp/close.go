package sctp

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// connEnd is whether an association has ended, or is to end, and what calls of the program return
// then. Owner only; err may also be read when lifecycle says that it has ended.
type connEnd struct {
	closing         bool  // Close or Abort was called: reads and writes are refused
	ended           bool  // the association is no more
	failed          bool  // unreadLostErr or err is set
	failsOnRestart  bool  // a restart of the peer ends the association
	hasUnsent       bool  // messages have failed since Close
	discardedUnread bool  // Close has thrown messages of the peer away, of which it is to hear
	memoryFreed     bool  // all memory is given back
	asksForStreams  bool  // calls wait for a request about streams, see Transport.streamRequests
	err             error // why the association ended
	unreadLostErr   error // unread messages were dropped at its end: what readers hear
}

// closedErr returns what a call on a Conn that is no longer usable returns. Owner only.
func (e *connEnd) closedErr() error {
	switch {
	case e.closing:
		return net.ErrClosed
	case !e.failed:
		return nil
	case e.unreadLostErr != nil:
		return e.unreadLostErr
	}
	return e.err
}

// readErr returns the result of a read when there is nothing left to read. It is nil while the
// association can still receive. Owner only.
func (e *connEnd) readErr() error {
	switch err := e.closedErr(); {
	case err == assoc.ErrShutdown:
		return io.EOF
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF // Err has more to say
	default:
		return err
	}
}

// Close ends the association gracefully (RFC 9260 section 9.2): what was written is delivered
// first. It returns when the peer has acknowledged everything and agreed to end, because this stack
// ends with the process. After CloseTimeout ([TransportConfig]) it aborts instead, unless the peer
// goes on acknowledging what was written. Associations that close at once share that time. It fails
// with os.ErrDeadlineExceeded then. If the association has ended before the peer had everything, it
// fails with the reason. Reads and writes fail at once. If messages of the peer are unread, the
// peer gets an ABORT (cause 12) once it has everything. They are lost, as when a kernel's socket is
// closed. Closing again returns nil.
func (c *Conn) Close() error {
	_, err := c.closeGracefully()
	return err
}

// closedUnreadReason is the reason in the ABORT when Close has dropped messages of the peer.
const closedUnreadReason = "closed with messages unread"

// closeGracefully is Close, and says whether it was the first.
func (c *Conn) closeGracefully() (first bool, err error) {
	a, now := c.lock()
	first = !c.end.closing
	c.end.closing = true
	c.wakeAll()
	if first {
		c.end.discardedUnread = c.recv.hasUnread()
		c.dropUnread()
		a.Shutdown(now)
	}
	trip := a.PathStats(a.Stats().Primary).SRTT
	c.unlock()
	if !first {
		return false, nil
	}
	if !c.awaitEnd(trip) {
		c.t.closeGrace.RecordVainWait()
		c.Abort("close timed out")
		return true, os.ErrDeadlineExceeded
	}
	if c.end.hasUnsent {
		return true, c.end.err
	}
	return true, nil
}

const (
	// minCloseRate is how many octets the peer has to acknowledge in a second for Close to go on
	// beyond CloseTimeout. maxCloseTimeouts is how often CloseTimeout it may take in all.
	minCloseRate     = 1 << 10
	maxCloseTimeouts = 10
)

// awaitEnd waits for the end of the association, over a path with that round trip, and says whether
// it has come. Beyond the grace period it waits as long as each further CloseTimeout sees progress.
func (c *Conn) awaitEnd(trip time.Duration) bool {
	period := c.t.cfg.closeTimeout()
	wait := c.t.closeGrace.WaitLeft(period, trip)
	left := c.unackedOctets()
	for range maxCloseTimeouts {
		timer := time.NewTimer(wait)
		select {
		case <-c.Done():
			timer.Stop()
			return true
		case <-timer.C:
		}
		had := left
		if left = c.unackedOctets(); float64(had-left) < minCloseRate*wait.Seconds() && (had == 0 || left > 0) {
			return false
		}
		wait = period
	}
	return false
}

// unackedOctets returns the octets that were written and that the peer has not acknowledged.
func (c *Conn) unackedOctets() int {
	st := c.Stats()
	return st.Outstanding + st.Queued
}

// abortUnread aborts the association in place of SHUTDOWN, or SHUTDOWN ACK, if Close has dropped
// messages of the peer. All that was written is delivered by then. Owner only.
func (c *Conn) abortUnread(now rawio.Time) {
	if s := c.core.State(); s == assoc.ShutdownSent || s == assoc.ShutdownAckSent {
		c.end.discardedUnread = false
		c.core.Abort(now, []byte(closedUnreadReason))
	}
}

// Abort ends the association at once (RFC 9260 section 9.1). What was not yet delivered is lost.
// The peer gets the reason.
func (c *Conn) Abort(reason string) {
	a, now := c.lock()
	if !c.end.closing {
		c.end.closing = true
		c.dropUnread()
	}
	a.Abort(now, []byte(reason))
	c.unlock()
}

// dropUnread gives back messages that will not be read.
func (c *Conn) dropUnread() {
	c.recv.inbox.discardAll(&c.core)
	for s := range c.recv.streams.all() { // in whatever order
		s.inbox.discardAll(&c.core)
	}
}
