package assoc

import (
	"unsafe"

	"github.com/rddp-go/rddp/sctp/wire"
)

// pathHeld is the memory of a path: its congestion controller and its search for the MTU too.
const pathHeld = int(unsafe.Sizeof(path{})) + 1024

// Held returns the octets of memory that the association keeps now for its peer. It costs no more than a look at a few fields.
func (a *Assoc) Held() int {
	n := int(unsafe.Sizeof(*a)) + len(a.paths)*pathHeld + a.sender.Held() +
		cap(a.control.buf) + cap(a.control.entries)*int(unsafe.Sizeof(controlEntry{})) +
		cap(a.outbox.buf) + cap(a.outbox.pkts)*int(unsafe.Sizeof(outPacket{})) +
		len(a.events.ring)*int(unsafe.Sizeof(Event{})) + a.events.peerErrors*maxCauses*maxReport
	for _, s := range a.failing {
		if s != a.sender {
			n += s.Held()
		}
	}
	if a.recv != nil {
		n += a.recv.Held()
	}
	if a.setup != nil {
		if own, ok := a.setup.own.(*echoing); ok {
			n += cap(own.cookie) + cap(own.report)
		}
	}
	return n
}

// Buffered returns the octets of user data received that the user has not taken.
func (a *Assoc) Buffered() int {
	if a.recv == nil {
		return 0
	}
	return a.recv.Buffered()
}

// Squeeze says that memory is short, or is no longer, and the association has more than its share: what only gap blocks have
// acknowledged is dropped, and the window is closed for as long as it lasts (section 6.2).
func (a *Assoc) Squeeze(on bool) {
	if a.recv != nil && a.state != Closed {
		a.recv.Squeeze(on)
		a.sender.Trim()
	}
}

// trim gives back what an idle association does not need.
func (a *Assoc) trim() {
	a.sender.Trim()
	if a.recv != nil {
		a.recv.Trim()
	}
	if a.events.n == 0 {
		a.events.ring = nil
	}
}

// AbortForMemory ends the association because it holds more than its share, and others need it: the peer gets an ABORT with Out of
// Resource, and EventDown reports a *MemoryError.
func (a *Assoc) AbortForMemory(held, share int64) {
	if a.state == Closed {
		return
	}
	a.lastWords(refusal{code: wire.CauseOutOfResource})
	a.down(onEnd, &MemoryError{Held: held, Share: share})
}

// spareOctets is what queues of answers keep for reuse when they are empty, spareEvents what that of events does.
const (
	spareOctets = 16 << 10
	spareEvents = 64
)
