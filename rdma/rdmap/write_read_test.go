package rdmap_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestWriteOfEachLengthIsPlaced(t *testing.T) {
	for _, n := range []int{0, 1, 86, 87, 300} {
		t.Run(fmt.Sprintf("%d octets", n), func(t *testing.T) {
			p := rdmaptest.NewPair(t, nil)
			src, from := p.A.Memory(300, 0)
			dst, to := p.B.Memory(400, ddp.RemoteWrite)
			rdmaptest.Fill(from, 1)
			p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(src, 0, n)},
				RemoteSTag: dst.STag(), RemoteTO: dst.Base() + 9})
			p.Run()
			rdmaptest.Same(t, "data", to[9:9+n], from[:n])
			rdmaptest.Wants(t, "source", p.A.SCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCWrite})
			// req 5040-5.1-2, 5040-3.2-5, 5040-3.2-6, 5042-2.2.6-1: the sink's user hears nothing.
			rdmaptest.Wants(t, "sink", p.B.RCQ.Take())
			// req 5040-5.1-1, 5040-4.1-4: tagged, opcode 0; req 5040-5.1-4, 5040-5.1-9.
			for _, s := range p.A.Log {
				v := ddp.TaggedView(s)
				check.That(t, v.Control().Tagged() && v.RsvdULP() == 0x40 && v.STag() == dst.STag(), "header % x",
					s[:14])
			}
		})
	}
}

func TestReadOfEachLengthIsAnswered(t *testing.T) {
	for _, n := range []int{0, 1, 86, 87, 300} {
		t.Run(fmt.Sprintf("%d octets", n), func(t *testing.T) {
			p := rdmaptest.NewPair(t, nil)
			sink, to := p.A.Memory(400, ddp.LocalWrite) // no remote right: it is our own request
			src, from := p.B.Memory(400, ddp.RemoteRead)
			rdmaptest.Fill(from, 1)
			p.A.Post(rdmap.SendWR{ID: 8, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 20, n)},
				RemoteSTag: src.STag(), RemoteTO: src.Base() + 7})
			p.Run()
			rdmaptest.Same(t, "data", to[20:20+n], from[7:7+n])
			got := p.A.SCQ.Take()
			rdmaptest.Wants(t, "reader", got, rdmap.WC{ID: 8, Opcode: rdmap.WCRead}) // req 5040-5.2.2-3, 5040-3.2-8
			check.Equal(t, "ByteLen", got[0].ByteLen, uint32(n))
			// req 5040-3.2-9, 5040-5.2.1-3, 5040-5.2.1-4: the source's user hears nothing.
			rdmaptest.Wants(t, "source", append(p.B.RCQ.Take(), p.B.SCQ.Take()...))
			// req 5040-5.2.1-1, 5040-4.2-1: queue 1, opcode 1, 28 octets.
			must.That(t, len(p.A.Log) == 1 && len(p.A.Log[0]) == 18+28, "requests: % x", p.A.Log)
			v := ddp.UntaggedView(p.A.Log[0])
			check.That(t, !v.Control().Tagged() && v.QN() == 1 && v.RsvdULP() == [5]byte{0x41}, "request header % x",
				v[:18])
			want := rdmap.ReadRequest{sink.STag(), sink.Base() + 20, uint32(n), src.STag(), src.Base() + 7}
			check.Equal(t, "request", rdmap.ParseReadRequest((*[28]byte)(v.Payload())), want)
			// req 5040-5.2.2-1, 5040-4.5-1, 5040-4.4-2, 5040-4.4-3, 5040-5.2.1-10, 5040-5.2.1-13
			var length int
			for i, s := range p.B.Log {
				v := ddp.TaggedView(s)
				check.That(t, v.Control().Tagged() && v.Control().Last() == (i == len(p.B.Log)-1) &&
					v.RsvdULP() == 0x42 &&
					v.STag() == sink.STag() && v.TO() == sink.Base()+20+uint64(length), "response header % x", s[:14])
				length += len(v.Payload())
			}
			check.That(t, length == n && (n != 0 || len(p.B.Log) == 1), "%d octets in %d segments", length,
				len(p.B.Log))
		})
	}
}

// No Tagged Offset of a Read of nothing is looked at, and every range that does not wrap is
// answered.
func TestReadsUpToTheLastTaggedOffset(t *testing.T) {
	const top = 1<<64 - 1
	for _, row := range []struct {
		name        string
		src         bool // a region that ends at 2^64-1, otherwise no STag of anyone
		srcTO, sink uint64
		size        uint32
		want        string
	}{
		// req 5040-5.2.1-11, 5040-5.2.1-12, 5040-5.2.1-13, 5042-6.3.5-2
		{"nothing, from anywhere to anywhere", false, top, top, 0, ""},
		{"from the last octets there can be", true, top - 4, 0, 4, "6789"}, // req 5040-7.2-9
		{"to the last octets there can be", true, top - 10, top - 10, 10, "0123456789"},
	} {
		e := rdmaptest.NewEnd(t, 1, nil)
		e.QP.Start()
		r := must.Get(e.Table.Register(ddp.Spec{PD: rdmaptest.PD, Mem: ddp.Bytes([]byte("0123456789")),
			Base: top - 10, Access: ddp.RemoteRead}))(t)
		tag := r.STag()
		if !row.src {
			tag = 0xBAD
		}
		b := rdmaptest.ReadSegment(1, tag, row.srcTO, row.size)
		binary.BigEndian.PutUint64(b[18+4:], row.sink)
		e.Inject(b)
		n := e.CutAll()
		must.That(t, n == 1 && len(e.Failures) == 0, "%s: %d segments, %v", row.name, n, e.Failures)
		rdmaptest.Same(t, row.name, e.Log[0], rdmaptest.Tagged(0x42, 5, row.sink, true, []byte(row.want)))
	}
}

func TestReadRequestWaitsForDelivery(t *testing.T) {
	// req 5040-5.5-8, 5040-B-2: write, then read back: the read returns what was written although
	// its request is placed before the write.
	p := rdmaptest.NewPair(t, nil)
	r, mem := p.B.Memory(10, ddp.RemoteRead|ddp.RemoteWrite)
	var b [rdmap.ReadRequestLen]byte
	(&rdmap.ReadRequest{Size: 4, SrcSTag: r.STag(), SrcTO: r.Base()}).Put(&b)
	var write, read ddp.Placed
	s := p.B.QP.Stream()
	s.Place(rdmaptest.Untagged(1, 1, [5]byte{0x41}, 0, true, b[:]), &read)
	must.That(t, p.B.CutAll() == 0 && p.B.QP.QueuedReads() == 0, "the request was processed at placement")
	s.Place(rdmaptest.Tagged(0x40, r.STag(), r.Base(), true, []byte("data")), &write)
	s.Deliver(&write)
	s.Deliver(&read)
	p.B.CutAll()
	rdmaptest.Same(t, "response", p.B.Log[0][14:], []byte("data"))
	rdmaptest.Same(t, "memory", mem[:4], []byte("data"))
}

func TestORDLimitsOutstandingReads(t *testing.T) {
	// req 5040-6.1-3, 5040-6.1-4, 5040-8.1.1-12, 5042-6.4.3.3-3
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.ORD, c.IRD = 2, 2 })
	sink, _ := p.A.Memory(100, ddp.LocalWrite)
	src, from := p.B.Memory(100, ddp.RemoteRead)
	dst, _ := p.B.Memory(100, ddp.LocalWrite)
	p.B.Recv(1, dst, 0, 9)
	rdmaptest.Fill(from, 0)
	for i := range 5 {
		p.A.Post(rdmap.SendWR{ID: uint64(i), Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, i*10, 10)},
			RemoteSTag: src.STag(), RemoteTO: src.Base() + uint64(i)})
	}
	p.A.Post(rdmap.SendWR{ID: 5})
	must.Equal(t, "messages left with ORD 2", p.A.CutAll(), 2)
	p.Arrive(p.A, p.B, 2)
	p.A.Ack()
	must.Equal(t, "messages while an acknowledged request's response is not delivered", p.A.CutAll(), 0)
	p.B.CutAll()
	p.Arrive(p.B, p.A, 1)
	must.Equal(t, "reads for which one response makes room", p.A.CutAll(), 1)
	p.Run()
	rdmaptest.Wants(t, "in order", p.A.SCQ.Take(), rdmap.WC{ID: 0, Opcode: rdmap.WCRead},
		rdmap.WC{ID: 1, Opcode: rdmap.WCRead}, rdmap.WC{ID: 2, Opcode: rdmap.WCRead},
		rdmap.WC{ID: 3, Opcode: rdmap.WCRead}, rdmap.WC{ID: 4, Opcode: rdmap.WCRead}, rdmap.WC{ID: 5})
}

func TestIRDLimitsInboundReads(t *testing.T) {
	// req 5040-6.1-2, 5040-6.1-5, 5040-5.2.1-2, 5040-5.2.2-2, 5042-6.4.3.3-2, 5042-2.2.8-1: two
	// fit, the third finds no buffer.
	e := rdmaptest.NewEnd(t, 1, nil)
	e.QP.Start()
	var b [rdmap.ReadRequestLen]byte
	for i := range uint32(2) {
		e.Inject(rdmaptest.Untagged(1, i+1, [5]byte{0x41}, 0, true, b[:]))
	}
	must.That(t, e.QP.QueuedReads() == 2 && len(e.Failures) == 0, "%d reads pending, %v", e.QP.QueuedReads(),
		e.Failures)
	e.CutOne() // one response is out: its buffer is free again
	e.Inject(rdmaptest.Untagged(1, 3, [5]byte{0x41}, 0, true, b[:]))
	must.That(t, len(e.Failures) == 0, "%v", e.Failures)
	e.Inject(rdmaptest.Untagged(1, 4, [5]byte{0x41}, 0, true, b[:]))
	tm, _ := e.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerDDP && tm.EType == rdmap.EType(ddp.TypeUntagged) &&
		tm.Code == ddp.CodeNoBuffer, "Terminate %v", &tm)
}

func TestNoReadsAllowed(t *testing.T) {
	e := rdmaptest.NewEnd(t, 1, func(c *rdmap.Config) { c.IRD, c.ORD = 0, 0 })
	e.QP.Start()
	sink, _ := e.Memory(1, ddp.LocalWrite)
	check.Equal(t, "ORD 0",
		e.QP.PostSend(&rdmap.SendWR{Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 1)}}), rdmap.ErrNoReads)
	var b [rdmap.ReadRequestLen]byte
	e.Inject(rdmaptest.Untagged(1, 1, [5]byte{0x41}, 0, true, b[:]))
	tm, _ := e.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerDDP && tm.Code == ddp.CodeNoBuffer, "IRD 0: Terminate %v", &tm)
	e = rdmaptest.NewEnd(t, 1, func(c *rdmap.Config) { c.IRD, c.ORD = 0, 0 })
	e.QP.Start()
	e.Inject(rdmaptest.Tagged(0x42, 5, 0, true, []byte("x")))
	tm, _ = e.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerDDP && tm.Code == ddp.CodeInvalidSTag,
		"a Read Response with ORD 0: Terminate %v", &tm)
}

func TestCompletionsKeepTheOrderOfSubmission(t *testing.T) {
	// req 5040-5.5-10, 5040-5.5-12, 5040-5.5-14: the Send is acknowledged long before the read is
	// answered.
	p := rdmaptest.NewPair(t, nil)
	sink, _ := p.A.Memory(10, ddp.LocalWrite)
	src, _ := p.B.Memory(10, ddp.RemoteRead)
	dst, _ := p.B.Memory(10, ddp.LocalWrite)
	p.B.Recv(1, dst, 0, 10)
	p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 10)},
		RemoteSTag: src.STag(), RemoteTO: src.Base()})
	p.A.Post(rdmap.SendWR{ID: 2})
	p.A.CutAll()
	p.Arrive(p.A, p.B, 2)
	p.A.Ack()
	rdmaptest.Wants(t, "before the response", p.A.SCQ.Take())
	// req 5040-5.5-13: the incoming Send completes before the earlier read is answered.
	rdmaptest.Wants(t, "receiver", p.B.RCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCRecv})
	p.Run()
	rdmaptest.Wants(t, "after the response", p.A.SCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCRead}, rdmap.WC{ID: 2})
}

func TestReadHeaderOutlivesItsRead(t *testing.T) {
	// The lower layer may send a Read Request again although the response has come: the octets
	// stay.
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.ORD, c.IRD = 1, 4 })
	sink, _ := p.A.Memory(10, ddp.LocalWrite)
	src, _ := p.B.Memory(10, ddp.RemoteRead)
	p.Lazy = true
	for i := range 4 {
		p.A.Post(rdmap.SendWR{ID: uint64(i), Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, i, 1)},
			RemoteSTag: src.STag(), RemoteTO: src.Base()})
	}
	p.Run()
	// Two headers for ORD 1: the third read waits for an acknowledgement, no answered one is held
	// back.
	rdmaptest.Wants(t, "unacknowledged", p.A.SCQ.Take(), rdmap.WC{ID: 0, Opcode: rdmap.WCRead},
		rdmap.WC{ID: 1, Opcode: rdmap.WCRead})
	p.A.Ack()
	p.Run()
	rdmaptest.Wants(t, "acknowledged", p.A.SCQ.Take(), rdmap.WC{ID: 2, Opcode: rdmap.WCRead},
		rdmap.WC{ID: 3, Opcode: rdmap.WCRead})
}

func TestResponsesTakeTurnsWithRequests(t *testing.T) {
	// req 5040-5.2.2-5, 5040-5.2.1-7, 5040-5.5-16: responses in request order; neither side
	// starves.
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.ORD, c.IRD = 4, 4 })
	sink, _ := p.A.Memory(40, ddp.LocalWrite)
	src, _ := p.B.Memory(10, ddp.RemoteRead)
	out, _ := p.B.Memory(10, 0)
	dst, _ := p.A.Memory(10, ddp.RemoteWrite)
	for i := range 4 {
		p.A.Post(rdmap.SendWR{ID: uint64(i), Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 10*i, 10)},
			RemoteSTag: src.STag(), RemoteTO: src.Base()})
	}
	for i := range 8 {
		p.B.Post(rdmap.SendWR{ID: uint64(i), Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(out, 0, 10)},
			RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
	}
	p.A.CutAll()
	p.Arrive(p.A, p.B, 4)
	p.B.CutAll()
	var order []byte
	var at uint64
	for _, s := range p.B.Log {
		v := ddp.TaggedView(s)
		if v.RsvdULP() == 0x40 {
			order = append(order, 'w')
			continue
		}
		order = append(order, 'r')
		check.Equal(t, "where the response is for", v.TO(), sink.Base()+at)
		at += 10
	}
	check.Equal(t, "order on the wire", string(order), "wrwrwrwrwwww")
}

func TestBothEndsReadAtFullDepth(t *testing.T) {
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.ORD, c.IRD, c.MaxSend = 1, 1, 64 })
	var srcs, sinks [2]*ddp.Region
	sides := [2]*rdmaptest.End{p.A, p.B}
	for i, e := range sides {
		srcs[i], _ = e.Memory(1000, ddp.RemoteRead)
		sinks[i], _ = e.Memory(1000, ddp.LocalWrite)
	}
	for i, e := range sides {
		for n := range 64 {
			e.Post(rdmap.SendWR{ID: uint64(n), Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sinks[i], 0, 1000)},
				RemoteSTag: srcs[1-i].STag(), RemoteTO: srcs[1-i].Base()})
		}
	}
	p.Run()
	for _, e := range sides {
		got := e.SCQ.Take()
		check.That(t, len(got) == 64 && got[63].ID == 63 && len(e.Failures) == 0, "%d reads completed, %v", len(got),
			e.Failures)
	}
}

func TestUnacknowledgedResponsesAreBounded(t *testing.T) {
	// req 5042-2.2.8-1: with IRD 1 the third response waits until the first is acknowledged.
	e := rdmaptest.NewEnd(t, 1, func(c *rdmap.Config) { c.IRD = 1 })
	e.QP.Start()
	for msn := range uint32(3) {
		e.Inject(rdmaptest.ReadSegment(msn+1, 0, 0, 0))
		e.CutAll()
	}
	must.That(t, len(e.Log) == 2 && e.QP.QueuedReads() == 1, "%d responses sent, %d wait", len(e.Log),
		e.QP.QueuedReads())
	e.QP.Stream().Acked()
	e.CutAll()
	check.That(t, len(e.Log) == 3 && e.QP.QueuedReads() == 0 && len(e.Failures) == 0,
		"%d responses sent, %d wait, %v", len(e.Log), e.QP.QueuedReads(), e.Failures)
}

func TestReadSizeTakesAllOf32Bits(t *testing.T) {
	// req 5040-4.4-6
	for _, n := range []uint32{0, 1, 1 << 31, 1<<32 - 1} {
		var b [rdmap.ReadRequestLen]byte
		(&rdmap.ReadRequest{Size: n}).Put(&b)
		check.Equal(t, "comes back as", rdmap.ParseReadRequest(&b).Size, n)
		s := rdmaptest.NewSetup(t)
		s.E.Inject(rdmaptest.ReadSegment(1, s.Read.STag(), s.Read.Base(), n))
		s.E.CutAll()
		if n > 100 { // in octets: beyond the source buffer, which a smaller unit would not tell
			tm, _ := s.E.LastTerminate()
			check.That(t, tm.Code == rdmap.CodeBounds, "a Read of %d octets of a buffer of 100: %v", n, &tm)
		} else if rdmaptest.Messages(t, s.E.Log) != 1 || len(s.E.Failures) != 0 {
			t.Errorf("a Read of %d octets is not answered", n)
		}
	}
}

func TestLaterWriteMayBePlacedBeforeTheReadIsAnswered(t *testing.T) {
	// req 5040-B-3
	p := rdmaptest.NewPair(t, nil)
	sink, got := p.A.Memory(4, ddp.LocalWrite)
	src, data := p.B.Memory(4, ddp.RemoteRead|ddp.RemoteWrite)
	copy(data, "old.")
	p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 4)},
		RemoteSTag: src.STag(), RemoteTO: src.Base()})
	p.A.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRWrite, Inline: []byte("new!"), RemoteSTag: src.STag(),
		RemoteTO: src.Base()})
	must.Equal(t, "messages cut", p.A.CutAll(), 2)
	var read, write ddp.Placed
	p.B.QP.Stream().Place(p.A.Sent[1], &write)
	p.B.QP.Stream().Place(p.A.Sent[0], &read)
	p.B.QP.Stream().Deliver(&read)
	p.B.QP.Stream().Deliver(&write)
	p.A.Sent, p.A.Unacked = nil, 2
	p.Run()
	check.Equal(t, "what was read", string(got), "new!")
	rdmaptest.Wants(t, "source", p.A.SCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCRead},
		rdmap.WC{ID: 2, Opcode: rdmap.WCWrite})
}

func TestCompletionAtTheSourceIsNotOneAtTheSink(t *testing.T) {
	// req 5040-5.5-5: acknowledged, a Write and a Send are complete, wherever the peer is with
	// them.
	p := rdmaptest.NewPair(t, nil)
	r, mem := p.B.Memory(8, ddp.LocalWrite|ddp.RemoteWrite)
	p.B.Recv(1, r, 4, 4)
	p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRWrite, Inline: []byte("data"), RemoteSTag: r.STag(), RemoteTO: r.Base()})
	p.A.Post(rdmap.SendWR{ID: 2, Inline: []byte("told")})
	p.A.CutAll()
	rdmaptest.Wants(t, "not acknowledged", p.A.SCQ.Take())
	p.A.Unacked = 2
	p.A.Ack()
	rdmaptest.Wants(t, "acknowledged", p.A.SCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCWrite},
		rdmap.WC{ID: 2, Opcode: rdmap.WCSend})
	rdmaptest.Same(t, "memory of the peer", mem, make([]byte, 8))
	rdmaptest.Wants(t, "the peer", p.B.RCQ.Take())
	p.Arrive(p.A, p.B, 2)
	p.A.Unacked = 0
	rdmaptest.Wants(t, "the peer, later", p.B.RCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCRecv})
	rdmaptest.Same(t, "memory of the peer", mem, []byte("datatold"))
}

func TestReadQueuesOfStreamsAreSeparate(t *testing.T) {
	// req 5040-8.1.2-6, 5042-6.4.3.3-1, 5042-7.2-1, 5042-A-3: each has its own, of the depth it was
	// made with.
	table := ddp.NewTable(rdmaptest.NewSeed(3))
	var sides [2]*rdmaptest.End
	for i := range sides {
		sides[i] = rdmaptest.NewEnd(t, byte(10+i), func(c *rdmap.Config) { c.Table, c.IRD = table, 2 })
		sides[i].Table = table
		sides[i].QP.Start()
	}
	src, _ := sides[0].Memory(100, ddp.RemoteRead)
	read := func(e *rdmaptest.End, msn uint32) { e.Inject(rdmaptest.ReadSegment(msn, src.STag(), src.Base(), 10)) }
	read(sides[0], 1)
	read(sides[0], 2)
	read(sides[1], 1)
	read(sides[1], 2)
	read(sides[0], 3) // one too many for the first
	check.That(t, len(sides[0].Failures) == 1 && len(sides[1].Failures) == 0,
		"errors %v and %v, want one on the stream that asked for too much", sides[0].Failures, sides[1].Failures)
	sides[1].CutAll()
	check.Equal(t, "responses on the other stream", rdmaptest.Messages(t, sides[1].Log), 2)
}

// The response to the second of two RDMA Reads of one length is no answer to the first: its octets
// may be placed, as segments come in any order, but in its turn it is an error.
func TestResponseToALaterReadDoesNotAnswerTheFirst(t *testing.T) {
	// req 5040-5.5-16
	e := rdmaptest.NewEnd(t, 1, nil)
	r, mem := e.Memory(40, ddp.LocalWrite)
	e.QP.Start()
	for i := range 2 {
		e.Post(rdmap.SendWR{ID: uint64(i), Op: rdmap.WRRead, RemoteSTag: 77,
			SGL: []rdmap.SGE{rdmaptest.SGE(r, 20*i, 20)}})
	}
	e.CutAll()
	body := make([]byte, 20)
	rdmaptest.Fill(body, 1)
	e.Inject(rdmaptest.Tagged(rdmap.Control(rdmap.OpReadResponse), r.STag(), r.Base()+20, true, body))
	rdmaptest.Same(t, "placed where the second Read wants it", mem[20:], body)
	must.That(t, e.QP.State() >= rdmap.StateTerminate, "state %v", e.QP.State())
	rdmaptest.Wants(t, "both fail, the first for the wrong answer", e.SCQ.Take(),
		rdmap.WC{ID: 0, Status: rdmap.StatusBadRespErr, Opcode: rdmap.WCRead},
		rdmap.WC{ID: 1, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRead})
}
