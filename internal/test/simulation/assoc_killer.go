package simulation

import (
	"errors"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// assocKiller ends the association of a world in the middle of everything. Afterwards the hosts set
// up another one and go on.
type assocKiller struct {
	at   rawio.Time // when it strikes, or looks again
	on   bool       // it has struck, and is not made good yet
	cut  bool       // the network is
	heal rawio.Time // when the network comes back
}

// drawKill draws whether and when.
func (d *assocKiller) drawKill(w *World) {
	d.at = rawio.Never
	if w.linkFailures == nil && w.rand.IntN(6) == 0 {
		d.at = w.now.Add(time.Duration(w.rand.IntN(3000)) * time.Millisecond)
	}
}

func (d *assocKiller) actDue(w *World) {
	switch {
	case w.now < d.at:
	case !d.on && w.keys != nil && !w.bothConnected(): // a host has crashed and is not back
		d.at = w.now.Add(time.Second)
	case !d.on:
		d.on = true
		d.killAssoc(w)
	case d.cut && (w.now >= d.heal || w.allAssocsGone()):
		d.cut = false
		w.net.Heal(w.a.connectAddr(), w.b.connectAddr())
		d.at = w.now.Add(time.Second)
	case w.allAssocsGone(): // the associations are no more
		d.on, d.at = false, rawio.Never
		w.coverage.Losses++
		w.sessions += len(w.slots)
		w.ops += 10
		w.connectHosts()
	case d.heal > 0 && w.now >= d.heal.Add(10*time.Minute) && w.conn.down == nil && w.b.currentConn().down == nil:
		d.on, d.at = false, rawio.Never // both have survived it
	default:
		d.at = w.now.Add(time.Second)
	}
}

// killAssoc is the end: one side aborts, or the network is cut, for good or for a while.
func (d *assocKiller) killAssoc(w *World) {
	d.at = w.now.Add(time.Second)
	switch k := w.rand.IntN(4); k {
	case 0, 1:
		c := []*Host{w.a, w.b}[k].currentConn()
		c.a.Abort(c.h.node.Time(), []byte("killed"))
		c.Pump()
	default:
		d.cut, d.heal = true, rawio.Never
		if k == 3 {
			d.heal = w.now.Add(time.Duration(w.rand.IntN(60_000)) * time.Millisecond)
		}
		w.net.Partition(w.a.connectAddr(), w.b.connectAddr())
	}
}

// apart: no association is left on either side.
func (w *World) allAssocsGone() bool { return w.conn.down != nil && w.b.currentConn().down != nil }

// assocLost takes the end of an association. Requests of all its sessions may end with it.
func (w *World) assocLost(c *conn) {
	switch {
	case w.joined != nil:
		w.joined.assocParted(w, c)
	case w.keys.setupLost(c):
	case errors.Is(c.down, assoc.ErrShutdown) && w.finishing, w.linkFailures.isExcused(c.down):
	case w.assocKiller.on:
		w.cutOff()
	default:
		w.failf("%s: association ended by %v", c.h.name, c.down)
	}
}

// sessionRejected takes the peer's answer to a request for a session.
func (w *World) sessionRejected(q *qp, err error) {
	for _, n := range w.slots {
		if n.active != nil && n.active.q == q && (n.refuse || w.joined != nil && n.end.begun) {
			return
		}
	}
	w.failf("%s: session rejected: %v", q.h.name, err)
}
