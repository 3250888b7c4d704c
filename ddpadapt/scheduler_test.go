package ddpadapt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
)

func TestStreamsTakeTurns(t *testing.T) {
	a, b := newPair(t)
	_, _, u0, _ := connectSession(a, b)
	_, _, u2, _ := connectSession(a, b)
	for range 3 {
		u0.sendText("x")
	}
	u2.sendText("y")
	u2.sendText("y")
	u4 := a.newStream(0)
	a.Open(0, -1, u4.Stream, nil)
	a.expectSends("4: 0 initiate", "0: 1 segment x", "0: 2 segment x", "0: 3 segment x", "2: 1 segment y",
		"2: 2 segment y")
	u0.sendText("withdrawn")
	u0.CancelUnsent()
	u2.sendText("y")
	a.expectSends("2: 3 segment y") // whose turn it is although the one before had nothing
	u4.sendText("z")                // which has no turn before the answer
	u0.sendText("x")
	a.injectLines(4, "0 accept")
	a.expectSends("0: 4 segment x", "4: 1 segment z")
	for _, p := range a.flight {
		p.arrived = true
	}
	a.ackArrived()
	u2.sendText("y")
	u0.sendText("x")
	a.expectSends("2: 4 segment y", "0: 5 segment x") // an acknowledgement is no turn
}

// busy is an end with several sessions.
type busy struct {
	*end
	users []*user
}

func newBusy(t *testing.T, streams int) *busy {
	a, b := newPair(t)
	z := &busy{end: a}
	for range streams {
		_, _, u, _ := connectSession(a, b)
		z.users = append(z.users, u)
	}
	return z
}

func (z *busy) postSends(i, n int) {
	for range n {
		z.users[i].sendText("x")
	}
}

// sendOrder is how many segments come from which user, one after the other, of the next n.
func (z *busy) sendOrder(n int) string {
	var b strings.Builder
	last, times := -1, 0
	flush := func() {
		if times > 0 {
			fmt.Fprintf(&b, "%c%d ", 'a'+last, times)
		}
	}
	for msg := (assoc.Message{}); n > 0 && z.Next(0, 1<<16, &msg); n-- {
		if i := int(msg.Stream) / 2; i != last {
			flush()
			last, times = i, 0
		}
		times++
	}
	flush()
	return strings.TrimSpace(b.String())
}

// A session with much to send has turns of eight segments.
func TestTurnsOfThoseThatHaveMuch(t *testing.T) {
	z := newBusy(t, 3)
	z.postSends(0, 20)
	z.postSends(1, 9)
	z.postSends(2, 8)
	check.Equal(t, "order", z.sendOrder(100), "a8 b8 a8 c8 b1 a4")
}

// A session that had nothing to send does not wait for all that have much: for the turn that has
// begun, and another one at most.
func TestTurnOfWhoHadNothing(t *testing.T) {
	z := newBusy(t, 4)
	for i := range 3 {
		z.postSends(i, 100)
	}
	must.Equal(t, "order", z.sendOrder(54), "a8 b8 a8 c8 b8 a8 c6")
	z.postSends(3, 1)
	must.Equal(t, "order with one that had nothing", z.sendOrder(12), "c2 d1 b8 a1")
	z.postSends(3, 100)
	must.Equal(t, "order when that one has much", z.sendOrder(7+8*5), "a7 d8 c8 b8 a8 d8")
}

// Those that have had nothing have every other turn, however many they are: none waits for ever.
func TestTurnsOfThoseThatHadNothing(t *testing.T) {
	z := newBusy(t, 4)
	z.postSends(0, 100)
	z.postSends(1, 100)
	must.Equal(t, "order", z.sendOrder(17), "a8 b8 a1")
	for i := range 4 {
		z.postSends(2, 1)
		z.postSends(3, 1)
		want := []string{"a7 c1 b8 d1", "a8 c1 b8 d1", "a8 c1 b8 d1", "a8 c1 b8 d1"}[i]
		must.Equal(t, "order", z.sendOrder([]int{17, 18, 18, 18}[i]), want)
	}
}

// A session that cannot go on in the middle of a turn has lost the rest of it.
func TestTurnThatIsBrokenOff(t *testing.T) {
	z := newBusy(t, 2)
	z.postSends(0, 20)
	z.postSends(1, 20)
	must.Equal(t, "order", z.sendOrder(3), "a3")
	z.users[0].CancelUnsent()
	must.Equal(t, "order when the first has nothing any more", z.sendOrder(3), "b3")
	z.postSends(0, 1)
	check.Equal(t, "order when it has again", z.sendOrder(100), "b5 a1 b12")
}
