package tx

// Messages of the association's own, such as those that replace its keys, do not wait behind what
// the program has queued. A message that has begun is finished first, as its chunks have to follow
// one another (RFC 9260 section 6.9). With I-DATA there are none of them.

// EnqueueOwn is Enqueue for a message of the association's own. It goes before all that has not
// begun, and behind others of its kind. There are few: they do not wait for room in the send
// buffer.
func (s *Sender) EnqueueOwn(m *Message) {
	y, q, n := s.perStream(), &s.queue, m.Len()
	q.bufferedOctets += n
	q.waitingOctets += n
	if y.amounts != nil {
		y.amounts.add(m.Stream, n)
	}
	y.own.push(m)
	y.hadOwn = true
	if l := &q.current; l.loaded && l.fromQueue && !l.isOwn && l.offset == 0 {
		q.parkCurrent()
	}
	s.burst.enqueuedSinceSack = true
}

// mostOwn is the most octets of the association's own messages that may be outstanding. They wait
// for no room in the send buffer.
const mostOwn = 64 << 10

// numOwn is how many messages of the association's own wait.
func (q *sendQueue) numOwn() int {
	if q.streams == nil {
		return 0
	}
	return q.streams.own.length
}

// pickOwn begins with the first of them.
func (q *sendQueue) pickOwn() bool {
	q.streams.own.pop(&q.current.msg)
	q.waitingOctets -= q.current.msg.Len()
	q.current.beginMessage(true)
	q.current.isOwn = true
	return true
}
