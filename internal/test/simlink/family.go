package simlink

import (
	"net/netip"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
)

// FamilyLink is a link that counts what it sends of another family of addresses than is expected.
type FamilyLink struct {
	*Link
	Is4    bool          // addresses of IPv4 are expected
	Others *atomic.Int64 // packets to or from one of the other family
}

// LinkOf returns the link of addresses that have none. It expects packets of the same family as an
// address, and counts the others.
func (n *Net) LinkOf(addrs []netip.AddrPort, expected netip.Addr, others *atomic.Int64) FamilyLink {
	var list []netip.Addr
	for _, a := range addrs {
		list = append(list, a.Addr())
	}
	return FamilyLink{n.Link(list...), expected.Is4(), others}
}

// WriteBatch implements rawio.Link.
func (l FamilyLink) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		local := pkts[i].Local
		if pkts[i].Remote.Addr().Is4() != l.Is4 || local.IsValid() && local.Addr().Is4() != l.Is4 {
			l.Others.Add(1)
		}
	}
	return l.Link.WriteBatch(pkts)
}
