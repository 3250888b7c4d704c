// Package endpoint is the part of SCTP below the associations (RFC 9260 sections 5 and 8.4).
//
//   - In: [Endpoint.Lookup] takes a packet and finds its association. [Endpoint.HandleUnmatched]
//     takes one that has none. [Endpoint.Connect] begins a new association.
//   - Out: associations, and answers to INITs and to packets out of the blue, by
//     [Endpoint.PollTransmit].
//   - Invariant: an INIT leaves no state here. Only a cookie that this host has signed makes an
//     association. What strangers cause is limited by quotas.
//   - Read first: receive.go, then assoc.Jar. Package assoc says how to use both.
//
// It does no I/O, takes no lock, and starts no goroutine.
package endpoint
