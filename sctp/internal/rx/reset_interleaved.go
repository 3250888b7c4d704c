package rx

import "github.com/rddp-go/rddp/sctp/wire"

// resetInterleaved is resetStreams for I-DATA: the MIDs of ordered and of unordered messages begin
// with 0.
func (r *Reassembly) resetInterleaved(list []wire.StreamID, after wire.TSN) error {
	mids := &r.ext.interleaving.mids
	if list == nil {
		for id := range mids.All {
			if err := r.resetMIDs(wire.StreamID(id), after); err != nil {
				return err
			}
		}
		return nil
	}
	for _, id := range list {
		if mids.At(uint16(id)) == nil {
			continue // it was never used
		}
		if err := r.resetMIDs(id, after); err != nil {
			return err
		}
	}
	return nil
}

// resetMIDs resets one stream.
func (r *Reassembly) resetMIDs(id wire.StreamID, after wire.TSN) error {
	*r.workSteps++
	x, s := r.ext.interleaving, r.stateOfStream(id)
	if len(x.unbegun) > 0 {
		r.dropIfRest(unbegunMessage{stream: id})
		r.dropIfRest(unbegunMessage{stream: id, unordered: true})
	}
	if s.hasWaiting {
		return &ViolationError{after, "a stream is reset before a MID has come"}
	}
	if o := x.streamOf(id); o != nil && (o.messages[0].first() != nil || o.messages[1].first() != nil) {
		return &ViolationError{after, "a stream is reset in the middle of a message"}
	}
	s.nextSSN = 0
	*x.mids.Use(uint16(id)) = nextMIDs{}
	return nil
}
