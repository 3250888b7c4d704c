package assoc_test

import (
	"testing"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// A SACK that comes while the owner writes one batch after another begins a new transmission opportunity: what
// Max.Burst has left to send might otherwise wait for ever, when nothing is in flight any more.
func TestSackAmidATransmission(t *testing.T) {
	// req 9260-6.1-11
	const burst = 4
	l := passiveLab(t, &assoc.Config{MaxBurst: burst, HeartbeatInterval: -1, DisablePMTUD: true})
	payload := l.a.MaxPayload()
	for range 20 {
		if err := l.a.Send(l.now, &assoc.Message{Body: [2][]byte{make([]byte, payload)}}); err != nil {
			t.Fatal(err)
		}
	}
	if more := l.a.PollTransmit(l.now, l.h.batch); !more || len(l.h.batch.Pkts) != burst {
		t.Fatalf("%d packets, more: %v: not a full batch that ends the opportunity", len(l.h.batch.Pkts), more)
	}
	l.h.batch.Reset()
	l.deliver(l.peer, packet(portA, portB, l.tag, l.sack(l.hostTSN+burst-1)))
	if out := l.flush(); len(out) < burst {
		t.Errorf("%d packets after everything was acknowledged", len(out))
	}
}
