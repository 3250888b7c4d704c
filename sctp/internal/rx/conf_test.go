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
