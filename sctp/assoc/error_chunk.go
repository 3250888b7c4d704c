package assoc

import (
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// replyError queues an ERROR chunk with one cause in answer to the current packet. The quoted
// information is limited, so that what a peer sends is never amplified.
func (a *Assoc) replyError(in *inbound, code wire.CauseCode, info []byte) {
	start := len(a.control.buf)
	b := wire.AppendCause(wire.AppendError(a.control.buf), code, info)
	p, local := a.replyPath(in)
	a.queueReply(p, local, wire.CloseChunk(b, start))
}

// replyInvalidStream reports a DATA chunk on a stream that does not exist (section 6.5).
func (a *Assoc) replyInvalidStream(in *inbound, s wire.StreamID) {
	a.replyError(in, wire.CauseInvalidStream, []byte{byte(s >> 8), byte(s), 0, 0})
}

// handleUnknown treats a chunk of a type that this association does not use. The two high bits of
// the type say how (section 3.2). It says whether to go on with the packet.
func (a *Assoc) handleUnknown(in *inbound, c wire.Chunk) bool {
	a.rareCounters().UnknownChunks++
	stop, report := c.Type().UnknownAction()
	if report {
		a.replyError(in, wire.CauseUnrecognizedChunkType, c)
	}
	return !stop
}

// handleError takes the peer's ERROR chunk (section 3.3.10).
func (a *Assoc) handleError(now rawio.Time, c wire.Chunk) {
	e, _ := wire.AsError(c) // none is too short
	a.rareCounters().ErrorsIn++
	cs := e.Causes()
	for cause, ok := cs.Next(); ok; cause, ok = cs.Next() {
		if cause.Code() == wire.CauseStaleCookie {
			a.handleStaleCookie(now)
			return
		}
	}
	if cs.Err() != nil {
		a.rareCounters().Malformed++
		return
	}
	a.noteUnknownToPeer(e)
	if a.events.peerErrors == maxPeerErrors || !a.limits.errorReports.allow(now) {
		a.rareCounters().ErrorReportsLost++
		return
	}
	a.events.push(Event{Kind: EventPeerError, Err: &PeerError{Causes: copyCauses(e.Causes())}})
}

// errorReportLimit limits reports of ERROR chunks to maxPeerErrors in a second. Each is an event
// and a line in a log.
type errorReportLimit struct {
	windowBeganAt rawio.Time
	count         int
}

func (l *errorReportLimit) allow(now rawio.Time) bool {
	if l.count == 0 || now.Sub(l.windowBeganAt) >= time.Second {
		*l = errorReportLimit{windowBeganAt: now}
	}
	if l.count == maxPeerErrors {
		return false
	}
	l.count++
	return true
}

// maxCauses bounds the causes kept of one chunk.
const maxCauses = 8

// copyCauses copies the causes out of the packet, of each at most maxReport octets.
func copyCauses(cs wire.Causes) (list []Cause) {
	for c, ok := cs.Next(); ok && len(list) < maxCauses; c, ok = cs.Next() {
		list = append(list, Cause{Code: c.Code(), Info: slices.Clone(c.Info()[:min(len(c.Info()), maxReport)])})
	}
	return list
}
