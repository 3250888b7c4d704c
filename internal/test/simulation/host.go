package simulation

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// port is where worlds with a network of their own listen, and connect from.
const port, localPort = 5043, 49152

// Host is what one machine has of a world: registered memory, and the sessions of its QPs.
type Host struct {
	w     *World
	name  string
	node  *Node
	cfg   assoc.Config
	conns []*conn // in the order they were made
	table *ddp.Table
	mem   *memory

	outOfOrder    int // ddpadapt.Config.MaxOutOfOrder
	nextStream    ddp.StreamID
	sharedCounter *sharedCounter
}

// currentConn returns the association that there is now, or was last. A QP pair's B may have none.
func (h *Host) currentConn() *conn {
	switch {
	case h.w.joined == nil:
		return h.conns[len(h.conns)-1]
	case h == h.w.a:
		return h.w.conn
	}
	return h.w.peerConn()
}

// connection carries the sessions of QPs: an association, or a TCP connection with the session of
// one.
type connection interface {
	// Pump does what has become due.
	Pump()
	// closeLater ends the half of a QP whose peer has ended its own.
	closeLater(q *qp)
	// flushLater has requests of a QP end once what was taken for sending is on its way.
	flushLater(q *qp)
	// interruptWrite has what is being written come back, so that Detach need not wait.
	interruptWrite()
}

// session is what a QP has of a connection.
type session interface {
	Detach(within []byte) (more bool)
}

// bothConnected reports whether both hosts have an association.
func (w *World) bothConnected() bool {
	if w.tcp != nil {
		return w.joined == nil || w.joined.off == [2]bool{}
	}
	a, b := w.conn, w.b.currentConn()
	return a.up && a.down == nil && b != nil && b.up && b.down == nil
}

// conn is one association with the DDP sessions on it.
type conn struct {
	h    *Host
	a    *assoc.Assoc
	mux  *ddpadapt.Mux
	up   bool
	down error // why it ended

	peerless bool // the peer's half has got no keys in time

	closing  []*qp // the peer has ended its half
	flushing []*qp // requests end once the packets are on their way
}

func newHost(w *World, n *Node) *Host {
	h := &Host{w: w, name: n.Name, node: n}
	h.table = ddp.NewTable(w.rand)
	h.mem = newMemory(w, h)
	ddpadapt.Configure(&h.cfg)
	return h
}

// connectAddr is where others connect to.
func (h *Host) connectAddr() netip.Addr { return h.node.Addrs[0] }

// startAssoc starts an association with the other host.
func (h *Host) startAssoc(to *Host) *conn {
	udp := h.w.udp
	a, err := h.node.EP.Connect(h.node.Time(), &h.cfg, h.w.local, netip.AddrPortFrom(h.connectAddr(), udp),
		[]netip.AddrPort{netip.AddrPortFrom(to.connectAddr(), udp)}, h.w.port)
	if err != nil {
		h.w.failf("connect: %v", err)
		return nil
	}
	c := h.addConn(a, true)
	h.node.Add(c)
	return c
}

func (h *Host) addConn(a *assoc.Assoc, initiator bool) *conn {
	c := &conn{h: h, a: a}
	c.mux = ddpadapt.NewMux(a, ddpadapt.Config{Initiator: initiator, MaxOutOfOrder: h.outOfOrder})
	a.Owner = c
	a.SetUpper(c.mux, c.mux)
	if h.cfg.Protected {
		h.w.tls().Attach(h.node, c)
	}
	h.conns = append(h.conns, c)
	return c
}

func (c *conn) closeLater(q *qp) { c.closing = append(c.closing, q) }
func (c *conn) flushLater(q *qp) { c.flushing = append(c.flushing, q) }
func (c *conn) interruptWrite()  {} // what is in flight is copied at once

// Assoc implements Conn.
func (c *conn) Assoc() *assoc.Assoc { return c.a }

// Gone implements Conn.
func (c *conn) Gone() bool { return c.down != nil }

// Pump implements Conn.
func (c *conn) Pump() {
	now := c.h.node.Time()
	for {
		for {
			ev, ok := c.a.PollEvent()
			if !ok {
				break
			}
			c.handleEvent(now, ev)
		}
		left := c.mux.HandleReceived(now)
		for _, q := range c.closing {
			q.core.Close()
		}
		c.closing = c.closing[:0]
		busy := false
		for {
			ev, ok := c.mux.PollEvent()
			if !ok {
				break
			}
			busy = true
			c.handleSession(now, ev)
		}
		more := c.h.node.Transmit(c.a) || left
		flushing := c.flushing
		for c.flushing = nil; len(flushing) > 0; flushing = flushing[1:] {
			flushing[0].core.Flush()
		}
		more = more || len(c.flushing) > 0
		if !busy && !more {
			c.h.node.Settled(c)
			return
		}
	}
}

func (c *conn) handleEvent(now rawio.Time, ev assoc.Event) {
	switch ev.Kind {
	case assoc.EventUp, assoc.EventRestart:
		c.up = true
		c.h.node.EP.Refresh(c.a)
	case assoc.EventPathUp, assoc.EventPathDown:
		c.h.node.EP.Refresh(c.a)
	case assoc.EventDown:
		c.down = ev.Err
		c.h.node.EP.Remove(now, c.a)
		c.h.w.countRekeys(c)
		c.h.w.assocLost(c)
	}
	c.mux.HandleEvent(now, ev)
}

func (c *conn) handleSession(now rawio.Time, ev ddpadapt.Event) {
	if ev.Session == nil {
		return
	}
	q, _ := ev.Session.Owner.(*qp)
	switch ev.Kind {
	case ddpadapt.EventInitiate:
		if q = c.h.w.serveSession(c, ev.Private); q == nil {
			if err := ev.Session.Reject(now, nil); err != nil {
				c.h.w.failf("%s: reject: %v", c.h.name, err)
			}
			return
		}
		q.bindSession(c, ev.Session)
		q.answerRequest(ev.Setup, func(reply *llp.Setup) error {
			if reply != nil {
				return ev.Session.AcceptEnhanced(now, q.core.Stream(), *reply, ev.Private)
			}
			return ev.Session.Accept(now, q.core.Stream(), ev.Private)
		})
	case ddpadapt.EventAccepted:
		q.sessionAccepted(ev.Setup)
	case ddpadapt.EventRejected:
		c.h.w.sessionRejected(q, ev.Err)
	case ddpadapt.EventEnded, ddpadapt.EventDown:
		if q != nil {
			q.over = true
			q.core.Ended()
		}
	}
}

// qp is a queue pair with its side of the workload.
type qp struct {
	h       *Host
	core    *rdmap.QP
	conn    connection
	session session
	over    bool
	setup   sessionSetup

	onSent, onReceived func(rdmap.WC)
	onFailed           func(*rdmap.StreamError)
	onIndicate         func(llp.RTR)
}

func (h *Host) newQP(send, recv int, ird, ord int) *qp {
	h.nextStream++
	q := &qp{h: h}
	core, err := rdmap.NewQP(rdmap.Config{
		Table: h.table, PD: 1, Stream: h.nextStream, QPNum: uint32(h.nextStream),
		SendCQ: (*sendCQ)(q), RecvCQ: (*recvCQ)(q), Host: (*host)(q),
		MaxSend: send, MaxRecv: recv, MaxSGE: 4, MaxInline: 128, IRD: ird, ORD: ord,
	})
	if err != nil {
		panic(fmt.Sprintf("world: a configuration of our own was refused: %v", err))
	}
	q.core = core
	return q
}

func (q *qp) bindSession(c *conn, s *ddpadapt.Session) {
	q.conn, q.session = c, s
	s.Owner = q
}

// sendCQ and recvCQ are the two completion queues of a qp.
type sendCQ qp
type recvCQ qp

func (c *sendCQ) Push(wc rdmap.WC) { c.onSent(wc) }
func (c *recvCQ) Push(wc rdmap.WC) { c.onReceived(wc) }

// host is what the RDMAP core asks of its surroundings.
type host qp

func (h *host) SharedRegion(r *ddp.Region) bool { return r.Scope() == 0 }
func (h *host) FlushLater()                     { h.conn.flushLater((*qp)(h)) }
func (h *host) HighWater()                      {}
func (h *host) Broken(err *assoc.InternalError) { panic(err) }
func (h *host) Detach() (more bool) {
	return h.session != nil && h.session.Detach(nil)
}
func (h *host) Failed(err *rdmap.StreamError) { h.onFailed(err) }
func (h *host) PeerClosed()                   { h.conn.closeLater((*qp)(h)) }
