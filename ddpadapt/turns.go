package ddpadapt

// queue is a FIFO of sessions that have something to send; a session is in it once at most.
type queue struct {
	which      int // the session's link for this queue
	head, tail *Session
}

type link struct {
	next *Session
	on   bool
}

func (q *queue) push(s *Session) {
	l := &s.links[q.which]
	if l.on {
		return
	}
	*l = link{on: true}
	if q.head == nil {
		q.head = s
	} else {
		q.tail.links[q.which].next = s
	}
	q.tail = s
}

func (q *queue) pop() *Session {
	s := q.head
	if s != nil {
		q.head = s.links[q.which].next
		s.links[q.which] = link{}
	}
	return s
}

func (q *queue) has(s *Session) bool { return s.links[q.which].on }

func (q *queue) clear() {
	for q.pop() != nil {
	}
}

// turnSegments is how many segments a session sends in its turn: what follows in memory on what has just been sent is likely to be in the processor's caches, and
// is not any more when sixty others have had a turn in between.
const turnSegments = 8

// turns says which session sends segments: one after the other, for a turn each. One that had nothing to send does not wait until all others have had theirs:
// every other turn belongs to such, if there are any.
type turns struct {
	fresh queue    // sessions that had nothing to send
	ready queue    // the others that wait
	whose *Session // in no queue
	left  int      // segments of its turn
	extra bool     // others that wait have had none because of it
}

// push queues a session that has something to send.
func (t *turns) push(s *Session) {
	if s != t.whose && !t.ready.has(s) {
		t.fresh.push(s)
	}
}

// idle says that no session has anything to send.
func (t *turns) idle() bool { return t.whose == nil && t.fresh.head == nil && t.ready.head == nil }

// next returns the session whose turn it is, nil if none has anything to send. What it sends is told by spent.
func (t *turns) next() *Session {
	if t.whose != nil {
		return t.whose
	}
	wait := t.ready.head != nil
	if !wait || !t.extra {
		t.whose = t.fresh.pop()
	}
	if t.extra = wait && t.whose != nil; t.whose == nil {
		t.whose = t.ready.pop()
	}
	t.left = turnSegments
	return t.whose
}

// spent takes that the session has sent n segments of its turn, and whether it has more.
func (t *turns) spent(n int, more bool) {
	if t.left -= n; more && t.left > 0 {
		return
	}
	s := t.whose
	if t.whose = nil; more {
		t.ready.push(s)
	}
}

// over takes that the session sends nothing now.
func (t *turns) over() { t.whose = nil }

func (t *turns) clear() {
	t.fresh.clear()
	t.ready.clear()
	t.whose = nil
}
