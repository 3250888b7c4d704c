package rx

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/check"
)

// What a message that is sent looks at, with the SACK that goes along, lies in what is asked for then, and in few lines of memory.
func TestWhatSendingLooksAtIsAskedFor(t *testing.T) {
	var r Receiver
	from, to := unsafe.Offsetof(r.track), unsafe.Offsetof(r.reasm)+unsafe.Offsetof(r.reasm.maxMessage)
	for name, at := range map[string]uintptr{
		"squeezed":         unsafe.Offsetof(r.squeezed),
		"a_rwnd":           unsafe.Offsetof(r.credit),
		"window to grow":   unsafe.Offsetof(r.reading),
		"SACK that waits":  unsafe.Offsetof(r.ack),
		"octets held":      unsafe.Offsetof(r.reasm) + unsafe.Offsetof(r.reasm.used),
		"steps":            unsafe.Offsetof(r.reasm) + unsafe.Offsetof(r.reasm.steps),
		"what is ready":    unsafe.Offsetof(r.reasm) + unsafe.Offsetof(r.reasm.ready),
		"streams to serve": unsafe.Offsetof(r.reasm) + unsafe.Offsetof(r.reasm.due),
		"window":           unsafe.Offsetof(r.reasm) + unsafe.Offsetof(r.reasm.limit),
	} {
		check.That(t, from <= at && at < to, "%s at %d, asked for is from %d to %d", name, at, from, to)
	}
	check.That(t, to-from <= 4*64, "%d octets are asked for", to-from)
}

// What a short message looks at that comes in and is read lies in what is asked for then, the place that it is kept in last.
func TestWhatReceivingLooksAtIsAskedFor(t *testing.T) {
	var r Receiver
	g, s := unsafe.Offsetof(r.reasm), unsafe.Offsetof(r.reasm)+unsafe.Offsetof(r.reasm.store)
	for name, at := range map[string]uintptr{
		"free messages": g + unsafe.Offsetof(r.reasm.free), "streams": g + unsafe.Offsetof(r.reasm.streams), "message in use": g + unsafe.Offsetof(r.reasm.ownUsed),
		"last buffer": s + unsafe.Offsetof(r.reasm.store.last), "memory": s + unsafe.Offsetof(r.reasm.store.mem), "room in use": s + unsafe.Offsetof(r.reasm.store.ownUsed),
	} {
		check.That(t, at < ownAt, "%s at %d, asked for is up to %d", name, at, ownAt)
	}
	to := g + unsafe.Offsetof(r.reasm.held) + unsafe.Offsetof(r.reasm.held.ends)
	for name, at := range map[string]uintptr{
		"room": s + unsafe.Offsetof(r.reasm.store.room), "message": g + unsafe.Offsetof(r.reasm.own), "messages in assembly": g + unsafe.Offsetof(r.reasm.held) + unsafe.Offsetof(r.reasm.held.n),
	} {
		check.That(t, ownAt < at && at < to, "%s at %d, asked for is from %d to %d", name, at, ownAt, to)
	}
	check.That(t, to-unsafe.Offsetof(r.track) <= 13*64, "%d octets are asked for", to-unsafe.Offsetof(r.track))
}
