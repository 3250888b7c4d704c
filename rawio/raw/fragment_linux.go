package raw

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

// WriteBatch implements rawio.Link. Besides rawio.ErrTooLong and rawio.ErrFull, the error about a
// packet may be the system's, such as syscall.ENETUNREACH.
func (l *Link) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		if pkts[i].Fragment == 0 {
			continue
		}
		if n, err := l.writeWhole(pkts[:i]); err != nil {
			return n, err
		}
		if err := l.writeFragments(&pkts[i]); err != nil {
			return i, err
		}
		n, err := l.WriteBatch(pkts[i+1:])
		return i + 1 + n, err
	}
	return l.writeWhole(pkts)
}

// writeWhole sends packets whole.
func (l *Link) writeWhole(pkts []rawio.Packet) (int, error) {
	n, err := l.group.WriteBatch(pkts)
	if err == rawio.ErrTooLong {
		l.routes.ForgetRoutesTo(pkts[n].Remote.Addr())
	}
	return n, err
}

// writeFragments sends a packet in IP fragments. The kernel does not fragment packets whose header
// is ours.
func (l *Link) writeFragments(p *rawio.Packet) error {
	src, dst := l.sourceFor(p.Local.Addr().Unmap()), p.Remote.Addr().Unmap()
	s := l.group.SocketOfFamily(dst)
	if s == nil || src.IsValid() && src.Is6() != dst.Is6() {
		_, err := l.group.WriteBatch([]rawio.Packet{*p}) // says why
		return err
	}
	route := netip.Addr{} // the source that decides about the route, where that is not the socket's own
	if src != l.cfg.Local {
		route = src
	}
	if !src.IsValid() {
		src = l.routes.Lookup(src, dst).Source
	}
	err := iphdr.Fragment(slices.Concat(p.Vec...), p.Fragment, iphdr.ProtoSCTP, p.ECN, src, dst, rand.Uint32(),
		func(b []byte) error {
			iphdr.ApplyMarks(b, p, l.cfg.Mark)
			return s.SendSingle(b, route, netip.AddrPortFrom(dst, 0))
		})
	l.group.Stats.CountSent(err)
	return err
}
