package sctp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// When the own interface or address returns, what is in flight goes at once, and does not wait
// until T3-rtx expires, which has backed off to 3.2 s by then: over real sockets, whatever the
// outage was.
func TestEchoReturnsWithTheInterface(t *testing.T) {
	down := func(dev netlink.Link, _ *netlink.Addr) error { return netlink.LinkSetDown(dev) }
	overRaw := func() (rawio.Link, error) { return raw.Open(raw.Config{}) }
	overUDP := func() (rawio.Link, error) { return udp.Open(udp.Config{}) }
	for _, row := range []struct {
		name string
		open func() (rawio.Link, error)
		host int // whose interface it is; the client's is 0
		out  func(netlink.Link, *netlink.Addr) error
	}{
		{"the interface is down", overUDP, 0, down},
		{"the address is gone", overRaw, 0, netlink.AddrDel},
	} {
		t.Run(row.name, func(t *testing.T) {
			testns.EachFamily(t, 1500, func(t *testing.T, nsA, nsB *testns.NS, addrA, addrB netip.Addr) {
				t.Parallel()
				ns, own := [2]*testns.NS{nsA, nsB}[row.host], [2]netip.Addr{addrA, addrB}[row.host]
				bits := 64
				if own.Is4() {
					bits = 24
				}
				p := &pair{bAddr: addrB}
				for i, to := range []**Transport{&p.a, &p.b} {
					[2]*testns.NS{nsA, nsB}[i].Do(func() error {
						link, err := row.open()
						if err != nil {
							return err
						}
						*to, err = NewTransport(link, nil)
						return err
					})
					defer (*to).Close()
				}
				// Nothing else but T3-rtx has the message sent again.
				cfg := &Config{Events: 16, RFC9260: true, PotentiallyFailedMaxRetrans: 4,
					RTOInitial: 100 * time.Millisecond, RTOMin: 100 * time.Millisecond, HeartbeatInterval: -1,
					DisablePMTUD: true}
				c, s := p.connect(t, cfg, cfg)
				ping := func(conn *Conn) { must.Do(conn.WriteMsg([]byte("x"), SendInfo{}))(t) }
				ping(c)
				readOne(t, s)
				with := func(f func(dev netlink.Link, addr *netlink.Addr) error) {
					ns.Do(func() error {
						addr := must.Get(netlink.ParseAddr(netip.PrefixFrom(own, bits).String()))(t)
						addr.Flags = unix.IFA_F_NODAD
						return f(must.Get(netlink.LinkByName("cable"))(t), addr)
					})
				}
				with(row.out)
				ping(c)
				awaitEvent(t, c, EventPathPotentiallyFailed, addrB) // T3-rtx has expired five times
				back := time.Now()
				with(func(dev netlink.Link, addr *netlink.Addr) error {
					if err := netlink.LinkSetUp(dev); err != nil {
						return err
					}
					return netlink.AddrReplace(dev, addr)
				})
				readOne(t, s)
				took := time.Since(back)
				check.That(t, took < 2500*time.Millisecond, "%v after it is back", took)
			})
		})
	}
}
