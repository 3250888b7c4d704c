package tx

import "github.com/rddp-go/rddp/rawio"

// Expire drops the messages whose life has ended before a part of them was sent. It returns them in
// the order they were queued in, under a scheduler stream by stream (RFC 9260 section 11.1.5). TSNs
// and SSNs are assigned on transmission, so that nothing is missing on the wire. Call it before
// Poll: Poll itself does not look at the time.
func (s *Sender) Expire(now rawio.Time) []FailedMessage {
	if now.Before(s.queue.earliestExpiryAt) {
		return nil
	}
	list := s.queue.dropExpired(now)
	for _, f := range list {
		s.partial().count(f)
	}
	return list
}

// dropExpired is Expire for when there may be one.
func (q *sendQueue) dropExpired(now rawio.Time) (list []FailedMessage) {
	q.earliestExpiryAt = rawio.Never
	return q.dropWhere(func(m *Message) bool { return q.hasExpired(now, m) })
}

// hasExpired says whether the life of m has ended. Else it has Expire called in time.
func (q *sendQueue) hasExpired(now rawio.Time, m *Message) bool {
	switch {
	case m.Expires == 0:
		return false
	case now.Before(m.Expires):
		q.earliestExpiryAt = min(q.earliestExpiryAt, m.Expires)
		return false
	}
	return true
}

// dropWhere drops the messages of which nothing was sent and that are to be dropped. It returns
// those of a stream in the order they were queued in.
func (q *sendQueue) dropWhere(isDropped func(*Message) bool) (list []FailedMessage) {
	drop := func(m *Message) bool {
		if !isDropped(m) {
			return false
		}
		list = append(list, FailedMessage{Stream: m.Stream, Token: m.Token, Policy: m.Policy})
		q.release(m.Stream, m.Len())
		return true
	}
	if l := &q.current; l.loaded && l.fromQueue && l.offset == 0 && drop(&l.msg) {
		stream := l.msg.Stream
		if *l = (currentMessage{}); q.streams != nil {
			q.streams.deactivateIfEmpty(stream)
		}
	}
	q.waitingOctets -= q.waiting.removeWhere(drop)
	if q.streams != nil {
		q.waitingOctets -= q.removeFromStreams(drop)
	}
	for _, h := range q.holds() {
		q.waitingOctets -= h.waiting.removeWhere(drop)
	}
	return list
}
