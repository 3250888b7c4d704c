// Package pollpolicy decides how the reader of a link goes on: what it does when nothing is there,
// how many packets it asks for, whether it waits for a train's next packet, keeps its thread, and
// lends the link to a goroutine that waits.
//
// All of that follows from one judgement of what has arrived, which is a state:
//
//	state   packets come                          the reader, when nothing is there
//	Quiet   alone, and later than patience        parks; now and then yields once before, to measure the work
//	Single  alone, and soon                       yields and looks again until patience is over, cedes once where the packet is later than usual, at once where that brings it, and sleeps there after a while (cession), then parks
//	Many    in numbers, and wake goroutines       cedes and looks again until patience is over where most waits were short, but yields first if few are awake; else yields once; then parks
//	Bulk    in numbers, and wake few goroutines   waits for the rest of a train, blocks in the kernel where most waits were short, then parks; keeps its thread
//
//	from          to      when
//	any           Quiet   loneBatches in a row were of few short packets, and most waits of late were long
//	any           Single  the same, and most waits of late were short
//	any but Bulk  Many    a batch was longer
//	any           Bulk    a batch was longer, and calmEnough more batches than usual did not wake anybody
//	Bulk          Many    a batch was longer, and that calm is used up
//
// The costs behind it. A goroutine that what has come makes ready goes on at once on this thread if
// the reader gives way to it: by yielding, which costs less than a microsecond, or by parking in
// the runtime's poller, which costs some system calls and a wake-up of the thread when a packet
// comes. If the reader blocks in the kernel instead, another thread has to be woken for that
// goroutine, which costs a wake-up at once. A wake-up of a thread takes 5 to 50 microseconds by
// machine; what it takes here is measured (Wake). Two ends that answer each other and sleep in
// between need two wake-ups for it where the reader answers itself, four where each hands the
// message to another goroutine; and both do their work, of which that here is measured, when the
// reader gives way: that is patience, six wake-ups and twice the work. Who looks that long for a
// packet that is expected finds it, and the ends need no wake-up from then on. It costs no more
// than as much processor time again as the work takes, and six wake-ups. Where packets come in
// numbers, the goroutines that they wake, and the peer's on the same host, want the processors
// meanwhile: who looks there cedes the processor each time, without which one message in a hundred
// waits for a slice of the scheduler's. That lets another thread of this process go too, which the
// runtime has woken and which finds nothing to do; so few goroutines, who are soon done, have their
// turn before. Where they may answer, those that packets have woken go on before the reader looks
// again at all: their answer would wait for that look, which finds nothing yet, unless packets that
// come alone follow each other (bet). Waiting for the next packet of a train spares a wake-up and
// an acknowledgement; it may cost a quarter of a wake-up, so it is done where the packet mostly
// comes, and not where batches wake goroutines, which would wait as long. An acknowledgement that
// waits until those that the batch has woken have had their turn goes with their answer, if there
// is one; so it waits where there mostly is. Both are tried now and then elsewhere (bet).
//
// A goroutine that waits for what a packet brings may read the link meanwhile, and is then woken by
// nobody (Lends): in states Quiet and Single one that is back within the patience; in state Many
// only where one goroutine takes all that comes and nothing is sent back, and one that is back
// within half a wake-up. Where several take, or answer, they want the packets that come while they
// do so to be handled by another.
//
// Where ceding has given a processor to somebody who computes, a reader in state Many parks there
// for a while, and one in state Single as well if it is the only one: who sleeps gets a processor
// at once when a packet comes, and who looks has used up his share (cession).
//
// Whether waits are short is known from when packets come, not from whether somebody has looked for
// them: so one load leads to one state, wherever it began. And nobody looks for packets while a
// quota of processor time is used up (curb).
package pollpolicy
