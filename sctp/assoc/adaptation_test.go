package assoc_test

import (
	"errors"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func u32(v uint32) *uint32 { return &v }

func TestAdaptationIndicationReachesBothSides(t *testing.T) {
	_, a, b := pair(t, &assoc.Config{Adaptation: u32(1), RequireAdaptation: true}, &assoc.Config{Adaptation: u32(1), RequireAdaptation: true})
	for _, x := range []*assoc.Assoc{a, b} { // req 5061-4.2.6-3, 5061-4.2.6-6
		if v, ok := x.PeerAdaptation(); v != 1 || !ok {
			t.Errorf("peer's indication %d %v", v, ok)
		}
	}
}

func TestAdaptationAbsenceIsReported(t *testing.T) {
	_, a, b := pair(t, &assoc.Config{Adaptation: u32(9)}, nil)
	if v, ok := a.PeerAdaptation(); v != 0 || ok {
		t.Errorf("a: %d %v", v, ok)
	}
	if v, ok := b.PeerAdaptation(); v != 9 || !ok {
		t.Errorf("b: %d %v", v, ok)
	}
}

func TestRequiredAdaptationIsEnforced(t *testing.T) {
	strict := &assoc.Config{Adaptation: u32(1), RequireAdaptation: true}
	for _, row := range []struct {
		name   string
		a, b   *assoc.Config
		byPeer bool // the listener refuses the INIT; else the initiator refuses the INIT ACK
		want   assoc.AdaptationError
	}{
		{"listener, none announced", nil, strict, true, assoc.AdaptationError{}},
		{"listener, another announced", &assoc.Config{Adaptation: u32(2)}, strict, true, assoc.AdaptationError{}},
		{"initiator, none announced", strict, nil, false, assoc.AdaptationError{Want: 1, Absent: true}},
		{"initiator, another announced", strict, &assoc.Config{Adaptation: u32(2)}, false, assoc.AdaptationError{Want: 1, Got: 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.listen(row.b)
			a := w.connect(row.a)
			w.run(5 * time.Second)
			if a.State() != assoc.Closed {
				t.Fatalf("state %v", a.State())
			}
			for _, h := range w.hosts {
				if len(h.assocs)-h.ep.Len() != 1-h.id {
					t.Errorf("host %d holds %d associations", h.id, h.ep.Len())
				}
				if _, up := h.event(assoc.EventUp); up {
					t.Errorf("host %d came up", h.id)
				}
			}
			err, _ := w.hosts[0].downErr()
			if row.byPeer {
				var ab *assoc.AbortError
				if !errors.As(err, &ab) || !ab.ByPeer {
					t.Errorf("ended by %v", err)
				}
				return
			}
			var ae *assoc.AdaptationError
			if !errors.As(err, &ae) || *ae != row.want || !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("ended by %v", err)
			}
			if len(w.seen(0, wire.ChunkCookieEcho)) != 0 || len(w.seen(0, wire.ChunkAbort)) != 1 {
				t.Error("the INIT ACK was not refused by ABORT")
			}
		})
	}
}

func TestAdaptationIsIgnoredOutsideTheHandshake(t *testing.T) {
	l := passiveLab(t, nil)
	// req 5061-4.2.6-5: in an ERROR's unrecognized parameters, say
	b := wire.AppendCause(wire.AppendError(nil), wire.CauseUnrecognizedParams, wire.AppendAdaptationIndication(nil, 5))
	l.expect(l.send(l.tag, wire.CloseChunk(b, 0)), "")
	if _, ok := l.a.PeerAdaptation(); ok {
		t.Error("taken from an ERROR chunk")
	}
}
