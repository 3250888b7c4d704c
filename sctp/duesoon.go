package sctp

import "github.com/rddp-go/rddp/rawio"

// dueWheel has deadlines that are near, by the slot of time that they lie in and in no order there (Varghese and Lauck, 1987), beside the heap, which has the others.
//
// What is sent is mostly acknowledged within milliseconds, and then its deadline, a hundredth of a second ahead, has become the one of the next HEARTBEAT again. Where there are
// many associations the heap is in no cache, and each of them would go from its bottom to its top and back for nothing. Here it is an entry at the end of a list, and
// dropped when its slot begins. What has not moved by then goes to the heap, which knows the order.
//
// For each slot that has any somebody wakes up. Where many come that is nothing, and it takes what is two seconds ahead, as T3 is; where few do, as HEARTBEATs of associations that
// are idle, what is far is better in the heap, which is looked through when somebody is awake anyway.
type dueWheel struct {
	slots [wheelSlots][]dueSoon
	next  int64     // the slot that is taken next, counted since time 0; those before it are empty
	n     int       // deadlines
	busy  bool      // many come
	come  int64     // since that was judged
	since int64     // the slot in which it was
	spare []dueSoon // the list of a slot that was taken: the next one goes where it was, which is in the processor's caches
}

// dueSoon is a deadline. It has been overtaken if it is no more what its Conn waits for.
type dueSoon struct {
	due rawio.Time
	c   *Conn
}

const (
	wheelSlot  = 1 << 23 // nanoseconds: more than most answers take, less than deadlines are ahead
	wheelSlots = 256
	wheelNear  = 64 // slots, where few come
	wheelBusy  = 32 // in each slot of time, where many do
)

func slotOf(due rawio.Time) int64 { return int64(due) / wheelSlot }

// put takes a deadline in, and says when its slot begins, or that it is too near or too far.
func (w *dueWheel) put(now func() rawio.Time, c *Conn, due rawio.Time) (begins rawio.Time, ok bool) {
	if w.n == 0 {
		w.next = slotOf(now()) + 1
	}
	k, reach := slotOf(due), int64(wheelNear)
	if w.busy {
		reach = wheelSlots
	}
	if k < w.next || k >= w.next+reach {
		return 0, false
	}
	l := &w.slots[k%wheelSlots]
	if *l == nil {
		*l, w.spare = w.spare, nil
	}
	*l = append(*l, dueSoon{due, c})
	w.n++
	return rawio.Time(k * wheelSlot), true
}

// looked judges now and then how many have come: HEARTBEATs come a hundred at once, and then for a while none.
func (w *dueWheel) looked(now rawio.Time) {
	if slots := slotOf(now) - w.since; slots >= wheelNear {
		w.busy = w.come >= wheelBusy*slots
		w.come, w.since = 0, slotOf(now)
	}
}

// take returns what is in the next slot that has begun, nil if there is none.
func (w *dueWheel) take(now rawio.Time) []dueSoon {
	for w.n > 0 && w.next <= slotOf(now) {
		l := &w.slots[w.next%wheelSlots]
		w.next++ // it takes no more
		if list := *l; len(list) > 0 {
			*l = nil
			w.n -= len(list)
			return list
		}
	}
	return nil
}

// done gives the list back.
func (w *dueWheel) done(list []dueSoon) {
	clear(list)
	w.spare = list[:0]
}

// begins returns when the next slot that has any begins, Never if there is none.
func (w *dueWheel) begins() rawio.Time {
	if w.n == 0 {
		return rawio.Never
	}
	k := w.next
	for len(w.slots[k%wheelSlots]) == 0 {
		k++
	}
	return rawio.Time(k * wheelSlot)
}
