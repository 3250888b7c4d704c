package compat

import (
	"bytes"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// Interleaving is offered by a program that takes interleaved messages, and there where both ends
// offer it.
func TestInterleavingSupported(t *testing.T) {
	// req 8260-2.2.1-3
	for _, row := range []struct {
		name           string
		client, server bool
		want           int
	}{{"nobody", false, false, 0}, {"the client", true, false, 0}, {"the server", false, true, 0},
		{"both", true, true, 1}} {
		t.Run(row.name, func(t *testing.T) {
			l, c := NewSocket(false, false), NewSocket(false, false)
			defer l.Close()
			defer c.Close()
			for s, offers := range map[*Socket]bool{l: row.server, c: row.client} {
				check.Equal(t, "without FRAGMENT_INTERLEAVE", s.Setsockopt(optInterleaving, uint32s(0, 1)), error(syscall.EPERM))
				must.OK(t, s.Setsockopt(optInterleave, uint32s(2)))
				if offers {
					must.OK(t, s.Setsockopt(optInterleaving, uint32s(0, 1)))
				}
				wantInterleaving(t, "will be offered", s, boolInt(offers))
			}
			must.OK(t, l.Bind(RawAddrs(home, 0), false))
			must.OK(t, l.Listen())
			at, _ := must.Two(l.LocalAddrs())(t)
			must.Get(c.Connect(at))(t)
			s := must.Get(l.Accept())(t)
			defer s.Close()
			wantInterleaving(t, "agreed on, at the client", c, row.want)
			wantInterleaving(t, "agreed on, at the server", s, row.want)
			c.conn.Abort("")
		})
	}
	s := NewSocket(false, false)
	defer s.Close()
	must.OK(t, s.Setsockopt(optInterleave, uint32s(1)))
	must.OK(t, s.Setsockopt(optInterleaving, uint32s(0, 1)))
	must.OK(t, s.Setsockopt(optInterleave, uint32s(0)))
	wantInterleaving(t, "after FRAGMENT_INTERLEAVE was turned off", s, 0)
	check.Equal(t, "an int", s.Setsockopt(optInterleaving, uint32s(1)), error(syscall.EINVAL))
}

func wantInterleaving(t *testing.T, what string, s *Socket, want int) {
	t.Helper()
	b := make([]byte, 8)
	n, err := s.Getsockopt(optInterleaving, b)
	check.That(t, err == nil && n == 8 && bytes.Equal(b, uint32s(0, want)), "%s: % x, %v; want %d", what, b[:n], err, want)
}
