package rx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Audit sees each count that is off by one, and says nothing of one that is right.
func TestAuditFindsWhatDoesNotAgree(t *testing.T) {
	held := func() *Receiver {
		r := newReceiver()
		for _, d := range []wire.Data{
			dataChunk(2, 1, be, "waits for SSN 0"),
			onStream(1, 4, 0, wire.FlagB, "first half"),
		} {
			must.That(t, r.Admit(d) == New && r.Queue(d, nil) == nil, "refused")
		}
		return r
	}
	must.OK(t, held().Audit(0))
	for what, spoil := range map[string]func(*Receiver){
		"octets":     func(r *Receiver) { r.reassembly.heldOctets++ },
		"memory":     func(r *Receiver) { r.reassembly.store.usedMemory++ },
		"size":       func(r *Receiver) { r.reassembly.byLastTSN.highestMessage().Size++ },
		"highest":    func(r *Receiver) { r.tracker.highTSN++ },
		"cumulative": func(r *Receiver) { r.tracker.cumTSN++ },
		"beyond":     func(r *Receiver) { r.tracker.aboveCum.Add(9) },
		"window":     func(r *Receiver) { r.advertisedWindow = r.cfg.RecvBuffer + 1 },
		"SSN":        func(r *Receiver) { r.reassembly.stateOfStream(0).nextSSN = 1 },
	} {
		r := held()
		spoil(r)
		check.That(t, r.Audit(0) != nil, "%s: nothing is said", what)
	}
}

func TestWhatEndsAtTheEdgeOfTheTablesIsFound(t *testing.T) {
	const cum = 1 << 20
	for _, ahead := range []int{1023, 1024, 1025, 2048, 65535} {
		r := NewReceiver(Config{PeerTSN: cum + 1, RecvBuffer: 1000, InStreams: 1})
		// into tables, and into these grown
		mustPacket(t, r, 0, dataChunk(cum+2, 1, be, "x"), dataChunk(cum+ahead, 2, be, "y"))
		err := r.Audit(0)
		check.That(t, err == nil && max(r.tracker.aboveCum.Cap(), r.reassembly.byLastTSN.lastTSNs.Cap()) <=
			max(2*ahead, 1024), "%v, %v", err, r.tracker.aboveCum.Cap())
	}
}
