// Package random lets whole worlds of hosts live in virtual time, under every fault that a network,
// a peer or a machine is capable of.
//
//   - In: a [Schedule]: hosts, associations, and a list of acts with their times. Acts are what the
//     users do, and what goes wrong. [Draw] makes one from a seed.
//   - Out: a violation, if one of the invariants was broken after an event ([Schedule.Run]).
//   - Invariant: two runs of one schedule are the same run, packet for packet.
//   - Read first: schedule.go, invariants.go (what must hold), faults.go (what goes wrong).
//
// What is random within an act follows from the act itself. So taking one act away leaves the
// others as they are. That is how [Shrink] makes a short schedule of a long one that fails. It
// prints the short one as a Go test.
//
// Plain SCTP associations are judged in message_assoc.go, by what their two users know and nothing
// else. RDMA is the business of internal/test/simulation.
package random
