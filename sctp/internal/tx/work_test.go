package tx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What a peer says in SACKs costs no more than their octets, and those of the DATA they are about,
// pay for, whatever it says. Each attack is carried out on 20,000 chunks that are outstanding, over
// and over again.
func TestNoSequenceOfSacksBuysWork(t *testing.T) {
	const (
		chunks  = 20_000
		rounds  = 500
		byOctet = 24 // steps for each octet of SACKs
		byChunk = 16 // and for each chunk sent
	)
	const half = chunks / 2
	gap := func(from, to wire.TSN) wire.GapBlock { return wire.GapBlock{Start: uint16(from), End: uint16(to)} }
	for _, tt := range []struct {
		name   string
		paths  int
		before func(l *senderLab)
		round  func(i int) []wire.GapBlock // of the SACKs of a round; a block from 0 on begins the next
	}{
		{"all acknowledged by one block, and taken back", 1, nil, func(int) []wire.GapBlock {
			return []wire.GapBlock{gap(2, chunks), {}}
		}},
		{"every second one", 1, nil, func(i int) (g []wire.GapBlock) {
			for k := range wire.TSN(300) {
				g = append(g, gap(2+2*k, 2+2*k))
			}
			return append(g, wire.GapBlock{})
		}},
		{"one taken back, below thousands that go another way", 2, nil, func(i int) []wire.GapBlock {
			return []wire.GapBlock{gap(2, 2), {}}
		}},
		{"one more of what was sent before thousands that were sent again", 1, func(l *senderLab) {
			l.runNextTimeout()
			l.pathAt(0).onePacketOnly, l.pathAt(0).cc = false, newFixedWindow(half*20)
			for len(l.transmit()) > 0 {
			}
		}, func(i int) []wire.GapBlock {
			return []wire.GapBlock{gap(chunks-rounds, chunks-rounds+wire.TSN(i))}
		}},
		{"the highest, one by one downwards", 1, nil, func(i int) []wire.GapBlock {
			return []wire.GapBlock{gap(chunks-wire.TSN(i), chunks)}
		}},
	} {
		l := newLab(t, tt.paths)
		l.s.cfg.SendBuffer = 1 << 30
		for _, p := range l.s.paths {
			p.cc = newFixedWindow(1 << 40)
		}
		l.s.SetPeer(1<<30, 16)
		for i := range chunks {
			m := Message{Body: [2][]byte{make([]byte, 4)}}
			if tt.paths > 1 && i != 1 && i != chunks-1 {
				m.Path = 2
			}
			must.OK(t, l.s.Enqueue(&m))
		}
		for l.s.NextTSN() <= chunks {
			l.transmit()
			l.now += ms
		}
		if tt.before != nil {
			tt.before(l)
		}
		begun, octets := l.s.Steps(), 0
		say := func(g []wire.GapBlock) {
			k := makeSack(0, 1<<30, g...)
			octets += len(k)
			_, err := l.s.HandleSack(l.now, k)
			must.That(t, err == nil, "%v, %v", tt.name, err)
		}
		for i := range rounds {
			var g []wire.GapBlock
			for _, b := range tt.round(i) {
				if b.Start > 0 {
					g = append(g, b)
					continue
				}
				say(g)
				g = nil
			}
			say(g)
		}
		steps := int(l.s.Steps() - begun)
		most := byOctet*octets + byChunk*chunks
		check.That(t, steps <= most, "%s: %d steps for %d octets of SACKs, which may take %d", tt.name, steps, octets,
			most)
		check.That(t, steps >= rounds, "%s: %d steps, for %d SACKs", tt.name, steps, rounds)
		l.sack(chunks)
		l.s.Trim()
		check.That(t, l.s.Outstanding() == 0 && l.s.Held() <= 4<<10,
			"%s: %d octets are kept when all is acknowledged", tt.name, l.s.Held())
		l.enqueueMany(1, 4) // a sender that has given all back goes on
		l.transmit()
		l.sack(chunks + 1)
	}
}

// A chunk whose acknowledgement was taken back is believed to have arrived as long as SACKs pay for
// it, and again when it was sent again: nothing is ever stuck.
func TestTakenBackTooOften(t *testing.T) {
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	l.enqueueMany(200, 4)
	l.transmit()
	gapped := func(what string, want int) {
		t.Helper()
		l.sack(0, gap{2, 200})
		check.Equal(t, what+": chunks that count as arrived", int(l.s.outstanding.numGapAcked), want)
	}
	gapped("the first time", 199) // paid for by the chunks: this SACK, and the next, pay for 80 and 64
	steps := l.s.Steps()
	gapped("again", 199)
	check.Equal(t, "steps for a SACK that says nothing new: its path, twice, its block, twice, and the next chunk",
		l.s.Steps()-steps, 5)
	l.s.work.renegeCredit = 80
	l.sack(0)
	gapped("taken back once", 199)
	l.sack(0)
	gapped("taken back twice", 80+64+80+64+80-199)
	l.sack(0)
	l.runNextTimeout()
	l.pathAt(0).onePacketOnly, l.s.work.renegeCredit = false, 0
	l.transmit()
	gapped("taken back, and sent again", 199)
	l.sack(0)
	l.sack(0, gap{2, 60})
	l.s.work.renegeCredit = 0
	l.sack(0, gap{60, 200})
	// fewer are named no more than are named anew and not paid for
	check.That(t, l.s.Stats().Reneged == 3*199+169+58, "%d chunks were taken back", l.s.Stats().Reneged)
}

// A packet takes what there is to send again on its path, but does not look for it behind thousands
// of chunks for others.
func TestSendingAgainOnTwoPaths(t *testing.T) {
	l := newLab(t, 2)
	for _, p := range l.s.paths {
		p.cc = newFixedWindow(1 << 20)
	}
	for i := range 1000 {
		must.OK(t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 4)}, Path: uint8(min(i, 1)%999 + 1)}))
	}
	l.transmit()
	l.now = l.s.NextTimeout()
	l.s.HandleTimeout(l.now)
	l.pathAt(0).onePacketOnly, l.pathAt(1).onePacketOnly = false, false
	begun := l.s.Steps()
	for len(l.transmit()) > 0 {
	}
	steps := int(l.s.Steps() - begun)
	check.That(t, l.s.outstanding.numToRetransmit == 0 && steps <= 1000+3*maxSkipped,
		"%d steps to send 1000 chunks again, %d are left", steps, l.s.outstanding.numToRetransmit)
	l.now += ms
	l.sack(0, gap{990, 1000}) // all others were sent before, and take miss indications
}

// A chunk that was sent again after a timeout takes miss indications of what was sent after that.
func TestLostAgainAfterATimeout(t *testing.T) {
	l := newLab(t, 1)
	l.pathAt(0).cc = newFixedWindow(1 << 20)
	l.sendFull(8)
	l.runNextTimeout()
	l.pathAt(0).onePacketOnly = false
	l.expectTSNs("all again", "1 | 2 | 3 | 4 | 5 | 6 | 7 | 8")
	l.now += 500 * ms
	for last := wire.TSN(2); last <= 4; last++ {
		l.expectTSNs("what was sent before the last that has arrived", "")
		l.sack(0, gap{2, last})
	}
	l.expectTSNs("the third miss", "1")
}

// One SACK, or SHUTDOWN, that acknowledges all that can be outstanding, or takes it back, and
// T3-rtx for all of it, are processed in parts, each of so few steps; a SACK that says less than
// the one in processing is old, one that says as much takes its place.
func TestLongestWorkAtOnce(t *testing.T) {
	race.Alone(t)
	const last = maxOutstanding // TSN
	begun := uint64(0)
	say := func(l *senderLab, cum wire.TSN, gaps ...wire.GapBlock) (Result, error) {
		begun = l.s.Steps()
		return l.s.HandleSack(l.now, makeSack(cum, 1<<29, gaps...))
	}
	for _, tt := range []struct {
		name  string
		parts int
		first func(l *senderLab) (Result, error)
	}{
		{"all covered", 16, func(l *senderLab) (Result, error) { return say(l, last) }},
		{"all but two covered", 16, func(l *senderLab) (Result, error) { return say(l, last-2, wire.GapBlock{Start: 2, End: 2}) }},
		{"all but one named", 33, func(l *senderLab) (Result, error) { return say(l, 0, wire.GapBlock{Start: 2, End: last}) }},
		{"half covered, half named", 25, func(l *senderLab) (Result, error) {
			return say(l, last/2, wire.GapBlock{Start: 2, End: last - last/2})
		}},
		{"two named", 2, func(l *senderLab) (Result, error) { return say(l, 0, wire.GapBlock{Start: 2998, End: 2999}) }},
		{"three named, and thousands below them lost", 16, func(l *senderLab) (Result, error) {
			l.handleSack(makeSack(0, 1<<30, wire.GapBlock{Start: last - 2, End: last - 2}))
			l.handleSack(makeSack(0, 1<<30, wire.GapBlock{Start: last - 2, End: last - 1}))
			return say(l, 0, wire.GapBlock{Start: last - 2, End: last})
		}},
		{"covered by a SHUTDOWN", 16, func(l *senderLab) (Result, error) {
			begun = l.s.Steps()
			return l.s.HandleCumAck(l.now, last)
		}},
		{"all taken back", 16, func(l *senderLab) (Result, error) {
			l.handleSack(makeSack(0, 1<<30, wire.GapBlock{Start: 2, End: last}))
			return say(l, 0)
		}},
		{"all but the last taken back", 17, func(l *senderLab) (Result, error) {
			l.handleSack(makeSack(0, 1<<30, wire.GapBlock{Start: 2, End: last}))
			return say(l, 0, wire.GapBlock{Start: last, End: last})
		}},
		{"none, T3-rtx", 16, func(l *senderLab) (Result, error) {
			l.now, begun = l.s.NextTimeout(), l.s.Steps()
			l.s.HandleTimeout(l.now)
			return Result{}, nil
		}},
		{"none, T3-rtx, and what it has marked at first goes again meanwhile", 16, func(l *senderLab) (Result, error) {
			l.now = l.s.NextTimeout()
			l.s.HandleTimeout(l.now)
			l.pathAt(0).onePacketOnly = false
			l.transmit()
			begun = l.s.Steps()
			return Result{}, nil
		}},
		{"the last of all that went again", 48, func(l *senderLab) (Result, error) {
			l.runNextTimeout()
			for l.pathAt(0).onePacketOnly = false; len(l.transmit()) > 0; l.now += ms {
			}
			return say(l, 0, wire.GapBlock{Start: last, End: last})
		}},
	} {
		l := newLab(t, 1)
		l.pathAt(0).cc = newFixedWindow(1 << 40)
		l.s.SetPeer(1<<30, 16)
		for range last {
			must.OK(l.t, l.s.Enqueue(&Message{Body: [2][]byte{make([]byte, 4)}, Unordered: true}))
		}
		for l.s.NextTSN() <= last {
			l.transmit()
			l.now += ms
		}
		res, err := tt.first(l)
		parts := 1
		for ; ; parts++ {
			l.check()
			check.That(t, l.s.Steps()-begun <= maxSliceSteps+200, "%s: %d steps in part %d", tt.name,
				l.s.Steps()-begun, parts)
			acking := l.s.sack.active && l.s.sack.step == stepAcknowledge
			check.That(t, err == nil && (!acking || res.NewlyAcked), "%s: part %d, %+v, %v", tt.name, parts, res, err)
			check.That(t, !acking || l.s.Rwnd()+l.s.DataInFlight() == 1<<30,
				"%s: the window of a SACK that part %d is not through with: %d", tt.name, parts, l.s.Rwnd())
			if !l.s.HasMoreWork() || parts > tt.parts {
				break
			}
			if cum := l.s.CumTSN(); cum.Less(l.s.sack.cumTSN) {
				old, err := say(l, cum)
				check.That(t, old.Stale && err == nil, "%s: a SACK that was overtaken: %+v, %v", tt.name, old, err)
				old, err = l.s.HandleCumAck(l.now, cum)
				check.That(t, old.Stale && err == nil, "%s: a SHUTDOWN that was overtaken: %+v, %v", tt.name, old, err)
			} else if l.s.sack.lostPaths != 0 {
				l.s.StartBurst(l.now)
				check.That(t, l.s.Poll(l.now) == nil, "%s: DATA may go before cwnd is reduced", tt.name)
			}
			if parts == 3 && l.s.sack.cumTSN == last { // it is said once more
				parts++
				again, err := say(l, last)
				check.That(t, !again.Stale && err == nil && l.s.sack.chunk != nil,
					"%s: a SACK that says as much: %+v, %v", tt.name, again, err)
			}
			begun = l.s.Steps()
			res = l.s.ContinueWork(l.now)
		}
		check.Equal(t, tt.name+": parts", parts, tt.parts)
		check.That(t, l.s.Stats().Timeouts == 0 || int(l.s.Stats().Retransmits)+
			int(l.s.outstanding.numToRetransmit) == last, "%s: %d of what T3-rtx has marked went again, %d is to",
			tt.name, l.s.Stats().Retransmits, l.s.outstanding.numToRetransmit)
		lost := l.s.outstanding.numToRetransmit > 0 && l.s.Stats().Timeouts == 0
		check.That(t, lost == l.s.recovery.active && (!lost || l.s.outstanding.numToRetransmit == last-3),
			"%s: %d lost, in recovery: %v", tt.name, l.s.outstanding.numToRetransmit, l.s.recovery.active)
	}
}
