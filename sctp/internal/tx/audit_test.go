package tx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
	"github.com/rddp-go/rddp/rawio"
)

// Audit sees each count that is off by one.
func TestAuditFindsWhatDoesNotAgree(t *testing.T) {
	for what, spoil := range map[string]func(*Sender){
		"flight":     func(s *Sender) { s.ledger.flight++ },
		"data":       func(s *Sender) { s.ledger.data-- },
		"path":       func(s *Sender) { s.paths[0].flight++ },
		"first":      func(s *Sender) { s.paths[0].first++ },
		"timer":      func(s *Sender) { s.paths[0].t3 = rawio.Never },
		"marked":     func(s *Sender) { s.ledger.nmarked++ },
		"gapped":     func(s *Sender) { s.ledger.ngapped++ },
		"held":       func(s *Sender) { s.held-- },
		"unsent":     func(s *Sender) { s.unsent++ },
		"two states": func(s *Sender) { s.ledger.marked.Add(s.ledger.base) },
		"no state":   func(s *Sender) { s.paths[0].inflight.Remove(s.ledger.base) },
		"ripe":       func(s *Sender) { s.ledger.ripe.Add(s.ledger.base) },
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
