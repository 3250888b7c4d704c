package sctp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// CumTSN is that of the association when the message is read: neither that of the message, nor what
// it was when the message came.
func TestReceivedMessagesTellTheCumulativeTSN(t *testing.T) {
	read := func(t *testing.T, c *Conn) RecvInfo {
		t.Helper()
		_, info, err := c.ReadMsg(make([]byte, 9000))
		must.OK(t, err)
		return info
	}
	t.Run("beyond a message that others follow", func(t *testing.T) {
		c, s := newPair(t).connect(t, nil, nil)
		for range 3 {
			must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		}
		until(t, "the third message", func() bool { return s.Stats().Buffered == 3 })
		first := read(t, s)
		for i := range uint32(3) {
			info := first
			if i > 0 {
				info = read(t, s)
			}
			check.That(t, info.TSN == first.TSN+i && info.CumTSN == first.TSN+2, "message %d: %+v", i, info)
		}
	})
	t.Run("below a message that has overtaken another", func(t *testing.T) {
		a, b, links := apiPair(t)
		c, s := connectTransports(t, a, b, &Config{DisablePMTUD: true}, nil)
		must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		before := read(t, s)
		links[0].Lose.Store(true)
		must.Do(c.WriteMsg([]byte("lost"), SendInfo{}))(t)
		until(t, "what is lost to be sent", func() bool { return c.Stats().Outstanding > 0 })
		links[0].Lose.Store(false)
		must.Do(c.WriteMsg([]byte("y"), SendInfo{Unordered: true}))(t)
		info := read(t, s)
		check.That(t, info.TSN == before.TSN+2 && info.CumTSN == before.TSN, "%+v, before %+v", info, before)
		info = read(t, s)
		check.That(t, info.TSN == before.TSN+1 && info.CumTSN == before.TSN+2, "%+v, before %+v", info, before)
		c.Abort("")
	})
	t.Run("of an association that rests", func(t *testing.T) {
		c, s := newPair(t).connect(t, nil, nil)
		must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		info := read(t, s)
		until(t, "rest", func() bool {
			s.lock()
			defer s.unlock()
			return s.core.GoIdle()
		})
		s.lock()
		check.That(t, s.core.IsIdle() && uint32(s.core.CumTSN()) == info.TSN, "%d, want %d", s.core.CumTSN(), info.TSN)
		s.unlock()
	})
	t.Run("read by a Socket", func(t *testing.T) {
		a, b, addr := newSockets(t)
		for range 2 {
			must.Do(a.WriteMsg([]byte("x"), addr, SendInfo{}))(t)
			_, _, info, err := b.ReadMsg(make([]byte, 9))
			must.OK(t, err)
			check.That(t, info.CumTSN == info.TSN && info.TSN != 0, "%+v", info)
		}
	})
}

// A failed message has the context that it was written with, which no two messages share.
func TestAFailedMessageHasItsContext(t *testing.T) {
	a, b, links := apiPair(t)
	c, _ := connectTransports(t, a, b, &Config{Events: 100, RemoteAddrs: []netip.Addr{addrsB[1].Addr()},
		DisablePMTUD: true},
		nil)
	links[0].Lose.Store(true)
	for i := range uint32(3) {
		must.Do(c.WriteMsg([]byte("x"), SendInfo{Context: 40 + i, Lifetime: time.Hour}))(t)
	}
	c.Abort("")
	for i := range uint32(3) {
		ev := nextOfKind(t, c, assoc.EventSendFailed)
		check.That(t, ev.Info.Context == 40+i, "message %d: %+v", i, ev.Info)
	}
}
