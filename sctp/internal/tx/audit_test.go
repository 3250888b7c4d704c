package tx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// Audit sees each count that is off by one.
func TestAuditFindsWhatDoesNotAgree(t *testing.T) {
	for what, spoil := range map[string]func(*Sender){
		"flight":     func(s *Sender) { s.outstanding.flightSize++ },
		"data":       func(s *Sender) { s.outstanding.dataInFlight-- },
		"path":       func(s *Sender) { s.paths[0].flight.octets++ },
		"first":      func(s *Sender) { s.paths[0].flight.first++ },
		"timer":      func(s *Sender) { s.paths[0].timers.t3At = rawio.Never },
		"marked":     func(s *Sender) { s.outstanding.numToRetransmit++ },
		"gapped":     func(s *Sender) { s.outstanding.numGapAcked++ },
		"held":       func(s *Sender) { s.queue.bufferedOctets-- },
		"unsent":     func(s *Sender) { s.queue.waitingOctets++ },
		"two states": func(s *Sender) { s.outstanding.toRetransmit.Add(s.outstanding.firstUnacked) },
		"no state":   func(s *Sender) { s.paths[0].flight.tsns.Remove(s.outstanding.firstUnacked) },
		"eligible":   func(s *Sender) { s.outstanding.lossEligible.Add(s.outstanding.firstUnacked) },
	} {
		l := newLab(t, 1)
		m := Message{Body: [2][]byte{make([]byte, 5000)}}
		must.OK(t, l.s.Enqueue(&m))
		l.transmit()
		must.That(t, l.s.Flight() != 0, "nothing is in flight")
		l.check()
		spoil(l.s)
		check.That(t, l.s.Audit() != nil, "%s: nothing is said", what)
	}
}
