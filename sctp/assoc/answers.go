package assoc

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// answerWithAbort sends an ABORT with the peer's tag and T = 0 to where p came from. A zero refusal
// has no error cause.
func answerWithAbort(o *Outbox, p *rawio.Packet, tag uint32, why refusal) {
	b, ok := o.openPacket()
	if !ok {
		return
	}
	start := len(b)
	b = wire.AppendAbort(b, false)
	if why.code != 0 {
		b = wire.AppendCause(b, why.code, why.info[:min(len(why.info), maxReport)])
	}
	o.queueAnswer(p, tag, wire.CloseChunk(b, start))
}

// RefuseCookie answers a COOKIE ECHO that cannot become an association by ABORT (section 5.1).
func RefuseCookie(o *Outbox, p *rawio.Packet, c *Cookie) {
	answerWithAbort(o, p, c.PeerTag, refusal{code: wire.CauseOutOfResource})
}

// AnswerStale reports an expired cookie to its sender (section 5.1.5).
func AnswerStale(now rawio.Time, o *Outbox, p *rawio.Packet, c *Cookie) {
	b, ok := o.openPacket()
	if !ok {
		return
	}
	start := len(b)
	b = wire.AppendStaleCookieCause(wire.AppendError(b), c.Staleness(now))
	o.queueAnswer(p, c.PeerTag, wire.CloseChunk(b, start))
}

// Reflect answers a packet out of the blue by a lone ABORT, or a SHUTDOWN ACK by SHUTDOWN COMPLETE.
// The answer carries the packet's own Verification Tag and T = 1 (section 8.4).
func Reflect(o *Outbox, p *rawio.Packet, complete bool) {
	b, ok := o.openPacket()
	if !ok {
		return
	}
	if complete {
		b = wire.AppendShutdownComplete(b, true)
	} else {
		b = wire.AppendAbort(b, true)
	}
	o.queueAnswer(p, wire.Packet(p.Data).VTag(), b)
}
