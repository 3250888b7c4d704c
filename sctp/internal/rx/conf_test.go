package rx

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

func TestUnorderedMessagesHaveNoSSN(t *testing.T) {
	// req 9260-3.3.1-3: whatever the field says, and whatever ordered message has the same number.
	r := newReceiver()
	mustPacket(t, r, 0, chunk(1, 0, ube, "u0"), chunk(2, 0, ube, "u0 again"), chunk(3, 65535, ube, "u65535"), chunk(4, 1, wire.FlagU|wire.FlagB, "u"), chunk(5, 1, wire.FlagU|wire.FlagE, "v"))
	mustPacket(t, r, 0, chunk(6, 0, be, "first"), chunk(7, 1, be, "second"))
	if got := received(r); got != "u0|u0 again|u65535|uv|first|second|" {
		t.Errorf("%q", got)
	}
}

func TestNothingIsRenegedWhileThereIsRoom(t *testing.T) {
	// req 9260-6.2-26
	r := newReceiver()
	want := "cum 0"
	for i := range 90 { // every second TSN, 900 of 1000 octets
		tsn := 2 + 2*i
		mustPacket(t, r, 0, chunk(tsn, tsn-1, be, "ten octets"))
		want += fmt.Sprintf(" %d-%d", tsn, tsn)
		if got := sackText(sack(r)); got != want {
			t.Fatalf("after TSN %d: %s", tsn, got)
		}
	}
	for i := range 90 {
		mustPacket(t, r, 0, chunk(1+2*i, 2*i, be, "x"))
		r.Release(mustReceive(t, r))
		r.Release(mustReceive(t, r))
	}
	if r.CumTSN() != 180 || r.Window() != 1000 {
		t.Errorf("cumulative TSN %d, window %d", r.CumTSN(), r.Window())
	}
}

func mustReceive(t *testing.T, r *Receiver) *Message {
	t.Helper()
	m, ok := r.Receive()
	if !ok {
		t.Fatal("no message")
	}
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
		mustPacket(t, r, 0, chunk(1+i, i, be, text))
		arrived += len(text)
		if i%3 == 0 { // the reader is slower than the peer
			r.Release(mustReceive(t, r))
		}
		w := int(sack(r).ARwnd())
		if arrived+w < edge {
			t.Fatalf("after %d octets a_rwnd %d: the peer was told that it may send up to %d", arrived, w, edge)
		}
		edge, least = arrived+w, min(least, w)
	}
	if least > 500 {
		t.Errorf("a_rwnd stays at %d although the reader does not keep up", least)
	}
}
