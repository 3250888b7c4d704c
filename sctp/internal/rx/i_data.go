package rx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// AdmitInterleaved is Admit for I-DATA. After New call Discard or QueueInterleaved.
func (r *Receiver) AdmitInterleaved(d wire.IData) Admission {
	return r.admit(d.TSN(), d.Stream(), wire.Chunk(d), false)
}

// QueueInterleaved is Queue for I-DATA.
func (r *Receiver) QueueInterleaved(d wire.IData, buf *rawio.Buf) error {
	r.noteIData(d)
	r.advertisedWindow = max(r.advertisedWindow-len(d.Payload()), 0)
	r.readRate.received += len(d.Payload())
	if r.isFrozen() {
		r.freeze(d.TSN(), wire.Chunk(d), len(d.Payload()))
		return nil
	}
	return r.reassembly.AddInterleaved(d, buf)
}

// Discard counts an admitted chunk as received without holding it.
func (r *Receiver) Discard(d wire.IData) {
	r.noteIData(d)
	if r.isShrinking() {
		r.advertisedWindow = max(r.advertisedWindow-len(d.Payload()), 0)
		r.fitBuffer()
	}
}

func (r *Receiver) noteIData(d wire.IData) {
	r.tracker.Add(d.TSN())
	r.ackPolicy.NoteData(d.I())
	_ = r.reassembly.Check(r.tracker.Cum()) // which has no error for I-DATA
}

// IForwardTSN is ForwardTSN for I-FORWARD-TSN (RFC 8260 section 2.3.1). Its MIDs say which messages
// are dropped.
func (r *Receiver) IForwardTSN(f wire.IForwardTSN) bool {
	if r.isFrozen() {
		return r.freezeForwardTSN(f.NewCumTSN(), wire.Chunk(f))
	}
	if !r.forwardCumTSN(f.NewCumTSN()) {
		return false
	}
	r.reassembly.skipAllMIDs(f)
	r.noteRoom()
	return true
}

// skipAllMIDs gives up the messages that an I-FORWARD-TSN names.
func (r *Reassembly) skipAllMIDs(f wire.IForwardTSN) {
	for i := range f.NumSkips() {
		*r.workSteps++
		r.skipThroughMID(f.Skip(i))
	}
}
