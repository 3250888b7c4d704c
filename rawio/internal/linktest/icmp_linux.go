package linktest

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/rawio/internal/iphdr"
	"golang.org/x/sys/unix"
)

// Unreachable sends an ICMP message, from whatever host do enters, to the host that is told that its packet was not delivered, which had this
// protocol and payload.
func Unreachable(t testing.TB, do func(func() error), code, proto uint8, src, dst netip.Addr, payload []byte) {
	t.Helper()
	quote := make([]byte, iphdr.Len4)
	iphdr.Put4(quote, len(payload), proto, 0, src, dst)
	msg := append([]byte{iphdr.TypeUnreachable4, code, 0, 0, 0, 0, 0, 0}, append(quote, payload...)...)
	sum := iphdr.Sum(0, msg)
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	msg[2], msg[3] = byte(^sum>>8), byte(^sum)
	do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Sendto(fd, msg, 0, &unix.SockaddrInet4{Addr: src.As4()})
	})
}
