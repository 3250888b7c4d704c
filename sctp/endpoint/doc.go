// Package endpoint is the part of SCTP below the associations (RFC 9260 sections 5 and 8.4). It
// finds the association of a packet, answers INITs without keeping state, and makes associations
// from returning cookies. It also answers packets out of the blue. Like package assoc, whose
// comment says how to use both, it does no I/O and takes no lock.
package endpoint
