package sctp

import "time"

// Hold is how long the lock of an association was held without a pause, while all others wait. The
// holder handles its packets, its timer, or a call of the program. The two are the longest each, of
// different holds perhaps.
type Hold struct {
	Steps uint64        // of work whose time varies by packet: assoc.Assoc.Steps, and those of the Upper
	Time  time.Duration // of a processor
}
