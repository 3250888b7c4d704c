package pace

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/rawio"
)

const us = time.Microsecond

// A bet is on from betEnough on, and made every betEvery-th time below; it is won and lost one by one, within 0 and betMost.
func TestABetAtItsLimits(t *testing.T) {
	for _, row := range []struct {
		won  int
		tell bool
		want int
	}{{0, false, 0}, {1, false, 0}, {0, true, 1}, {betMost - 1, true, betMost}, {betMost, true, betMost}, {betMost, false, betMost - 1}, {5, true, 6}, {5, false, 4}} {
		b := bet{won: row.won}
		b.tell(row.tell)
		check.Equal(t, fmt.Sprintf("won %d, told %v", row.won, row.tell), b.won, row.want)
	}
	for won, want := range map[int]string{betEnough: "1111111111111111", betEnough + 1: "1111111111111111", betEnough - 1: "0000000100000001", 0: "0000000100000001"} {
		b := bet{won: won}
		got := ""
		for range 2 * betEvery {
			got += fmt.Sprint(map[bool]int{true: 1}[b.on()])
		}
		check.Equal(t, fmt.Sprint("made, won ", won), got, want)
	}
}

// A quota that stops the process is asked about once a second, and keeps the reader from looking for ten.
func TestTheCurbAtItsLimits(t *testing.T) {
	times, asked := int64(5), 0
	c := newCurb(func() int64 { asked++; return times })
	check.Equal(t, "asked at the start", asked, 1)
	at := rawio.Time(0).Add(askEvery - 1)
	for _, row := range []struct {
		name  string
		after time.Duration
		times int64
		asked int
		on    bool
	}{
		{"before a second is over", 0, 6, 1, false}, {"after a second", 1, 6, 2, true}, {"right behind it", askEvery - 1, 9, 2, true}, {"a second behind that", 1, 6, 3, true},
		{"when ten seconds are nearly over", curbFor - askEvery - 1, 6, 4, true}, {"when they are over", 1, 6, 4, false}, {"when it is stopped again", askEvery, 7, 5, true},
		{"when the count falls, as in another group", curbFor, 1, 6, false}, {"when it rises from there", askEvery, 2, 7, true},
	} {
		at, times = at.Add(row.after), row.times
		on := c.on(at)
		check.That(t, on == row.on && asked == row.asked, "%s: %v, asked %d times; want %v, %d", row.name, on, asked, row.on, row.asked)
	}
}

// A processor that others have had is paid back for as long, and shared out by the kernel for a number of times as long, which doubles where they have it again soon and is halved else.
func TestWhatOthersHaveTakenAtItsLimits(t *testing.T) {
	var p taken
	now := rawio.Time(0).Add(time.Hour)
	for i, row := range []struct {
		after, took time.Duration
		times       int
	}{
		{0, 3 * time.Millisecond, 4}, {4*3*time.Millisecond + 4*3*time.Millisecond - 1, 3 * time.Millisecond, 8}, {8*3*time.Millisecond + 8*3*time.Millisecond, 3 * time.Millisecond, 4},
		{0, 3 * time.Millisecond, 8}, {0, 3 * time.Millisecond, 16}, {0, 3 * time.Millisecond, 32}, {0, 3 * time.Millisecond, 64}, {0, 3 * time.Millisecond, 64},
		{0, time.Hour, 64}, {0, mostTaken, 64}, {2 * 64 * mostTaken, mostTaken - 1, 32},
	} {
		now = now.Add(row.after)
		p.lost(now, row.took)
		took := min(row.took, mostTaken)
		check.That(t, p.times == row.times && p.back == now.Add(took) && p.shared == now.Add(time.Duration(row.times)*took),
			"loss %d: %d times, back %v, shared %v; want %d times", i, p.times, p.back.Sub(now), p.shared.Sub(now), row.times)
	}
}

// One measurement is bounded, and counts half beside what was measured before.
func TestSmoothAtItsLimits(t *testing.T) {
	for _, row := range []struct{ before, d, want time.Duration }{
		{0, 30 * us, 30 * us}, {0, leastWake - 1, leastWake}, {0, mostWake + 1, mostWake}, {0, leastWake, leastWake}, {0, mostWake, mostWake}, {10 * us, 20 * us, 15 * us}, {20 * us, time.Hour, 40 * us},
		{20 * us, 1, 14 * us}, {1, 11 * us, 5*us + 500},
	} {
		check.Equal(t, fmt.Sprintf("%v, then %v", row.before, row.d), smooth(row.before, row.d), row.want)
	}
	measured = time.Now()
	n := 0
	measureAfter(time.Hour, func() time.Duration { n++; return us })
	check.Equal(t, "measured, a moment ago", n, 0)
	measured = time.Now().Add(-time.Hour)
	measureAfter(time.Hour, func() time.Duration { n++; return us })
	check.Equal(t, "measured, as long ago as it has to be", n, 1)
	check.That(t, time.Since(measured) < time.Minute, "that it was measured is not noted")
	measured = time.Time{}
	measureAfter(time.Hour, func() time.Duration { n++; return us })
	check.Equal(t, "measured, never before", n, 2)
	measured = time.Time{}
	for _, over := range []bool{true, false} { // a spin ends by either
		began, looks := time.Now(), 0
		spin(5*time.Millisecond, func() bool { looks++; return over })
		took := time.Since(began)
		check.That(t, over && looks == 1 || !over && took >= 5*time.Millisecond, "over %v: %v and %d looks", over, took, looks)
	}
}

// cessionAt is one in the given state, at a time at which a slice of 4 ms may have been lost.
func cessionAt(set func(c *cession, now rawio.Time)) (*cession, rawio.Time) {
	now := rawio.Time(0).Add(time.Hour)
	c := newCession()
	c.where, c.one, c.places = func() int { return 0 }, false, func() int { return 2 }
	c.usual = 10 * us
	set(&c, now)
	return &c, now
}

const slice = 4 * time.Millisecond

// contested has a slice been lost so long ago.
func contested(c *cession, now rawio.Time, ago time.Duration) { c.slice, c.lost = slice, now.Add(-ago) }

// What a cession tells follows from its numbers, exactly at their limits.
func TestWhatACessionTellsAtItsLimits(t *testing.T) {
	type say = func(c *cession, now rawio.Time) any
	late := say(func(c *cession, now rawio.Time) any { return c.late(now, 20*us) })
	lasts := say(func(c *cession, now rawio.Time) any { return c.lasts(now) })
	naps := say(func(c *cession, now rawio.Time) any { return c.naps(now) })
	patience := say(func(c *cession, now rawio.Time) any { return c.patience(now) })
	next := say(func(c *cession, now rawio.Time) any { return c.sleepsNext(now) })
	parks := say(func(c *cession, now rawio.Time) any { return c.parks(now) })
	gives := say(func(c *cession, now rawio.Time) any {
		return fmt.Sprint(c.gives(now), c.at == now, c.many, c.cpu == &c.taken[0])
	})
	for _, row := range []struct {
		name string
		set  func(c *cession, now rawio.Time)
		say  say
		want any
	}{
		{"late", func(*cession, rawio.Time) {}, late, 25 * us},
		{"late where a slice was lost", func(c *cession, now rawio.Time) { contested(c, now, contestedFor-1) }, late, slice / latePart},
		{"late where one was lost long ago", func(c *cession, now rawio.Time) { contested(c, now, contestedFor) }, late, 25 * us},
		{"late where a short one was", func(c *cession, now rawio.Time) { contested(c, now, 0); c.slice = 32 * us }, late, 25 * us},
		{"lasts, at the time", func(c *cession, now rawio.Time) { c.helps, c.since = helpsEnough, now.Add(-cedesFor) }, lasts, true},
		{"lasts, before it", func(c *cession, now rawio.Time) { c.helps, c.since = helpsEnough, now.Add(1-cedesFor) }, lasts, false},
		{"lasts, where ceding does not come first", func(c *cession, now rawio.Time) { c.helps, c.since = helpsEnough-1, now.Add(-cedesFor) }, lasts, false},
		{"lasts, with one place", func(c *cession, now rawio.Time) {
			c.helps, c.since, c.places = helpsEnough, now.Add(-cedesFor), func() int { return 1 }
		}, lasts, false},
		{"lasts at once where a slice was lost", func(c *cession, now rawio.Time) { c.helps, c.since = helpsEnough, now; contested(c, now, 0) }, lasts, true},
		{"naps", func(c *cession, now rawio.Time) { contested(c, now, 0) }, naps, true},
		{"naps where no slice was lost", func(*cession, rawio.Time) {}, naps, false},
		{"naps where ceding comes first", func(c *cession, now rawio.Time) { contested(c, now, 0); c.helps = helpsEnough }, naps, false},
		{"naps with one place", func(c *cession, now rawio.Time) { contested(c, now, 0); c.places = func() int { return 1 } }, naps, false},
		{"patience", func(*cession, rawio.Time) {}, patience, time.Duration(0)},
		{"patience where a slice was lost", func(c *cession, now rawio.Time) { contested(c, now, 0) }, patience, slice / patiencePart},
		{"sleeps next", func(c *cession, now rawio.Time) {
			c.helps, c.since, c.waits = helpsEnough, now.Add(-cedesFor), helpsTry-2
		}, next, true},
		{"sleeps next, but for a trial", func(c *cession, now rawio.Time) {
			c.helps, c.since, c.waits = helpsEnough, now.Add(-cedesFor), helpsTry-1
		}, next, false},
		{"sleeps next, where it does not last", func(c *cession, now rawio.Time) { c.helps, c.since = helpsEnough, now }, next, false},
		{"parks, on the only processor", func(c *cession, now rawio.Time) { c.one, c.taken[0].shared = true, now.Add(1) }, parks, true},
		{"parks, when that is over", func(c *cession, now rawio.Time) { c.one, c.taken[0].shared = true, now }, parks, false},
		{"parks, with another processor", func(c *cession, now rawio.Time) { c.taken[0].shared = now.Add(1) }, parks, false},
		{"gives", func(c *cession, now rawio.Time) { c.taken[0].shared = now }, gives, "true true true true"},
		{"gives, where it is shared out", func(c *cession, now rawio.Time) { c.taken[0].shared = now.Add(1) }, gives, "false false false true"},
		{"here, beyond the processors that are told apart", func(c *cession, now rawio.Time) { c.where = func() int { return cpus + 3 } },
			func(c *cession, _ rawio.Time) any { return c.here() == &c.taken[3] }, true},
	} {
		c, now := cessionAt(row.set)
		check.Equal(t, row.name, row.say(c, now), row.want)
	}
}

// A wait begins as what is known of ceding says.
func TestHowAWaitBegins(t *testing.T) {
	first := func(waits, every int) func(c *cession, now rawio.Time) {
		return func(c *cession, now rawio.Time) {
			c.helps, c.waits, c.every, c.since = helpsEnough, waits, every, now.Add(1-cedesFor)
			c.row, c.trial, c.dear, c.sleeping = 7, true, true, true // of the last one
		}
	}
	for _, row := range []struct {
		name string
		set  func(c *cession, now rawio.Time)
		want string // trial, dear, sleeping, next, row, waits
	}{
		{"where ceding does not come first", func(c *cession, now rawio.Time) { first(5, helpsTry)(c, now); c.helps-- }, "false false false 9µs 0 5"},
		{"at once", first(5, helpsTry), "false false false 0s 0 6"},
		{"the last before a trial", first(helpsTry-2, helpsTry), "false false false 0s 0 31"},
		{"a trial", first(helpsTry-1, helpsTry), "true false false 9µs 0 0"},
		{"no trial, as they are seldom", first(helpsTry-1, 2*helpsTry), "false false false 0s 0 32"},
		{"by sleep", func(c *cession, now rawio.Time) { first(5, helpsTry)(c, now); c.since = now.Add(-cedesFor) }, "false false true 0s 0 6"},
		{"by sleep, a trial", func(c *cession, now rawio.Time) { first(helpsTry-1, 8*helpsTry)(c, now); c.since = now.Add(-cedesFor) }, "true false true 0s 0 0"},
		{"by sleep, the last before it", func(c *cession, now rawio.Time) { first(helpsTry-2, 8*helpsTry)(c, now); c.since = now.Add(-cedesFor) }, "false false true 0s 0 31"},
		{"by sleep, a trial that is dear", func(c *cession, now rawio.Time) {
			first(helpsTry-1, 8*helpsTry)(c, now)
			c.since, c.taken[0].shared = now.Add(-cedesFor), now.Add(1)
		}, "true true true 9µs 0 0"},
		{"by sleep, a trial that was dear", func(c *cession, now rawio.Time) {
			first(helpsTry-1, 8*helpsTry)(c, now)
			c.since, c.taken[0].shared = now.Add(-cedesFor), now
		}, "true false true 0s 0 0"},
		{"a trial, where to cede is dear, but not to sleep", func(c *cession, now rawio.Time) { first(helpsTry-1, helpsTry)(c, now); c.taken[0].shared = now.Add(1) }, "true false false 9µs 0 0"},
	} {
		c, now := cessionAt(row.set)
		c.begin(now, 9*us)
		check.Equal(t, row.name, fmt.Sprint(c.trial, c.dear, c.sleeping, c.next, c.row, c.waits), row.want)
		check.That(t, c.begun, "%s: it has not begun", row.name)
	}
}

// A look cedes, sleeps or yields, and says when it is the next one's turn.
func TestWhatALookSays(t *testing.T) {
	begun := func(next time.Duration, set func(c *cession, now rawio.Time)) func(c *cession, now rawio.Time) {
		return func(c *cession, now rawio.Time) { c.begun, c.next = true, next; set(c, now) }
	}
	none := func(*cession, rawio.Time) {}
	helps := func(c *cession, now rawio.Time) { c.helps = helpsEnough }
	for _, row := range []struct {
		name   string
		set    func(c *cession, now rawio.Time)
		waited time.Duration
		want   string // what, next, row, ceded now, asleep
	}{
		{"before it is late", begun(30*us, none), 30*us - 1, "0 30µs 0 false false"},
		{"when it is late", begun(30*us, none), 30 * us, "1 60µs 1 true false"},
		{"when it is late soon", begun(5*us, none), 5 * us, "1 25µs 1 true false"},
		{"that begins", none, 25*us - 1, "0 25µs 0 false false"},
		{"that begins late", none, 25 * us, "1 50µs 1 true false"},
		{"where it helps", begun(0, helps), 0, "1 0s 1 true false"},
		{"where it helps, the second time", begun(0, func(c *cession, now rawio.Time) { helps(c, now); c.row = 1 }), us, "1 0s 2 true false"},
		{"where it helps, the third time", begun(0, func(c *cession, now rawio.Time) { helps(c, now); c.row = 2 }), us, "1 25µs 3 true false"},
		{"where it is paid back", begun(0, func(c *cession, now rawio.Time) { helps(c, now); c.taken[0].back = now.Add(1) }), 20 * us, "0 40µs 1 false false"},
		{"where it has been", begun(0, func(c *cession, now rawio.Time) { helps(c, now); c.taken[0].back = now }), 20 * us, "1 0s 1 true false"},
		{"by sleep", begun(0, func(c *cession, now rawio.Time) { helps(c, now); c.sleeping = true }), 0, "4 0s 1 false true"},
		{"by sleep, the second time", begun(0, func(c *cession, now rawio.Time) { helps(c, now); c.sleeping, c.row = true, 1 }), us, "1 0s 2 true false"},
		{"by sleep, in a trial", begun(0, func(c *cession, now rawio.Time) { helps(c, now); c.sleeping, c.trial = true, true }), 0, "1 0s 1 true false"},
		{"by sleep, in one that is dear", begun(0, func(c *cession, now rawio.Time) { helps(c, now); c.sleeping, c.trial, c.dear = true, true, true }), 0, "4 0s 1 false true"},
		{"where a slice was lost", begun(0, func(c *cession, now rawio.Time) { contested(c, now, 0) }), 0, "4 0s 1 false true"},
		{"where a slice was lost, the second time", begun(0, func(c *cession, now rawio.Time) { contested(c, now, 0); c.row = 1 }), us, "1 125µs 2 true false"},
	} {
		c, now := cessionAt(row.set)
		p := c.look(now, row.waited, 20*us)
		name := map[rawio.Pause]string{rawio.Yield: "0", rawio.Cede: "1", rawio.Sleep: "4"}[p]
		check.Equal(t, row.name, fmt.Sprint(name, " ", c.next, c.row, " ", c.at == now, " ", c.asleep), row.want)
	}
}

// When the reader has the processor again, what it took tells whether somebody else had it.
func TestWhoHadTheProcessor(t *testing.T) {
	for _, row := range []struct {
		name         string
		awake, ceded bool
		took         time.Duration
		slice, owed  time.Duration
	}{
		{"nobody", true, true, 60 * us, 0, 0}, {"somebody", true, true, 60*us + 1, 60*us + 1, 60*us + 1}, {"somebody, though it was not ceded", true, false, time.Millisecond, time.Millisecond, 0},
		{"nobody, as it slept", false, false, time.Millisecond, 0, 0}, {"somebody it was ceded to, as it slept since", false, true, time.Millisecond, 0, time.Millisecond},
		{"for longer than anybody computes", true, true, time.Hour, mostTaken, mostTaken},
	} {
		c, now := cessionAt(func(c *cession, now rawio.Time) {
			c.looked, c.awake, c.asleep, c.cpu = now.Add(-row.took), row.awake, true, &c.taken[0]
			if row.ceded {
				c.at = now.Add(-row.took)
			}
		})
		c.back(now, 30*us)
		owed := time.Duration(0)
		if c.taken[0].back != 0 {
			owed = c.taken[0].back.Sub(now)
		}
		check.That(t, c.slice == row.slice && owed == row.owed && (c.lost == now) == (row.slice > 0) && !c.awake && !c.asleep && c.at == rawio.Never,
			"%s: a slice of %v, owed %v, %+v", row.name, c.slice, owed, c.at)
	}
	for p, want := range map[rawio.Pause]bool{rawio.Yield: true, rawio.Cede: true, rawio.Sleep: false, rawio.Park: false, rawio.Block: false} {
		c, now := cessionAt(func(*cession, rawio.Time) {})
		c.said(now, p)
		check.That(t, c.awake == want && c.looked == now, "told to %v it looks again: %v", p, c.awake)
	}
}

// What a packet that comes says of ceding and of what is usual.
func TestWhatAPacketSays(t *testing.T) {
	const patience, turn = 120 * us, 5 * us
	cedes := func(ago time.Duration, set func(c *cession)) func(c *cession, now rawio.Time) {
		return func(c *cession, now rawio.Time) { c.at, c.looked, c.helps = now.Add(-ago), now.Add(-ago), 3; set(c) }
	}
	looks := func(ago time.Duration, set func(c *cession)) func(c *cession, now rawio.Time) {
		return func(c *cession, now rawio.Time) { c.looked, c.helps = now.Add(-ago), 3; set(c) }
	}
	none := func(*cession) {}
	firsts := func(c *cession) { c.helps = 12 }
	for _, row := range []struct {
		name   string
		set    func(c *cession, now rawio.Time)
		waited time.Duration
		want   string // helps, every, usual is learnt
	}{
		{"among many", cedes(20*us, func(c *cession) { c.many = true }), 40 * us, "3 32 false"},
		{"behind a cede", cedes(20*us, none), 40 * us, "4 32 false"},
		{"behind a cede, the most", cedes(20*us, func(c *cession) { c.helps = helpsMost }), 40 * us, "16 32 false"},
		{"behind a cede, in a trial", cedes(20*us, func(c *cession) { c.trial = true }), 40 * us, "4 64 false"},
		{"behind a cede, in the rarest trial", cedes(20*us, func(c *cession) { c.trial, c.every = true, helpsSeldom }), 40 * us, "4 256 false"},
		{"right behind a cede", cedes(5*us-1, none), 40 * us, "3 32 true"},
		{"behind a cede, just long enough", cedes(5*us, none), 40 * us, "4 32 false"},
		{"behind a cede, where it sleeps else, and nobody was there", cedes(5*us, func(c *cession) { c.sleeping = true }), 40 * us, "0 32 true"},
		{"behind a cede, where it sleeps else, and somebody was", cedes(5*us+1, func(c *cession) { c.sleeping = true }), 40 * us, "4 32 false"},
		{"behind sleep", looks(20*us, func(c *cession) { c.asleep, c.helps = true, 12 }), 40 * us, "13 32 false"},
		{"behind a nap, at once", looks(patience-1, func(c *cession) { c.asleep = true }), 400 * us, "4 32 false"},
		{"behind a nap, later", looks(patience, func(c *cession) { c.asleep = true }), 400 * us, "2 32 false"},
		{"behind a nap, later, where nothing helps", looks(patience, func(c *cession) { c.asleep, c.helps = true, 0 }), 400 * us, "0 32 false"},
		{"behind patience", looks(us, none), patience + 1, "3 32 false"},
		{"at the end of patience", looks(us, none), patience, "0 32 true"},
		{"while somebody had the processor", looks(turn+1, none), 40 * us, "3 32 false"},
		{"while somebody had it, in a trial", looks(turn+1, func(c *cession) { c.trial = true }), 40 * us, "3 64 false"},
		{"by itself, after a turn", looks(turn, none), 40 * us, "0 32 true"},
		{"by itself", looks(us, func(c *cession) { c.every = 256 }), 40 * us, "0 32 true"},
		{"by itself, where ceding comes first", looks(us, firsts), 40 * us, "8 32 false"},
		{"by itself, where ceding comes first, in a trial", looks(us, func(c *cession) { firsts(c); c.trial = true }), 40 * us, "0 32 true"},
		{"right behind a cede, as others compute", cedes(3*us, func(c *cession) { c.slice, c.lost = slice, rawio.Time(0).Add(time.Hour) }), 400 * us, "4 32 false"},
		{"right behind it, within a part of what is usual", cedes(2*us, func(c *cession) { c.slice, c.lost = slice, rawio.Time(0).Add(time.Hour) }), 400 * us, "3 32 true"},
	} {
		c, now := cessionAt(row.set)
		c.begun = true
		c.came(now, row.waited, patience, turn)
		check.Equal(t, row.name, fmt.Sprint(c.helps, c.every, c.usual != 10*us), row.want)
		check.That(t, !c.begun && !c.many && c.at == rawio.Never, "%s: the wait goes on: %+v", row.name, c)
		check.That(t, (c.since == now) == (c.helps == 0 && c.usual != 10*us), "%s: since %v", row.name, c.since)
	}
	for _, row := range []struct{ usual, waited, want time.Duration }{
		{16 * us, 16*us - 1, 14 * us}, {16 * us, 16 * us, 16*us + 16*us/24}, {us, 2 * us, us + usualStep}, {0, 0, usualStep}, {2400, 2400, 2500}, {2424, 3000, 2525},
	} {
		c := cession{usual: row.usual}
		c.learn(row.waited)
		check.Equal(t, fmt.Sprintf("usual %v, waited %v", row.usual, row.waited), c.usual, row.want)
	}
}

// The state follows from three counts, exactly at their limits.
func TestTheStateAtItsLimits(t *testing.T) {
	for _, row := range []struct {
		from       State
		lone, calm int
		hurry      bool
		want       State
	}{
		{Many, loneBatches, 0, true, Single}, {Many, loneBatches, 0, false, Quiet}, {Bulk, loneBatches, calmMost, true, Single}, {Many, loneBatches - 1, 0, true, Many},
		{Single, loneBatches - 1, calmMost, true, Single}, {Single, 1, 0, true, Single}, {Quiet, 1, 0, false, Quiet}, {Bulk, 1, 0, false, Bulk},
		{Single, 0, calmEnough, true, Bulk}, {Single, 0, calmEnough - 1, true, Many}, {Quiet, 0, 1, true, Many}, {Many, 0, calmEnough, true, Bulk}, {Many, 0, calmEnough - 1, true, Many},
		{Bulk, 0, calmEnough - 1, true, Bulk}, {Bulk, 0, 1, true, Bulk}, {Bulk, 0, 0, true, Many}, {Bulk, 0, calmMost, false, Bulk},
	} {
		p := New(0, nil)
		p.lone, p.calm, p.hurry = row.lone, row.calm, row.hurry
		check.Equal(t, fmt.Sprintf("%+v", row), p.judge(row.from), row.want)
	}
	for _, row := range []struct {
		name            string
		packets, octets int
		woken           uint64
		lone, calm      int
		wantL, wantC    int
	}{
		{"few and short", fewPackets, fewOctets, 0, 3, 5, 4, 6}, {"one more", fewPackets + 1, 100, 0, 3, 5, 0, 6}, {"one octet more", 1, fewOctets + 1, 0, 3, 5, 0, 6},
		{"the most in a row", 1, 1, 0, loneBatches, calmMost, loneBatches, calmMost}, {"the last but one", 1, 1, 0, loneBatches - 1, calmMost - 1, loneBatches, calmMost},
		{"one that wakes", 1, 1, 1, 3, 40, 4, 40 - calmCost}, {"one that wakes, at the end", 1, 1, 1, 3, 31, 4, 0},
	} {
		p := New(0, nil)
		p.lone, p.calm = row.lone, row.calm
		p.Handled(row.packets, row.octets, row.woken, false)
		check.Equal(t, row.name, [3]uint64{uint64(p.lone), uint64(p.calm), p.woken}, [3]uint64{uint64(row.wantL), uint64(row.wantC), row.woken})
	}
	for _, row := range []struct {
		name     string
		woken    uint64
		answered bool
		takes    int
		want     int
		taken    bool
	}{
		{"for one", 1, false, 5, 6, false}, {"for one, enough", 1, false, takesEnough - 1, takesEnough, true}, {"for one, the most", 1, false, takesMost, takesMost, true},
		{"for none", 0, false, 5, 5, false}, {"for none, enough", 0, false, takesEnough, takesEnough, true}, {"for two", 2, false, takesEnough + 3, takesEnough - 1, false},
		{"for two, still enough", 2, false, takesEnough + 4, takesEnough, true}, {"answered", 1, true, 50, 46, true}, {"answered, none left", 0, true, 3, 0, false},
	} {
		p := New(0, nil)
		p.takes = row.takes
		p.take(row.woken, row.answered)
		check.That(t, p.takes == row.want && p.taken.Load() == row.taken, "%s: %d, taken %v", row.name, p.takes, p.taken.Load())
		p.take(row.woken, row.answered) // which says so again
		p.takes = takesEnough - 5
		p.take(0, true)
		check.Equal(t, row.name+", then not", p.taken.Load(), false)
	}
}

// What arrives is counted exactly at its limits: whether waits are short, what work takes, and where a train ends.
func TestWhatArrivesAtItsLimits(t *testing.T) {
	at := func(set func(p *reader)) *reader {
		r := newReader(0)
		r.now = r.now.Add(time.Hour)
		set(r)
		return r
	}
	patience := 6 * testWake
	for _, row := range []struct {
		name       string
		soon       int
		hurry      bool
		waited     time.Duration
		want       int
		wantHurry  bool
		train      int
		woken      uint64
		trainAfter int
	}{
		{"a short wait", 5, false, patience, 6, false, 0, 0, 1}, {"a long one", 5, true, patience + 1, 4, false, 0, 0, 1},
		{"the most", soonMost, true, us, soonMost, true, 0, 0, 1}, {"none left", 0, false, time.Second, 0, false, 0, 0, 1},
		{"enough", soonEnough - 1, false, us, soonEnough, true, 0, 0, 1}, {"nearly enough", soonEnough - 2, false, us, soonEnough - 1, false, 0, 0, 1},
		{"not enough any more", soonNot + 1, true, time.Second, soonNot, false, 0, 0, 1}, {"still enough", soonNot + 2, true, time.Second, soonNot + 1, true, 0, 0, 1},
		{"within a train", 0, false, testWake / 4, 1, false, 3, 0, 4}, {"behind a train", 0, false, testWake/4 + 1, 1, false, 3, 0, 1}, {"behind one that wakes", 0, false, us, 1, false, 3, 1, 1},
	} {
		r := at(func(r *reader) { r.soon, r.hurry, r.train, r.woken = row.soon, row.hurry, row.train, row.woken })
		r.empty = r.now.Add(-row.waited)
		r.blind, r.looks = 3, 4
		r.Arrived(r.now, 1)
		check.That(t, r.soon == row.want && r.hurry == row.wantHurry && r.train == row.trainAfter, "%s: soon %d, hurry %v, train %d", row.name, r.soon, r.hurry, r.train)
		check.That(t, r.empty == rawio.Never && r.blind == 0 && r.looks == 0 && r.came == r.now, "%s: %+v", row.name, r.Pace)
	}
	for _, row := range []struct {
		name              string
		gave              bool
		took, work, least time.Duration
		wantW, wantL      time.Duration
	}{
		{"not given way", false, 90 * us, 10 * us, 64 * us, 10 * us, 64 * us}, {"the first", true, 80 * us, 0, 0, 10 * us, 80 * us}, {"as long", true, 64 * us, 0, 64 * us, 8 * us, 64 * us},
		{"longer", true, 80 * us, 0, 64 * us, 10 * us, 65 * us}, {"just shorter than that", true, 65*us - 1, 0, 64 * us, (65*us - 1) / 8, 65*us - 1}, {"as long as that", true, 65 * us, 0, 64 * us, 65 * us / 8, 65 * us},
		{"for very long", true, time.Hour, 0, 64 * us, mostWork / 8, 65 * us}, {"less than before", true, 8 * us, 16 * us, 64 * us, 15 * us, 8 * us},
	} {
		r := at(func(r *reader) { r.gave, r.work, r.least, r.came = row.gave, row.work, row.least, r.now.Add(-row.took) })
		r.worked(r.now)
		check.That(t, r.work == row.wantW && r.least == row.wantL && !r.gave, "%s: work %v, least %v", row.name, r.work, r.least)
	}
	r := at(func(r *reader) { r.waiting, r.trains = true, bet{won: 5} })
	r.Arrived(r.now, 1)
	check.That(t, r.trains.won == 6 && !r.waiting, "a train that goes on: %+v", r.trains)
	for _, row := range []struct {
		name  string
		ago   time.Duration
		looks int
		late  bool
	}{{"in time", testWake / 4, 0, false}, {"too late", testWake/4 + 1, 0, true}, {"after the last look but one", 0, mostLooks - 2, false}, {"after the last look", 0, mostLooks - 1, true}} {
		r := at(func(r *reader) {
			r.waiting, r.trains, r.empty, r.looks = true, bet{won: 5}, r.now.Add(-row.ago), row.looks
		})
		check.Equal(t, "the next of a train, "+row.name, r.Late(r.now), row.late)
		check.Equal(t, "what is said of it, "+row.name, r.trains.won, map[bool]int{true: 4, false: 5}[row.late])
	}
	for n, want := range map[int]bool{1: false, manyPackets: true} {
		r := at(func(r *reader) { r.train = trainPackets - 1 })
		check.Equal(t, fmt.Sprint("follows on a batch of ", n), r.Follows(n), want)
	}
	r = at(func(r *reader) { r.train = trainPackets })
	check.Equal(t, "follows in a train", r.Follows(1), true)
	for train, want := range map[int]int{0: 1, 1: 1, 2: 8} {
		r := at(func(r *reader) { r.train = train; r.state.Store(int32(Single)) })
		check.Equal(t, "room", len(r.Room(make([]rawio.Packet, 8))), want)
		r.state.Store(int32(Quiet))
		check.Equal(t, "room of one that is quiet", len(r.Room(make([]rawio.Packet, 8))), 8)
	}
}

// What the reader does when nothing is there, in each state, at the limits of its patience.
func TestPausesAtTheirLimits(t *testing.T) {
	patience := 6 * testWake
	for _, row := range []struct {
		name   string
		state  State
		poll   time.Duration
		waited time.Duration
		set    func(r *reader)
		want   rawio.Pause
	}{
		{"many, at once, a few woken", Many, 0, 0, func(r *reader) { r.hurry, r.woken = true, fewWoken }, rawio.Yield},
		{"many, at once, more woken", Many, 0, 0, func(r *reader) { r.hurry, r.woken = true, fewWoken+1 }, rawio.Cede},
		{"many, again", Many, 0, patience - 1, func(r *reader) { r.hurry, r.blind = true, 1 }, rawio.Cede},
		{"many, when patience is over", Many, 0, patience, func(r *reader) { r.hurry, r.blind = true, 1 }, rawio.Park},
		{"many, again, and waits are long", Many, 0, us, func(r *reader) { r.blind = 1 }, rawio.Park},
		{"many, shared out", Many, 0, us, func(r *reader) { r.hurry, r.blind, r.cession.taken[0].shared = true, 1, r.now.Add(1) }, rawio.Park},
		{"many, at once, waits are long", Many, 0, 0, func(r *reader) {}, rawio.Yield},
		{"single, at once, somebody woken", Single, 0, 0, func(r *reader) { r.woken = 1 }, rawio.Yield},
		{"single, at once, somebody woken, patience over", Single, 0, patience, func(r *reader) { r.woken = 1 }, rawio.Yield},
		{"single, at once, nobody woken, patience over", Single, 0, patience, func(r *reader) {}, rawio.Park},
		{"single, again, late", Single, 0, patience - 1, func(r *reader) { r.blind = 1 }, rawio.Cede},
		{"single, again, patience over", Single, 0, patience, func(r *reader) { r.blind = 1 }, rawio.Park},
		{"single, again, patience of a lost slice", Single, 0, slice/patiencePart - 1, func(r *reader) { r.blind = 1; contested(&r.cession, r.now, 0) }, rawio.Sleep},
		{"single, again, that over too", Single, 0, slice / patiencePart, func(r *reader) { r.blind = 1; contested(&r.cession, r.now, 0) }, rawio.Park},
		{"many, a lost slice gives no patience", Many, 0, patience, func(r *reader) { r.hurry, r.blind = true, 1; contested(&r.cession, r.now, 0) }, rawio.Park},
		{"quiet", Quiet, 0, 0, func(r *reader) { r.waits = 1 }, rawio.Park},
		{"quiet, to measure", Quiet, 0, 0, func(r *reader) { r.waits = workEvery }, rawio.Yield},
		{"quiet, to measure, again", Quiet, 0, 0, func(r *reader) { r.waits, r.blind = workEvery, 1 }, rawio.Park},
		{"bulk, at once", Bulk, 0, 0, func(r *reader) { r.hurry = true }, rawio.Block},
		{"bulk, again", Bulk, 0, 0, func(r *reader) { r.hurry, r.blind = true, 1 }, rawio.Park},
		{"bulk, waits are long", Bulk, 0, 0, func(r *reader) {}, rawio.Park},
		{"told to poll", Quiet, time.Millisecond, time.Millisecond - 1, func(r *reader) {}, rawio.Yield},
		{"told to poll, over", Quiet, time.Millisecond, time.Millisecond, func(r *reader) {}, rawio.Park},
		{"told never to", Many, -1, 0, func(r *reader) { r.hurry, r.woken = true, 99 }, rawio.Park},
		{"told never to, bulk", Bulk, -1, 0, func(r *reader) { r.hurry = true }, rawio.Block},
		{"patience is longer by twice the work", Many, 0, patience + 2*us - 1, func(r *reader) { r.hurry, r.blind, r.work = true, 1, us }, rawio.Cede},
		{"and no longer", Many, 0, patience + 2*us, func(r *reader) { r.hurry, r.blind, r.work = true, 1, us }, rawio.Park},
	} {
		r := newReader(row.poll)
		r.now = r.now.Add(time.Hour)
		r.state.Store(int32(row.state))
		r.curb.asked = r.now
		r.empty = r.now.Add(-row.waited)
		row.set(r)
		check.Equal(t, row.name, r.pause(r.now), row.want)
	}
	for _, row := range []struct {
		state State
		taken bool
		want  time.Duration
	}{{Single, false, patience}, {Quiet, true, patience}, {Many, true, testWake / 2}, {Many, false, 0}, {Bulk, true, 0}} {
		r := newReader(0)
		r.state.Store(int32(row.state))
		r.taken.Store(row.taken)
		check.Equal(t, fmt.Sprintf("lends, %+v", row), r.Lends(), row.want)
	}
	r := newReader(0)
	r.now = r.now.Add(time.Hour)
	for i, want := range []bool{true, false} { // Many yields first; the second pause of a wait measures nothing
		r.Pause(r.now)
		check.That(t, r.gave == want && r.waits == 1 && r.blind == i+1 && r.empty == r.now, "pause %d: %v, %d waits, %d blind", i, r.gave, r.waits, r.blind)
	}
}

// A reader that is let go on first does not look; what a look has found is a bet of its own.
func TestLetsAtItsLimits(t *testing.T) {
	for _, row := range []struct {
		name  string
		state State
		poll  time.Duration
		blind int
		woken uint64
		won   int
		lets  bool
		tries bool
	}{
		{"many", Many, 0, 0, 1, 0, true, false}, {"many, again", Many, 0, 1, 1, 0, false, false}, {"many, nobody woken", Many, 0, 0, 0, 0, false, false}, {"many, told to poll", Many, 1, 0, 1, 0, false, false},
		{"bulk", Bulk, 0, 0, 1, 0, false, false}, {"quiet", Quiet, 0, 0, 1, 0, false, false}, {"single", Single, 0, 0, 1, 0, true, false}, {"single, where another follows", Single, 0, 0, 1, betEnough, false, true},
	} {
		r := newReader(row.poll)
		r.state.Store(int32(row.state))
		r.blind, r.woken, r.behind.won = row.blind, row.woken, row.won
		check.That(t, r.lets() == row.lets && r.tries == row.tries, "%s: tries %v", row.name, r.tries)
	}
	for _, row := range []struct {
		tries   bool
		n, want int
	}{{true, 0, 7}, {true, 1, 8 + behindPays}, {false, 0, 8}, {false, 1, 8}} {
		r := newReader(0)
		r.tries, r.behind.won = row.tries, 8
		r.looked(row.n)
		check.That(t, r.behind.won == row.want && !r.tries, "%+v: %d", row, r.behind.won)
	}
}

// A read without room fails, one that the link ends fails as the link says, and what it reads is counted.
func TestReadsThatFail(t *testing.T) {
	r := newReader(0)
	r.clock = func() rawio.Time { return r.now }
	w := &waiter{r: r, comes: 1}
	n, err := r.Read(w, nil)
	check.That(t, n == 0 && err == errRoom && len(w.did) == 0, "without room: %d, %v", n, err)
	w = &waiter{r: r, waits: 1}
	n, err = r.Read(w, make([]rawio.Packet, 2))
	check.That(t, n == 0 && errors.Is(err, errTired), "that the link ends: %d, %v", n, err)
	for _, octets := range []int{fewOctets, fewOctets + 1} {
		r = newReader(0)
		r.clock = func() rawio.Time { return r.now }
		r.lone = 3
		pkts := make([]rawio.Packet, 2)
		pkts[0].Data, pkts[1].Data = make([]byte, octets), make([]byte, 99)
		n, err = r.Read(&waiter{r: r, comes: 1}, pkts)
		check.That(t, n == 1 && err == nil && r.lone == map[bool]int{true: 4}[octets == fewOctets] && r.came == r.now && r.calm == 1, "%d octets: %d, %v, lone %d", octets, n, err, r.lone)
	}
	before := Now()
	if after := Now(); after < before || before < 0 || time.Duration(after) > time.Since(start)+time.Second {
		t.Errorf("the clock: %v, then %v", before, after)
	}
}
