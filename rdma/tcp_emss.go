package rdma

import (
	"net/netip"

	"github.com/rddp-go/rddp/internal/hostaddr"
)

// Lengths of headers in octets.
const (
	ipv4Header = 20
	ipv6Header = 40
	tcpHeader  = 20
	tcpStamps  = 12 // the time stamps that most systems send
)

// firstEMSS is the EMSS that a connection begins with (RFC 5044 section 5.1): what TCP says, or
// what the MTU of the interface lets expect. 0 is not known.
func (t *tcpConn) firstEMSS() int {
	if n := t.socket.emss(); n > 0 {
		return n
	}
	return likelyEMSS(addrPortOf(t.nc.LocalAddr()).Addr())
}

// likelyEMSS is the EMSS that the MTU of the interface with this address lets expect, 0 if there is
// none.
func likelyEMSS(own netip.Addr) int {
	header := ipv4Header
	if own.Is6() {
		header = ipv6Header
	}
	return max(hostaddr.InterfaceMTU(own)-header-tcpHeader-tcpStamps, 0)
}
