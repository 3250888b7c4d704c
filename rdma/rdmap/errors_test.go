package rdmap_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestErrorsOnIncomingMessages(t *testing.T) {
	// req 5040-4.8-8
	const (
		ok  = false
		hdr = true // M and D
	)
	base := uint64(1 << 40)
	for _, row := range []struct {
		name    string
		segs    func(s *rdmaptest.Setup) [][]byte
		layer   rdmap.Layer
		etype   uint8
		code    uint8
		quoted  bool // M and D
		request bool // R
	}{
		{"version 0 on a Send", func(s *rdmaptest.Setup) [][]byte { // req 5040-4.1-6, 5040-7.2-3
			return [][]byte{rdmaptest.Untagged(0, 1, [5]byte{0x03}, 0, true, []byte("x"))}
		}, rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, hdr, false},
		{"version 2 on an RDMA Write", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x80, s.Both.STag(), base, true, []byte("x"))}
		}, rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, hdr, false},
		{"version 3 on a zero-length tagged message", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0xC0, 0, 0, true, nil)}
		}, rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, hdr, false},
		{"version 0 on a Read Request: no RDMA header for a remote operation error", func(s *rdmaptest.Setup) [][]byte {
			b := rdmaptest.ReadSegment(1, s.Both.STag(), base, 1)
			b[1] = 0x01
			return [][]byte{b}
		}, rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, hdr, false}, // req 5040-4.8-5
		{"reserved opcode 12 on queue 0", func(s *rdmaptest.Setup) [][]byte { // req 5040-4.1-11
			return [][]byte{rdmaptest.Untagged(0, 1, [5]byte{0x4C}, 0, true, nil)}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"reserved opcode 15 tagged", func(s *rdmaptest.Setup) [][]byte { // req 5040-7.2-2
			return [][]byte{rdmaptest.Tagged(0x4F, s.Both.STag(), base, true, []byte("x"))}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"Read Request on queue 0", func(s *rdmaptest.Setup) [][]byte { // req 5040-4.2-2
			return [][]byte{rdmaptest.Untagged(0, 1, [5]byte{0x41}, 0, true, nil)}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"Send on queue 1", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Untagged(1, 1, [5]byte{0x43}, 0, true, nil)}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"Send on queue 2", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Untagged(2, 1, [5]byte{0x43}, 0, true, make([]byte, 4))}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"tagged Send", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x43, s.Both.STag(), base, true, []byte("x"))}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"untagged RDMA Write", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Untagged(0, 1, [5]byte{0x40}, 0, true, []byte("x"))}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"Read Response that nothing asked for", func(s *rdmaptest.Setup) [][]byte { // req 5040-5.2.2-4
			return [][]byte{rdmaptest.Tagged(0x42, s.Both.STag(), base, true, []byte("x"))}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"zero-length Read Response that nothing asked for", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x42, 0, 0, true, nil)}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, hdr, false},
		{"Read Request of 27 octets", func(s *rdmaptest.Setup) [][]byte { // req 5040-5.2.1-5
			return [][]byte{rdmaptest.ReadSegment(1, s.Both.STag(), base, 1)[:18+27]}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, hdr, false},
		{"Read Request of 29 octets", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{append(rdmaptest.ReadSegment(1, s.Both.STag(), base, 1), 0)}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, hdr, false},
		{"Read Request of 53 octets", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{append(rdmaptest.ReadSegment(1, s.Both.STag(), base, 1), make([]byte, 25)...)}
		}, rdmap.LayerDDP, 2, ddp.CodeTooLong, hdr, false},
		{"Read of an unknown STag", func(s *rdmaptest.Setup) [][]byte { // req 5040-7.2-5
			return [][]byte{rdmaptest.ReadSegment(1, 12345, base, 1)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeInvalidSTag, hdr, true},
		{"Read of an invalidated STag", func(s *rdmaptest.Setup) [][]byte { return [][]byte{rdmaptest.ReadSegment(1, s.Dead.STag(), base, 1)} }, rdmap.LayerRDMA, 1, rdmap.CodeInvalidSTag, hdr, true},
		{"Read of a write-only STag", func(s *rdmaptest.Setup) [][]byte { // req 5040-7.2-6, 5042-6.3.5-2
			return [][]byte{rdmaptest.ReadSegment(1, s.Write.STag(), base, 1)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeAccess, hdr, true},
		{"Read of another Protection Domain's STag", func(s *rdmaptest.Setup) [][]byte { // req 5040-8.1.1-1
			return [][]byte{rdmaptest.ReadSegment(1, s.Foreign.STag(), base, 1)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeNotAssociated, hdr, true},
		{"Read of another stream's STag", func(s *rdmaptest.Setup) [][]byte { // req 5040-8.1.1-2
			return [][]byte{rdmaptest.ReadSegment(1, s.Scoped.STag(), base, 1)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeNotAssociated, hdr, true},
		{"Read from before the base", func(s *rdmaptest.Setup) [][]byte { // req 5040-7.2-7
			return [][]byte{rdmaptest.ReadSegment(1, s.Both.STag(), base-1, 1)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeBounds, hdr, true},
		{"Read one octet past the end", func(s *rdmaptest.Setup) [][]byte { // req 5040-7.2-8, 5042-6.3.1-1
			return [][]byte{rdmaptest.ReadSegment(1, s.Both.STag(), base, 101)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeBounds, hdr, true},
		{"Read whose source range wraps", func(s *rdmaptest.Setup) [][]byte { // req 5040-7.2-9
			return [][]byte{rdmaptest.ReadSegment(1, s.Both.STag(), 1<<64-1, 2)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeTOWrap, hdr, true},
		{"Read whose source range ends at 2^64 exactly", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.ReadSegment(1, s.Both.STag(), 1<<64-2, 2)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeTOWrap, hdr, true},
		{"Read whose sink range wraps: no response can be sent there", func(s *rdmaptest.Setup) [][]byte {
			b := rdmaptest.ReadSegment(1, s.Both.STag(), base, 2)
			copy(b[18+4:], bytes.Repeat([]byte{0xFF}, 8))
			return [][]byte{b}
		}, rdmap.LayerRDMA, 1, rdmap.CodeTOWrap, hdr, true},
		{"Read of 4 GiB", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.ReadSegment(1, s.Both.STag(), base, 1<<32-1)}
		}, rdmap.LayerRDMA, 1, rdmap.CodeBounds, hdr, true},
		{"RDMA Write without remote write", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x40, s.Read.STag(), base, true, []byte("x"))}
		}, rdmap.LayerDDP, 1, ddp.CodeInvalidSTag, hdr, false},
		{"RDMA Write into a read sink", func(s *rdmaptest.Setup) [][]byte {
			s.Ask()
			return [][]byte{rdmaptest.Tagged(0x40, s.Sink.STag(), base+10, true, []byte("x"))}
		}, rdmap.LayerDDP, 1, ddp.CodeInvalidSTag, hdr, false},
		{"RDMA Write into another Protection Domain", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x40, s.Foreign.STag(), base, true, []byte("x"))}
		}, rdmap.LayerDDP, 1, ddp.CodeNotAssociated, hdr, false},
		// req 5040-8.1.1-3, 5042-6.2.1-1, 5040-3.2-7, 5040-5.1-3
		{"RDMA Write past the end", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x40, s.Both.STag(), base+99, true, []byte("xx"))}
		}, rdmap.LayerDDP, 1, ddp.CodeBaseBounds, hdr, false},
		{"Read Response before the sink", func(s *rdmaptest.Setup) [][]byte {
			return s.Answer(s.Sink, base+9, []byte("x"))
		}, rdmap.LayerDDP, 1, ddp.CodeBaseBounds, hdr, false},
		{"Read Response past the sink", func(s *rdmaptest.Setup) [][]byte { // req 5040-5.2.2-6
			return s.Answer(s.Sink, base+59, []byte("xx"))
		}, rdmap.LayerDDP, 1, ddp.CodeBaseBounds, hdr, false},
		{"Read Response far past the sink", func(s *rdmaptest.Setup) [][]byte {
			return s.Answer(s.Sink, base+70, []byte("x"))
		}, rdmap.LayerDDP, 1, ddp.CodeBaseBounds, hdr, false},
		{"Read Response into a receive buffer", func(s *rdmaptest.Setup) [][]byte {
			return s.Answer(s.Recv, base+10, []byte("x"))
		}, rdmap.LayerDDP, 1, ddp.CodeInvalidSTag, hdr, false},
		{"Read Response into memory with remote write", func(s *rdmaptest.Setup) [][]byte {
			return s.Answer(s.Both, base+10, []byte("x"))
		}, rdmap.LayerDDP, 1, ddp.CodeInvalidSTag, hdr, false},
		{"Read Response too short", func(s *rdmaptest.Setup) [][]byte {
			return s.Answer(s.Sink, base+10, []byte("x"))
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, hdr, false},
		{"empty Read Response to a read of 50 octets", func(s *rdmaptest.Setup) [][]byte {
			return s.Answer(s.Sink, base+10, nil)
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, hdr, false},
		{"Send longer than the buffer", func(s *rdmaptest.Setup) [][]byte { // req 5040-5.3-4
			return [][]byte{rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, make([]byte, 21))}
		}, rdmap.LayerDDP, 2, ddp.CodeTooLong, hdr, false},
		{"Send without a buffer", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Untagged(0, 3, [5]byte{0x43}, 0, true, nil)}
		}, rdmap.LayerDDP, 2, ddp.CodeNoBuffer, hdr, false},
		{"queue 4", func(s *rdmaptest.Setup) [][]byte { // req 5040-3.1-2
			return [][]byte{rdmaptest.Untagged(4, 0, [5]byte{0x43}, 0, true, nil)}
		}, rdmap.LayerDDP, 2, ddp.CodeInvalidQN, hdr, false},
		{"Terminate shorter than it announces", func(s *rdmaptest.Setup) [][]byte { // req 5040-4.8-18, 5040-5.4-5
			return [][]byte{rdmaptest.Untagged(2, 1, [5]byte{0x47}, 0, true, []byte{0x11, 0, 0xC0, 0, 0, 20})}
		}, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, hdr, false},
		{"version 0 on a Terminate", func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Untagged(2, 1, [5]byte{0x07}, 0, true, make([]byte, 4))}
		}, rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, hdr, false},
		// req 5040-4.8-4, 5040-4.8-13
		{"the receive buffer was deregistered: a local catastrophe quotes nothing", func(s *rdmaptest.Setup) [][]byte {
			must.OK(t, s.E.Table.Deregister(s.Recv))
			return [][]byte{rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, []byte("x"))}
		}, rdmap.LayerDDP, 0, 0, ok, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := rdmaptest.NewSetup(t)
			segs := row.segs(s)
			var before [][]byte
			for _, b := range s.Contents {
				before = append(before, bytes.Clone(b))
			}
			s.E.Inject(segs...)
			// A second error, which must not be quoted, and a valid message, which must not count.
			s.E.Inject(rdmaptest.Untagged(9, 1, [5]byte{0x43}, 0, true, nil),
				rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, nil))
			// untagged, queue 2: req 5040-5.4-1
			tm, raw := s.E.LastTerminate()
			// never of the lower layer: req 5040-4.8-17
			check.That(t, tm.Layer == row.layer && uint8(tm.EType) == row.etype && tm.Code == row.code,
				"Terminate says %v", &tm)
			// req 5040-7.1-3, 5040-7.1-4, 5040-7.1-5, 5040-4.8-3, 5040-4.8-4, 5040-4.8-5
			check.That(t, tm.HasLength == row.quoted && tm.HasDDP == row.quoted && tm.HasRDMA == row.request,
				"M %v D %v R %v", tm.HasLength, tm.HasDDP, tm.HasRDMA)
			if row.quoted {
				n := ddp.Control(segs[0][0]).HeaderLen()
				rdmaptest.Same(t, "quoted DDP header", tm.DDP[:n], segs[0][:n])
				check.That(t, int(tm.SegLength) == len(segs[0]), "segment length %d, want %d", tm.SegLength,
					len(segs[0]))
			}
			if row.request { // req 5040-4.8-15
				rdmaptest.Same(t, "quoted Read Request", tm.RDMA[:], segs[0][18:])
			}
			check.That(t, len(raw) <= s.E.Size, "Terminate of %d octets", len(raw))
			for i, b := range s.Contents[:6] { // sink and receive buffers are indeterminate (section 3.1)
				rdmaptest.Same(t, "memory", b, before[i])
			}
			// req 5040-7.1-1, 5040-7-1: the user learns of it once, and gets everything back.
			must.That(t, len(s.E.Failures) == 1 && !s.E.Failures[0].Remote && s.E.QP.State() == rdmap.StateError,
				"failed %v, state %v", s.E.Failures, s.E.QP.State())
			got := s.E.RCQ.Take()
			check.That(t, len(got) == 2 && got[0].ID == 1 && got[1].Status == rdmap.StatusWRFlushErr, "receives %v",
				got)
			// req 5040-5.4-7, 5040-6.2.1-4: nothing follows, the stream closes gracefully.
			check.That(t, s.E.CutAll() == 0 && !s.E.Aborted, "something follows the Terminate")
			s.E.Unacked = len(s.E.Log)
			s.E.Ack()
			check.That(t, s.E.Finished, "the lower layer was not asked to finish")
		})
	}
}

func TestBlamedRequests(t *testing.T) {
	const base = 1 << 40
	send := func(msn uint32, last bool, n int) []byte {
		return rdmaptest.Untagged(rdmap.QueueSend, msn, [5]byte{0x43}, 0, last, make([]byte, n))
	}
	otherVersion := send(1, true, 1)
	otherVersion[0] ^= 3
	const flushed = rdmap.StatusWRFlushErr
	for _, row := range []struct {
		name  string
		read  int // octets of an RDMA Read to offset 10 of the sink; -1 for none
		segs  func(s *rdmaptest.Setup) [][]byte
		sent  rdmap.Status // of the Read
		first rdmap.Status // of the first of two receives; the other is flushed
	}{
		{"a Send too long for its buffer", -1, func(*rdmaptest.Setup) [][]byte { return [][]byte{send(1, true, 21)} }, 0, rdmap.StatusLocLenErr},
		{"a Send too long for its buffer, the one before it not whole", -1, func(*rdmaptest.Setup) [][]byte { return [][]byte{send(1, false, 1), send(2, true, 21)} }, 0, flushed},
		{"a Read Request too long, with the number of the Send", -1, func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{append(rdmaptest.ReadSegment(1, s.Both.STag(), base, 1), make([]byte, 25)...)}
		}, 0, flushed},
		{"a receive buffer that was deregistered", -1, func(s *rdmaptest.Setup) [][]byte { s.Recv.Invalidate(); return [][]byte{send(1, true, 1)} }, 0, rdmap.StatusLocProtErr},
		{"a Send of another DDP version", -1, func(*rdmaptest.Setup) [][]byte { return [][]byte{otherVersion} }, 0, flushed},
		{"a Read Response of another RDMAP version", 50, func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x82, 0, 0, true, nil),
				rdmaptest.Tagged(0x42, s.Sink.STag(), base+10, true, make([]byte, 50))}
		}, flushed, flushed},
		// req 5041-5.2-10
		{"none: a Read Response of nothing names whatever it likes", 0, func(*rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x42, 0xBAD, 1<<64-1, true, nil)}
		}, rdmap.StatusSuccess, rdmap.StatusSuccess},
		{"a Read Response that ends in another sink", 50, func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x42, s.Sink.STag(), base+10, false, make([]byte, 50)),
				rdmaptest.Tagged(0x42, s.Recv.STag(), base+60, true, nil)}
		}, rdmap.StatusBadRespErr, flushed},
		{"a Read Response of the wrong length", 50, func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x42, s.Sink.STag(), base+10, true, []byte("x"))}
		}, rdmap.StatusBadRespErr, flushed},
		{"a Read Response outside its sink", 50, func(s *rdmaptest.Setup) [][]byte {
			return [][]byte{rdmaptest.Tagged(0x42, s.Sink.STag(), base, true, []byte("x"))}
		}, rdmap.StatusBadRespErr, flushed},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := rdmaptest.NewSetup(t)
			if row.read >= 0 {
				s.E.Post(rdmap.SendWR{ID: 9, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(s.Sink, 10, row.read)}})
				s.E.CutAll()
			}
			s.E.Inject(row.segs(s)...)
			s.E.CutAll()
			if row.read >= 0 {
				rdmaptest.Wants(t, "sends", s.E.SCQ.Take(), rdmap.WC{ID: 9, Status: row.sent, Opcode: rdmap.WCRead})
			}
			if row.first != rdmap.StatusSuccess {
				rdmaptest.Wants(t, "receives", s.E.RCQ.Take(),
					rdmap.WC{ID: 1, Status: row.first, Opcode: rdmap.WCRecv},
					rdmap.WC{ID: 2, Status: flushed, Opcode: rdmap.WCRecv})
			}
		})
	}
}

func TestTerminateFollowsTheMessageBeingCut(t *testing.T) {
	// req 5040-5.4-6, 5040-5.4-7, 5040-6.2.1-1: earlier message ends, later ones are flushed
	// unsent.
	p := rdmaptest.NewPair(t, nil)
	src, _ := p.B.Memory(300, 0)
	dst, _ := p.A.Memory(300, ddp.RemoteWrite)
	for i := range 3 {
		p.B.Post(rdmap.SendWR{ID: uint64(i), Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(src, 0, 300)},
			RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
	}
	p.B.CutOne()
	p.B.Inject(rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, nil)) // no buffer
	must.That(t, p.B.QP.State() == rdmap.StateTerminate && len(p.B.Failures) == 1, "state %v, failed %v",
		p.B.QP.State(), p.B.Failures)
	check.Equal(t, "PostSend", p.B.QP.PostSend(&rdmap.SendWR{}), rdmap.ErrState)
	rdmaptest.Wants(t, "while its memory is in use", p.B.SCQ.Take())
	p.B.LastTerminate()
	var whole int
	for _, s := range p.B.Log {
		if ddp.Control(s[0]).Last() {
			whole++
		}
	}
	check.That(t, whole == 2 && p.B.Detached == 1,
		"%d messages on the wire, want the begun one and the Terminate; detached %d", whole, p.B.Detached)
	flushed := []rdmap.WC{{ID: 0, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCWrite},
		{ID: 1, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCWrite},
		{ID: 2, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCWrite}}
	rdmaptest.Wants(t, "flushed", p.B.SCQ.Take(), flushed...)
	p.Run()
	check.That(t, len(p.A.Failures) == 1 && p.A.Failures[0].Remote &&
		p.A.Failures[0].Terminate.Code == ddp.CodeNoBuffer,
		"the peer learned %v", p.A.Failures)
	rdmaptest.Wants(t, "no second completion", p.B.SCQ.Take())
}

func TestSourceRevokedUnderARequest(t *testing.T) {
	// req 5040-7.1-2, 5040-4.8-6: a local error; the Terminate goes out in place of the request,
	// without quotes.
	for _, begun := range []bool{false, true} {
		p := rdmaptest.NewPair(t, nil)
		src, _ := p.A.Memory(300, 0)
		dst, _ := p.B.Memory(300, ddp.RemoteWrite)
		p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(src, 0, 300)},
			RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
		p.A.Post(rdmap.SendWR{ID: 2})
		if begun {
			p.A.CutOne()
		}
		src.Invalidate()
		p.Run()
		tm, _ := p.A.LastTerminate()
		check.That(t, tm == (rdmap.Terminate{Layer: rdmap.LayerRDMA, EType: rdmap.LocalCatastrophic}),
			"begun %v: Terminate %+v", begun, tm)
		rdmaptest.Wants(t, "sends", p.A.SCQ.Take(),
			rdmap.WC{ID: 1, Status: rdmap.StatusLocProtErr, Opcode: rdmap.WCWrite},
			rdmap.WC{ID: 2, Status: rdmap.StatusWRFlushErr})
		check.That(t, errors.Is(p.A.Failures[0], ddp.ErrRevoked) && len(p.B.Failures) == 1 && p.B.Failures[0].Remote,
			"begun %v: %v, peer %v", begun, p.A.Failures, p.B.Failures)
	}
}

func TestSourceRevokedUnderAResponse(t *testing.T) {
	// req 5040-4.8-15, 5040-4.8-16, 5040-3.2-10: 86 octets fit into a segment; the request is
	// quoted as far as it got.
	for _, cut := range []int{0, 1, 2} {
		p := rdmaptest.NewPair(t, nil)
		sink, _ := p.A.Memory(300, ddp.LocalWrite)
		src, _ := p.B.Memory(300, ddp.RemoteRead)
		p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 300)},
			RemoteSTag: src.STag(), RemoteTO: src.Base()})
		p.A.CutAll()
		p.Arrive(p.A, p.B, 1)
		for range cut {
			p.B.CutOne()
		}
		src.Invalidate()
		p.Run()
		tm, _ := p.B.LastTerminate()
		n := uint64(86 * cut)
		want := rdmap.ReadRequest{sink.STag(), sink.Base() + n, uint32(300 - n), src.STag(), src.Base() + n}
		check.That(t, tm.Layer == rdmap.LayerRDMA && tm.EType == rdmap.RemoteProtection &&
			tm.Code == rdmap.CodeInvalidSTag && tm.HasDDP && tm.HasLength && tm.HasRDMA && tm.SegLength == 46,
			"after %d segments: %+v", cut, tm)
		rdmaptest.Same(t, "quoted DDP header", tm.DDP[:], p.A.Log[0][:18])
		got := rdmap.ParseReadRequest(&tm.RDMA)
		check.That(t, got == want, "after %d segments: quoted %+v, want %+v", cut, got, want)
		rdmaptest.Wants(t, "reader", p.A.SCQ.Take(),
			rdmap.WC{ID: 1, Status: rdmap.StatusRemAccessErr, Opcode: rdmap.WCRead})
	}
}

// A Read Request is checked when it is delivered, not when its response has its turn: it ends the
// stream there, and what comes behind it is not delivered.
func TestNothingIsDeliveredBehindAReadWithoutRight(t *testing.T) {
	// req 5040-7.2-6, 5042-6.3.5-1
	s := rdmaptest.NewSetup(t)
	s.E.Post(rdmap.SendWR{ID: 1, SGL: []rdmap.SGE{rdmaptest.SGE(s.Both, 0, 100)}})
	s.E.CutOne() // a response waits for the rest of this message
	s.E.Inject(rdmaptest.ReadSegment(1, s.Write.STag(), s.Write.Base(), 10),
		rdmaptest.Untagged(rdmap.QueueSend, 1, [5]byte{rdmap.Control(rdmap.OpSend)}, 0, true, []byte("behind")))
	check.Equal(t, "state", s.E.QP.State(), rdmap.StateTerminate)
	for _, wc := range s.E.RCQ.Take() {
		check.That(t, wc.Status != rdmap.StatusSuccess, "delivered: %+v", wc)
	}
	tm, _ := s.E.LastTerminate()
	check.That(t, tm.EType == rdmap.RemoteProtection && tm.Code == rdmap.CodeAccess, "the Terminate says %v", &tm)
}

// broken is a device that cannot be read.
type broken struct{ nowhere }

var errBroken = errors.New("disk on fire")

func (broken) ReadAt([]byte, int64) (int, error) { return 0, errBroken }

func TestSourceFailsBetweenRequestAndResponse(t *testing.T) {
	for _, row := range []struct {
		name  string
		spoil func(e *rdmaptest.End, r *ddp.Region) error
		etype rdmap.EType
		code  uint8
	}{
		{"bound to less memory", func(e *rdmaptest.End, r *ddp.Region) error {
			return e.Table.Rebind(r, ddp.Bytes(make([]byte, 5)), r.Base(), ddp.RemoteRead)
		}, rdmap.RemoteProtection, rdmap.CodeBounds},
		{"right to read revoked", func(e *rdmaptest.End, r *ddp.Region) error {
			return e.Table.SetAccess(r, ddp.RemoteWrite) // req 5040-8.1.1-6
		}, rdmap.RemoteProtection, rdmap.CodeAccess},
		{"deregistered", func(e *rdmaptest.End, r *ddp.Region) error { return e.Table.Deregister(r) }, rdmap.RemoteProtection, rdmap.CodeInvalidSTag},
		{"on a device that fails", func(e *rdmaptest.End, r *ddp.Region) error {
			return e.Table.Rebind(r, ddp.Device(broken{}, 100), r.Base(), ddp.RemoteRead)
		}, rdmap.RemoteOperation, rdmap.CodeCatastrophic},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := rdmaptest.NewSetup(t)
			s.E.Post(rdmap.SendWR{ID: 1, SGL: []rdmap.SGE{rdmaptest.SGE(s.Both, 0, 100)}})
			s.E.CutOne() // the response waits for the rest of this message
			seg := rdmaptest.ReadSegment(1, s.Read.STag(), s.Read.Base(), 10)
			s.E.Inject(seg)
			must.OK(t, row.spoil(s.E, s.Read))
			s.E.CutAll()
			s.E.Unacked = len(s.E.Log)
			s.E.Ack()
			tm, _ := s.E.LastTerminate()
			check.That(t, tm.Layer == rdmap.LayerRDMA && tm.EType == row.etype && tm.Code == row.code && tm.HasDDP &&
				tm.HasRDMA == (row.etype == rdmap.RemoteProtection), "Terminate %+v", tm)
			rdmaptest.Same(t, "quoted DDP header", tm.DDP[:], seg[:18])
			if tm.HasRDMA {
				rdmaptest.Same(t, "quoted Read Request", tm.RDMA[:], seg[18:])
			}
		})
	}
}

func TestTerminateCodesOfRDMAP(t *testing.T) {
	// req 5040-4.8-8
	for code, want := range map[uint8]uint8{rdmap.CodeInvalidVersion: 5, rdmap.CodeUnexpectedOpcode: 6,
		rdmap.CodeCatastrophic: 7, rdmap.CodeCatastrophicGlobal: 8,
		rdmap.CodeCannotInvalidate: 9, rdmap.CodeUnspecified: 0xFF} {
		check.Equal(t, "code", code, want)
	}
	check.That(t, rdmap.RemoteProtection == 1 && rdmap.RemoteOperation == 2, "types %d and %d",
		rdmap.RemoteProtection, rdmap.RemoteOperation)
}

// Of two errors the first counts, also when the Terminate that tells of it still waits.
func TestFirstErrorCountsWhileItsTerminateWaits(t *testing.T) {
	// req 5040-7.1-5
	e := rdmaptest.NewEnd(t, 1, nil)
	r, _ := e.Memory(300, 0)
	e.QP.Start()
	e.Post(rdmap.SendWR{Op: rdmap.WRSend, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 300)}})
	e.CutOne()
	e.Inject(rdmaptest.Untagged(rdmap.QueueSend, 1, [5]byte{rdmap.Control(rdmap.OpSend)}, 0, true,
		[]byte("nobody has posted a receive")))
	first := e.QP.Err()
	must.That(t, e.QP.State() == rdmap.StateTerminate && first != nil, "state %v, %v", e.QP.State(), first)
	e.QP.Refuse(rdmap.CodeSetupLocal, errors.New("second"))
	e.QP.Stream().HalfClosed() // which is no news either
	check.That(t, e.QP.Err() == first && len(e.Failures) == 1 && e.ClosedBy == 0,
		"%v, reported %d times, and %d times that the peer has closed", e.QP.Err(), len(e.Failures), e.ClosedBy)
	tm, _ := e.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerDDP && tm.Code == ddp.CodeNoBuffer, "the Terminate says %v", &tm)
}
