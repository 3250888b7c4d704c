package sctp

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
)

// Who waits for an association to be set up, or to end, is told whenever he asks. Nobody else costs a channel.
func TestLifeIsToldToWhoAsks(t *testing.T) {
	type told struct{ begun, over, wasUp, ended bool }
	look := func(l *life) told {
		return told{isClosed(l.begun()), isClosed(l.over()), l.wasUp(), l.hasEnded()}
	}
	var l, early, failed life
	check.Equal(t, "an association that is being set up", look(&l), told{})
	begun, over := l.begun(), l.over()
	check.That(t, begun == l.begun() && over == l.over() && begun != over, "who asks again gets another channel")
	l.begin()
	early.begin() // nobody has asked
	for _, l := range []*life{&l, &early} {
		check.Equal(t, "one that is set up", look(l), told{begun: true, wasUp: true})
	}
	check.That(t, isClosed(begun) && !isClosed(over), "who has waited for it is not told that it is set up")
	over = l.over()
	l.end()
	early.end()
	for _, l := range []*life{&l, &early} {
		check.Equal(t, "one that has ended", look(l), told{true, true, true, true})
	}
	check.That(t, isClosed(over), "who has waited for it is not told that it has ended")
	begun = failed.begun()
	failed.end()
	check.Equal(t, "one that was never set up", look(&failed), told{begun: true, over: true, ended: true})
	check.That(t, isClosed(begun), "who has waited for it is not told that it has failed")
	check.That(t, l.tell() && !l.tell() && !l.tell(), "it is told more than once")

	c, s := newPair(t).connect(t, quiet, quiet)
	for _, c := range []*Conn{c, s} {
		check.That(t, c.life.settled == nil && c.life.gone == nil, "an association that nobody waits for has channels")
	}
}
