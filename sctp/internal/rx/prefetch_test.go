package rx

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
)

// What a message that is sent looks at, with the SACK that goes along, lies in what is asked for
// then, and in few lines of memory.
func TestWhatSendingLooksAtIsAskedFor(t *testing.T) {
	var r Receiver
	from, to := unsafe.Offsetof(r.tracker), unsafe.Offsetof(r.reassembly)+unsafe.Offsetof(r.reassembly.maxMessage)
	for name, at := range map[string]uintptr{
		"squeezed":         unsafe.Offsetof(r.underPressure),
		"a_rwnd":           unsafe.Offsetof(r.advertisedWindow),
		"window to grow":   unsafe.Offsetof(r.readRate),
		"SACK that waits":  unsafe.Offsetof(r.ackPolicy),
		"octets held":      unsafe.Offsetof(r.reassembly) + unsafe.Offsetof(r.reassembly.heldOctets),
		"steps":            unsafe.Offsetof(r.reassembly) + unsafe.Offsetof(r.reassembly.workSteps),
		"what is ready":    unsafe.Offsetof(r.reassembly) + unsafe.Offsetof(r.reassembly.ready),
		"streams to serve": unsafe.Offsetof(r.reassembly) + unsafe.Offsetof(r.reassembly.dueStreams),
		"window":           unsafe.Offsetof(r.reassembly) + unsafe.Offsetof(r.reassembly.dataLimit),
	} {
		check.That(t, from <= at && at < to, "%s at %d, asked for is from %d to %d", name, at, from, to)
	}
	check.That(t, to-from <= 4*64, "%d octets are asked for", to-from)
}

// What a short message looks at that comes in and is read lies in what is asked for then, the place
// that it is kept in last.
func TestWhatReceivingLooksAtIsAskedFor(t *testing.T) {
	var r Receiver
	g, s := unsafe.Offsetof(r.reassembly), unsafe.Offsetof(r.reassembly)+unsafe.Offsetof(r.reassembly.store)
	for name, at := range map[string]uintptr{
		"free messages":  g + unsafe.Offsetof(r.reassembly.freeMessages),
		"streams":        g + unsafe.Offsetof(r.reassembly.streams),
		"message in use": g + unsafe.Offsetof(r.reassembly.inlineUsed),
		"last buffer":    s + unsafe.Offsetof(r.reassembly.store.lastRef),
		"memory":         s + unsafe.Offsetof(r.reassembly.store.usedMemory),
		"room in use":    s + unsafe.Offsetof(r.reassembly.store.inlineUsed),
	} {
		check.That(t, at < inlineOffset, "%s at %d, asked for is up to %d", name, at, inlineOffset)
	}
	to := g + unsafe.Offsetof(r.reassembly.byLastTSN) + unsafe.Offsetof(r.reassembly.byLastTSN.lastTSNs)
	for name, at := range map[string]uintptr{
		"room":    s + unsafe.Offsetof(r.reassembly.store.inlineRoom),
		"message": g + unsafe.Offsetof(r.reassembly.inlineMessage), "messages in assembly": g +
			unsafe.Offsetof(r.reassembly.byLastTSN) + unsafe.Offsetof(r.reassembly.byLastTSN.count),
	} {
		check.That(t, inlineOffset < at && at < to, "%s at %d, asked for is from %d to %d", name, at, inlineOffset, to)
	}
	check.That(t, to-unsafe.Offsetof(r.tracker) <= 13*64, "%d octets are asked for", to-unsafe.Offsetof(r.tracker))
}
