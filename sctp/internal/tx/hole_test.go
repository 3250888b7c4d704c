package tx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestLostLongPacketsAreABlackHoleAndOthersNot(t *testing.T) {
	for _, row := range []struct {
		name  string
		base  int
		story func(*lab)
		want  bool
	}{
		{"long packets lost once: no", 500, func(l *lab) {
			l.flight(1)
			l.timeout()
		}, false},
		{"long packets lost twice in a row: yes", 500, func(l *lab) { // req 8899-4.3-1, 8899-4.3-2
			l.flight(1)
			l.timeout()
			l.transmit()
			l.timeout()
		}, true},
		{"short chunks in a long packet lost twice: yes", 500, func(l *lab) {
			l.queue(6, 100)
			l.transmit()
			l.timeout()
			l.transmit()
			l.timeout()
		}, true},
		{"short packets lost: no", 500, func(l *lab) {
			l.queue(1, 100)
			for range 4 {
				l.transmit()
				l.timeout()
			}
		}, false},
		{"nothing is suspected without a base", 0, func(l *lab) {
			l.queue(1, full)
			for range 4 {
				l.transmit()
				l.timeout()
			}
		}, false},
		{"a long packet acknowledged in between: no", 500, func(l *lab) {
			l.flight(2)
			l.timeout()
			l.transmit()
			l.sack(0, gap{2, 2})
			l.timeout()
		}, false},
		{"a short packet acknowledged in between: yes", 500, func(l *lab) {
			l.queue(1, full)
			l.queue(1, 100)
			l.path(0).mtu = 1012
			l.transmit()
			l.timeout()
			l.sack(0, gap{2, 2})
			l.transmit()
			l.timeout()
		}, true},
		{"zero window probes lost: no", 500, func(l *lab) {
			l.sackFor(makeSack(0, 0))
			l.flight(1)
			l.now = l.s.NextTimeout()
			for range 4 {
				l.transmit()
				l.timeout()
			}
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, 1)
			l.path(0).Least = row.base
			row.story(l)
			check.Equal(t, "BlackHole", l.path(0).BlackHole(), row.want)
			l.path(0).ForgetHoles()
			check.That(t, !l.path(0).BlackHole(), "not forgotten")
		})
	}
}

func TestChunkAboveAShrunkenMTUIsFragmentedByIP(t *testing.T) {
	// req 9260-6.10-4: whole
	l := newLab(t, 1)
	l.queue(1, full)
	l.queue(1, 300)
	l.transmit()
	l.path(0).SetMTU(600)
	l.timeout()
	pkts := l.transmit()
	// req 8899-4.4-1, 9260-6.9-4
	must.That(t, len(pkts) == 1 && pkts[0].Len() == 12+counted && pkts[0].Fragment == 620,
		"%d packets, the first of %d octets, to be fragmented to %d", len(pkts), pkts[0].Len(), pkts[0].Fragment)
	l.sack(1)
	for _, p := range l.transmit() {
		check.That(t, p.Len() <= 600 && p.Fragment == 0, "a packet of %d octets, to be fragmented to %d", p.Len(), p.Fragment) // req 8899-3-1
	}
}

func TestMTUDoesNotMoveCwnd(t *testing.T) {
	l := newLab(t, 1)
	l.flight(5)
	l.sack(2)
	cwnd := l.path(0).cc.Window()
	l.path(0).SetMTU(65000)
	l.cwnd("raised", cwnd) // req 8899-3-11
	l.path(0).SetMTU(600)
	l.cwnd("lowered", cwnd)
}

func TestUnconfirmedPathsDoNotLimitChunks(t *testing.T) {
	l := newLab(t, 2)
	want := l.s.MaxPayload()
	l.path(1).SetMTU(600)
	check.Equal(t, "MaxPayload with a path of 600 octets", l.s.MaxPayload(), 600-12-wire.SackLen(0, 0)-wire.DataHeaderLen)
	l.path(1).State = Unconfirmed
	check.Equal(t, "MaxPayload while that path is unconfirmed", l.s.MaxPayload(), want)
	l.s.cfg.MaxSegment = 1
	check.Equal(t, "MaxPayload with Config.MaxSegment", l.s.MaxPayload(), 1)
}
