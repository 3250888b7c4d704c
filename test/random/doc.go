// Package random lets whole worlds of hosts live in virtual time under every fault that a network,
// a peer or a machine is capable of, and checks after each event that nothing was broken that must
// not be.
//
// A [Schedule] is such a world written down: hosts, associations, and a list of acts, which are
// what the users do and what goes wrong, each with its time. [Draw] makes one from a seed,
// [Schedule.Run] plays it; two runs of one schedule are the same run, packet for packet. Whatever
// is random within an act follows from the act itself, so that taking one away leaves the others as
// they are: that is how [Shrink] makes a long schedule that fails a short one, which it prints as a
// Go test.
//
// Plain SCTP associations are judged in talk.go, by what their two users know and nothing else;
// RDMA is the business of internal/test/simulation. What must hold after each event is in
// invariants.go, the faults are in faults.go.
package random
