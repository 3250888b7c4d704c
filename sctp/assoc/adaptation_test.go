package assoc_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func ptrTo32(v uint32) *uint32 { return &v }

func TestAdaptationIndicationReachesBothSides(t *testing.T) {
	w, a, b := sctptest.Pair(t, &assoc.Config{Adaptation: ptrTo32(1), RequireAdaptation: true},
		&assoc.Config{Adaptation: ptrTo32(1), RequireAdaptation: true})
	for i, x := range []*assoc.Assoc{a, b} { // req 5061-4.2.6-3, 5061-4.2.6-6
		v, ok := x.PeerAdaptation()
		check.That(t, v == 1 && ok, "peer's indication %d %v", v, ok)
		e, told := w.Hosts[i].Event(assoc.EventAdaptation)
		check.That(t, told && e.Adaptation == 1, "host %d hears %v %d", i, told, e.Adaptation)
	}
}

func TestAdaptationAbsenceIsReported(t *testing.T) {
	_, a, b := sctptest.Pair(t, &assoc.Config{Adaptation: ptrTo32(9)}, nil)
	v, ok := a.PeerAdaptation()
	check.That(t, v == 0 && !ok, "a: %d %v", v, ok)
	v, ok = b.PeerAdaptation()
	check.That(t, v == 9 && ok, "b: %d %v", v, ok)
}

func TestRequiredAdaptationIsEnforced(t *testing.T) {
	// req 5043-7.1-1
	strict := &assoc.Config{Adaptation: ptrTo32(1), RequireAdaptation: true}
	for _, row := range []struct {
		name   string
		a, b   *assoc.Config
		byPeer bool // the listener refuses the INIT; else the initiator refuses the INIT ACK
		want   assoc.AdaptationError
	}{
		{"listener, none announced", nil, strict, true, assoc.AdaptationError{}},
		{"listener, another announced", &assoc.Config{Adaptation: ptrTo32(2)}, strict, true, assoc.AdaptationError{}},
		{"initiator, none announced", strict, nil, false, assoc.AdaptationError{Want: 1, Absent: true}},
		{"initiator, another announced", strict, &assoc.Config{Adaptation: ptrTo32(2)}, false, assoc.AdaptationError{Want: 1, Got: 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := sctptest.NewWorld(t)
			w.Listen(row.b)
			a := w.Connect(row.a)
			w.Run(5 * time.Second)
			must.Equal(t, "state", a.State(), assoc.Closed)
			for _, h := range w.Hosts {
				check.That(t, len(h.Assocs)-h.Endpoint.Len() == 1-h.ID, "host %d holds %d associations", h.ID,
					h.Endpoint.Len())
				_, up := h.Event(assoc.EventUp)
				check.That(t, !up, "host %d came up", h.ID)
			}
			err, _ := w.Hosts[0].DownErr()
			if row.byPeer {
				var ab *assoc.AbortError
				check.That(t, errors.As(err, &ab) && ab.ByPeer, "ended by %v", err)
				return
			}
			var ae *assoc.AdaptationError
			check.That(t, errors.As(err, &ae) && *ae == row.want && errors.Is(err, syscall.ECONNREFUSED),
				"ended by %v", err)
			check.That(t, len(w.Seen(0, wire.ChunkCookieEcho)) == 0 && len(w.Seen(0, wire.ChunkAbort)) == 1,
				"the INIT ACK was not refused by ABORT")
			check.Equal(t, "violations", a.Stats().Violations, 1)
		})
	}
}

func TestAdaptationIsIgnoredOutsideTheHandshake(t *testing.T) {
	l := sctptest.Passive(t, nil)
	// req 5061-4.2.6-5: in an ERROR's unrecognized parameters, say
	b := wire.AppendCause(wire.AppendError(nil), wire.CauseUnrecognizedParams, wire.AppendAdaptationIndication(nil, 5))
	l.Expect(l.Send(l.Tag, wire.CloseChunk(b, 0)), "")
	_, ok := l.A.PeerAdaptation()
	check.That(t, !ok, "taken from an ERROR chunk")
}

func TestAdaptationCodePointIsOpaque(t *testing.T) {
	// req 5061-4.2.6-2, 5061-4.2.6-6, 5043-7.1-1
	for _, v := range []uint32{0, 1, 2, 0x80000000, 1<<32 - 1} {
		_, a, b := sctptest.Pair(t, &assoc.Config{Adaptation: ptrTo32(v)}, &assoc.Config{Adaptation: ptrTo32(^v)})
		got, ok := b.PeerAdaptation()
		check.That(t, got == v && ok, "listener got %#x %v, want %#x", got, ok, v)
		got, ok = a.PeerAdaptation()
		check.That(t, got == ^v && ok, "initiator got %#x %v, want %#x", got, ok, ^v)
	}
}
