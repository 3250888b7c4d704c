package tx

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Failover long before T3-rtx. Where a path is silent for as long as a tail-loss probe waits, the probe is a copy of the earliest chunk in flight
// there, over another active path (RFC 9260 section 6.4.1). If its SACK says that nothing has arrived over the old path since, that path is
// suspected: new data leaves it, and what is overdue there goes again elsewhere. The owner asks the path by HEARTBEAT, and counts that, not the probe,
// as an error where nothing answers. A path that answers carries data again, paced, with the cwnd that it had.

// trust is what is thought of an active path.
type trust uint8

const (
	trusted   trust = iota
	held            // it has answered, but was suspected too often of late: it carries data when others are suspected
	suspected       // it does not answer
)

// A path that is suspected again within flapMemory of its return is held for leastHold, twice as long the next time, up to mostHold: a path that
// lets HEARTBEATs pass and no data, or a peer that answers as it likes, does not move data to and fro for ever. None is left within leaveRest of another:
// behind a spike that has met both, answers come in any order.
const (
	leaveRest  = 500 * time.Millisecond
	flapMemory = 10 * time.Second
	leastHold  = time.Second
	mostHold   = time.Minute
)

// suspicion is what is known about the silence of a path.
type suspicion struct {
	trust trust
	cut   bool          // nothing leaves this host for there
	hold  time.Duration // how long it lasts at least
	until rawio.Time    // and until when that is
	back  rawio.Time    // when the path carried data again
}

// Suspected reports that new data avoids the path although it is active.
func (p *Path) Suspected() bool { return p.doubt.trust != trusted }

// Asked reports that a HEARTBEAT is to find out whether the path answers.
func (p *Path) Asked() bool { return p.doubt.trust == suspected }

// HeldUntil returns when a suspected path that answers may carry data again.
func (p *Path) HeldUntil() rawio.Time { return p.doubt.until }

// Answered takes that the path is reachable.
func (p *Path) Answered(now rawio.Time) {
	d := &p.doubt
	d.cut = false
	if d.trust == suspected { // what is overdue is no more
		if d.trust, p.pto = held, rawio.Never; p.flight > 0 {
			p.pto = now.Add(p.silence())
		}
	}
	if !now.Before(d.until) {
		p.Forgive(now)
	}
}

// Forgive ends a suspicion: the path has answered, or its state tells more than that.
func (p *Path) Forgive(now rawio.Time) {
	if p.doubt.trust != trusted {
		p.doubt.trust, p.doubt.back, p.doubt.cut = trusted, now, false
		p.disorder.over = true // what is lost from now on is another loss
	}
}

// Failed takes that the path does not answer, which its state says from now on. A suspected one has lost what was in flight there.
func (p *Path) Failed(now rawio.Time) {
	if p.doubt.trust == suspected {
		p.cc.OnTimeout(now)
		p.disorder.undo, p.alarm.on = false, false
	}
	p.Forgive(now)
}

// usable reports whether new data may go to p.
func (p *Path) usable() bool { return p.trusted() && !p.doubt.cut }

func (p *Path) trusted() bool { return p.State == Active && p.doubt.trust == trusted }

// Sever takes that nothing leaves this host for p, until it answers or Mend is called: it
// carries DATA only where all paths are like that.
func (p *Path) Sever() { p.doubt.cut = true }

// Mend takes that packets can leave for p again.
func (p *Path) Mend() { p.doubt.cut = false }

// other returns the path that a probe takes when p is silent, nil if there is none as good, or if nobody would ask p.
func (s *Sender) other(p *Path) *Path {
	if len(s.paths) == 1 || !p.Asks {
		return nil
	}
	if q := s.choose(p, leave); q != p && q.State == Active && q.doubt.trust != suspected {
		return q
	}
	return nil
}

// fillProbe appends a copy of the probe's chunk to a packet that goes over the other path. The chunk is in flight where it was, so that T3-rtx
// and error counters are as without it.
func (s *Sender) fillProbe(now rawio.Time, b *pack.Batch, p *Path) int {
	t := s.tail.tsn
	r := s.ledger.rec(t)
	if r.chunkLen() > b.Room() && !(b.Empty() && r.chunkLen() > p.pmdcs) {
		return 0
	}
	s.tail.due, s.tail.sent = false, stamp(now)
	s.unmeasure(t)
	long := r.flags & large
	appendChunk(b, t, r, p, r.wire|wire.FlagI)
	r.flags = r.flags&^large | long | copied | moved
	if !p.fits(r) {
		p.cut(now)
	}
	s.tail.long = long != 0
	if s.withheld.is(t) { // it counts as sent, and the path has not lost it
		s.ledger.move(onCopy, t, r, s.paths[r.path])
		s.withheld.leaves()
		s.tail.out = false
		return 1
	}
	s.countAgain(r)
	s.stats.Chunks++
	s.stats.Octets += uint64(r.size)
	return 1
}

// silent reports whether p is to be left: nothing that was sent there when the probe's chunk was, or later, has arrived, or what is in flight should
// have by far. One lost chunk is no silence where all that was in flight beside it has arrived: it was the last that went, or went again, before cwnd was
// full, and the SACK of the others was lost too.
func (s *Sender) silent(now rawio.Time, p *Path) bool {
	if p.State != Active || now.Sub(s.leftAt) < leaveRest {
		return false
	}
	if s.tail.repairs && !p.latest.after(s.tail.first, s.tail.tsn) {
		return p.flight > 0 || !s.tail.beside
	}
	if p.flight == 0 {
		return false
	}
	s.findFirst(p)
	r := s.ledger.rec(p.first)
	at := r.stamp
	age := time.Duration(stamp(now)-at) * time.Microsecond
	return p.flight > r.chunkLen() && age >= p.patience()+s.tail.via.est.srtt && !p.latest.after(at, p.first)
}

// leave has new data avoid p, which is silent while another path answers.
func (s *Sender) leave(now rawio.Time, p *Path) {
	d := &p.doubt
	if d.back == 0 || now.Sub(d.back) > flapMemory {
		d.hold = 0
	} else {
		d.hold = min(max(2*d.hold, leastHold), mostHold)
	}
	if d.trust == trusted {
		s.rare().PathsSuspected++
	}
	d.trust, d.until, s.leftAt = suspected, now.Add(d.hold), now
	if !s.recovery { // else that is one reduction already
		s.reduce(now, p)
		p.disorder.undo = true
	}
	s.recovery, s.urgent = false, false
	s.moveOverdue(now, p)
}

// Cut has new data leave p at once, and what is in flight there go again elsewhere: this host cannot send there. It returns false where there is no other
// path, or p was left before.
func (s *Sender) Cut(now rawio.Time, p *Path) bool {
	if !p.trusted() || s.other(p) == nil {
		return false
	}
	p.Sever()
	s.leave(now, p)
	return true
}

// moveOverdue marks what should have arrived over p, which is suspected, to be sent elsewhere, and comes back for the rest. Over a path that
// is cut that is all: whoever had it cannot say so there.
func (s *Sender) moveOverdue(now rawio.Time, p *Path) {
	p.pto = rawio.Never
	for n := 0; p.flight > 0; n++ {
		s.findFirst(p)
		r := s.ledger.rec(p.first)
		left := 2*p.patience() - time.Duration(stamp(now)-r.stamp)*time.Microsecond
		if p.doubt.cut {
			left = 0
		}
		if left > 0 || n == rackMost {
			p.pto = now.Add(max(left, rackTick))
			return
		}
		s.suspect(p.first, p)
		if p.rates != nil {
			s.rateLost(now, p.first, r, p)
		}
		s.ledger.mark(p.first, r, p)
		r.flags |= timeout
	}
	p.t3 = rawio.Never
}
