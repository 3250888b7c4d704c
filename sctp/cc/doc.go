// Package cc holds the congestion controllers of SCTP (RFC 9260 section 7), one instance for each
// destination address, behind one interface.
//
// All sizes are octets of DATA chunks with chunk header and padding (section 7.2). A controller
// keeps cwnd, ssthresh and what else it needs; flight size, timers and Fast Recovery belong to the
// sender and come in as arguments.
//
// CUBIC, the default, and NewReno take each loss for congestion. BBR (bbr.go and its neighbours:
// the controller, the model of the path, the states) is told of delivery rates besides (Modeler)
// and keeps to what the path delivers.
package cc
