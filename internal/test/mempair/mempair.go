// Package mempair joins two links by memory for a test.
package mempair

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// New joins two links, and looks whether every packet buffer has come back when all that the test
// registers behind it is over.
func New(t testing.TB, o mem.Options) (a, b *mem.Link) {
	t.Helper()
	a, b, err := mem.Pair(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Check(t, a, b) })
	return a, b
}

// Family is of which family the addresses of two hosts are.
type Family struct {
	Name string
	A, B []netip.AddrPort
	// Listed are the addresses that B tells A of: of a dual-stack host both. A, without such a
	// list, has one, and is to send to and from no other. Else it is empty.
	Listed []netip.Addr
}

// Families are those there are.
func Families() []Family {
	of := func(a ...string) (list []netip.AddrPort) {
		for _, s := range a {
			list = append(list, netip.AddrPortFrom(netip.MustParseAddr(s), 0))
		}
		return list
	}
	both := func(first, second string) []netip.Addr {
		return []netip.Addr{netip.MustParseAddr(first), netip.MustParseAddr(second)}
	}
	return []Family{
		{"IPv4", of("10.0.0.1"), of("10.0.0.2"), nil},
		{"IPv6", of("fd00::1"), of("fd00::2"), nil},
		{"dual-stack, by IPv4", of("10.0.0.1", "fd00::1"), of("10.0.0.2", "fd00::2"), both("10.0.0.2", "fd00::2")},
		{"dual-stack, by IPv6", of("10.0.0.1", "fd00::1"), of("fd00::2", "10.0.0.2"), both("10.0.0.2", "fd00::2")},
	}
}

// Check fails where a packet buffer was never released.
func Check(t testing.TB, links ...*mem.Link) {
	t.Helper()
	for i, l := range links {
		if n := l.Outstanding(); n != 0 {
			t.Errorf("link %d: %d packet buffers were never released", i, n)
		}
	}
}

// Taken opens links on which another program has a port.
func Taken(t testing.TB, port uint16) func(server bool) (rawio.Link, error) {
	return func(bool) (rawio.Link, error) {
		l, _ := New(t, mem.Options{})
		return l, l.BindPort(port)
	}
}
