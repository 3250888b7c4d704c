package endpoint

// Stats counts what an endpoint does with packets that belong to no association.
type Stats struct {
	// Dropped without an answer.
	Malformed   uint64 // packets shorter than a common header, without a chunk, or port 0
	BadChecksum uint64 // packets with a wrong CRC32c (section 6.8)
	// Packets taken with checksum zero, as the link detects errors (RFC 9653). They have an
	// association.
	ZeroChecksum   uint64
	BadAddress     uint64 // packets from, or to, an address that is not that of one host (section 8.4 rule 1)
	StrayReports   uint64 // ICMP reports about packets of no association
	InitsMalformed uint64 // INITs with an Initiate Tag of 0, or too short (section 3.3.2)
	BadCookies     uint64 // COOKIE ECHOs not signed here, or of another peer (section 5.1.5)
	RateLimited    uint64 // packets whose source gets no more answers for now, see Config.MaxAnswers
	// packets not looked at because more set-ups came, or packets of no association, than
	// Config.MaxSetups
	OverBudget     uint64
	AnswersDropped uint64 // answers that found the queue of packets to send full

	OutOfBlue uint64 // packets out of the blue, for which rules 2 to 8 of section 8.4 have an answer or none
	Reflected uint64 // packets out of the blue answered by ABORT or SHUTDOWN COMPLETE

	InitAcks         uint64 // INITs answered by INIT ACK
	InitsRefused     uint64 // INITs answered by ABORT: nobody listens, or not acceptable
	AddressesIgnored uint64 // addresses of a peer beyond assoc.MaxPaths, in an INIT answered by INIT ACK
	// COOKIE ECHOs answered by ERROR because their life is over, or cut short by many that have
	// ended since
	StaleCookies   uint64
	CookiesRefused uint64 // COOKIE ECHOs answered by ABORT: nobody listens any more, or the tag is in use
	// COOKIE ECHOs answered by ABORT because of Config.MaxAssocs, MaxPerSource, Admits or Accepts
	AssocsRefused  uint64
	AssocsAccepted uint64 // associations made of a COOKIE ECHO
}

// Stats returns the counters.
func (e *Endpoint) Stats() Stats {
	s := e.stats
	s.Malformed += e.malformedPackets.Load()
	s.BadChecksum = e.badChecksums.Load()
	s.ZeroChecksum = e.zeroChecksums.Load()
	s.StrayReports = e.strayReports.Load()
	s.AnswersDropped = e.answers.Dropped()
	return s
}
