package sctp

import (
	"errors"
	"net/netip"
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
