package sctp

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/vishvananda/netlink"
)

// Two hosts have the same address on a bridge of their own, as 172.17.0.1 is everywhere, and tell
// it to each other. The association uses the others. On one host all addresses are the peer's.
func TestHostsWithTheSameAddress(t *testing.T) {
	for name, open := range map[string]func() (rawio.Link, error){
		"raw": func() (rawio.Link, error) { return raw.Open(raw.Config{}) },
		"udp": func() (rawio.Link, error) { return udp.Open(udp.Config{}) },
	} {
		t.Run(name, func(t *testing.T) {
			ns := [2]*testns.NS{testns.New(t), testns.New(t)}
			at := func(host byte) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 1, 0, host}), 24) }
			testns.Veth(ns[0], ns[1], "eth", 1500, at(1), at(2))
			bridge := netip.MustParseAddr("172.17.0.1")
			var ts [2]*Transport
			for i := range ts {
				ns[i].Do(func() error {
					own := must.Get(netlink.ParseAddr("172.17.0.1/16"))(t)
					must.OK(t, netlink.AddrAdd(must.Get(netlink.LinkByName("lo"))(t), own))
					link, err := open()
					if err != nil {
						return err
					}
					ts[i], err = NewTransport(link, nil)
					return err
				})
				defer ts[i].Close()
			}
			cfg := func(host byte) *Config {
				return &Config{LocalAddrs: []netip.Addr{at(host).Addr(), bridge}}
			}
			l := must.Get(ts[1].Listen(7, cfg(2)))(t)
			for _, row := range []struct {
				name string
				from *Transport
				cfg  *Config
				want []netip.Addr
			}{
				{"another host", ts[0], cfg(1), []netip.Addr{at(2).Addr()}},
				{"another host, with one address", ts[0], nil, []netip.Addr{at(2).Addr()}},
				{"this host", ts[1], cfg(2), []netip.Addr{at(2).Addr(), bridge}},
			} {
				c := must.Get(row.from.Dial(deadlineCtx(t), netip.AddrPortFrom(at(2).Addr(), 7), row.cfg))(t)
				s := must.Get(l.Accept(deadlineCtx(t)))(t)
				var got []netip.Addr
				for _, p := range c.Paths() {
					got = append(got, p.Remote.Addr())
				}
				check.Slice(t, row.name+": addresses of the peer", got, row.want)
				for n := range uint64(5) { // by then an ABORT would have come
					check.OK(t, c.RequestHeartbeat(at(2).Addr()))
					until(t, "an answer", func() bool { return c.Stats().HeartbeatAcksIn > n || c.Err() != nil })
				}
				check.That(t, c.Err() == nil && s.Err() == nil, "%s: ended by %v, %v", row.name, c.Err(), s.Err())
				c.Abort("done")
				s.Abort("done")
			}
		})
	}
}
