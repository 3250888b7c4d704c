package rx

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

func TestDelivery(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	for _, tt := range []struct {
		name   string
		chunks []wire.Data
		want   string
	}{
		// req 9260-6.6-1
		{"in SSN order", []wire.Data{chunk(1, 0, be, "a"), chunk(3, 2, be, "c"), chunk(4, 3, be, "d"), chunk(2, 1, be, "b")}, "a|b|c|d|"},
		{"early ones wait", []wire.Data{chunk(2, 1, be, "b")}, ""},
		// req 9260-3.3.1-4
		{"unordered at once", []wire.Data{chunk(2, 9, ube, "u"), chunk(1, 0, be, "a")}, "u|a|"},
		// req 9260-1.5.2-1
		{"streams do not wait for each other", []wire.Data{onStream(1, 2, 1, be, "x"), onStream(2, 3, 0, be, "y")}, "y|"},
		// req 9260-6.9-6, 9260-6-10
		{"fragments in order", []wire.Data{chunk(1, 0, b, "a"), chunk(2, 0, m, "b"), chunk(3, 0, e, "c")}, "abc|"},
		{"fragments backwards", []wire.Data{chunk(3, 0, e, "c"), chunk(2, 0, m, "b"), chunk(1, 0, b, "a")}, "abc|"},
		{"the middle last", []wire.Data{chunk(1, 0, b, "a"), chunk(3, 0, e, "c"), chunk(2, 0, m, "b")}, "abc|"},
		{"two holes", []wire.Data{chunk(1, 0, b, "a"), chunk(5, 0, e, "e"), chunk(3, 0, m, "c"), chunk(4, 0, m, "d"), chunk(2, 0, m, "b")}, "abcde|"},
		{"unordered fragments beside ordered ones", []wire.Data{chunk(3, 0, b|wire.FlagU, "u"), chunk(1, 0, b, "a"), chunk(4, 0, e|wire.FlagU, "v"), chunk(2, 0, e, "b")}, "uv|ab|"},
		{"a fragmented message waits for its SSN", []wire.Data{chunk(2, 1, b, "x"), chunk(3, 1, e, "y"), chunk(1, 0, be, "a")}, "a|xy|"},
	} {
		r := newReceiver()
		mustPacket(t, r, 0, tt.chunks...)
		if got := received(r); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestAMessageMayWaitForItsSSNBelowTheCumulativeTSN(t *testing.T) {
	r := newReceiver()
	mustPacket(t, r, 0, chunk(1, 1, be, "b"), chunk(2, 2, be, "c"))
	mustPacket(t, r, 0, onStream(1, 4, 5, be, "x"))
	mustPacket(t, r, 0, chunk(3, 0, be, "a"))
	if got := received(r); got != "a|b|c|" {
		t.Errorf("%q", got)
	}
	r.Close()
	if r.Buffered() != 0 {
		t.Errorf("Close leaves %d octets", r.Buffered())
	}
}

// A peer that sends anything at all must not break the receiver, nor make it hold more than the
// window and one chunk.
func TestRandomDataIsBounded(t *testing.T) {
	x := uint32(7)
	rnd := func(n int) int {
		x = x*1664525 + 1013904223
		return int(x>>8) % n
	}
	body := string(make([]byte, 300))
	for run := range 200 {
		r := newReceiver()
		if run%2 == 1 {
			r = newLimited(0)
		}
		for range 100 {
			tsn := int(r.CumTSN()) + rnd(12) - 2
			d := onStream(rnd(3), tsn, rnd(4), uint8(rnd(16)), body[:1+rnd(300)])
			a := r.Admit(d)
			if a == New && rnd(8) == 0 && d.B() && d.E() {
				r.Placed(d)
			} else if a == New && r.Queue(d, nil) != nil || r.PacketDone(0) != nil {
				break
			}
			if rnd(3) == 0 {
				if m, ok := r.Receive(); ok {
					r.Release(m)
				}
			}
			if r.Buffered() > 1000+300 {
				t.Fatalf("run %d: %d octets held", run, r.Buffered())
			}
			r.AppendSack(nil, 16+rnd(40))
		}
		r.Close()
		if r.Buffered() != 0 {
			t.Fatalf("run %d: Close leaves %d octets", run, r.Buffered())
		}
	}
}

func TestSSNWraps(t *testing.T) {
	r := newReceiver()
	for i := range 65536 {
		mustPacket(t, r, 0, chunk(1+i, i, be, "x"))
		m, ok := r.Receive()
		if !ok {
			t.Fatal(i)
		}
		r.Release(m)
	}
	mustPacket(t, r, 0, chunk(65538, 1, be, "b"), chunk(65537, 0, be, "a"))
	if got := received(r); got != "a|b|" {
		t.Error(got)
	}
}

func TestHostileFragments(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	for _, tt := range []struct {
		name   string
		chunks []wire.Data
	}{
		{"begin after begin", []wire.Data{chunk(1, 0, b, "a"), chunk(2, 1, b, "b")}},
		{"whole message inside another", []wire.Data{chunk(1, 0, b, "a"), chunk(2, 1, be, "b")}},
		{"whole message before a middle fragment", []wire.Data{chunk(2, 0, m, "b"), chunk(1, 0, be, "a")}},
		{"end before a middle fragment", []wire.Data{chunk(4, 0, m, "b"), chunk(3, 0, e, "a")}},
		{"no end before a beginning", []wire.Data{chunk(4, 0, b, "b"), chunk(3, 0, m, "a")}},
		{"middle fragment out of nothing", []wire.Data{chunk(1, 0, m, "a")}},
		{"end fragment after a whole message", []wire.Data{chunk(1, 0, be, "a"), chunk(2, 0, e, "b")}},
		{"the stream changes inside a message", []wire.Data{chunk(1, 0, b, "a"), onStream(1, 2, 0, e, "b")}},
		{"the SSN changes inside a message", []wire.Data{chunk(1, 0, b, "a"), chunk(2, 1, e, "b")}},
		{"the U bit changes inside a message", []wire.Data{chunk(2, 0, e|wire.FlagU, "b"), chunk(1, 0, b, "a")}},
		{"two messages with one SSN", []wire.Data{chunk(2, 5, be, "a"), chunk(3, 5, be, "b")}},
		{"two fragmented messages with one SSN", []wire.Data{chunk(2, 5, be, "a"), chunk(4, 5, b, "b"), chunk(5, 5, e, "c")}},
		{"a hole in a message that the rest goes around", []wire.Data{chunk(1, 0, b, "a"), chunk(3, 0, e, "b"), chunk(2, 1, be, "x")}},
		{"no user data", []wire.Data{chunk(1, 0, be, "")}},
		{"a stream that does not exist", []wire.Data{onStream(16, 1, 0, be, "x")}},
	} {
		r := newReceiver()
		_, err := packet(r, 0, tt.chunks...)
		var v *ViolationError
		if !errors.As(err, &v) {
			t.Errorf("%s: %v", tt.name, err)
		}
		r.Close()
		if r.Buffered() != 0 || r.reasm.store.mem != 0 {
			t.Errorf("%s: Close leaves %d octets, %d of memory", tt.name, r.Buffered(), r.reasm.store.mem)
		}
	}
}

func TestMessagesThatCannotEverFit(t *testing.T) {
	big := string(make([]byte, 400))
	for _, tt := range []struct {
		name   string
		chunks []wire.Data
	}{
		{"longer than MaxMessage", []wire.Data{chunk(1, 0, wire.FlagB, big), chunk(2, 0, 0, big), chunk(3, 0, wire.FlagE, big)}},
		{"all of the buffer and no end", []wire.Data{chunk(1, 0, wire.FlagB, big), chunk(2, 0, 0, big), chunk(3, 0, 0, big[:200])}},
		{"one chunk longer than MaxMessage", []wire.Data{chunk(1, 0, be, big+big+big)}},
	} {
		if _, err := packet(newReceiver(), 0, tt.chunks...); !errors.Is(err, ErrMessageTooBig) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
