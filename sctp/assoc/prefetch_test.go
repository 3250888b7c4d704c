package assoc

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
)

// What sending a message looks at, with the SACK that goes along, lies in what is asked for then,
// and in few lines of memory; the parts have tests of their own.
func TestWhatSendingLooksAtIsAskedFor(t *testing.T) {
	var a Assoc
	for name, at := range map[string]uintptr{
		"ports and tags": unsafe.Offsetof(a.id),
		"state":          unsafe.Offsetof(a.lifecycle),
		"paths":          unsafe.Offsetof(a.pathList),
		"halves":         unsafe.Offsetof(a.halves),
		"sending":        unsafe.Offsetof(a.send),
		"queues":         unsafe.Offsetof(a.outQueues),
		"way back":       unsafe.Offsetof(a.sacks),
		"ECN":            unsafe.Offsetof(a.ecn),
		"SACKs sent":     unsafe.Offsetof(a.stats) + unsafe.Offsetof(a.stats.SacksOut),
	} {
		check.That(t, at < sendEnd, "%s at %d, asked for are %d octets", name, at, sendEnd)
	}
	check.That(t, sendEnd <= 7*64, "%d octets are asked for", sendEnd)

	for name, at := range map[string]uintptr{
		"mark":         unsafe.Offsetof(a.firstPath.mark),
		"reach":        unsafe.Offsetof(a.firstPath.reach),
		"HEARTBEAT":    unsafe.Offsetof(a.firstPath.heartbeat) + unsafe.Offsetof(a.firstPath.heartbeat.nextAt),
		"probe of MTU": unsafe.Offsetof(a.firstPath.mtuSearch),
	} {
		at += pathOffset
		check.That(t, pathSendOffset <= at && at < pathEnd, "%s at %d, asked for is from %d to %d", name, at,
			pathSendOffset, pathEnd)
	}
	check.That(t, pathEnd-pathSendOffset <= 9*64, "%d octets of the path are asked for", pathEnd-pathSendOffset)
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
