package pmtud

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// The lab's sizes are IP-level minus 20, as for IPv4 without UDP.
const (
	rtt    = 40 * time.Millisecond
	second = rawio.Time(time.Second)
)

// lab is a search over a path that carries packets of at most mtu octets at IP level.
type lab struct {
	t    *testing.T
	s    Search
	now  rawio.Time
	mtu  int
	ptb  bool         // the network reports what is too big
	lose map[int]bool // numbers of probes that are lost whatever their size
	log  []string     // probes: "+1500" arrived, "-1500" did not; IP-level
	n    int
	at   []rawio.Time // when the probes were sent
}

func newLab(t *testing.T, link, path int) *lab {
	l := &lab{t: t, now: second, mtu: path, s: New(Limits{Min: 556, Base: 1200, Max: link - 20, Overhead: 20})}
	l.s.Start(l.now)
	return l
}

// stepOnce sends the probe that is due, or lets the next timer expire; it returns false when that
// is later than end.
func (l *lab) stepOnce(end rawio.Time) bool {
	size := l.s.ProbeDue(l.now)
	if size == 0 {
		if l.s.Deadline() > end {
			return false
		}
		l.now = max(l.now, l.s.Deadline())
		l.s.HandleTimeout(l.now)
		return true
	}
	l.n++
	l.s.ProbeSent(l.now, uint64(l.n), rtt, 200*time.Millisecond)
	l.at = append(l.at, l.now)
	switch {
	case size+20 > l.mtu:
		l.log = append(l.log, fmt.Sprint("-", size+20))
		if l.ptb {
			l.now = l.now.Add(rtt / 2)
			l.s.HandleTooBig(l.now, l.mtu-20)
		}
	case l.lose[l.n]:
		l.log = append(l.log, fmt.Sprint("-", size+20))
	default:
		l.log = append(l.log, fmt.Sprint("+", size+20))
		l.now = l.now.Add(rtt)
		d, ok := l.s.ProbeAcked(l.now, uint64(l.n), size)
		must.That(l.t, ok && d == rtt, "the answer to the probe of %d octets: %v after %v", size, ok, d)
	}
	return true
}

// runFor lets d pass and returns the probes of that time.
func (l *lab) runFor(d time.Duration) string {
	end := l.now.Add(d)
	l.log = nil
	for range 1000 {
		if !l.stepOnce(end) {
			l.now = end
			return strings.Join(l.log, " ")
		}
	}
	l.t.Fatal("does not come to rest")
	return ""
}

func (l *lab) checkState(state State, size int) {
	l.t.Helper()
	check.That(l.t, l.s.State() == state && l.s.Size()+20 == size,
		"%v with %d octets, want %v with %d", l.s.State(), l.s.Size()+20, state, size)
}

func TestSearchFindsWhatThePathCarries(t *testing.T) {
	// req 8899-5.2-2, 8899-5.2-3, 8899-5.2-4, 8899-5.1.2-1, 8899-5.3.2-1
	for _, row := range []struct {
		name       string
		link, path int
		ptb        bool
		probes     string
		size       int
	}{
		{"the whole link: two round trips", 1500, 1500, false, "+1220 +1500", 1500},
		{"loopback: two round trips", 65535, 65535, false, "+1220 +65532", 65532},
		{"a link of less than the base size: that is all", 576, 576, false, "+576", 576},
		{"jumbo link, Ethernet behind it", 9000, 1500, false, "+1220 -9000 +1420 +1480 +1492 +1500 -4352 -2924 -2212", 1500},
		{"PPPoE", 1500, 1492, false, "+1220 -1500 +1400 +1448 +1480 +1492 -1500", 1492},
		{"a tunnel", 1500, 1420, false, "+1220 -1500 +1400 -1448 +1420 -1448", 1420},
		{"IPv6's least", 9000, 1280, false, "+1220 -9000 -1420 +1280 -1400 -1340 -1340", 1280},
		{"an MTU that nobody has", 1500, 1444, false, "+1220 -1500 +1400 -1448 +1420 -1448", 1420},
		{"reported: at once", 9000, 1444, true, "+1220 -9000 +1444", 1444},
		{"reported twice on the way", 65535, 1280, true, "+1220 -65532 +1280", 1280},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, row.link, row.path)
			l.ptb = row.ptb
			check.Equal(t, "probes", l.runFor(time.Minute), row.probes)
			l.checkState(Complete, row.size)
			got := l.runFor(9 * time.Minute)
			check.That(t, got == "", "probes %s when the search is complete", got) // req 8899-5.2-6, 8899-5.1.1-4
		})
	}
}

// Where the largest size is one that most paths carry it is tried first. Whatever comes of it, the
// base size is tried before the search is over.
func TestLeap(t *testing.T) {
	for _, row := range []struct {
		name       string
		link, path int
		ptb        bool
		before     func(*lab) // when the first probe is out
		probes     string
		size       int
	}{
		{"Ethernet", 1500, 1500, false, nil, "+1500", 1500},
		{"jumbo frames", 9000, 9000, false, nil, "+1220 +9000", 9000},
		{"the least link", 576, 576, false, nil, "+576", 576},
		{"lost", 1500, 1492, false, nil, "-1500 +1220 +1400 +1448 +1480 +1492 -1500", 1492},
		{"reported", 1500, 1420, true, nil, "-1500 +1220 +1420", 1420},
		// req 8899-5.2-2
		{"less than the base size", 1500, 1000, false, nil,
			"-1500 -1220 -1220 -1220 -1220 -1220 -1220 -1220 -1220 -1220", 576},
		{"refused by the link", 1500, 1400, false, func(l *lab) { l.s.HandleLinkRefusal(l.now, 1480, 1380) }, "-1500 +1220 +1400", 1400},
	} {
		l := newLab(t, row.link, row.path)
		l.s.Stop()
		l.s.StartAtMax(l.now)
		l.ptb = row.ptb
		if row.before != nil {
			l.stepOnce(l.now)
			row.before(l)
		}
		log := l.log
		check.Equal(t, row.name+": probes", strings.Join(append(log, strings.Fields(l.runFor(2*time.Minute))...), " "),
			row.probes)
		check.Equal(t, row.name+": octets", l.s.Size()+20, row.size)
	}
	l := newLab(t, 1500, 1500)
	l.s.Stop()
	l.s.StartAtMax(l.now)
	size := l.s.ProbeDue(l.now)
	l.s.ProbeSent(l.now, 7, rtt, 0)
	l.s.HandleTimeout(l.s.Deadline())
	l.checkState(Base, 1220)
	_, ok := l.s.ProbeAcked(l.now.Add(2*time.Second), 7, size)
	check.That(t, ok, "a late answer does not count")
	l.checkState(Complete, 1500)
}

func TestSearchStartsAgainAfter600Seconds(t *testing.T) {
	l := newLab(t, 9000, 1500)
	l.runFor(time.Minute)
	l.checkState(Complete, 1500)
	check.Equal(t, "octets of a probe before the search has begun again", l.s.ProbeDue(l.s.Deadline()), 0)
	l.mtu = 9000
	done := l.at[len(l.at)-1].Add(time.Second) // the last probe was given up
	l.runFor(20 * time.Minute)
	again := l.at[len(l.at)-1]
	// req 8899-5.1.1-3, 8899-5.2-5
	check.That(t, again.Sub(done) == 600*time.Second, "searches again after %v", again.Sub(done))
	l.checkState(Complete, 9000)
	l.s.SetMax(65000)
	l.mtu = 65535
	check.Equal(t, "probes after the link's MTU has grown", l.runFor(20*time.Minute), "+65020")
	l.s.SetMax(3000 - 20)
	l.checkState(Complete, 3000)
	l = newLab(t, 1596, 1500)
	l.runFor(time.Minute)
	check.Equal(t, "probes between what passes and what does not, 96 octets apart", l.runFor(10*time.Minute),
		"-1596 -1548 -1548")
}

func TestProbesAreSpacedByTimers(t *testing.T) {
	l := newLab(t, 9000, 1100)
	l.runFor(time.Hour)
	for i, at := range l.at[1:] {
		d := at.Sub(l.at[i])
		check.That(t, d >= time.Second, "%v after a probe that was lost", d) // req 8899-5.1.1-1
	}
	l = newLab(t, 9000, 1444)
	l.ptb = true // reports come after half a round trip
	l.runFor(time.Minute)
	must.Equal(t, "probes", len(l.at), 3)
	if d := l.at[2].Sub(l.at[1]); d != rtt { // req 8899-8-1
		t.Errorf("%v after the one that was reported, want a round trip", d)
	}
	// PROBE_TIMER is what an answer takes where that is longer.
	s := New(Limits{Min: 556, Base: 1200, Max: 1480, Overhead: 20})
	s.Start(0)
	s.ProbeSent(0, 1, time.Second, 3*time.Second)
	check.Equal(t, "PROBE_TIMER", s.Deadline(), 3*second)
	// Where it is less than a round trip, the next probe waits for that.
	s.Start(0)
	s.ProbeSent(0, 1, 3*time.Second, time.Second)
	s.HandleTimeout(second)
	// req 8899-8-1
	check.That(t, s.ProbeDue(second) == 0 && s.ProbeDue(3*second) == 1200,
		"probes of %d and %d octets due 1 and 3 s after the one before", s.ProbeDue(second), s.ProbeDue(3*second))
	// An answer that comes early has taken a round trip: the next probe need not wait, however many
	// there were.
	s = New(Limits{Min: 556, Base: 1200, Max: 8980, Overhead: 20})
	now := rawio.Time(0)
	s.Start(now)
	for n := uint64(1); s.State() != Complete; n++ {
		size := s.ProbeDue(now)
		must.That(t, size != 0, "probe %d waits for %v", n, s.Deadline().Sub(now))
		if s.ProbeSent(now, n, time.Second, 2*time.Second); size > 1500 {
			now = s.Deadline()
			s.HandleTimeout(now)
		} else {
			now = now.Add(10 * time.Millisecond)
			s.ProbeAcked(now, n, size)
		}
	}
}

func TestErrorUntilTheBaseSizePasses(t *testing.T) {
	l := newLab(t, 1500, 1100)
	got := l.runFor(3*time.Second + rtt)
	check.That(t, got == "-1220 -1220 -1220", "probes %s", got) // req 8899-5.2-2

	l.checkState(Error, 576) // req 8899-5.2-7: conservative, and what every path carries
	l.runFor(10 * time.Minute)
	l.checkState(Error, 576)
	check.Equal(t, "probes in two minutes and ten seconds", l.runFor(130*time.Second), "-1220 -1220")
	l.mtu = 1500
	l.runFor(time.Minute + 5*time.Second)
	l.checkState(Complete, 1500)
}

func TestReportsAreTakenWithinTheirBounds(t *testing.T) {
	// Searching: 1400 passed, 1448 is under way.
	searching := func(t *testing.T) *lab {
		l := newLab(t, 1500, 1400)
		for len(l.log) < 4 {
			l.stepOnce(rawio.Never)
		}
		must.Equal(t, "probes", strings.Join(l.log, " "), "+1220 -1500 +1400 -1448")
		return l
	}
	// 1400 passed, 1448 is to be next.
	between := func(t *testing.T) *lab {
		l := newLab(t, 1500, 1400)
		for len(l.log) < 3 {
			l.stepOnce(rawio.Never)
		}
		return l
	}
	complete := func(t *testing.T) *lab {
		l := newLab(t, 1500, 1500)
		l.runFor(time.Second)
		return l
	}
	confirming := func(t *testing.T) *lab {
		l := newLab(t, 1500, 100)
		l.stepOnce(rawio.Never)
		return l
	}
	failed := func(t *testing.T) *lab {
		l := newLab(t, 1500, 100)
		l.runFor(4 * time.Second)
		return l
	}
	for _, row := range []struct {
		name     string
		lab      func(*testing.T) *lab
		report   int // IP-level
		state    State
		size     int
		next     string // the next probe where that is asked for
		nextPath int    // what the path carries from now on
	}{
		// req 8899-4.6.2-2
		{"searching, at the probed size: discarded", searching, 1448, Searching, 1400, "", 0},
		// req 8899-3-8, 8899-3-7
		{"searching, above the probed size: discarded", searching, 9000, Searching, 1400, "", 0},
		// req 8899-4.6.2-2
		{"searching, below what every path carries: discarded", searching, 572, Searching, 1400, "", 0},
		// req 8899-4.6.2-4, 8899-6.2.1-5
		{"searching, between: the next size", searching, 1424, Searching, 1400, "+1424", 1424},
		// req 8899-5.2-4
		{"searching, the present size: complete", searching, 1400, Complete, 1400, "", 0},
		{"searching, no probe under way: discarded", between, 1424, Searching, 1400, "-1448", 1424},
		{"searching, no probe under way, the present size: discarded", between, 1400, Searching, 1400, "", 0},
		{"searching, below the present size: base", searching, 1300, Base, 1220, "+1220 +1300", 1300},
		// req 8899-4.6.2-1, 8899-4.6.2-3
		{"complete, below the present size: base, then that", complete, 1300, Base, 1220, "+1220 +1300", 1300},
		{"complete, above: discarded", complete, 9000, Complete, 1500, "", 0},
		{"complete, the present size: discarded", complete, 1500, Complete, 1500, "", 0},
		{"complete, below the base size: base first", complete, 1000, Base, 1220, "", 0},
		{"complete, at the base size: that, and nothing above", complete, 1220, Base, 1220, "+1220", 1500},
		{"complete, a lie: found out", complete, 1300, Base, 1220, "+1220 +1300", 1500},
		{"base, below it: error", confirming, 1000, Error, 576, "", 0},
		{"base, above it: discarded", confirming, 1400, Base, 1220, "", 0},
		{"error: nothing new", failed, 1000, Error, 576, "", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			l.s.HandleTooBig(l.now, row.report-20)
			l.checkState(row.state, row.size)
			if row.next != "" {
				l.mtu = row.nextPath
				check.Equal(t, "then probes", l.runFor(500*time.Millisecond), row.next)
			}
		})
	}
	t.Run("disabled: the size follows, and nothing is probed", func(t *testing.T) {
		l := complete(t)
		l.s.Stop()
		l.s.HandleTooBig(l.now, 1280-20)
		l.checkState(Disabled, 1280)
		l.s.HandleTooBig(l.now, 1400-20)
		l.checkState(Disabled, 1280)
		l.s.HandleTooBig(l.now, 500) // less than every path carries
		l.checkState(Disabled, 1280)
		check.Equal(t, "probes while the path is down", l.runFor(time.Hour), "")
	})
}

func TestBlackHoleGoesBackToTheBaseSize(t *testing.T) {
	l := newLab(t, 9000, 9000)
	l.runFor(time.Second)
	l.mtu = 1280
	l.s.HandleBlackHole(l.now)
	l.checkState(Base, 1220) // req 8899-4.3-2, 8899-5.2-5
	l.runFor(time.Minute)
	l.checkState(Complete, 1280)
	l.mtu = 100
	l.s.HandleBlackHole(l.now)
	l.checkState(Base, 1220)
	l.runFor(2 * time.Second)
	l.s.HandleBlackHole(l.now) // which is being looked into
	l.runFor(2 * time.Second)
	l.checkState(Error, 576)
	l.s.HandleBlackHole(l.now)
	l.checkState(Error, 576)
}

func TestStopAndStart(t *testing.T) {
	l := newLab(t, 9000, 9000)
	l.runFor(time.Second)
	l.s.Stop() // req 8899-5.2-5
	l.checkState(Disabled, 9000)
	check.Equal(t, "probes while the path is down", l.runFor(time.Hour), "")
	l.s.HandleBlackHole(l.now) // what is sent nevertheless, T3-rtx being the only timer that runs, is to arrive
	l.checkState(Disabled, 576)
	l.s.Start(l.now)
	l.checkState(Base, 1220)
	l.runFor(time.Second)
	l.checkState(Complete, 9000)
}

func TestSizesAreThoseOfPackets(t *testing.T) {
	s := New(Limits{Min: 1237, Base: 1243, Max: 1451, Overhead: 40})
	check.Equal(t, "limits", s.Limits(), (Limits{1236, 1240, 1448, 40}))
	check.Equal(t, "the least of them", Limits{1300, 1243, 1451, 40}.roundDown().Min, 1240)
}

// FuzzSearch holds that, whatever comes, the size stays between the limits, a probe is never larger
// than the largest size, nothing but an acknowledgement raises the size, and the search comes to
// rest.
func FuzzSearch(f *testing.F) {
	f.Add([]byte{0, 0, 1, 200, 2, 0, 3, 4, 5, 6, 7})
	f.Fuzz(func(t *testing.T, script []byte) {
		s := New(Limits{Min: 556, Base: 1200, Max: 8980, Overhead: 20})
		now := rawio.Time(0)
		s.Start(now)
		for i := 0; i+1 < len(script); i += 2 {
			before, n := s.Size(), int(script[i+1])
			acked := false
			switch script[i] % 8 {
			case 0, 1:
				if size := s.ProbeDue(now); size > 0 {
					s.ProbeSent(now, uint64(n), time.Duration(n)*time.Millisecond, time.Second)
				}
			case 2, 3:
				var p sentProbe
				if s.sentProbes != nil {
					p = s.sentProbes[n%maxSentProbes]
				}
				_, acked = s.ProbeAcked(now, p.nonce, p.size)
			case 4:
				now = now.Add(time.Duration(n) * time.Second / 16)
				s.HandleTimeout(now)
			case 5:
				s.HandleTooBig(now, n*40)
			case 6:
				s.HandleBlackHole(now)
			case 7:
				if n%2 == 0 {
					s.Stop()
				} else {
					s.Start(now)
				}
			}
			up := s.State() == Base && s.Size() == s.limits.Base // from Error, or after Stop
			must.That(t, s.Size() <= before || acked || up, "size %d from %d without an acknowledgement", s.Size(),
				before)
			must.That(t, s.Size() >= 556 && s.Size() <= 8980 && s.probedSize <= 8980 && s.Size()%4 == 0,
				"size %d, probe %d", s.Size(), s.probedSize)
			must.That(t, s.State() == Disabled || s.Deadline() != rawio.Never, "%v without a timer", s.State())
		}
		s.Start(now)
		for range 200 {
			if s.State() == Complete {
				return
			}
			if now = max(now, s.Deadline()); s.ProbeDue(now) > 0 {
				size := s.ProbeDue(now)
				s.ProbeSent(now, uint64(size), 0, time.Second)
				if size <= 1400 {
					s.ProbeAcked(now, uint64(size), size)
				}
			}
			s.HandleTimeout(now)
		}
		t.Fatalf("still %v", s.State())
	})
}
