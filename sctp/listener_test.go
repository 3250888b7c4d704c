package sctp

import (
	"errors"
	"io"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// What a listener is told holds for what comes from then on, and only for that; what cannot be is
// refused whole.
func TestAListenerIsReconfigured(t *testing.T) {
	p := newPair(t)
	own := []netip.Addr{p.bAddr}
	l := must.Get(p.b.Listen(0, &Config{OutStreams: 3, LocalAddrs: own}))(t)
	other := must.Get(p.b.Listen(0, &Config{OutStreams: 4}))(t)
	streams := func(l *Listener) int {
		t.Helper()
		c := must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t)
		s := must.Get(l.Accept(deadlineCtx(t)))(t)
		n := s.Stats().OutStreams
		c.Abort("")
		s.Abort("")
		return n
	}
	check.Equal(t, "streams at first", streams(l), 3)
	must.OK(t, l.Reconfigure(func(c *Config) { c.OutStreams, c.LocalAddrs = c.OutStreams+4, nil }))
	check.Equal(t, "streams then", streams(l), 7)
	must.OK(t, l.Reconfigure(func(c *Config) { c.OutStreams, c.NoDelay = c.OutStreams+1, true }))
	check.Equal(t, "streams once more", streams(l), 8)
	err := l.Reconfigure(func(c *Config) { c.OutStreams, c.RTOMin, c.RTOMax = 9, 2, 1 })
	check.That(t, errors.As(err, new(*ConfigError)), "%v", err)
	check.Equal(t, "streams after what cannot be", streams(l), 8)
	check.Equal(t, "streams of another listener", streams(other), 4)
	check.Equal(t, "where it listens", l.Addr().(Addr).Addr(), own[0])
}

// What has ended before Accept keeps its place only while there is something to accept: messages,
// or a graceful end. It keeps it from its own address alone, and an association that has failed
// with nothing unread is as if it had never been.
func TestPlacesOfAssociationsThatHaveEndedBeforeAccept(t *testing.T) {
	abort := func(t *testing.T, c *Conn) { c.Abort("") }
	say := func(then func(*testing.T, *Conn)) func(*testing.T, *Conn) {
		return func(t *testing.T, c *Conn) {
			must.OK(t, c.probePeer())
			then(t, c)
		}
	}
	for _, row := range []struct {
		name   string
		end    func(*testing.T, *Conn)
		places int
		reads  error // of Accept's association, in the end
	}{
		{"aborted, nothing unread: no place, and Accept does not return it", abort, 0, nil},
		{"aborted, one message unread: it has its place, and the message is read", say(abort), 1, syscall.ECONNRESET},
		{"closed, nothing unread: Accept returns it, as of TCP", func(t *testing.T, c *Conn) { must.OK(t, c.Close()) }, 1, io.EOF},
		{"closed, one message unread", say(func(t *testing.T, c *Conn) { must.OK(t, c.Close()) }), 1, io.EOF},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t)
			const backlog = 4
			l := must.Get(p.b.Listen(0, &Config{Backlog: backlog}))(t)
			to := netip.AddrPortFrom(p.bAddr, l.Port())
			for range backlog {
				row.end(t, must.Get(p.a.Dial(deadlineCtx(t), to, nil))(t))
				until(t, "the end", func() bool { return len(p.b.liveConns()) == 0 })
			}
			want := backlog * row.places
			until(t, "what is left to accept", func() bool {
				return l.readyCount() == want && l.slots.UsedUnits() == int64(want)
			})
			if c, err := p.a.Dial(deadlineCtx(t), to, nil); row.places == 1 {
				check.Error(t, "one more of the address", err, syscall.ECONNREFUSED)
			} else {
				must.OK(t, err)
				must.OK(t, c.probePeer())
				s := must.Get(l.Accept(deadlineCtx(t)))(t)
				check.Equal(t, "the state of what Accept returns", s.Stats().State, Established)
			}
			check.That(t, !l.slots.IsFullFor(netip.MustParseAddr("10.9.9.9")), "other hosts are kept out")
			for range want {
				s := must.Get(l.Accept(deadlineCtx(t)))(t)
				_, _, err := s.ReadMsg(make([]byte, 10))
				if strings.Contains(row.name, "one message unread") {
					must.OK(t, err)
					_, _, err = s.ReadMsg(make([]byte, 10))
				}
				check.Error(t, "the end, as the reader hears of it", err, row.reads)
			}
			check.Equal(t, "places in the end", l.slots.UsedUnits(), 0)
		})
	}
}
