// Package mempair joins two links by memory for a test.
package mempair

import (
	"testing"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// New joins two links, and looks whether every packet buffer has come back when all that the test registers behind it is over.
func New(t testing.TB, o mem.Options) (a, b *mem.Link) {
	t.Helper()
	a, b, err := mem.Pair(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Check(t, a, b) })
	return a, b
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
