package rx

import (
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

// What a peer can make the tracker remember is bounded: TSNs that no gap block could report are not taken, and a
// SACK lists 64 duplicates at most.
func TestLimitsOfTheTracker(t *testing.T) {
	k := NewTracker(1)
	for tsn := wire.TSN(3); tsn < 65536; tsn += 2 { // every second one: as many gaps as there can be
		if got := k.Check(tsn); got != Fresh {
			t.Fatalf("TSN %d: %v", tsn, got)
		}
		k.Add(tsn)
	}
	for _, tsn := range []wire.TSN{65536, 65537, 1 << 20, 1<<31 - 1} {
		if got := k.Check(tsn); got != Beyond {
			t.Errorf("TSN %d, with a Cumulative TSN of 0: %v", tsn, got)
		}
	}
	if n := k.set.Cap(); n > 1<<16 {
		t.Errorf("a window of %d TSNs", n)
	}
	if b := k.AppendSack(nil, 0, 1400); len(b) > 1400 {
		t.Errorf("a SACK of %d octets where 1400 fit", len(b))
	}
	k = NewTracker(1)
	for range 1000 {
		k.Duplicate(0)
	}
	sack, err := wire.AsSack(k.AppendSack(nil, 0, 1400))
	if err != nil || sack.NumDups() != 64 || len(k.dups) != 0 {
		t.Errorf("%d duplicates listed, %d left, %v", sack.NumDups(), len(k.dups), err)
	}
}
