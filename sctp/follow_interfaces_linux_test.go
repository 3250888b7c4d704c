package sctp

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/vishvananda/netlink"
)

// movingHost is a host with two cables to another one, which has an address of its own behind them.
// It has an address in one network at a time.
type movingHost struct {
	t       *testing.T
	ns      [2]*testns.NS
	server  netip.Addr
	at      [2]netip.Prefix // its addresses
	gateway [2]netip.Addr
}

func newMovingHost(t *testing.T, isV6 bool) *movingHost {
	h := &movingHost{t: t, ns: [2]*testns.NS{testns.New(t), testns.New(t)}, server: netip.MustParseAddr("10.9.0.9")}
	for k := range 2 {
		at := func(host byte) netip.Prefix {
			if isV6 {
				return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, byte(1 + k), 15: host}), 64)
			}
			return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(1 + k), 0, host}), 24)
		}
		h.at[k], h.gateway[k] = at(1), at(2).Addr()
		testns.Veth(h.ns[0], h.ns[1], cableName(k), 1500, at(1), at(2))
	}
	if isV6 {
		h.server = netip.MustParseAddr("fd99::9")
	}
	h.ns[1].Do(func() error {
		own := must.Get(netlink.ParseAddr(netip.PrefixFrom(h.server, h.server.BitLen()).String()))(t)
		return netlink.AddrAdd(must.Get(netlink.LinkByName("lo"))(t), own)
	})
	h.leave(1)
	h.ns[0].Route(netip.PrefixFrom(h.server, h.server.BitLen()), h.gateway[0])
	return h
}

func (h *movingHost) addr(k int, f func(netlink.Link, *netlink.Addr) error) {
	h.ns[0].Do(func() error {
		own := must.Get(netlink.ParseAddr(h.at[k].String()))(h.t)
		own.Flags = syscall.IFA_F_NODAD
		return f(must.Get(netlink.LinkByName(cableName(k)))(h.t), own)
	})
}

// leave takes the address in a network away, and the routes that lead there.
func (h *movingHost) leave(k int) {
	h.addr(k, func(dev netlink.Link, own *netlink.Addr) error {
		if err := netlink.AddrDel(dev, own); err != nil {
			return err
		}
		if err := netlink.LinkSetDown(dev); err != nil {
			return err
		}
		return netlink.LinkSetUp(dev)
	})
}

// join gives the host an address in a network, by which it reaches the server.
func (h *movingHost) join(k int) {
	h.addr(k, netlink.AddrAdd)
	h.ns[0].Route(netip.PrefixFrom(h.server, h.server.BitLen()), h.gateway[k])
}

// A laptop that leaves one network, and joins another, keeps its association, over raw IP and over
// UDP. What was sent in between arrives.
func TestAssociationMovesWithItsHost(t *testing.T) {
	// req 6951-5.7-2
	for _, row := range []struct {
		name string
		v6   bool
		open func() (rawio.Link, error)
	}{
		{"raw", false, func() (rawio.Link, error) { return raw.Open(raw.Config{}) }},
		{"raw, IPv6", true, func() (rawio.Link, error) { return raw.Open(raw.Config{}) }},
		{"udp", false, func() (rawio.Link, error) { return udp.Open(udp.Config{}) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newMovingHost(t, row.v6)
			p := &pair{bAddr: h.server}
			for i, to := range []**Transport{&p.a, &p.b} {
				h.ns[i].Do(func() error {
					link, err := row.open()
					if err != nil {
						return err
					}
					*to, err = NewTransport(link, nil)
					return err
				})
				defer (*to).Close()
			}
			ca := certs.New(t)
			c, s := p.connect(t, &Config{TLS: ca.Dialer(t, "client.test"), FollowInterfaces: true, Events: 64,
				LocalAddrs: []netip.Addr{h.at[0].Addr()}}, &Config{TLS: ca.Listener(t)})
			for i := range 3 {
				from, to := i%2, 1-i%2
				h.leave(from)
				must.Get(c.WriteMsg([]byte("on the way"), SendInfo{}))(t)
				must.Get(s.WriteMsg([]byte("on the way"), SendInfo{}))(t)
				h.join(to)
				e := awaitEvent(t, c, EventLocalAddrAdded, h.at[to].Addr())
				must.OK(t, e.Err)
				readOne(t, c)
				readOne(t, s)
				for e = awaitEvent(t, c, EventLocalAddrRemoved, netip.Addr{}); e.Err != nil; { // not confirmed yet
					e = awaitEvent(t, c, EventLocalAddrRemoved, netip.Addr{})
				}
				var got []netip.Addr
				for _, path := range s.Paths() {
					got = append(got, path.Remote.Addr())
				}
				check.Slice(t, "addresses that the server knows", got, []netip.Addr{h.at[to].Addr()})
			}
		})
	}
}

// An address that the program adds is one that packets come in at, where the port was bound at
// others alone.
func TestAddedAddressReceives(t *testing.T) {
	h := newMovingHost(t, false)
	h.addr(1, netlink.AddrAdd)
	p := &pair{bAddr: h.server}
	for i, to := range []**Transport{&p.a, &p.b} {
		h.ns[i].Do(func() error {
			link, err := raw.Open(raw.Config{})
			if err != nil {
				return err
			}
			*to, err = NewTransport(link, nil)
			return err
		})
		defer (*to).Close()
	}
	ca := certs.New(t)
	c, s := p.connect(t, &Config{TLS: ca.Dialer(t, "client.test"), Events: 64,
		LocalAddrs: []netip.Addr{h.at[0].Addr()}}, &Config{TLS: ca.Listener(t), Events: 64})
	for range 2 {
		must.OK(t, c.AddLocalAddr(h.at[1].Addr()))
		e := awaitEvent(t, c, EventLocalAddrAdded, h.at[1].Addr())
		must.OK(t, e.Err)
	}
	awaitEvent(t, s, EventPathUp, h.at[1].Addr())
	check.Equal(t, "claims of the port", len(p.a.ports.linkBoundAddrs[c.core.LocalPort()]), 2)
	must.OK(t, c.RemoveLocalAddr(h.at[0].Addr()))
	e := awaitEvent(t, c, EventLocalAddrRemoved, h.at[0].Addr())
	must.OK(t, e.Err)
	must.Get(s.WriteMsg([]byte("to the new one"), SendInfo{}))(t)
	readOne(t, c)
}

// Where addresses cannot follow, Dial and Listen say so.
func TestFollowInterfacesRefused(t *testing.T) {
	p, ca := newPair(t), certs.New(t)
	for name, cfg := range map[string]*Config{
		"without TLS":                            {FollowInterfaces: true},
		"over a link that hears of no interface": {FollowInterfaces: true, TLS: ca.Dialer(t, "client.test")},
	} {
		_, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), cfg)
		var ce *ConfigError
		check.That(t, errors.As(err, &ce) && ce.Field == "FollowInterfaces", "%s: %v", name, err)
		_, err = p.b.Listen(7, cfg)
		check.That(t, errors.As(err, &ce) && ce.Field == "FollowInterfaces", "%s: %v", name, err)
	}
}
