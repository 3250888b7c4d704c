package simulation

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// crowdSession is one session of a crowd: what both ends have for it.
type crowdSession struct {
	a, b     *qp
	src, dst area // a writes, and tells of it by a Send to into
	into     area
	sent     int // completions of a
	told     int // completions of b's receive
	failed   *rdmap.StreamError
}

// manySessions is a world with a session on every stream of one association at once.
type manySessions struct {
	*World
	t      *testing.T
	guests []*crowdSession
}

func (c *manySessions) mustSucceed(err error) {
	must.OK(c.t, err)
}

// addSession prepares a session. Its memory is what is left of the hosts' for it.
func (c *manySessions) addSession(src, dst, into area) *crowdSession {
	g := &crowdSession{a: c.a.newQP(2, 1, 1, 1), b: c.b.newQP(2, 1, 1, 1), src: src, dst: dst, into: into}
	g.a.onSent = func(wc rdmap.WC) {
		if wc.Status == rdmap.StatusSuccess {
			g.sent++
		}
	}
	g.b.onSent = func(rdmap.WC) {}
	g.a.onReceived = func(rdmap.WC) {}
	g.b.onReceived = func(wc rdmap.WC) {
		if wc.Status != rdmap.StatusSuccess {
			return
		}
		g.told++
		if !bytes.Equal(dst.actualBytes(), src.actualBytes()) ||
			!bytes.Equal(into.actualBytes(), src.actualBytes()[:into.n]) {
			c.failf("a message is delivered, and what went before is not in place")
		}
	}
	for _, q := range []*qp{g.a, g.b} {
		q.onFailed = func(err *rdmap.StreamError) { g.failed = err }
		q.setup = sessionSetup{}
	}
	return g
}

// postWriteAndSend posts a Write and a Send.
func (c *manySessions) postWriteAndSend(g *crowdSession) {
	from := g.src.newRegion(0, 0, 0)
	to := g.dst.newRegion(ddp.RemoteWrite, 0, g.b.core.Stream().ID())
	recv := g.into.newRegion(ddp.LocalWrite, 0, 0)
	c.mustSucceed(g.b.core.PostRecv(&rdmap.RecvWR{SGL: []rdmap.SGE{{LKey: recv.STag(), Len: uint32(g.into.n)}}}))
	c.mustSucceed(g.a.core.PostSend(&rdmap.SendWR{Op: rdmap.WRWrite, Flags: rdmap.Unsignaled, RemoteSTag: to.STag(),
		SGL: []rdmap.SGE{{LKey: from.STag(), Len: uint32(g.src.n)}}}))
	c.mustSucceed(g.a.core.PostSend(&rdmap.SendWR{Op: rdmap.WRSend,
		SGL: []rdmap.SGE{{LKey: from.STag(), Len: uint32(g.into.n)}}}))
}

// awaitGuests steps until every guest is as it should be.
func (c *manySessions) awaitGuests(what string, done func(*crowdSession) bool) {
	c.t.Helper()
	c.runUntil(what, func() bool {
		return !slices.ContainsFunc(c.guests, func(g *crowdSession) bool { return !done(g) })
	})
	must.That(c.t, c.err == nil, "%v", c.err)
}
