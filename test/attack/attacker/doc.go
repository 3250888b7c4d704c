// Package attacker is an SCTP peer that knows the protocol and breaks it. Above SCTP it does the
// same with DDP sessions and RDMA messages (RFC 5043, 5041, 5040, 7306).
//
//   - In: what it does is drawn from [Choices], which a seed or a fuzzer's octets make. [Peer.Take]
//     shows it a packet of the victim's.
//   - Out: [Peer.Packet] is the next that it sends.
//   - Invariant: it is sans-IO and deterministic.
//   - Read first: peer.go, then one of the moves: setup.go, data.go, sack.go, control.go,
//     extension.go, rdma.go.
//
// It sets associations up, and knows tags, TSNs and cookies. It signs cookies that others return,
// reneges, reorders, restarts, starves, and lies in every field. A packet is chunks, each made by a
// move; malform.go spoils lengths and octets of what the moves made. It serves the fuzz targets,
// worlds in virtual time, and real links: fuzz/aim points it at any implementation.
package attacker
