package tx

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
)

// A receiver with a narrow window has few packets in flight, so what is withheld seldom catches it.
// Acknowledging data that has not arrived opens its window at once. It would be sent as much as it
// likes, over whatever bottleneck. So what was sent counts against such a window for a round trip,
// acknowledged or not. The peer has proved that round trip by a nonce (Path.provedRTT). An honest
// one does not notice: nothing of it comes back sooner.
//
// That trip may have been measured while there was a queue. So a HEARTBEAT asks anew when it holds
// anything up (Path.NeedsRTTProof).
const (
	// narrowPackets is how many full packets fit a narrow window at most.
	narrowPackets = 16
	// maxExactSpans transmissions are remembered one by one. Of more, those that left within a 64th
	// of the trip are one.
	maxExactSpans = 24
	maxSentSpans  = maxExactSpans + 72
)

// window.sentSpans are what was sent within a trip, in the order of sending: a ring.
type sentSpans struct {
	entries      [maxSentSpans]sentSpan
	head, length int
	octets       int // of user data, of all of them
}

type sentSpan struct {
	beganAt       rawio.Time
	earliestAckAt rawio.Time // nothing of it can have been acknowledged before
	octets        int
}

// hasNarrowWindow reports whether the peer's window is narrow, and nothing shows that the peer is
// near. A near peer has no bottleneck of others in between.
func (s *Sender) hasNarrowWindow(p *Path) bool {
	return s.mayTestPeer(p) && s.outstanding.rwnd+s.outstanding.dataInFlight < narrowPackets*p.pmdcs
}

// mayTestPeer reports whether a peer is tried at all.
func (s *Sender) mayTestPeer(p *Path) bool {
	return s.cfg.Rand != nil && !s.cfg.StrictRFC && p.provedRTT >= nearRTT
}

// outrunsNarrowWindow reports whether size octets more to p are more than the window in one trip.
// It remembers when they are not.
func (s *Sender) outrunsNarrowWindow(now rawio.Time, p *Path, size int) bool {
	l := s.window.sentSpans
	if l == nil || !s.hasNarrowWindow(p) {
		return false
	}
	if l.dropElapsed(now) == 0 || l.octets+size <= s.outstanding.rwnd+s.outstanding.dataInFlight {
		return false
	}
	s.burst.paceAt = l.entries[l.head].earliestAckAt
	p.ackedTooSoon = true
	return true
}

// recordNarrowSend notes that size octets go to p.
func (s *Sender) recordNarrowSend(now rawio.Time, p *Path, size int) {
	if !s.hasNarrowWindow(p) {
		s.window.sentSpans = nil
		return
	}
	if s.window.sentSpans == nil {
		s.window.sentSpans = new(sentSpans)
	}
	s.window.sentSpans.dropElapsed(now)
	s.window.sentSpans.add(now, p.provedRTT, size)
}

// dropElapsed drops what may have been acknowledged, and returns how many are left.
func (l *sentSpans) dropElapsed(now rawio.Time) int {
	for l.length > 0 && !now.Before(l.entries[l.head].earliestAckAt) {
		l.octets -= l.entries[l.head].octets
		l.head = (l.head + 1) % maxSentSpans
		l.length--
	}
	return l.length
}

func (l *sentSpans) add(now rawio.Time, trip time.Duration, size int) {
	last := &l.entries[(l.head+l.length+maxSentSpans-1)%maxSentSpans]
	apart := now != last.beganAt && (l.length < maxExactSpans || now.Sub(last.beganAt) >= trip/64)
	if l.length == 0 || apart && l.length < maxSentSpans {
		last = &l.entries[(l.head+l.length)%maxSentSpans]
		*last = sentSpan{beganAt: now}
		l.length++
	}
	last.earliestAckAt = now.Add(trip)
	last.octets += size
	l.octets += size
}

// held returns the octets of memory behind it.
func (w *peerWindow) held() int {
	if w.sentSpans == nil {
		return 0
	}
	return int(unsafe.Sizeof(*w.sentSpans))
}

// moreFollows reports whether there is more to send behind the next size octets. Then an honest
// peer sees that they are missing.
func (s *Sender) moreFollows(size int) bool {
	q, u := &s.queue, &s.upper
	return q.numWaiting() > 0 || q.current.rest() > size || u.source != nil && !u.source.Idle()
}

// windowHoldsTwo reports whether the peer's window holds two chunks of size octets.
func (s *Sender) windowHoldsTwo(size int) bool {
	return s.outstanding.rwnd+s.outstanding.dataInFlight >= 2*size
}

// hasRoomForTwo reports whether another chunk of size octets may go to p with the next.
func (s *Sender) hasRoomForTwo(p *Path, size int) bool {
	return s.outstanding.rwnd-s.ackedEarlyOctets(p) >= 2*size
}

// ackedEarlyOctets is how much of what was sent to a narrow window counts against it although it
// was acknowledged.
func (s *Sender) ackedEarlyOctets(p *Path) int {
	if s.window.sentSpans == nil || !s.hasNarrowWindow(p) {
		return 0
	}
	return max(s.window.sentSpans.octets-s.outstanding.dataInFlight, 0)
}

// waitsForNarrowWindow reports whether the next chunk waits until a narrow window has room for one
// more. It is to be withheld, and an honest peer needs a chunk behind it. It remembers how long.
func (s *Sender) waitsForNarrowWindow(now rawio.Time, p *Path, size int) bool {
	w := &s.withheld
	due := w.packetsUntilNext == 1 && s.hasNarrowWindow(p) && s.mayWithhold(p) && s.windowHoldsTwo(size) &&
		s.moreFollows(size)
	if !due || s.hasRoomForTwo(p, size) || s.outstanding.dataInFlight+s.ackedEarlyOctets(p) == 0 {
		w.drainDeadlineAt = 0
		return false
	}
	if w.drainDeadlineAt == 0 {
		w.drainDeadlineAt = now.Add(2 * max(p.rttEst.srtt, p.provedRTT))
	}
	if !now.Before(w.drainDeadlineAt) {
		w.drainDeadlineAt, w.packetsUntilNext = 0, 0
		return false
	}
	s.burst.paceAt = w.drainDeadlineAt
	if l := s.window.sentSpans; l != nil && l.length > 0 {
		s.burst.paceAt = min(s.burst.paceAt, l.entries[l.head].earliestAckAt)
	}
	return true
}
