package tun_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
	"github.com/rddp-go/rddp/rawio/tun"
)

// A packet that may be fragmented passes a device that it is too long for; the host puts it together.
func TestFragments(t *testing.T) {
	for i, family := range []string{"IPv4", "IPv6"} {
		t.Run(family, func(t *testing.T) {
			ns := forwarding(t)
			l := open(t, ns, tun.Config{Host: host1, Addrs: addr1, MTU: 1400})
			var host *raw.Link
			ns.Do(func() (err error) {
				host, err = raw.Open(raw.Config{Local: host1[i].Addr(), Ports: []uint16{20002}})
				return err
			})
			defer host.Close()
			long, short := packet(9000), packet(1000)
			for _, b := range [][]byte{long, short} {
				binary.BigEndian.PutUint16(b, 20001)
				binary.BigEndian.PutUint16(b[2:], 20002)
			}
			out := func(b []byte, fragment int) rawio.Packet {
				return rawio.Packet{Vec: [][]byte{b[:12], b[12:]}, Remote: to(host1[i].Addr()), ECN: 2, Fragment: fragment}
			}
			if n, err := l.WriteBatch([]rawio.Packet{out(long, 0)}); n != 0 || !errors.Is(err, rawio.ErrTooLong) {
				t.Errorf("whole: %d, %v", n, err)
			}
			pkts := []rawio.Packet{out(short, 0), out(long, 1280), out(short, 1280), out(long, 9000)}
			write(t, l, pkts...)
			for k, p := range read(t, host, len(pkts)) {
				want := short
				if k%2 == 1 {
					want = long
				}
				if !bytes.Equal(p.Data, want) || p.Remote != to(addr1[i]) || p.ECN != 2 {
					t.Errorf("packet %d: %d octets from %v, ECN %d", k, len(p.Data), p.Remote, p.ECN)
				}
				p.Release()
			}
		})
	}
}
