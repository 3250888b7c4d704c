package rx

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// A peer resets its TSNs in the middle of messages, and goes on with the rest of each under MID 0,
// as libusrsctp does. These messages are lost, and nothing else is.
func TestRestartInTheMiddleOfIData(t *testing.T) {
	const u, ue = uFlag, uFlag | eFlag
	for _, c := range []struct {
		name string
		rest [][]wire.IData // packets, from TSN 901 on
		want string
	}{
		{"in order", [][]wire.IData{{part(901, 1, 0, 2, 0, "m")}, {part(902, 1, 0, 3, 0, "m")}, {part(903, 1, 0, 4, eFlag, "m")},
			{part(904, 1, 1, 0, be, "b")}, {part(905, 2, 0, 0, be, "c")}}, "b|c|"},
		{"in one packet", [][]wire.IData{{part(901, 1, 0, 2, 0, "m"), part(902, 1, 0, 3, eFlag, "m"), part(903, 1, 1, 0, be, "b")}},
			"b|"},
		{"reordered", [][]wire.IData{{part(904, 1, 1, 0, be, "b")}, {part(903, 1, 0, 4, eFlag, "m")}, {part(902, 1, 0, 3, 0, "m")},
			{part(901, 1, 0, 2, 0, "m")}}, "b|"},
		{"only the end, and late", [][]wire.IData{{part(902, 1, 1, 0, be, "b")}, {part(901, 1, 0, 2, eFlag, "m")}}, "b|"},
		{"in two streams", [][]wire.IData{{part(901, 1, 0, 2, 0, "m")}, {part(902, 2, 0, 7, 0, "n")}, {part(903, 1, 0, 3, eFlag, "m")},
			{part(904, 2, 0, 8, eFlag, "n")}, {part(905, 2, 1, 0, be, "c")}, {part(906, 1, 1, 0, be, "b")}}, "c|b|"},
		{"behind others", [][]wire.IData{{part(901, 3, 0, 0, be, "a")}, {part(902, 2, 0, 0, be, "b")}, {part(903, 1, 0, 2, eFlag, "m")},
			{part(904, 1, 1, 0, be, "c")}}, "a|b|c|"},
		{"unordered", [][]wire.IData{{part(901, 1, 0, 2, u, "m")}, {part(902, 1, 0, 3, ue, "m")}, {part(903, 1, 1, 0, ube, "v")},
			{part(904, 1, 0, 0, be, "b")}}, "v|b|"},
		{"there is no rest", [][]wire.IData{{part(901, 1, 0, 0, bFlag, "b")}, {part(902, 1, 0, 1, eFlag, "c")}}, "bc|"},
		{"the first fragment is late", [][]wire.IData{{part(902, 1, 0, 1, eFlag, "c")}, {part(903, 1, 1, 0, be, "d")},
			{part(901, 1, 0, 0, bFlag, "b")}}, "bc|d|"},
		{"an unordered first fragment is late", [][]wire.IData{{part(902, 1, 0, 1, ue, "c")}, {part(903, 1, 1, 0, ube, "d")},
			{part(901, 1, 0, 0, uFlag|bFlag, "b")}}, "d|bc|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, mayAbandon := range []bool{false, true} {
				r := interleavedWith(Config{MayAbandon: mayAbandon})
				must.OK(t, feedParts(r, part(1, 1, 0, 0, be, "a"), part(2, 1, 1, 0, bFlag, "m"), part(3, 2, 0, 0, bFlag, "n")))
				r.Freeze()
				must.OK(t, feedParts(r, part(4, 1, 1, 1, 0, "m")))
				must.OK(t, r.RestartTSN(901))
				for _, packet := range c.rest {
					must.OK(t, feedParts(r, packet...))
				}
				check.Equal(t, "messages", mustDrain(t, r), "a|"+c.want)
				wantEmpty(t, "in the end", r)
			}
		})
	}
}

// The rest has come while it was not known yet that TSNs are reset.
func TestRestOfIDataThatWasFrozen(t *testing.T) {
	r := interleaved()
	must.OK(t, feedParts(r, part(1, 1, 0, 0, be, "a"), part(2, 1, 1, 0, bFlag, "m")))
	r.Freeze()
	must.OK(t, feedParts(r, part(4, 1, 0, 1, 0, "m"), part(5, 1, 0, 2, eFlag, "m"), part(6, 1, 1, 0, be, "b"), part(3, 3, 0, 0, be, "c")))
	must.OK(t, r.RestartTSN(4))
	check.Equal(t, "messages", mustDrain(t, r), "a|c|b|")
	wantEmpty(t, "in the end", r)
}

// A message that is delivered in pieces ends at the reset, and its rest is dropped behind it.
func TestRestOfIDataThatIsDeliveredInPieces(t *testing.T) {
	r := interleavedWith(Config{PartialPoint: 10})
	must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, "a long beginning")))
	first, ok := r.Receive()
	must.That(t, ok && first.More, "no piece is delivered")
	must.OK(t, r.RestartTSN(901))
	must.OK(t, feedParts(r, part(901, 1, 0, 1, 0, "and the rest of it")))
	must.OK(t, feedParts(r, part(902, 1, 0, 2, eFlag, "to its end"), part(903, 1, 1, 0, be, "b")))
	cut, ok := r.Receive()
	must.That(t, ok && cut.Cut && cut.Size == 0, "the message does not end where it is cut")
	r.Release(first)
	r.Release(cut)
	check.Equal(t, "messages", mustDrain(t, r), "b|")
	wantEmpty(t, "in the end", r)
}

// I-FORWARD-TSN gives up a rest, or goes beyond it; a reset of the stream finds nothing of it.
func TestWhatComesBehindARestOfIData(t *testing.T) {
	restart := func(rest ...wire.IData) *Receiver {
		r := interleavedWith(Config{MayAbandon: true})
		must.OK(t, feedParts(r, part(1, 1, 0, 0, bFlag, "m")))
		must.OK(t, r.RestartTSN(901))
		must.OK(t, feedParts(r, rest...))
		return r
	}
	r := restart(part(902, 1, 0, 2, 0, "m"), part(904, 1, 1, 0, be, "b"))
	check.That(t, mustIForward(t, r, 903, wire.ISkip{Stream: 1, MID: 0}), "I-FORWARD-TSN is no news")
	check.Equal(t, "messages", mustDrain(t, r), "b|")
	wantEmpty(t, "behind I-FORWARD-TSN of the rest", r)

	r = restart(part(902, 1, 0, 2, 0, "m"), part(904, 1, 1, 0, be, "b"))
	check.That(t, mustIForward(t, r, 903, wire.ISkip{Stream: 2, MID: 0}), "I-FORWARD-TSN is no news")
	check.Equal(t, "messages", mustDrain(t, r), "b|")
	wantEmpty(t, "behind I-FORWARD-TSN of another", r)

	r = restart()
	for _, d := range []wire.IData{part(901, 1, 0, 2, eFlag, "m"), part(902, 1, 0, 2, uFlag, "n")} { // and their packet goes on
		must.That(t, r.AdmitInterleaved(d) == New, "it is not admitted")
		must.OK(t, r.QueueInterleaved(d, nil))
	}
	must.OK(t, r.reassembly.Check(r.CumTSN()))
	must.OK(t, r.ResetStreams(streamList(1), 902))
	must.OK(t, feedParts(r, part(903, 1, 0, 0, be, "c")))
	check.Equal(t, "messages", mustDrain(t, r), "c|")
	wantEmpty(t, "behind a reset of the stream", r)
}

// Nothing of it holds without a reset of TSNs, or for another message than the first of a stream.
func TestFragmentsOfIDataThatAreNoRest(t *testing.T) {
	r := interleaved()
	must.OK(t, feedParts(r, part(1, 1, 0, 1, 0, "m"), part(2, 1, 1, 0, be, "b")))
	check.Equal(t, "messages", mustDrain(t, r), "")
	r = interleaved()
	must.OK(t, r.RestartTSN(901))
	must.OK(t, feedParts(r, part(901, 1, 0, 0, be, "a"), part(902, 1, 1, 1, eFlag, "x")))
	check.Equal(t, "messages", mustDrain(t, r), "a|")
	var v *ViolationError
	check.That(t, errors.As(feedParts(r, part(903, 1, 0, 0, bFlag, "x")), &v), "a MID comes again, and it is no violation")
}

// Of many beginnings that do not come some are looked at with each packet.
func TestWorkForRestsIsBoundedByThePacket(t *testing.T) {
	const many = 2000
	r := interleavedWith(Config{RecvBuffer: 1 << 20, InStreams: many})
	must.OK(t, r.RestartTSN(901))
	for i := range many {
		must.OK(t, feedParts(r, part(902+i, i, 0, 1, 0, "m"))) // TSN 901 is missing
	}
	was := *r.reassembly.workSteps
	must.OK(t, feedParts(r, part(902+many, 0, 0, 2, 0, "m")))
	steps := *r.reassembly.workSteps - was
	check.That(t, steps < 20*maxBlocked, "%d steps for a packet", steps)
	must.OK(t, feedParts(r, part(901, 0, 1, 0, be, "b")))
	for i := range many / maxBlocked {
		must.OK(t, feedParts(r, part(903+many+i, 5, 1, uint32(i+1), 0, "x")))
	}
	check.Equal(t, "octets held", r.Buffered(), many/maxBlocked+1) // and no rest is among them
	check.OK(t, r.Audit(0))
}

// What was found by TSNs of before a reset is not looked for among those of after.
func TestPiecesOfBeforeARestartAreForgotten(t *testing.T) {
	r := interleavedWith(Config{RecvBuffer: 1 << 20})
	must.OK(t, feedParts(r, part(2, 1, 0, 0, be, "a"), part(70, 1, 1, 1, eFlag, "b")))
	const first = 1<<31 + 5000 // whose place in the index is that of another TSN of before
	must.OK(t, r.RestartTSN(first))
	_, evicted := r.reassembly.Evict(r.CumTSN())
	check.That(t, !evicted, "a piece of before is evicted")
	for i := range 3000 {
		must.OK(t, feedParts(r, part(first+i, 2, uint32(i), 0, be, "c")))
	}
	_, evicted = r.reassembly.Evict(r.CumTSN())
	check.That(t, !evicted, "a piece of before is evicted later")
	check.OK(t, r.Audit(0))
}
