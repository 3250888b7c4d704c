package assoc

import (
	"errors"

	"github.com/rddp-go/rddp/sctp/internal/rx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Reasons given to a peer that sends the one kind of chunk where the other was agreed on.
var (
	errNotIData = errors.New("DATA where I-DATA was agreed on")
	errIData    = errors.New("I-DATA where it was not agreed on")
)

// interleaves says whether I-DATA takes the place of DATA (RFC 8260 section 2.2.1).
func (a *Assoc) interleaves() bool { return a.agreed.extensions.Has(Interleaving) }

// handleIData takes one I-DATA chunk, as handleData takes DATA. No Placer is asked. It says whether
// to go on with the packet.
func (a *Assoc) handleIData(in *inbound, c wire.Chunk) bool {
	if !a.interleaves() {
		a.abortForViolation(errIData) // RFC 8260 section 2.2.3
		return false
	}
	d, err := wire.AsIData(c)
	if !a.expectsData(err) {
		return true
	}
	if len(d.Payload()) == 0 {
		a.abortForNoUserData(c)
		return false
	}
	a.beginData(in)
	if how := a.recv.AdmitInterleaved(d); how != rx.New {
		a.countRefusedData(how)
		return true
	}
	in.noteMark(d.TSN())
	if uint16(d.Stream()) >= a.agreed.inStreams {
		a.rareCounters().InvalidStream++
		a.recv.Discard(d)
		a.replyInvalidStream(in, d.Stream())
		return true
	}
	if err := a.recv.QueueInterleaved(d, in.Buf); err != nil {
		a.abortForViolation(err)
		return false
	}
	a.stats.DataOctetsIn += uint64(len(d.Payload()))
	return true
}
