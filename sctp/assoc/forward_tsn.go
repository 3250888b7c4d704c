package assoc

import (
	"errors"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// peerSendsForwardTSN says whether the peer may give messages up (RFC 3758): this side has said
// that it understands FORWARD TSN or, where I-DATA is used, I-FORWARD-TSN.
func (a *Assoc) peerSendsForwardTSN() bool { return a.agreed.extensions.Has(PartialReliability) }

// errNotIForwardTSN is the reason given to a peer that sends FORWARD TSN along with I-DATA.
var errNotIForwardTSN = errors.New("FORWARD TSN where I-FORWARD-TSN was agreed on")

// errIForwardTSN is the reason given to a peer that sends I-FORWARD-TSN where it was not agreed on.
var errIForwardTSN = errors.New("I-FORWARD-TSN where it was not agreed on")

// handleForwardTSN takes a FORWARD TSN (RFC 3758 section 3.6). It says whether to go on with the
// packet.
func (a *Assoc) handleForwardTSN(now rawio.Time, in *inbound, c wire.Chunk) bool {
	switch {
	case !a.peerSendsForwardTSN():
		return a.handleUnknown(in, c) // section 3.3
	case a.interleaves():
		a.abortForViolation(errNotIForwardTSN) // RFC 8260 section 2.3.1
		return false
	}
	f, err := wire.AsForwardTSN(c)
	if a.expectsForwardTSN(in, err) && !a.isLateForwardTSN(f.NewCumTSN()) {
		a.recv.ForwardTSN(f)
	}
	return true
}

// handleIForwardTSN takes an I-FORWARD-TSN (RFC 8260 section 2.3.1). It says whether to go on with
// the packet.
func (a *Assoc) handleIForwardTSN(now rawio.Time, in *inbound, c wire.Chunk) bool {
	if !a.peerSendsForwardTSN() || !a.interleaves() {
		a.abortForViolation(errIForwardTSN)
		return false
	}
	f, err := wire.AsIForwardTSN(c)
	if a.expectsForwardTSN(in, err) && !a.isLateForwardTSN(f.NewCumTSN()) {
		a.recv.IForwardTSN(f)
	}
	return true
}

// expectsForwardTSN says whether the receiving half is to take what was read with err.
func (a *Assoc) expectsForwardTSN(in *inbound, err error) bool {
	if !a.expectsData(err) {
		return false
	}
	a.sender() // it rests no longer
	in.hasData = true
	return true
}
