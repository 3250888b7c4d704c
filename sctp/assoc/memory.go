package assoc

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// assocSize is the memory of an association, without what its halves report themselves. pathSize is
// that of a path. pathExtraSize is what that leads to, with its congestion controller. cc.NewBBR's,
// the largest, takes so much.
const (
	assocSize     = int(unsafe.Sizeof(Assoc{}))
	pathSize      = int(unsafe.Sizeof(path{}))
	pathExtraSize = int(unsafe.Sizeof([maxUnanswered]sentHeartbeat{})+pmtud.ExtraSize) + 528
)

// Held returns the octets of memory that the association keeps now for its peer. It costs only a
// look at a few fields.
func (a *Assoc) Held() int {
	n := assocSize + len(a.paths)*(pathSize+pathExtraSize) + a.dataStateSize() +
		cap(a.control.buf) + cap(a.control.entries)*int(unsafe.Sizeof(controlEntry{})) +
		cap(a.outbox.buf) + cap(a.outbox.packets)*int(unsafe.Sizeof(outPacket{})) +
		len(a.events.ring)*int(unsafe.Sizeof(Event{})) + int(a.events.peerErrors)*maxCauses*maxReport
	if len(a.paths) > 0 && a.paths[0] == &a.firstPath {
		n -= pathSize // it lies in the association
	}
	if a.stats.rare != nil {
		n += int(unsafe.Sizeof(Counters{}))
	}
	if h := a.streamResets(); h != nil {
		n += int(unsafe.Sizeof(*h)) + h.machine.Held()
	}
	if own, ok := a.stateData.(*cookieEchoed); ok {
		n += cap(own.cookie) + cap(own.errorChunk)
	}
	return n + a.protection().heldOctets()
}

// dataStateSize returns what the halves keep, and senders from before a restart whose messages are
// still to be reported.
func (a *Assoc) dataStateSize() (n int) {
	if a.IsIdle() {
		n = a.idleState.sender.Held() + a.idleState.receiver.Held()
		if a.rareState != nil {
			n += a.rareState.extensions.Held()
		}
		return n
	}
	own := a.sender()
	for _, s := range a.failedSenders() {
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

// OnGrow sets f, which is asked before the window grows (Config.RecvBuffer). It says whether the
// association may hold so many octets more.
func (a *Assoc) OnGrow(f func(octets int) bool) { a.hooks.onGrow = f }

// growWindow makes the window follow what the user reads in a round trip over p.
func (a *Assoc) growWindow(now rawio.Time, p *path) {
	trip := min(p.FarTrip(), maxCountedRTT)
	if trip == 0 {
		return
	}
	if n := a.recv.WantedBuffer(now, trip); n > 0 &&
		(a.hooks.onGrow == nil || a.hooks.onGrow(n-a.recv.Buffered())) {
		a.recv.GrowBuffer(n)
	}
}

// maxCountedRTT is the longest round trip that counts: a peer may feign a longer one.
const maxCountedRTT = time.Second

// SendBuffer returns how many octets of user data Send takes that are not acknowledged. That is
// Config.SendBuffer, or what it has grown to.
func (a *Assoc) SendBuffer() int { return a.sender().SendBuffer() }

// SetMemoryPressure says that memory is short, and the association has more than its share, or that
// this is over. While it lasts, what only gap blocks have acknowledged is dropped, and the window
// is closed (section 6.2).
func (a *Assoc) SetMemoryPressure(on bool) {
	if a.state == Closed {
		return
	}
	if s := a.sender(); a.recv != nil {
		a.recv.SetMemoryPressure(on)
		s.Trim()
	}
}

// trimIdle gives back what an idle association, which is established, does not need.
func (a *Assoc) trimIdle() {
	if h := a.dataState.Load(); h != nil {
		h.sender.Trim()
		h.receiver.Trim()
	}
	if a.events.n == 0 {
		a.events.ring = nil
	}
}

// AbortForMemory ends the association because it holds more than its share, and others need it. The
// peer gets an ABORT with Out of Resource, and EventDown reports a *MemoryError.
func (a *Assoc) AbortForMemory(held, share int64) {
	if a.state == Closed {
		return
	}
	a.queueAbort(refusal{code: wire.CauseOutOfResource})
	a.endAssoc(onEnd, &MemoryError{Held: held, Share: share})
}

// maxSpareOctets is what queues of answers keep for reuse when they are empty. maxSpareEvents is
// the same for the event queue.
const (
	maxSpareOctets = 16 << 10
	maxSpareEvents = 64
)
