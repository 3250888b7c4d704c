package tx

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
)

// A receiver with a narrow window has few packets in flight, so that it is seldom caught by what
// is withheld from others, and a window that is acknowledged before it has arrived opens at once:
// it would be sent as much as it likes, over whatever bottleneck. So what was sent counts against
// such a window for as long as the way there and back takes, acknowledged or not. How long that
// is the peer has proved by a nonce (Path.proved). An honest one does not notice: nothing of it
// comes back sooner.
//
// That trip may have been measured while there was a queue. So a HEARTBEAT asks anew when it
// holds anything up (Path.Vague).
const (
	// narrowPackets is how many full packets a narrow window has room for at most.
	narrowPackets = 16
	// narrowFew transmissions are remembered one by one; of more, those that left within a 64th
	// of the trip are one.
	narrowFew   = 24
	narrowSpans = narrowFew + 72
)

// spans are what was sent within a trip, in the order of sending: a ring.
type spans struct {
	at       [narrowSpans]span
	first, n int
	octets   int // of user data, of all of them
}

type span struct {
	begun  rawio.Time
	until  rawio.Time // nothing of it can have been acknowledged before
	octets int
}

// narrow reports whether the peer's window is so small, and nothing shows that the peer is near,
// so that no bottleneck of others is in between.
func (s *Sender) narrow(p *Path) bool {
	return s.tries(p) && s.ledger.rwnd+s.ledger.data < narrowPackets*p.pmdcs
}

// tries reports whether a peer is tried at all.
func (s *Sender) tries(p *Path) bool {
	return s.cfg.Draw != nil && !s.cfg.Letter && p.proved >= nearTrip
}

// outruns reports whether size octets more to p are more than the window in one trip. It
// remembers when they are not.
func (s *Sender) outruns(now rawio.Time, p *Path, size int) bool {
	l := s.spans
	if l == nil || !s.narrow(p) {
		return false
	}
	if l.forget(now) == 0 || l.octets+size <= s.ledger.rwnd+s.ledger.data {
		return false
	}
	s.paceAt = l.at[l.first].until
	p.outrun = true
	return true
}

// spend notes that size octets go to p.
func (s *Sender) spend(now rawio.Time, p *Path, size int) {
	if !s.narrow(p) {
		s.spans = nil
		return
	}
	if s.spans == nil {
		s.spans = new(spans)
	}
	s.spans.forget(now)
	s.spans.add(now, p.proved, size)
}

// forget drops what may have been acknowledged, and returns how many are left.
func (l *spans) forget(now rawio.Time) int {
	for l.n > 0 && !now.Before(l.at[l.first].until) {
		l.octets -= l.at[l.first].octets
		l.first = (l.first + 1) % narrowSpans
		l.n--
	}
	return l.n
}

func (l *spans) add(now rawio.Time, trip time.Duration, size int) {
	last := &l.at[(l.first+l.n+narrowSpans-1)%narrowSpans]
	apart := now != last.begun && (l.n < narrowFew || now.Sub(last.begun) >= trip/64)
	if l.n == 0 || apart && l.n < narrowSpans {
		last = &l.at[(l.first+l.n)%narrowSpans]
		*last = span{begun: now}
		l.n++
	}
	last.until = now.Add(trip)
	last.octets += size
	l.octets += size
}

// spansHeld returns the octets of memory for them.
func (s *Sender) spansHeld() int {
	if s.spans == nil {
		return 0
	}
	return int(unsafe.Sizeof(*s.spans))
}

// follows reports whether there is more to send behind the next size octets, so that an honest
// peer sees that they are missing.
func (s *Sender) follows(size int) bool {
	return s.queue.n > 0 || s.slot.msg.Len()-s.slot.off > size || s.src != nil && !s.src.Idle()
}

// fitsTwo reports whether the peer's window holds two chunks of size octets.
func (s *Sender) fitsTwo(size int) bool { return s.ledger.rwnd+s.ledger.data >= 2*size }

// roomy reports whether another chunk of size octets may go to p with the next.
func (s *Sender) roomy(p *Path, size int) bool {
	return s.ledger.rwnd-s.early(p) >= 2*size
}

// early is how much of what was sent to a narrow window counts against it although it was
// acknowledged.
func (s *Sender) early(p *Path) int {
	if s.spans == nil || !s.narrow(p) {
		return 0
	}
	return max(s.spans.octets-s.ledger.data, 0)
}

// clears reports whether the next chunk waits until a narrow window has room for one more: it is
// to be withheld, and an honest peer has to have something behind it. It remembers how long.
func (s *Sender) clears(now rawio.Time, p *Path, size int) bool {
	w := &s.withheld
	due := w.after == 1 && s.narrow(p) && s.mayWithhold(p) && s.fitsTwo(size) && s.follows(size)
	if !due || s.roomy(p, size) || s.ledger.data+s.early(p) == 0 {
		w.clear = 0
		return false
	}
	if w.clear == 0 {
		w.clear = now.Add(2 * max(p.est.srtt, p.proved))
	}
	if !now.Before(w.clear) {
		w.clear, w.after = 0, 0
		return false
	}
	s.paceAt = w.clear
	if l := s.spans; l != nil && l.n > 0 {
		s.paceAt = min(s.paceAt, l.at[l.first].until)
	}
	return true
}
