package simulation

import (
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// A graceful end promises that what was posted is carried out, unless the session fails for want of
// room before that: then its requests complete in error on either side (RFC 5041 section 6.2.2).
func TestGracefulEndThatWantsForRoom(t *testing.T) {
	room := &llp.TerminatedError{Cause: &ddpadapt.SequenceError{Fault: ddpadapt.FaultWindowSSN}}
	for _, c := range []struct {
		name       string
		side       int // which fails; 0 has asked for the end
		outOfOrder int
		cause      error
		lost       bool // is a violation
	}{
		{"here", 0, 1, room, false}, {"there", 1, 1, room, false}, {"without the limit", 0, 0, room, true}, {"for another reason", 0, 1, errAbort, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := New(1)
			end := new(sessionEnd)
			var loads [2]*workload
			for i, h := range []*Host{w.a, w.b} {
				h.outOfOrder = c.outOfOrder
				loads[i] = newLoad(w, h.newQP(sendDepth, recvs, 1, 1), newRoom(h.mem, 256), end)
			}
			l := loads[0]
			l.peer, loads[1].peer = loads[1], l
			end.begun, end.gracious = true, l
			l.lost = append(l.lost, postedOp{id: 1, opcode: rdmap.WCSend, src: area{n: -1}})
			loads[c.side].streamFailed(&rdmap.StreamError{Cause: c.cause})
			for _, l := range loads {
				l.recvs = nil
				l.checkAllDone()
			}
			b := w.Violation()
			check.That(t, (b != nil) == c.lost && (!c.lost || b.Invariant == Lost), "%v", b)
		})
	}
}
