// Package tcppeer is a peer of RDMA over TCP that wants to cost its victim more than itself: it
// says half of something, or nothing, or reads nothing, on one connection or on many.
//
//   - In: what the peer does, as a test each.
//   - Out: how long the victim bears it, and what it holds meanwhile, in octets.
//   - Invariant: there is a bound of each kind, and others are served all the while.
//   - Read first: peer_linux_test.go. What such a peer writes into memory is package rdmapeer's;
//     what octets it sends is that of fuzz/rdma.
package tcppeer
