package reconfig_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/fuzzinput"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/reconfig"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzMachine gives a Machine chunks of a hostile peer, user's requests and time. It never panics,
// holds streams twice, or sends what is malformed. What it keeps and what it sends back is bounded,
// and all that it holds it lets go in the end.
func FuzzMachine(f *testing.F) {
	for seed := range 200 {
		f.Add(fuzzinput.Random(seed, 400))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 0 && len(in) <= 1000 {
			runHostilePeer(t, in)
		}
	})
}

func runHostilePeer(t *testing.T, in []byte) {
	script := fuzzinput.Script(in)
	flags := script.Next()
	l := newLab(t, func(c *reconfig.Config) {
		c.Allowed, c.Paired, c.MaxTries = reconfig.Allowed(flags&7), flags&8 != 0, flags>>4
	})
	empty := l.m.Held()
	for len(script) > 0 {
		switch what := script.Next(); what % 8 {
		case 0, 1, 2:
			if c, ok := hostileChunk(&script); ok {
				_ = l.m.HandleChunk(l.now, c)
			}
		case 3:
			if r := hostileRequest(&script); !l.m.IsBusy() {
				_, _ = l.m.StartInTurn(l.now, r, 0)
			}
		case 4:
			l.wait(time.Duration(script.Next()) * 20 * time.Millisecond)
		case 5:
			l.busy, l.unacked, l.atZero = what&8 != 0, what&16 != 0, what&32 != 0
		case 6:
			l.cum += wire.TSN(script.Next())
			l.next += wire.TSN(script.Next())
		case 7:
			l.m.SetAllowed(reconfig.Allowed(script.Next()&7), 100, 100)
		}
		l.m.Poll(l.now)
		answer := l.m.AppendAnswer(nil, 1<<16)
		for _, c := range split(answer) {
			describe(t, c)
		}
		if l.m.RequestDue() {
			describe(t, l.m.AppendRequest(nil))
			l.m.NoteRequestSent(l.now)
		}
		if kept := l.m.Held() - empty; kept > 8*len(in)+4096 || len(answer) > len(in)+64 {
			t.Fatalf("%d octets are kept, and %d go back, for %d", kept, len(answer), len(in))
		}
		l.calls, l.events = nil, nil
	}
	l.m.Abandon(reconfig.ErrUnanswered)
	if len(l.holds) > 0 || !l.m.IsIdle() || l.m.NextTimeout() != rawio.Never {
		t.Fatal("something is held in the end")
	}
}

// hostileChunk is a chunk by chance. Most have one of the numbers that mean something.
func hostileChunk(s *fuzzinput.Script) (wire.Reconfig, bool) {
	seq := func(base uint32) uint32 { return base + uint32(int8(s.Next())/8) }
	list := func() (ids []wire.StreamID) {
		for range s.Next() % 4 {
			ids = append(ids, wire.StreamID(s.Next()%12))
		}
		return ids
	}
	b := wire.AppendReconfig(nil)
	for range 1 + s.Next()%2 {
		switch s.Next() % 8 {
		case 0:
			b = wire.AppendOutgoingReset(b, seq(peerTSN), seq(ownTSN), wire.TSN(seq(950)), list())
		case 1:
			b = wire.AppendIncomingReset(b, seq(peerTSN), list())
		case 2:
			b = wire.AppendTSNReset(b, seq(peerTSN))
		case 3:
			b = wire.AppendReconfigResponse(b, seq(ownTSN), wire.ReconfigResult(s.Next()%8))
		case 4:
			b = wire.AppendTSNResetResponse(b, seq(ownTSN), wire.ReconfigResult(s.Next()%8), wire.TSN(s.Next()),
				wire.TSN(s.Next()))
		case 5:
			b = wire.AppendAddStreams(b, wire.ParamAddOutStreams, seq(peerTSN), s.Next16())
		case 6:
			b = wire.AppendAddStreams(b, wire.ParamAddInStreams, seq(peerTSN), s.Next16())
		case 7:
			b = wire.AppendParam(b, wire.ParamType(13+s.Next()%6), s.Take(s.Next()%24))
		}
	}
	c, err := wire.AsReconfig(wire.CloseChunk(b, 0))
	return c, err == nil
}

func hostileRequest(s *fuzzinput.Script) reconfig.Request {
	what := s.Next()
	r := reconfig.Request{ResetOut: what&1 != 0, ResetIn: what&2 != 0, ResetTSNs: what&4 != 0}
	if what&8 != 0 {
		r.AddOut, r.AddIn = s.Next(), s.Next()
	}
	for range s.Next() % 4 {
		r.Streams = append(r.Streams, wire.StreamID(s.Next()%12))
	}
	return r
}
