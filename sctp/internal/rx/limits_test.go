package rx

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What a peer can make the tracker remember is bounded: TSNs that no gap block could report are not
// taken, and a SACK lists 64 duplicates at most.
func TestLimitsOfTheTracker(t *testing.T) {
	k := NewTracker(1)
	k.AppendSack(nil, 0, 1400)
	check.That(t, k.sackReports == nil, "there is room for reports without gaps and duplicates")
	for tsn := wire.TSN(3); tsn < 65536; tsn += 2 { // every second one: as many gaps as there can be
		got := k.Check(tsn)
		must.That(t, got == Fresh, "TSN %d: %v", tsn, got)
		k.Add(tsn)
	}
	for _, tsn := range []wire.TSN{65536, 65537, 1 << 20, 1<<31 - 1} {
		got := k.Check(tsn)
		check.That(t, got == TooFarAhead, "TSN %d, with a Cumulative TSN of 0: %v", tsn, got)
	}
	n := k.aboveCum.Cap()
	check.That(t, n <= 1<<16, "a window of %d TSNs", n)
	b := k.AppendSack(nil, 0, 1400)
	check.That(t, len(b) <= 1400, "a SACK of %d octets where 1400 fit", len(b))
	k = NewTracker(1)
	for range 1000 {
		k.NoteDuplicate(0)
	}
	sack, err := wire.AsSack(k.AppendSack(nil, 0, 1400))
	check.That(t, err == nil && sack.NumDups() == 64 && len(k.dups) == 0,
		"%d duplicates listed, %d left, %v", sack.NumDups(), len(k.dups), err)
}

func TestNothingIsRenegedWhileThereIsRoom(t *testing.T) {
	// req 9260-6.2-26
	r := newReceiver()
	want := "cum 0"
	for i := range 90 { // every second TSN, 900 of 1000 octets
		tsn := 2 + 2*i
		mustPacket(t, r, 0, dataChunk(tsn, tsn-1, be, "ten octets"))
		want += fmt.Sprintf(" %d-%d", tsn, tsn)
		got := sackText(sackOf(r))
		must.That(t, got == want, "after TSN %d: %s", tsn, got)
	}
	for i := range 90 {
		mustPacket(t, r, 0, dataChunk(1+2*i, 2*i, be, "x"))
		r.Release(mustReceive(t, r))
		r.Release(mustReceive(t, r))
	}
	check.That(t, r.CumTSN() == 180 && r.Window() == 1000, "cumulative TSN %d, window %d", r.CumTSN(), r.Window())
}

func mustReceive(t *testing.T, r *Receiver) *Message {
	t.Helper()
	m, ok := r.Receive()
	must.That(t, ok, "no message")
	return m
}

func TestTheWindowIsNeverPulledBack(t *testing.T) {
	// req 5041-A-3: a_rwnd falls while nothing is read, and never by more than what came in since.
	r := newReceiver()
	arrived, edge, least := 0, 1000, 1000
	for i := range 40 {
		text := "twenty-five octets of it."
		if r.Window() < len(text) {
			break
		}
		mustPacket(t, r, 0, dataChunk(1+i, i, be, text))
		arrived += len(text)
		if i%3 == 0 { // the reader is slower than the peer
			r.Release(mustReceive(t, r))
		}
		w := int(sackOf(r).ARwnd())
		must.That(t, arrived+w >= edge, "after %d octets a_rwnd %d: the peer was told that it may send up to %d",
			arrived, w, edge)
		edge, least = arrived+w, min(least, w)
	}
	check.That(t, least <= 500, "a_rwnd stays at %d although the reader does not keep up", least)
}
