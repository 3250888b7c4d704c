package tx

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
)

// What sending a message looks at lies in what is asked for then, and in few lines of memory.
func TestWhatSendingLooksAtIsAskedFor(t *testing.T) {
	var s Sender
	to := unsafe.Offsetof(s.outstanding) + unsafe.Offsetof(s.outstanding.memoryOctets)
	for name, at := range map[string]uintptr{
		"a SACK to go on with": unsafe.Offsetof(s.sack) + unsafe.Offsetof(s.sack.active),
		"Config":               unsafe.Offsetof(s.cfg),
		"paths":                unsafe.Offsetof(s.paths),
		"slot":                 unsafe.Offsetof(s.queue.current),
		"timers":               unsafe.Offsetof(s.withheld),
		"probe":                unsafe.Offsetof(s.tailProbe),
		"queue":                unsafe.Offsetof(s.queue.waiting),
		"records":              unsafe.Offsetof(s.outstanding) + unsafe.Offsetof(s.outstanding.chunkRing),
		"window":               unsafe.Offsetof(s.outstanding) + unsafe.Offsetof(s.outstanding.rwnd),
	} {
		check.That(t, at < to, "%s at %d, asked for is up to %d", name, at, to)
	}
	check.That(t, to <= 14*64, "%d octets are asked for", to)
	var p Path
	for name, at := range map[string]uintptr{
		"RTO": unsafe.Offsetof(p.rttEst) + unsafe.Offsetof(p.rttEst.rto), "address": unsafe.Offsetof(p.Remote),
		"state": unsafe.Offsetof(p.State), "MTU": unsafe.Offsetof(p.mtu),
		"controller": unsafe.Offsetof(p.cc), "flight size": unsafe.Offsetof(p.flight),
		"T3": unsafe.Offsetof(p.timers), "doubt": unsafe.Offsetof(p.suspicion),
	} {
		check.That(t, PathSendOffset <= at, "%s of a path at %d, asked for is from %d", name, at, PathSendOffset)
	}
	check.That(t, unsafe.Sizeof(p)-PathSendOffset <= 8*64, "%d octets of a path are asked for",
		unsafe.Sizeof(p)-PathSendOffset)
}
