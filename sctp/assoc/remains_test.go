package assoc_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// loseFrom drops the first n packets that a host sends.
func loseFrom(host, n int) func(int, wire.Packet) (int, time.Duration) {
	return func(from int, _ wire.Packet) (int, time.Duration) {
		if from == host && n > 0 {
			n--
			return 0, 0
		}
		return 1, 0
	}
}

// isEachRecordNew fails for a record that was sent twice.
func isEachRecordNew(t *testing.T, w *sctptest.World) {
	t.Helper()
	seen := map[string]bool{}
	for _, s := range w.Sent {
		if isSealed(s.Pkt) {
			check.That(t, !seen[string(s.Pkt)], "a record was sent twice")
			seen[string(s.Pkt)] = true
		}
	}
}

// The host that has sent SHUTDOWN COMPLETE has no association any more. Its peer believes sealed
// answers only, and gets one.
func TestLostShutdownComplete(t *testing.T) {
	// req 9260-8.4-6
	for lost := range 4 {
		w, a, b := protectedPair(t)
		must.OK(t, a.Shutdown(w.Now))
		must.That(t, w.RunUntil(w.Now.Add(time.Second), func() bool { return b.State() == assoc.ShutdownAckSent }), "%v", b.State())
		before := len(w.Sent)
		w.Filter = loseFrom(0, lost)
		w.Run(20 * time.Second)
		for i, h := range w.Hosts {
			err, ok := h.DownErr()
			check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "%d lost, host %d: %v", lost, i, err)
		}
		for _, s := range w.Sent[before:] {
			check.That(t, isSealed(s.Pkt), "%v in the clear", sctptest.ChunkTypes(s.Pkt))
		}
		isEachRecordNew(t, w)
		check.Equal(t, "answers without an association", w.Hosts[0].Endpoint.Stats().Reflected, uint64(lost))
	}
}

// The same after an ABORT, whatever the peer sends.
func TestLostAbort(t *testing.T) {
	// req 9260-8.4-10
	w, a, b := protectedPair(t)
	w.Filter = loseFrom(0, 2)
	a.Abort(w.Now, []byte("secret reason"))
	w.Run(time.Second)
	check.Equal(t, "state of the peer", b.State(), assoc.Established)
	w.Send(b, 0, []byte("x"))
	w.Run(10 * time.Second)
	err, ok := w.Hosts[1].DownErr()
	var aborted *assoc.AbortError
	check.That(t, ok && errors.As(err, &aborted) && aborted.ByPeer, "%v", err)
	isEachRecordNew(t, w)
	check.Equal(t, "answers", w.Hosts[0].Endpoint.Stats().Reflected, uint64(2))

	w, a, b = protectedPair(t)
	a.Abort(w.Now, nil)
	b.Abort(w.Now, nil)
	w.Run(time.Minute)
	for _, h := range w.Hosts {
		check.Equal(t, "answers to an ABORT", h.Endpoint.Stats().Reflected, uint64(0))
	}
}

// A side that has heard of the end keeps nothing.
func TestNoRemains(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *sctptest.World, a *assoc.Assoc)
		want [2]bool
	}{
		{"a shutdown", func(w *sctptest.World, a *assoc.Assoc) { must.OK(t, a.Shutdown(w.Now)) }, [2]bool{true, false}},
		{"an abort", func(w *sctptest.World, a *assoc.Assoc) { a.Abort(w.Now, nil) }, [2]bool{true, false}},
		{"a peer that is gone", func(w *sctptest.World, a *assoc.Assoc) {
			w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
			w.Send(a, 0, []byte("x"))
			w.Run(time.Hour)
		}, [2]bool{true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a, _ := protectedPair(t)
			c.end(w, a)
			w.Run(time.Second)
			for i, h := range w.Hosts {
				check.Equal(t, "keeps something", h.Endpoint.Held() >= assoc.RemainsOctets, c.want[i])
			}
		})
	}
	w, a, _ := sctptest.Pair(t, nil, nil)
	a.Abort(w.Now, nil)
	w.Run(time.Second)
	check.That(t, w.Hosts[0].Endpoint.Held() < assoc.RemainsOctets, "something is kept without protection")
}

// Nobody but the peer gets an answer, from its own address, once, and in time.
func TestRemainsAnswerThePeerAlone(t *testing.T) {
	held := func(t *testing.T) (w *sctptest.World, ack []byte) {
		w, a, b := protectedPair(t)
		must.OK(t, a.Shutdown(w.Now))
		w.RunUntil(w.Now.Add(time.Second), func() bool { return b.State() == assoc.ShutdownAckSent })
		n := len(w.Sent)
		w.Filter = func(from int, _ wire.Packet) (int, time.Duration) { return from * min(len(w.Sent)-n, 1), 0 }
		w.Run(sctptest.RoundTrip) // its SHUTDOWN ACK has come, and SHUTDOWN COMPLETE is lost
		must.Equal(t, "state", a.State(), assoc.Closed)
		w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
		w.Run(5 * time.Second)
		for _, s := range w.Sent {
			if s.From == 1 {
				ack = bytes.Clone(s.Pkt)
			}
		}
		return w, ack // one that has not arrived
	}
	other := netip.MustParseAddrPort("192.0.2.77:0")
	for _, c := range []struct {
		name  string
		wait  time.Duration
		from  netip.AddrPort
		forge func(p []byte) []byte
		want  uint64
	}{
		{"the peer", 0, netip.AddrPort{}, nil, 1},
		{"the peer, in time", 350 * time.Second, netip.AddrPort{}, nil, 1},
		{"too late", 364 * time.Second, netip.AddrPort{}, nil, 0},
		{"another address", 0, other, nil, 0},
		{"another tag", 0, netip.AddrPort{}, func(p []byte) []byte { p[4]++; return p }, 0},
		{"a flipped bit", 0, netip.AddrPort{}, func(p []byte) []byte { p[22] ^= 4; return p }, 0},
		{"a chunk beside it", 0, netip.AddrPort{}, func(p []byte) []byte { return wire.AppendShutdownAck(p) }, 0},
		{"shorter", 0, netip.AddrPort{}, func(p []byte) []byte { p[15] = 12; return p[:24] }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, ack := held(t)
			if w.Run(c.wait); c.forge != nil {
				ack = c.forge(ack)
			}
			h := w.Hosts[0]
			before := h.Endpoint.Stats().Reflected
			for range 2 { // the second is a replay
				from := c.from
				if !from.IsValid() {
					from = w.Hosts[1].Addr
				}
				h.Receive(w.Now, &rawio.Packet{Data: resum(bytes.Clone(ack)), Local: h.Addr, Remote: from})
			}
			if c.name == "another tag" { // out of the blue: an ABORT in the clear
				c.want = 2
			}
			check.Equal(t, "answers", h.Endpoint.Stats().Reflected-before, c.want)
		})
	}
}
