package rx

// SetBuffers changes Config.RecvBuffer, MaxBuffer and PartialPoint. What the peer was allowed to
// send is still taken: a window of TCP does not shrink either (RFC 9293 section 3.8.6). A smaller
// buffer comes about as the advertised window is used up and read.
func (r *Receiver) SetBuffers(octets, most, partial int) {
	r.cfg.PartialPoint, r.cfg.MaxBuffer = partial, most
	if octets == int(r.initialBuffer) && r.cfg.RecvBuffer <= max(octets, most) {
		return
	}
	r.initialBuffer, r.cfg.RecvBuffer = int32(octets), octets
	r.reassembly.store.dataLimit = octets
	r.reassembly.freeSpares()
	r.fitBuffer()
	if r.Window()-r.advertisedWindow >= octets/4 {
		r.ackPolicy.Demand()
	}
}

// isShrinking says whether the receive buffer is still larger than Config.RecvBuffer.
func (r *Receiver) isShrinking() bool { return r.reassembly.dataLimit > r.cfg.RecvBuffer }

// fitBuffer makes the receive buffer as large as Config.RecvBuffer, or as what is held and
// advertised if that is more.
func (r *Receiver) fitBuffer() {
	r.reassembly.dataLimit = max(r.cfg.RecvBuffer, r.reassembly.heldOctets+r.advertisedWindow)
}
