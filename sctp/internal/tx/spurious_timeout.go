package tx

import (
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// T3-rtx may expire because packets are late and not lost, as after a handover. What it has marked
// arrives nevertheless, and SACKs show it, as with F-RTO (RFC 5682) and Eifel (RFC 3522). A chunk
// shows it if it is acknowledged and did not go again, or went less than half the shortest round
// trip ago. That is the shortest of all, and half of it, because the path has become empty. After a
// silence a round trip may be shorter than any before.
//
// The timeout is spurious when two SACKs in a row show that, and the earliest chunk, which goes
// again first, is acknowledged. One SACK may stand for others that were lost. It is spurious at
// once when the earliest is such a chunk, or has come twice. Then what is still marked is in flight
// again, as of now, and the reduction is taken back.
//
// A peer that lies about it has had to be silent until T3-rtx expired, and gains the window of
// before.

// spuriousTimeout is the last expiry of T3-rtx of a path.
type spuriousTimeout struct {
	possible                bool     // it may have been a false one
	shownBySack             bool     // the SACK in processing shows it
	certain                 bool     // and of the earliest chunk
	restoreNext, restoreEnd wire.TSN // what is marked from one to before the other is to be in flight again
	firstTSN                wire.TSN // the earliest that was in flight
	showingSacks            int      // so many SACKs have shown it, one after another
}

// startSpuriousCheck notes that T3-rtx has expired for what is in flight from p.timers.markFrom on.
func (s *Sender) startSpuriousCheck(p *Path) {
	p.spuriousTimeout = spuriousTimeout{possible: !s.cfg.StrictRFC, firstTSN: p.timers.markFrom}
	p.reordering.mayUndo = false
}

// observeSpuriousTimeout learns of a chunk that T3-rtx has marked and that is acknowledged. That
// comes alone.
func (p *Path) observeSpuriousTimeout(now rawio.Time, c ackedChunks) {
	if c.record.flags&flagTimedOut != 0 {
		p.checkSpuriousTimeout(now, c.first, c.record)
	}
}

// checkSpuriousTimeout says whether the acknowledgement is of the first transmission.
func (p *Path) checkSpuriousTimeout(now rawio.Time, t wire.TSN, r *chunkRecord) {
	a := &p.spuriousTimeout
	first := false
	switch r.state {
	case stateLost:
		first = r.flags&flagAmbiguous == 0
	case stateInFlight:
		first = r.unreportedDups == 1 && stampOf(now)-r.sentStamp < p.rttEst.lowestMicros/2
	}
	a.shownBySack = a.shownBySack || first
	a.certain = a.certain || first && t == a.firstTSN
}

// onDuplicate learns that the peer has had a chunk twice, which went again.
func (a *spuriousTimeout) onDuplicate(t wire.TSN, r *chunkRecord) {
	if t == a.firstTSN && r.unreportedDups == 1 {
		a.shownBySack, a.certain = true, true
	}
}

// undoSpuriousTimeouts takes back what T3-rtx has done where the SACK in processing shows that it
// was early.
func (s *Sender) undoSpuriousTimeouts(now rawio.Time) {
	g := &s.outstanding
	for _, p := range s.paths {
		a := &p.spuriousTimeout
		if !a.possible || p.sack.ackedOctets == 0 && !a.shownBySack {
			continue
		}
		if a.showingSacks++; !a.shownBySack || !a.firstTSN.Less(g.firstUnacked) &&
			g.recordOf(a.firstTSN).state != stateGapAcked {
			a.showingSacks = 0
		}
		a.shownBySack = false
		if !a.certain && a.showingSacks < 2 {
			continue
		}
		a.possible, a.restoreNext, a.restoreEnd = false, a.firstTSN, p.timers.markTo
		s.recovery.pathsToMark &^= 1 << p.index
		p.cc.Undo(now)
	}
}

// restoreSpurious is the step of a SACK that puts in flight again what such a timeout has marked.
func (s *Sender) restoreSpurious(now rawio.Time) (all bool) {
	g, at := &s.outstanding, stampOf(now)
	if v := g.retransmitLog.entries; len(v) > 0 && int32(v[len(v)-1].sentStamp-at) > 0 {
		at = v[len(v)-1].sentStamp // something has gone since the SACK came
	}
	for _, p := range s.paths {
		a := &p.spuriousTimeout
		if a.restoreNext == a.restoreEnd {
			continue
		}
		if a.restoreNext.Less(g.firstUnacked) {
			a.restoreNext = g.firstUnacked
		}
		marked := s.work.walk(&g.toRetransmit, a.restoreNext, a.restoreEnd)
		for marked.next() {
			t, r := marked.tsn, g.recordOf(marked.tsn)
			if r.state == stateLost && r.flags&flagTimedOut != 0 && r.path == p.index {
				// nobody knows any more what is acknowledged
				r.sentStamp, r.flags = at, r.flags&^flagTimedOut|flagResent
				g.recordSend(onUndoLoss, t, r, p)
				s.stats.rare().Spurious++
			}
		}
		if a.restoreNext = marked.tsn; marked.cut {
			return false
		}
	}
	s.updateBypassCwnd()
	return true
}
