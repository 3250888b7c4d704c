package tx

import (
	"testing"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// narrowLab has a window of so many octets, and paths that have proved a round trip of 40 ms, the
// second 400.
func narrowLab(t *testing.T, window uint32) *senderLab {
	l := newLab(t, 2)
	l.s.cfg.StrictRFC, l.s.cfg.Rand = false, func() uint32 { return 1<<32 - 1 }
	for i, p := range l.s.paths {
		p.cc = newFixedWindow(1 << 20)
		p.BoundProvedRTT([]time.Duration{40 * time.Millisecond, 400 * time.Millisecond}[i])
	}
	l.s.SetPeer(window, 16)
	return l
}

// ackAllEarly has all that was sent acknowledged at once, until nothing more goes, and returns how
// many packets went.
func (l *senderLab) ackAllEarly(window uint32) (n int) {
	l.t.Helper()
	for {
		k := len(l.transmit())
		if n += k; k == 0 {
			return n
		}
		must.Do(l.s.HandleSack(l.now, makeSack(l.s.NextTSN()-1, window)))(l.t)
	}
}

// What was sent counts against a narrow window until it can have come back, by the path that it
// went, whatever is acknowledged.
func TestNarrowWindowOpensWithTheProvedTrip(t *testing.T) {
	const window = 2*full + 10
	for _, tt := range []struct {
		name   string
		change func(l *senderLab)
		packet []int         // that go after each trip
		trip   time.Duration // of the path that is used then
	}{
		{"one path", func(l *senderLab) {}, []int{2, 2, 2}, 40 * time.Millisecond},
		{"the farther path", func(l *senderLab) { l.s.SetPrimary(1) }, []int{0, 0, 0, 0, 0, 0, 0, 0, 0, 2}, 40 * time.Millisecond},
		{"the peer has proved to be nearer", func(l *senderLab) { l.pathAt(0).BoundProvedRTT(20 * time.Millisecond) }, []int{0, 2, 2}, 20 * time.Millisecond},
		{"what is idle is given back", func(l *senderLab) { l.s.delivered.at = l.now; l.s.Trim() }, []int{2, 2}, 40 * time.Millisecond},
		{"the peer has proved to be near", func(l *senderLab) { l.pathAt(0).BoundProvedRTT(time.Millisecond) }, []int{400}, time.Millisecond},
		{"by the letter", func(l *senderLab) { l.s.cfg.StrictRFC = true }, []int{400}, time.Millisecond},
		{"nobody draws", func(l *senderLab) { l.s.cfg.Rand = nil }, []int{400}, time.Millisecond},
	} {
		l := narrowLab(t, window)
		l.enqueueMany(400, full)
		if tt.name == "the farther path" {
			tt.change(l)
		}
		check.Equal(t, tt.name+": packets at first", l.ackAllEarly(window), 2)
		check.That(t, l.pathAt(0).ackedTooSoon != (tt.name == "the farther path") &&
			l.s.NextTimeout() <= l.now.Add(400*time.Millisecond),
			"%s: it is not asked how far it is, or when no timer says", tt.name)
		tt.change(l)
		for i, want := range tt.packet {
			l.now = l.now.Add(tt.trip - 1)
			if tt.trip > time.Millisecond {
				check.Equal(t, tt.name+": packets before the trip is over", l.ackAllEarly(window), 0)
			}
			l.now++
			if got := l.ackAllEarly(window); want < 400 {
				check.Equal(t, tt.name+": packets behind trip", got, want)
			} else {
				check.That(t, got > 300, "%s: %d packets behind trip %d", tt.name, got, i)
			}
		}
	}
}

// Many short messages are remembered in few spans, and never for less than the trip; the memory is
// counted, and given back where the window is wide, or nothing is left.
func TestSpansOfANarrowWindow(t *testing.T) {
	const window = 8 * full
	l := narrowLab(t, window)
	l.s.cfg.NoDelay = true
	begun, sent := l.now, 0
	for l.now < begun.Add(4*40*time.Millisecond) {
		l.enqueueMany(1, 10)
		l.ackAllEarly(window)
		sent = int(l.s.Stats().Octets)
		l.now += ms / 20
		most := window * int(1+l.now.Sub(begun)/(40*time.Millisecond))
		must.That(t, sent <= most, "%d octets in %v, where %d are allowed", sent, l.now.Sub(begun), most)
	}
	check.That(t, sent >= 3*window, "no more than %d octets", sent)
	check.That(t, l.s.window.sentSpans.length <= maxSentSpans && l.s.window.sentSpans.length > maxExactSpans,
		"%d spans",
		l.s.window.sentSpans.length)
	held, spans := l.s.Held(), l.s.window.sentSpans
	l.s.window.sentSpans = nil
	check.Equal(t, "octets for them", held-l.s.Held(), int(unsafe.Sizeof(*spans)))
	l.s.window.sentSpans = spans
	l.now = l.now.Add(time.Second)
	l.s.delivered.at = l.now
	for l.s.queue.waiting.length > 0 || l.s.queue.current.loaded {
		l.ackAllEarly(window)
		l.now = l.now.Add(40 * time.Millisecond)
	}
	l.s.delivered.at = l.now.Add(time.Second)
	l.s.Trim()
	check.That(t, l.s.window.sentSpans == nil, "they are kept when all is over")
	l.enqueueMany(1, 10)
	l.ackAllEarly(window)
	check.That(t, l.s.window.sentSpans != nil, "nothing is remembered")
	l.s.SetPeer(1<<20, 16)
	l.enqueueMany(1, 10)
	l.ackAllEarly(1 << 20)
	check.That(t, l.s.window.sentSpans == nil, "they are kept with a wide window")
}

// A span counts until a trip is over behind the last that was sent in it, not behind its first.
func TestASpanEndsWithItsLast(t *testing.T) {
	const trip = 64 * time.Millisecond
	var l sentSpans
	now := rawio.Time(time.Second)
	for range maxExactSpans { // of which each is one of its own, however close they are
		l.add(now, trip, 1)
		now = now.Add(1)
	}
	begun := now
	l.add(now, trip, 10)
	now = now.Add(trip/64 - 2) // and it is of the same span
	l.add(now, trip, 20)
	last := l.entries[(l.head+l.length-1)%maxSentSpans]
	check.That(t, last.octets >= 20 && last.earliestAckAt == now.Add(trip),
		"the last span has %d octets, until %v behind its last", last.octets, last.earliestAckAt.Sub(now))
	l.dropElapsed(begun.Add(trip))
	check.That(t, l.length == 1 && l.octets == last.octets,
		"%d spans and %d octets count when a trip is over behind the first of them", l.length, l.octets)
	check.Equal(t, "spans when it is over behind the last", l.dropElapsed(now.Add(trip)), 0)
	check.Equal(t, "octets", l.octets, 0)
}
