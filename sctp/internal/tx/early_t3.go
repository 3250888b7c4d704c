package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
)

// RTO is a second at least (RFC 9260 section 16), also because it is not known how long a peer
// delays its SACK. Where that is known, T3-rtx expires sooner, and again after twice as long, if no
// other path is beside it. An expiry after RTO is still what section 8.2 counts as an error, and
// section 6.3.3 backs the RTO off for. Over a near path, which has no tail-loss probe, nothing else
// repairs a lost tail.
const minT3 = 200 * time.Millisecond

// mostEarly is where the count of expiries that were early stops.
const mostEarly = 16

// earlyTimeouts are the expiries of T3-rtx before its time.
type earlyTimeouts struct {
	rtoAt        rawio.Time    // the time: a later expiry is an error
	firstTimeout time.Duration // the first one comes so long after the transmission
	expiries     int           // of them, since when nothing was acknowledged
}

// earlyT3Timeout returns how long T3-rtx of p waits at first: long enough for a probe and its
// answer.
func (s *Sender) earlyT3Timeout(p *Path) time.Duration {
	e := &p.rttEst
	if p.sackDelays.samples == 0 || e.backedOff || s.window.probing || s.cfg.StrictRFC ||
		s.tailProbePath(p) != nil || s.Alternate(p) != p {
		return e.rto
	}
	return e.srtt + max(4*e.rttvar, minT3, 3*e.srtt+2*p.sackDelays.longestDelay())
}

// startT3 starts T3-rtx (section 6.3.2). After an early expiry its time goes on.
func (s *Sender) startT3(now rawio.Time, p *Path) {
	e := &p.timers.early
	if e.expiries == 0 || !now.Before(e.rtoAt) {
		*e = earlyTimeouts{rtoAt: now.Add(p.rttEst.rto), firstTimeout: s.earlyT3Timeout(p)}
	}
	p.timers.t3At = e.rtoAt
	// what goes out again then is to have as long
	if at := now.Add(e.firstTimeout << e.expiries); at.Add(e.firstTimeout) <= e.rtoAt {
		p.timers.t3At = at
	}
}

// grace is the time that what was sent to p has in any case.
func (p *Path) grace() time.Duration {
	e := &p.rttEst
	if e.srtt == 0 {
		return e.base()
	}
	return e.srtt + max(4*e.rttvar, minT3)
}

// Hasten has T3-rtx of p expire after wait, if it would much later: what is in flight there did not
// leave this host. That expiry is an early one. It is no error, the RTO is not backed off for it,
// and T3-rtx goes on to its time. What is in flight for the first time since something was
// acknowledged may have left. It has the time that its SACK takes.
func (s *Sender) Hasten(now rawio.Time, p *Path, wait time.Duration) {
	if p.flight.octets == 0 {
		return
	}
	at := now.Add(wait)
	if !p.onePacketOnly {
		s.updateFirstInFlight(p)
		age := time.Duration(stampOf(now)-s.outstanding.recordOf(p.flight.first).sentStamp) * time.Microsecond
		at = max(at, now.Add(p.grace()-age))
	}
	if at.Add(minT3) < p.timers.t3At {
		p.timers.t3At = at
	}
}

// HastenFor hastens what is in flight to p, for which packets can leave again, and to paths that
// are still severed. One packet of that goes to p until something is acknowledged. It says whether
// there is any.
func (s *Sender) HastenFor(now rawio.Time, p *Path) (any bool) {
	for _, q := range s.paths {
		if q.flight.octets > 0 && (q == p || q.suspicion.sendBlocked) {
			s.Hasten(now, q, 0)
			p.onePacketOnly, any = p.onePacketOnly || q != p, true
		}
	}
	return any
}
