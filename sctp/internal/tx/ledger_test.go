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

// The first chunks that are outstanding take no memory elsewhere, and none of theirs is kept when there are more. A copy of the Sender has its own.
func TestFirstRecordsLieWithTheRest(t *testing.T) {
	l := newLab(t, 1)
	g := &l.s.ledger
	for range 3 {
		l.queue(1, 100)
		l.transmit()
		check.That(t, len(g.recs) == firstRecs && &g.recs[0] == &g.own[0] && g.octets == 0, "%d records, %d octets elsewhere", len(g.recs), g.octets)
		l.sack(g.base)
	}
	l.queue(1, 100)
	l.transmit()
	failed := l.s.Copy()
	failed.Stop()
	l.s.Init(l.s.cfg)
	for i := range l.s.ledger.own {
		l.s.ledger.own[i].token = 100
	}
	m, ok := failed.NextFailed()
	check.That(t, ok && m.Token == 4, "of a copy there failed message %d: %v", m.Token, ok)

	l = newLab(t, 1)
	l.queue(firstRecs+1, 100)
	l.transmit()
	g = &l.s.ledger
	r := g.own[0]
	check.That(t, len(g.recs) > firstRecs && g.octets > 0 && r.body[0] == nil && r.token == 0, "%d records with %d octets, what was there first is %v", len(g.recs), g.octets, r)
}
