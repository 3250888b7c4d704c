// Package cc holds the congestion controllers of SCTP (RFC 9260 section 7), one instance for each
// destination address, behind one interface.
//
// All sizes are octets of DATA chunks with chunk header and padding (section 7.2). A controller
// keeps cwnd, ssthresh and what else it needs. Flight size, timers and Fast Recovery belong to the
// sender and come in as arguments.
//
// CUBIC, the default, and NewReno take each loss for congestion. BBR also gets delivery rates
// (Modeler), and keeps to what the path delivers. Its files are bbr.go (the controller),
// bbr_model.go (the model of the path) and bbr_state.go (the states).
package cc
