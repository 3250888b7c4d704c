package pmtud

import (
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/rawio"
)

// State is the state of a search (RFC 8899 section 5.2).
type State uint8

// The states of RFC 8899 section 5.2.
const (
	Disabled  State = iota // the path is not known to be up
	Base                   // confirming the base size
	Searching              // probing for a larger one
	Complete               // SEARCH_COMPLETE
	Error                  // the base size does not pass
)

var stateNames = [...]string{"DISABLED", "BASE", "SEARCHING", "SEARCH_COMPLETE", "ERROR"}

// String returns the RFC's name of the state.
func (s State) String() string { return stateNames[s] }

// Constants of RFC 8899 section 5.1.
const (
	maxProbes = 3                 // MAX_PROBES, in a row, of whatever size
	raise     = 600 * time.Second // PMTU_RAISE_TIMER
	minTimer  = time.Second       // least PROBE_TIMER
	maxError  = 64 * time.Second  // most between two probes in state Error
)

// Limits are the sizes of a path, in octets of an SCTP packet.
type Limits struct {
	Min      int // MIN_PLPMTU: passes everywhere
	Base     int // BASE_PLPMTU: passes nearly everywhere
	Max      int // MAX_PLPMTU: what the local link takes
	Overhead int // octets of IP and UDP header
}

// normal makes sizes what packets can have, multiples of 4, with Min <= Base <= Max.
func (l Limits) normal() Limits {
	l.Max &^= 3
	l.Base = min(l.Base, l.Max) &^ 3
	l.Min = min(l.Min, l.Base) &^ 3
	return l
}

// Search is the search on one path.
type Search struct {
	// What each packet looks at comes first.
	timer rawio.Time // PROBE_TIMER while out, PMTU_RAISE_TIMER in Complete, else when the probe may go
	size  int        // PLPMTU
	state State
	out   bool // a probe is unanswered
	lim   Limits
	probe int        // PROBED_SIZE; meaningful in Base, Searching and Error
	count int        // PROBE_COUNT
	free  rawio.Time // no other probe before: a round trip after the last one
	wait  time.Duration

	// The last probes since the search began, for answers that come late.
	log *[logged]probe // nil while none waits for one
	n   int            // probes sent

	// What this search knows of sizes above size: the smallest that did not pass, 0 for none; where there is one,
	// whether that is sure, because it was lost twice or reported; and a reported size to try next.
	ceiling int
	sure    bool
	hint    int
}

// logged is how many probes are remembered: those that one answer may have to wait for.
const logged = maxProbes + 1

// Held is how many octets a Search takes besides its own.
const Held = unsafe.Sizeof([logged]probe{})

// Often is how many of its first octets each packet looks at.
const Often = unsafe.Offsetof(Search{}.lim) + unsafe.Sizeof(int(0))

// probe is one that was sent and not answered.
type probe struct {
	nonce uint64
	size  int // 0: none
	at    rawio.Time
}

// New returns a search in state Disabled. The size to use until it starts is Base.
func New(lim Limits) Search {
	lim = lim.normal()
	return Search{lim: lim, size: lim.Base, timer: rawio.Never}
}

// Size returns the PLPMTU: the largest packet to send that is no probe.
func (s *Search) Size() int { return s.size }

// State returns the state.
func (s *Search) State() State { return s.state }

// Limits returns the limits.
func (s *Search) Limits() Limits { return s.lim }

// Deadline returns when HandleTimeout has something to do or a probe is due.
func (s *Search) Deadline() rawio.Time { return s.timer }

// Start begins the search, from whichever state: the path is up.
func (s *Search) Start(now rawio.Time) {
	s.ceiling, s.hint = 0, 0
	s.base(now)
}

// ethernet is the IP-level MTU of most links.
const ethernet = 1500

// Leap is Start on a path of which nothing bad is known. Where the largest size is one that most paths carry the first probe is of that: if it
// passes so does the base size, and the search is over a round trip sooner, before the first long answer goes. If not the base size is next.
func (s *Search) Leap(now rawio.Time) {
	s.Start(now)
	if s.lim.Max+s.lim.Overhead <= ethernet {
		s.plan(now, s.lim.Max)
	}
}

// leaping reports whether the base size is tried by a larger one.
func (s *Search) leaping() bool { return s.state == Base && s.probe > s.lim.Base }

// Stop ends it: the path is down. The size stays until Start, unless something tells that
// it is too large: what is outstanding is sent on, and may be all that finds out that the path is up again.
func (s *Search) Stop() {
	s.state, s.timer, s.out = Disabled, rawio.Never, false
	s.log = nil
}

// base enters Base.
func (s *Search) base(now rawio.Time) {
	s.state, s.size, s.count = Base, s.lim.Base, 0
	s.log = nil // what passed before may not pass now
	s.plan(now, s.lim.Base)
}

// plan has a probe of that size sent as soon as one may be (RFC 8899 section 8).
func (s *Search) plan(now rawio.Time, size int) {
	s.probe, s.out, s.timer = size, false, max(now, s.free)
}

// Due returns the size of the probe to send now, 0 for none.
func (s *Search) Due(now rawio.Time) int {
	if s.out || s.state == Disabled || s.state == Complete || now < s.timer {
		return 0
	}
	return s.probe
}

// Sent says that the probe that was due has been sent, with that nonce, and starts PROBE_TIMER. rtt is
// the path's round trip time, timer how long an answer takes at most.
func (s *Search) Sent(now rawio.Time, nonce uint64, rtt, timer time.Duration) {
	s.out = true
	if s.log == nil {
		s.log = new([logged]probe)
	}
	s.log[s.n%logged] = probe{nonce, s.probe, now}
	s.n++
	s.free = now.Add(rtt)
	s.timer = now.Add(max(timer, minTimer))
}

// Arrived says that the peer has answered the probe with that nonce and size. It returns the round trip
// time. ok is false for an answer that nobody waits for: a second one, or one to a probe of an earlier
// search, or one that nobody has sent.
func (s *Search) Arrived(now rawio.Time, nonce uint64, size int) (rtt time.Duration, ok bool) {
	if s.log == nil {
		return 0, false
	}
	for i := range s.log {
		p := &s.log[i]
		if p.size == 0 || p.size != size || p.nonce != nonce {
			continue
		}
		rtt = now.Sub(p.at)
		if *p = (probe{}); *s.log == ([logged]probe{}) {
			s.log = nil
		}
		if i == (s.n-1)%logged {
			s.out, s.free = false, now // it took a round trip
		}
		s.passed(now, size)
		return rtt, true
	}
	return rtt, false
}

// passed is an answer, perhaps to a probe that was given up.
func (s *Search) passed(now rawio.Time, size int) {
	if size > s.lim.Max || size <= s.size && s.state != Base {
		return // also in Error, where the size is less than that of every probe
	}
	s.state, s.size, s.count = Searching, size, 0
	if s.size >= s.ceiling {
		s.ceiling = 0
	}
	if s.probe <= size { // else it goes on, or is to be next
		s.next(now)
	}
}

// HandleTimeout runs the timer that has expired at now, if one has.
func (s *Search) HandleTimeout(now rawio.Time) {
	switch {
	case now < s.timer:
	case s.out:
		s.lost(now)
	case s.state == Complete:
		s.state, s.ceiling = Searching, 0
		s.next(now)
	}
}

// lost is the expiry of PROBE_TIMER.
func (s *Search) lost(now rawio.Time) {
	s.count++
	switch {
	case s.leaping():
		s.ceiling, s.sure = s.probe, false
		s.resume(now)
	case s.state == Base:
		if s.count < maxProbes {
			s.plan(now, s.probe)
		} else {
			s.fail(now)
		}
	case s.state == Error:
		s.wait = min(2*s.wait, maxError)
		s.plan(now.Add(s.wait), s.probe)
	default:
		s.sure = s.probe == s.ceiling
		s.ceiling = s.probe
		if s.count < maxProbes {
			s.next(now)
		} else {
			s.complete(now)
		}
	}
}

// fail enters Error: the size that passes everywhere has to do until one of Base passes.
func (s *Search) fail(now rawio.Time) {
	s.state, s.size, s.wait = Error, s.lim.Min, minTimer
	s.ceiling, s.hint = 0, 0
	s.plan(now.Add(s.wait), s.lim.Base)
}

// complete enters Complete.
func (s *Search) complete(now rawio.Time) {
	s.state, s.out, s.count, s.hint = Complete, false, 0, 0
	s.timer = now.Add(raise)
}

// next goes on with the search.
func (s *Search) next(now rawio.Time) {
	if n := s.candidate(); n != 0 {
		s.plan(now, n)
	} else {
		s.complete(now)
	}
}

// resume goes on without the probe under way.
func (s *Search) resume(now rawio.Time) {
	if s.leaping() {
		s.count = 0
		s.plan(now, s.lim.Base)
	} else {
		s.next(now)
	}
}

// TooBig takes a validated report that the path carries packets of at most that size (RFC 8899 section
// 4.6.2).
func (s *Search) TooBig(now rawio.Time, size int) {
	size &^= 3
	switch {
	case size < s.lim.Min: // which passes everywhere
	case s.state == Disabled: // nothing is probed, but what is still sent may be too long
		s.size = min(s.size, size)
	case size >= s.size:
		if !s.out || size >= s.probe || s.state != Searching && !s.leaping() {
			return // of no probe that is under way
		}
		s.bound(size)
		s.resume(now)
	case size >= s.lim.Base:
		s.bound(size)
		s.base(now)
	case s.state == Base:
		s.fail(now)
	default:
		s.Start(now)
	}
}

// bound notes that nothing above size passes and that size may be worth a probe.
func (s *Search) bound(size int) {
	s.ceiling, s.sure, s.hint = size+4, true, size
}

// BlackHole says that packets larger than Min keep being lost (RFC 8899 section 4.3).
func (s *Search) BlackHole(now rawio.Time) {
	switch s.state {
	case Searching, Complete:
		s.Start(now)
	case Disabled: // what is sent again and again is to arrive
		s.size = s.lim.Min
	}
}

// SetMax changes MAX_PLPMTU, of which the search takes account when it next starts. A size above it ends
// at once.
func (s *Search) SetMax(n int) {
	s.lim.Max = max(n&^3, s.lim.Base)
	s.size = min(s.size, s.lim.Max)
}

// Refused says that the local link has refused a packet of that size and takes at most most octets now (RFC 8899 section 3,
// item 1): what is sent is shorter from now on. A link that says it takes more does not know yet; then the search begins anew.
func (s *Search) Refused(now rawio.Time, size, most int) {
	switch {
	case most >= size:
		if s.state == Disabled {
			s.size = min(s.size, s.lim.Base)
		} else {
			s.Start(now)
		}
		s.ceiling, s.sure = size&^3, true
	case most < s.lim.Base:
		s.SetMax(most)
		s.TooBig(now, most)
	default:
		s.SetMax(most)
		if (s.state == Searching || s.leaping()) && s.probe > s.lim.Max { // or it is waited for in vain
			s.resume(now)
		}
	}
}

// Shift makes all sizes larger by d octets: what goes in front of a packet has become shorter by that. A
// probe that is under way is sent again.
func (s *Search) Shift(now rawio.Time, d int) {
	s.lim.Min, s.lim.Base, s.lim.Max, s.lim.Overhead = s.lim.Min+d, s.lim.Base+d, s.lim.Max+d, s.lim.Overhead-d
	s.size += d
	if s.ceiling != 0 {
		s.ceiling += d
	}
	if s.hint != 0 {
		s.hint += d
	}
	s.log = nil
	if s.out {
		s.timer = now
	}
	s.plan(s.timer, s.probe+d)
}
