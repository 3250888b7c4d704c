// Package simnet is a network in virtual time, for tests that must run the same way every time.
//
//   - In: [Net.Send] takes a packet at a given time.
//   - Out: [Net.NextArrival] says when something arrives next, [Net.Deliver] hands out what has
//     arrived.
//   - Invariant: the same seed and the same calls give the same packets at the same times, and
//     [Net.Hash] proves it. Nothing here reads a clock or draws from a global random source.
//   - Read first: net.go, link.go.
//
// # Links
//
// Hosts are addresses. [Net.SetLink] creates a route from one address to another. It has one
// direction, its own [Params], and may be changed at any virtual time. A packet meets, in this
// order: the partition, the MTU, the transmit queue, the transmission rate, ECN marking, burst
// loss, random loss, corruption, delay with jitter, reordering, duplication. Jitter alone never
// reorders packets.
//
// Lengths, rates and queues count IP-level octets, headers included, as on a real wire.
package simnet
