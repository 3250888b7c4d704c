package sctp

import (
	"math/bits"
	"unsafe"
)

// looseMessages holds the messages between WriteMsg and their end that end in whatever order: all
// under a scheduler, and those that may be abandoned. Each has memory of its own, which serves
// another of about its length afterwards.
type looseMessages struct {
	slots       []looseMessage
	freeSlots   [maxLooseClass + 1]int32 // 1 + the first free slot with memory of a class; 0: none
	usedOctets  int                      // of messages
	ownedOctets int                      // of memory, for these and for those that come
	wasUsed     bool                     // since the last trim
	byStream    bool                     // a scheduler chooses among the streams
}

// looseMessage is a message, or a place for one.
type looseMessage struct {
	bufferedMessage
	memory   []byte
	nextFree int32 // as in freeSlots
}

// Memory comes in powers of two, from 1 << minLooseClass octets to 1 << maxLooseClass. Longer
// messages have as much as they need. Class 0 is no memory at all.
const (
	minLooseClass = 6
	maxLooseClass = 16
)

// looseToken is a bit of the tokens of loose messages. The others are the number of the slot.
const looseToken = 1 << 63

// freeLooseOctets is how many octets of memory are kept for messages to come, beside as many as
// messages have.
const freeLooseOctets = 64 << 10

// looseClassOf returns the class of the memory for so many octets, 0 for more than they have.
func looseClassOf(octets int) int {
	if class := max(bits.Len(uint(octets-1)), minLooseClass); class <= maxLooseClass {
		return class
	}
	return 0
}

// putMessage copies a message. It returns what it has of it, until the next call, and the token
// that frees it.
func (l *looseMessages) putMessage(msg []byte, info *SendInfo) (w *bufferedMessage, token uint64) {
	class := looseClassOf(len(msg))
	at := l.takeSlot(class)
	s := &l.slots[at]
	if cap(s.memory) < len(msg) {
		s.memory = make([]byte, 0, max(len(msg), 1<<class))
		l.ownedOctets += cap(s.memory)
	}
	s.memory = append(s.memory[:0], msg...)
	s.info, s.body[0] = *info, s.memory
	l.usedOctets += len(msg)
	l.wasUsed = true
	return &s.bufferedMessage, looseToken | uint64(at)
}

// takeSlot takes a free slot, one with memory of the class if there is any.
func (l *looseMessages) takeSlot(class int) (at int) {
	for _, c := range [...]int{class, 0} {
		if first := l.freeSlots[c]; first > 0 {
			s := &l.slots[first-1]
			l.freeSlots[c], s.nextFree = s.nextFree, 0
			return int(first - 1)
		}
	}
	l.slots = append(l.slots, looseMessage{})
	return len(l.slots) - 1
}

// get returns a message that is not freed yet.
func (l *looseMessages) get(token uint64) *bufferedMessage {
	return &l.slots[token&^looseToken].bufferedMessage
}

// freeMessage releases a message.
func (l *looseMessages) freeMessage(token uint64) {
	at := int32(token &^ looseToken)
	s := &l.slots[at]
	l.usedOctets -= s.len()
	s.bufferedMessage = bufferedMessage{}
	class := looseClassOf(cap(s.memory))
	if class == 0 {
		l.ownedOctets -= cap(s.memory)
		s.memory = nil
	}
	l.freeSlots[class], s.nextFree = at+1, l.freeSlots[class]
	if l.ownedOctets > 2*l.usedOctets+freeLooseOctets {
		l.dropFreeMemory()
	}
}

// dropFreeMemory gives back what serves no message.
func (l *looseMessages) dropFreeMemory() {
	for class := minLooseClass; class <= maxLooseClass; class++ {
		for l.freeSlots[class] > 0 {
			at := l.freeSlots[class]
			s := &l.slots[at-1]
			l.ownedOctets -= cap(s.memory)
			l.freeSlots[class], l.freeSlots[0], s.nextFree, s.memory = s.nextFree, at, l.freeSlots[0], nil
		}
	}
}

// hasMemoryFor says whether there is memory for another message that need not be made first.
func (l *looseMessages) hasMemoryFor(octets int) bool { return l.freeSlots[looseClassOf(octets)] > 0 }

// heldOctets returns the octets of memory that it keeps.
func (l *looseMessages) heldOctets() int {
	if l == nil {
		return 0
	}
	return l.ownedOctets + cap(l.slots)*int(unsafe.Sizeof(looseMessage{})) + int(unsafe.Sizeof(*l))
}

// trimIdle gives everything back if there is no message and none was written since the last call.
func (l *looseMessages) trimIdle() {
	if l == nil {
		return
	}
	if !l.wasUsed && l.usedOctets == 0 {
		*l = looseMessages{byStream: l.byStream}
	}
	l.wasUsed = false
}
