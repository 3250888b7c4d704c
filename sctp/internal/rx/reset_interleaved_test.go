package rx

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A reset of streams makes both MIDs begin with 0 again.
func TestResetOfMIDs(t *testing.T) {
	for _, list := range [][]wire.StreamID{nil, {1, 3, 15}} {
		r := interleaved()
		must.OK(t, feedParts(r, part(1, 1, 0, 0, be, "a"), part(2, 1, 0, 0, ube, "u"), part(3, 2, 0, 0, be, "b"),
			part(4, 3, 0, 0, be, "c")))
		must.OK(t, r.ResetStreams(list, 4))
		// req 8260-2.3.2-1
		must.OK(t, feedParts(r, part(5, 1, 0, 0, be, "d"), part(6, 1, 0, 0, bFlag|uFlag, "v"), part(7, 1, 1, 0, be, "e"),
			part(8, 1, 0, 1, eFlag|uFlag, "w"), part(9, 3, 0, 0, be, "f")))
		check.Equal(t, "messages", mustDrain(t, r), "a|u|b|c|d|e|vw|f|")
		mid := uint32(1)
		if list == nil {
			mid = 0
		}
		must.OK(t, feedParts(r, part(10, 2, mid, 0, be, "g")))
		check.Equal(t, "messages", mustDrain(t, r), "g|")
	}
}

// A message that still waits, or lacks a fragment, when its stream is reset is a mistake of the
// peer.
func TestResetsThatCannotBeWithIData(t *testing.T) {
	for name, chunk := range map[string]wire.IData{
		"a MID is missing": part(1, 1, 1, 0, be, "a"), "a fragment is": part(1, 1, 0, 0, bFlag, "a"),
		"a fragment of an unordered message is": part(1, 1, 0, 0, bFlag|uFlag, "a"),
	} {
		for _, list := range [][]wire.StreamID{nil, {1}} {
			r := interleaved()
			must.OK(t, feedParts(r, chunk))
			var v *ViolationError
			check.That(t, errors.As(r.ResetStreams(list, 1), &v), "%s, and it is no violation", name)
		}
		r := interleaved()
		must.OK(t, feedParts(r, chunk))
		must.OK(t, r.ResetStreams(streamList(2), 1)) // which has nothing to do with it
	}
}

// I-DATA is deferred and frozen as DATA is.
func TestIDataIsSetAside(t *testing.T) {
	r := interleaved()
	r.Defer(streamList(1), 1)
	check.Equal(t, "admission", r.AdmitInterleaved(part(2, 1, 0, 0, be, "new")), Dropped)
	must.OK(t, feedParts(r, part(1, 1, 0, 0, be, "old")))
	must.OK(t, r.ResetStreams(streamList(1), 1))
	list := r.TakeDeferred()
	must.That(t, len(list) == 1, "%d chunks were deferred", len(list))
	must.OK(t, feedParts(r, must.Get(wire.AsIData(list[0]))(t)))
	check.Equal(t, "messages", mustDrain(t, r), "old|new|")

	r.Freeze()
	must.OK(t, feedParts(r, part(3, 1, 1, 0, bFlag, "x"), part(5, 1, 0, 0, be, "after"), part(4, 1, 1, 1, eFlag, "y")))
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 5")
	check.Equal(t, "messages", mustDrain(t, r), "")
	must.OK(t, r.RestartTSN(5))
	check.Equal(t, "messages", mustDrain(t, r), "xy|after|")
	must.OK(t, feedParts(r, part(6, 1, 1, 0, be, "z")))
	check.Equal(t, "messages", mustDrain(t, r), "z|")
}

// What is missing among frozen I-DATA is given up when that is thawed.
func TestMissingIDataIsGivenUpWhileFrozen(t *testing.T) {
	r := interleavedWith(Config{MayAbandon: true})
	must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, "x")))
	r.Freeze()
	must.OK(t, feedParts(r, part(2, 1, 0, 1, eFlag, "y"), part(3, 2, 3, 0, bFlag, "lost"), part(5, 2, 4, 0, be, "z")))
	r.GiveUpMissing()
	check.Equal(t, "SACK", sackText(sackOf(r)), "cum 5")
	must.OK(t, r.Thaw())
	check.Equal(t, "messages", mustDrain(t, r), "xy|z|")
	wantEmpty(t, "in the end", r)
}

// TSNs begin anew: messages that wait become ready, and those that lack a fragment are dropped.
func TestRestartOfTSNsWithIData(t *testing.T) {
	r := interleavedWith(Config{MayAbandon: true})
	must.OK(t, feedParts(r, part(1, 1, 1, 0, be, "b"), part(2, 1, 2, 1, eFlag, "lost"), part(3, 2, 5, 0, be, "c")))
	r.Freeze()
	check.That(t, mustIForward(t, r, 4, wire.ISkip{Stream: 2, MID: 0}), "I-FORWARD-TSN is no news")
	must.OK(t, feedParts(r, part(6, 1, 0, 0, be, "new")))
	must.OK(t, r.RestartTSN(6))
	check.Equal(t, "messages", mustDrain(t, r), "b|c|new|")
	wantEmpty(t, "in the end", r)
	check.Equal(t, "cumulative TSN", r.CumTSN(), 6)
	must.OK(t, r.Thaw())
}
