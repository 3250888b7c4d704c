// Package rdmapeer is a peer that breaks every rule of RDMA, and the proof that it gets nowhere.
//
//   - In: rows of tables. Each is one attack of RFC 5042 sections 6 and 7, or one message that
//     breaks RFC 5040, 5041, 5043, 6581 or 7306.
//   - Out: what came of it, compared with what the RFCs say.
//   - Read first: attack_lab.go, tagged_test.go.
//
// The peer is made of the codecs of ddp and rdmap and of octets by hand. Of the stack it uses only
// SCTP messages, to be carried. Its victim is a program on package rdma.
//
// # After each attack
//
//   - The victim's memory is compared octet by octet with what it must hold.
//   - Nothing of what was never exposed is found in what the victim sent.
//   - The Terminate that came back has the layer, type, code and headers that the RFCs say. Or the
//     session ended without one, where RFC 5043 says so.
//   - The requests of the victim's program completed as they must, and no others did.
//   - Two other queue pairs of the program go on exchanging messages that are checked. One is on
//     the same association, one on another.
//   - Neither goroutines nor memory have grown.
package rdmapeer
