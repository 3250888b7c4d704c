package rdmapeer

import (
	"encoding/binary"
	"errors"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/ddpadapt"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// The victim connects, and the server is hostile.
func TestHostileServer(t *testing.T) {
	negotiate := func(c *rdma.QPConfig) { c.Negotiate = true }
	setup32 := func(ird, ord uint32) []byte { return binary.BigEndian.AppendUint32(nil, ird<<16|ord) }
	fault := func(f ddpadapt.Fault) func(error) bool {
		return func(err error) bool {
			var e *ddpadapt.SequenceError
			return errors.As(err, &e) && e.Fault == f
		}
	}
	is := func(want error) func(error) bool {
		return func(err error) bool { return errors.Is(err, want) }
	}
	l := newLab(t)
	for _, tt := range []struct {
		name string
		qp   func(*rdma.QPConfig)
		do   func(*target)
		want func(error) bool // of Connect
		more outcome          // where Connect succeeds
	}{
		// req 5043-6.1-4, 5043-6.6-3
		{name: "an Initiate in answer to one ends both",
			do: controlMessage(fnInitiate, 0), want: fault(ddpadapt.FaultCrossed)},
		{name: "a segment in place of the answer is not placed",
			do: func(x *target) { x.sendSegment(goodWrite(x)) }, want: fault(ddpadapt.FaultAnswer)},
		{name: "an answer of an unknown function is none",
			do: controlMessage(9, 0), want: fault(ddpadapt.FaultFunction)},
		// req 5043-5.2.3-7
		{name: "an Accept with 513 octets of private data is none",
			do: controlMessage(fnAccept, 513), want: fault(ddpadapt.FaultPrivateData)},
		{name: "a Reject with 513 octets of private data is none",
			do: controlMessage(fnReject, 513), want: fault(ddpadapt.FaultPrivateData)},
		// req 6581-7-16, 6581-7-17
		{name: "an enhanced Accept of a plain Initiate is none",
			do: func(x *target) { x.sendControl(fnEnhancedAccept, setup32(1, 1)) }, want: fault(ddpadapt.FaultAnswer)},
		{name: "a plain Accept of an enhanced Initiate is none",
			qp: negotiate, do: controlMessage(fnAccept, 0), want: fault(ddpadapt.FaultAnswer)},
		{name: "an enhanced Accept of 3 octets is none",
			qp: negotiate, do: controlMessage(fnEnhancedAccept, 3), want: fault(ddpadapt.FaultSetup)},
		// req 6581-9.1-10, 6581-8-1, 6581-8-2, 6581-12-1
		{name: "a server that wants to read more at a time than it was offered is refused",
			qp: negotiate, do: func(x *target) { x.sendControl(fnEnhancedAccept, setup32(1, 16382)) },
			want: is(llp.ErrInsufficientIRD)},
		{name: "a Terminate in place of the answer is a refusal",
			do: controlMessage(fnTerminate, 0), want: is(syscall.ECONNRESET)},
		{name: "a Reject is a refusal",
			do: controlMessage(fnReject, 20), want: is(syscall.ECONNREFUSED)},
		{name: "a second Accept ends the session",
			do: func(x *target) {
				x.sendControl(fnAccept, nil)
				x.sendControl(fnAccept, nil)
			},
			want: is(nil), more: ended{ddpadapt.FaultControl}},
		{name: "a Reject behind the Accept ends the session",
			do: func(x *target) {
				x.sendControl(fnAccept, nil)
				x.sendControl(fnReject, nil)
			},
			want: is(nil), more: ended{ddpadapt.FaultControl}},
		{name: "segments ahead of their Accept reach what any others would, and no more",
			do: func(x *target) {
				x.segmentAs(1, goodWrite(x))
				copy(x.want[pageRW*pageLen:], evil(64))
				x.segmentAs(2, write(x.ro.STag(), base, evil(64)))
				x.controlAs(0, fnAccept, nil)
				x.ssn = 3
			},
			want: is(nil), more: taggedError(ddp.CodeInvalidSTag)},
		{name: "a server has no more rights than a client",
			do: func(x *target) {
				x.sendControl(fnAccept, nil)
				x.sendSegment(write(x.foreign.STag(), base, evil(64)))
			},
			want: is(nil), more: taggedError(ddp.CodeNotAssociated)},
		{name: "a server that asks for a session on the client's association is refused",
			// req 5043-6.3-3
			do: func(x *target) {
				s := x.session.c.freshSession(x.t)
				s.sendControl(fnInitiate, nil)
				if m, ok := s.nextMessage(deadlineCtx(x.t)); !ok || !m.isControl(fnTerminate) {
					x.t.Errorf("it is answered by %v", m)
				}
				x.sendControl(fnReject, nil)
			},
			want: is(syscall.ECONNREFUSED)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := l.newTarget(t, &setup{state: closed, qp: func(c *rdma.QPConfig) {
				c.OwnAssociation = true
				if tt.qp != nil {
					tt.qp(c)
				}
			}})
			connected := l.serveVictim(x)
			tt.do(x)
			err := <-connected
			check.That(t, tt.want(err), "Connect returns %v", err)
			if err == nil {
				tt.more.checkOutcome(x, 0)
			}
			l.checkUnhurt(t, x.want)
		})
	}
	t.Run("the setup error is told in a Terminate", func(t *testing.T) {
		// req 6581-9.1-7
		x := l.newTarget(t, &setup{state: closed, qp: func(c *rdma.QPConfig) {
			c.OwnAssociation, c.Negotiate = true,
				true
		}})
		connected := l.serveVictim(x)
		x.sendControl(fnEnhancedAccept, setup32(1, 16382))
		term, err := rdmap.ParseTerminate(ddp.UntaggedView(x.untilTerminate().data[2:]).Payload())
		if want := (rdmap.Terminate{Layer: rdmap.LayerLLP, EType: rdmap.ETypeMPA,
			Code: rdmap.CodeInsufficientIRD}); err != nil || term != want {
			t.Errorf("%+v, %v; want %+v", term, err, want)
		}
		if err := <-connected; err == nil {
			t.Error("Connect succeeds")
		}
		l.checkUnhurt(t, x.want)
	})
}
