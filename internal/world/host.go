package world

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

const port = 5043

// Host is one machine: an SCTP endpoint, registered memory, and the sessions of its QPs.
type Host struct {
	w     *World
	name  string
	addr  netip.Addr   // where others connect to
	addrs []netip.Addr // all, addr being the first
	ep    *endpoint.Endpoint
	cfg   assoc.Config
	conns []*conn // in the order they were made
	table *ddp.Table
	mem   *memory
	tx    *assoc.TxBatch

	nextStream ddp.StreamID
	tally      *tally

	// accept is asked for the QP that serves an incoming session; nil rejects it.
	accept func(private []byte) *qp
}

// conn returns the association that there is now, or was last.
func (h *Host) conn() *conn { return h.conns[len(h.conns)-1] }

// linked reports whether both hosts have an association.
func (w *World) linked() bool {
	a, b := w.conn, w.b.conn()
	return a.up && a.down == nil && b.up && b.down == nil
}

// conn is one association with the DDP sessions on it.
type conn struct {
	h    *Host
	a    *assoc.Assoc
	mux  *ddpadapt.Mux
	up   bool
	down error // why it ended

	closing  []*qp // the peer has ended its half
	flushing []*qp // requests end once the packets are on their way
}

func newHost(w *World, name string, addr netip.Addr) *Host {
	h := &Host{w: w, name: name, addr: addr, addrs: []netip.Addr{addr}, tx: assoc.NewTxBatch(16)}
	h.ep = endpoint.New(endpoint.Config{Rand: w.rand, Features: rawio.DontFragment | rawio.ECNField,
		MTU: func(_, _ netip.Addr) int { return w.mtu }})
	h.table = ddp.NewTable(w.rand)
	h.mem = newMemory(w, h)
	ddpadapt.Configure(&h.cfg)
	return h
}

// connect starts an association with the other host.
func (h *Host) connect(now rawio.Time, to *Host) *conn {
	a, err := h.ep.Connect(now, &h.cfg, 49152, netip.AddrPortFrom(h.addr, 0),
		[]netip.AddrPort{netip.AddrPortFrom(to.addr, 0)}, port)
	if err != nil {
		h.w.failf("connect: %v", err)
		return nil
	}
	return h.adopt(a, true)
}

func (h *Host) adopt(a *assoc.Assoc, initiator bool) *conn {
	c := &conn{h: h, a: a}
	c.mux = ddpadapt.NewMux(a, ddpadapt.Config{Initiator: initiator})
	a.Owner = c
	a.SetUpper(c.mux, c.mux)
	h.conns = append(h.conns, c)
	return c
}

// receive handles one packet and whatever follows from it at once.
func (h *Host) receive(now rawio.Time, p *rawio.Packet) {
	a, ok := h.ep.Lookup(p)
	if !ok {
		return
	}
	if a == nil {
		var isNew bool
		a, isNew = h.ep.HandleUnmatched(now, p)
		for more := true; more; {
			more = h.ep.PollTransmit(now, h.tx)
			h.send(now)
		}
		if a == nil {
			return
		}
		if isNew {
			h.adopt(a, false)
		}
	}
	c := a.Owner.(*conn)
	a.HandlePacket(now, p)
	c.pump(now)
}

// send gives the batch to the network.
func (h *Host) send(now rawio.Time) {
	for i := range h.tx.Pkts {
		p := &h.tx.Pkts[i]
		if !p.Local.IsValid() {
			p.Local = netip.AddrPortFrom(h.addr, 0)
		}
		h.w.net.Send(now, p)
	}
	h.tx.Reset()
}

// pump plays the shell: events go up, packets go out, until nothing is left to do.
func (c *conn) pump(now rawio.Time) {
	for {
		for {
			ev, ok := c.a.PollEvent()
			if !ok {
				break
			}
			c.event(now, ev)
		}
		c.mux.HandleReceived(now)
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
			c.session(now, ev)
		}
		more := c.a.PollTransmit(now, c.h.tx)
		c.h.send(now)
		for _, q := range c.flushing {
			q.core.Flush()
		}
		c.flushing = c.flushing[:0]
		if !busy && !more {
			if c.down != nil {
				c.a.Close()
			}
			return
		}
	}
}

func (c *conn) event(now rawio.Time, ev assoc.Event) {
	switch ev.Kind {
	case assoc.EventUp:
		c.up = true
		c.h.ep.Refresh(c.a)
	case assoc.EventDown:
		c.down = ev.Err
		c.h.ep.Remove(c.a)
		c.h.w.lost(c)
	}
	c.mux.HandleEvent(now, ev)
}

func (c *conn) session(now rawio.Time, ev ddpadapt.Event) {
	if ev.Session == nil {
		return
	}
	q, _ := ev.Session.Owner.(*qp)
	switch ev.Kind {
	case ddpadapt.EventInitiate:
		if q = c.h.accept(ev.Private); q == nil {
			if err := ev.Session.Reject(now, nil); err != nil {
				c.h.w.failf("%s: reject: %v", c.h.name, err)
			}
			return
		}
		q.bind(c, ev.Session)
		q.initiated(now, ev)
	case ddpadapt.EventAccepted:
		q.accepted(ev)
	case ddpadapt.EventRejected:
		c.h.w.rejected(q, ev.Err)
	case ddpadapt.EventEnded, ddpadapt.EventDown:
		if q != nil {
			q.over = true
			q.core.Ended()
		}
	}
}

// timeouts runs every timer that is due.
func (h *Host) timeouts(now rawio.Time) {
	for _, c := range h.conns {
		if c.down == nil && c.a.NextTimeout() <= now {
			c.a.HandleTimeout(now)
			c.pump(now)
		}
	}
}

func (h *Host) nextTimeout() rawio.Time {
	next := rawio.Never
	for _, c := range h.conns {
		if c.down == nil {
			next = min(next, c.a.NextTimeout())
		}
	}
	return next
}

// qp is a queue pair with its side of the workload.
type qp struct {
	h       *Host
	core    *rdmap.QP
	conn    *conn
	session *ddpadapt.Session
	over    bool
	setup   setup

	onSent, onReceived func(rdmap.WC)
	onFailed           func(*rdmap.StreamError)
	onIndicate         func(ddpadapt.RTR)
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

func (q *qp) bind(c *conn, s *ddpadapt.Session) {
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
func (h *host) FlushLater()                     { h.conn.flushing = append(h.conn.flushing, (*qp)(h)) }
func (h *host) HighWater()                      {}
func (h *host) Detach() {
	if h.session != nil {
		h.session.Detach(nil)
	}
}
func (h *host) Failed(err *rdmap.StreamError) { h.onFailed(err) }
func (h *host) PeerClosed()                   { h.conn.closing = append(h.conn.closing, (*qp)(h)) }
