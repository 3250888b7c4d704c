package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// forwardTSN tells the peer to wait no more for abandoned chunks (RFC 3758 section 3.5).
//
//	acked | abandoned abandoned | in flight  abandoned
//	      ^ Cumulative TSN Ack Point
//	                            ^ Advanced.Peer.Ack.Point, which FORWARD TSN tells
type forwardTSN struct {
	end     wire.TSN   // Advanced.Peer.Ack.Point + 1
	sentEnd wire.TSN   // that of the last FORWARD TSN
	sentAt  rawio.Time // when that went
	path    *Path      // and where; nil before the first
	due     bool       // one is to be sent now
	tries   int        // how often it went without an answer
	againAt rawio.Time // when it goes again without a SACK, or Never
}

func newForwardTSN(next wire.TSN) forwardTSN {
	return forwardTSN{end: next, sentEnd: next, againAt: rawio.Never}
}

// advanceAckPoint moves the Advanced.Peer.Ack.Point over abandoned chunks (C1 and C2), and has a
// FORWARD TSN sent for those that none was sent for.
func (s *Sender) advanceAckPoint(now rawio.Time) {
	g, f := &s.outstanding, &s.partial().forward
	if f.end.Less(g.firstUnacked) {
		f.end = g.firstUnacked
	}
	if f.sentEnd.Less(g.firstUnacked) {
		f.sentEnd = g.firstUnacked
	}
	for f.end != g.nextTSN && g.recordOf(f.end).state == stateAbandoned {
		*s.work.steps++
		f.end++
	}
	switch {
	case f.end == g.firstUnacked: // nothing to tell
		f.due, f.tries, f.againAt = false, 0, rawio.Never
	case f.sentEnd.Less(f.end):
		f.due, f.againAt = true, now
	}
}

// onForwardAcked learns that the cumulative TSN has moved on from a TSN. That may answer a FORWARD
// TSN.
func (s *Sender) onForwardAcked(k *sackInProgress, from wire.TSN) {
	f := &s.partial().forward
	if from.Less(f.sentEnd) && f.tries > 0 {
		k.acked.newlyAcked = true
		k.acked.paths.add(f.path.Index())
		f.tries = 0
	}
	s.advanceAckPoint(k.receivedAt)
}

// repeatForward has a FORWARD TSN sent again that a SACK has not answered (C3), once in a round
// trip.
func (s *Sender) repeatForward(now rawio.Time) {
	f := &s.partial().forward
	if f.path != nil && f.end != s.outstanding.firstUnacked && now.Sub(f.sentAt) >= f.path.rttEst.srtt {
		f.due = true
	}
}

// handleForwardTimeout has a FORWARD TSN sent again to which there was no answer. It returns true
// if that counts as an expiry of T3-rtx (C5): nothing else tells that the path does not answer.
func (s *Sender) handleForwardTimeout(now rawio.Time) (p *Path, expired bool) {
	f := &s.partial().forward
	if now.Before(f.againAt) || f.due {
		return nil, false
	}
	f.due, f.againAt = true, now
	if p = f.path; p == nil || p.flight.octets > 0 || f.tries < 2 {
		return nil, false
	}
	p.rttEst.doubleRTO()
	return p, true
}

// ForwardDue says whether AppendForwardTSN has something to send.
func (s *Sender) ForwardDue() bool { return s.partial() != nil && s.partial().forward.due }

// AppendForwardTSN appends a FORWARD TSN, or I-FORWARD-TSN, of at most room octets to a packet to
// p. If it does not name all streams, it ends before the first that is left out (C4).
func (s *Sender) AppendForwardTSN(now rawio.Time, b []byte, room int, p *Path) []byte {
	g, f := &s.outstanding, &s.partial().forward
	const header = 8
	if room < header+8 {
		return b
	}
	w := skipList{most: (room - header) / 4, at: map[streamKey]int{}}
	if s.Interleaves() {
		w.most = (room - header) / 8
	}
	end := g.firstUnacked
	for ; end != f.end && w.add(g, end, s.Interleaves()); end++ {
		*s.work.steps++
	}
	if end == g.firstUnacked {
		f.due = false
		return b
	}
	f.due, f.sentEnd, f.sentAt, f.path = false, end, now, p
	f.tries++
	if wait := p.rttEst.rto; f.tries == 1 && s.isFarPath(p) {
		f.againAt = now.Add(min(wait, p.rttEst.probeTimeout()+p.sackDelays.longestDelay()))
	} else {
		f.againAt = now.Add(wait)
	}
	if s.Interleaves() {
		return wire.AppendIForwardTSN(b, end-1, w.messages)
	}
	return wire.AppendForwardTSN(b, end-1, w.streams)
}

// streamKey is what a FORWARD TSN names once: a stream, of I-DATA its ordered or unordered
// messages.
type streamKey struct {
	stream    wire.StreamID
	unordered bool
}

// skipList is the streams of a FORWARD TSN with their highest SSNs or MIDs.
type skipList struct {
	most     int // streams that there is room for
	at       map[streamKey]int
	streams  []wire.Skip
	messages []wire.ISkip
}

// add adds an abandoned chunk, and says whether there was room for it. TSNs ascend, and so do the
// SSNs of a stream.
func (w *skipList) add(g *outstanding, t wire.TSN, interleaves bool) bool {
	r := g.recordOf(t)
	k := streamKey{r.stream, r.wireFlags&wire.FlagU != 0}
	if k.unordered && !interleaves {
		return true // FORWARD TSN does not name it (RFC 3758 section 3.2)
	}
	at, known := w.at[k]
	if !known {
		if at = len(w.at); at == w.most {
			return false
		}
		w.at[k] = at
		w.streams, w.messages = append(w.streams, wire.Skip{}), append(w.messages, wire.ISkip{})
	}
	if interleaves {
		w.messages[at] = wire.ISkip{Stream: r.stream, U: k.unordered, MID: g.extraOf(t).mid}
	} else {
		w.streams[at] = wire.Skip{Stream: r.stream, SSN: r.ssn}
	}
	return true
}
