package tx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
)

// resumeSender is another Sender that goes on from what is left of s, over the same paths.
func resumeSender(s *Sender) *Sender {
	r, next := s.IdleState(), NewSender(s.cfg)
	for _, p := range s.paths {
		_ = next.AddPath(p)
	}
	next.SetUpper(s.upper.source, s.upper.sink)
	next.RestoreFrom(&r)
	return next
}

// What goes on from a Sender that rests has all that counts: TSNs and SSNs, what the peer takes,
// its path, and what was counted.
func TestResume(t *testing.T) {
	l := newLab(t, 2)
	l.s.SetPrimary(1)
	l.enqueueMany(3, 100)
	l.s.queue.waiting.at(0).Stream = 7
	check.That(t, !l.s.CanIdle(), "it rests with messages to send")
	l.transmit()
	check.That(t, !l.s.CanIdle(), "it rests with messages outstanding")
	l.sack(3)
	l.handleSack(makeSack(3, 500)) // the window is smaller than it was
	check.That(t, l.s.CanIdle(), "it does not rest when all is acknowledged")
	l.s.stats.retransmittedOctets, l.s.withheld.packetsUntilNext = 77, 9
	r := l.s.IdleState()
	was, next := l.s, resumeSender(l.s)
	for _, s := range []*Sender{was, next} {
		check.Equal(t, "next TSN", s.NextTSN(), 4)
		check.Equal(t, "acknowledged", s.CumTSN(), 3)
		check.Equal(t, "SSN of stream 0", *s.NextSSN(0), 2)
		check.Equal(t, "SSN of stream 7", *s.NextSSN(7), 1)
		check.Equal(t, "streams", s.streams.count, 16)
		check.Equal(t, "window", s.Rwnd(), 500)
		check.Equal(t, "largest window", s.window.largest, 1<<20)
		check.Equal(t, "chunks sent", s.SentTSNs(), 3)
		check.Equal(t, "octets sent again", s.stats.retransmittedOctets, 77)
		check.Equal(t, "until one is withheld", s.withheld.packetsUntilNext, 9)
		check.Equal(t, "primary path", s.Primary().Index(), 1)
	}
	check.Equal(t, "what was counted", next.Stats(), was.Stats())
	check.That(t, r.Stats() == was.Stats() && r.SentTSNs() == 3 && r.NextTSN() == 4 && r.Rwnd() == 500 &&
		r.Primary() == 1 && *r.NextSSN(7) == 1 && r.Held() > 0 && r.Held() == next.streams.nextSSN.Held(),
		"what is left does not say what the Sender would: %+v", r)
	l.s = next
	l.enqueueMany(1, 100)
	l.transmit()
	l.sack(4)
	check.That(t, l.s.CanIdle() && l.s.CumTSN() == 4, "what goes on does not rest when all is acknowledged")
}

// Whatever is still to come of it keeps a Sender from resting.
func TestWhatKeepsASenderFromResting(t *testing.T) {
	for what, does := range map[string]func(s *Sender){
		"a probe of the window":    func(s *Sender) { s.window.probing = true },
		"Fast Recovery":            func(s *Sender) { s.recovery.active = true },
		"a packet beyond cwnd":     func(s *Sender) { s.recovery.bypassCwnd = true },
		"a tail-loss probe":        func(s *Sender) { s.tailProbe.unacked = true },
		"a chunk withheld":         func(s *Sender) { s.withheld.isActive = true },
		"a shutdown":               func(s *Sender) { s.SetSackNow(true) },
		"more to come":             func(s *Sender) { s.Expect(true) },
		"a contradiction":          func(s *Sender) { s.outstanding.fault = new(invariant.Error) },
		"a message that expires":   func(s *Sender) { s.queue.earliestExpiryAt = second },
		"T3-rtx":                   func(s *Sender) { s.paths[0].timers.t3At = second },
		"a SACK in parts":          func(s *Sender) { s.sack.active = true },
		"a Source with a message":  func(s *Sender) { s.SetUpper(&countedSource{n: 1, size: 1}, nil) },
		"a packet that is held up": func(s *Sender) { s.burst.paceAt = second },
	} {
		s := newLab(t, 1).s
		check.That(t, s.CanIdle(), "%s: a Sender that has sent nothing does not rest", what)
		does(s)
		check.That(t, !s.CanIdle(), "a Sender rests in spite of %s", what)
	}
}
