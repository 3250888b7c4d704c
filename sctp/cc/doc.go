// Package cc holds the congestion controllers of SCTP (RFC 9260 section 7), one instance for each
// destination address, behind one interface.
//
//   - In: what was sent, acknowledged, marked and lost, in octets of DATA chunks with chunk header
//     and padding (section 7.2); an [Ack] for each SACK.
//   - Out: cwnd and ssthresh, and a pace from a [Pacer].
//   - Invariant: cwnd is never below one packet. A controller knows no chunk, no timer and no Fast
//     Recovery; these belong to the sender.
//   - Read first: cc.go (the interface), newreno.go, cubic.go. BBR, which also gets delivery rates
//     ([Modeler]), is in bbr.go, bbr_model.go and bbr_state.go.
package cc
