package assoc

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
)

// dataOf returns data of a state, nil if it has none.
func dataOf(s State) stateData {
	for _, own := range []stateData{new(cookieWait), new(cookieEchoed), new(shutdownSent), new(shutdownAckSent)} {
		if own.state() == s {
			return own
		}
	}
	return nil
}

// Each pair of a state and a trigger: the table, which is that of the package comment, is gone by,
// and nothing is left that belongs to states before; what is not in it is a contradiction, which
// changes nothing and ends the association.
func TestEveryStateAndTrigger(t *testing.T) {
	defer invariant.TolerateInTest()()
	for from := Closed; from <= ShutdownAckSent; from++ {
		var ways []string
		for by := trigger(0); by < numTriggers; by++ {
			a := &Assoc{lifecycle: lifecycle{state: from, stateData: dataOf(from)}, life: life{incarnation: 3},
				id: associationID{localTag: 4, peerTag: 5}}
			to, open := transitions[from][by]
			want := fmt.Sprintf("assoc.changeState: %q in %v; life 3, tags 0x4 and 0x5", by, from)
			check.That(t, a.changeState(by, dataOf(to)) == open && (open || a.state == from && a.internalErr != nil &&
				strings.Contains(a.internalErr.Error(), want)) && (!open || a.state == to && a.internalErr == nil),
				"%q in %v: now in %v, %v", by, from, a.state, a.internalErr)
			for other := Closed; open && other <= ShutdownAckSent; other++ {
				b := &Assoc{lifecycle: lifecycle{state: from, stateData: dataOf(from)}}
				right := other == to || !dataStates.has(to) && !dataStates.has(other)
				check.That(t, b.changeState(by, dataOf(other)) == right, "%v to %v, with the data of %v: %v", from, to,
					other, !right)
			}
			if open {
				ways = append(ways, fmt.Sprintf("%v: %v", by, to))
			}
			handshake := to == CookieWait || to == CookieEchoed
			check.That(t, !open || handshake == (a.setup() != nil), "%v to %v: has a handshake: %v", from, to,
				!handshake)
			shutdown := to == ShutdownSent || to == ShutdownAckSent
			check.That(t, !open || shutdown == (a.shutdownState() != nil), "%v to %v: has a shutdown under way: %v",
				from, to, !shutdown)
		}
		if a := (&Assoc{}); from == Closed {
			a.endAssoc(onEnd, nil)
			check.Equal(t, "events of what has ended", a.events.n, 0)
		} else {
			check.Documented(t, fmt.Sprintf("\t%-17s %s\n", from, strings.Join(ways, ", ")))
		}
	}
}
