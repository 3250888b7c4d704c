package world

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
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
	c.must(g.a.core.PostSend(&rdmap.SendWR{Op: rdmap.WRSend, SGL: []rdmap.SGE{{LKey: from.STag(), Len: uint32(g.into.n)}}}))
}

// await steps until every guest is as it should be.
func (c *crowd) await(what string, done func(*guest) bool) {
	c.t.Helper()
	c.run(what, func() bool {
		return !slices.ContainsFunc(c.guests, func(g *guest) bool { return !done(g) })
	})
	must.That(c.t, c.err == nil, "%v", c.err)
}

// Thousands of sessions live on one association at once, over a network that loses, duplicates and reorders and whose MTU
// changes: each has its own octets and order. A third of them ends by abort and takes nobody along; the streams of all
// serve a second round.
func TestThousandsOfSessions(t *testing.T) {
	const streams, size, told = 3000, 100, 8
	w := New(7)
	w.weather = weather{next: rawio.Never}
	c := &crowd{World: w, t: t}
	link := simnet.Params{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01, Duplicate: 0.01, Reorder: 0.05,
		ReorderDelay: 5 * time.Millisecond, MTU: 1500}
	w.mtu = 1480
	w.net.Connect(w.a.addr(), w.b.addr(), link)
	for _, h := range []*Host{w.a, w.b} {
		h.cfg.OutStreams, h.cfg.InStreams = streams, streams
	}
	must.OK(t, w.b.node.EP.Listen(port, &w.b.cfg))
	w.serves = func(private []byte) *qp { return c.guests[binary.BigEndian.Uint16(private)].b }
	w.connect()
	w.run("setup", func() bool { return w.conn.up })
	var areas [][3]area
	for range streams {
		areas = append(areas, [3]area{w.a.mem.alloc(size), w.b.mem.alloc(size), w.b.mem.alloc(told)})
	}
	for round := range 2 {
		c.guests = c.guests[:0]
		for i, x := range areas {
			x[0].fill()
			g := c.invite(x[0], x[1], x[2])
			c.guests = append(c.guests, g)
			s, err := w.conn.mux.Open(w.now, i, g.a.core.Stream(), binary.BigEndian.AppendUint16(nil, uint16(i)))
			c.must(err)
			g.a.bind(w.conn, s)
			if i%100 == 0 {
				w.conn.Pump()
			}
		}
		w.conn.Pump()
		c.await("setup of the sessions", func(g *guest) bool {
			return g.a.core.State() == rdmap.StateRTS && g.b.core.State() == rdmap.StateRTS
		})
		a, b := w.conn.mux.Sessions(), w.b.conn().mux.Sessions()
		must.That(t, a == streams && b == streams, "round %d: %d and %d sessions at once, want %d", round, a, b, streams)
		for i, g := range c.guests {
			c.speak(g)
			if i == streams/2 {
				w.conn.Pump()
				w.setMTU(w.a.addr(), w.b.addr(), []int{576, 1280}[round], 64)
			}
		}
		for i, g := range c.guests {
			if i%3 == 0 {
				g.a.core.Abort(errAbort)
			}
		}
		w.conn.Pump()
		c.await("the work", func(g *guest) bool { return g.a.over && g.b.over || g.sent == 1 && g.told == 1 })
		for i, g := range c.guests {
			if aborted := i%3 == 0; aborted != (g.failed != nil) || !aborted && g.told != 1 {
				t.Fatalf("round %d, session %d: aborted %v, failed %v, %d messages", round, i, aborted, g.failed, g.told)
			}
			g.a.core.Close()
		}
		w.conn.Pump()
		c.await("the end", func(g *guest) bool { return g.a.over && g.b.over })
		a, b = w.conn.mux.Sessions(), w.b.conn().mux.Sessions()
		must.That(t, a == 0 && b == 0, "round %d: %d and %d sessions are left", round, a, b)
		w.net.Connect(w.a.addr(), w.b.addr(), link)
	}
	n := w.b.conn().mux.Stats().Violations
	check.That(t, n == 0 && w.conn.down == nil, "%d violations, association %v", n, w.conn.down)
}
