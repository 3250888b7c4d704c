//go:build !rawio_portable

package udp

import (
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"github.com/rddp-go/rddp/rawio/internal/route"
)

// Link is a rawio.Link over UDP. It also implements rawio.Addresser.
type Link struct {
	cfg    Config
	port   uint16        // the local encapsulation port
	groups []*mmsg.Group // one for each shard; the first sends
	routes *route.Table

	// dfMu is held for reading while packets are sent with DF set. It is held for writing while one
	// is sent that the kernel may fragment.
	dfMu sync.RWMutex
}

// Prompt implements rawio.Prompter.
func (l *Link) Prompt() rawio.Link { return l }

// ReadBatch implements rawio.Link.
func (l *Link) ReadBatch(pkts []rawio.Packet) (int, error) { return l.groups[0].ReadBatch(pkts) }

// PollBatch implements rawio.Poller.
func (l *Link) PollBatch(pkts []rawio.Packet) int { return l.groups[0].PollBatch(pkts) }

// Wait implements rawio.Waiter.
func (l *Link) Wait(p rawio.Pause) error { return l.groups[0].Wait(p) }

// Polling implements rawio.Waiter.
func (l *Link) Polling() time.Duration { return l.cfg.Poll }

// Interrupt implements rawio.Interrupter.
func (l *Link) Interrupt() { l.groups[0].Interrupt() }

// Shards implements rawio.Sharder.
func (l *Link) Shards() []rawio.Shard {
	var out []rawio.Shard
	for _, g := range l.groups[1:] {
		out = append(out, g)
	}
	return out
}

// MTU implements rawio.Link.
func (l *Link) MTU(local, remote netip.Addr) int {
	local, remote = local.Unmap(), remote.Unmap()
	if !isSpecific(local) {
		local = l.cfg.Local
	}
	if !isSpecific(local) {
		local = netip.Addr{}
	}
	mtu := l.routes.Lookup(local, remote).MTU
	if l.cfg.MTU != 0 {
		mtu = min(mtu, l.cfg.MTU)
	}
	return payloadLimit(mtu, remote.Is6())
}

// CutFrom implements rawio.Fragmenter. The kernel cuts a datagram only where it is longer than the
// route's MTU. Then IPv6 fragments are as long as we ask, and those of IPv4 as long as the route
// takes.
func (l *Link) CutFrom(local, remote netip.Addr) int {
	local, remote = local.Unmap(), remote.Unmap()
	if remote.Is4() {
		return -1
	}
	if !isSpecific(local) {
		local = l.cfg.Local
	}
	if !isSpecific(local) {
		local = netip.Addr{}
	}
	return (payloadLimit(l.routes.Lookup(local, remote).MTU, true) + 4) &^ 3
}

func isSpecific(a netip.Addr) bool { return a.IsValid() && !a.IsUnspecified() }

// bindAddr is the address that the socket of a family binds to.
func (l *Link) bindAddr(v6 bool, port uint16) netip.AddrPort {
	a := l.cfg.Local
	if !a.IsValid() {
		a = netip.IPv4Unspecified()
		if v6 {
			a = netip.IPv6Unspecified()
		}
	}
	return netip.AddrPortFrom(a, port)
}

// Owns implements rawio.Owner.
func (l *Link) Owns(a netip.Addr) bool { return l.routes.Owns(a) }

// LocalAddrs implements rawio.Addresser. It returns the configured address, or this host's
// addresses with the loopback ones last, each with the local encapsulation port.
func (l *Link) LocalAddrs() []netip.AddrPort {
	if isSpecific(l.cfg.Local) {
		return []netip.AddrPort{netip.AddrPortFrom(l.cfg.Local, l.port)}
	}
	var out []netip.AddrPort
	for _, a := range l.routes.Addrs() {
		if !l.cfg.Local.IsValid() || l.cfg.Local.Is4() == a.Is4() {
			out = append(out, netip.AddrPortFrom(a, l.port))
		}
	}
	return out
}

// Features implements rawio.Featurer.
func (l *Link) Features() rawio.Features {
	if len(l.groups) > 1 {
		// A goroutine that waits for a packet does not know which shard it comes by.
		return rawio.DontFragment | rawio.ECNField | rawio.Marking
	}
	return rawio.DontFragment | rawio.ECNField | rawio.Marking | rawio.Interruptible | rawio.Waitable
}

// Port returns the local encapsulation port.
func (l *Link) Port() uint16 { return l.port }

// ReceiveBuffer implements rawio.Featurer.
func (l *Link) ReceiveBuffer() int { return l.groups[0].ReceiveBuffer() }

// Stats returns the link's counters.
func (l *Link) Stats() Stats {
	s := &l.groups[0].Stats
	sum := Stats{
		TxPackets: s.TxPackets.Load(), TxFull: s.TxFull.Load(), TxTooLong: s.TxTooLong.Load(),
		TxErrors: s.TxErrors.Load(),
		TxCalls:  s.TxCalls.Load(), TxUnsegmented: s.TxUnsegmented.Load(),
	}
	for _, g := range l.groups {
		s := &g.Stats
		sum.RxPackets += s.RxPackets.Load()
		sum.RxICMP += s.RxICMP.Load()
		sum.RxMalformed += s.RxMalformed.Load()
		sum.RxIgnored += s.RxIgnored.Load()
		sum.RxOverflow += g.Drops()
		sum.RxCalls += s.RxCalls.Load()
	}
	return sum
}

// Watch implements rawio.Watcher.
func (l *Link) Watch(changed func(usable []netip.Addr)) { l.routes.Watch(changed) }

// Close implements rawio.Link.
func (l *Link) Close() error {
	var err error
	for _, g := range l.groups {
		err = errors.Join(err, g.Close())
	}
	l.routes.Close()
	return err
}

// udpCodec adds and reads what goes along with a datagram of one family.
type udpCodec struct {
	link *Link
	v6   bool
}

// Decode implements mmsg.Codec.
func (c *udpCodec) Decode(m *mmsg.Message, p *rawio.Packet) bool {
	p.Data, p.Remote, p.ECN = m.Data, m.From, m.Control.ECN
	p.Local = netip.AddrPortFrom(m.Control.Local, c.link.port)
	return len(m.Data) >= commonHeaderLen
}

// DecodeError implements mmsg.Codec. The kernel quotes from behind the UDP header on.
func (c *udpCodec) DecodeError(e *mmsg.ICMPError, p *rawio.Packet) bool {
	kind, mtu, ok := iphdr.ClassifyICMP(e.V6, true, e.Type, e.Code, e.Info)
	if !ok || len(e.Data) < iphdr.MinQuoteOctets {
		return false
	}
	p.Kind, p.MTU, p.Data, p.Remote = kind, mtu, e.Data, e.To
	p.Local = netip.AddrPortFrom(e.Control.Local, c.link.port) // the error came to where we sent from
	return true
}

// Encode implements mmsg.Codec.
func (c *udpCodec) Encode(p *rawio.Packet, o *mmsg.Outgoing) error {
	if p.Len() > payloadLimit(1<<30, c.v6) {
		return rawio.ErrTooLong
	}
	if src := p.Local.Addr().Unmap(); isSpecific(src) && src != c.link.cfg.Local {
		if src.Is6() != c.v6 {
			return &mmsg.FamilyError{Src: src, Dst: p.Remote.Addr()}
		}
		o.SetSource(src)
	}
	if class := p.ECN&3 | iphdr.ClassOf(p, c.link.cfg.Mark); class != iphdr.DefaultClass(c.link.cfg.Mark) {
		o.SetClass(class, c.v6)
	}
	if c.v6 && p.FlowLabel != 0 {
		o.SetFlowLabel(p.FlowLabel)
	}
	to := withDefaultPort(p.Remote)
	o.SetDestination(to.Addr(), to.Port())
	return nil
}

var (
	_ rawio.Featurer = (*Link)(nil)
	_ rawio.Waiter   = (*Link)(nil)
	_ rawio.Sharder  = (*Link)(nil)

	_ rawio.Fragmenter = (*Link)(nil)
	_ mmsg.Codec       = (*udpCodec)(nil)
)
