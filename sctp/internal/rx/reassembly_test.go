package rx

import (
	"errors"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestDeliveryIsInOrderAndWhole(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	for _, tt := range []struct {
		name   string
		chunks []wire.Data
		want   string
	}{
		// req 9260-6.6-1
		{"in SSN order", []wire.Data{dataChunk(1, 0, be, "a"), dataChunk(3, 2, be, "c"), dataChunk(4, 3, be, "d"), dataChunk(2, 1, be, "b")}, "a|b|c|d|"},
		{"early ones wait", []wire.Data{dataChunk(2, 1, be, "b")}, ""},
		// req 9260-3.3.1-4
		{"unordered at once", []wire.Data{dataChunk(2, 9, ube, "u"), dataChunk(1, 0, be, "a")}, "u|a|"},
		// req 9260-1.5.2-1, 9260-1.6-4
		{"streams do not wait for each other", []wire.Data{onStream(1, 2, 1, be, "x"), onStream(2, 3, 0, be, "y")}, "y|"},
		// req 9260-6.9-6, 9260-6-10
		{"fragments in order", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(2, 0, m, "b"), dataChunk(3, 0, e, "c")}, "abc|"},
		{"fragments backwards", []wire.Data{dataChunk(3, 0, e, "c"), dataChunk(2, 0, m, "b"), dataChunk(1, 0, b, "a")}, "abc|"},
		{"the middle last", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(3, 0, e, "c"), dataChunk(2, 0, m, "b")}, "abc|"},
		{"two holes", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(5, 0, e, "e"), dataChunk(3, 0, m, "c"), dataChunk(4, 0, m, "d"), dataChunk(2, 0, m, "b")}, "abcde|"},
		{"the next message has begun before this one ends", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(3, 1, b, "c"), dataChunk(2, 0, e, "b"), dataChunk(4, 1, e, "d")}, "ab|cd|"},
		{"unordered fragments beside ordered ones", []wire.Data{dataChunk(3, 0, b|wire.FlagU, "u"), dataChunk(1, 0, b, "a"), dataChunk(4, 0, e|wire.FlagU, "v"), dataChunk(2, 0, e, "b")}, "uv|ab|"},
		{"a fragmented message waits for its SSN", []wire.Data{dataChunk(2, 1, b, "x"), dataChunk(3, 1, e, "y"), dataChunk(1, 0, be, "a")}, "a|xy|"},
	} {
		r := newReceiver()
		mustPacket(t, r, 0, tt.chunks...)
		check.Equal(t, tt.name, drainText(r), tt.want)
	}
}

func TestHostileFragments(t *testing.T) {
	const b, m, e = wire.FlagB, uint8(0), wire.FlagE
	for _, tt := range []struct {
		name   string
		chunks []wire.Data
	}{
		{"begin after begin", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(2, 1, b, "b")}},
		{"whole message inside another", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(2, 1, be, "b")}},
		{"whole message before a middle fragment", []wire.Data{dataChunk(2, 0, m, "b"), dataChunk(1, 0, be, "a")}},
		{"end before a middle fragment", []wire.Data{dataChunk(4, 0, m, "b"), dataChunk(3, 0, e, "a")}},
		{"no end before a beginning", []wire.Data{dataChunk(4, 0, b, "b"), dataChunk(3, 0, m, "a")}},
		{"middle fragment out of nothing", []wire.Data{dataChunk(1, 0, m, "a")}},
		{"end fragment after a whole message", []wire.Data{dataChunk(1, 0, be, "a"), dataChunk(2, 0, e, "b")}},
		{"middle fragment after an end", []wire.Data{dataChunk(3, 0, e, "a"), dataChunk(4, 0, m, "b")}},
		{"the stream changes inside a message", []wire.Data{dataChunk(1, 0, b, "a"), onStream(1, 2, 0, e, "b")}},
		{"the SSN changes inside a message", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(2, 1, e, "b")}},
		{"the U bit changes inside a message", []wire.Data{dataChunk(2, 0, e|wire.FlagU, "b"), dataChunk(1, 0, b, "a")}},
		{"two messages with one SSN", []wire.Data{dataChunk(2, 5, be, "a"), dataChunk(3, 5, be, "b")}},
		{"two fragmented messages with one SSN", []wire.Data{dataChunk(2, 5, be, "a"), dataChunk(4, 5, b, "b"), dataChunk(5, 5, e, "c")}},
		{"a hole in a message that the rest goes around", []wire.Data{dataChunk(1, 0, b, "a"), dataChunk(3, 0, e, "b"), dataChunk(2, 1, be, "x")}},
		{"no user data", []wire.Data{dataChunk(1, 0, be, "")}},
		{"a stream that does not exist", []wire.Data{onStream(16, 1, 0, be, "x")}},
	} {
		receivers := map[string]*Receiver{tt.name: newReceiver()}
		if strings.HasSuffix(tt.name, "with one SSN") {
			receivers[tt.name+", of a peer that may give messages up"] = newAbandoned()
		}
		for name, r := range receivers {
			_, err := queueAll(r, tt.chunks...)
			var v *ViolationError
			check.That(t, errors.As(err, &v), "%s: %v", name, err)
			r.Close()
			check.That(t, r.Buffered() == 0 && r.reassembly.store.memorySize() == 0,
				"%s: Close leaves %d octets, %d of memory", name, r.Buffered(), r.reassembly.store.memorySize())
		}
	}
}

// What a Placer has taken is no end of the message that was left open before it.
func TestBeginningWithoutItsMessage(t *testing.T) {
	r := newReceiver()
	mustPacket(t, r, 0, dataChunk(1, 0, wire.FlagB, "a"))
	d := dataChunk(2, 0, be|wire.FlagU, "x")
	must.Equal(t, "verdict", r.Admit(d), New)
	r.Placed(d)
	var v *ViolationError
	err := r.PacketDone(0)
	check.That(t, errors.As(err, &v) && v.TSN == 1, "%v", err)
}

func TestMessagesThatCannotEverFit(t *testing.T) {
	big := string(make([]byte, 400))
	for _, tt := range []struct {
		name   string
		chunks []wire.Data
	}{
		{"longer than MaxMessage", []wire.Data{dataChunk(1, 0, wire.FlagB, big), dataChunk(2, 0, 0, big), dataChunk(3, 0, wire.FlagE, big)}},
		{"all of the buffer and no end", []wire.Data{dataChunk(1, 0, wire.FlagB, big), dataChunk(2, 0, 0, big), dataChunk(3, 0, 0, big[:200])}},
		{"one chunk longer than MaxMessage", []wire.Data{dataChunk(1, 0, be, big+big+big)}},
	} {
		_, err := feedPacket(newReceiver(), 0, tt.chunks...)
		check.That(t, errors.Is(err, ErrMessageTooBig), "%s: %v", tt.name, err)
	}
}

func TestUnorderedMessagesHaveNoSSN(t *testing.T) {
	// req 9260-3.3.1-3: whatever the field says, and whatever ordered message has the same number.
	r := newReceiver()
	mustPacket(t, r, 0, dataChunk(1, 0, ube, "u0"), dataChunk(2, 0, ube, "u0 again"),
		dataChunk(3, 65535, ube, "u65535"),
		dataChunk(4, 1, wire.FlagU|wire.FlagB, "u"), dataChunk(5, 9, wire.FlagU|wire.FlagE, "v"))
	mustPacket(t, r, 0, dataChunk(6, 0, be, "first"), dataChunk(7, 1, be, "second"))
	check.Equal(t, "received", drainText(r), "u0|u0 again|u65535|uv|first|second|")
}

// Unordered messages have no SSN: one that is placed at arrival is no step of its stream.
func TestPlacedUnorderedMessageIsNoStepOfItsStream(t *testing.T) {
	// req 9260-3.3.1-4, 9260-6.5-5
	r := newReceiver()
	d := dataChunk(1, 0, ube, "placed")
	must.Equal(t, "verdict", r.Admit(d), New)
	r.Placed(d)
	must.OK(t, r.PacketDone(0))
	mustPacket(t, r, 0, dataChunk(2, 0, be, "first"), dataChunk(3, 1, be, "second"))
	check.Equal(t, "received", drainText(r), "first|second|")
}

// Messages that wait on both sides of the wrap of SSNs are delivered in order, however they arrive.
func TestMessagesWaitAcrossTheWrapOfSSNs(t *testing.T) {
	// req 9260-1.5.2-1, 9260-1.6-4
	for _, arrival := range [][]int{{3, 1, 2, 0}, {2, 3, 1, 0}, {3, 2, 1, 0}, {2, 1, 3, 0}} {
		r := newReceiver()
		tsn := 1
		for ssn := range 65534 {
			d := dataChunk(tsn, ssn, be, "x")
			must.Equal(t, "verdict", r.Admit(d), New)
			r.Placed(d)
			tsn++
		}
		for _, i := range arrival {
			mustPacket(t, r, 0, dataChunk(tsn+i, (65534+i)%65536, be, string(rune('a'+i))))
		}
		got := drainText(r)
		check.That(t, got == "a|b|c|d|", "arrival %v: received %q", arrival, got)
	}
}
