// Package attacker is an SCTP peer that knows the protocol and breaks it: it sets associations up,
// knows tags, TSNs and cookies, signs cookies that others return, reneges, reorders, restarts,
// starves, and lies in every field; above SCTP it does the same with DDP sessions and RDMA messages
// (RFC 5043, 5041, 5040, 7306).
//
// It is sans-IO and deterministic: what it does is drawn from [Choices], which a seed or a fuzzer's
// octets make. [Peer.Take] shows it a packet of the victim's; [Peer.Packet] is the next that it
// sends. So it serves the fuzz targets, worlds in virtual time, and real links: ../aim points it at
// any implementation.
//
// A packet is chunks, each made by a move. Moves are grouped by topic, a file each: setup.go,
// data.go, sack.go, control.go, extension.go, rdma.go; malform.go spoils lengths and octets of what
// they made.
package attacker
