// Package simlink carries the packets of whole programs over a simulated network: rawio/simnet,
// driven by the clock that the programs themselves read. In a bubble of testing/synctest that clock
// is virtual and stands still while anything is computed. So every delay, rate and loss that a tool
// meets is the one that its test has chosen, and what the tool measures is known beforehand: the
// tests of cmd/ddpping and cmd/ddpbench show how.
package simlink

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
)

// Net is a network of links.
type Net struct {
	start time.Time

	mu    sync.Mutex
	net   *simnet.Net          // guarded by mu
	ends  map[netip.Addr]*Link // guarded by mu
	timer *time.Timer          // of the next arrival
}

// New returns an empty network. The seed decides what is lost, where chance is asked for.
func New(seed uint64) *Net {
	n := &Net{start: time.Now(), net: simnet.New(seed), ends: make(map[netip.Addr]*Link)}
	n.timer = time.AfterFunc(time.Hour, n.deliverDue)
	return n
}

func (n *Net) virtualNow() rawio.Time { return rawio.Time(time.Since(n.start)) }

// Connect sets what becomes of the packets between two addresses, both ways, from now on.
func (n *Net) Connect(a, b netip.Addr, p simnet.Params) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.net.Connect(a, b, p)
}

// SetLink sets what becomes of the packets one way.
func (n *Net) SetLink(from, to netip.Addr, p simnet.Params) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.net.SetLink(from, to, p)
}

// Partition loses everything between two addresses until Heal.
func (n *Net) Partition(a, b netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.net.Partition(a, b)
}

// Heal ends a partition.
func (n *Net) Heal(a, b netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.net.Heal(a, b)
}

// Stats returns what has become of the packets so far.
func (n *Net) Stats() simnet.Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.net.Stats()
}

// deliverDue gives each link what has arrived for it, and comes back for the next packet.
func (n *Net) deliverDue() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.settleTimer()
}

func (n *Net) settleTimer() {
	now := n.virtualNow()
	for to, p, ok := n.net.Deliver(now); ok; to, p, ok = n.net.Deliver(now) {
		l := n.ends[to]
		if l == nil {
			p.Release()
			continue
		}
		l.in = append(l.in, p)
		l.ready.Signal()
	}
	if next := n.net.NextArrival(); next != rawio.Never {
		n.timer.Reset(next.Sub(now))
	}
}

// Link is one host's. It implements rawio.Link and rawio.Addresser.
type Link struct {
	n      *Net
	addrs  []netip.Addr
	in     []rawio.Packet // guarded by n.mu
	ready  sync.Cond
	closed bool // guarded by n.mu
}

// Link returns the link of addresses that have none. The last link of a network to be closed ends
// it.
func (n *Net) Link(addrs ...netip.Addr) *Link {
	l := &Link{n: n, addrs: addrs}
	l.ready.L = &n.mu
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range addrs {
		n.ends[a] = l
	}
	return l
}

// ReadBatch implements rawio.Link.
func (l *Link) ReadBatch(pkts []rawio.Packet) (int, error) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	for len(l.in) == 0 && !l.closed && len(pkts) > 0 {
		l.ready.Wait()
	}
	if l.closed {
		return 0, net.ErrClosed
	}
	k := copy(pkts, l.in)
	clear(l.in[copy(l.in, l.in[k:]):])
	l.in = l.in[:len(l.in)-k]
	return k, nil
}

// WriteBatch implements rawio.Link. What no path carries is lost there.
func (l *Link) WriteBatch(pkts []rawio.Packet) (int, error) {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.closed {
		return 0, net.ErrClosed
	}
	for i := range pkts {
		p := pkts[i]
		if !p.Local.IsValid() {
			p.Local = netip.AddrPortFrom(l.sourceFor(p.Remote.Addr()), 0)
		}
		l.n.net.Send(l.n.virtualNow(), &p)
	}
	l.n.settleTimer()
	return len(pkts), nil
}

// sourceFor is the source of a packet without one: the first address of the family of its
// destination.
func (l *Link) sourceFor(to netip.Addr) netip.Addr {
	for _, a := range l.addrs {
		if a.Is4() == to.Is4() {
			return a
		}
	}
	return l.addrs[0]
}

// MTU implements rawio.Link: it is that of the path.
func (l *Link) MTU(local, remote netip.Addr) int {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if !local.IsValid() {
		local = l.addrs[0]
	}
	p, ok := l.n.net.Link(local, remote)
	if !ok || p.MTU == 0 {
		p.MTU = rawio.MaxMTU
	}
	return p.MTU - rawio.Overhead(netip.AddrPortFrom(remote, 0))
}

// LocalAddrs implements rawio.Addresser.
func (l *Link) LocalAddrs() (list []netip.AddrPort) {
	for _, a := range l.addrs {
		list = append(list, netip.AddrPortFrom(a, 0))
	}
	return list
}

// Close implements rawio.Link.
func (l *Link) Close() error {
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	for _, a := range l.addrs {
		delete(l.n.ends, a)
	}
	rawio.ReleaseAll(l.in)
	l.in = nil
	l.ready.Broadcast()
	if len(l.n.ends) == 0 {
		l.n.timer.Stop()
		l.n.net.Discard()
	}
	return nil
}

// Prompt implements rawio.Prompter.
func (l *Link) Prompt() rawio.Link { return l }
