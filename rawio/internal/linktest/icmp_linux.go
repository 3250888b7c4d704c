package linktest

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// SendUnreachable sends an ICMP message that a packet with this protocol and payload was not
// delivered. It goes from the host that do enters to the sender of the packet. It is padded to the
// length below which the kernel drops the message.
func SendUnreachable(t testing.TB, do func(func() error), code, proto uint8, src, dst netip.Addr, payload []byte) {
	t.Helper()
	quote := make([]byte, iphdr.IPv4HeaderLen+max(8, len(payload)))
	iphdr.PutIPv4Header(quote, len(payload), proto, 0, src, dst)
	copy(quote[iphdr.IPv4HeaderLen:], payload)
	m := icmp.Message{Type: ipv4.ICMPTypeDestinationUnreachable, Code: int(code), Body: &icmp.DstUnreach{Data: quote}}
	do(func() error {
		msg, err := m.Marshal(nil)
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, msg, 0, &unix.SockaddrInet4{Addr: src.As4()})
	})
}
