package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

// A caller that waits for an association to be set up, or to end, is told whenever it asks. Nobody
// else costs a channel.
func TestLifeIsToldToWhoAsks(t *testing.T) {
	type told struct{ begun, over, wasUp, ended bool }
	look := func(l *lifecycle) told {
		return told{isClosed(l.begunChan()), isClosed(l.endedChan()), l.wasUp(), l.hasEnded()}
	}
	var l, early, failed lifecycle
	check.Equal(t, "an association that is being set up", look(&l), told{})
	begun, over := l.begunChan(), l.endedChan()
	check.That(t, begun == l.begunChan() && over == l.endedChan() && begun != over,
		"who asks again gets another channel")
	l.markUp()
	early.markUp() // nobody has asked
	for _, l := range []*lifecycle{&l, &early} {
		check.Equal(t, "one that is set up", look(l), told{begun: true, wasUp: true})
	}
	check.That(t, isClosed(begun) && !isClosed(over), "who has waited for it is not told that it is set up")
	over = l.endedChan()
	l.markEnded()
	early.markEnded()
	for _, l := range []*lifecycle{&l, &early} {
		check.Equal(t, "one that has ended", look(l), told{true, true, true, true})
	}
	check.That(t, isClosed(over), "who has waited for it is not told that it has ended")
	begun = failed.begunChan()
	failed.markEnded()
	check.Equal(t, "one that was never set up", look(&failed), told{begun: true, over: true, ended: true})
	check.That(t, isClosed(begun), "who has waited for it is not told that it has failed")
	check.That(t, l.claimAnnouncement() && !l.claimAnnouncement() && !l.claimAnnouncement(),
		"it is told more than once")

	c, s := newPair(t).connect(t, quiet, quiet)
	for _, c := range []*Conn{c, s} {
		check.That(t, c.lifecycle.begunCh == nil && c.lifecycle.endedCh == nil,
			"an association that nobody waits for has channels")
	}
}
