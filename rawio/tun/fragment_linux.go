package tun

import (
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/internal/iphdr"
)

// addFragment keeps a fragment of an SCTP packet, and returns the packet that it completes.
// Fragments may come through another queue than their flow's whole packets, as only the first one
// has ports.
func (l *Link) addFragment(f iphdr.Packet) (whole iphdr.Packet, ok bool) {
	if f.Dst.Is4() || f.Offset == 0 { // what the others of IPv6 name next does not count (RFC 8200 section 4.5)
		if _, ok := l.skipExtensions(f); !ok {
			return whole, false
		}
	}
	l.stats.rxFragments.Add(1)
	l.fragMu.Lock()
	whole, ok = l.fragments.Add(rawio.Time(time.Since(l.openedAt)), f)
	l.fragMu.Unlock()
	if !ok {
		return whole, false
	}
	l.stats.rxReassembled.Add(1)
	return l.skipExtensions(whole)
}

// skipExtensions walks the IPv6 extension headers behind a fragment header. The first fragment has
// to have all of them, and the header behind them too (RFC 8200 section 4.5).
func (l *Link) skipExtensions(p iphdr.Packet) (iphdr.Packet, bool) {
	var err error
	if p.Dst.Is6() {
		p.Proto, p.Payload, err = iphdr.SkipExtensions(p.Proto, p.Payload)
	}
	switch {
	case err == nil && p.Proto != iphdr.ProtoSCTP:
		l.stats.rxOther.Add(1)
	case err != nil, p.Dst.Is6() && len(p.Payload) < commonHeaderLen:
		l.stats.rxMalformed.Add(1)
	default:
		return p, true
	}
	return p, false
}
