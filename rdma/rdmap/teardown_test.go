package rdmap_test

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestGracefulClose(t *testing.T) {
	// req 5040-6.2-1: everything posted is finished, also the reads of the peer, then each half
	// closes.
	p := rdmaptest.NewPair(t, nil)
	ra, _ := p.A.Memory(200, ddp.LocalWrite|ddp.RemoteRead)
	rb, _ := p.B.Memory(200, ddp.LocalWrite|ddp.RemoteRead)
	p.B.Recv(10, rb, 0, 10)
	p.B.Recv(11, rb, 0, 10)
	p.A.Post(rdmap.SendWR{ID: 1})
	p.A.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(ra, 0, 150)}, RemoteSTag: rb.STag(),
		RemoteTO: rb.Base()})
	p.B.Post(rdmap.SendWR{ID: 3, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(rb, 0, 150)}, RemoteSTag: ra.STag(),
		RemoteTO: ra.Base()})
	p.B.CutAll()
	p.Arrive(p.B, p.A, 1)
	p.A.QP.Close()
	check.Equal(t, "PostSend after Close", p.A.QP.PostSend(&rdmap.SendWR{}), rdmap.ErrState)
	p.Run()
	rdmaptest.Wants(t, "closer", p.A.SCQ.Take(), rdmap.WC{ID: 1}, rdmap.WC{ID: 2, Opcode: rdmap.WCRead})
	rdmaptest.Wants(t, "peer", p.B.SCQ.Take(), rdmap.WC{ID: 3, Opcode: rdmap.WCRead})
	rdmaptest.Wants(t, "peer's receives", p.B.RCQ.Take(), rdmap.WC{ID: 10, Opcode: rdmap.WCRecv},
		rdmap.WC{ID: 11, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRecv})
	must.That(t, p.A.Finished && p.B.ClosedBy == 1 && !p.B.Finished,
		"closer finished %v, peer told %d times, peer finished %v", p.A.Finished, p.B.ClosedBy, p.B.Finished)
	// The other half still sends; only reads are pointless.
	check.Equal(t, "Read after the peer closed",
		p.B.QP.PostSend(&rdmap.SendWR{Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(rb, 0, 1)}}), rdmap.ErrState)
	p.A.Recv(20, ra, 0, 10)
	p.B.Post(rdmap.SendWR{ID: 4})
	p.Run()
	rdmaptest.Wants(t, "closer's receives", p.A.RCQ.Take(), rdmap.WC{ID: 20, Opcode: rdmap.WCRecv})
	p.B.QP.Close()
	p.Run()
	check.That(t, p.B.Finished && p.A.ClosedBy == 1, "peer finished %v, closer told %d times", p.B.Finished,
		p.A.ClosedBy)
	for _, e := range []*rdmaptest.End{p.A, p.B} {
		e.QP.Stream().Closed(nil)
		e.QP.Ended()
		check.That(t, e.QP.State() == rdmap.StateError && e.QP.Err() == nil && len(e.Failures) == 0,
			"state %v, error %v", e.QP.State(), e.QP.Err())
	}
}

func TestLowerLayerLost(t *testing.T) {
	// req 5040-6.2-1, 5041-6.2.2-2: no Terminate can be sent; all requests complete in error, in
	// order.
	p := rdmaptest.NewPair(t, nil)
	r, _ := p.A.Memory(9, ddp.LocalWrite)
	p.A.Recv(5, r, 0, 9)
	p.A.Recv(6, r, 0, 9)
	p.A.Post(rdmap.SendWR{ID: 1})
	p.A.CutAll()
	p.A.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 9)}})
	p.A.Post(rdmap.SendWR{ID: 3, Op: rdmap.WRWrite, Flags: rdmap.Unsignaled})
	cause := errors.New("association aborted")
	p.A.QP.Stream().Closed(cause)
	rdmaptest.Wants(t, "sends", p.A.SCQ.Take(), rdmap.WC{ID: 1, Status: rdmap.StatusWRFlushErr},
		rdmap.WC{ID: 2, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRead},
		rdmap.WC{ID: 3, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCWrite})
	rdmaptest.Wants(t, "receives", p.A.RCQ.Take(), rdmap.WC{ID: 5, Status: rdmap.StatusWRFlushErr,
		Opcode: rdmap.WCRecv}, rdmap.WC{ID: 6, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRecv})
	var se *rdmap.StreamError
	check.That(t, errors.As(p.A.QP.Err(), &se) && se.Terminate == nil && errors.Is(se, cause) && len(p.A.Failures) == 1,
		"error %v", p.A.QP.Err())
	p.A.QP.Ended()
	rdmaptest.Wants(t, "once", append(p.A.SCQ.Take(), p.A.RCQ.Take()...))
}

func TestTerminateReceived(t *testing.T) {
	var rr [rdmap.ReadRequestLen]byte
	quote := func(tm rdmap.Terminate, b []byte) []byte {
		tm.HasLength, tm.HasDDP, tm.SegLength = true, true, uint16(len(b))
		copy(tm.DDP[:], b[:ddp.Control(b[0]).HeaderLen()])
		return tm.Append(nil)
	}
	for _, row := range []struct {
		name string
		msg  []byte
		want [4]rdmap.Status // Write of 10 octets to STag 5 at 100, Send, Read, Send not yet handed to ddp
	}{
		{"without a header: all are flushed", (&rdmap.Terminate{Layer: rdmap.LayerDDP}).Append(nil), [4]rdmap.Status{5, 5, 5, 5}},
		{"for a segment of the Write",
			quote(rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 1, Code: ddp.CodeBaseBounds},
				rdmaptest.Tagged(0x40, 5, 105, true, nil)),
			[4]rdmap.Status{rdmap.StatusRemAccessErr, 5, 5, 5}},
		{"for another Write", quote(rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 1}, rdmaptest.Tagged(0x40, 5, 111, true, nil)), [4]rdmap.Status{5, 5, 5, 5}},
		{"for a Write to another STag", quote(rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 1}, rdmaptest.Tagged(0x40, 6, 105, true, nil)), [4]rdmap.Status{5, 5, 5, 5}},
		{"for a message of number 0", quote(rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 2}, rdmaptest.Untagged(0, 0, [5]byte{0x43}, 0, true, nil)), [4]rdmap.Status{5, 5, 5, 5}},
		{"for the Send", quote(rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 2, Code: ddp.CodeTooLong},
			rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, nil)),
			[4]rdmap.Status{5, rdmap.StatusRemInvReqErr, 5, 5}},
		{"for a Send that was never sent",
			quote(rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 2, Code: ddp.CodeTooLong},
				rdmaptest.Untagged(0, 2, [5]byte{0x43}, 0, true, nil)),
			[4]rdmap.Status{5, 5, 5, 5}},
		{"for the Read", quote(rdmap.Terminate{EType: rdmap.RemoteProtection, Code: rdmap.CodeAccess, HasRDMA: true,
			RDMA: rr}, rdmaptest.Untagged(1, 1, [5]byte{0x41}, 0, true, nil)),
			[4]rdmap.Status{5, 5, rdmap.StatusRemAccessErr, 5}},
		{"for our Read Response", quote(rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 1}, rdmaptest.Tagged(0x42, 5, 105, true, nil)), [4]rdmap.Status{5, 5, 5, 5}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.ORD = 1 })
			r, _ := p.A.Memory(100, ddp.LocalWrite)
			p.A.Recv(77, r, 0, 10)
			p.A.Post(rdmap.SendWR{ID: 0, Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 10)}, RemoteSTag: 5,
				RemoteTO: 100})
			p.A.Post(rdmap.SendWR{ID: 1})
			p.A.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 9)}})
			p.A.Post(rdmap.SendWR{ID: 3, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 9)}}) // beyond ORD
			p.A.CutAll()
			// req 5040-5.4-2, 5040-5.4-3: a Terminate finds its buffer whatever else is posted.
			p.A.Inject(rdmaptest.Untagged(2, 1, [5]byte{0x47}, 0, true, row.msg))
			// req 5040-6.2.1-2, 5040-7.1-1, 5040-3.2-12
			rdmaptest.Wants(t, "sends", p.A.SCQ.Take(), rdmap.WC{ID: 0, Status: row.want[0], Opcode: rdmap.WCWrite},
				rdmap.WC{ID: 1, Status: row.want[1]},
				rdmap.WC{ID: 2, Status: row.want[2], Opcode: rdmap.WCRead},
				rdmap.WC{ID: 3, Status: row.want[3], Opcode: rdmap.WCRead})
			rdmaptest.Wants(t, "receives", p.A.RCQ.Take(),
				rdmap.WC{ID: 77, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRecv})
			var se *rdmap.StreamError
			// req 5040-5.4-4
			must.That(t, len(p.A.Failures) == 1 && errors.As(p.A.QP.Err(), &se) && se.Remote, "failed %v", p.A.Failures)
			rdmaptest.Same(t, "passed up", se.Terminate.Append(nil), row.msg)
			// req 5040-5.4-8, 5040-6.2.1-3: torn down at once, nothing more is sent.
			check.That(t, p.A.Aborted && p.A.CutAll() == 0, "still sending")
			p.A.QP.Stream().Closed(nil)
			rdmaptest.Wants(t, "once", append(p.A.SCQ.Take(), p.A.RCQ.Take()...))
		})
	}
}

// A Terminate names the Write that it quotes, also an empty one, and not the one that ends where
// that begins.
func TestTerminateNamesTheWriteThatItQuotes(t *testing.T) {
	const flushed, reason = rdmap.StatusWRFlushErr, rdmap.StatusRemAccessErr
	for _, row := range []struct {
		name string
		to   uint64
		want [3]rdmap.Status // Writes of 10 octets to STag 5 at 100, of 10 at 110, of none at 200
	}{
		{"the first octet of the first", 100, [3]rdmap.Status{reason, flushed, flushed}},
		{"the last octet of the first", 109, [3]rdmap.Status{reason, flushed, flushed}},
		{"the first octet of the second", 110, [3]rdmap.Status{flushed, reason, flushed}},
		{"behind the second", 120, [3]rdmap.Status{flushed, flushed, flushed}},
		{"the empty one", 200, [3]rdmap.Status{flushed, flushed, reason}},
		{"behind the empty one", 201, [3]rdmap.Status{flushed, flushed, flushed}},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := rdmaptest.NewPair(t, nil)
			r, _ := p.A.Memory(100, ddp.LocalWrite)
			p.A.Post(rdmap.SendWR{ID: 0, Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 10)}, RemoteSTag: 5,
				RemoteTO: 100})
			p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(r, 10, 10)}, RemoteSTag: 5,
				RemoteTO: 110})
			p.A.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRWrite, RemoteSTag: 5, RemoteTO: 200})
			p.A.CutAll()
			seg := rdmaptest.Tagged(0x40, 5, row.to, true, nil)
			tm := rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 1, Code: ddp.CodeBaseBounds, HasLength: true,
				HasDDP: true, SegLength: uint16(len(seg))}
			copy(tm.DDP[:], seg)
			p.A.Inject(rdmaptest.Untagged(2, 1, [5]byte{0x47}, 0, true, tm.Append(nil)))
			// req 5040-6.2.1-2
			rdmaptest.Wants(t, "Writes", p.A.SCQ.Take(), rdmap.WC{ID: 0, Status: row.want[0], Opcode: rdmap.WCWrite},
				rdmap.WC{ID: 1, Status: row.want[1], Opcode: rdmap.WCWrite},
				rdmap.WC{ID: 2, Status: row.want[2], Opcode: rdmap.WCWrite})
		})
	}
}

func TestLongestTerminateFits(t *testing.T) {
	// req 5040-5.4-3: 52 octets.
	e := rdmaptest.NewEnd(t, 1, nil)
	e.QP.Start()
	tm := rdmap.Terminate{EType: rdmap.RemoteProtection, HasLength: true, HasDDP: true, HasRDMA: true}
	b := tm.Append(nil)
	must.Equal(t, "octets", len(b), 52)
	e.Inject(rdmaptest.Untagged(2, 1, [5]byte{0x47}, 0, false, b[:30]),
		rdmaptest.Untagged(2, 1, [5]byte{0x47}, 30, true, b[30:]))
	check.That(t, len(e.Failures) == 1 && e.Failures[0].Remote && *e.Failures[0].Terminate == tm, "failed %v",
		e.Failures)
}

func TestStreamClosedUnderRequests(t *testing.T) {
	p := rdmaptest.NewPair(t, nil)
	p.A.Post(rdmap.SendWR{ID: 1})
	p.A.CutAll()
	p.A.QP.Stream().Closed(nil)
	rdmaptest.Wants(t, "sends", p.A.SCQ.Take(), rdmap.WC{ID: 1, Status: rdmap.StatusWRFlushErr})
	check.Error(t, "error", p.A.QP.Err(), ddp.ErrClosed)
}

// Memory goes back to the user when the lower layer has written out what refers to it, not while it
// still makes up packets: segments that were cut for them before cannot be detached.
func TestRequestsEndAfterTheTransmission(t *testing.T) {
	p := rdmaptest.NewPair(t, nil)
	r, _ := p.A.Memory(300, 0)
	p.A.Post(rdmap.SendWR{ID: 1, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 150)}})
	p.A.Post(rdmap.SendWR{ID: 2, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 10)}})
	p.A.CutOne()
	p.A.Inject(rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, []byte("there is no receive for it")))
	rdmaptest.Wants(t, "while a message is being cut", p.A.SCQ.Take())
	var seg ddp.Segment
	for p.A.QP.Stream().NextSegment(p.A.Size, &seg) { // the rest, and the Terminate behind it
	}
	rdmaptest.Wants(t, "before the packets are written", p.A.SCQ.Take())
	check.That(t, p.A.Flushes && p.A.Detached == 0 && p.A.QP.State() == rdmap.StateError,
		"flush asked for: %v, detached %d times, state %v", p.A.Flushes, p.A.Detached, p.A.QP.State())
	p.A.Parts = 2
	p.A.Flushes = false
	p.A.QP.Flush()
	rdmaptest.Wants(t, "when a part is copied", p.A.SCQ.Take())
	check.That(t, p.A.Flushes && p.A.Detached == 1, "flush asked for: %v, detached %d times", p.A.Flushes, p.A.Detached)
	p.A.QP.Flush()
	rdmaptest.Wants(t, "then", p.A.SCQ.Take(), rdmap.WC{ID: 1, Status: rdmap.StatusWRFlushErr},
		rdmap.WC{ID: 2, Status: rdmap.StatusWRFlushErr})
	check.Equal(t, "times detached", p.A.Detached, 2)
	p.A.QP.Flush()
	p.A.QP.Ended()
	rdmaptest.Wants(t, "once", p.A.SCQ.Take())
}

// A side that closes still answers all that the peer has asked for, also when the answer has to
// wait: for the one before it, or until earlier ones are acknowledged.
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
			p := rdmaptest.NewPair(t, nil) // IRD and ORD 2
			p.Lazy = true
			src, data := p.B.Memory(300, ddp.RemoteRead)
			rdmaptest.Fill(data, 3)
			dst, got := p.A.Memory(300, ddp.LocalWrite)
			read := func(id uint64) {
				p.A.Post(rdmap.SendWR{ID: id, Op: rdmap.WRRead, RemoteSTag: src.STag(), RemoteTO: src.Base(),
					SGL: []rdmap.SGE{rdmaptest.SGE(dst, 0, 300)}})
			}
			for i := range row.before {
				read(uint64(i))
				p.Run()
				p.A.Ack() // the requests: their headers are free again
			}
			clear(got)
			p.A.SCQ.Take()
			read(100)
			read(101)
			p.A.CutAll()
			p.Arrive(p.A, p.B, len(p.A.Sent))
			if row.cut {
				p.B.CutOne()
			}
			p.B.QP.Close()
			p.Lazy = false
			p.B.Ack()
			p.Run()
			rdmaptest.Wants(t, "the Reads", p.A.SCQ.Take(), rdmap.WC{ID: 100, Opcode: rdmap.WCRead},
				rdmap.WC{ID: 101, Opcode: rdmap.WCRead})
			rdmaptest.Same(t, "what was read", got, data)
			check.That(t, p.B.Finished && p.B.QP.Err() == nil, "closed %v, %v", p.B.Finished, p.B.QP.Err())
		})
	}
}
