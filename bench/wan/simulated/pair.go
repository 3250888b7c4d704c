package simulated

import (
	"errors"
	"net/netip"

	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

const (
	clientPort = 5000
	serverPort = 5001
)

// hostPair is two hosts with some roads between them, in virtual time: road i joins the i-th
// addresses of both.
type hostPair struct {
	now          rawio.Time
	net          *simnet.Net
	hosts        [2]*sctptest.Host // client, server
	applications func()            // on both
	alarm        rawio.Time        // they have something to do then
}

func newPair(seed uint64, roads int) *hostPair {
	p := &hostPair{net: simnet.New(seed), alarm: rawio.Never}
	p.net.Separate()
	for i := range p.hosts {
		var addrs []netip.AddrPort
		for k := range roads {
			addrs = append(addrs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, byte(1 + i), byte(1 + k)}), 9899))
		}
		p.hosts[i] = sctptest.NewHost(i, int64(2*seed)+int64(i), MTU, rawio.DontFragment|rawio.ECNField, addrs...)
	}
	return p
}

// setRoad says what road k does to packets of the client and of the server.
func (p *hostPair) setRoad(k int, up, down simnet.Params) {
	client, server := p.hosts[0].Addrs[k], p.hosts[1].Addrs[k]
	p.net.SetLink(client, server, up)
	p.net.SetLink(server, client, down)
}

var errNoEnd = errors.New("no end within an hour")

// joinHosts has the client set up an association.
func (p *hostPair) joinHosts(client, server *assoc.Config) error {
	if err := p.hosts[1].Endpoint.Listen(serverPort, server); err != nil {
		return err
	}
	local := p.hosts[0].Addr
	if len(p.hosts[0].Addrs) > 1 {
		local = netip.AddrPort{}
	}
	a, err := p.hosts[0].Endpoint.Connect(p.now, client, clientPort, local, []netip.AddrPort{p.hosts[1].Addr},
		serverPort)
	if err != nil {
		return err
	}
	p.hosts[0].Adopt(a)
	if !p.runUntil(p.now.Add(patience), func() bool { return a.State() == assoc.Established }) {
		return errNoEnd
	}
	return nil
}

// runUntil lets time pass until done says so, and says whether it did before the end.
func (p *hostPair) runUntil(end rawio.Time, done func() bool) bool {
	for {
		p.applications()
		for _, h := range p.hosts {
			h.Poll(p.now, func(_ *assoc.Assoc, pkt *rawio.Packet) {
				if !pkt.Local.IsValid() {
					pkt.Local = h.Addr
				}
				p.net.Send(p.now, pkt)
			})
			h.Events = h.Events[:0]
		}
		if done() {
			return true
		}
		next := min(p.net.NextArrival(), p.alarm, p.hosts[0].NextTimeout(), p.hosts[1].NextTimeout())
		if next > end {
			p.now = end
			return false
		}
		p.now = max(p.now, next)
		sctptest.Deliver(p.now, p.net, p.hosts[:])
	}
}
