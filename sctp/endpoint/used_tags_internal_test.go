package endpoint

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Tags are forgotten when their time is over, and the oldest when there are too many.
func TestSpentTagsAreBounded(t *testing.T) {
	var s usedTags
	key := func(i int) tagKey { return tagKey{uint32(i), 1, 2} }
	s.add(key(0), 0, 0)
	check.Equal(t, "a tag is remembered of which there was never a cookie", len(s.expiryByTag), 0)
	for i := 1; i <= maxUsedTags+10; i++ {
		s.add(key(i), rawio.Time(50+i%3), rawio.Time(100+i%2))
	}
	check.That(t, len(s.expiryByTag) == maxUsedTags && len(s.oldestFirst) == maxUsedTags, "%d tags, %d in order",
		len(s.expiryByTag), len(s.oldestFirst))
	for i, want := range map[int]bool{0: false, 10: false, 11: true, maxUsedTags + 10: true, maxUsedTags + 11: false} {
		check.That(t, s.has(100, key(i)) == want, "tag %d: %v", i, !want)
	}
	check.That(t, s.forgottenBefore == 53 && s.mayHaveForgotten(52) && !s.mayHaveForgotten(53),
		"cookies count that were made at %d", s.forgottenBefore)
	s.add(key(12), 60, 300)
	check.That(t, !s.has(102, key(11)) && s.has(300, key(12)) && !s.has(301, key(12)) && len(s.expiryByTag) == 0 &&
		len(s.oldestFirst) == 0,
		"%d tags of the past", len(s.expiryByTag))
	check.Equal(t, "cookies count again that were made at", s.forgottenBefore, 53)
}

// An association leaves nothing behind in any table, whoever has set it up.
func TestTablesAreEmptyInTheEnd(t *testing.T) {
	e := New(Config{Rand: repeat{}, MTU: func(_, _ netip.Addr) int { return 1400 }})
	check.Equal(t, "associations unless the configuration says how many", e.cfg.MaxAssocs, 1048576)
	source := netip.MustParseAddr("10.0.0.9")
	to := []netip.AddrPort{netip.AddrPortFrom(source, 0)}
	for _, accepted := range []bool{false, true} {
		a := must.Get(e.Connect(0, nil, 7, netip.AddrPort{}, to, 8))(t)
		e.Remove(0, must.Get(e.Connect(0, nil, 7, netip.AddrPort{}, to, 9))(t))
		if accepted {
			e.Remove(0, a)
			e.addAccepted(a, source)
		}
		e.Refresh(a)
		check.That(t, getAssoc(&e.byTag, tagKey{a.LocalTag(), 7, 8}) == a &&
			getAssoc(&e.byPeer, peerKey{source, 7, 8}) == a && e.portUses[7] == 1 && e.Len() == 1,
			"not in the tables after Refresh")
		e.Remove(0, a)
		n := e.byTag.Len() + e.byPeer.Len() + e.byClaim.Len() + len(e.portUses) + e.perSource.NumGroups() + e.Len()
		check.That(t, n == 0, "accepted %v: %d entries are left", accepted, n)
	}
	p := rawio.Packet{Kind: rawio.KindPacketTooBig, Data: make([]byte, 16),
		Remote: netip.MustParseAddrPort("10.0.0.9:0")}
	if a, _ := e.HandleUnmatched(0, &p); a != nil || e.answers.PollTransmit(assoc.NewTxBatch(1)) ||
		e.stats != (Stats{}) {
		t.Error("a report for an association that has ended is taken for a packet")
	}
}

type repeat struct{}

func (repeat) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(7 * i)
	}
	return len(p), nil
}

// A second of answers begins with the first of them. It and the second before it say how many ask;
// who has no luck while these are too many has no answer.
func TestRateOfAnswers(t *testing.T) {
	r := answerRates{maxPerSecond: 2}
	unlucky := func() uint64 { return 2 } // of three
	for i, step := range []struct {
		at   time.Duration
		want bool
	}{{500 * time.Millisecond, true}, {1400 * time.Millisecond, true}, {1500*time.Millisecond - 1, false},
		{1500 * time.Millisecond, false},
		{2500 * time.Millisecond, true}, {2500 * time.Millisecond, true}, {3499 * time.Millisecond, false},
		{5500 * time.Millisecond, true}} {
		check.That(t, r.allow(rawio.Time(step.at), netip.Addr{}, unlucky) == step.want, "step %d at %v: %v", i,
			step.at, !step.want)
	}
	check.Equal(t, "places", len(r.table), 1<<rateTableBits)
}

// Of a pulse no more is answered than MaxAnswers, and in any second no more than twice that,
// whenever it begins.
func TestPulseGetsNoMoreAnswersThanASecond(t *testing.T) {
	const limit = 100
	for _, gap := range []time.Duration{0, time.Microsecond, 100 * time.Microsecond, time.Millisecond} {
		r, rng := answerRates{maxPerSecond: limit}, uint64(1)
		chance := func() uint64 { rng = rng*6364136223846793005 + 1442695040888963407; return rng >> 33 }
		var answered []rawio.Time
		for i := range 40_000 {
			now := rawio.Time(i) * rawio.Time(gap)
			if i == 20_000 {
				now += rawio.Time(900 * time.Millisecond)
			}
			if r.allow(now, netip.Addr{}, chance) {
				answered = append(answered, now)
			}
		}
		for i, from := range answered {
			n := 0
			for n < len(answered)-i && answered[i+n] < from.Add(time.Second) {
				n++
			}
			most := 2*limit + burstSlack
			if gap <= time.Microsecond && i == 0 {
				most = limit + burstSlack + limit/20 // 40 ms of pace
			}
			must.That(t, n <= most, "a packet each %v: %d answers in the second from %v on, want at most %d", gap, n,
				from, most)
		}
	}
}

// However set-ups come in pulses, in any second no more work is done than twice what MaxSetups
// says, and that of the longest packets beside.
func TestPulseGetsNoMoreSetupsThanASecond(t *testing.T) {
	const limit = 8000
	for _, row := range []struct {
		octets, n int // of a pulse
		each      time.Duration
	}{{100, 100_000, 2 * time.Second / budgetWindowsPerSecond},
		{6000, 100_000, 2 * time.Second / budgetWindowsPerSecond}, {100, 1000, time.Millisecond},
		{100, 800_000, 2 * time.Second}} {
		b, rng := newSetupBudget(limit), uint64(1)
		chance := func() uint64 { rng = rng*6364136223846793005 + 1442695040888963407; return rng >> 33 }
		cost := 1 + row.octets/octetsPerWork
		var done []rawio.Time
		for i := range 800_000 {
			if now := rawio.Time(i / row.n * int(row.each)); b.allow(now, row.octets, chance) {
				done = append(done, now)
			}
		}
		from := 0
		for i, at := range done {
			for done[from] <= at.Add(-time.Second) {
				from++
			}
			must.That(t, (i-from)*cost <= 2*limit+2*setupBurstSlack, "%+v: work of %d in the second before %v", row,
				(i-from)*cost, at)
		}
		check.That(t, len(done)*cost >= limit/8, "%+v: work of %d in all", row, len(done)*cost)
	}
}

// A packet of the greatest length that had luck takes no turn of short ones, however small the
// limit is.
func TestLongPacketLeavesRoomForShortOnes(t *testing.T) {
	b := newSetupBudget(budgetWindowsPerSecond)
	lucky := func() uint64 { return 0 }
	check.That(t, b.allow(0, 65_535, lucky) && b.allow(0, 100, lucky),
		"a short packet is not looked at behind a long one")
}

// Packets that set up are let through for their work and for the octets of their answers, each time
// by chance when there are too many of either. With the luck of the first alone no more octets go
// out than MaxSetups says.
func TestBudgetHasTwoBounds(t *testing.T) {
	b, draws := newSetupBudget(2*budgetWindowsPerSecond+7), []uint64(nil)
	chance := func() (v uint64) { v, draws = draws[0], draws[1:]; return v }
	for i, row := range []struct {
		draws []uint64 // for work of 1, of which 2 may be, then for octets, 555 of 1200
		want  bool
	}{{nil, true}, {nil, true}, {[]uint64{1, 1199}, true}, {[]uint64{2}, false}, {[]uint64{0, 1200}, false},
		{[]uint64{6, 0}, true}} {
		draws = row.draws
		got := b.allow(0, 255, chance)
		check.That(t, got == row.want && len(draws) == 0, "packet %d: %v, %d draws are left", i+1, got, len(draws))
	}
	b = newSetupBudget(4 * budgetWindowsPerSecond)
	check.That(t, b.allow(0, 256, nil) && b.octets.current.cost == 556 && b.allow(0, 400, nil) &&
		b.work.current.cost == 4 && b.octets.current.cost == 1156,
		"256 and 400 octets cost %d and %d", b.work.current.cost, b.octets.current.cost)
	always := newSetupBudget(0)
	check.That(t, always.allow(0, 1<<20, nil) && newSetupBudget(1).maxWindowWork == 1, "bound of %d",
		newSetupBudget(1).maxWindowWork)
}

// Sources share the places of the table evenly, and another key shares them otherwise.
func TestPlacesOfSources(t *testing.T) {
	a, b := answerRates{key: 0x0123456789abcdef}, answerRates{key: 0xfedcba9876543210}
	v6 := netip.MustParseAddr("2001:db8:1:2:3:4:5:6")
	i, j := a.tableIndex(v6), b.tableIndex(v6)
	check.That(t, i == 1848 && j == 945, "a known source has the places %d and %d", i, j)
	places, same := make(map[uint64]int), 0
	for i := range 100_000 {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		if places[a.tableIndex(addr)]++; a.tableIndex(addr) == b.tableIndex(addr) {
			same++
		}
	}
	most := 0
	for _, n := range places {
		most = max(most, n)
	}
	check.That(t, len(places) == 1<<rateTableBits && most <= 60 && same <= 100,
		"%d places for 100000 sources, %d in one of them, %d in the same place with two keys", len(places), most, same)
}
