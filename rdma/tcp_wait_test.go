package rdma

import (
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/readrole"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// tcp returns the connection of the side's QP.
func (s *side) tcp() *tcpConn { return s.qp.peer.Load().conn.(*tcpConn) }

// startReading has a goroutine wait for a completion of s, and returns once it reads the connection
// itself. What Wait returns is sent.
func (s *side) startReading(ctx context.Context) <-chan error {
	s.t.Helper()
	t := s.tcp()
	s.cq.ready.(*callerSignal).waitEndedAt = readClock().Add(time.Hour) // it is quick, on the slowest machine
	end := make(chan error, 1)
	go func() { end <- s.cq.Wait(ctx) }()
	for deadline := time.Now().Add(20 * time.Second); t.role.State() != readrole.Caller; runtime.Gosched() {
		must.That(s.t, time.Now().Before(deadline), "the goroutine that waits does not read: %v", t.role.State())
	}
	return end
}

// roundTrip sends from a to b, whose program answers.
func roundTrip(a, b *side) {
	a.recv(1, 0, 64)
	b.recv(2, 0, 64)
	a.post(SendWR{Op: OpSend, Flags: Unsignaled, SGL: []SGE{a.mr.SGE(64, 64)}})
	b.good()
	b.post(SendWR{Op: OpSend, Flags: Unsignaled, SGL: []SGE{b.mr.SGE(64, 64)}})
	a.good()
}

// A goroutine in CQ.Wait that reads the connection returns for whatever it waits for.
func TestWaiterThatReadsReturns(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(a, b *side, cancel func())
		want error
		then rdmap.Status // of the completion
	}{
		{name: "a message of the peer", do: func(a, b *side, _ func()) {
			b.post(SendWR{Op: OpSend, Flags: Unsignaled, SGL: []SGE{b.mr.SGE(0, 64)}})
		}},
		{name: "a request of another goroutine", do: func(a, b *side, _ func()) {
			a.post(SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(0, 64)}, RemoteSTag: b.mr.STag()})
		}},
		{name: "the end of its context", do: func(_, _ *side, cancel func()) { cancel() }, want: context.Canceled},
		{name: "Close of the QP", do: func(a, _ *side, _ func()) { a.qp.Close() }, then: rdmap.StatusWRFlushErr},
		{name: "Close of the Device", do: func(a, _ *side, _ func()) { a.dev.Close() }, then: rdmap.StatusWRFlushErr},
		{name: "the end of the peer", do: func(_, b *side, _ func()) { b.qp.Close() }, then: rdmap.StatusWRFlushErr},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := newTCPLab(t, nil).join(nil)
			roundTrip(a, b)
			a.recv(3, 0, 64)
			waits, cancel := context.WithCancel(ctx(t))
			defer cancel()
			end := a.startReading(waits)
			row.do(a, b, cancel)
			must.That(t, errors.Is(<-end, row.want), "not %v", row.want)
			if row.want == nil {
				check.Equal(t, "status", a.wc().Status, row.then)
			}
			if row.then == rdmap.StatusSuccess && row.want == nil { // the connection is as good as before
				a.recv(4, 0, 64)
				b.recv(5, 0, 64)
				roundTrip(a, b)
			}
		})
	}
}

// A program that does not come back to CQ.Wait leaves the connection to the receive goroutine:
// what needs no program of this end goes on.
func TestConnectionLeftByItsReaderIsServed(t *testing.T) {
	a, b := newTCPLab(t, nil).join(nil)
	a.recv(1, 0, 64)
	end := a.startReading(ctx(t))
	b.post(SendWR{Op: OpSend, Flags: Unsignaled, SGL: []SGE{b.mr.SGE(0, 64)}})
	must.OK(t, <-end)
	for range 3 {
		b.post(SendWR{Op: OpRead, SGL: []SGE{b.mr.SGE(0, 100)}, RemoteSTag: a.mr.STag()})
		b.good()
	}
}

// Two goroutines wait, each on a CQ of one QP. One of them reads, and wakes the other. When the
// reader goes away, the other need not wait for it.
func TestTwoWaitersOfOneConnection(t *testing.T) {
	x := newTCPLab(t, nil)
	second := must.Get(x.a.CreateCQ(128))(t)
	a, b := newSide(t, x.a, nil, func(c *QPConfig) { c.SendCQ = second }), newSide(t, x.b, nil, nil)
	must.Do(x.connect(a.qp, nil, func(r *Request) error { return r.Accept(b.qp, nil) }))(t)
	a.recv(1, 0, 64)
	for range 20 {
		reader := a.startReading(ctx(t))
		a.post(SendWR{Op: OpRead, SGL: []SGE{a.mr.SGE(0, 64)}, RemoteSTag: b.mr.STag()})
		must.OK(t, second.Wait(ctx(t)))
		var wcs [1]WC
		must.That(t, must.Get(second.Poll(wcs[:]))(t) == 1 && wcs[0].Opcode == rdmap.WCRead, "%+v", wcs)
		b.post(SendWR{Op: OpSend, Flags: Unsignaled, SGL: []SGE{b.mr.SGE(0, 64)}})
		must.OK(t, <-reader)
		a.good()
		a.recv(1, 0, 64)
	}
}

// While much comes the receive goroutine reads: it places what comes while the program works.
func TestBulkIsReadByTheReceiveGoroutine(t *testing.T) {
	a, b := newTCPLab(t, nil).join(nil)
	a.recv(1, 0, 64)
	for range 64 {
		b.post(SendWR{Op: OpWrite, SGL: []SGE{b.mr.SGE(0, 1<<20)}, RemoteSTag: a.mr.STag()})
		b.good()
	}
	b.post(SendWR{Op: OpSend, SGL: []SGE{b.mr.SGE(0, 64)}})
	a.good()
	check.Equal(t, "lent while the buffer is a large one", a.tcp().lends.Load(), false)
}

// A connection over anything but TCP itself is read by its goroutine alone.
func TestOnlyTCPItselfIsLent(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := newTCPConn(must.Get(NewDevice(nil, nil))(t), a, nil)
	defer a.Close()
	check.That(t, !c.lends.Load() && c.socket == nil, "lent")
}
