package tx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/invariant"
)

// The table is that of the package comment. What it lacks is a contradiction, which changes nothing and ends the association.
func TestTableIsThatOfTheCommentAndWhatItLacksCannotBe(t *testing.T) {
	l := newLab(t, 1)
	_, r := l.s.ledger.push()
	restore := invariant.Tolerate()
	l.s.ledger.cover(r, l.path(0))
	restore()
	check.Equal(t, "what is not there is covered", l.s.Fault().What, `in state "none"; TSN 1 to 2`)
	for st := none; st < numStates; st++ {
		line := ""
		for what, to := range table[st] {
			if to != none {
				line += fmt.Sprintf(", %v: %v", trigger(what), to)
				continue
			}
			l := newLab(t, 1)
			l.s.ledger.push()
			n, r := l.s.ledger.push()
			r.state = st
			restore := invariant.Tolerate()
			ok := l.s.ledger.move(trigger(what), n, r, l.path(0))
			restore()
			err, want := l.s.Fault(), fmt.Sprintf("%q in state %q; TSN 2 of 1 to 3", trigger(what), st)
			check.That(t, !ok && r.state == st && err != nil && err.What == want, "%s: it goes to %v, %v", want, r.state, err)
		}
		check.Documented(t, strings.TrimRight(fmt.Sprintf("\t%-9s %s", st, strings.TrimPrefix(line, ", ")), " ")+"\n")
	}
}
