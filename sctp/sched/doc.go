// Package sched has the stream schedulers of RFC 8260 section 3: which stream sends its next chunk.
//
//   - In: streams that have something to send, what was sent of each, and a value for each stream.
//   - Out: the stream whose chunk goes next.
//   - Invariant: the same calls lead to the same choices. Only streams that have something to send
//     are chosen, and each of equal rank is in its turn.
//   - Read first: Scheduler, then RoundRobin, the shortest.
package sched
