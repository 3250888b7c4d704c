package baseline

import (
	"fmt"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
)

// Loopback is the address of both ends of a raw or UDP pair.
var Loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Pair opens both ends of a link on this host, kind "mem", "udp" or "raw", with an IP-level MTU in
// octets, and says how to reach b.
func Pair(kind string, mtu int) (a, b rawio.Link, at netip.AddrPort, err error) {
	at = netip.AddrPortFrom(Loopback, 0)
	switch kind {
	case "mem":
		x, y, err := mem.Pair(mem.Options{MTU: mtu})
		if err != nil {
			return nil, nil, at, err
		}
		return x, y, y.LocalAddrs()[0], nil
	case "udp":
		var links [2]*udp.Link
		for i := range links {
			if links[i], err = udp.Open(udp.Config{Local: Loopback, Port: udp.AnyPort, MTU: mtu}); err != nil {
				break
			}
		}
		if err == nil {
			return links[0], links[1], netip.AddrPortFrom(Loopback, links[1].Port()), nil
		}
		if links[0] != nil {
			links[0].Close()
		}
	case "raw":
		var links [2]*raw.Link
		for i := range links {
			if links[i], err = raw.Open(raw.Config{Local: Loopback, MTU: mtu}); err != nil {
				break
			}
		}
		if err == nil {
			return links[0], links[1], at, nil
		}
		if links[0] != nil {
			links[0].Close()
		}
	default:
		err = fmt.Errorf("pump: no link %q; there are mem, udp and raw", kind)
	}
	return nil, nil, at, err
}
