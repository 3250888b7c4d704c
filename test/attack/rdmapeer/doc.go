// Package rdmapeer is a peer that breaks every rule, and the proof that it gets nowhere.
//
// The peer is made of the codecs of ddp and rdmap and of octets by hand; of the stack it uses only
// SCTP messages, to be carried. Its victim is a program on package rdma. Each row of the tables is
// one attack of RFC 5042 sections 6 and 7, or one message that breaks RFC 5040, 5041, 5043, 6581 or
// 7306. After each one
//
//   - the victim's memory is compared octet by octet with what it must hold,
//   - nothing of what was never exposed is found in what the victim sent,
//   - the Terminate that came back has the layer, type, code and headers that the RFCs say, or the
//     session ended without one where RFC 5043 says so,
//   - the requests of the victim's program completed as they must, and no others did,
//   - two other queue pairs of the program, one on the same association and one on another, go on
//     exchanging messages that are checked,
//   - neither goroutines nor memory have grown.
package rdmapeer
