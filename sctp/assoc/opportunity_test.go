package assoc_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// A SACK that comes while the owner writes one batch after another begins a new transmission
// opportunity: what Max.Burst has left to send might otherwise wait for ever, when nothing is in
// flight any more.
func TestSackAmidATransmission(t *testing.T) {
	// req 9260-6.1-11
	const burst = 4
	l := sctptest.Passive(t, &assoc.Config{MaxBurst: burst, HeartbeatInterval: -1, DisablePMTUD: true})
	payload, before := l.A.MaxPayload(), l.A.Stats()
	for range 20 {
		must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, payload)}}))
	}
	more := l.A.PollTransmit(l.Now, l.Host.Batch)
	must.That(t, more && len(l.Host.Batch.Pkts) == burst,
		"%d packets, more: %v: not a full batch that ends the opportunity", len(l.Host.Batch.Pkts), more)
	s := l.A.Stats()
	check.That(t, s.PacketsOut == before.PacketsOut+burst && s.OctetsOut == before.OctetsOut+
		uint64(l.Host.Batch.Octets()), "%d packets, %d octets are counted",
		s.PacketsOut-before.PacketsOut, s.OctetsOut-before.OctetsOut)
	l.Host.Batch.Reset()
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Sack(l.HostTSN+burst-1)))
	out := l.Flush()
	check.That(t, len(out) >= burst, "%d packets after everything was acknowledged", len(out))
}
