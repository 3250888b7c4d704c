package simulation

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// guest is one session of a crowd: what both ends have for it.
type guest struct {
	a, b     *qp
	src, dst area // a writes, and tells of it by a Send to into
	into     area
	sent     int // completions of a
	told     int // completions of b's receive
	failed   *rdmap.StreamError
}

// crowd is a world with a session on every stream of one association at once.
type crowd struct {
	*World
	t      *testing.T
	guests []*guest
}

func (c *crowd) must(err error) {
	must.OK(c.t, err)
}

// invite prepares a session. Its memory is what is left of the hosts' for it.
func (c *crowd) invite(src, dst, into area) *guest {
	g := &guest{a: c.a.newQP(2, 1, 1, 1), b: c.b.newQP(2, 1, 1, 1), src: src, dst: dst, into: into}
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
		if !bytes.Equal(dst.bytes(), src.bytes()) || !bytes.Equal(into.bytes(), src.bytes()[:into.n]) {
			c.failf("a message is delivered, and what went before is not in place")
		}
	}
	for _, q := range []*qp{g.a, g.b} {
		q.onFailed = func(err *rdmap.StreamError) { g.failed = err }
		q.setup = setup{}
	}
	return g
}

// speak posts a Write and a Send.
func (c *crowd) speak(g *guest) {
	from := g.src.register(0, 0, 0)
	to := g.dst.register(ddp.RemoteWrite, 0, g.b.core.Stream().ID())
	recv := g.into.register(ddp.LocalWrite, 0, 0)
	c.must(g.b.core.PostRecv(&rdmap.RecvWR{SGL: []rdmap.SGE{{LKey: recv.STag(), Len: uint32(g.into.n)}}}))
	c.must(g.a.core.PostSend(&rdmap.SendWR{Op: rdmap.WRWrite, Flags: rdmap.Unsignaled, RemoteSTag: to.STag(),
		SGL: []rdmap.SGE{{LKey: from.STag(), Len: uint32(g.src.n)}}}))
	c.must(g.a.core.PostSend(&rdmap.SendWR{Op: rdmap.WRSend,
		SGL: []rdmap.SGE{{LKey: from.STag(), Len: uint32(g.into.n)}}}))
}

// await steps until every guest is as it should be.
func (c *crowd) await(what string, done func(*guest) bool) {
	c.t.Helper()
	c.run(what, func() bool {
		return !slices.ContainsFunc(c.guests, func(g *guest) bool { return !done(g) })
	})
	must.That(c.t, c.err == nil, "%v", c.err)
}
