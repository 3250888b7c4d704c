package sctp

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"github.com/rddp-go/rddp/internal/hostaddr"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/udp"
)

// One program of a host has UDP port 9899. Others that listen take another one, and tell the programs of this host where they are found: on Linux by the name of
// a Unix socket, which goes away with them and which everybody can list (neighbours_linux.go), elsewhere within the process alone. Whoever dials an
// address of this host looks there first.

// neighbour is a listener of this host that is found by UDP.
type neighbour struct {
	addr  netip.Addr // invalid: all of this host
	port  uint16     // of SCTP
	encap uint16     // of UDP
}

// serves says whether the neighbour listens on an address and port.
func (n *neighbour) serves(a netip.AddrPort) bool {
	return n.port == a.Port() && (!n.addr.IsValid() || n.addr == a.Addr())
}

// openUDP opens the link of a listener.
func openUDP() (rawio.Link, error) {
	l, err := udp.Open(udp.Config{})
	if errors.Is(err, syscall.EADDRINUSE) {
		return udp.Open(udp.Config{Port: udp.AnyPort})
	}
	return l, err
}

// encapOf returns the UDP port of the neighbour that listens on an address, 0 if there is none.
func encapOf(remote netip.AddrPort) uint16 {
	if !ofThisHost(remote.Addr()) {
		return 0
	}
	for _, n := range neighbours() {
		if n.serves(remote) {
			return n.encap
		}
	}
	return 0
}

func ofThisHost(a netip.Addr) bool {
	return a.IsLoopback() || slices.Contains(hostaddr.List(), a)
}

// announce tells the programs of this host of a listener over UDP. It fails with rawio.ErrPortInUse where another serves one of its addresses; Close takes
// back what it has told by then.
func (l *Listener) announce() error {
	own, ok := l.t.link.(*udp.Link)
	if !ok {
		return nil
	}
	at := own.LocalAddrs()
	if len(at) == 0 {
		return nil // nobody can reach it yet
	}
	encap := at[0].Port()
	addrs := l.cfg.LocalAddrs
	if len(addrs) == 0 {
		addrs = []netip.Addr{{}}
	}
	for _, a := range addrs {
		n := neighbour{a, l.port, encap}
		withdraw, err := n.announce()
		if err != nil {
			return err
		}
		l.announced = append(l.announced, withdraw)
	}
	for _, n := range neighbours() {
		taken := func(a netip.Addr) bool { return !a.IsValid() || !n.addr.IsValid() || a == n.addr }
		if n.port == l.port && n.encap != encap && slices.ContainsFunc(addrs, taken) {
			return fmt.Errorf("SCTP port %d: %w", l.port, rawio.ErrPortInUse)
		}
	}
	return nil
}

// withdraw takes that back.
func (l *Listener) withdraw() {
	for _, f := range l.announced {
		f()
	}
	l.announced = nil
}
