package assoc

import (
	"errors"

	"github.com/rddp-go/rddp/sctp/wire"
)

// peerSendsForwardTSN says whether the peer may give messages up (RFC 3758): this side has said that
// it understands FORWARD TSN or, where I-DATA is used, I-FORWARD-TSN.
func (a *Assoc) peerSendsForwardTSN() bool { return a.agreed.extensions.Has(PartialReliability) }

// interleaves says whether I-DATA takes the place of DATA (RFC 8260 section 2.2.1).
func (a *Assoc) interleaves() bool { return a.agreed.extensions.Has(Interleaving) }

// errNotIForwardTSN is the reason given to a peer that sends FORWARD TSN along with I-DATA.
var errNotIForwardTSN = errors.New("FORWARD TSN where I-FORWARD-TSN was agreed on")

// handleForwardTSN takes a FORWARD TSN (RFC 3758 section 3.6). It says whether to go on with the
// packet.
func (a *Assoc) handleForwardTSN(in *inbound, c wire.Chunk) bool {
	switch {
	case !a.peerSendsForwardTSN():
		return a.handleUnknown(in, c) // section 3.3
	case a.interleaves():
		a.abortForViolation(errNotIForwardTSN) // RFC 8260 section 2.3.1
		return false
	}
	f, err := wire.AsForwardTSN(c)
	if err != nil {
		a.rareCounters().Malformed++
		return true
	}
	if !recvStates.has(a.state) {
		a.rareCounters().Unexpected++
		return true
	}
	a.sender() // it rests no longer
	in.hasData = true
	a.recv.ForwardTSN(f)
	return true
}
