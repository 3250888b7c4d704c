package rdmap

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

func TestWriteOfEachLengthIsPlaced(t *testing.T) {
	for _, n := range []int{0, 1, 86, 87, 300} {
		t.Run(fmt.Sprintf("%d octets", n), func(t *testing.T) {
			p := newPair(t, nil)
			src, from := p.a.memory(300, 0)
			dst, to := p.b.memory(400, ddp.RemoteWrite)
			fill(from, 1)
			p.a.post(SendWR{ID: 1, Op: WRWrite, SGL: []SGE{sge(src, 0, n)}, RemoteSTag: dst.STag(), RemoteTO: dst.Base() + 9})
			p.run()
			same(t, "data", to[9:9+n], from[:n])
			wants(t, "source", p.a.scq.take(), WC{ID: 1, Opcode: WCWrite})
			// req 5040-5.1-2, 5040-3.2-5, 5040-3.2-6, 5042-2.2.6-1: the sink's user hears nothing.
			wants(t, "sink", p.b.rcq.take())
			// req 5040-5.1-1, 5040-4.1-4: tagged, opcode 0; req 5040-5.1-4, 5040-5.1-9.
			for _, s := range p.a.log {
				v := ddp.TaggedView(s)
				check.That(t, v.Control().Tagged() && v.RsvdULP() == 0x40 && v.STag() == dst.STag(), "header % x", s[:14])
			}
		})
	}
}

func TestReadOfEachLengthIsAnswered(t *testing.T) {
	for _, n := range []int{0, 1, 86, 87, 300} {
		t.Run(fmt.Sprintf("%d octets", n), func(t *testing.T) {
			p := newPair(t, nil)
			sink, to := p.a.memory(400, ddp.LocalWrite) // no remote right: it is our own request
			src, from := p.b.memory(400, ddp.RemoteRead)
			fill(from, 1)
			p.a.post(SendWR{ID: 8, Op: WRRead, SGL: []SGE{sge(sink, 20, n)}, RemoteSTag: src.STag(), RemoteTO: src.Base() + 7})
			p.run()
			same(t, "data", to[20:20+n], from[7:7+n])
			got := p.a.scq.take()
			wants(t, "reader", got, WC{ID: 8, Opcode: WCRead}) // req 5040-5.2.2-3, 5040-3.2-8
			check.Equal(t, "ByteLen", got[0].ByteLen, uint32(n))
			// req 5040-3.2-9, 5040-5.2.1-3, 5040-5.2.1-4: the source's user hears nothing.
			wants(t, "source", append(p.b.rcq.take(), p.b.scq.take()...))
			// req 5040-5.2.1-1, 5040-4.2-1: queue 1, opcode 1, 28 octets.
			must.That(t, len(p.a.log) == 1 && len(p.a.log[0]) == 18+28, "requests: % x", p.a.log)
			v := ddp.UntaggedView(p.a.log[0])
			check.That(t, !v.Control().Tagged() && v.QN() == 1 && v.RsvdULP() == [5]byte{0x41}, "request header % x", v[:18])
			want := ReadRequest{sink.STag(), sink.Base() + 20, uint32(n), src.STag(), src.Base() + 7}
			check.Equal(t, "request", ParseReadRequest((*[28]byte)(v.Payload())), want)
			// req 5040-5.2.2-1, 5040-4.5-1, 5040-4.4-2, 5040-4.4-3, 5040-5.2.1-10, 5040-5.2.1-13
			var length int
			for i, s := range p.b.log {
				v := ddp.TaggedView(s)
				check.That(t, v.Control().Tagged() && v.Control().Last() == (i == len(p.b.log)-1) && v.RsvdULP() == 0x42 &&
					v.STag() == sink.STag() && v.TO() == sink.Base()+20+uint64(length), "response header % x", s[:14])
				length += len(v.Payload())
			}
			check.That(t, length == n && (n != 0 || len(p.b.log) == 1), "%d octets in %d segments", length, len(p.b.log))
		})
	}
}

// No Tagged Offset of a Read of nothing is looked at, and every range that does not wrap is answered.
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
		e := newEnd(t, 1, nil)
		e.qp.Start()
		r := must.Get(e.table.Register(ddp.Spec{PD: testPD, Mem: ddp.Bytes([]byte("0123456789")), Base: top - 10, Access: ddp.RemoteRead}))(t)
		tag := r.STag()
		if !row.src {
			tag = 0xBAD
		}
		b := readSegment(1, tag, row.srcTO, row.size)
		binary.BigEndian.PutUint64(b[18+4:], row.sink)
		e.inject(b)
		n := e.cutAll()
		must.That(t, n == 1 && len(e.failed) == 0, "%s: %d segments, %v", row.name, n, e.failed)
		same(t, row.name, e.log[0], tagged(0x42, 5, row.sink, true, []byte(row.want)))
	}
}

func TestReadRequestWaitsForDelivery(t *testing.T) {
	// req 5040-5.5-8, 5040-B-2: write, then read back: the read returns what was written although its
	// request is placed before the write.
	p := newPair(t, nil)
	r, mem := p.b.memory(10, ddp.RemoteRead|ddp.RemoteWrite)
	var b [ReadRequestLen]byte
	(&ReadRequest{Size: 4, SrcSTag: r.STag(), SrcTO: r.Base()}).Put(&b)
	var write, read ddp.Placed
	s := p.b.qp.Stream()
	s.Place(untagged(1, 1, [5]byte{0x41}, 0, true, b[:]), &read)
	must.That(t, p.b.cutAll() == 0 && p.b.qp.QueuedReads() == 0, "the request was processed at placement")
	s.Place(tagged(0x40, r.STag(), r.Base(), true, []byte("data")), &write)
	s.Deliver(&write)
	s.Deliver(&read)
	p.b.cutAll()
	same(t, "response", p.b.log[0][14:], []byte("data"))
	same(t, "memory", mem[:4], []byte("data"))
}

func TestORDLimitsOutstandingReads(t *testing.T) {
	// req 5040-6.1-3, 5040-6.1-4, 5040-8.1.1-12, 5042-6.4.3.3-3
	p := newPair(t, func(c *Config) { c.ORD, c.IRD = 2, 2 })
	sink, _ := p.a.memory(100, ddp.LocalWrite)
	src, from := p.b.memory(100, ddp.RemoteRead)
	dst, _ := p.b.memory(100, ddp.LocalWrite)
	p.b.recv(1, dst, 0, 9)
	fill(from, 0)
	for i := range 5 {
		p.a.post(SendWR{ID: uint64(i), Op: WRRead, SGL: []SGE{sge(sink, i*10, 10)}, RemoteSTag: src.STag(), RemoteTO: src.Base() + uint64(i)})
	}
	p.a.post(SendWR{ID: 5})
	must.Equal(t, "messages left with ORD 2", p.a.cutAll(), 2)
	p.arrive(p.a, p.b, 2)
	p.a.ack()
	must.Equal(t, "messages while an acknowledged request's response is not delivered", p.a.cutAll(), 0)
	p.b.cutAll()
	p.arrive(p.b, p.a, 1)
	must.Equal(t, "reads for which one response makes room", p.a.cutAll(), 1)
	p.run()
	wants(t, "in order", p.a.scq.take(), WC{ID: 0, Opcode: WCRead}, WC{ID: 1, Opcode: WCRead}, WC{ID: 2, Opcode: WCRead},
		WC{ID: 3, Opcode: WCRead}, WC{ID: 4, Opcode: WCRead}, WC{ID: 5})
}

func TestIRDLimitsInboundReads(t *testing.T) {
	// req 5040-6.1-2, 5040-6.1-5, 5040-5.2.1-2, 5040-5.2.2-2, 5042-6.4.3.3-2, 5042-2.2.8-1: two fit, the
	// third finds no buffer.
	e := newEnd(t, 1, nil)
	e.qp.Start()
	var b [ReadRequestLen]byte
	for i := range uint32(2) {
		e.inject(untagged(1, i+1, [5]byte{0x41}, 0, true, b[:]))
	}
	must.That(t, e.qp.QueuedReads() == 2 && len(e.failed) == 0, "%d reads pending, %v", e.qp.QueuedReads(), e.failed)
	e.cutOne() // one response is out: its buffer is free again
	e.inject(untagged(1, 3, [5]byte{0x41}, 0, true, b[:]))
	must.That(t, len(e.failed) == 0, "%v", e.failed)
	e.inject(untagged(1, 4, [5]byte{0x41}, 0, true, b[:]))
	tm, _ := e.lastWord()
	check.That(t, tm.Layer == LayerDDP && tm.EType == EType(ddp.TypeUntagged) && tm.Code == ddp.CodeNoBuffer, "Terminate %v", &tm)
}

func TestNoReadsAllowed(t *testing.T) {
	e := newEnd(t, 1, func(c *Config) { c.IRD, c.ORD = 0, 0 })
	e.qp.Start()
	sink, _ := e.memory(1, ddp.LocalWrite)
	check.Equal(t, "ORD 0", e.qp.PostSend(&SendWR{Op: WRRead, SGL: []SGE{sge(sink, 0, 1)}}), ErrNoReads)
	var b [ReadRequestLen]byte
	e.inject(untagged(1, 1, [5]byte{0x41}, 0, true, b[:]))
	tm, _ := e.lastWord()
	check.That(t, tm.Layer == LayerDDP && tm.Code == ddp.CodeNoBuffer, "IRD 0: Terminate %v", &tm)
	e = newEnd(t, 1, func(c *Config) { c.IRD, c.ORD = 0, 0 })
	e.qp.Start()
	e.inject(tagged(0x42, 5, 0, true, []byte("x")))
	tm, _ = e.lastWord()
	check.That(t, tm.Layer == LayerDDP && tm.Code == ddp.CodeInvalidSTag, "a Read Response with ORD 0: Terminate %v", &tm)
}

func TestCompletionsKeepTheOrderOfSubmission(t *testing.T) {
	// req 5040-5.5-10, 5040-5.5-12, 5040-5.5-14: the Send is acknowledged long before the read is answered.
	p := newPair(t, nil)
	sink, _ := p.a.memory(10, ddp.LocalWrite)
	src, _ := p.b.memory(10, ddp.RemoteRead)
	dst, _ := p.b.memory(10, ddp.LocalWrite)
	p.b.recv(1, dst, 0, 10)
	p.a.post(SendWR{ID: 1, Op: WRRead, SGL: []SGE{sge(sink, 0, 10)}, RemoteSTag: src.STag(), RemoteTO: src.Base()})
	p.a.post(SendWR{ID: 2})
	p.a.cutAll()
	p.arrive(p.a, p.b, 2)
	p.a.ack()
	wants(t, "before the response", p.a.scq.take())
	// req 5040-5.5-13: the incoming Send completes before the earlier read is answered.
	wants(t, "receiver", p.b.rcq.take(), WC{ID: 1, Opcode: WCRecv})
	p.run()
	wants(t, "after the response", p.a.scq.take(), WC{ID: 1, Opcode: WCRead}, WC{ID: 2})
}

func TestReadHeaderOutlivesItsRead(t *testing.T) {
	// The lower layer may send a Read Request again although the response has come: the octets stay.
	p := newPair(t, func(c *Config) { c.ORD, c.IRD = 1, 4 })
	sink, _ := p.a.memory(10, ddp.LocalWrite)
	src, _ := p.b.memory(10, ddp.RemoteRead)
	p.lazy = true
	for i := range 4 {
		p.a.post(SendWR{ID: uint64(i), Op: WRRead, SGL: []SGE{sge(sink, i, 1)}, RemoteSTag: src.STag(), RemoteTO: src.Base()})
	}
	p.run()
	// Two headers for ORD 1: the third read waits for an acknowledgement, no answered one is held back.
	wants(t, "unacknowledged", p.a.scq.take(), WC{ID: 0, Opcode: WCRead}, WC{ID: 1, Opcode: WCRead})
	p.a.ack()
	p.run()
	wants(t, "acknowledged", p.a.scq.take(), WC{ID: 2, Opcode: WCRead}, WC{ID: 3, Opcode: WCRead})
}

func TestResponsesTakeTurnsWithRequests(t *testing.T) {
	// req 5040-5.2.2-5, 5040-5.2.1-7, 5040-5.5-16: responses in request order; neither side starves.
	p := newPair(t, func(c *Config) { c.ORD, c.IRD = 4, 4 })
	sink, _ := p.a.memory(40, ddp.LocalWrite)
	src, _ := p.b.memory(10, ddp.RemoteRead)
	out, _ := p.b.memory(10, 0)
	dst, _ := p.a.memory(10, ddp.RemoteWrite)
	for i := range 4 {
		p.a.post(SendWR{ID: uint64(i), Op: WRRead, SGL: []SGE{sge(sink, 10*i, 10)}, RemoteSTag: src.STag(), RemoteTO: src.Base()})
	}
	for i := range 8 {
		p.b.post(SendWR{ID: uint64(i), Op: WRWrite, SGL: []SGE{sge(out, 0, 10)}, RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
	}
	p.a.cutAll()
	p.arrive(p.a, p.b, 4)
	p.b.cutAll()
	var order []byte
	var at uint64
	for _, s := range p.b.log {
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
	p := newPair(t, func(c *Config) { c.ORD, c.IRD, c.MaxSend = 1, 1, 64 })
	var srcs, sinks [2]*ddp.Region
	ends := [2]*end{p.a, p.b}
	for i, e := range ends {
		srcs[i], _ = e.memory(1000, ddp.RemoteRead)
		sinks[i], _ = e.memory(1000, ddp.LocalWrite)
	}
	for i, e := range ends {
		for n := range 64 {
			e.post(SendWR{ID: uint64(n), Op: WRRead, SGL: []SGE{sge(sinks[i], 0, 1000)}, RemoteSTag: srcs[1-i].STag(), RemoteTO: srcs[1-i].Base()})
		}
	}
	p.run()
	for _, e := range ends {
		got := e.scq.take()
		check.That(t, len(got) == 64 && got[63].ID == 63 && len(e.failed) == 0, "%d reads completed, %v", len(got), e.failed)
	}
}

func TestUnacknowledgedResponsesAreBounded(t *testing.T) {
	// req 5042-2.2.8-1: with IRD 1 the third response waits until the first is acknowledged.
	e := newEnd(t, 1, func(c *Config) { c.IRD = 1 })
	e.qp.Start()
	for msn := range uint32(3) {
		e.inject(readSegment(msn+1, 0, 0, 0))
		e.cutAll()
	}
	must.That(t, len(e.log) == 2 && e.qp.QueuedReads() == 1, "%d responses sent, %d wait", len(e.log), e.qp.QueuedReads())
	e.qp.Stream().Acked()
	e.cutAll()
	check.That(t, len(e.log) == 3 && e.qp.QueuedReads() == 0 && len(e.failed) == 0,
		"%d responses sent, %d wait, %v", len(e.log), e.qp.QueuedReads(), e.failed)
}

func TestReadSizeTakesAllOf32Bits(t *testing.T) {
	// req 5040-4.4-6
	for _, n := range []uint32{0, 1, 1 << 31, 1<<32 - 1} {
		var b [ReadRequestLen]byte
		(&ReadRequest{Size: n}).Put(&b)
		check.Equal(t, "comes back as", ParseReadRequest(&b).Size, n)
		s := newSetup(t)
		s.e.inject(readSegment(1, s.read.STag(), s.read.Base(), n))
		s.e.cutAll()
		if n > 100 { // in octets: beyond the source buffer, which a smaller unit would not tell
			tm, _ := s.e.lastWord()
			check.That(t, tm.Code == CodeBounds, "a Read of %d octets of a buffer of 100: %v", n, &tm)
		} else if messages(t, s.e.log) != 1 || len(s.e.failed) != 0 {
			t.Errorf("a Read of %d octets is not answered", n)
		}
	}
}

func TestLaterWriteMayBePlacedBeforeTheReadIsAnswered(t *testing.T) {
	// req 5040-B-3
	p := newPair(t, nil)
	sink, got := p.a.memory(4, ddp.LocalWrite)
	src, data := p.b.memory(4, ddp.RemoteRead|ddp.RemoteWrite)
	copy(data, "old.")
	p.a.post(SendWR{ID: 1, Op: WRRead, SGL: []SGE{sge(sink, 0, 4)}, RemoteSTag: src.STag(), RemoteTO: src.Base()})
	p.a.post(SendWR{ID: 2, Op: WRWrite, Inline: []byte("new!"), RemoteSTag: src.STag(), RemoteTO: src.Base()})
	must.Equal(t, "messages cut", p.a.cutAll(), 2)
	var read, write ddp.Placed
	p.b.qp.Stream().Place(p.a.sent[1], &write)
	p.b.qp.Stream().Place(p.a.sent[0], &read)
	p.b.qp.Stream().Deliver(&read)
	p.b.qp.Stream().Deliver(&write)
	p.a.sent, p.a.unacked = nil, 2
	p.run()
	check.Equal(t, "what was read", string(got), "new!")
	wants(t, "source", p.a.scq.take(), WC{ID: 1, Opcode: WCRead}, WC{ID: 2, Opcode: WCWrite})
}

func TestCompletionAtTheSourceIsNotOneAtTheSink(t *testing.T) {
	// req 5040-5.5-5: acknowledged, a Write and a Send are complete, wherever the peer is with them.
	p := newPair(t, nil)
	r, mem := p.b.memory(8, ddp.LocalWrite|ddp.RemoteWrite)
	p.b.recv(1, r, 4, 4)
	p.a.post(SendWR{ID: 1, Op: WRWrite, Inline: []byte("data"), RemoteSTag: r.STag(), RemoteTO: r.Base()})
	p.a.post(SendWR{ID: 2, Inline: []byte("told")})
	p.a.cutAll()
	wants(t, "not acknowledged", p.a.scq.take())
	p.a.unacked = 2
	p.a.ack()
	wants(t, "acknowledged", p.a.scq.take(), WC{ID: 1, Opcode: WCWrite}, WC{ID: 2, Opcode: WCSend})
	same(t, "memory of the peer", mem, make([]byte, 8))
	wants(t, "the peer", p.b.rcq.take())
	p.arrive(p.a, p.b, 2)
	p.a.unacked = 0
	wants(t, "the peer, later", p.b.rcq.take(), WC{ID: 1, Opcode: WCRecv})
	same(t, "memory of the peer", mem, []byte("datatold"))
}

func TestReadQueuesOfStreamsAreSeparate(t *testing.T) {
	// req 5040-8.1.2-6, 5042-6.4.3.3-1, 5042-7.2-1, 5042-A-3: each has its own, of the depth it was made with.
	table := ddp.NewTable(newSeed(3))
	var ends [2]*end
	for i := range ends {
		ends[i] = newEnd(t, byte(10+i), func(c *Config) { c.Table, c.IRD = table, 2 })
		ends[i].table = table
		ends[i].qp.Start()
	}
	src, _ := ends[0].memory(100, ddp.RemoteRead)
	read := func(e *end, msn uint32) { e.inject(readSegment(msn, src.STag(), src.Base(), 10)) }
	read(ends[0], 1)
	read(ends[0], 2)
	read(ends[1], 1)
	read(ends[1], 2)
	read(ends[0], 3) // one too many for the first
	check.That(t, len(ends[0].failed) == 1 && len(ends[1].failed) == 0,
		"errors %v and %v, want one on the stream that asked for too much", ends[0].failed, ends[1].failed)
	ends[1].cutAll()
	check.Equal(t, "responses on the other stream", messages(t, ends[1].log), 2)
}

// The response to the second of two RDMA Reads of one length is no answer to the first: its octets may be
// placed, as segments come in any order, but in its turn it is an error.
func TestResponseToALaterReadDoesNotAnswerTheFirst(t *testing.T) {
	// req 5040-5.5-16
	e := newEnd(t, 1, nil)
	r, mem := e.memory(40, ddp.LocalWrite)
	e.qp.Start()
	for i := range 2 {
		e.post(SendWR{ID: uint64(i), Op: WRRead, RemoteSTag: 77, SGL: []SGE{sge(r, 20*i, 20)}})
	}
	e.cutAll()
	body := make([]byte, 20)
	fill(body, 1)
	e.inject(tagged(Control(OpReadResponse), r.STag(), r.Base()+20, true, body))
	same(t, "placed where the second Read wants it", mem[20:], body)
	must.That(t, e.qp.State() >= StateTerminate, "state %v", e.qp.State())
	wants(t, "both fail, the first for the wrong answer", e.scq.take(),
		WC{ID: 0, Status: StatusBadRespErr, Opcode: WCRead}, WC{ID: 1, Status: StatusWRFlushErr, Opcode: WCRead})
}
