package sctp

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/rddp-go/rddp/rawio/udp"
)

// A StreamConn is a net.Conn over the links that need a privilege, too. And what has no way is told
// at once, as TCP is told.
func TestStreamConnOverTheHostsNetwork(t *testing.T) {
	side := func(i byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 9, i, 2}) }
	for name, open := range map[string]func(i byte) (rawio.Link, netip.Addr, error){
		"raw": func(i byte) (rawio.Link, netip.Addr, error) {
			a := netip.AddrFrom4([4]byte{127, 0, 0, i})
			l, err := raw.Open(raw.Config{Local: a})
			return l, a, err
		},
		"udp": func(i byte) (rawio.Link, netip.Addr, error) {
			a := netip.AddrFrom4([4]byte{127, 0, 0, i})
			l, err := udp.Open(udp.Config{Port: []int{udp.AnyPort, udp.DefaultPort}[i-1]})
			return l, a, err
		},
		"tun": func(i byte) (rawio.Link, netip.Addr, error) {
			l, err := tun.Open(tun.Config{Host: []netip.Prefix{netip.PrefixFrom(side(i).Prev(), 24)},
				Addrs: []netip.Addr{side(i)}})
			return l, side(i), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns, p := testns.New(t), new(pair)
			var want error
			ns.Do(func() error {
				must.OK(t, os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0))
				_, want = net.Dial("tcp", "192.0.2.1:7")
				for i, to := range []**Transport{&p.a, &p.b} {
					link, a := must.Two(open(byte(i + 1)))(t)
					*to = must.Get(NewTransport(link, nil))(t)
					p.bAddr = a
				}
				return nil
			})
			defer p.b.Close()
			defer p.a.Close()
			if name != "udp" { // which needs none
				nettest.TestConn(t, p.makePipes(t, nil))
			}
			_, err := p.a.Dial(deadlineCtx(t), netip.MustParseAddrPort("192.0.2.1:7"), nil)
			if name == "tun" { // the host in front of it is a router, and answers by ICMP
				want = syscall.EHOSTUNREACH
			}
			sameError(t, err, want)
		})
	}
}
