package tx

// Messages of the association's own, such as those that replace its keys, do not wait behind what the
// program has queued. A message that has begun is finished first, as its chunks have to follow one
// another (RFC 9260 section 6.9). With I-DATA there are none of them.

// EnqueueOwn is Enqueue for a message of the association's own. It goes before all that has not
// begun, and behind others of its kind. There are few: they do not wait for room in the send buffer.
func (s *Sender) EnqueueOwn(m *Message) {
	s.queue.addOwn(m)
	s.burst.enqueuedSinceSack = true
}

// addOwn copies a message of the association's own to the end of those.
func (q *sendQueue) addOwn(m *Message) {
	n := m.Len()
	q.bufferedOctets += n
	q.waitingOctets += n
	if q.streams != nil && q.streams.amounts != nil {
		q.streams.amounts.add(m.Stream, n)
	}
	if q.own == nil {
		q.own = new(messageQueue)
	}
	q.own.push(m)
	if l := &q.current; l.loaded && l.fromQueue && !l.isOwn && l.offset == 0 {
		q.putBack()
	}
}

// putBack puts the message in the slot, of which nothing was sent, back in front of the others.
func (q *sendQueue) putBack() {
	if q.streams != nil {
		q.parkCurrent()
		return
	}
	q.waiting.pushFront(&q.current.msg)
	q.waitingOctets += q.current.msg.Len()
	q.current = currentMessage{}
}

// numOwn is how many messages of the association's own wait.
func (q *sendQueue) numOwn() int {
	if q.own == nil {
		return 0
	}
	return q.own.length
}

// pickOwn begins with the first of them.
func (q *sendQueue) pickOwn() bool {
	q.own.pop(&q.current.msg)
	q.waitingOctets -= q.current.msg.Len()
	q.current.beginMessage(true)
	if q.current.isOwn = true; q.own.length == 0 {
		q.own = nil
	}
	return true
}
