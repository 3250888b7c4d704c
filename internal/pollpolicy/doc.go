// Package pollpolicy decides how the reader of a link goes on when nothing is there.
//
//   - In: when packets came and how many, how long waits and wake-ups took, how many goroutines the
//     packets woke.
//   - Out: whether to look again, yield, cede, block or park; how many packets to ask for; whether
//     to wait for a train's next packet, keep the thread, or lend the link to a goroutine that
//     waits.
//   - Invariant: one load leads to one state, wherever it began. No reader spins while a quota of
//     processor time is used up.
//   - Read first: policy.go (the table below), read.go. docs/dev/polling.md has the costs.
//
// # States
//
// All of that follows from one state, which is a judgement of what has arrived.
//
//	state       packets come                         the reader, when nothing is there
//	Idle        alone, and later than patience       parks; now and then yields once before, to measure the work
//	PingPong    alone, and soon                      yields and looks again until patience is over; cedes and sleeps as yieldPolicy says; then parks
//	Concurrent  in numbers, and wake goroutines      if most waits were short cedes and looks again until patience is over, but yields first if few are awake; else yields once; then parks
//	Bulk        in numbers, and wake few goroutines  waits for the rest of a train, blocks in the kernel if most waits were short, then parks; keeps its thread
//
//	from          to          when
//	any           Idle        shortBatchesNeeded batches in a row were of few short packets, and most recent waits were long
//	any           PingPong    the same, and most recent waits were short
//	any but Bulk  Concurrent  a batch was longer
//	any           Bulk        a batch was longer, and calmBatchesNeeded more batches than usual woke no goroutine
//	Bulk          Concurrent  a batch was longer, and that calm is used up
package pollpolicy
