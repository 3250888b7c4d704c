package rx

// SetBuffers changes Config.RecvBuffer, MaxBuffer and Partial. What the peer was told that it may send is still taken (a window of TCP does not shrink either,
// RFC 9293 section 3.8.6): a smaller buffer comes about as what was advertised is used up and read.
func (r *Receiver) SetBuffers(octets, most, partial int) {
	r.cfg.Partial, r.cfg.MaxBuffer = partial, most
	if octets == r.first && r.cfg.RecvBuffer <= max(octets, most) {
		return
	}
	r.first, r.cfg.RecvBuffer = octets, octets
	r.reasm.store.limit = octets
	r.reasm.shrink()
	r.fit()
	if r.Window()-r.credit >= octets/4 {
		r.ack.Demand()
	}
}

// shrinks says whether the receive buffer is still larger than Config.RecvBuffer.
func (r *Receiver) shrinks() bool { return r.reasm.limit > r.cfg.RecvBuffer }

// fit makes the receive buffer as large as Config.RecvBuffer, or as what is held and what was advertised beyond that.
func (r *Receiver) fit() { r.reasm.limit = max(r.cfg.RecvBuffer, r.reasm.used+r.credit) }
