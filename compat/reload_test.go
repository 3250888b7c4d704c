package compat

import (
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// A server that is closed may listen on its port again at once, while associations of it live on,
// and as often as it likes; not while it listens.
func TestAServerIsReloaded(t *testing.T) {
	for name, row := range map[string]struct {
		v6, all bool
	}{"an address of IPv4": {false, false}, "an address of IPv6": {true, false}, "all addresses": {true, true}} {
		t.Run(name, func(t *testing.T) {
			address := "127.0.0.1"
			if row.v6 {
				address = "::1"
			}
			to := func(port int) []byte {
				if row.all {
					return sockaddrs(port, "::")
				}
				return sockaddrs(port, address)
			}
			server := func(port int) *Socket {
				l := NewSocket(row.v6, false)
				t.Cleanup(func() { l.Close() })
				must.OK(t, l.Bind(to(port), false))
				return l
			}
			first := server(0)
			must.OK(t, first.Listen())
			port := int(first.boundPort)
			connect := func(l *Socket) (a, b *Socket) {
				a = NewSocket(row.v6, false)
				must.Get(a.Connect(sockaddrs(port, address)))(t)
				b = must.Get(l.Accept())(t)
				t.Cleanup(func() { a.conn.Abort(""); b.conn.Abort(""); a.Close(); b.Close() })
				return a, b
			}
			speak := func(what string, a, b *Socket) {
				t.Helper()
				must.Get(a.Send([]byte("ping"), nil))(t)
				check.That(t, readSocket(b, 9) == wholeMessage("ping"), "%s: the server does not hear it", what)
				must.Get(b.Send([]byte("pong"), nil))(t)
				check.That(t, readSocket(a, 9) == wholeMessage("pong"), "%s: the client does not hear it", what)
			}
			a, b := connect(first)
			check.Equal(t, "another while it listens", server(port).Listen(), error(syscall.EADDRINUSE))
			last := first
			for range 2 {
				must.OK(t, last.Close())
				_, err := NewSocket(row.v6, false).Connect(sockaddrs(port, address))
				check.Equal(t, "connect while nobody listens", err, error(syscall.ECONNREFUSED))
				next := server(port)
				must.OK(t, next.Listen())
				check.Equal(t, "another while the second listens", server(port).Listen(), error(syscall.EADDRINUSE))
				c, d := connect(next)
				speak("an association of the new server", c, d)
				speak("the association of the old server", a, b)
				check.Equal(t, "its port", int(d.boundPort), port)
				last = next
			}
			must.OK(t, a.Close()) // which the old server's end notices, and no other
			check.That(t, readSocket(b, 9).err != nil, "the end of an old association is not heard")
			c, d := connect(last)
			speak("an association behind its end", c, d)
		})
	}
}
