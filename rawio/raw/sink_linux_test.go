package raw_test

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/testns"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/raw"
)

// A receiver that does not keep up loses packets; its host must not claim that it has no SCTP, or the
// peer has to end the association.
func TestFullBufferIsNotCalledUnreachable(t *testing.T) {
	ns := testns.New(t)
	for _, test := range []struct {
		name        string
		slow, other netip.Addr
	}{
		{"IPv4", v4, netip.MustParseAddr("127.0.0.2")},
		{"IPv6", v6, v6},
	} {
		t.Run(test.name, func(t *testing.T) {
			slow := open(t, ns, raw.Config{Local: test.slow, Ports: []uint16{20001}})
			sender := open(t, ns, raw.Config{Local: test.other, Ports: []uint16{20002}})
			big := packet(20002, 20001, 60_000)
			for range 4000 { // far more than a receive buffer holds
				write(t, sender, rawio.Packet{Vec: [][]byte{big}, Remote: to(test.slow)})
			}
			if lost := 4000*60_000 > slow.ReceiveBuffer(); !lost {
				t.Fatalf("the receive buffer of %d octets has not overflowed", slow.ReceiveBuffer())
			}
			write(t, slow, rawio.Packet{Vec: [][]byte{packet(20001, 20002, 100)}, Remote: to(test.other)})
			if p := read(t, sender, 1)[0]; p.Kind != rawio.KindSCTP {
				t.Errorf("before the other's packet came a report of kind %d", p.Kind)
			}
		})
	}
}
