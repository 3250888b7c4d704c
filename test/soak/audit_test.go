//go:build linux

package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// sessionFixture is one session in the books of a client and a server, which a test changes.
type sessionFixture struct {
	client, server ledgerCopy
	kills          []kill
	outages        []outage
	c, s           *entry
}

// completeFixture is a session of three requests and their replies, one Read and two atomics, in
// which all went well.
func completeFixture() *sessionFixture {
	t := &sessionFixture{client: ledgerCopy{name: "client (1)"}, server: ledgerCopy{name: "server (2)", server: true}}
	for _, b := range []*ledgerCopy{&t.client, &t.server} {
		b.entries = []entry{{id: 7, kind: kindRDMA, begun: 100, ended: 200, state: stateGraceful, window: 2}}
	}
	t.c, t.s = &t.client.entries[0], &t.server.entries[0]
	for i := range 3 {
		t.c.sent[i], t.s.sent[i] = posted|completed, posted|completed
		t.c.got[i], t.s.got[i] = 1, 1
	}
	t.c.reads, t.c.readsDone, t.c.adds, t.c.addsDone, t.s.counter = 1, 1, 2, 2, 2
	return t
}

// killServer has the server killed before it got the last n requests.
func (t *sessionFixture) killServer(n int) {
	t.kills = []kill{{server, 150, 160}}
	t.server.killedAt = 150
	t.c.state, t.s.state, t.s.ended = stateFailed, stateOpen, 0
	for i := 3 - n; i < 3; i++ {
		t.s.got[i], t.c.got[i], t.s.sent[i] = 0, 0, 0
	}
}

// killClient has the client killed before it got the last n replies.
func (t *sessionFixture) killClient(n int) {
	t.client.killedAt = 150
	t.c.state, t.s.state, t.c.ended = stateOpen, stateFailed, 0
	for i := 3 - n; i < 3; i++ {
		t.c.got[i] = 0
	}
}

// makeRefused has the session refused before the server heard of it, beside an outage.
func (t *sessionFixture) makeRefused(o outage) {
	t.server.entries, t.outages = nil, []outage{o}
	*t.c = entry{id: 7, state: stateRefused, begun: 100, ended: 200}
}

func TestAuditFindsEveryLossAndDouble(t *testing.T) {
	for name, row := range map[string]struct {
		change func(*sessionFixture)
		want   auditResult // of what may differ
	}{
		"all went well": {func(*sessionFixture) {}, auditResult{}},
		"a request that did not arrive is lost": {func(s *sessionFixture) {
			s.s.got[2], s.c.got[2], s.s.sent[2] = 0, 0, 0
		},
			auditResult{lost: 1}},
		"a reply that did not arrive is lost": {func(s *sessionFixture) { s.c.got[1] = 0 },
			auditResult{lost: 1, disorder: 1}},
		"an arrival behind a gap has no place": {func(s *sessionFixture) {
			s.s.got[0], s.c.got[0], s.s.sent[0] = 0, 0, 0
		},
			auditResult{lost: 1, disorder: 2}},
		"an arrival behind an unordered one does": {func(s *sessionFixture) {
			s.c.sent[0] |= unordered << orderShift
			s.killServer(0)
			s.s.got[0], s.c.got[0], s.s.sent[0] = 0, 0, 0
		}, auditResult{untaken: 1}},
		"two arrivals are one too many":     {func(s *sessionFixture) { s.s.got[1] = 2 }, auditResult{twice: 1}},
		"an arrival of nothing is invented": {func(s *sessionFixture) { s.s.got[3] = 1 }, auditResult{invented: 1}},
		"a server's session without a client's": {func(s *sessionFixture) {
			s.server.entries = append(s.server.entries,
				entry{id: 8, state: stateFailed})
		}, auditResult{invented: 1}},
		"what a process saw itself counts": {func(s *sessionFixture) {
			s.s.wrong, s.c.disorder, s.c.twice, s.s.stuck = 1,
				2, 3, 4
		}, auditResult{wrong: 1, disorder: 2, twice: 3, stuck: 4}},
		"a message that never completes": {func(s *sessionFixture) { s.c.sent[2] = posted; s.c.state = stateCut },
			auditResult{stuck: 1, uncertain: 1, arrived: 1}},
		"a session that never ends": {func(s *sessionFixture) { s.c.state = stateOpen }, auditResult{stuck: 1}},
		"a failure without cause":   {func(s *sessionFixture) { s.c.state = stateFailed }, auditResult{unexplained: 1}},
		"a last word lost, and then a kill": {func(s *sessionFixture) {
			s.s.state, s.s.ended,
				s.client.killedAt = stateFailed, 300, 250
		}, auditResult{}},
		"a kill after the end of both": {func(s *sessionFixture) {
			s.s.state, s.s.ended,
				s.client.killedAt = stateFailed, 220, 250
		}, auditResult{unexplained: 1}},
		"a refusal without cause": {func(s *sessionFixture) {
			s.server.entries = nil
			*s.c = entry{id: 7,
				state: stateRefused}
		}, auditResult{unexplained: 1}},
		"a refusal while there is no route": {func(s *sessionFixture) { s.makeRefused(outage{150, 210}) },
			auditResult{}},
		"a refusal after the route is back": {func(s *sessionFixture) { s.makeRefused(outage{80, 99}) },
			auditResult{unexplained: 1}},
		"a failure while there is no route": {func(s *sessionFixture) {
			s.c.state, s.outages = stateFailed,
				[]outage{{150, 210}}
		}, auditResult{unexplained: 1}},
		"a failure by an earlier kill": {func(s *sessionFixture) {
			s.killServer(0)
			s.kills[0] = kill{server, 80, 90}
			s.s.state, s.server.killedAt = stateFailed, 0
		}, auditResult{unexplained: 2}},
		"a failure by a kill of somebody else": {func(s *sessionFixture) {
			s.killServer(0)
			s.kills[0].name = mortalServer
			s.s.state, s.server.killedAt = stateFailed, 0
		}, auditResult{unexplained: 2}},
		"a Read that does not complete":        {func(s *sessionFixture) { s.c.readsDone = 0 }, auditResult{lost: 1}},
		"an atomic that was not carried out":   {func(s *sessionFixture) { s.s.counter = 1 }, auditResult{lost: 1}},
		"an atomic that was carried out twice": {func(s *sessionFixture) { s.s.counter = 3 }, auditResult{twice: 1}},
		"an atomic outstanding at a kill may be": {func(s *sessionFixture) {
			s.killServer(0)
			s.c.addsDone, s.s.counter = 1,
				2
		}, auditResult{}},
		"and may be not": {func(s *sessionFixture) {
			s.killServer(0)
			s.c.addsDone, s.s.counter = 1,
				1
		}, auditResult{}},
		"one that completed must be": {func(s *sessionFixture) { s.killServer(0); s.s.counter = 1 },
			auditResult{lost: 1}},

		"outstanding when the server was killed": {func(s *sessionFixture) {
			s.killServer(2)
			s.c.sent[1],
				s.c.sent[2] = posted|failed, posted|failed
		}, auditResult{uncertain: 2}},
		"more than were outstanding": {func(s *sessionFixture) {
			s.killServer(3)
			s.c.sent = [perSession]byte{posted | failed, posted | failed, posted | failed}
		}, auditResult{uncertain: 3, lost: 1}},
		"completed and not taken by the killed": {func(s *sessionFixture) { s.killServer(2) }, auditResult{untaken: 2}},
		"more of these than there can be": {func(s *sessionFixture) { s.killServer(3) },
			auditResult{untaken: 3, lost: 1}},
		"answered, so it was delivered": {func(s *sessionFixture) {
			s.killServer(1)
			s.c.got[2], s.s.sent[2] = 1,
				posted
		}, auditResult{untaken: 1, lost: 1}},
		"the server never heard of it": {func(s *sessionFixture) {
			s.killServer(3)
			s.server.entries = nil
			s.c.sent = [perSession]byte{posted | failed}
			s.c.adds, s.c.addsDone = 0, 0
		}, auditResult{uncertain: 1}},
		"replies outstanding when the client was": {func(s *sessionFixture) {
			s.killClient(2)
			s.s.sent[1],
				s.s.sent[2] = posted|failed, posted|completed
		}, auditResult{uncertain: 1, untaken: 1}},
		"a client's kill leaves the server's taken": {func(s *sessionFixture) {
			s.killClient(0)
			s.s.got[2], s.c.got[2],
				s.s.sent[2] = 0, 0, 0
		}, auditResult{lost: 1}},
		"a killed client's posts may have been": {func(s *sessionFixture) { s.killClient(0); s.c.sent[2] = posted },
			auditResult{}},
		"or may not": {func(s *sessionFixture) {
			s.killClient(1)
			s.c.sent[2], s.s.got[2],
				s.s.sent[2] = posted, 0, 0
		}, auditResult{uncertain: 1}},
		"cut: what had completed was delivered": {func(s *sessionFixture) {
			s.c.state = stateCut
			s.s.state = stateFailed
			s.s.got[2], s.c.got[2], s.s.sent[2] = 0, 0, 0
		}, auditResult{lost: 1}},
		"cut: what the cutter had not taken is not": {func(
			s *sessionFixture) {
			s.c.state = stateCut
			s.s.state = stateFailed
			s.c.got[2] = 0
		}, auditResult{untaken: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := completeFixture()
			row.change(s)
			got := auditBooks([]ledgerCopy{s.client, s.server}, s.kills, s.outages, serverNames)
			for _, n := range []struct {
				name      string
				got, want uint64
			}{
				{"lost", got.lost, row.want.lost}, {"wrong", got.wrong, row.want.wrong}, {"twice", got.twice, row.want.twice},
				{"disorder", got.disorder, row.want.disorder}, {"invented", got.invented, row.want.invented},
				{"stuck", got.stuck, row.want.stuck}, {"unexplained", got.unexplained, row.want.unexplained},
				{"uncertain", got.uncertain, row.want.uncertain}, {"arrived", got.arrived, row.want.arrived}, {"untaken", got.untaken, row.want.untaken},
			} {
				check.Equal(t, n.name, n.got, n.want)
			}
			bad := got.numViolations() > 0
			check.That(t, bad == (len(got.faults) > 0), "%d violations, %q", got.numViolations(), got.faults)
		})
	}
}

// What one mapping has written is there for another, as after a kill.
func TestLedgerOutlivesItsProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger")
	open := func() *ledger {
		return must.Get(openLedger(path))(t)
	}
	l := open()
	e := must.Get(l.beginEntry(7, kindRDMA, 2))(t)
	e.notePosted(0, 3)
	e.noteOutcome(0, completed)
	e.noteOutcome(0, failed)
	e.notePosted(1, unordered)
	e.notePosted(2, 0)
	e.undoPost(2)
	e.settleRest(failed)
	e.noteArrival(0)
	e.counterBytes()[0]++
	l.endEntry(e, stateFailed)
	must.OK(t, l.closeFile())
	l = open()
	defer l.closeFile()
	e = &l.entries[0]
	check.That(t, e.sent[0] == posted|completed|failed|3<<orderShift &&
		e.sent[1] == posted|failed|unordered<<orderShift && e.sent[2] == 0,
		"sent %x", e.sent[:3])
	check.That(t, e.got[0] == 1 && e.counter != 0 && e.twice == 1 && e.state == stateFailed && e.id == 7 &&
		e.window == 2, "%+v", e)
}

func TestLedgerIsFull(t *testing.T) {
	l := must.Get(openLedger(filepath.Join(t.TempDir(), "ledger")))(t)
	defer l.closeFile()
	for range maxSessions {
		must.Do(l.beginEntry(1, kindSCTP, 1))(t)
	}
	_, err := l.beginEntry(1, kindSCTP, 1)
	check.That(t, err == errLedgerFull, "begin: %v", err)
	l.reuseEntries()
	_, err = l.beginEntry(1, kindSCTP, 1)
	check.That(t, err == nil, "begin after the rest: %v", err)
}

func TestChangedOctetIsFound(t *testing.T) {
	for name, row := range map[string]struct {
		harm func([]byte)
		want bool
	}{
		"as sent":                  {func([]byte) {}, true},
		"one octet differs":        {func(b []byte) { b[99] ^= 1 }, false},
		"one octet too many":       {func(b []byte) { b[100] = 0 }, false},
		"far behind is not looked": {func(b []byte) { b[100+guard] = 0 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			area := make([]byte, 4096)
			fillPoison(area)
			want := contentPiece(7, 3, forWrite, 100)
			copy(area, want)
			row.harm(area)
			check.Equal(t, "placed", isPlaced(area, 100, want), row.want)
			check.That(t, isPoison(area[:100+guard]), "the area was not cleared")
		})
	}
}

// Contents of different messages, sessions and uses differ, but for the few that happen to begin at
// one place.
func TestPiecesDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for id := range uint64(8) {
		for seq := range 32 {
			for use := range forPush + 1 {
				seen[string(contentPiece(1<<32|id, seq, use, 16))] = true
			}
		}
	}
	want := 8 * 32 * (forPush + 1)
	check.That(t, len(seen) >= want-want/100, "%d different pieces for %d uses", len(seen), want)
}

func TestHeadSurvivesTheWire(t *testing.T) {
	h := head{id: 1 << 40, seq: 2, turn: 3, n: 4, stag: 5, op: 6, slot: 7, lane: 8}
	var b [headLen]byte
	h.encodeTo(b[:])
	var got head
	check.That(t, got.decodeFrom(b[:]) && got == h, "%+v", got)
	b[headLen-1]++
	check.That(t, !got.decodeFrom(b[:]) && !got.decodeFrom(b[:headLen-1]), "something else was taken for a head")
}

func TestGrowthOfMemoryIsFound(t *testing.T) {
	// samples are one every ten seconds, with the memory that f says.
	samples := func(n int, f func(i int, a *answer)) *series {
		r := &series{name: "x"}
		for i := range n {
			a := answer{Heap: 1000, Used: 3000, RSS: 2000, Goroutines: 3, FDs: 4}
			f(i, &a)
			r.s = append(r.s, sampleAt{time.Duration(i) * 10 * time.Second, a})
		}
		return r
	}
	for name, row := range map[string]struct {
		s    *series
		want int
	}{
		"nothing changes":            {samples(30, func(int, *answer) {}), 0},
		"growth in the first minute": {samples(30, func(i int, a *answer) { a.Heap = uint64(min(i, 6)) * 1000 }), 0},
		"growth of 4%":               {samples(30, func(i int, a *answer) { a.Heap = 1000 + 40*uint64(i)/29 }), 0},
		"the heap grows":             {samples(30, func(i int, a *answer) { a.Heap = 1000 + 10*uint64(i) }), 1},
		"what is in use grows":       {samples(30, func(i int, a *answer) { a.Used = 3000 + 30*uint64(i) }), 1},
		"the resident set grows":     {samples(30, func(i int, a *answer) { a.RSS = 2000 + 20*uint64(i) }), 1},
		"the heap shrinks":           {samples(30, func(i int, a *answer) { a.Heap = 1000 - 10*uint64(i) }), 0},
		"one sample stands out":      {samples(30, func(i int, a *answer) { a.Heap = 1000 + 500*uint64(i/29) }), 0},
		"one goroutine more":         {samples(30, func(i int, a *answer) { a.Goroutines += i / 29 }), 1},
		"one descriptor more":        {samples(4, func(i int, a *answer) { a.FDs += i / 3 }), 1},
		"too few to judge memory":    {samples(15, func(i int, a *answer) { a.Heap = 1000 << i }), 0},
		"a mortal process has no age": {func() *series {
			s := samples(30, func(i int, a *answer) { a.Heap = 1000 + 10*uint64(i) })
			s.mortal = true
			return s
		}(), 0},
		"never measured is not flat":        {samples(0, func(int, *answer) {}), 1},
		"one goroutine that comes and goes": {samples(30, func(i int, a *answer) { a.Goroutines += i % 2 }), 1},
	} {
		t.Run(name, func(t *testing.T) {
			line, broken := row.s.judgeSamples()
			check.That(t, broken == row.want, "%d rules broken, want %d: %s", broken, row.want, line)
		})
	}
}
