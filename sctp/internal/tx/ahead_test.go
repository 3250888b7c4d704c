package tx

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/check"
)

// What sending a message looks at lies in what is asked for then, and in few lines of memory.
func TestWhatSendingLooksAtIsAskedFor(t *testing.T) {
	var s Sender
	from, to := sendFetched, unsafe.Offsetof(s.ledger)+unsafe.Offsetof(s.ledger.octets)
	for name, at := range map[string]uintptr{
		"a SACK to go on with": unsafe.Offsetof(s.later) + unsafe.Offsetof(s.later.on),
		"Config":               unsafe.Offsetof(s.cfg),
		"paths":                unsafe.Offsetof(s.paths),
		"slot":                 unsafe.Offsetof(s.slot),
		"timers":               unsafe.Offsetof(s.withheld),
		"probe":                unsafe.Offsetof(s.tail),
		"queue":                unsafe.Offsetof(s.queue),
		"records":              unsafe.Offsetof(s.ledger) + unsafe.Offsetof(s.ledger.recs),
		"window":               unsafe.Offsetof(s.ledger) + unsafe.Offsetof(s.ledger.rwnd),
	} {
		check.That(t, from <= at && at < to, "%s at %d, asked for is from %d to %d", name, at, from, to)
	}
	check.That(t, to-from <= 12*64, "%d octets are asked for", to-from)
	var p Path
	for name, at := range map[string]uintptr{
		"RTO": unsafe.Offsetof(p.est) + unsafe.Offsetof(p.est.rto), "address": unsafe.Offsetof(p.Remote), "state": unsafe.Offsetof(p.State), "MTU": unsafe.Offsetof(p.mtu),
		"controller": unsafe.Offsetof(p.cc), "flight size": unsafe.Offsetof(p.flight), "T3": unsafe.Offsetof(p.t3), "doubt": unsafe.Offsetof(p.doubt),
	} {
		check.That(t, PathToSend <= at, "%s of a path at %d, asked for is from %d", name, at, PathToSend)
	}
	check.That(t, unsafe.Sizeof(p)-PathToSend <= 8*64, "%d octets of a path are asked for", unsafe.Sizeof(p)-PathToSend)
}
