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
	for name, at := range map[string]uintptr{
		"squeezed":        unsafe.Offsetof(r.underPressure),
		"a_rwnd":          unsafe.Offsetof(r.advertisedWindow),
		"window to grow":  unsafe.Offsetof(r.readRate),
		"SACK that waits": unsafe.Offsetof(r.ackPolicy),
		"octets held":     reassemblyAt + unsafe.Offsetof(r.reassembly.heldOctets),
		"steps":           reassemblyAt + unsafe.Offsetof(r.reassembly.workSteps),
		"what is ready":   reassemblyAt + unsafe.Offsetof(r.reassembly.ready),
		"streams to serve": reassemblyAt + unsafe.Offsetof(r.reassembly.streams) +
			unsafe.Offsetof(r.reassembly.streams.due),
		"window": reassemblyAt + unsafe.Offsetof(r.reassembly.dataLimit),
	} {
		check.That(t, at < sendEnd, "%s at %d, asked for is up to %d", name, at, sendEnd)
	}
	check.That(t, sendEnd <= 4*64, "%d octets are asked for", sendEnd)
}

// What a short message looks at that comes in and is read lies in what is asked for then, the place
// that it is kept in last.
func TestWhatReceivingLooksAtIsAskedFor(t *testing.T) {
	var r Receiver
	storeAt, indexAt := reassemblyAt+unsafe.Offsetof(r.reassembly.store),
		reassemblyAt+unsafe.Offsetof(r.reassembly.byLastTSN)
	for name, at := range map[string]uintptr{
		"free messages": storeAt + unsafe.Offsetof(r.reassembly.store.freeMessages),
		"streams": reassemblyAt + unsafe.Offsetof(r.reassembly.streams) +
			unsafe.Offsetof(r.reassembly.streams.table),
		"last buffer": storeAt + unsafe.Offsetof(r.reassembly.store.lastRef),
		"memory":      storeAt + unsafe.Offsetof(r.reassembly.store.usedMemory),
	} {
		check.That(t, at < packetEnd, "%s at %d, asked for is up to %d", name, at, packetEnd)
	}
	for name, at := range map[string]uintptr{
		"room in use":          packetEnd + unsafe.Offsetof(r.reassembly.store.inline.pieceUsed),
		"message in use":       packetEnd + unsafe.Offsetof(r.reassembly.store.inline.messageUsed),
		"room":                 packetEnd + unsafe.Offsetof(r.reassembly.store.inline.room),
		"message":              packetEnd + unsafe.Offsetof(r.reassembly.store.inline.message),
		"messages in assembly": indexAt + unsafe.Offsetof(r.reassembly.byLastTSN.count),
	} {
		check.That(t, packetEnd <= at && at < nextEnd, "%s at %d, asked for is from %d to %d", name, at, packetEnd,
			nextEnd)
	}
	check.That(t, nextEnd <= 13*64, "%d octets are asked for", nextEnd)
}
