package tx

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/wire"
)

// With nothing in flight and a window smaller than the next chunk, the chunk is cut to the window
// after 200 ms where that is worth it. Else it waits an RTO, and goes as a zero window probe.
func TestChunkIsCutToTheWindow(t *testing.T) {
	const half = full / 2
	mtu := func(n int) func(*lab) { return func(l *lab) { l.path(0).SetMTU(n) } }
	nothing := func(*lab) {}
	for _, row := range []struct {
		name            string
		largest, window uint32
		with            func(*lab)
		want            string // when chunks go, in ms, and how long they are
	}{
		// req 9260-6.1-1, 9260-6.1-5
		{"half a chunk", 1 << 20, half, nothing, "200:484"},
		{"less", 1 << 20, half - 1, nothing, "1000:968"},
		{"a whole one", 1 << 20, full, nothing, "0:968"},
		{"all but one octet of it", 1 << 20, full - 1, nothing, "200:967"},
		{"closed", 1 << 20, 0, nothing, "1000:968"},
		{"half of the largest window", 6000, 3000, mtu(9012), "200:3000"},
		{"less than that", 6000, 2999, mtu(9012), "1000:6000"},
		{"half of the smallest window that RFC 9260 allows", 1, 750, mtu(9012), "200:750"},
		{"never more than an octet", 1, 1, mtu(9012), "1000:6000"},
		{"no message is to be cut", 1 << 20, half, func(l *lab) { l.s.cfg.NoFragments = true }, "1000:968"},
		{"the letter", 1 << 20, half, func(l *lab) { l.s.cfg.Letter = true }, "1000:968"},
		{"a message of a Source", 1 << 20, half, func(l *lab) {
			l.s.queue, l.s.slot, l.s.unsent, l.s.held = queue{}, slot{}, 0, 0
			u := &supply{n: 1, size: full}
			l.s.SetUpper(u, u)
		}, "1000:968"},
		{"an RTO shorter than that", 1 << 20, half, func(l *lab) { l.path(0).est.rto = 100 * time.Millisecond }, "100:484"},
		{"the rest of a message", 1 << 20, half, func(l *lab) { l.s.slot.off = 100 }, "200:484"},
	} {
		l := newLab(t, 1)
		l.s.cfg.Letter = false
		l.s.maxRwnd = 0
		l.s.SetPeer(row.largest, 16)
		l.s.setRwnd(row.window)
		l.queue(1, 6000)
		row.with(l)
		got := []string{}
		for len(got) == 0 && l.now < 2*second {
			for _, p := range l.transmit() {
				got = append(got, fmt.Sprint(l.now/ms, ":", len(chunks(t, p)[0].Payload())))
			}
			l.now = max(l.now, min(l.s.NextTimeout(), 2*second))
		}
		check.Equal(t, row.name, strings.Join(got, " "), row.want)
	}
}

// What the window does while a chunk waits to be cut.
func TestChunkWaitsToBeCut(t *testing.T) {
	const half = full / 2
	begin := func() *lab {
		l := newLab(t, 1)
		l.s.cfg.Letter = false
		l.s.setRwnd(half)
		l.queue(2, full)
		l.expect("nothing fits", "")
		return l
	}
	window := func(l *lab, n uint32) { l.sackFor(makeSack(l.s.CumTSN(), n)) }
	at := func(l *lab, when rawio.Time) *lab { l.now = when; return l }

	l := begin()
	at(l, 199*ms).expect("199 ms", "")
	at(l, 200*ms).expect("the beginning of the first message", "1")
	r := l.s.ledger.rec(1)
	check.That(t, r.wire&wire.FlagE == 0 && r.wire&wire.FlagB != 0 && r.wire&wire.FlagI != 0 && !l.s.probing, "flags %#x, probing %t", r.wire, l.s.probing)
	check.That(t, l.s.NextTimeout() > l.now, "a timer of %v at %v, although the chunk has gone", l.s.NextTimeout(), l.now)
	at(l, 210*ms).expect("nothing more while that is in flight", "")
	l.sackFor(makeSack(1, half))
	l.expect("the rest of it fits", "2") // 484 octets
	l.sackFor(makeSack(2, half))
	l.expect("the second message does not", "")
	at(l, 409*ms).expect("199 ms later", "")
	at(l, 410*ms).expect("its beginning", "3")

	l = begin()
	at(l, 100*ms)
	window(l, full)
	l.expect("the window opens: the whole message", "1")
	check.That(t, l.s.ledger.rec(1).wire&wire.FlagE != 0, "it is cut although the window has opened")

	l = begin()
	p := l.path(0)
	p.ObserveRTT(400 * time.Millisecond)
	p.est.trip = shortest{of: 400 * time.Millisecond, n: 1}
	p.due = 300 * ms
	at(l, 200*ms).expect("a packet that is paced", "")
	check.Equal(t, "timer of a packet that is paced", l.s.NextTimeout(), p.due)
	at(l, p.due).expect("its time has come", "1")

	l = begin()
	at(l, 150*ms)
	window(l, half-1)
	l.expect("the window becomes silly", "")
	at(l, 200*ms).expect("200 ms", "")
	at(l, 1149*ms).expect("less than an RTO since", "")
	at(l, 1150*ms).expect("a zero window probe", "1")
	check.That(t, l.s.probing && l.s.ledger.rec(1).size == full, "no probe: %+v", l.s.ledger.rec(1))
}
