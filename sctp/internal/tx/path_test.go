package tx

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestTimedOutDataGoesToTheOtherPath(t *testing.T) {
	// req 9260-6.4-5, 9260-6.4-7, 9260-6.3.3-3
	l := newLab(t, 2)
	l.enqueueMany(7, full)
	l.expectTSNs("to the primary", "1 | 2 | 3 | 4 | 5") // req 9260-6.4-1
	l.runNextTimeout()
	l.pathAt(1).rttEst.rto /= 2
	l.expectTSNs("retransmission to the other path, new DATA after it", "1>1 | 2>1 | 3>1 | 4>1 | 5>1 | 6")
	check.That(t, l.pathAt(0).Flight() == counted && l.pathAt(1).Flight() == 5*counted, "flight %d and %d",
		l.pathAt(0).Flight(), l.pathAt(1).Flight())
	check.Equal(t, "T3-rtx of the other path, which runs with its RTO, at", l.pathAt(1).timers.t3At,
		l.now.Add(l.pathAt(1).RTO()))
	// req 9260-7.2.1-7; no counter is cleared for what was sent to both paths: req 7829-3.2-14
	r := l.sack(2)
	check.That(t, r.Paths == 0 && l.pathAt(1).cc.Window() == 4000+1000 && l.pathAt(0).cc.Window() == 1000,
		"paths %b, cwnd %d and %d", r.Paths, l.pathAt(0).cc.Window(), l.pathAt(1).cc.Window())
	check.Equal(t, "paths", l.sack(6).Paths, 1<<0) // req 9260-8.2-3, 7829-3.2-15: TSN 6 went to one path only
}

func TestFastRetransmissionGoesToTheSamePath(t *testing.T) {
	// req 9260-6.4-6
	l := newLab(t, 2)
	l.sendFull(5)
	l.s.SetPrimary(1)
	for i := range wire.TSN(3) {
		l.sack(0, gap{2, 2 + i})
	}
	l.expectTSNs("the path it was sent to, though the primary has changed", "1")
	l.pathAt(0).State = Inactive
	l.now += 10 * ms
	l.enqueueMany(5, full)
	l.expectTSNs("the other path by now", "6>1 | 7>1 | 8>1 | 9>1 | 10>1")
	for i := range wire.TSN(3) {
		l.sack(4, gap{6, 6 + i})
	}
	l.expectTSNs("not the one that has failed since", "5>1")
}

func TestFailoverMovesDataToAnActivePath(t *testing.T) {
	// req 9260-6.4.1-1, 9260-8.2-5, 9260-8.2-6, 9260-6.3.3-6
	l := newLab(t, 3)
	l.sendFull(3)
	t3 := l.pathAt(0).timers.t3At
	l.pathAt(0).State = Inactive
	l.now = 100 * ms
	l.enqueueMany(2, full)
	l.expectTSNs("one alternate path", "4>1 | 5>1")
	check.That(t, l.pathAt(0).timers.t3At == t3 && l.pathAt(1).timers.t3At != t3, "the timers are not each path's own")
	l.pathAt(1).State, l.pathAt(2).State = Inactive, Unconfirmed
	check.Equal(t, "with no active path, the primary", l.s.DataPath(), l.pathAt(0))
}

func TestSmallestPathDecidesTheChunkSize(t *testing.T) {
	// req 9260-7.3-2, 9260-7.3-3, 9260-6-8
	l := newLab(t, 2)
	l.pathAt(1).SetMTU(700)
	l.enqueueMany(1, 1000)
	d := chunks(t, l.transmit()[0])
	check.That(t, len(d[0].Payload()) == 700-12-16-16 && l.pathAt(0).MTU() == labMTU, "first fragment %d octets",
		len(d[0].Payload()))
}

// The initial cwnd is that of the path MTU with which transmission begins.
func TestInitialWindowIsOfTheFirstTransmission(t *testing.T) {
	// req 9260-7.2.1-1, 8899-3-11
	l := newLab(t, 1)
	*l.pathAt(0) = *NewPath(l.pathAt(0).Local, l.pathAt(0).Remote, 1212, labRTO, cc.RFC9260)
	p := l.pathAt(0)
	check.Equal(t, "cwnd of the first MTU", p.CC().Window(), 4404)
	p.SetMTU(9012)
	check.Equal(t, "cwnd of the MTU found before DATA goes", p.CC().Window(), 18000)
	l.enqueueMany(1, full)
	l.transmit()
	p.SetMTU(20_012)
	check.Equal(t, "cwnd of the MTU found later", p.CC().Window(), 18000)
}

func TestMostDivergentPath(t *testing.T) {
	// req 9260-6.4.1-2
	l := newLab(t, 3)
	a, b := netip.MustParseAddrPort("198.51.100.1:0"), netip.MustParseAddrPort("198.51.100.2:0")
	l.pathAt(0).Local, l.pathAt(1).Local, l.pathAt(2).Local = a, a, b
	p := NewPath(a, b, labMTU, labRTO, nil)
	check.That(t, p.Local == a && p.Remote == b, "a path from %v to %v", p.Local, p.Remote)
	l.sendFull(1)
	l.runNextTimeout()
	l.expectTSNs("the path that shares no address", "1>2")
}

func TestAddPathRefuses(t *testing.T) {
	l := newLab(t, MaxPaths)
	err := l.s.AddPath(NewPath(netip.AddrPort{}, netip.AddrPort{}, 1500, labRTO, nil))
	check.That(t, errors.Is(err, ErrPaths), "%v", err)
}

func TestMTULimits(t *testing.T) {
	for _, tt := range []struct {
		name            string
		mtu, got, pmdcs int
	}{
		{"Ethernet", 1480, 1480, 1468},
		{"not a multiple of four", 1483, 1483, 1468},
		{"nonsense", 3, 512, 500},
		{"64 KB", 65535, 65535, 65520},
		{"more than a chunk length says", 100000, 100000, 65532},
	} {
		p := NewPath(netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:0"), tt.mtu, labRTO, nil)
		check.That(t, p.MTU() == tt.got && p.PMDCS() == tt.pmdcs, "%s: MTU %d PMDCS %d", tt.name, p.MTU(), p.PMDCS())
	}
}

// New bounds of the RTO hold at once, for what was measured before too; and the least goes before
// the most.
func TestNewBoundsOfTheRTO(t *testing.T) {
	for _, row := range []struct{ srtt, initial, min, max, want time.Duration }{
		{0, 7, 1, 9, 7}, {2, 7, 1, 9, 6}, {2, 7, 8, 9, 8}, {2, 7, 1, 5, 5}, {2, 7, 8, 5, 8},
	} {
		e := rttEstimator{srtt: row.srtt, rto: 6}
		e.setConfig(RTOConfig{row.initial, row.min, row.max})
		check.Equal(t, fmt.Sprintf("%+v", row), e.rto, row.want)
	}
}
