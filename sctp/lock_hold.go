package sctp

import "time"

// Hold is how long the gate of an association was held without a pause: by who handles its packets,
// its timer, or a call of the program, while all others wait. The two are the longest each, of
// different holds perhaps.
type Hold struct {
	Steps uint64        // of work that does not take the same time for each packet: assoc.Assoc.Steps, and those of the Upper
	Time  time.Duration // of a processor
}
