package assoc_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestOneSackForOnePacket(t *testing.T) {
	// req 9260-6.2-8: a gap, a duplicate, the I bit and a chunk for which there is no room are four
	// reasons for a SACK at once, and one packet.
	l := passiveLab(t, &assoc.Config{RecvBuffer: 1500, HeartbeatInterval: -1})
	first := l.data("first")
	l.send(l.tag, first)
	l.tsn++
	gap := l.data("behind a gap")
	urgent := l.data("at once")
	urgent[1] |= wire.FlagI
	big := l.data(strings.Repeat("x", 1400))
	last := l.data(strings.Repeat("y", 200))
	over := l.data("over")
	l.deliver(l.peer, packet(portA, portB, l.tag, first, gap, urgent, big, last, over))
	l.expect(l.flush(), "SACK")
	if n := l.a.Stats().OutOfWindow; n != 1 {
		t.Errorf("%d chunks without room", n)
	}
	l.expect(l.wait(2*time.Second), "")
}

func TestDataIsAcknowledgedBySack(t *testing.T) {
	// req 9260-6.2-1, 9260-6.2-13: every chunk, within the delay, by SACK.
	l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
	for n := 1; n <= 7; n++ {
		for range n {
			l.deliver(l.peer, packet(portA, portB, l.tag, l.data("x")))
		}
		out := l.wait(200 * time.Millisecond)
		if len(out) == 0 {
			t.Fatalf("%d packets are not acknowledged after 200 ms", n)
		}
		k, err := wire.AsSack(chunkOf(out[len(out)-1], wire.ChunkSack))
		if err != nil || k.CumTSN() != l.tsn-1 {
			t.Fatalf("%d packets: %q acknowledges %d, want %d (%v)", n, describe(out), k.CumTSN(), l.tsn-1, err)
		}
	}
}

func TestErrorCounterOfTheAssociation(t *testing.T) {
	// Two errors in a row are allowed. T3-rtx and unanswered HEARTBEATs on the path of the data count.
	cfg := &assoc.Config{AssocMaxRetrans: 2, PathMaxRetrans: 100, HeartbeatInterval: time.Hour}
	expire := func(l *lab, n int) {
		for range n {
			l.now = l.a.NextTimeout()
			l.a.HandleTimeout(l.now)
			l.flush()
		}
	}
	t.Run("acknowledged DATA clears it", func(t *testing.T) {
		l := passiveLab(t, cfg)
		cum := l.hostTSN - 1
		for range 4 {
			if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{[]byte("x")}}); err != nil {
				t.Fatal(err)
			}
			l.flush()
			expire(l, 2)
			cum++
			l.send(l.tag, l.sack(cum)) // req 9260-8.1-5
			l.inState(assoc.Established)
		}
	})
	t.Run("a SACK that acknowledges nothing does not", func(t *testing.T) {
		l := passiveLab(t, cfg)
		if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{[]byte("x")}}); err != nil {
			t.Fatal(err)
		}
		l.flush()
		expire(l, 2)
		l.send(l.tag, l.sack(l.hostTSN-1))
		expire(l, 1)
		l.inState(assoc.Closed)
		err, _ := l.h.downErr()
		e, failed := l.h.event(assoc.EventSendFailed)
		if err != assoc.ErrTimeout || !failed || e.Unsent { // req 9260-8.1-4
			t.Errorf("ended by %v, message reported %v", err, failed)
		}
	})
	t.Run("a HEARTBEAT ACK clears it", func(t *testing.T) {
		l := passiveLab(t, &assoc.Config{AssocMaxRetrans: 2, PathMaxRetrans: 100, HeartbeatInterval: time.Second})
		beats := 0
		for range 4 {
			var last wire.Packet
			for n := 0; n < 3; { // the third is sent after two errors
				for _, p := range l.flush() {
					if has(p, wire.ChunkHeartbeat) {
						last = p
						n, beats = n+1, beats+1
					}
				}
				if n < 3 {
					l.now = l.a.NextTimeout()
					l.a.HandleTimeout(l.now)
				}
			}
			l.inState(assoc.Established)
			l.send(l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, chunkOf(last, wire.ChunkHeartbeat).Value())) // req 9260-8.1-6
		}
		if beats != 12 {
			t.Errorf("%d HEARTBEATs", beats)
		}
	})
}

func TestHeartbeatOnTheWire(t *testing.T) {
	second := wire.AppendAddressParam(nil, netip.MustParseAddr("10.0.0.10"))
	l := bareLab(t)
	l.listen(&assoc.Config{HeartbeatInterval: 5 * time.Second, HBMaxBurst: 8, PathMaxRetrans: 1000, AssocMaxRetrans: 1000})
	l.initiate(second)
	start := l.now
	var list []posted
	var at []time.Duration
	l.deliver(l.peer, packet(portA, portB, l.tag, wire.AppendCookieEcho(nil, l.cookie)))
	for l.now.Sub(start) < time.Minute {
		for _, p := range l.collect() {
			if has(p.pkt, wire.ChunkHeartbeat) {
				list = append(list, p)
				at = append(at, l.now.Sub(start))
			}
		}
		l.now = l.a.NextTimeout()
		l.a.HandleTimeout(l.now)
	}
	paths, infos := map[string]bool{}, map[string]bool{}
	for i, p := range list {
		c := chunkOf(p.pkt, wire.ChunkHeartbeat)
		h, err := wire.AsHeartbeat(c)
		if err != nil || c.Type() != 4 || c[4] != 0 || c[5] != 1 || len(c) != 8+len(h.Info()) { // req 9260-3.3.5-1: one parameter, of type 1
			t.Fatalf("HEARTBEAT % x", c)
		}
		addr := p.to.Addr().As16()
		sent := uint64(start.Add(at[i]))
		var stamp [8]byte
		for k := range stamp {
			stamp[k] = byte(sent >> (56 - 8*k))
		}
		if info := string(h.Info()); !strings.Contains(info, string(addr[:])) || !strings.Contains(info, string(stamp[:])) { // req 9260-3.3.5-2
			t.Errorf("HEARTBEAT to %v at %v: info % x", p.to, at[i], info)
		}
		paths[p.to.Addr().String()] = true
		infos[string(h.Info()[:8])] = true
	}
	if len(list) < 8 || len(paths) != 2 || len(infos) != len(list) { // req 9260-3.3.5-3: 64 bits, never the same
		t.Errorf("%d HEARTBEATs to %d addresses with %d nonces", len(list), len(paths), len(infos))
	}
}

func TestAbortIsTheLastChunk(t *testing.T) {
	t.Run("sent", func(t *testing.T) {
		l := passiveLab(t, nil)
		l.deliver(l.peer, packet(portA, portB, l.tag, wire.AppendHeartbeat(nil, []byte("answer me")), l.data("x")))
		l.a.Abort(l.now, nil)
		for _, p := range l.flush() {
			if types := chunkTypes(p); has(p, wire.ChunkAbort) && types[len(types)-1] != wire.ChunkAbort { // req 9260-3.3.7-3
				t.Errorf("sent %v", types)
			}
		}
		if l.inState(assoc.Closed); len(l.flush()) != 0 {
			t.Error("something is sent after the ABORT")
		}
	})
	t.Run("received", func(t *testing.T) {
		l := bareLab(t)
		p := &placer{}
		l.h.placer = p
		l.listen(nil)
		l.shake()
		l.expect(l.send(l.tag, l.data("place before"), wire.AppendAbort(nil, false), l.data("place behind")), "") // req 9260-3.3.7-4
		l.inState(assoc.Closed)
		if strings.Join(p.seen, ", ") != "place before" {
			t.Errorf("the upper layer saw %q", p.seen)
		}
	})
}
