package raw

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"github.com/rddp-go/rddp/rawio/internal/mmsg"
	"github.com/rddp-go/rddp/rawio/internal/route"
)

// Link is a rawio.Link over raw sockets. It also implements rawio.PortBinder and rawio.Addresser.
type Link struct {
	cfg    Config
	group  *mmsg.Group
	routes *route.Table
	ports  boundPorts
	sinks  sinkSockets
}

// ReadBatch implements rawio.Link.
func (l *Link) ReadBatch(pkts []rawio.Packet) (int, error) {
	n, err := l.group.ReadBatch(pkts)
	l.sinks.countReceived(n, l.group)
	return n, err
}

// PollBatch implements rawio.Poller.
func (l *Link) PollBatch(pkts []rawio.Packet) int {
	n := l.group.PollBatch(pkts)
	l.sinks.countReceived(n, l.group)
	return n
}

// Wait implements rawio.Waiter.
func (l *Link) Wait(p rawio.Pause) error { return l.group.Wait(p) }

// Polling implements rawio.Waiter.
func (l *Link) Polling() time.Duration { return l.cfg.Poll }

// Interrupt implements rawio.Interrupter.
func (l *Link) Interrupt() { l.group.Interrupt() }

// MTU implements rawio.Link.
func (l *Link) MTU(local, remote netip.Addr) int {
	remote = remote.Unmap()
	mtu := l.routes.Lookup(l.sourceFor(local.Unmap()), remote).MTU
	if l.cfg.MTU != 0 {
		mtu = min(mtu, l.cfg.MTU)
	}
	return iphdr.PayloadLimit(mtu, remote.Is6())
}

// sourceFor is the address a packet leaves from, as far as the caller or the configuration says.
func (l *Link) sourceFor(local netip.Addr) netip.Addr {
	switch {
	case local.IsValid() && !local.IsUnspecified():
		return local
	case l.cfg.Local.IsUnspecified():
		return netip.Addr{}
	}
	return l.cfg.Local
}

// Owns implements rawio.Owner.
func (l *Link) Owns(a netip.Addr) bool { return l.routes.Owns(a) }

// LocalAddrs implements rawio.Addresser: the configured address, or this host's addresses with the
// loopback ones last. There are no UDP ports here, so every port is 0.
func (l *Link) LocalAddrs() []netip.AddrPort {
	if a := l.cfg.Local; a.IsValid() && !a.IsUnspecified() {
		return []netip.AddrPort{netip.AddrPortFrom(a, 0)}
	}
	var out []netip.AddrPort
	for _, a := range l.routes.Addrs() {
		if !l.cfg.Local.IsValid() || l.cfg.Local.Is4() == a.Is4() {
			out = append(out, netip.AddrPortFrom(a, 0))
		}
	}
	return out
}

// Features implements rawio.Featurer.
func (l *Link) Features() rawio.Features {
	return rawio.DontFragment | rawio.ECNField | rawio.Marking | rawio.Interruptible | rawio.Waitable
}

// ReceiveBuffer implements rawio.Featurer.
func (l *Link) ReceiveBuffer() int { return l.group.ReceiveBuffer() }

// Watch implements rawio.Watcher.
func (l *Link) Watch(changed func(usable []netip.Addr)) { l.routes.Watch(changed) }

// Stats returns the link's counters.
func (l *Link) Stats() Stats {
	s := &l.group.Stats
	return Stats{
		RxPackets: s.RxPackets.Load(), RxICMP: s.RxICMP.Load(), RxMalformed: s.RxMalformed.Load(),
		RxIgnored: s.RxIgnored.Load(), RxOverflow: l.group.Drops(),
		TxPackets: s.TxPackets.Load(), TxFull: s.TxFull.Load(), TxTooLong: s.TxTooLong.Load(),
		TxErrors: s.TxErrors.Load(),
		RxCalls:  s.RxCalls.Load(), TxCalls: s.TxCalls.Load(),
	}
}

// Close implements rawio.Link and gives the bound ports up.
func (l *Link) Close() error {
	err := l.group.Close()
	l.sinks.close()
	l.ports.close()
	l.routes.Close()
	return err
}
