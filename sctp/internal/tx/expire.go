package tx

import "github.com/rddp-go/rddp/rawio"

// Expire drops the messages whose life has ended before a part of them was sent. It returns them in
// the order they were queued in (RFC 9260 section 11.1.5). TSNs and SSNs are assigned on
// transmission, so that nothing is missing on the wire. Call it before Poll: Poll itself does not
// look at the time.
func (s *Sender) Expire(now rawio.Time) (list []FailedMessage) {
	if now.Before(s.queue.earliestExpiryAt) {
		return nil
	}
	return s.queue.dropExpired(now)
}

// dropExpired is Expire for when there may be one.
func (q *sendQueue) dropExpired(now rawio.Time) (list []FailedMessage) {
	q.earliestExpiryAt = rawio.Never
	if l := &q.current; l.loaded && l.fromQueue && l.offset == 0 && q.checkExpiry(now, &l.msg) {
		list = append(list, FailedMessage{Stream: l.msg.Stream, Token: l.msg.Token})
		*l = currentMessage{}
	}
	kept := 0
	for i := range q.waiting.length {
		m := q.waiting.at(i)
		if q.checkExpiry(now, m) {
			list = append(list, FailedMessage{Stream: m.Stream, Token: m.Token})
			q.waitingOctets -= m.Len()
			continue
		}
		if kept < i {
			*q.waiting.at(kept) = *m
		}
		kept++
	}
	q.waiting.truncate(kept)
	return list
}

// checkExpiry says whether the life of m has ended, and then frees its room in the send buffer.
// Else it has Expire called in time.
func (q *sendQueue) checkExpiry(now rawio.Time, m *Message) bool {
	switch {
	case m.Expires == 0:
		return false
	case now.Before(m.Expires):
		q.earliestExpiryAt = min(q.earliestExpiryAt, m.Expires)
		return false
	}
	q.bufferedOctets -= m.Len()
	return true
}
