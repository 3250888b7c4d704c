package sctptest

import (
	"bytes"
	"errors"
	"math/rand"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Life is a whole association: setup, messages in both directions through a bad network, silence
// with heartbeats, shutdown. spoil may change each packet on its way; the checksum is made right
// again.
func Life(t testing.TB, spoil func(wire.Packet)) (w *World, a, b *assoc.Assoc) {
	t.Helper()
	rnd := rand.New(rand.NewSource(5))
	w = NewWorld(t)
	w.Listen(nil)
	w.Filter = func(_ int, pkt wire.Packet) (int, time.Duration) {
		if spoil != nil {
			spoil(pkt)
			wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
		}
		if rnd.Intn(100) < 8 || Has(pkt, wire.ChunkInit) && len(w.Seen(0, wire.ChunkInit)) == 1 {
			return 0, 0
		}
		return 1, time.Duration(rnd.Intn(15)) * time.Millisecond
	}
	adaptation := uint32(3)
	a = w.Connect(&assoc.Config{Adaptation: &adaptation})
	must.That(t, w.RunUntil(w.Now.Add(time.Minute), func() bool { return a.State() == assoc.Established }),
		"state %v", a.State())
	b = w.Peer()
	var got [2]int
	take := func() {
		got[0], got[1] = got[0]+len(Drain(a)), got[1]+len(Drain(b))
	}
	const messages = 40
	for i := range messages {
		for _, x := range []*assoc.Assoc{a, b} {
			m := assoc.Message{Stream: wire.StreamID(i % 4), Unordered: i%5 == 0,
				Body: [2][]byte{bytes.Repeat([]byte{byte(i)}, 1+rnd.Intn(3500))}}
			must.OK(t, x.Send(w.Now, &m))
		}
		w.Run(20 * time.Millisecond)
		take()
	}
	w.Run(3 * time.Minute)
	take()
	must.OK(t, a.Shutdown(w.Now))
	w.RunUntil(w.Now.Add(time.Hour), func() bool {
		take()
		return a.State() == assoc.Closed && b.State() == assoc.Closed
	})
	must.That(t, got == [2]int{messages, messages}, "%d messages delivered, states %v %v", got, a.State(), b.State())
	for i, h := range w.Hosts {
		err, ok := h.DownErr()
		check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "host %d: %v %v", i, ok, err)
	}
	for _, c := range []wire.ChunkType{wire.ChunkInit, wire.ChunkInitAck, wire.ChunkCookieEcho, wire.ChunkCookieAck,
		wire.ChunkData,
		wire.ChunkSack, wire.ChunkHeartbeat, wire.ChunkHeartbeatAck, wire.ChunkShutdown, wire.ChunkShutdownAck,
		wire.ChunkShutdownComplete} {
		check.That(t, len(w.Seen(0, c))+len(w.Seen(1, c)) != 0, "no %v: the story proves less than it should", c)
	}
	return w, a, b
}
