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
	maxProbes        = 3                 // MAX_PROBES, in a row, of whatever size
	raiseInterval    = 600 * time.Second // PMTU_RAISE_TIMER
	minProbeTimer    = time.Second       // least PROBE_TIMER
	maxErrorInterval = 64 * time.Second  // most between two probes in state Error
)

// Limits are the sizes of a path, in octets of an SCTP packet.
type Limits struct {
	Min      int // MIN_PLPMTU: passes everywhere
	Base     int // BASE_PLPMTU: passes nearly everywhere
	Max      int // MAX_PLPMTU: what the local link takes
	Overhead int // octets of IP and UDP header
}

// roundDown makes sizes what packets can have, multiples of 4, with Min <= Base <= Max.
func (l Limits) roundDown() Limits {
	l.Max &^= 3
	l.Base = min(l.Base, l.Max) &^ 3
	l.Min = min(l.Min, l.Base) &^ 3
	return l
}

// Search is the search on one path.
type Search struct {
	// What each packet looks at comes first.
	timerAt       rawio.Time // PROBE_TIMER while out, PMTU_RAISE_TIMER in Complete, else when the probe may go
	plpmtu        int        // PLPMTU
	state         State
	probeInFlight bool // a probe is unanswered
	limits        Limits
	probedSize    int        // PROBED_SIZE; meaningful in Base, Searching and Error
	probeCount    int        // PROBE_COUNT
	nextProbeAt   rawio.Time // no other probe before: a round trip after the last one
	errorBackoff  time.Duration

	// The last probes since the search began, for answers that come late.
	sentProbes *[maxSentProbes]sentProbe // nil while none waits for one
	numSent    int                       // probes sent

	// What this search knows of sizes above plpmtu: the smallest that did not pass, 0 for none. The
	// next field says whether that is sure, because it was lost twice or reported. The last is a
	// reported size to try next.
	ceiling       int
	ceilingIsSure bool
	reportedSize  int
}

// maxSentProbes is how many probes are remembered for late answers.
const maxSentProbes = maxProbes + 1

// ExtraSize is how many octets a Search takes besides its own.
const ExtraSize = unsafe.Sizeof([maxSentProbes]sentProbe{})

// HotSize is how many of its first octets each packet looks at.
const HotSize = unsafe.Offsetof(Search{}.limits) + unsafe.Sizeof(int(0))

// sentProbe is one that was sent and not answered.
type sentProbe struct {
	nonce  uint64
	size   int // 0: none
	sentAt rawio.Time
}

// New returns a search in state Disabled. The size to use until it starts is Base.
func New(lim Limits) Search {
	lim = lim.roundDown()
	return Search{limits: lim, plpmtu: lim.Base, timerAt: rawio.Never}
}

// Size returns the PLPMTU: the largest packet to send that is no probe.
func (s *Search) Size() int { return s.plpmtu }

// State returns the state.
func (s *Search) State() State { return s.state }

// Limits returns the limits.
func (s *Search) Limits() Limits { return s.limits }

// Deadline returns when HandleTimeout has something to do or a probe is due.
func (s *Search) Deadline() rawio.Time { return s.timerAt }

// Start begins the search, from whichever state: the path is up.
func (s *Search) Start(now rawio.Time) {
	s.ceiling, s.reportedSize = 0, 0
	s.enterBase(now)
}

// ethernetMTU is the IP-level MTU of most links.
const ethernetMTU = 1500

// StartAtMax is Start on a path of which nothing bad is known. If most paths carry the largest
// size, the first probe has that size. If it passes so does the base size, and the search ends a
// round trip sooner, before the first long answer goes. If not, the base size is next.
func (s *Search) StartAtMax(now rawio.Time) {
	s.Start(now)
	if s.limits.Max+s.limits.Overhead <= ethernetMTU {
		s.planProbe(now, s.limits.Max)
	}
}

// StartComplete begins in Complete, on a path that is trusted to carry the largest size. Nothing is
// probed until a black hole says that it does not.
func (s *Search) StartComplete() {
	s.ceiling, s.reportedSize = 0, 0
	s.state, s.plpmtu, s.probeCount, s.sentProbes = Complete, s.limits.Max, 0, nil
	s.timerAt, s.probeInFlight = rawio.Never, false
}

// skipsBase reports whether the base size is tried by a larger one.
func (s *Search) skipsBase() bool { return s.state == Base && s.probedSize > s.limits.Base }

// Stop ends the search: the path is down. The size stays until Start, unless a report says that it
// is too large. Outstanding DATA is sent on at that size, and may be all that detects that the path
// is up again.
func (s *Search) Stop() {
	s.state, s.timerAt, s.probeInFlight = Disabled, rawio.Never, false
	s.sentProbes = nil
}

// enterBase enters Base.
func (s *Search) enterBase(now rawio.Time) {
	s.state, s.plpmtu, s.probeCount = Base, s.limits.Base, 0
	s.sentProbes = nil // what passed before may not pass now
	s.planProbe(now, s.limits.Base)
}

// planProbe schedules a probe of that size as soon as one may be sent (RFC 8899 section 8).
func (s *Search) planProbe(now rawio.Time, size int) {
	s.probedSize, s.probeInFlight, s.timerAt = size, false, max(now, s.nextProbeAt)
}

// ProbeDue returns the size of the probe to send now, 0 for none.
func (s *Search) ProbeDue(now rawio.Time) int {
	if s.probeInFlight || s.state == Disabled || s.state == Complete || now < s.timerAt {
		return 0
	}
	return s.probedSize
}

// ProbeSent notes that the due probe was sent with that nonce, and starts PROBE_TIMER. rtt is the
// path's round trip time, timer how long an answer takes at most.
func (s *Search) ProbeSent(now rawio.Time, nonce uint64, rtt, timer time.Duration) {
	s.probeInFlight = true
	if s.sentProbes == nil {
		s.sentProbes = new([maxSentProbes]sentProbe)
	}
	s.sentProbes[s.numSent%maxSentProbes] = sentProbe{nonce, s.probedSize, now}
	s.numSent++
	s.nextProbeAt = now.Add(rtt)
	s.timerAt = now.Add(max(timer, minProbeTimer))
}

// ProbeAcked notes that the peer has answered the probe with that nonce and size. It returns the
// round trip time. ok is false for an unexpected answer: a second one, or one to a probe of an
// earlier search, or to none.
func (s *Search) ProbeAcked(now rawio.Time, nonce uint64, size int) (rtt time.Duration, ok bool) {
	if s.sentProbes == nil {
		return 0, false
	}
	for i := range s.sentProbes {
		p := &s.sentProbes[i]
		if p.size == 0 || p.size != size || p.nonce != nonce {
			continue
		}
		rtt = now.Sub(p.sentAt)
		if *p = (sentProbe{}); *s.sentProbes == ([maxSentProbes]sentProbe{}) {
			s.sentProbes = nil
		}
		if i == (s.numSent-1)%maxSentProbes {
			s.probeInFlight, s.nextProbeAt = false, now // it took a round trip
		}
		s.handlePassed(now, size)
		return rtt, true
	}
	return rtt, false
}

// handlePassed handles an answer, perhaps to a probe that was given up.
func (s *Search) handlePassed(now rawio.Time, size int) {
	if size > s.limits.Max || size <= s.plpmtu && s.state != Base {
		return // also in Error, where the size is less than that of every probe
	}
	s.state, s.plpmtu, s.probeCount = Searching, size, 0
	if s.plpmtu >= s.ceiling {
		s.ceiling = 0
	}
	if s.probedSize <= size { // else that probe goes on, or is next
		s.continueSearch(now)
	}
}

// HandleTimeout runs the timer that has expired at now, if one has.
func (s *Search) HandleTimeout(now rawio.Time) {
	switch {
	case now < s.timerAt:
	case s.probeInFlight:
		s.handleProbeLost(now)
	case s.state == Complete:
		s.state, s.ceiling = Searching, 0
		s.continueSearch(now)
	}
}

// handleProbeLost is the expiry of PROBE_TIMER.
func (s *Search) handleProbeLost(now rawio.Time) {
	s.probeCount++
	switch {
	case s.skipsBase():
		s.ceiling, s.ceilingIsSure = s.probedSize, false
		s.dropProbe(now)
	case s.state == Base:
		if s.probeCount < maxProbes {
			s.planProbe(now, s.probedSize)
		} else {
			s.enterError(now)
		}
	case s.state == Error:
		s.errorBackoff = min(2*s.errorBackoff, maxErrorInterval)
		s.planProbe(now.Add(s.errorBackoff), s.probedSize)
	default:
		s.ceilingIsSure = s.probedSize == s.ceiling
		s.ceiling = s.probedSize
		if s.probeCount < maxProbes {
			s.continueSearch(now)
		} else {
			s.enterComplete(now)
		}
	}
}

// enterError enters Error: Min is used until a probe of Base passes.
func (s *Search) enterError(now rawio.Time) {
	s.state, s.plpmtu, s.errorBackoff = Error, s.limits.Min, minProbeTimer
	s.ceiling, s.reportedSize = 0, 0
	s.planProbe(now.Add(s.errorBackoff), s.limits.Base)
}

// enterComplete enters Complete.
func (s *Search) enterComplete(now rawio.Time) {
	s.state, s.probeInFlight, s.probeCount, s.reportedSize = Complete, false, 0, 0
	s.timerAt = now.Add(raiseInterval)
}

// continueSearch goes on with the search.
func (s *Search) continueSearch(now rawio.Time) {
	if n := s.nextCandidate(); n != 0 {
		s.planProbe(now, n)
	} else {
		s.enterComplete(now)
	}
}

// dropProbe goes on without the probe under way.
func (s *Search) dropProbe(now rawio.Time) {
	if s.skipsBase() {
		s.probeCount = 0
		s.planProbe(now, s.limits.Base)
	} else {
		s.continueSearch(now)
	}
}

// HandleTooBig handles a validated report that the path carries packets of at most that size (RFC
// 8899 section 4.6.2).
func (s *Search) HandleTooBig(now rawio.Time, size int) {
	size &^= 3
	switch {
	case size < s.limits.Min: // which passes everywhere
	case s.state == Disabled: // nothing is probed, but what is still sent may be too long
		s.plpmtu = min(s.plpmtu, size)
	case size >= s.plpmtu:
		if !s.probeInFlight || size >= s.probedSize || s.state != Searching && !s.skipsBase() {
			return // of no probe that is under way
		}
		s.lowerCeiling(size)
		s.dropProbe(now)
	case size >= s.limits.Base:
		s.lowerCeiling(size)
		s.enterBase(now)
	case s.state == Base:
		s.enterError(now)
	default:
		s.Start(now)
	}
}

// lowerCeiling notes that nothing above size passes and that size may be worth a probe.
func (s *Search) lowerCeiling(size int) {
	s.ceiling, s.ceilingIsSure, s.reportedSize = size+4, true, size
}

// HandleBlackHole handles that packets larger than Min keep being lost (RFC 8899 section 4.3).
func (s *Search) HandleBlackHole(now rawio.Time) {
	switch s.state {
	case Searching, Complete:
		s.Start(now)
	case Disabled: // what is sent again and again is to arrive
		s.plpmtu = s.limits.Min
	}
}

// SetMax changes MAX_PLPMTU, which the search uses when it next starts. A size above it ends at
// once.
func (s *Search) SetMax(n int) {
	s.limits.Max = max(n&^3, s.limits.Base)
	s.plpmtu = min(s.plpmtu, s.limits.Max)
}

// HandleLinkRefusal handles that the local link has refused a packet of that size, and takes at
// most most octets now (RFC 8899 section 3, item 1). What is sent is shorter from now on. If the
// link says that it takes more, it does not know yet; then the search begins anew.
func (s *Search) HandleLinkRefusal(now rawio.Time, size, most int) {
	switch {
	case most >= size:
		if s.state == Disabled {
			s.plpmtu = min(s.plpmtu, s.limits.Base)
		} else {
			s.Start(now)
		}
		s.ceiling, s.ceilingIsSure = size&^3, true
	case most < s.limits.Base:
		s.SetMax(most)
		s.HandleTooBig(now, most)
	default:
		s.SetMax(most)
		if (s.state == Searching || s.skipsBase()) && s.probedSize > s.limits.Max { // or an answer would never come
			s.dropProbe(now)
		}
	}
}

// ShiftSizes makes all sizes larger by d octets: the headers in front of a packet have become
// shorter by that. A probe in flight is sent again.
func (s *Search) ShiftSizes(now rawio.Time, d int) {
	s.limits.Min, s.limits.Base, s.limits.Max, s.limits.Overhead = s.limits.Min+d, s.limits.Base+d, s.limits.Max+d,
		s.limits.Overhead-d
	s.plpmtu += d
	if s.ceiling != 0 {
		s.ceiling += d
	}
	if s.reportedSize != 0 {
		s.reportedSize += d
	}
	s.sentProbes = nil
	if s.probeInFlight {
		s.timerAt = now
	}
	s.planProbe(s.timerAt, s.probedSize+d)
}
