package assoc_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// report delivers an ICMP message that quotes a packet of the endpoint.
func (l *lab) report(kind rawio.Kind, mtu int, quote []byte) {
	p := rawio.Packet{Kind: kind, MTU: mtu, Data: quote, Local: l.h.addr, Remote: l.peer}
	l.h.receive(l.now, &p)
	l.flush()
}

func TestProtocolUnreachable(t *testing.T) {
	quote := func(tag uint32, chunks ...[]byte) func(*lab) []byte {
		return func(*lab) []byte { return packet(portB, portA, tag, chunks...) }
	}
	for _, row := range []struct {
		name  string
		lab   func(*testing.T) *lab
		quote func(*lab) []byte
		ends  bool
	}{
		// req 9260-10-9, 9260-12.4-1
		{"established, 8 octets with the peer's tag, silent for an RTO: ends", func(t *testing.T) *lab { return passiveLab(t, nil) },
			func(l *lab) []byte {
				l.now = l.now.Add(3 * time.Second)
				return packet(portB, portA, l.peerTag)[:8]
			}, true},
		{"established, the peer was heard just now: ignored", func(t *testing.T) *lab { return passiveLab(t, nil) },
			func(l *lab) []byte { return packet(portB, portA, l.peerTag) }, false},
		{"established, in answer to what T3-rtx sent again: ends", func(t *testing.T) *lab { return passiveLab(t, nil) },
			func(l *lab) []byte {
				if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{{1}}}); err != nil {
					l.t.Fatal(err)
				}
				l.flush()
				l.now = l.a.NextTimeout()
				l.a.HandleTimeout(l.now)
				if p := l.flush(); len(p) != 1 || !has(p[0], wire.ChunkData) {
					l.t.Fatalf("sent %v after T3-rtx", p)
				}
				return packet(portB, portA, l.peerTag)
			}, true},
		{"established, another tag: ignored", func(t *testing.T) *lab { return passiveLab(t, nil) }, quote(0xbad), false}, // req 9260-10-6
		{"established, 7 octets: ignored", func(t *testing.T) *lab { return passiveLab(t, nil) },
			func(l *lab) []byte { return packet(portB, portA, l.peerTag)[:7] }, false},
		{"established, other ports: ignored", func(t *testing.T) *lab { return passiveLab(t, nil) }, // req 9260-10-4
			func(l *lab) []byte { return packet(portB, portA+1, l.peerTag) }, false},
		{"COOKIE-WAIT, the own INIT: ends", func(t *testing.T) *lab { return activeLab(t, nil) }, // req 9260-10-7
			func(l *lab) []byte { return packet(portB, portA, 0, initChunk(l.tag, 1))[:20] }, true},
		{"COOKIE-WAIT, an INIT with another tag: ignored", func(t *testing.T) *lab { return activeLab(t, nil) },
			quote(0, initChunk(0xbad, 1)), false},
		{"COOKIE-WAIT, tag 0 and too short to tell: ignored", func(t *testing.T) *lab { return activeLab(t, nil) },
			func(l *lab) []byte { return packet(portB, portA, 0, initChunk(l.tag, 1))[:19] }, false},
		{"COOKIE-WAIT, tag 0 and no INIT: ignored", func(t *testing.T) *lab { return activeLab(t, nil) },
			quote(0, make([]byte, 20)), false},
		{"ESTABLISHED, the own INIT: ignored", func(t *testing.T) *lab { return establishedLab(t, nil) },
			func(l *lab) []byte { return packet(portB, portA, 0, initChunk(l.tag, 1)) }, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state := l.a.State()
			l.report(rawio.KindProtoUnreachable, 0, row.quote(l))
			if !row.ends {
				l.inState(state)
				return
			}
			l.inState(assoc.Closed)
			if err, _ := l.h.downErr(); !errors.Is(err, assoc.ErrProtoUnreachable) || !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("ended by %v", err)
			}
		})
	}
}

func TestPacketTooBigLowersThePathMTU(t *testing.T) {
	l := passiveLab(t, nil)
	before := l.a.MaxPayload()
	l.report(rawio.KindPacketTooBig, 1000, packet(portB, portA, 0xbad))
	if l.a.MaxPayload() != before {
		t.Fatal("a report with a wrong tag was believed")
	}
	l.report(rawio.KindPacketTooBig, 1000, packet(portB, portA, l.peerTag)) // req 9260-10-8
	if got := l.a.PathStats(0).MTU; got != 980 {
		t.Fatalf("MTU %d, want 1000 less the IPv4 header", got)
	}
	if e, ok := l.h.event(assoc.EventMTUChanged); !ok || e.Path != l.peer || l.a.MaxPayload() != before-(testMTU-980) {
		t.Errorf("event %+v %v, MaxPayload %d", e, ok, l.a.MaxPayload())
	}
	l.report(rawio.KindPacketTooBig, 1400, packet(portB, portA, l.peerTag))
	if got := l.a.PathStats(0).MTU; got != 980 {
		t.Errorf("a report raised the MTU to %d", got)
	}
	l.report(rawio.KindPacketTooBig, 68, packet(portB, portA, l.peerTag))
	if got := l.a.PathStats(0).MTU; got != rawio.MinMTU-20 {
		t.Errorf("a hostile report lowered the MTU to %d", got)
	}
	if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{make([]byte, 3000)}}); err != nil {
		t.Fatal(err)
	}
	for _, p := range l.flush() {
		if len(p) > rawio.MinMTU-20 || !has(p, wire.ChunkData) { // req 9260-6.10-1
			t.Errorf("packet of %d octets", len(p))
		}
	}
}
