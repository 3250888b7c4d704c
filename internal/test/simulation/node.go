package simulation

import (
	"io"
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
)

// Conn is an association on a Node and what makes use of it.
type Conn interface {
	Assoc() *assoc.Assoc
	// Pump plays the shell: events and messages go up, packets go out by Node.Transmit, until
	// nothing is left to do. It ends with Node.Settled.
	Pump()
	// Gone reports that the association has ended.
	Gone() bool
}

// Node is a machine: an SCTP endpoint at some addresses of an Env.
type Node struct {
	g     *Env
	Name  string
	Addrs []netip.Addr // the first of each family is that of packets without a source
	EP    *endpoint.Endpoint
	Skew  time.Duration // how far its clock is ahead

	// Accept makes the Conn of an incoming association.
	Accept func(a *assoc.Assoc, p *rawio.Packet) Conn
	// Out, where it is set, is where packets go instead of the network.
	Out func(p *rawio.Packet)
	// Passed, where it is set, hears of each packet that the endpoint has found in order.
	Passed func(p *rawio.Packet)
	// Handled, where it is set, hears of each Conn to which something has happened.
	Handled func(c Conn)

	conns []Conn
	tx    *assoc.TxBatch
	next  rawio.Time // by its own clock
	boot  func() *endpoint.Endpoint
	// detects is how the link detects errors, see DetectErrors.
	detects rawio.ErrorDetection
}

// NewNode puts a node on the ground. rand is the source of its secrets, mtu what its own links
// carry of SCTP.
func (g *Env) NewNode(name string, rand io.Reader, mtu func(local, remote netip.Addr) int, addrs ...netip.Addr) *Node {
	n := &Node{g: g, Name: name, Addrs: addrs, tx: assoc.NewTxBatch(16), next: rawio.Never}
	n.boot = func() *endpoint.Endpoint {
		return endpoint.New(endpoint.Config{Rand: rand, Features: rawio.DontFragment | rawio.ECNField,
			MTU: mtu, ErrorDetection: n.detects})
	}
	n.EP = n.boot()
	g.nodes = append(g.nodes, n)
	n.AddAddr(addrs...)
	return n
}

// DetectErrors has the node begin anew with a link that detects errors, as a rawio.ErrorDetector
// does.
func (n *Node) DetectErrors(by rawio.ErrorDetection) {
	n.detects = by
	n.EP = n.boot()
}

// AddAddr gives the node further addresses.
func (n *Node) AddAddr(addrs ...netip.Addr) {
	for _, a := range addrs {
		n.g.at[a] = n
		if !slices.Contains(n.Addrs, a) {
			n.Addrs = append(n.Addrs, a)
		}
	}
}

// Time is what the node's clock says.
func (n *Node) Time() rawio.Time { return n.g.now.Add(n.Skew) }

// Add has the node serve an association that it has set up itself.
func (n *Node) Add(c Conn) { n.conns = append(n.conns, c) }

// Conns lists the associations that have not ended.
func (n *Node) Conns() []Conn { return n.conns }

// Crash loses everything that the node knows of its associations, and its listeners, without a word
// to anybody.
func (n *Node) Crash() {
	for _, c := range n.conns {
		c.Assoc().Close()
	}
	n.conns, n.next, n.EP = nil, rawio.Never, n.boot()
}

// Receive handles one packet and whatever follows from it at once.
func (n *Node) Receive(p *rawio.Packet) {
	now := n.Time()
	a, ok := n.EP.Lookup(p)
	if !ok {
		return
	}
	if n.Passed != nil {
		n.Passed(p)
	}
	if a == nil {
		var isNew bool
		a, isNew = n.EP.HandleUnmatched(now, p)
		for more := true; more; {
			more = n.EP.PollTransmit(now, n.tx)
			n.sendBatch()
		}
		if a == nil {
			return
		}
		if isNew {
			n.Add(n.Accept(a, p))
		}
	}
	a.HandlePacket(now, p)
	a.Owner.(Conn).Pump()
	if next := a.Successor(); next != nil {
		n.Receive(next)
	}
}

// Transmit sends what an association has to send now, as far as it fits a batch, and says whether
// there is more.
func (n *Node) Transmit(a *assoc.Assoc) (more bool) {
	more = a.PollTransmit(n.Time(), n.tx)
	n.sendBatch()
	return more
}

// sourceFor is the source of a packet without one: the first address of the family of its
// destination.
func (n *Node) sourceFor(to netip.Addr) netip.Addr {
	for _, a := range n.Addrs {
		if a.Is4() == to.Is4() {
			return a
		}
	}
	return n.Addrs[0]
}

// sendBatch gives the batch to the network.
func (n *Node) sendBatch() {
	for i := range n.tx.Pkts {
		p := &n.tx.Pkts[i]
		if !p.Local.IsValid() {
			p.Local = netip.AddrPortFrom(n.sourceFor(p.Remote.Addr()), p.Remote.Port())
		}
		if n.Out != nil {
			n.Out(p)
		} else {
			n.g.net.Send(n.g.now, p)
		}
	}
	n.tx.Reset()
}

// Settled ends a Pump.
func (n *Node) Settled(c Conn) {
	if n.Handled != nil {
		n.Handled(c)
	}
	if c.Gone() {
		c.Assoc().Close()
		n.conns = slices.DeleteFunc(n.conns, func(x Conn) bool { return x == c })
	}
	n.next = rawio.Never
	for _, c := range n.conns {
		n.next = min(n.next, c.Assoc().NextTimeout())
	}
}

// runTimers runs every timer that is due, once.
func (n *Node) runTimers() {
	now := n.Time()
	if n.next > now {
		return
	}
	for i := 0; i < len(n.conns); i++ {
		c := n.conns[i]
		if c.Assoc().NextTimeout() > now {
			continue
		}
		c.Assoc().HandleTimeout(now)
		if c.Pump(); i < len(n.conns) && n.conns[i] != c {
			i--
		}
	}
}

// nextTimeout is when the first timer expires, by the ground's clock.
func (n *Node) nextTimeout() rawio.Time {
	if n.next == rawio.Never {
		return rawio.Never
	}
	return n.next.Add(-n.Skew)
}
