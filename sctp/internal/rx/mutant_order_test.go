package rx

import "testing"

// Unordered messages have no SSN: one that is placed at arrival is no step of its stream.
func TestPlacedUnorderedMessageIsNoStepOfItsStream(t *testing.T) {
	// req 9260-3.3.1-4, 9260-6.5-5
	r := newReceiver()
	d := chunk(1, 0, ube, "placed")
	if r.Admit(d) != New {
		t.Fatal("not new")
	}
	r.Placed(d)
	if err := r.PacketDone(0); err != nil {
		t.Fatal(err)
	}
	mustPacket(t, r, 0, chunk(2, 0, be, "first"), chunk(3, 1, be, "second"))
	if got := received(r); got != "first|second|" {
		t.Errorf("received %q", got)
	}
}

// The I bit counts where DATA is placed at arrival too.
func TestSackOfPlacedDataIsNotDelayedAgainstTheIBit(t *testing.T) {
	// req 9260-6.2-16
	for _, row := range []struct {
		name  string
		flags uint8
		due   bool
	}{{"without I bit", ube, false}, {"with I bit", ube | 0x08, true}} {
		r := newReceiver()
		mustPacket(t, r, 0, chunk(1, 0, ube, "the first DATA is acknowledged at once"))
		sack(r)
		d := chunk(2, 0, row.flags, "x")
		if r.Admit(d) != New {
			t.Fatal("not new")
		}
		r.Placed(d)
		if err := r.PacketDone(0); err != nil {
			t.Fatal(err)
		}
		if r.SackDue(0) != row.due {
			t.Errorf("%s: SACK due %v", row.name, !row.due)
		}
	}
}

// Messages that wait on both sides of the wrap of SSNs are delivered in order, however they arrive.
func TestMessagesWaitAcrossTheWrapOfSSNs(t *testing.T) {
	// req 9260-1.5.2-1
	for _, arrival := range [][]int{{3, 1, 2, 0}, {2, 3, 1, 0}, {3, 2, 1, 0}, {2, 1, 3, 0}} {
		r := newReceiver()
		tsn := 1
		for ssn := range 65534 {
			d := chunk(tsn, ssn, be, "x")
			if r.Admit(d) != New {
				t.Fatal("not new")
			}
			r.Placed(d)
			tsn++
		}
		for _, i := range arrival {
			mustPacket(t, r, 0, chunk(tsn+i, (65534+i)%65536, be, string(rune('a'+i))))
		}
		if got := received(r); got != "a|b|c|d|" {
			t.Errorf("arrival %v: received %q", arrival, got)
		}
	}
}
