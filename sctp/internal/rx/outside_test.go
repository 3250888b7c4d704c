package rx

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Chunks that are kept aside are acknowledged, cost no window, and nothing of their stream waits
// for them, in whatever order they come.
func TestChunksKeptAside(t *testing.T) {
	chunk := func(tsn wire.TSN, ssn wire.SSN, flags uint8) wire.Data {
		b := append(wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: tsn, SSN: ssn, PayloadLen: 4}), 1, 2, 3, 4)
		return must.Get(wire.AsData(b))(t)
	}
	r := NewReceiver(Config{PeerTSN: 10, RecvBuffer: 2000, InStreams: 1})
	for range 500 { // the window closes
		if r.Admit(chunk(10, 0, 2)) == New && r.Window() > 4 {
			break
		}
	}
	const first, middle, last = wire.FlagB, 0, wire.FlagE
	message := chunk(13, 1, wire.FlagB|wire.FlagE)
	must.Equal(t, "a message of the stream", r.Admit(message), New)
	must.OK(t, r.Queue(message, nil))
	_, ok := r.Receive()
	check.That(t, !ok, "a message is delivered before its turn")
	window := r.Window()
	for _, c := range []wire.Data{chunk(12, 0, last), chunk(10, 0, first), chunk(11, 0, middle)} {
		must.Equal(t, "admission", r.AdmitOutside(c), New)
		must.OK(t, r.TakeOutside(c))
		check.Equal(t, "again", r.AdmitOutside(c), Duplicate)
	}
	check.That(t, r.CumTSN() == 13 && !r.HasMissing() && r.Window() == window, "TSN %d, window %d, missing %v", r.CumTSN(),
		r.Window(), r.HasMissing())
	m, ok := r.Receive()
	must.That(t, ok && m.TSN() == 13, "the message behind is not delivered")
	check.Equal(t, "far ahead", r.AdmitOutside(chunk(1<<30, 0, 3)), Dropped)
	r.SetMemoryPressure(true)
	check.Equal(t, "with the window closed", r.AdmitOutside(chunk(14, 2, 3)), New)
}
