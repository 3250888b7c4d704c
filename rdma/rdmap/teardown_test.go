package rdmap

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

func TestGracefulClose(t *testing.T) {
	// req 5040-6.2-1: everything posted is finished, also the reads of the peer, then each half closes.
	p := newPair(t, nil)
	ra, _ := p.a.memory(200, ddp.LocalWrite|ddp.RemoteRead)
	rb, _ := p.b.memory(200, ddp.LocalWrite|ddp.RemoteRead)
	p.b.recv(10, rb, 0, 10)
	p.b.recv(11, rb, 0, 10)
	p.a.post(SendWR{ID: 1})
	p.a.post(SendWR{ID: 2, Op: WRRead, SGL: []SGE{sge(ra, 0, 150)}, RemoteSTag: rb.STag(), RemoteTO: rb.Base()})
	p.b.post(SendWR{ID: 3, Op: WRRead, SGL: []SGE{sge(rb, 0, 150)}, RemoteSTag: ra.STag(), RemoteTO: ra.Base()})
	p.b.cutAll()
	p.arrive(p.b, p.a, 1)
	p.a.qp.Close()
	check.Equal(t, "PostSend after Close", p.a.qp.PostSend(&SendWR{}), ErrState)
	p.run()
	wants(t, "closer", p.a.scq.take(), WC{ID: 1}, WC{ID: 2, Opcode: WCRead})
	wants(t, "peer", p.b.scq.take(), WC{ID: 3, Opcode: WCRead})
	wants(t, "peer's receives", p.b.rcq.take(), WC{ID: 10, Opcode: WCRecv}, WC{ID: 11, Status: StatusWRFlushErr, Opcode: WCRecv})
	must.That(t, p.a.finish && p.b.closedBy == 1 && !p.b.finish,
		"closer finished %v, peer told %d times, peer finished %v", p.a.finish, p.b.closedBy, p.b.finish)
	// The other half still sends; only reads are pointless.
	check.Equal(t, "Read after the peer closed", p.b.qp.PostSend(&SendWR{Op: WRRead, SGL: []SGE{sge(rb, 0, 1)}}), ErrState)
	p.a.recv(20, ra, 0, 10)
	p.b.post(SendWR{ID: 4})
	p.run()
	wants(t, "closer's receives", p.a.rcq.take(), WC{ID: 20, Opcode: WCRecv})
	p.b.qp.Close()
	p.run()
	check.That(t, p.b.finish && p.a.closedBy == 1, "peer finished %v, closer told %d times", p.b.finish, p.a.closedBy)
	for _, e := range []*end{p.a, p.b} {
		e.qp.Stream().Closed(nil)
		e.qp.Ended()
		check.That(t, e.qp.State() == StateError && e.qp.Err() == nil && len(e.failed) == 0, "state %v, error %v", e.qp.State(), e.qp.Err())
	}
}

func TestLowerLayerLost(t *testing.T) {
	// req 5040-6.2-1, 5041-6.2.2-2: no Terminate can be sent; all requests complete in error, in order.
	p := newPair(t, nil)
	r, _ := p.a.memory(9, ddp.LocalWrite)
	p.a.recv(5, r, 0, 9)
	p.a.recv(6, r, 0, 9)
	p.a.post(SendWR{ID: 1})
	p.a.cutAll()
	p.a.post(SendWR{ID: 2, Op: WRRead, SGL: []SGE{sge(r, 0, 9)}})
	p.a.post(SendWR{ID: 3, Op: WRWrite, Flags: Unsignaled})
	cause := errors.New("association aborted")
	p.a.qp.Stream().Closed(cause)
	wants(t, "sends", p.a.scq.take(), WC{ID: 1, Status: StatusWRFlushErr},
		WC{ID: 2, Status: StatusWRFlushErr, Opcode: WCRead}, WC{ID: 3, Status: StatusWRFlushErr, Opcode: WCWrite})
	wants(t, "receives", p.a.rcq.take(), WC{ID: 5, Status: StatusWRFlushErr, Opcode: WCRecv}, WC{ID: 6, Status: StatusWRFlushErr, Opcode: WCRecv})
	var se *StreamError
	check.That(t, errors.As(p.a.qp.Err(), &se) && se.Terminate == nil && errors.Is(se, cause) && len(p.a.failed) == 1,
		"error %v", p.a.qp.Err())
	p.a.qp.Ended()
	wants(t, "once", append(p.a.scq.take(), p.a.rcq.take()...))
}

func TestTerminateReceived(t *testing.T) {
	var rr [ReadRequestLen]byte
	quote := func(tm Terminate, b []byte) []byte {
		tm.HasLength, tm.HasDDP, tm.SegLength = true, true, uint16(len(b))
		copy(tm.DDP[:], b[:ddp.Control(b[0]).HeaderLen()])
		return tm.Append(nil)
	}
	for _, row := range []struct {
		name string
		msg  []byte
		want [4]Status // Write of 10 octets to STag 5 at 100, Send, Read, Send not yet handed to ddp
	}{
		{"without a header: all are flushed", (&Terminate{Layer: LayerDDP}).Append(nil), [4]Status{5, 5, 5, 5}},
		{"for a segment of the Write", quote(Terminate{Layer: LayerDDP, EType: 1, Code: ddp.CodeBaseBounds}, tagged(0x40, 5, 105, true, nil)),
			[4]Status{StatusRemAccessErr, 5, 5, 5}},
		{"for another Write", quote(Terminate{Layer: LayerDDP, EType: 1}, tagged(0x40, 5, 111, true, nil)), [4]Status{5, 5, 5, 5}},
		{"for a Write to another STag", quote(Terminate{Layer: LayerDDP, EType: 1}, tagged(0x40, 6, 105, true, nil)), [4]Status{5, 5, 5, 5}},
		{"for a message of number 0", quote(Terminate{Layer: LayerDDP, EType: 2}, untagged(0, 0, [5]byte{0x43}, 0, true, nil)), [4]Status{5, 5, 5, 5}},
		{"for the Send", quote(Terminate{Layer: LayerDDP, EType: 2, Code: ddp.CodeTooLong}, untagged(0, 1, [5]byte{0x43}, 0, true, nil)),
			[4]Status{5, StatusRemInvReqErr, 5, 5}},
		{"for a Send that was never sent", quote(Terminate{Layer: LayerDDP, EType: 2, Code: ddp.CodeTooLong}, untagged(0, 2, [5]byte{0x43}, 0, true, nil)),
			[4]Status{5, 5, 5, 5}},
		{"for the Read", quote(Terminate{EType: RemoteProtection, Code: CodeAccess, HasRDMA: true, RDMA: rr}, untagged(1, 1, [5]byte{0x41}, 0, true, nil)),
			[4]Status{5, 5, StatusRemAccessErr, 5}},
		{"for our Read Response", quote(Terminate{Layer: LayerDDP, EType: 1}, tagged(0x42, 5, 105, true, nil)), [4]Status{5, 5, 5, 5}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t, func(c *Config) { c.ORD = 1 })
			r, _ := p.a.memory(100, ddp.LocalWrite)
			p.a.recv(77, r, 0, 10)
			p.a.post(SendWR{ID: 0, Op: WRWrite, SGL: []SGE{sge(r, 0, 10)}, RemoteSTag: 5, RemoteTO: 100})
			p.a.post(SendWR{ID: 1})
			p.a.post(SendWR{ID: 2, Op: WRRead, SGL: []SGE{sge(r, 0, 9)}})
			p.a.post(SendWR{ID: 3, Op: WRRead, SGL: []SGE{sge(r, 0, 9)}}) // beyond ORD
			p.a.cutAll()
			// req 5040-5.4-2, 5040-5.4-3: a Terminate finds its buffer whatever else is posted.
			p.a.inject(untagged(2, 1, [5]byte{0x47}, 0, true, row.msg))
			// req 5040-6.2.1-2, 5040-7.1-1, 5040-3.2-12
			wants(t, "sends", p.a.scq.take(), WC{ID: 0, Status: row.want[0], Opcode: WCWrite}, WC{ID: 1, Status: row.want[1]},
				WC{ID: 2, Status: row.want[2], Opcode: WCRead}, WC{ID: 3, Status: row.want[3], Opcode: WCRead})
			wants(t, "receives", p.a.rcq.take(), WC{ID: 77, Status: StatusWRFlushErr, Opcode: WCRecv})
			var se *StreamError
			must.That(t, len(p.a.failed) == 1 && errors.As(p.a.qp.Err(), &se) && se.Remote, "failed %v", p.a.failed) // req 5040-5.4-4
			same(t, "passed up", se.Terminate.Append(nil), row.msg)
			// req 5040-5.4-8, 5040-6.2.1-3: torn down at once, nothing more is sent.
			check.That(t, p.a.abort && p.a.cutAll() == 0, "still sending")
			p.a.qp.Stream().Closed(nil)
			wants(t, "once", append(p.a.scq.take(), p.a.rcq.take()...))
		})
	}
}

func TestLongestTerminateFits(t *testing.T) {
	// req 5040-5.4-3: 52 octets.
	e := newEnd(t, 1, nil)
	e.qp.Start()
	tm := Terminate{EType: RemoteProtection, HasLength: true, HasDDP: true, HasRDMA: true}
	b := tm.Append(nil)
	must.Equal(t, "octets", len(b), 52)
	e.inject(untagged(2, 1, [5]byte{0x47}, 0, false, b[:30]), untagged(2, 1, [5]byte{0x47}, 30, true, b[30:]))
	check.That(t, len(e.failed) == 1 && e.failed[0].Remote && *e.failed[0].Terminate == tm, "failed %v", e.failed)
}

func TestStreamClosedUnderRequests(t *testing.T) {
	p := newPair(t, nil)
	p.a.post(SendWR{ID: 1})
	p.a.cutAll()
	p.a.qp.Stream().Closed(nil)
	wants(t, "sends", p.a.scq.take(), WC{ID: 1, Status: StatusWRFlushErr})
	check.Error(t, "error", p.a.qp.Err(), ddp.ErrClosed)
}

// Memory goes back to the user when the lower layer has written out what refers to it, not while it still makes up
// packets: segments that were cut for them before cannot be detached.
func TestRequestsEndAfterTheTransmission(t *testing.T) {
	p := newPair(t, nil)
	r, _ := p.a.memory(300, 0)
	p.a.post(SendWR{ID: 1, SGL: []SGE{sge(r, 0, 150)}})
	p.a.post(SendWR{ID: 2, SGL: []SGE{sge(r, 0, 10)}})
	p.a.cutOne()
	p.a.inject(untagged(0, 1, [5]byte{0x43}, 0, true, []byte("there is no receive for it")))
	wants(t, "while a message is being cut", p.a.scq.take())
	var seg ddp.Segment
	for p.a.qp.Stream().NextSegment(p.a.mulpdu, &seg) { // the rest, and the Terminate behind it
	}
	wants(t, "before the packets are written", p.a.scq.take())
	check.That(t, p.a.flush && p.a.detached == 0 && p.a.qp.State() == StateError,
		"flush asked for: %v, detached %d times, state %v", p.a.flush, p.a.detached, p.a.qp.State())
	p.a.parts = 2
	p.a.flush = false
	p.a.qp.Flush()
	wants(t, "when a part is copied", p.a.scq.take())
	check.That(t, p.a.flush && p.a.detached == 1, "flush asked for: %v, detached %d times", p.a.flush, p.a.detached)
	p.a.qp.Flush()
	wants(t, "then", p.a.scq.take(), WC{ID: 1, Status: StatusWRFlushErr}, WC{ID: 2, Status: StatusWRFlushErr})
	check.Equal(t, "times detached", p.a.detached, 2)
	p.a.qp.Flush()
	p.a.qp.Ended()
	wants(t, "once", p.a.scq.take())
}

// Who closes still answers all that the peer has asked for, also when the answer has to wait: for the one
// before it, or until earlier ones are acknowledged.
func TestClosingAnswersEveryRead(t *testing.T) {
	for _, row := range []struct {
		name   string
		before int  // Reads answered before, and not acknowledged
		cut    bool // a response is being cut
	}{
		{"the first response is being cut", 0, true},
		{"no place for a response until one is acknowledged", 4, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t, nil) // IRD and ORD 2
			p.lazy = true
			src, data := p.b.memory(300, ddp.RemoteRead)
			fill(data, 3)
			dst, got := p.a.memory(300, ddp.LocalWrite)
			read := func(id uint64) {
				p.a.post(SendWR{ID: id, Op: WRRead, RemoteSTag: src.STag(), RemoteTO: src.Base(), SGL: []SGE{sge(dst, 0, 300)}})
			}
			for i := range row.before {
				read(uint64(i))
				p.run()
				p.a.ack() // the requests: their headers are free again
			}
			clear(got)
			p.a.scq.take()
			read(100)
			read(101)
			p.a.cutAll()
			p.arrive(p.a, p.b, len(p.a.sent))
			if row.cut {
				p.b.cutOne()
			}
			p.b.qp.Close()
			p.lazy = false
			p.b.ack()
			p.run()
			wants(t, "the Reads", p.a.scq.take(), WC{ID: 100, Opcode: WCRead}, WC{ID: 101, Opcode: WCRead})
			same(t, "what was read", got, data)
			check.That(t, p.b.finish && p.b.qp.Err() == nil, "closed %v, %v", p.b.finish, p.b.qp.Err())
		})
	}
}
