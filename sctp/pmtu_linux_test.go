//go:build !rawio_portable

package sctp_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
	"github.com/rddp-go/rddp/rawio/udp"
	"github.com/rddp-go/rddp/sctp"
)

// Over real links the MTU of the path is found, and when it falls under traffic, what was sent
// before arrives in fragments that the kernels, or the tun link, make and join.
func TestPathMTUOverRealLinks(t *testing.T) {
	rawLink := func(string, netip.Prefix) (rawio.Link, error) { return raw.Open(raw.Config{}) }
	udpLink := func(string, netip.Prefix) (rawio.Link, error) { return udp.Open(udp.Config{}) }
	tunLink := func(device string, p netip.Prefix) (rawio.Link, error) {
		host := netip.PrefixFrom(p.Addr().Prev(), p.Bits())
		return tun.Open(tun.Config{Name: device, Addrs: []netip.Addr{p.Addr()}, Host: []netip.Prefix{host}, MTU: 9000})
	}
	for _, row := range []struct {
		name string
		open func(device string, p netip.Prefix) (rawio.Link, error)
		a, b string
		head int // octets in front of an SCTP packet
	}{
		{"raw, IPv4", rawLink, "10.77.0.1/24", "10.77.0.2/24", 20},
		{"raw, IPv6", rawLink, "fd77::1/64", "fd77::2/64", 40},
		{"UDP, IPv4", udpLink, "10.77.0.1/24", "10.77.0.2/24", 28},
		{"UDP, IPv6", udpLink, "fd77::1/64", "fd77::2/64", 48},
		{"TUN, IPv4", tunLink, "10.77.1.2/24", "10.77.2.2/24", 20},
		{"TUN, IPv6", tunLink, "fd77:1::2/64", "fd77:2::2/64", 40},
	} {
		t.Run(row.name, func(t *testing.T) {
			nsA, nsB := testns.New(t), testns.New(t)
			pa, pb := netip.MustParsePrefix(row.a), netip.MustParsePrefix(row.b)
			devA, devB := "cable", "cable"
			if pa.Masked() == pb.Masked() {
				testns.Veth(nsA, nsB, "cable", 9000, pa, pb)
			} else { // a host forwards from one device to the other
				nsB, devA = nsA, "drum"
				nsA.Do(func() error {
					return errors.Join(
						os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0),
						os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0))
				})
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			end := func(ns *testns.NS, device string, p netip.Prefix) (tr *sctp.Transport, l rawio.Link) {
				t.Helper()
				ns.Do(func() (err error) {
					if l, err = row.open(device, p); err == nil {
						tr, err = sctp.NewTransport(l, nil)
					}
					return err
				})
				t.Cleanup(func() { tr.Close() })
				return tr, l
			}
			a, _ := end(nsA, devA, pa)
			b, linkB := end(nsB, devB, pb)
			cfg := &sctp.Config{Events: 64, RTOInitial: 200 * time.Millisecond, RTOMin: 200 * time.Millisecond}
			var l *sctp.Listener
			nsB.Do(func() (err error) { l, err = b.Listen(7, nil); return err })
			c := must.Get(a.Dial(ctx, netip.AddrPortFrom(pb.Addr(), 7), cfg))(t)
			s := must.Get(l.Accept(ctx))(t)
			until := func(mtu int) {
				t.Helper()
				for c.Paths()[0].MaxPacket != mtu-row.head {
					if _, err := c.NextEvent(ctx); err != nil {
						t.Fatalf("path MTU %d, want %d: %v", c.Paths()[0].MaxPacket+row.head, mtu, err)
					}
				}
			}
			until(9000)

			want := bytes.Repeat([]byte("0123456789abcdef"), 4000)
			const messages = 400
			done := make(chan error, 1)
			go func() {
				buf := make([]byte, len(want))
				for range messages {
					n, _, err := s.ReadMsg(buf)
					if err == nil && !bytes.Equal(buf[:n], want) {
						t.Errorf("a message of %d octets differs", n)
					}
					if err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
			for i := range messages {
				must.Do(c.WriteMsg(want, sctp.SendInfo{}))(t)
				if i == messages/4 {
					nsB.SetMTU(devB, 1400)
					nsA.SetMTU(devA, 1400)
				}
			}
			select {
			case err := <-done:
				must.OK(t, err)
			case <-ctx.Done():
				t.Fatalf("stalled: %+v, %+v", c.Stats(), c.Paths())
			}
			until(1400)
			if s := c.Stats(); devA == "cable" && s.PacketsRefused == 0 {
				t.Errorf("the own link has refused nothing: %d timeouts", s.Timeouts)
			}
			if l, ok := linkB.(*tun.Link); ok && l.Stats().RxReassembled == 0 {
				t.Errorf("no packet came in fragments: %+v", l.Stats())
			}
		})
	}
}
