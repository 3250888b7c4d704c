package assoc_test

import (
	"bytes"
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// road is two hosts at the ends of a simulated network, whose links have an MTU of their own and report
// congestion marks. It holds, for every packet, that none but probes is longer than the path MTU of its
// sender allows, but in fragments.
type road struct {
	t    *testing.T
	now  rawio.Time
	net  *simnet.Net
	ends [2]*end
	sent []crossing
}

// end is one host. a is its association, once there.
type end struct {
	*host
	link     int // IP-level MTU of its link
	a        *assoc.Assoc
	received bytes.Buffer
}

// crossing is a packet on its way, lost ones included.
type crossing struct {
	at   rawio.Time
	from int
	rawio.Packet
	pkt wire.Packet
	mtu int // of the sender's path
}

// probe says whether the packet is HEARTBEAT and PAD.
func (c *crossing) probe() bool {
	return slices.Equal(chunkTypes(c.pkt), []wire.ChunkType{wire.ChunkHeartbeat, wire.ChunkPad})
}

var (
	roadIPv4 = [2]string{"10.0.0.1:0", "10.0.0.2:0"}
	roadIPv6 = [2]string{"[2001:db8::1]:0", "[2001:db8::2]:0"}
	roadUDP  = [2]string{"10.0.0.1:9899", "10.0.0.2:9899"}
)

// oneWay is the delay of a road.
const oneWay = 10 * time.Millisecond

// newRoad makes a road whose links carry link octets at IP level, and whose network carries path.Params.
func newRoad(t *testing.T, addrs [2]string, link int, path simnet.Params) *road {
	path.Delay = oneWay
	r := &road{t: t, now: rawio.Time(time.Hour), net: simnet.New(1)}
	for i := range r.ends {
		e := &end{link: link}
		addr := netip.MustParseAddrPort(addrs[i])
		e.host = &host{id: i, addr: addr, batch: assoc.NewTxBatch(4), ep: endpoint.New(endpoint.Config{
			Rand: rand.New(rand.NewSource(int64(i + 1))), Features: rawio.DontFragment | rawio.ECNField,
			MTU: func(_, remote netip.Addr) int { return e.link - rawio.Overhead(addr) },
		})}
		r.ends[i] = e
	}
	r.net.Connect(r.ends[0].addr.Addr(), r.ends[1].addr.Addr(), path)
	return r
}

// path changes one direction of the network.
func (r *road) path(from int, change func(*simnet.Params)) {
	a, b := r.ends[from].addr.Addr(), r.ends[1-from].addr.Addr()
	p, _ := r.net.Link(a, b)
	change(&p)
	r.net.SetLink(a, b, p)
}

// mtu changes the MTU of the network in both directions. quote is what reports quote, 0 for none.
func (r *road) mtu(mtu, quote int) {
	for i := range r.ends {
		r.path(i, func(p *simnet.Params) { p.MTU, p.Quote = mtu, quote })
	}
}

// join sets the association up and returns both ends of it.
func (r *road) join(ca, cb *assoc.Config) (a, b *assoc.Assoc) {
	r.t.Helper()
	if err := r.ends[1].ep.Listen(portB, cb); err != nil {
		r.t.Fatal(err)
	}
	a, err := r.ends[0].ep.Connect(r.now, ca, portA, r.ends[0].addr, []netip.AddrPort{r.ends[1].addr}, portB)
	if err != nil {
		r.t.Fatal(err)
	}
	r.ends[0].adopt(a)
	end := r.now.Add(10 * time.Second)
	if !r.until(end, func() bool { return a.State() == assoc.Established && len(r.ends[1].assocs) > 0 }) {
		r.t.Fatal("no association")
	}
	return a, r.ends[1].assocs[0]
}

// flush polls everything and sends it on its way.
func (r *road) flush() {
	for _, e := range r.ends {
		e.settle()
		for more := true; more; {
			more = e.ep.PollTransmit(r.now, e.batch)
			r.take(e)
		}
		for _, a := range e.assocs {
			for more := true; more; {
				more = a.PollTransmit(r.now, e.batch)
				e.a = a
				r.take(e)
			}
			for m, ok := a.Receive(); ok; m, ok = a.Receive() {
				b := make([]byte, m.Size)
				m.CopyTo(b, 0)
				e.received.Write(b)
				a.Release(m)
			}
		}
		e.settle()
	}
}

func (r *road) take(e *end) {
	for i := range e.batch.Pkts {
		p := &e.batch.Pkts[i]
		p.Local = e.addr
		c := crossing{at: r.now, from: e.id, Packet: *p, pkt: slices.Concat(p.Vec...)}
		c.Vec = nil
		if e.a != nil {
			c.mtu = e.a.PathStats(0).MTU
		}
		r.sent = append(r.sent, c)
		switch {
		case c.probe():
			if p.Fragment != 0 { // 8899-3-2, 8899-3-3
				r.t.Errorf("a probe may be fragmented")
			}
			if len(c.pkt)+rawio.Overhead(p.Remote) > e.link { // 8899-3-5
				r.t.Errorf("a probe of %d octets on a link of %d", len(c.pkt), e.link)
			}
		case c.mtu > 0 && len(c.pkt) > c.mtu && p.Fragment != c.mtu+rawio.Overhead(p.Remote): // 8899-3-1
			r.t.Errorf("a packet of %d octets with %v, to be fragmented to %d, on a path of %d", len(c.pkt), chunkTypes(c.pkt), p.Fragment, c.mtu)
		}
		r.net.Send(r.now, p)
	}
	e.batch.Reset()
}

// until runs until done says so or the time is up, and says whether done did.
func (r *road) until(end rawio.Time, done func() bool) bool {
	r.t.Helper()
	for range 1_000_000 {
		r.flush()
		if done() {
			return true
		}
		next := r.net.NextArrival()
		for _, e := range r.ends {
			for _, a := range e.assocs {
				next = min(next, a.NextTimeout())
			}
		}
		if next > end {
			r.now = end
			return done()
		}
		r.now = max(r.now, next)
		for to, p, ok := r.net.Deliver(r.now); ok; to, p, ok = r.net.Deliver(r.now) {
			for _, e := range r.ends {
				if e.addr.Addr() == to {
					e.receive(r.now, &p)
				}
			}
			p.Release()
		}
		for _, e := range r.ends {
			for _, a := range e.assocs {
				if a.NextTimeout() <= r.now {
					a.HandleTimeout(r.now)
				}
			}
		}
	}
	r.t.Fatal("the road does not come to rest")
	return false
}

func (r *road) run(d time.Duration) {
	r.t.Helper()
	r.until(r.now.Add(d), func() bool { return false })
}

// send queues a message of n octets at an end and returns what it holds.
func (r *road) send(from, n int) []byte {
	r.t.Helper()
	b := make([]byte, n)
	rand.New(rand.NewSource(int64(n))).Read(b)
	if err := r.ends[from].assocs[0].Send(r.now, &assoc.Message{Body: [2][]byte{b}}); err != nil {
		r.t.Fatal(err)
	}
	return b
}

// probes returns the probes that an end has sent.
func (r *road) probes(from int) (list []crossing) {
	for _, c := range r.sent {
		if c.from == from && c.probe() {
			list = append(list, c)
		}
	}
	return list
}

// wantMTU checks the path MTU of an end, IP-level.
func (r *road) wantMTU(what string, of, want int) {
	r.t.Helper()
	e := r.ends[of]
	if got := e.assocs[0].PathStats(0).MTU + rawio.Overhead(e.addr); got != want {
		r.t.Errorf("%s: path MTU %d, want %d", what, got, want)
	}
}

// newSearchingEndpoint is for a lab whose associations search for path MTUs.
func newSearchingEndpoint() *endpoint.Endpoint {
	return endpoint.New(endpoint.Config{Rand: rand.New(rand.NewSource(7)), Features: rawio.DontFragment,
		MTU: func(_, _ netip.Addr) int { return testMTU }})
}
