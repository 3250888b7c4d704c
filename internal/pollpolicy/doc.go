// Package pollpolicy decides how the reader of a link goes on when nothing is there. It also
// decides how many packets to ask for, and whether to wait for a train's next packet. The reader
// may keep its thread, or lend the link to a goroutine that waits.
//
// All of that follows from one state, which is a judgement of what has arrived:
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
//
// The costs behind it. A batch makes goroutines ready, which go on at once on this thread if the
// reader gives way. It gives way by yielding, which costs less than a microsecond. Or it parks in
// the runtime's poller, which costs some system calls, and a wake-up of the thread when a packet
// comes. If the reader blocks in the kernel instead, another thread has to be woken for that
// goroutine at once. A wake-up of a thread takes 5 to 50 microseconds by machine; WakeCost is the
// measured value.
//
// Two ends that answer each other and sleep in between need two wake-ups if the reader answers
// itself. They need four if each hands the message to another goroutine. Both ends do their work
// when the reader gives way; the work here is measured. So patience is six wake-ups and twice the
// work. A reader that looks that long for an expected packet finds it, and from then on no end
// needs a wake-up. That costs no more processor time than the work once more, and six wake-ups.
//
// Where packets come in numbers, the woken goroutines need the processors meanwhile. So do those of
// a peer on this host. A reader that looks there cedes the processor each time. Otherwise one
// message in a hundred waits for a slice of the scheduler's. Ceding also lets another thread of
// this process go, which the runtime has woken and which finds nothing to do. So a few goroutines,
// which are soon done, have their turn before. Where woken goroutines may answer, they go on before
// the reader looks again. Their answer would wait for that look, which finds nothing yet, unless
// packets that come alone follow each other (lookPredictor).
//
// Waiting for a train's next packet spares a wake-up and an acknowledgement. It may cost a quarter
// of a wake-up. So the reader waits where the packet usually comes. It does not where batches wake
// goroutines, which would wait as long. An acknowledgement may wait until the goroutines that a
// batch has woken have had their turn. It then goes with their answer; so it waits where there
// usually is one. Both are tried now and then elsewhere (predictor).
//
// A goroutine that waits for what a packet brings may read the link meanwhile; then no other
// goroutine has to wake it (LendLimit). In states Idle and PingPong it must be back within the
// patience. In state Concurrent it must be back within half a wake-up. Also, one goroutine must
// take all that comes, and nothing may be sent back. Where several take, or answer, another should
// handle the packets that come while they do.
//
// Where ceding has given a processor to a thread that computes, a reader in state Concurrent parks
// for a while. One in state PingPong does as well if that is the only processor. A reader that
// sleeps gets a processor at once when a packet comes; one that looks has used up its share
// (yieldPolicy).
//
// Whether waits are short is known from when packets come, not from whether the reader has looked.
// So one load leads to one state, wherever it began. No reader looks for packets while a quota of
// processor time is used up (quotaGuard).
package pollpolicy
