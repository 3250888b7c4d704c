package asconf

import (
	"net/netip"

	"github.com/rddp-go/rddp/sctp/wire"
)

// Peer is the peer's addresses, as an association has them.
type Peer interface {
	// Has says whether an address is one of them, Count how many there are.
	Has(a netip.Addr) bool
	Count() int
	// IsConfirmed says whether the peer has proved that it is at an address. IsLastConfirmed says
	// that it has not done so of any other.
	IsConfirmed(a netip.Addr) bool
	IsLastConfirmed(a netip.Addr) bool
	// Add adds one. It returns false if there is no room for it, or no way to it.
	Add(a netip.Addr) bool
	// Delete removes one of several.
	Delete(a netip.Addr)
	// DeleteOthers removes all but one.
	DeleteOthers(than netip.Addr)
	// SetPrimary makes one of them the primary address.
	SetPrimary(a netip.Addr)
}

const (
	// maxCached bounds the answers that are kept for ASCONFs that come again.
	maxCached = 8
	// maxQuoted is the longest parameter that an answer quotes: a request with an IPv6 address.
	maxQuoted = 28
	// responseLen is the longest response: its header and correlation ID, and a cause that quotes.
	responseLen = 8 + 4 + maxQuoted
)

// Responder performs what the peer asks for (section 5.2).
type Responder struct {
	last uint32 // Peer-Sequence-Number: of the last ASCONF that was performed
	acks []cachedAck
}

// cachedAck is the answer to an ASCONF.
type cachedAck struct {
	seq   uint32
	chunk []byte
}

// NewResponder returns a Responder for a peer that begins with a TSN.
func NewResponder(initial wire.TSN) *Responder { return &Responder{last: uint32(initial) - 1} }

// Handle takes an ASCONF that came from source, and is the first of its packet or not. It returns
// the ASCONF-ACK, of at most room octets, nil for none.
func (r *Responder) Handle(c wire.Asconf, isFirst bool, source netip.Addr, room int, p Peer) []byte {
	seq := c.Seq()
	switch d := int32(seq - r.last); {
	case d <= 0: // E2: it came before
		for _, ack := range r.acks {
			if ack.seq == seq {
				return ack.chunk
			}
		}
		return nil
	case d > 1: // E5: stale, or of an attacker
		return nil
	}
	if isFirst { // E1: the peer has the answers to those of before
		r.acks = nil
	}
	chunk := perform(c, source, room, p)
	if len(r.acks) == maxCached {
		r.acks = r.acks[1:]
	}
	r.last, r.acks = seq, append(r.acks, cachedAck{seq, chunk})
	return chunk
}

// Held returns the octets of memory that are kept.
func (r *Responder) Held() (n int) {
	for _, ack := range r.acks {
		n += cap(ack.chunk) + 32
	}
	return n
}

// answer is an ASCONF-ACK that is made.
type answer struct {
	b         []byte
	hasFailed bool // what follows without a response has failed too (A7)
	refuses   bool // an address was refused for lack of room: so are all that follow (F11)
}

// perform does what the parameters ask for, one after another (V1).
func perform(c wire.Asconf, source netip.Addr, room int, p Peer) []byte {
	w := answer{b: wire.AppendAsconfAck(nil, c.Seq())}
	ps := c.Params()
	for prm, ok := ps.Next(); ok; prm, ok = ps.Next() {
		switch t := prm.Type(); t {
		case wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary:
			if len(w.b)+2*responseLen > room {
				w.fail(prm, wire.CauseResourceShortage, nil) // and with it all that follows
				return wire.CloseChunk(w.b, 0)
			}
			q, err := wire.AsAddrRequest(prm)
			if err != nil {
				w.fail(prm, wire.CauseInvalidParam, nil)
				continue
			}
			w.respond(q, w.performOne(q, source, p))
		case wire.ParamErrorCause, wire.ParamSuccess, wire.ParamAdaptationIndication, wire.ParamSupportedExtensions:
			// It is not allowed here (section 4.2).
		default:
			stop, report := t.UnknownAction()
			if report && len(w.b)+2*responseLen <= room {
				w.fail(prm, wire.CauseUnrecognizedParams, prm) // V2
			}
			if stop {
				return wire.CloseChunk(w.b, 0)
			}
		}
	}
	return wire.CloseChunk(w.b, 0)
}

// performOne does what one request asks for, or returns why not. An unspecified address stands for
// the source of the packet, or for all others.
func (w *answer) performOne(q wire.AddrRequest, source netip.Addr, p Peer) (refused wire.CauseCode) {
	addr, isWildcard := q.Addr().Unmap(), q.Addr().IsUnspecified()
	if isWildcard {
		addr = source
	}
	switch q.Type() {
	case wire.ParamAddIP:
		if w.refuses || !p.Has(addr) && !p.Add(addr) {
			w.refuses = true // F9, F11
			return wire.CauseResourceShortage
		}
	case wire.ParamDeleteIP:
		if w.refuses {
			return wire.CauseResourceShortage
		}
		return deleteAddr(addr, isWildcard, source, p)
	case wire.ParamSetPrimary:
		if !p.Has(addr) { // section 5.4
			return wire.CauseUnresolvableAddress
		}
		p.SetPrimary(addr)
	}
	return 0
}

// deleteAddr deletes an address, or with a wildcard all but the source. The last that is confirmed
// stays, as nothing may go to the others.
func deleteAddr(addr netip.Addr, isWildcard bool, source netip.Addr, p Peer) (refused wire.CauseCode) {
	switch {
	case isWildcard:
		if !p.IsConfirmed(source) {
			return wire.CauseResourceShortage
		}
		p.DeleteOthers(source)
	case !p.Has(addr): // it is as asked for
	case p.Count() == 1:
		return wire.CauseDeleteLastAddr // F7
	case addr == source:
		return wire.CauseDeleteSourceAddr // F8
	case p.IsLastConfirmed(addr):
		return wire.CauseResourceShortage
	default:
		p.Delete(addr)
	}
	return 0
}

// respond appends the response to a request. Success is said only where it is not implied (A7).
func (w *answer) respond(q wire.AddrRequest, refused wire.CauseCode) {
	switch {
	case refused != 0:
		w.fail(wire.Param(q), refused, wire.Param(q))
	case w.hasFailed:
		w.b = wire.AppendSuccessIndication(w.b, q.CorrelationID())
	}
}

// fail appends an Error Cause Indication, with what it is about if that is short.
func (w *answer) fail(prm wire.Param, why wire.CauseCode, quoted []byte) {
	if len(quoted) > maxQuoted {
		quoted = nil
	}
	start := len(w.b)
	w.b = wire.AppendErrorIndication(w.b, correlationOf(prm))
	w.b = wire.CloseParam(wire.AppendCause(w.b, why, quoted), start)
	w.hasFailed = true
}

// correlationOf returns the correlation ID of a request that may not be well-formed, 0 if it is too
// short.
func correlationOf(prm wire.Param) uint32 {
	if len(prm) < 8 {
		return 0
	}
	return wire.AddrRequest(prm).CorrelationID()
}
