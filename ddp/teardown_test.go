package ddp

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestNothingBeforeAttach(t *testing.T) {
	u := &recorder{queues: []*Queue{NewQueue(1)}}
	s := NewStream(StreamConfig{ID: 1, Table: NewTable(new(entropy)), ULP: u, Queues: 1})
	must.OK(t, s.SendUntagged(0, [5]byte{}, nil, 1))
	var seg Segment
	var p Placed
	s.Place(untaggedSeg(true, 0, 1, 0, nil), &p)
	s.Deliver(&p)
	check.That(t, !s.NextSegment(1500, &seg) && len(u.log) == 0, "a stream without LLP moved data") // req 5041-6.1-1
	l := new(lower)
	s.Attach(l)
	check.That(t, l.ready == 1 && s.NextSegment(1500, &seg), "waiting message not announced")
}

func TestGracefulTeardownByTheULP(t *testing.T) {
	r := newRig(t)
	r.postBuffer(t, 0, 7, make([]byte, 8))
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(30)), 1)
	r.CloseSend()
	err := r.SendTagged(1, 0, 0, nil, 2)
	check.That(t, err == ErrClosing, "message after graceful teardown: %v", err) // req 5041-6.2.1-2
	n := len(r.cutAll(18 + 20))
	must.That(t, n == 2 && r.llp.finish == 0, "%d segments, LLP told to finish %d times", n, r.llp.finish)
	r.deliverSegment(untaggedSeg(true, 0, 1, 0, []byte{1})) // req 5041-6.2.1-6
	r.Acked()
	r.CloseSend() // again: all is cut, and not acknowledged
	must.Equal(t, "finishes before all data was transferred", r.llp.finish, 0)
	r.Acked() // req 5041-6.2.1-1
	check.Equal(t, "finishes", r.llp.finish, 1)
	r.CloseSend()
	r.Closed(nil)
	r.ulp.checkLog(t, "untagged qn=0 msn=1 rsvd=0102030405 len=1 token=7", "completed 1")
	check.That(t, r.llp.finish == 1 && r.llp.aborted == 0, "finish %d abort %d", r.llp.finish, r.llp.aborted)
	check.Equal(t, "message after the end", r.SendTagged(1, 0, 0, nil, 2), ErrClosed)
	early := NewStream(StreamConfig{ID: 1}) // nothing will be sent on it
	early.CloseSend()
	early.Attach(r.llp)
	check.Equal(t, "finishes of what was closed before it had an LLP", r.llp.finish, 2)
}

func TestHalfCloseByThePeer(t *testing.T) {
	r := newRig(t)
	r.HalfClosed()
	r.HalfClosed()
	r.ulp.checkLog(t, "peer closed") // req 5041-6.2.1-4
	err := r.SendUntagged(0, [5]byte{}, nil, 1)
	check.That(t, err == nil && len(r.cutAll(1500)) == 1, "outbound transfer after half-close: %v", err)
	r.CloseSend()
	r.Acked() // req 5041-6.2.1-5
	check.Equal(t, "finishes", r.llp.finish, 1)
}

func TestDataAfterThePeersGracefulTeardown(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 8)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	_ = r.SendUntagged(0, [5]byte{}, nil, 5)
	r.HalfClosed()
	r.deliverSegment(taggedSeg(true, 0, reg.STag(), 0, []byte{1})) // req 5041-6.2.1-3
	r.ulp.checkLog(t, "peer closed", "fatal 0x0/0x00", "failed 5: "+ErrClosed.Error())
	check.That(t, errors.Is(r.ulp.fault, ErrDataAfterClose) && isZero(mem) && r.llp.aborted == 1,
		"fault %v, memory %x, LLP aborted %d times", r.ulp.fault, mem, r.llp.aborted)
}

func TestAbortByTheULP(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 8)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(5)), 1)
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(30)), 2)
	_ = r.SendUntagged(0, [5]byte{}, nil, 3)
	var seg Segment
	r.NextSegment(18+20, &seg)
	r.NextSegment(18+20, &seg)
	r.Abort()
	r.Abort()
	must.Equal(t, "aborts of the LLP", r.llp.aborted, 1)
	r.ulp.checkLog(t) // segments of messages 1 and 2 are still with the LLP
	// req 5041-6.2-2: both directions are off.
	r.deliverSegment(taggedSeg(true, 0, reg.STag(), 0, []byte{1}))
	check.That(t, !r.NextSegment(1500, &seg) && isZero(mem) && r.SendUntagged(0, [5]byte{}, nil, 9) == ErrClosed,
		"data moved after abortive teardown")
	r.Closed(errors.New("reset"))
	for i, want := range []string{"failed 1: ", "failed 2: " + ErrClosed.Error(), "failed 3: " + ErrClosed.Error()} {
		got := r.ulp.log[i]
		check.That(t, len(got) >= len(want) && got[:len(want)] == want, "ULP was told %q, want %q", got, want)
	}
	// no Fatal: the ULP asked for it
	check.That(t, len(r.ulp.log) == 3 && r.Unfinished() == 0, "ULP was told %q", r.ulp.log)
}

func TestLostLowerLayer(t *testing.T) {
	r := newRig(t)
	cause := errors.New("association aborted by peer")
	for i := range 3 {
		_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(30)), uint64(i))
	}
	var seg Segment
	for range 3 {
		r.NextSegment(18+20, &seg) // message 0 whole, message 1 in part, message 2 not
	}
	r.Closed(cause)
	r.Closed(nil)
	lost := (&Error{Type: TypeLLP, Cause: cause}).Error()
	// req 5041-6.2.2-1, 5041-6.2.2-2, 5041-7-1
	r.ulp.checkLog(t, "fatal 0x3/0x00", "failed 0: "+lost, "failed 1: "+lost, "failed 2: "+lost)
	r.Acked() // no news any more
	r.ulp.checkLog(t)
	check.Error(t, "fault", r.ulp.fault, cause)
	check.Equal(t, "message after the loss", r.SendUntagged(0, [5]byte{}, nil, 9), ErrClosed)
}

// What comes after an end, from above or below, is nothing.
func TestNothingAfterTheEnd(t *testing.T) {
	for _, end := range []func(r *rig){func(r *rig) { r.Abort() }, func(r *rig) { r.Closed(nil) }} {
		r := newRig(t)
		mem := make([]byte, 8)
		reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
		end(r)
		asked := r.llp.aborted
		r.CloseSend()
		r.Abort()
		r.HalfClosed()
		r.Closed(errors.New("late"))
		r.deliverSegment(taggedSeg(true, 0, reg.STag(), 0, []byte{1}))
		r.ulp.checkLog(t)
		check.That(t, r.llp.finish == 0 && r.llp.aborted == asked && isZero(mem), "finish %d, abort %d, memory %x",
			r.llp.finish, r.llp.aborted, mem)
	}
}

func TestLossAfterAFaultIsNotReportedTwice(t *testing.T) {
	r := newRig(t)
	r.deliverSegment([]byte{0})
	r.Closed(errors.New("gone"))
	r.ulp.checkLog(t, "fatal 0x2/0x06")
}

// RFC 5044 section 8: a lower layer that found an error passes nothing more on, and still sends.
func TestErrorThatTheLowerLayerFound(t *testing.T) {
	r := newRig(t)
	mem := make([]byte, 8)
	reg := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem), Access: RemoteWrite})
	cause := errors.New("wrong CRC")
	_ = r.SendUntagged(0, [5]byte{}, gatherOf(patternOf(30)), 1)
	r.LLPFailed(2, cause)
	r.LLPFailed(3, cause)
	r.deliverSegment(taggedSeg(true, 0, reg.STag(), 0, []byte{1}))
	r.ulp.checkLog(t, "fatal 0x3/0x02")
	check.That(t, errors.Is(r.ulp.fault, cause) && isZero(mem) && r.llp.aborted == 0, "fault %v, memory %x, %d aborts",
		r.ulp.fault, mem, r.llp.aborted)
	check.Equal(t, "last message", r.SendUntagged(0, [5]byte{}, nil, 2), nil)
	check.Equal(t, "another one", r.SendUntagged(0, [5]byte{}, nil, 3), ErrFaulted)
	check.Equal(t, "segments", len(r.cutAll(1500)), 2)
	r.Acked()
	r.Acked()
	r.ulp.checkLog(t, "completed 1", "completed 2")
	r.Closed(errors.New("gone"))
	r.ulp.checkLog(t)
	check.That(t, (&Error{Type: TypeLLP, Code: 2}).Error() != (&Error{Type: TypeLLP}).Error(), "two errors read alike")
}

func TestAbortBeforeAttach(t *testing.T) {
	u := &recorder{queues: []*Queue{NewQueue(1)}}
	s := NewStream(StreamConfig{ID: 1, Table: NewTable(new(entropy)), ULP: u, Queues: 1})
	_ = s.SendUntagged(0, [5]byte{}, nil, 1)
	s.Abort()
	u.checkLog(t, "failed 1: "+ErrClosed.Error())
	l := new(lower)
	s.Attach(l)
	check.Equal(t, "an LLP stream for an aborted stream must be ended", l.aborted, 1)
}
