package rdmap

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// setup is what the segments of a hostile peer may name.
type setup struct {
	e        *end
	both     *ddp.Region // remote read and write, 100 octets
	read     *ddp.Region // remote read
	write    *ddp.Region // remote write
	foreign  *ddp.Region // another Protection Domain
	scoped   *ddp.Region // another stream
	dead     *ddp.Region // invalidated
	sink     *ddp.Region // local write: sink of an RDMA Read of 50 octets at offset 10
	recv     *ddp.Region // receive buffers of 20 octets
	contents [][]byte
}

func newSetup(t *testing.T) *setup {
	e := newEnd(t, 1, nil)
	s := &setup{e: e}
	reg := func(pd ddp.PD, a ddp.Access, scope ddp.StreamID) *ddp.Region {
		b := make([]byte, 100)
		fill(b, 1)
		s.contents = append(s.contents, b)
		r := must.Get(e.table.Register(ddp.Spec{PD: pd, Mem: ddp.Bytes(b), Base: 1 << 40, Access: a, Scope: scope}))(t)
		return r
	}
	s.both = reg(testPD, ddp.RemoteRead|ddp.RemoteWrite, 0)
	s.read = reg(testPD, ddp.RemoteRead, 0)
	s.write = reg(testPD, ddp.RemoteWrite, 0)
	s.foreign = reg(testPD+1, ddp.RemoteRead|ddp.RemoteWrite, 0)
	s.scoped = reg(testPD, ddp.RemoteRead|ddp.RemoteWrite, 99)
	s.dead = reg(testPD, ddp.RemoteRead|ddp.RemoteWrite, 0)
	s.dead.Invalidate()
	s.sink = reg(testPD, ddp.LocalWrite, 0)
	s.recv = reg(testPD, ddp.LocalWrite, 0)
	e.qp.Start()
	e.recv(1, s.recv, 0, 20)
	e.recv(2, s.recv, 20, 20)
	return s
}

// ask leaves an RDMA Read of 50 octets outstanding.
func (s *setup) ask() {
	s.e.post(SendWR{ID: 9, Op: WRRead, SGL: []SGE{sge(s.sink, 10, 50)}})
	s.e.cutAll()
}

func readSegment(msn uint32, src ddp.STag, to uint64, size uint32) []byte {
	var b [ReadRequestLen]byte
	(&ReadRequest{SinkSTag: 5, SinkTO: 6, Size: size, SrcSTag: src, SrcTO: to}).Put(&b)
	return untagged(1, msn, [5]byte{0x41}, 0, true, b[:])
}

func TestErrorsOnIncomingMessages(t *testing.T) {
	// req 5040-4.8-8
	const (
		ok  = false
		hdr = true // M and D
	)
	base := uint64(1 << 40)
	for _, row := range []struct {
		name    string
		segs    func(s *setup) [][]byte
		layer   Layer
		etype   uint8
		code    uint8
		quoted  bool // M and D
		request bool // R
	}{
		{"version 0 on a Send", func(s *setup) [][]byte { // req 5040-4.1-6, 5040-7.2-3
			return [][]byte{untagged(0, 1, [5]byte{0x03}, 0, true, []byte("x"))}
		}, LayerRDMA, 2, CodeInvalidVersion, hdr, false},
		{"version 2 on an RDMA Write", func(s *setup) [][]byte {
			return [][]byte{tagged(0x80, s.both.STag(), base, true, []byte("x"))}
		}, LayerRDMA, 2, CodeInvalidVersion, hdr, false},
		{"version 3 on a zero-length tagged message", func(s *setup) [][]byte {
			return [][]byte{tagged(0xC0, 0, 0, true, nil)}
		}, LayerRDMA, 2, CodeInvalidVersion, hdr, false},
		{"version 0 on a Read Request: no RDMA header for a remote operation error", func(s *setup) [][]byte {
			b := readSegment(1, s.both.STag(), base, 1)
			b[1] = 0x01
			return [][]byte{b}
		}, LayerRDMA, 2, CodeInvalidVersion, hdr, false}, // req 5040-4.8-5
		{"reserved opcode 12 on queue 0", func(s *setup) [][]byte { // req 5040-4.1-11
			return [][]byte{untagged(0, 1, [5]byte{0x4C}, 0, true, nil)}
		}, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"reserved opcode 15 tagged", func(s *setup) [][]byte { // req 5040-7.2-2
			return [][]byte{tagged(0x4F, s.both.STag(), base, true, []byte("x"))}
		}, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"Read Request on queue 0", func(s *setup) [][]byte { // req 5040-4.2-2
			return [][]byte{untagged(0, 1, [5]byte{0x41}, 0, true, nil)}
		}, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"Send on queue 1", func(s *setup) [][]byte { return [][]byte{untagged(1, 1, [5]byte{0x43}, 0, true, nil)} }, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"Send on queue 2", func(s *setup) [][]byte {
			return [][]byte{untagged(2, 1, [5]byte{0x43}, 0, true, make([]byte, 4))}
		}, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"tagged Send", func(s *setup) [][]byte {
			return [][]byte{tagged(0x43, s.both.STag(), base, true, []byte("x"))}
		}, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"untagged RDMA Write", func(s *setup) [][]byte {
			return [][]byte{untagged(0, 1, [5]byte{0x40}, 0, true, []byte("x"))}
		}, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"Read Response that nothing asked for", func(s *setup) [][]byte { // req 5040-5.2.2-4
			return [][]byte{tagged(0x42, s.both.STag(), base, true, []byte("x"))}
		}, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"zero-length Read Response that nothing asked for", func(s *setup) [][]byte {
			return [][]byte{tagged(0x42, 0, 0, true, nil)}
		}, LayerRDMA, 2, CodeUnexpectedOpcode, hdr, false},
		{"Read Request of 27 octets", func(s *setup) [][]byte { // req 5040-5.2.1-5
			return [][]byte{readSegment(1, s.both.STag(), base, 1)[:18+27]}
		}, LayerRDMA, 2, CodeUnspecified, hdr, false},
		{"Read Request of 29 octets", func(s *setup) [][]byte {
			return [][]byte{append(readSegment(1, s.both.STag(), base, 1), 0)}
		}, LayerRDMA, 2, CodeUnspecified, hdr, false},
		{"Read Request of 53 octets", func(s *setup) [][]byte {
			return [][]byte{append(readSegment(1, s.both.STag(), base, 1), make([]byte, 25)...)}
		}, LayerDDP, 2, ddp.CodeTooLong, hdr, false},
		{"Read of an unknown STag", func(s *setup) [][]byte { // req 5040-7.2-5
			return [][]byte{readSegment(1, 12345, base, 1)}
		}, LayerRDMA, 1, CodeInvalidSTag, hdr, true},
		{"Read of an invalidated STag", func(s *setup) [][]byte { return [][]byte{readSegment(1, s.dead.STag(), base, 1)} }, LayerRDMA, 1, CodeInvalidSTag, hdr, true},
		{"Read of a write-only STag", func(s *setup) [][]byte { // req 5040-7.2-6, 5042-6.3.5-2
			return [][]byte{readSegment(1, s.write.STag(), base, 1)}
		}, LayerRDMA, 1, CodeAccess, hdr, true},
		{"Read of another Protection Domain's STag", func(s *setup) [][]byte { // req 5040-8.1.1-1
			return [][]byte{readSegment(1, s.foreign.STag(), base, 1)}
		}, LayerRDMA, 1, CodeNotAssociated, hdr, true},
		{"Read of another stream's STag", func(s *setup) [][]byte { // req 5040-8.1.1-2
			return [][]byte{readSegment(1, s.scoped.STag(), base, 1)}
		}, LayerRDMA, 1, CodeNotAssociated, hdr, true},
		{"Read from before the base", func(s *setup) [][]byte { // req 5040-7.2-7
			return [][]byte{readSegment(1, s.both.STag(), base-1, 1)}
		}, LayerRDMA, 1, CodeBounds, hdr, true},
		{"Read one octet past the end", func(s *setup) [][]byte { // req 5040-7.2-8, 5042-6.3.1-1
			return [][]byte{readSegment(1, s.both.STag(), base, 101)}
		}, LayerRDMA, 1, CodeBounds, hdr, true},
		{"Read whose source range wraps", func(s *setup) [][]byte { // req 5040-7.2-9
			return [][]byte{readSegment(1, s.both.STag(), 1<<64-1, 2)}
		}, LayerRDMA, 1, CodeTOWrap, hdr, true},
		{"Read whose source range ends at 2^64 exactly", func(s *setup) [][]byte {
			return [][]byte{readSegment(1, s.both.STag(), 1<<64-2, 2)}
		}, LayerRDMA, 1, CodeTOWrap, hdr, true},
		{"Read whose sink range wraps: no response can be sent there", func(s *setup) [][]byte {
			b := readSegment(1, s.both.STag(), base, 2)
			copy(b[18+4:], bytes.Repeat([]byte{0xFF}, 8))
			return [][]byte{b}
		}, LayerRDMA, 1, CodeTOWrap, hdr, true},
		{"Read of 4 GiB", func(s *setup) [][]byte { return [][]byte{readSegment(1, s.both.STag(), base, 1<<32-1)} }, LayerRDMA, 1, CodeBounds, hdr, true},
		{"RDMA Write without remote write", func(s *setup) [][]byte {
			return [][]byte{tagged(0x40, s.read.STag(), base, true, []byte("x"))}
		}, LayerDDP, 1, ddp.CodeInvalidSTag, hdr, false},
		{"RDMA Write into a read sink", func(s *setup) [][]byte {
			s.ask()
			return [][]byte{tagged(0x40, s.sink.STag(), base+10, true, []byte("x"))}
		}, LayerDDP, 1, ddp.CodeInvalidSTag, hdr, false},
		{"RDMA Write into another Protection Domain", func(s *setup) [][]byte {
			return [][]byte{tagged(0x40, s.foreign.STag(), base, true, []byte("x"))}
		}, LayerDDP, 1, ddp.CodeNotAssociated, hdr, false},
		{"RDMA Write past the end", func(s *setup) [][]byte { // req 5040-8.1.1-3, 5042-6.2.1-1, 5040-3.2-7, 5040-5.1-3
			return [][]byte{tagged(0x40, s.both.STag(), base+99, true, []byte("xx"))}
		}, LayerDDP, 1, ddp.CodeBaseBounds, hdr, false},
		{"Read Response before the sink", func(s *setup) [][]byte {
			s.ask()
			return [][]byte{tagged(0x42, s.sink.STag(), base+9, true, []byte("x"))}
		}, LayerDDP, 1, ddp.CodeBaseBounds, hdr, false},
		{"Read Response past the sink", func(s *setup) [][]byte { // req 5040-5.2.2-6
			s.ask()
			return [][]byte{tagged(0x42, s.sink.STag(), base+59, true, []byte("xx"))}
		}, LayerDDP, 1, ddp.CodeBaseBounds, hdr, false},
		{"Read Response far past the sink", func(s *setup) [][]byte {
			s.ask()
			return [][]byte{tagged(0x42, s.sink.STag(), base+70, true, []byte("x"))}
		}, LayerDDP, 1, ddp.CodeBaseBounds, hdr, false},
		{"Read Response into a receive buffer", func(s *setup) [][]byte {
			s.ask()
			return [][]byte{tagged(0x42, s.recv.STag(), base+10, true, []byte("x"))}
		}, LayerDDP, 1, ddp.CodeInvalidSTag, hdr, false},
		{"Read Response into memory with remote write", func(s *setup) [][]byte {
			s.ask()
			return [][]byte{tagged(0x42, s.both.STag(), base+10, true, []byte("x"))}
		}, LayerDDP, 1, ddp.CodeInvalidSTag, hdr, false},
		{"Read Response too short", func(s *setup) [][]byte {
			s.ask()
			return [][]byte{tagged(0x42, s.sink.STag(), base+10, true, []byte("x"))}
		}, LayerRDMA, 2, CodeUnspecified, hdr, false},
		{"empty Read Response to a read of 50 octets", func(s *setup) [][]byte {
			s.ask()
			return [][]byte{tagged(0x42, s.sink.STag(), base+10, true, nil)}
		}, LayerRDMA, 2, CodeUnspecified, hdr, false},
		{"Send longer than the buffer", func(s *setup) [][]byte { // req 5040-5.3-4
			return [][]byte{untagged(0, 1, [5]byte{0x43}, 0, true, make([]byte, 21))}
		}, LayerDDP, 2, ddp.CodeTooLong, hdr, false},
		{"Send without a buffer", func(s *setup) [][]byte { return [][]byte{untagged(0, 3, [5]byte{0x43}, 0, true, nil)} }, LayerDDP, 2, ddp.CodeNoBuffer, hdr, false},
		{"queue 4", func(s *setup) [][]byte { // req 5040-3.1-2
			return [][]byte{untagged(4, 0, [5]byte{0x43}, 0, true, nil)}
		}, LayerDDP, 2, ddp.CodeInvalidQN, hdr, false},
		{"Terminate shorter than it announces", func(s *setup) [][]byte { // req 5040-4.8-18, 5040-5.4-5
			return [][]byte{untagged(2, 1, [5]byte{0x47}, 0, true, []byte{0x11, 0, 0xC0, 0, 0, 20})}
		}, LayerRDMA, 2, CodeUnspecified, hdr, false},
		{"version 0 on a Terminate", func(s *setup) [][]byte {
			return [][]byte{untagged(2, 1, [5]byte{0x07}, 0, true, make([]byte, 4))}
		}, LayerRDMA, 2, CodeInvalidVersion, hdr, false},
		{"the receive buffer was deregistered: a local catastrophe quotes nothing", func(s *setup) [][]byte { // req 5040-4.8-4, 5040-4.8-13
			must.OK(t, s.e.table.Deregister(s.recv))
			return [][]byte{untagged(0, 1, [5]byte{0x43}, 0, true, []byte("x"))}
		}, LayerDDP, 0, 0, ok, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSetup(t)
			segs := row.segs(s)
			var before [][]byte
			for _, b := range s.contents {
				before = append(before, bytes.Clone(b))
			}
			s.e.inject(segs...)
			// A second error, which must not be quoted, and a valid message, which must not count.
			s.e.inject(untagged(9, 1, [5]byte{0x43}, 0, true, nil), untagged(0, 1, [5]byte{0x43}, 0, true, nil))
			tm, raw := s.e.lastWord()                                                                                             // untagged, queue 2: req 5040-5.4-1
			check.That(t, tm.Layer == row.layer && uint8(tm.EType) == row.etype && tm.Code == row.code, "Terminate says %v", &tm) // never of the lower layer: req 5040-4.8-17
			// req 5040-7.1-3, 5040-7.1-4, 5040-7.1-5, 5040-4.8-3, 5040-4.8-4, 5040-4.8-5
			check.That(t, tm.HasLength == row.quoted && tm.HasDDP == row.quoted && tm.HasRDMA == row.request,
				"M %v D %v R %v", tm.HasLength, tm.HasDDP, tm.HasRDMA)
			if row.quoted {
				n := ddp.Control(segs[0][0]).HeaderLen()
				same(t, "quoted DDP header", tm.DDP[:n], segs[0][:n])
				check.That(t, int(tm.SegLength) == len(segs[0]), "segment length %d, want %d", tm.SegLength, len(segs[0]))
			}
			if row.request { // req 5040-4.8-15
				same(t, "quoted Read Request", tm.RDMA[:], segs[0][18:])
			}
			check.That(t, len(raw) <= s.e.mulpdu, "Terminate of %d octets", len(raw))
			for i, b := range s.contents[:6] { // sink and receive buffers are indeterminate (section 3.1)
				same(t, "memory", b, before[i])
			}
			// req 5040-7.1-1, 5040-7-1: the user learns of it once, and gets everything back.
			must.That(t, len(s.e.failed) == 1 && !s.e.failed[0].Remote && s.e.qp.State() == StateError,
				"failed %v, state %v", s.e.failed, s.e.qp.State())
			got := s.e.rcq.take()
			check.That(t, len(got) == 2 && got[0].ID == 1 && got[1].Status == StatusWRFlushErr, "receives %v", got)
			// req 5040-5.4-7, 5040-6.2.1-4: nothing follows, the stream closes gracefully.
			check.That(t, s.e.cutAll() == 0 && !s.e.abort, "something follows the Terminate")
			s.e.unacked = len(s.e.log)
			s.e.ack()
			check.That(t, s.e.finish, "the lower layer was not asked to finish")
		})
	}
}

func TestBlamedRequests(t *testing.T) {
	const base = 1 << 40
	send := func(msn uint32, last bool, n int) []byte {
		return untagged(QueueSend, msn, [5]byte{0x43}, 0, last, make([]byte, n))
	}
	otherVersion := send(1, true, 1)
	otherVersion[0] ^= 3
	const flushed = StatusWRFlushErr
	for _, row := range []struct {
		name  string
		read  int // octets of an RDMA Read to offset 10 of the sink; -1 for none
		segs  func(s *setup) [][]byte
		sent  Status // of the Read
		first Status // of the first of two receives; the other is flushed
	}{
		{"a Send too long for its buffer", -1, func(*setup) [][]byte { return [][]byte{send(1, true, 21)} }, 0, StatusLocLenErr},
		{"a Send too long for its buffer, the one before it not whole", -1, func(*setup) [][]byte { return [][]byte{send(1, false, 1), send(2, true, 21)} }, 0, flushed},
		{"a Read Request too long, with the number of the Send", -1, func(s *setup) [][]byte {
			return [][]byte{append(readSegment(1, s.both.STag(), base, 1), make([]byte, 25)...)}
		}, 0, flushed},
		{"a receive buffer that was deregistered", -1, func(s *setup) [][]byte { s.recv.Invalidate(); return [][]byte{send(1, true, 1)} }, 0, StatusLocProtErr},
		{"a Send of another DDP version", -1, func(*setup) [][]byte { return [][]byte{otherVersion} }, 0, flushed},
		{"a Read Response of another RDMAP version", 50, func(s *setup) [][]byte {
			return [][]byte{tagged(0x82, 0, 0, true, nil), tagged(0x42, s.sink.STag(), base+10, true, make([]byte, 50))}
		}, flushed, flushed},
		{"none: a Read Response of nothing names whatever it likes", 0, func(*setup) [][]byte { // req 5041-5.2-10
			return [][]byte{tagged(0x42, 0xBAD, 1<<64-1, true, nil)}
		}, StatusSuccess, StatusSuccess},
		{"a Read Response that ends in another sink", 50, func(s *setup) [][]byte {
			return [][]byte{tagged(0x42, s.sink.STag(), base+10, false, make([]byte, 50)), tagged(0x42, s.recv.STag(), base+60, true, nil)}
		}, StatusBadRespErr, flushed},
		{"a Read Response of the wrong length", 50, func(s *setup) [][]byte {
			return [][]byte{tagged(0x42, s.sink.STag(), base+10, true, []byte("x"))}
		}, StatusBadRespErr, flushed},
		{"a Read Response outside its sink", 50, func(s *setup) [][]byte {
			return [][]byte{tagged(0x42, s.sink.STag(), base, true, []byte("x"))}
		}, StatusBadRespErr, flushed},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSetup(t)
			if row.read >= 0 {
				s.e.post(SendWR{ID: 9, Op: WRRead, SGL: []SGE{sge(s.sink, 10, row.read)}})
				s.e.cutAll()
			}
			s.e.inject(row.segs(s)...)
			s.e.cutAll()
			if row.read >= 0 {
				wants(t, "sends", s.e.scq.take(), WC{ID: 9, Status: row.sent, Opcode: WCRead})
			}
			if row.first != StatusSuccess {
				wants(t, "receives", s.e.rcq.take(), WC{ID: 1, Status: row.first, Opcode: WCRecv}, WC{ID: 2, Status: flushed, Opcode: WCRecv})
			}
		})
	}
}

func TestTerminateFollowsTheMessageBeingCut(t *testing.T) {
	// req 5040-5.4-6, 5040-5.4-7, 5040-6.2.1-1: earlier message ends, later ones are flushed unsent.
	p := newPair(t, nil)
	src, _ := p.b.memory(300, 0)
	dst, _ := p.a.memory(300, ddp.RemoteWrite)
	for i := range 3 {
		p.b.post(SendWR{ID: uint64(i), Op: WRWrite, SGL: []SGE{sge(src, 0, 300)}, RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
	}
	p.b.cutOne()
	p.b.inject(untagged(0, 1, [5]byte{0x43}, 0, true, nil)) // no buffer
	must.That(t, p.b.qp.State() == StateTerminate && len(p.b.failed) == 1, "state %v, failed %v", p.b.qp.State(), p.b.failed)
	check.Equal(t, "PostSend", p.b.qp.PostSend(&SendWR{}), ErrState)
	wants(t, "while its memory is in use", p.b.scq.take())
	p.b.lastWord()
	var ends int
	for _, s := range p.b.log {
		if ddp.Control(s[0]).Last() {
			ends++
		}
	}
	check.That(t, ends == 2 && p.b.detached == 1,
		"%d messages on the wire, want the begun one and the Terminate; detached %d", ends, p.b.detached)
	flushed := []WC{{ID: 0, Status: StatusWRFlushErr, Opcode: WCWrite}, {ID: 1, Status: StatusWRFlushErr, Opcode: WCWrite}, {ID: 2, Status: StatusWRFlushErr, Opcode: WCWrite}}
	wants(t, "flushed", p.b.scq.take(), flushed...)
	p.run()
	check.That(t, len(p.a.failed) == 1 && p.a.failed[0].Remote && p.a.failed[0].Terminate.Code == ddp.CodeNoBuffer,
		"the peer learned %v", p.a.failed)
	wants(t, "no second completion", p.b.scq.take())
}

func TestSourceRevokedUnderARequest(t *testing.T) {
	// req 5040-7.1-2, 5040-4.8-6: a local error; the Terminate goes out in place of the request, without quotes.
	for _, begun := range []bool{false, true} {
		p := newPair(t, nil)
		src, _ := p.a.memory(300, 0)
		dst, _ := p.b.memory(300, ddp.RemoteWrite)
		p.a.post(SendWR{ID: 1, Op: WRWrite, SGL: []SGE{sge(src, 0, 300)}, RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
		p.a.post(SendWR{ID: 2})
		if begun {
			p.a.cutOne()
		}
		src.Invalidate()
		p.run()
		tm, _ := p.a.lastWord()
		check.That(t, tm == (Terminate{Layer: LayerRDMA, EType: LocalCatastrophic}), "begun %v: Terminate %+v", begun, tm)
		wants(t, "sends", p.a.scq.take(), WC{ID: 1, Status: StatusLocProtErr, Opcode: WCWrite}, WC{ID: 2, Status: StatusWRFlushErr})
		check.That(t, errors.Is(p.a.failed[0], ddp.ErrRevoked) && len(p.b.failed) == 1 && p.b.failed[0].Remote,
			"begun %v: %v, peer %v", begun, p.a.failed, p.b.failed)
	}
}

func TestSourceRevokedUnderAResponse(t *testing.T) {
	// req 5040-4.8-15, 5040-4.8-16, 5040-3.2-10: 86 octets fit into a segment; the request is quoted as far
	// as it got.
	for _, cut := range []int{0, 1, 2} {
		p := newPair(t, nil)
		sink, _ := p.a.memory(300, ddp.LocalWrite)
		src, _ := p.b.memory(300, ddp.RemoteRead)
		p.a.post(SendWR{ID: 1, Op: WRRead, SGL: []SGE{sge(sink, 0, 300)}, RemoteSTag: src.STag(), RemoteTO: src.Base()})
		p.a.cutAll()
		p.arrive(p.a, p.b, 1)
		for range cut {
			p.b.cutOne()
		}
		src.Invalidate()
		p.run()
		tm, _ := p.b.lastWord()
		n := uint64(86 * cut)
		want := ReadRequest{sink.STag(), sink.Base() + n, uint32(300 - n), src.STag(), src.Base() + n}
		check.That(t, tm.Layer == LayerRDMA && tm.EType == RemoteProtection && tm.Code == CodeInvalidSTag && tm.HasDDP && tm.HasLength && tm.HasRDMA && tm.SegLength == 46, "after %d segments: %+v", cut, tm)
		same(t, "quoted DDP header", tm.DDP[:], p.a.log[0][:18])
		got := ParseReadRequest(&tm.RDMA)
		check.That(t, got == want, "after %d segments: quoted %+v, want %+v", cut, got, want)
		wants(t, "reader", p.a.scq.take(), WC{ID: 1, Status: StatusRemAccessErr, Opcode: WCRead})
	}
}

// A Read Request is checked when it is delivered, not when its response has its turn: it ends the stream there, and what comes
// behind it is not delivered.
func TestNothingIsDeliveredBehindAReadWithoutRight(t *testing.T) {
	// req 5040-7.2-6, 5042-6.3.5-1
	s := newSetup(t)
	s.e.post(SendWR{ID: 1, SGL: []SGE{sge(s.both, 0, 100)}})
	s.e.cutOne() // a response waits for the rest of this message
	s.e.inject(readSegment(1, s.write.STag(), s.write.Base(), 10), untagged(QueueSend, 1, [5]byte{Control(OpSend)}, 0, true, []byte("behind")))
	check.Equal(t, "state", s.e.qp.State(), StateTerminate)
	for _, wc := range s.e.rcq.take() {
		check.That(t, wc.Status != StatusSuccess, "delivered: %+v", wc)
	}
	tm, _ := s.e.lastWord()
	check.That(t, tm.EType == RemoteProtection && tm.Code == CodeAccess, "the Terminate says %v", &tm)
}

// broken is a device that cannot be read.
type broken struct{ nowhere }

var errBroken = errors.New("disk on fire")

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errBroken }

func TestSourceFailsBetweenRequestAndResponse(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(e *end, r *ddp.Region) error
		etype EType
		code  uint8
	}{
		{"bound to less memory", func(e *end, r *ddp.Region) error {
			return e.table.Rebind(r, ddp.Bytes(make([]byte, 5)), r.Base(), ddp.RemoteRead)
		}, RemoteProtection, CodeBounds},
		{"right to read revoked", func(e *end, r *ddp.Region) error {
			return e.table.SetAccess(r, ddp.RemoteWrite) // req 5040-8.1.1-6
		}, RemoteProtection, CodeAccess},
		{"deregistered", func(e *end, r *ddp.Region) error { return e.table.Deregister(r) }, RemoteProtection, CodeInvalidSTag},
		{"on a device that fails", func(e *end, r *ddp.Region) error {
			return e.table.Rebind(r, ddp.Device(broken{}, 100), r.Base(), ddp.RemoteRead)
		}, RemoteOperation, CodeCatastrophic},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newSetup(t)
			s.e.post(SendWR{ID: 1, SGL: []SGE{sge(s.both, 0, 100)}})
			s.e.cutOne() // the response waits for the rest of this message
			seg := readSegment(1, s.read.STag(), s.read.Base(), 10)
			s.e.inject(seg)
			must.OK(t, row.spoil(s.e, s.read))
			s.e.cutAll()
			s.e.unacked = len(s.e.log)
			s.e.ack()
			tm, _ := s.e.lastWord()
			check.That(t, tm.Layer == LayerRDMA && tm.EType == row.etype && tm.Code == row.code && tm.HasDDP && tm.HasRDMA == (row.etype == RemoteProtection), "Terminate %+v", tm)
			same(t, "quoted DDP header", tm.DDP[:], seg[:18])
			if tm.HasRDMA {
				same(t, "quoted Read Request", tm.RDMA[:], seg[18:])
			}
		})
	}
}

func TestTerminateCodesOfRDMAP(t *testing.T) {
	// req 5040-4.8-8
	for code, want := range map[uint8]uint8{CodeInvalidVersion: 5, CodeUnexpectedOpcode: 6, CodeCatastrophic: 7, CodeCatastrophicGlobal: 8,
		CodeCannotInvalidate: 9, CodeUnspecified: 0xFF} {
		check.Equal(t, "code", code, want)
	}
	check.That(t, RemoteProtection == 1 && RemoteOperation == 2, "types %d and %d", RemoteProtection, RemoteOperation)
}

// Of two errors the first counts, also when the Terminate that tells of it still waits.
func TestFirstErrorCountsWhileItsTerminateWaits(t *testing.T) {
	// req 5040-7.1-5
	e := newEnd(t, 1, nil)
	r, _ := e.memory(300, 0)
	e.qp.Start()
	e.post(SendWR{Op: WRSend, SGL: []SGE{sge(r, 0, 300)}})
	e.cutOne()
	e.inject(untagged(QueueSend, 1, [5]byte{Control(OpSend)}, 0, true, []byte("nobody has posted a receive")))
	first := e.qp.Err()
	must.That(t, e.qp.State() == StateTerminate && first != nil, "state %v, %v", e.qp.State(), first)
	e.qp.Refuse(CodeSetupLocal, errors.New("second"))
	e.qp.Stream().HalfClosed() // which is no news either
	check.That(t, e.qp.Err() == first && len(e.failed) == 1 && e.closedBy == 0,
		"%v, reported %d times, and %d times that the peer has closed", e.qp.Err(), len(e.failed), e.closedBy)
	tm, _ := e.lastWord()
	check.That(t, tm.Layer == LayerDDP && tm.Code == ddp.CodeNoBuffer, "the Terminate says %v", &tm)
}
