package tx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestLostLongPacketsAreABlackHoleAndOthersNot(t *testing.T) {
	for _, row := range []struct {
		name  string
		base  int
		story func(*senderLab)
		want  bool
	}{
		{"long packets lost once: no", 500, func(l *senderLab) {
			l.sendFull(1)
			l.runNextTimeout()
		}, false},
		{"long packets lost twice in a row: yes", 500, func(l *senderLab) { // req 8899-4.3-1, 8899-4.3-2
			l.sendFull(1)
			l.runNextTimeout()
			l.transmit()
			l.runNextTimeout()
		}, true},
		{"short chunks in a long packet lost twice: yes", 500, func(l *senderLab) {
			l.enqueueMany(6, 100)
			l.transmit()
			l.runNextTimeout()
			l.transmit()
			l.runNextTimeout()
		}, true},
		{"short packets lost: no", 500, func(l *senderLab) {
			l.enqueueMany(1, 100)
			for range 4 {
				l.transmit()
				l.runNextTimeout()
			}
		}, false},
		{"nothing is suspected without a base", 0, func(l *senderLab) {
			l.enqueueMany(1, full)
			for range 4 {
				l.transmit()
				l.runNextTimeout()
			}
		}, false},
		{"a long packet acknowledged in between: no", 500, func(l *senderLab) {
			l.sendFull(2)
			l.runNextTimeout()
			l.transmit()
			l.sack(0, gap{2, 2})
			l.runNextTimeout()
		}, false},
		{"a short packet acknowledged in between: yes", 500, func(l *senderLab) {
			l.enqueueMany(1, full)
			l.enqueueMany(1, 100)
			l.pathAt(0).mtu = 1012
			l.transmit()
			l.runNextTimeout()
			l.sack(0, gap{2, 2})
			l.transmit()
			l.runNextTimeout()
		}, true},
		{"zero window probes lost: no", 500, func(l *senderLab) {
			l.handleSack(makeSack(0, 0))
			l.sendFull(1)
			l.now = l.s.NextTimeout()
			for range 4 {
				l.transmit()
				l.runNextTimeout()
			}
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLab(t, 1)
			l.pathAt(0).BasePMTU = row.base
			row.story(l)
			check.Equal(t, "BlackHole", l.pathAt(0).IsBlackHole(), row.want)
			l.pathAt(0).ResetBlackHole()
			check.That(t, !l.pathAt(0).IsBlackHole(), "not forgotten")
		})
	}
}

func TestChunkAboveAShrunkenMTUIsFragmentedByIP(t *testing.T) {
	// req 9260-6.10-4: whole
	l := newLab(t, 1)
	l.enqueueMany(1, full)
	l.enqueueMany(1, 300)
	l.transmit()
	l.pathAt(0).SetMTU(600)
	l.runNextTimeout()
	pkts := l.transmit()
	// req 8899-4.4-1, 9260-6.9-4
	must.That(t, len(pkts) == 1 && pkts[0].Len() == 12+counted && pkts[0].Fragment == 620,
		"%d packets, the first of %d octets, to be fragmented to %d", len(pkts), pkts[0].Len(), pkts[0].Fragment)
	l.sack(1)
	for _, p := range l.transmit() {
		// req 8899-3-1
		check.That(t, p.Len() <= 600 && p.Fragment == 0, "a packet of %d octets, to be fragmented to %d", p.Len(),
			p.Fragment)
	}
}

func TestMTUDoesNotMoveCwnd(t *testing.T) {
	l := newLab(t, 1)
	l.sendFull(5)
	l.sack(2)
	cwnd := l.pathAt(0).cc.Window()
	l.pathAt(0).SetMTU(65000)
	l.expectCwnd("raised", cwnd) // req 8899-3-11
	l.pathAt(0).SetMTU(600)
	l.expectCwnd("lowered", cwnd)
}

func TestUnconfirmedPathsDoNotLimitChunks(t *testing.T) {
	l := newLab(t, 2)
	want := l.s.MaxPayload()
	l.pathAt(1).SetMTU(600)
	check.Equal(t, "MaxPayload with a path of 600 octets", l.s.MaxPayload(),
		600-12-wire.SackLen(0, 0)-wire.DataHeaderLen)
	l.pathAt(1).State = Unconfirmed
	check.Equal(t, "MaxPayload while that path is unconfirmed", l.s.MaxPayload(), want)
	l.s.cfg.MaxSegment = 1
	check.Equal(t, "MaxPayload with Config.MaxSegment", l.s.MaxPayload(), 1)
}
