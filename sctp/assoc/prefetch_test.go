package assoc

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// What sending a message looks at, with the SACK that goes along, lies in what is asked for then,
// and in few lines of memory; the parts have tests of their own.
func TestWhatSendingLooksAtIsAskedFor(t *testing.T) {
	var a Assoc
	end := unsafe.Offsetof(a.stats) + unsafe.Offsetof(a.stats.PacketsIn)
	for name, at := range map[string]uintptr{
		"paths":      unsafe.Offsetof(a.onePath),
		"state":      unsafe.Offsetof(a.stateData),
		"steps":      unsafe.Offsetof(a.workSteps),
		"fault":      unsafe.Offsetof(a.internalErr),
		"events":     unsafe.Offsetof(a.events),
		"chunks":     unsafe.Offsetof(a.control),
		"packets":    unsafe.Offsetof(a.outbox),
		"way back":   unsafe.Offsetof(a.sackLocal),
		"SACKs sent": unsafe.Offsetof(a.stats) + unsafe.Offsetof(a.stats.SacksOut),
	} {
		check.That(t, at < end, "%s at %d, asked for are %d octets", name, at, end)
	}
	check.That(t, end <= 7*64, "%d octets are asked for", end)

	from := unsafe.Offsetof(a.firstPath) + unsafe.Offsetof(a.firstPath.Path) + tx.PathSendOffset
	for name, at := range map[string]uintptr{
		"mark":         unsafe.Offsetof(a.firstPath.mark),
		"HEARTBEAT":    unsafe.Offsetof(a.firstPath.heartbeat) + unsafe.Offsetof(a.firstPath.heartbeat.nextAt),
		"probe of MTU": unsafe.Offsetof(a.firstPath.mtuSearch),
	} {
		at += unsafe.Offsetof(a.firstPath)
		check.That(t, from <= at && at < pathPrefetchEnd, "%s at %d, asked for is from %d to %d", name, at, from,
			pathPrefetchEnd)
	}
	check.That(t, pathPrefetchEnd-from <= 9*64, "%d octets of the path are asked for", pathPrefetchEnd-from)
}

// What sends and receives never lies on two pages.
func TestHalvesLieOnOnePage(t *testing.T) {
	size := unsafe.Sizeof(dataState{}) + objectHeaderSize
	check.That(t, pageSize%size == 0, "%d octets, with what the runtime puts before them, do not fill a page "+
		"without a rest", size)
	for range 100 {
		h := new(dataState)
		at := uintptr(unsafe.Pointer(h))
		check.That(t, at/pageSize == (at+unsafe.Sizeof(*h)-1)/pageSize, "from %#x on they lie on two pages", at)
	}
}
