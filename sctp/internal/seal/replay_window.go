package seal

import "math/bits"

const (
	// MaxReplayWindow is the widest replay window in records. Within it the 16 bits of a sequence
	// number tell an old record from a new one.
	MaxReplayWindow = 1 << 15
	// minReplayWindow is what a window begins with.
	minReplayWindow = 128
)

// replayWindow knows which numbers were received. It is a ring of bits that spans from the lowest
// number that is missing to the highest that was received, so on an orderly path it stays small.
// Only numbers of records that have opened are added: nobody else can move it.
type replayWindow struct {
	floor uint64   // lower numbers were received, or are too old
	next  uint64   // one more than the highest number received
	ring  []uint64 // a power of two of them; number n is bit n mod 64 of word n / 64 mod len
	most  int      // numbers that it grows to
}

// newReplayWindow returns a window that grows to most numbers, taken as a power of two.
func newReplayWindow(most int) replayWindow {
	most = min(max(most, minReplayWindow), MaxReplayWindow)
	return replayWindow{most: 1 << bits.Len(uint(most-1)), ring: make([]uint64, minReplayWindow/64)}
}

func (w *replayWindow) span() uint64 { return uint64(len(w.ring)) * 64 }

func (w *replayWindow) wordOf(n uint64) *uint64 { return &w.ring[n/64&uint64(len(w.ring)-1)] }

// isNew reports whether a number was not yet received, and is not too old either.
func (w *replayWindow) isNew(n uint64) bool {
	return n >= w.next || n >= w.floor && *w.wordOf(n)>>(n&63)&1 == 0
}

// add adds a number that is new.
func (w *replayWindow) add(n uint64) {
	if n >= w.next {
		w.makeRoom(n)
		w.next = n + 1
	}
	*w.wordOf(n) |= 1 << (n & 63)
}

// makeRoom makes the ring span number n: numbers that were all received leave it at the lower end,
// then it grows, and at last the oldest leave it.
func (w *replayWindow) makeRoom(n uint64) {
	if n-w.floor < w.span() {
		return
	}
	w.dropReceived()
	if need := n - w.floor + 1; need > w.span() && w.span() < uint64(w.most) {
		w.resize(1 << bits.Len64(min(need, uint64(w.most))-1))
	}
	if n-w.floor >= w.span() {
		w.raiseFloor(n - w.span() + 1)
	}
}

// dropReceived raises the floor to the lowest number that is missing.
func (w *replayWindow) dropReceived() {
	at := w.floor
	for at < w.next {
		run := bits.TrailingZeros64(^(*w.wordOf(at) >> (at & 63)))
		at += uint64(run)
		if at&63 != 0 || run == 0 {
			break
		}
	}
	w.raiseFloor(min(at, w.next))
}

// raiseFloor raises the floor, and clears the bits below it for the numbers that use them next.
func (w *replayWindow) raiseFloor(to uint64) {
	if to-w.floor >= w.span() {
		clear(w.ring)
		w.floor = to
		return
	}
	for w.floor < to {
		run := min(64-w.floor&63, to-w.floor)
		*w.wordOf(w.floor) &^= (1<<run - 1) << (w.floor & 63)
		w.floor += run
	}
}

// resize makes the ring span that many numbers, from the floor on. The first and the last word may
// have been one.
func (w *replayWindow) resize(span int) {
	old := *w
	w.ring = make([]uint64, span/64)
	for n := w.floor &^ 63; n < w.next; n += 64 {
		word := *old.wordOf(n)
		if n < w.floor {
			word &^= 1<<(w.floor-n) - 1
		}
		if w.next-n < 64 {
			word &= 1<<(w.next-n) - 1
		}
		*w.wordOf(n) = word
	}
}

// compact drops what is missing, and the memory for it.
func (w *replayWindow) compact() {
	w.raiseFloor(w.next)
	if len(w.ring) > minReplayWindow/64 {
		w.ring = make([]uint64, minReplayWindow/64)
	}
}
