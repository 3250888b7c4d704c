package ddpadapt

// sessionQueue is a FIFO of sessions that have something to send. A session is in it at most once.
type sessionQueue struct {
	linkIndex  int // the session's link for this queue
	head, tail *Session
}

type queueLink struct {
	next     *Session
	isQueued bool
}

func (q *sessionQueue) push(s *Session) {
	l := &s.queueLinks[q.linkIndex]
	if l.isQueued {
		return
	}
	*l = queueLink{isQueued: true}
	if q.head == nil {
		q.head = s
	} else {
		q.tail.queueLinks[q.linkIndex].next = s
	}
	q.tail = s
}

func (q *sessionQueue) pop() *Session {
	s := q.head
	if s != nil {
		q.head = s.queueLinks[q.linkIndex].next
		s.queueLinks[q.linkIndex] = queueLink{}
	}
	return s
}

func (q *sessionQueue) has(s *Session) bool { return s.queueLinks[q.linkIndex].isQueued }

func (q *sessionQueue) clear() {
	for q.pop() != nil {
	}
}

// segmentsPerTurn is how many segments a session sends in its turn. Memory behind what was just
// sent is likely to be in a cache. It is not any more after the turns of sixty others.
const segmentsPerTurn = 8

// segmentScheduler says which session sends segments: one after the other, for a turn each. A
// session that had nothing to send need not wait for all others. Every other turn belongs to such
// sessions, if there are any.
type segmentScheduler struct {
	newlyReady   sessionQueue // sessions that had nothing to send
	waiting      sessionQueue // the others that wait
	current      *Session     // in no queue
	segmentsLeft int          // segments of its turn
	passedOthers bool         // others that wait have had none because of it
}

// push queues a session that has something to send.
func (t *segmentScheduler) push(s *Session) {
	if s != t.current && !t.waiting.has(s) {
		t.newlyReady.push(s)
	}
}

// isIdle says that no session has anything to send.
func (t *segmentScheduler) isIdle() bool {
	return t.current == nil && t.newlyReady.head == nil && t.waiting.head == nil
}

// nextSession returns the session whose turn it is, or nil if none has anything to send. The caller
// reports what it sends by chargeTurn.
func (t *segmentScheduler) nextSession() *Session {
	if t.current != nil {
		return t.current
	}
	wait := t.waiting.head != nil
	if !wait || !t.passedOthers {
		t.current = t.newlyReady.pop()
	}
	if t.passedOthers = wait && t.current != nil; t.current == nil {
		t.current = t.waiting.pop()
	}
	t.segmentsLeft = segmentsPerTurn
	return t.current
}

// chargeTurn takes that the session has sent n segments of its turn, and whether it has more.
func (t *segmentScheduler) chargeTurn(n int, more bool) {
	if t.segmentsLeft -= n; more && t.segmentsLeft > 0 {
		return
	}
	s := t.current
	if t.current = nil; more {
		t.waiting.push(s)
	}
}

// endTurn takes that the session sends nothing now.
func (t *segmentScheduler) endTurn() { t.current = nil }

func (t *segmentScheduler) clear() {
	t.newlyReady.clear()
	t.waiting.clear()
	t.current = nil
}
