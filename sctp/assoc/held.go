package assoc

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// assocHeld is the memory of an association, without what its halves say themselves, pathHeld that of a path, and pathMore what that leads to: with its congestion
// controller, of which cc.NewBBR's, the largest, takes so much.
const (
	assocHeld = int(unsafe.Sizeof(Assoc{}))
	pathHeld  = int(unsafe.Sizeof(path{}))
	pathMore  = int(unsafe.Sizeof([kept]question{})+pmtud.Held) + 528
)

// Held returns the octets of memory that the association keeps now for its peer. It costs no more than a look at a few fields.
func (a *Assoc) Held() int {
	n := assocHeld + len(a.paths)*(pathHeld+pathMore) + a.heldByHalves() +
		cap(a.control.buf) + cap(a.control.entries)*int(unsafe.Sizeof(controlEntry{})) +
		cap(a.outbox.buf) + cap(a.outbox.pkts)*int(unsafe.Sizeof(outPacket{})) +
		len(a.events.ring)*int(unsafe.Sizeof(Event{})) + int(a.events.peerErrors)*maxCauses*maxReport
	if len(a.paths) > 0 && a.paths[0] == &a.first {
		n -= pathHeld // it lies in the association
	}
	if a.stats.others != nil {
		n += int(unsafe.Sizeof(Counters{}))
	}
	if a.setup != nil {
		if own, ok := a.setup.own.(*echoing); ok {
			n += cap(own.cookie) + cap(own.report)
		}
	}
	return n
}

// heldByHalves is what they keep, and those of before a restart whose messages are still to be reported.
func (a *Assoc) heldByHalves() (n int) {
	if a.Rests() {
		return a.rested.sender.Held() + a.rested.receiver.Held()
	}
	own := a.sender()
	for _, s := range a.failing {
		if s != own {
			n += s.Held()
		}
	}
	if a.recv == nil {
		return n + own.Held() + int(unsafe.Sizeof(rx.Receiver{}))
	}
	return n + own.Held() + a.recv.Held()
}

// Buffered returns the octets of user data received that the user has not taken.
func (a *Assoc) Buffered() int {
	if a.recv == nil {
		return 0
	}
	return a.recv.Buffered()
}

// OnGrow has f asked whether the association may hold so many octets more, before its window grows (Config.RecvBuffer).
func (a *Assoc) OnGrow(f func(octets int) bool) { a.affords = f }

// growWindow has the window follow what the user reads in a round trip over p.
func (a *Assoc) growWindow(now rawio.Time, p *path) {
	if !p.Far() {
		return
	}
	if n := a.recv.Wants(now, min(p.ShortestRTT(), longTrip)); n > 0 && (a.affords == nil || a.affords(n-a.recv.Buffered())) {
		a.recv.Grow(n)
	}
}

// longTrip is what a round trip counts as at most: a peer may feign a longer one.
const longTrip = time.Second

// SendBuffer returns how many octets of user data Send takes that are not acknowledged: Config.SendBuffer, or what it has grown to.
func (a *Assoc) SendBuffer() int { return a.sender().SendBuffer() }

// Squeeze says that memory is short, or is no longer, and the association has more than its share: what only gap blocks have
// acknowledged is dropped, and the window is closed for as long as it lasts (section 6.2).
func (a *Assoc) Squeeze(on bool) {
	if a.state == Closed {
		return
	}
	if s := a.sender(); a.recv != nil {
		a.recv.Squeeze(on)
		s.Trim()
	}
}

// trim gives back what an idle association, which is established, does not need.
func (a *Assoc) trim() {
	if h := a.halves.Load(); h != nil {
		h.sender.Trim()
		h.receiver.Trim()
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
