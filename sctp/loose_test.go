package sctp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// Messages that end in whatever order keep their octets until then. Memory of those that have ended
// serves others: no more is held than twice what messages have, and a little.
func TestLooseMessagesEndInAnyOrder(t *testing.T) {
	var l looseMessages
	r := rand.New(rand.NewPCG(3, 4))
	type message struct {
		token uint64
		n     int
	}
	sizeOf := func(n int) int {
		if n%50 == 0 {
			return 100_000 + n
		}
		return 1 + n%3000
	}
	var live []message
	used := 0
	end := func(i int) {
		m := live[i]
		w := l.get(m.token)
		must.That(t, bytes.Equal(w.body[0], patternOf(m.n, sizeOf(m.n))) && w.body[1] == nil && w.info.PPID == uint32(m.n),
			"message %d of %d octets was overwritten", m.n, w.len())
		l.freeMessage(m.token)
		used -= sizeOf(m.n)
		live[i] = live[len(live)-1]
		live = live[:len(live)-1]
	}
	const most = 100
	for n := range 20_000 {
		w, token := l.putMessage(patternOf(n, sizeOf(n)), &SendInfo{PPID: uint32(n)})
		must.That(t, token&looseToken != 0 && w == l.get(token), "token %x", token)
		live, used = append(live, message{token, n}), used+sizeOf(n)
		for len(live) == most || len(live) > 0 && r.IntN(101) < 50 {
			end(r.IntN(len(live)))
		}
		check.Equal(t, "octets of messages", l.usedOctets, used)
		must.That(t, l.ownedOctets <= 2*used+freeLooseOctets+most<<minLooseClass+1<<12, "%d octets of memory for %d", l.ownedOctets, used)
	}
	check.That(t, len(l.slots) <= 5*most, "%d places for %d messages", len(l.slots), most)
	for len(live) > 0 {
		end(len(live) - 1)
	}
	check.That(t, l.heldOctets() > 0, "nothing is kept")
	l.byStream = true
	l.trimIdle()
	l.trimIdle()
	check.That(t, l.ownedOctets == 0 && l.slots == nil && l.byStream, "after a while %d octets are kept", l.ownedOctets)
	_, token := l.putMessage([]byte("x"), &SendInfo{})
	l.trimIdle()
	l.trimIdle()
	check.Equal(t, "a message that is there", string(l.get(token).body[0]), "x")
	check.That(t, !l.hasMemoryFor(1), "memory that is in use is free")
	l.freeMessage(token)
	check.That(t, l.hasMemoryFor(64) && !l.hasMemoryFor(65), "memory of one message does not serve another")
	var none *looseMessages
	none.trimIdle()
	check.Equal(t, "octets of none", none.heldOctets(), 0)
}

func TestLooseMessagesAllocateNothing(t *testing.T) {
	var l looseMessages
	p, info := make([]byte, 1000), &SendInfo{}
	_, last := l.putMessage(p, info)
	n := testing.AllocsPerRun(1000, func() {
		_, next := l.putMessage(p, info)
		l.freeMessage(last)
		last = next
	})
	check.That(t, n == 0, "%v allocations a message", n)
}
