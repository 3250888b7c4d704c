package sctp

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// neighbourName is the beginning of the names. Behind it come the SCTP port, the UDP port, and the address or a star.
const neighbourName = "@rddp/udp/"

// announce binds a socket to the name.
func (n *neighbour) announce() (withdraw func(), err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	at := "*"
	if n.addr.IsValid() {
		at = n.addr.String()
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: fmt.Sprintf("%s%d/%d/%s", neighbourName, n.port, n.encap, at)}); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return func() { unix.Close(fd) }, nil
}

// neighbours lists the listeners of this network namespace.
func neighbours() (list []neighbour) {
	f, err := os.Open("/proc/thread-self/net/unix")
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		_, name, ok := strings.Cut(s.Text(), neighbourName)
		if !ok {
			continue
		}
		var n neighbour
		var at string
		_, _ = fmt.Sscanf(name, "%d/%d/%s", &n.port, &n.encap, &at)
		if at != "*" { // nor is what has fewer parts an address
			if n.addr, err = netip.ParseAddr(at); err != nil {
				continue
			}
		}
		list = append(list, n)
	}
	return list
}
