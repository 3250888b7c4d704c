package mpa

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// joined returns the octets of pieces, one behind the other.
func joined(pieces [][]byte) []byte { return bytes.Join(pieces, nil) }

// TCP may take as little at a time as it likes. A message is completed when TCP has all of it.
func TestMessagesCompleteWhenTCPHasTheirOctets(t *testing.T) {
	for _, step := range []int{1, 3, 20, 1000, 1 << 20} {
		a, b := pair(t, Config{}, Config{})
		a.write(b, 0, patternOf(3000))
		a.say("behind it")
		var seen []string
		total := 0
		for {
			act, pieces := a.Next(0, MaxBatch)
			if act == ActNone {
				break
			}
			out := joined(pieces)
			must.That(t, act == ActWrite && len(out) > 0 && !a.HasOutput(), "action %v, %d octets", act, len(out))
			act, _ = a.Next(0, MaxBatch)
			must.Equal(t, "action while TCP has not answered", act, ActNone)
			n := min(step, len(out))
			b.feed(out[:n])
			total += n
			a.Written(0, n)
			if h := a.heard(); h != "" {
				seen = append(seen, fmt.Sprintf("%d %s", total, h))
			}
		}
		// 3 FPDUs of 1460, 1460 and 140 octets; then one of 36.
		want := map[int]string{1: "[3060 completed 8 3096 completed 7]",
			1 << 20: "[3096 completed 8, completed 7]"}[step]
		check.That(t, (want == "" || fmt.Sprint(seen) == want) && total == 3096, "step %d: %v, %d octets", step, seen,
			total)
		check.Equal(t, "the peer's user", b.heard(), `tagged 0+3000, untagged "behind it"`)
		check.That(t, bytes.Equal(b.memory[:3000], patternOf(3000)), "step %d: not what was written", step)
	}
}

// A long message goes out in several batches, and what is added meanwhile behind it.
func TestLongMessages(t *testing.T) {
	a, b := pair(t, Config{EMSS: 9000}, Config{})
	a.write(b, 0, patternOf(100_000))
	batches := 0
	for round := 0; ; round++ {
		act, pieces := a.Next(0, MaxBatch)
		if act == ActNone {
			break
		}
		batches++
		b.feed(joined(pieces))
		a.Written(0, len(joined(pieces)))
		if round < 40 {
			a.write(b, 0, patternOf(100_000))
		}
	}
	check.That(t, batches > 20 && bytes.Equal(b.memory[:100_000], patternOf(100_000)), "%d batches", batches)
	check.That(t, b.ds.Unfinished() == 0 && a.ds.Unfinished() == 0, "messages are left")
}

func TestMemoryIsDetached(t *testing.T) {
	for _, row := range []struct {
		name   string
		within func(x, y []byte) []byte // of the memory of two messages
		writes bool                     // TCP is at it
		copied [2]bool                  // which of the messages
	}{
		{"all, while nobody writes", func(x, y []byte) []byte { return nil }, false, [2]bool{true, true}},
		{"one, while nobody writes", func(x, y []byte) []byte { return y[1000:1010] }, false, [2]bool{false, true}},
		{"what is not in it", func(x, y []byte) []byte { return make([]byte, 100) }, false, [2]bool{}},
		{"all, while TCP writes", func(x, y []byte) []byte { return nil }, true, [2]bool{true, true}},
		{"one, while TCP writes", func(x, y []byte) []byte { return x[:1] }, true, [2]bool{true, true}},
		{"what is not in it, while TCP writes", func(x, y []byte) []byte { return make([]byte, 100) }, true, [2]bool{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := pair(t, Config{EMSS: 64000}, Config{})
			x, y := patternOf(5000), patternOf(6000)
			a.write(b, 0, x)
			a.write(b, 10_000, y)
			_, pieces := a.Next(0, MaxBatch)
			sent := bytes.Clone(joined(pieces)[:7])
			if !row.writes {
				a.Written(0, len(sent))
			}
			more := a.Detach(row.within(x, y))
			must.Equal(t, "more", more, row.writes && row.copied[0])
			if row.writes {
				must.Equal(t, "again", a.Detach(row.within(x, y)), more)
				a.Written(0, len(sent))
			}
			check.Equal(t, "more behind it", a.Detach(row.within(x, y)), false)
			for i, m := range [][]byte{x, y} {
				if row.copied[i] {
					clear(m) // the user's again
				}
			}
			b.feed(sent)
			exchange(a, b)
			check.That(t, bytes.Equal(b.memory[:5000], patternOf(5000)) && bytes.Equal(b.memory[10_000:16_000],
				patternOf(6000)),
				"the peer has not what was written")
			check.Equal(t, "the user", a.heard(), "completed 8, completed 8")
		})
	}
}

// While TCP writes, memory of the user is referred to: the stream ends when that is over.
func TestEndWhileTCPWrites(t *testing.T) {
	a, b := pair(t, Config{}, Config{})
	a.write(b, 0, patternOf(3000))
	a.Next(0, MaxBatch)
	a.Abort()
	check.That(t, a.State() == Ended && a.heard() == "" && a.takeEvents() == "" && !a.HasOutput(),
		"the user hears too early")
	a.Written(0, 100)
	check.That(t, a.heard() == "failed 8" && a.takeEvents() == "ended", "the user does not hear of it")
	check.That(t, a.Held() < 4000, "%d octets are kept", a.Held())
}

// Revoked memory ends a message, and with it what is behind, but not the connection.
func TestHeldMemoryIsBounded(t *testing.T) {
	a, b := pair(t, Config{}, Config{})
	for range 200 {
		a.write(b, 0, patternOf(100_000))
		exchange(a, b)
	}
	check.That(t, a.Held() < 64<<10 && b.Held() < 16<<10, "%d and %d octets are kept", a.Held(), b.Held())
}

// A frame of the start-up has no memory of the user's: nobody waits for it, and it is not copied.
func TestStartupFrameIsNotTheUsers(t *testing.T) {
	a := initiator(t, Config{}, nil, "hello")
	check.Equal(t, "octets to be written of messages", a.NextLen(), 0)
	act, pieces := a.Next(a.now, MaxBatch)
	must.That(t, act == ActWrite && len(pieces) == 1, "%v, %d pieces", act, len(pieces))
	check.Equal(t, "more, while it is being written", a.Detach(nil), false)
	check.Equal(t, "octets to be written of messages", a.NextLen(), 0)
	a.Written(a.now, 5)
	rest := &a.rest[0][0]
	check.Equal(t, "more, behind a part", a.Detach(nil), false)
	check.That(t, &a.rest[0][0] == rest, "it is copied")
	_, pieces = a.Next(a.now, MaxBatch)
	check.Equal(t, "octets behind the part", len(pieces[0]), FrameHeaderLen+len("hello")-5)
}
