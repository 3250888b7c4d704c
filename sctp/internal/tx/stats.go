package tx

// Stats are counters since the start.
type Stats struct {
	Chunks          uint64 // DATA chunks sent, each transmission counted
	Octets          uint64 // of user data in them
	Retransmits     uint64 // DATA chunks sent again
	FastRetransmits uint64 // entries into Fast Recovery
	Timeouts        uint64 // T3-rtx expiries
	TailProbes      uint64 // tail-loss probes (RFC 8985 section 7)
	Probes          uint64 // zero window probes, each transmission counted
	Reneged         uint64 // TSNs that the peer acknowledged in a gap block and then no more
	DupsReported    uint64 // duplicate TSNs that the peer listed
	Spurious        uint64 // chunks that were taken for lost and were not
	PathsSuspected  uint64 // times that new data has left a silent path
	Echoes          uint64 // reductions of cwnd because the peer echoed a congestion mark
}

// commonStats are those of the Stats that are not rare; most associations have no others.
type commonStats struct {
	Chunks, Octets, Retransmits uint64
	retransmittedOctets         uint64 // of user data, of those in Octets
	rareCounters                *Stats // nil until there are any
}

// rare returns the Stats that are not among the usual ones.
func (u *commonStats) rare() *Stats {
	if u.rareCounters == nil {
		u.rareCounters = new(Stats)
	}
	return u.rareCounters
}

// toStats is the Stats.
func (u *commonStats) toStats() (all Stats) {
	if u.rareCounters != nil {
		all = *u.rareCounters
	}
	all.Chunks, all.Octets, all.Retransmits = u.Chunks, u.Octets, u.Retransmits
	return all
}

// newChunkCount is how many chunks were sent, each counted once.
func (u *commonStats) newChunkCount() uint64 { return u.Chunks - u.Retransmits }
