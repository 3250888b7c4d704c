package endpoint

import (
	"net/netip"

	"github.com/rddp-go/rddp/internal/quota"
)

// sourceCounts counts the associations that hosts have set up. With an IPv6 address it also counts
// those of its /64, /56, /48 and /32. The owner of a network chooses among its addresses.
type sourceCounts map[quota.HostGroup]int

// isFull reports whether a host, or one of its networks, has as many as it may have. Each network
// has space for as many hosts as it is levels wide.
func (s sourceCounts) isFull(host netip.Addr, most int) bool {
	var list [quota.MaxGroups]quota.HostGroup
	for i, g := range quota.GroupsOf(host, list[:0]) {
		if s[g] >= most*(i+1) {
			return true
		}
	}
	return false
}

// add counts n more, or fewer.
func (s sourceCounts) add(host netip.Addr, n int) {
	var list [quota.MaxGroups]quota.HostGroup
	for _, g := range quota.GroupsOf(host, list[:0]) {
		if s[g] += n; s[g] == 0 {
			delete(s, g)
		}
	}
}
