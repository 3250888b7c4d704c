package simulation

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// The ledger sees each record of a world, and finds one that comes again, or that no key has
// sealed.
func TestLedger(t *testing.T) {
	w := NewEncrypted(1)
	must.OK(t, w.Run())
	l := &w.keys.ledger
	check.That(t, l.records > 100 && len(l.keys) >= 4, "%d records, %d keys", l.records, len(l.keys))
	check.Equal(t, "the last packet again", l.note(w.keys.last), "a key seals a number for the second time")
	changed := &rawio.Packet{Vec: [][]byte{append([]byte(nil), w.keys.last.Vec[0]...)}}
	changed.Vec[0][30]++
	check.Equal(t, "another", l.note(changed), "a packet is sealed by no key, or under a number long past")
	for _, k := range l.keys {
		k.next += 1 << 20
	}
	check.Equal(t, "the last packet after many others", l.note(w.keys.last), "a packet is sealed by no key, or under a number long past")
}
