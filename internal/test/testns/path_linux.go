package testns

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// Path is a row of three namespaces: a client, a router, and a server behind a narrow link.
type Path struct {
	Client, Router, Server *NS
	From, To               netip.Addr // of the client, of the server
	MTU                    int        // of the narrow link, at the IP level
}

// NewPath makes a path on which client and server know the way to each other.
func NewPath(t testing.TB, v6 bool) Path {
	t.Helper()
	p := Path{Client: New(t), Router: New(t), Server: New(t), MTU: 1300}
	prefix := netip.MustParsePrefix
	n := [4]netip.Prefix{prefix("10.1.0.1/24"), prefix("10.1.0.2/24"), prefix("10.2.0.1/24"), prefix("10.2.0.2/24")}
	forward := "/proc/sys/net/ipv4/ip_forward"
	if v6 {
		n = [4]netip.Prefix{prefix("fd01::1/64"), prefix("fd01::2/64"), prefix("fd02::1/64"), prefix("fd02::2/64")}
		forward = "/proc/sys/net/ipv6/conf/all/forwarding"
	}
	Veth(p.Client, p.Router, "left", 1500, n[0], n[1])
	Veth(p.Router, p.Server, "right", p.MTU, n[2], n[3])
	p.Router.Do(func() error { return os.WriteFile(forward, []byte("1"), 0) })
	p.Client.Route(n[3], n[1].Addr())
	p.Server.Route(n[0], n[2].Addr())
	p.From, p.To = n[0].Addr(), n[3].Addr()
	return p
}

// Reassembled returns how many packets of either family the namespace's kernel has put together of
// fragments.
func (n *NS) Reassembled() (count int) {
	n.t.Helper()
	n.Do(func() error {
		b, err := os.ReadFile("/proc/thread-self/net/snmp")
		if err != nil {
			return err
		}
		lines := strings.Split(string(b), "\n") // names, then values
		values := strings.Fields(lines[1])
		for i, name := range strings.Fields(lines[0]) {
			if name == "ReasmOKs" {
				_, err = fmt.Sscan(values[i], &count)
			}
		}
		if err != nil {
			return err
		}
		b, err = os.ReadFile("/proc/thread-self/net/snmp6")
		for line := range strings.Lines(string(b)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == "Ip6ReasmOKs" && err == nil {
				k := 0
				_, err = fmt.Sscan(f[1], &k)
				count += k
			}
		}
		return err
	})
	return count
}
