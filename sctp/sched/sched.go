package sched

// Scheduler chooses the stream whose chunk goes next. Each association needs one of its own, and
// calls it with its lock held. A program may bring its own.
//
// A stream is active while it has something to send. Next is called only while a stream is active.
// Without I-DATA a message that has begun is finished first (RFC 9260 section 6.9), whatever Next
// says meanwhile.
type Scheduler interface {
	// Activate says that a stream, which had nothing to send, has something now.
	Activate(stream uint16)
	// Deactivate says that an active stream has nothing more to send.
	Deactivate(stream uint16)
	// Next returns the active stream whose chunk goes next. It does not change what it returns:
	// that is for Sent. bundled says that the packet already has a chunk of Sent's last stream.
	// With ok false what comes next begins a new packet.
	Next(bundled bool) (stream uint16, ok bool)
	// Sent says that an active stream has sent octets of user data. endOfMessage says that its
	// message is complete.
	Sent(stream uint16, octets int, endOfMessage bool)
	// SetValue sets the value of a stream (RFC 8260 section 4.3.3). What it means is the
	// scheduler's. 0 is the default.
	SetValue(stream, value uint16)
}
