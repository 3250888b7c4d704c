package rdma

import "net"

// Lengths of headers in octets.
const (
	ipv4Header = 20
	ipv6Header = 40
	tcpHeader  = 20
	tcpStamps  = 12 // the time stamps that most systems send
)

// firstEMSS is the EMSS that a connection begins with: what TCP says, or what the MTU of the
// interface lets expect (RFC 5044 section 5.1). 0 is not known.
func (t *tcpConn) firstEMSS() int {
	if n := t.socket.emss(); n > 0 {
		return n
	}
	own, ok := t.nc.LocalAddr().(*net.TCPAddr)
	if !ok {
		return 0
	}
	return likelyEMSS(own.IP)
}

// likelyEMSS is the EMSS that the MTU of the interface with this address lets expect, 0 if there is
// none.
func likelyEMSS(own net.IP) int {
	all, err := net.Interfaces()
	if err != nil {
		return 0
	}
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, ok := a.(*net.IPNet); ok && n.IP.Equal(own) {
				header := ipv4Header
				if own.To4() == nil {
					header = ipv6Header
				}
				return i.MTU - header - tcpHeader - tcpStamps
			}
		}
	}
	return 0
}
