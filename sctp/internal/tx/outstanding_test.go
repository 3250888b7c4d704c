package tx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
)

// The table is that of the package comment. What it lacks is a contradiction, which changes nothing
// and ends the association.
func TestTableIsThatOfTheCommentAndWhatItLacksCannotBe(t *testing.T) {
	l := newLab(t, 1)
	_, r := l.s.outstanding.appendRecord()
	restore := invariant.TolerateInTest()
	l.s.outstanding.cumAckFirst(r, l.pathAt(0))
	restore()
	check.Equal(t, "what is not there is covered", l.s.Fault().What, `in state "none"; TSN 1 to 2`)
	for st := stateNone; st < numChunkStates; st++ {
		line := ""
		for what, to := range transitions[st] {
			if to != stateNone {
				line += fmt.Sprintf(", %v: %v", chunkEvent(what), to)
				continue
			}
			l := newLab(t, 1)
			l.s.outstanding.appendRecord()
			n, r := l.s.outstanding.appendRecord()
			r.state = st
			restore := invariant.TolerateInTest()
			ok := l.s.outstanding.applyEvent(chunkEvent(what), n, r, l.pathAt(0))
			restore()
			err, want := l.s.Fault(), fmt.Sprintf("%q in state %q; TSN 2 of 1 to 3", chunkEvent(what), st)
			check.That(t, !ok && r.state == st && err != nil && err.What == want, "%s: it goes to %v, %v", want,
				r.state, err)
		}
		check.Documented(t, strings.TrimRight(fmt.Sprintf("\t%-15s %s", st, strings.TrimPrefix(line, ", ")), " ")+"\n")
	}
}

// The first chunks that are outstanding take no memory elsewhere, and none of theirs is kept when
// there are more. A copy of the Sender has its own.
func TestFirstRecordsLieWithTheRest(t *testing.T) {
	l := newLab(t, 1)
	g := &l.s.outstanding
	for range 3 {
		l.enqueueMany(1, 100)
		l.transmit()
		check.That(t, len(g.chunkRing) == initialRecords && &g.chunkRing[0] == &g.inlineRecords[0] &&
			g.memoryOctets == 0, "%d records, %d octets elsewhere", len(g.chunkRing), g.memoryOctets)
		l.sack(g.firstUnacked)
	}
	l.enqueueMany(1, 100)
	l.transmit()
	failed := l.s.Copy()
	failed.Stop()
	l.s.Init(l.s.cfg)
	for i := range l.s.outstanding.inlineRecords {
		l.s.outstanding.inlineRecords[i].token = 100
	}
	m, ok := failed.NextFailed()
	check.That(t, ok && m.Token == 4, "of a copy there failed message %d: %v", m.Token, ok)

	l = newLab(t, 1)
	l.enqueueMany(initialRecords+1, 100)
	l.transmit()
	g = &l.s.outstanding
	r := g.inlineRecords[0]
	check.That(t, len(g.chunkRing) > initialRecords && g.memoryOctets > 0 && r.body[0] == nil && r.token == 0,
		"%d records with %d octets, what was there first is %v", len(g.chunkRing), g.memoryOctets, r)
}
