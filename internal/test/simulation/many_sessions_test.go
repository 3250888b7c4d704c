package simulation

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Thousands of sessions live on one association at once, over a network that loses, duplicates and
// reorders and whose MTU changes: each has its own octets and order. A third of them ends by abort
// and takes nobody along; the streams of all serve a second round.
func TestThousandsOfSessions(t *testing.T) {
	const streams, size, told = 3000, 100, 8
	w := New(7)
	w.mtuChanges = mtuChanges{next: rawio.Never}
	c := &manySessions{World: w, t: t}
	link := simnet.Params{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01, Duplicate: 0.01,
		Reorder:      0.05,
		ReorderDelay: 5 * time.Millisecond, MTU: 1500}
	w.mtu = 1480
	w.net.Connect(w.a.connectAddr(), w.b.connectAddr(), link)
	for _, h := range []*Host{w.a, w.b} {
		h.cfg.OutStreams, h.cfg.InStreams = streams, streams
	}
	must.OK(t, w.b.node.EP.Listen(port, &w.b.cfg))
	w.chooseQP = func(private []byte) *qp { return c.guests[binary.BigEndian.Uint16(private)].b }
	w.connectHosts()
	w.runUntil("setup", func() bool { return w.conn.up })
	var areas [][3]area
	for range streams {
		areas = append(areas, [3]area{w.a.mem.allocArea(size), w.b.mem.allocArea(size), w.b.mem.allocArea(told)})
	}
	for round := range 2 {
		c.guests = c.guests[:0]
		for i, x := range areas {
			x[0].fillRandom()
			g := c.addSession(x[0], x[1], x[2])
			c.guests = append(c.guests, g)
			s, err := w.conn.mux.Open(w.now, i, g.a.core.Stream(), binary.BigEndian.AppendUint16(nil, uint16(i)))
			c.mustSucceed(err)
			g.a.bindSession(w.conn, s)
			if i%100 == 0 {
				w.conn.Pump()
			}
		}
		w.conn.Pump()
		c.awaitGuests("setup of the sessions", func(g *crowdSession) bool {
			return g.a.core.State() == rdmap.StateRTS && g.b.core.State() == rdmap.StateRTS
		})
		a, b := w.conn.mux.Sessions(), w.b.currentConn().mux.Sessions()
		must.That(t, a == streams && b == streams, "round %d: %d and %d sessions at once, want %d", round, a, b,
			streams)
		for i, g := range c.guests {
			c.postWriteAndSend(g)
			if i == streams/2 {
				w.conn.Pump()
				w.setMTU(w.a.connectAddr(), w.b.connectAddr(), []int{576, 1280}[round], 64)
			}
		}
		for i, g := range c.guests {
			if i%3 == 0 {
				g.a.core.Abort(errAbort)
			}
		}
		w.conn.Pump()
		c.awaitGuests("the work", func(g *crowdSession) bool {
			return g.a.over && g.b.over || g.sent == 1 && g.told == 1
		})
		for i, g := range c.guests {
			aborted := i%3 == 0
			must.That(t, aborted == (g.failed != nil) && (aborted || g.told == 1),
				"round %d, session %d: aborted %v, failed %v, %d messages", round, i, aborted, g.failed, g.told)
			g.a.core.Close()
		}
		w.conn.Pump()
		c.awaitGuests("the end", func(g *crowdSession) bool { return g.a.over && g.b.over })
		a, b = w.conn.mux.Sessions(), w.b.currentConn().mux.Sessions()
		must.That(t, a == 0 && b == 0, "round %d: %d and %d sessions are left", round, a, b)
		w.net.Connect(w.a.connectAddr(), w.b.connectAddr(), link)
	}
	n := w.b.currentConn().mux.Stats().Violations
	check.That(t, n == 0 && w.conn.down == nil, "%d violations, association %v", n, w.conn.down)
}
