package sctp

import "github.com/rddp-go/rddp/rawio"

// timerWheel has the deadlines that are near, by the slot of time that they lie in, unsorted
// (Varghese and Lauck, 1987). The heap has the others.
//
// DATA is usually acknowledged within milliseconds. Then its deadline, a hundredth of a second
// ahead, has become the one of the next HEARTBEAT again. With many associations the heap is in no
// cache. Each deadline would go from its bottom to its top and back for nothing. Here a deadline is
// an entry at the end of a list, and dropped when its slot begins. A deadline that has not moved by
// then goes to the heap, which knows the order.
//
// The timer has to go off for each slot that is not empty. When many deadlines come that costs
// nothing, and the wheel takes what is two seconds ahead, as T3 is. When few do, such as HEARTBEATs
// of idle associations, far deadlines are better in the heap. The heap is looked through when a
// goroutine is awake anyway.
type timerWheel struct {
	slots        *[wheelSlots][]wheelEntry // nil until the first deadline: most Transports have few
	nextSlot     int64                     // the slot that is taken next, counted since time 0
	numDeadlines int                       // deadlines
	isBusy       bool                      // many come
	arrivals     int64                     // since that was judged
	judgedSlot   int64                     // the slot in which it was
	spareList    []wheelEntry              // the list of a slot that was taken, for the next one
}

// wheelEntry is a deadline. It has been overtaken if it is no more what its Conn waits for.
type wheelEntry struct {
	dueAt rawio.Time
	c     *Conn
}

const (
	wheelSlotNanos = 1 << 23 // nanoseconds: more than most answers take, less than deadlines are ahead
	wheelSlots     = 256
	wheelNearSlots = 64 // slots, where few come
	busyPerSlot    = 32 // in each slot of time, where many do
)

func slotOf(due rawio.Time) int64 { return int64(due) / wheelSlotNanos }

// tryPut takes a deadline in, and says when its slot begins, or that it is too near or too far.
func (w *timerWheel) tryPut(now func() rawio.Time, c *Conn, due rawio.Time) (begins rawio.Time, ok bool) {
	if w.numDeadlines == 0 {
		w.nextSlot = slotOf(now()) + 1
	}
	k, reach := slotOf(due), int64(wheelNearSlots)
	if w.isBusy {
		reach = wheelSlots
	}
	if k < w.nextSlot || k >= w.nextSlot+reach {
		return 0, false
	}
	if w.slots == nil {
		w.slots = new([wheelSlots][]wheelEntry)
	}
	l := &w.slots[k%wheelSlots]
	if *l == nil {
		*l, w.spareList = w.spareList, nil
	}
	*l = append(*l, wheelEntry{due, c})
	w.numDeadlines++
	return rawio.Time(k * wheelSlotNanos), true
}

// updateBusy judges now and then how many deadlines have come. HEARTBEATs come a hundred at once,
// and then for a while none.
func (w *timerWheel) updateBusy(now rawio.Time) {
	if slots := slotOf(now) - w.judgedSlot; slots >= wheelNearSlots {
		w.isBusy = w.arrivals >= busyPerSlot*slots
		w.arrivals, w.judgedSlot = 0, slotOf(now)
	}
}

// takeSlot returns what is in the next slot that has begun, nil if there is none.
func (w *timerWheel) takeSlot(now rawio.Time) []wheelEntry {
	for w.numDeadlines > 0 && w.nextSlot <= slotOf(now) {
		l := &w.slots[w.nextSlot%wheelSlots]
		w.nextSlot++ // it takes no more
		if list := *l; len(list) > 0 {
			*l = nil
			w.numDeadlines -= len(list)
			return list
		}
	}
	return nil
}

// recycleList gives the list back.
func (w *timerWheel) recycleList(list []wheelEntry) {
	clear(list)
	w.spareList = list[:0]
}

// nextSlotAt returns when the next slot that has any begins, Never if there is none.
func (w *timerWheel) nextSlotAt() rawio.Time {
	if w.numDeadlines == 0 {
		return rawio.Never
	}
	k := w.nextSlot
	for len(w.slots[k%wheelSlots]) == 0 {
		k++
	}
	return rawio.Time(k * wheelSlotNanos)
}
