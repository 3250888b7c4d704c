package rdmap_test

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestImmediateData(t *testing.T) {
	p := rdmaptest.NewPair(t, nil)
	r, mem := p.B.Memory(16, ddp.LocalWrite)
	p.B.Recv(10, r, 0, 16)
	p.B.Recv(11, r, 0, 0) // a receive of no octets will do
	p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRImm, Immediate: 0x0102030405060708})
	p.A.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRImmSE, Immediate: ^uint64(0)})
	p.Run()
	// req 7306-6.1-1, 7306-6.1-2, 7306-6.3-2, 7306-6.3-3
	rdmaptest.Wants(t, "source", p.A.SCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCImm},
		rdmap.WC{ID: 2, Opcode: rdmap.WCImm})
	got := p.B.RCQ.Take()
	rdmaptest.Wants(t, "sink", got, rdmap.WC{ID: 10, Opcode: rdmap.WCRecvImm},
		rdmap.WC{ID: 11, Opcode: rdmap.WCRecvImm})
	check.That(t, got[0].Immediate == 0x0102030405060708 && !got[0].Solicited && got[1].Immediate == ^uint64(0) &&
		got[1].Solicited && got[0].ByteLen == 0, "completions %+v", got)
	rdmaptest.Same(t, "the receive buffer is consumed, not written", mem, make([]byte, 16))
	// req 7306-4-1, 7306-4.1-1, 7306-4.1-2, 7306-4.1-3, 7306-6.2-1, 7306-6.3-1, 7306-6.3-4,
	// 7306-4.2-1, 7306-10-1: untagged, queue 0, opcodes 8 and 9, no Invalidate STag, the 8 octets
	// behind the header and nothing more.
	rdmaptest.Same(t, "first message", p.A.Log[0],
		rdmaptest.Untagged(0, 1, [5]byte{0x48}, 0, true, []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	rdmaptest.Same(t, "second message", p.A.Log[1],
		rdmaptest.Untagged(0, 2, [5]byte{0x49}, 0, true, []byte{255, 255, 255, 255, 255, 255, 255, 255}))
}

func TestImmediateDataAmongSends(t *testing.T) {
	// req 7306-6.3-3, 7306-6.4-1: delivered in the order sent, whatever the order of arrival;
	// completed in order of submission.
	for _, shared := range []bool{false, true} {
		p := rdmaptest.NewPair(t, nil)
		r, mem := p.B.Memory(300, ddp.LocalWrite)
		var q *rdmap.SharedQueue
		if shared {
			q = must.Get(rdmap.NewSharedQueue(p.B.Table, rdmaptest.PD, 16, 1))(t)
			e := rdmaptest.NewEnd(t, 2, func(c *rdmap.Config) { c.SRQ, c.MaxRecv, c.Table = q, 7, p.B.Table })
			e.Table, p.B = p.B.Table, e
			p.B.QP.Start()
		}
		// More rounds than there are places for Immediate Data, so that each is used again.
		for round := range 8 {
			var want []rdmap.WC
			var segs [][]byte
			for i := range 7 {
				wr := rdmap.RecvWR{ID: uint64(i), SGL: []rdmap.SGE{rdmaptest.SGE(r, i*40, 40)}}
				var err error
				if shared {
					err = q.Post(&wr)
				} else {
					err = p.B.QP.PostRecv(&wr)
				}
				must.OK(t, err)
				if i%2 == 0 {
					p.A.Post(rdmap.SendWR{ID: uint64(i), Inline: []byte{byte(round), byte(i), 3}})
					want = append(want, rdmap.WC{ID: uint64(i), Opcode: rdmap.WCRecv, QPNum: 2, ByteLen: 3})
				} else {
					p.A.Post(rdmap.SendWR{ID: uint64(i), Op: rdmap.WRImm, Immediate: uint64(100*round + i)})
					want = append(want, rdmap.WC{ID: uint64(i), Opcode: rdmap.WCRecvImm, QPNum: 2,
						Immediate: uint64(100*round + i)})
				}
			}
			p.A.CutAll()
			segs, p.A.Sent = p.A.Sent, nil
			placed := make([]ddp.Placed, len(segs))
			for i := len(segs) - 1; i >= 0; i-- {
				p.B.QP.Stream().Place(segs[i], &placed[i])
			}
			for i := range placed {
				p.B.QP.Stream().Deliver(&placed[i])
				p.A.QP.Stream().Acked()
			}
			got := p.B.RCQ.Take()
			must.That(t, len(got) == len(want), "round %d: %v, failed %v", round, got, p.B.Failures)
			for i := range want {
				check.That(t, got[i].Immediate == want[i].Immediate && got[i].Opcode == want[i].Opcode &&
					got[i].ByteLen == want[i].ByteLen &&
					(shared || got[i].ID == want[i].ID), "round %d: %+v, want %+v", round, got[i], want[i])
				if i%2 == 0 && !shared {
					rdmaptest.Same(t, "Send", mem[i*40:i*40+3], []byte{byte(round), byte(i), 3})
				}
			}
			sent := p.A.SCQ.Take()
			check.That(t, len(sent) == 7 && sent[3].ID == 3 && sent[3].Opcode == rdmap.WCImm, "round %d: %v", round,
				sent)
		}
	}
}

func TestWriteWithImmediate(t *testing.T) {
	// req 7306-7-1: the Immediate Data completes when the data is in place.
	p := rdmaptest.NewPair(t, nil)
	src, from := p.A.Memory(300, 0)
	dst, to := p.B.Memory(300, ddp.RemoteWrite|ddp.LocalWrite)
	rdmaptest.Fill(from, 3)
	p.B.Recv(1, dst, 0, 0)
	p.B.Recv(2, dst, 0, 0)
	p.A.Post(rdmap.SendWR{ID: 5, Op: rdmap.WRWriteImm, SGL: []rdmap.SGE{rdmaptest.SGE(src, 0, 300)},
		RemoteSTag: dst.STag(), RemoteTO: dst.Base(), Immediate: 7})
	p.A.CutAll()
	segs := p.A.Sent
	p.A.Sent = nil
	placed := make([]ddp.Placed, len(segs))
	for i := len(segs) - 1; i >= 0; i-- { // the Immediate Data arrives first
		rdmaptest.Wants(t, "not yet", p.B.RCQ.Take())
		p.B.QP.Stream().Place(segs[i], &placed[i])
	}
	for i := range placed {
		rdmaptest.Wants(t, "not yet", p.B.RCQ.Take())
		p.B.QP.Stream().Deliver(&placed[i])
		p.A.QP.Stream().Acked()
	}
	got := p.B.RCQ.Take()
	rdmaptest.Wants(t, "sink", got, rdmap.WC{ID: 1, Opcode: rdmap.WCRecvImm})
	check.Equal(t, "immediate data", got[0].Immediate, 7)
	rdmaptest.Same(t, "data", to, from)
	rdmaptest.Wants(t, "one completion for both", p.A.SCQ.Take(), rdmap.WC{ID: 5, Opcode: rdmap.WCWrite})

	p.A.Post(rdmap.SendWR{ID: 6, Op: rdmap.WRWriteImmSE, Flags: rdmap.Unsignaled | rdmap.Fence, Inline: []byte("x"),
		RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
	p.Run()
	got = p.B.RCQ.Take()
	rdmaptest.Wants(t, "sink", got, rdmap.WC{ID: 2, Opcode: rdmap.WCRecvImm})
	check.That(t, got[0].Solicited && to[0] == 'x', "completion %+v", got[0])
	rdmaptest.Wants(t, "unsignalled", p.A.SCQ.Take())
}

func TestWriteWithImmediateTakesTwoPlaces(t *testing.T) {
	e := rdmaptest.NewEnd(t, 1, func(c *rdmap.Config) { c.MaxSend = 2 })
	e.QP.Start()
	e.Post(rdmap.SendWR{ID: 1})
	for _, op := range []rdmap.WROpcode{rdmap.WRWriteImm, rdmap.WRWriteImmSE} {
		err := e.QP.PostSend(&rdmap.SendWR{Op: op})
		check.That(t, err == rdmap.ErrQueueFull, "one place left for %v: %v", op, err)
	}
	e.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRAtomic}) // for which one is enough
	check.Equal(t, "no place left", e.QP.PostSend(&rdmap.SendWR{}), rdmap.ErrQueueFull)
}

func TestWriteWithImmediateFails(t *testing.T) {
	t.Run("its memory is revoked", func(t *testing.T) {
		// req 7306-8.1-1: a Terminate in place of the messages, with type and code alone.
		p := rdmaptest.NewPair(t, nil)
		src, _ := p.A.Memory(30, 0)
		p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRWriteImm, SGL: []rdmap.SGE{rdmaptest.SGE(src, 0, 30)}})
		src.Invalidate()
		p.Run()
		tm, _ := p.A.LastTerminate()
		check.That(t, tm == (rdmap.Terminate{Layer: rdmap.LayerRDMA, EType: rdmap.LocalCatastrophic}) &&
			len(p.A.Log) == 1, "Terminate %+v, %d messages", tm, len(p.A.Log))
		rdmaptest.Wants(t, "one completion", p.A.SCQ.Take(),
			rdmap.WC{ID: 1, Status: rdmap.StatusLocProtErr, Opcode: rdmap.WCWrite})
	})
	t.Run("the peer refuses the Write", func(t *testing.T) {
		p := rdmaptest.NewPair(t, nil)
		p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRWriteImm, Inline: []byte("x"), RemoteSTag: 99})
		p.A.Post(rdmap.SendWR{ID: 2})
		p.Lazy = true
		p.Run()
		rdmaptest.Wants(t, "one completion", p.A.SCQ.Take(),
			rdmap.WC{ID: 1, Status: rdmap.StatusRemAccessErr, Opcode: rdmap.WCWrite},
			rdmap.WC{ID: 2, Status: rdmap.StatusWRFlushErr})
	})
	t.Run("the peer has no receive for the Immediate Data", func(t *testing.T) {
		p := rdmaptest.NewPair(t, nil)
		p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRWriteImm})
		p.A.Post(rdmap.SendWR{ID: 2})
		p.Lazy = true
		p.Run()
		rdmaptest.Wants(t, "one completion", p.A.SCQ.Take(),
			rdmap.WC{ID: 1, Status: rdmap.StatusRemInvReqErr, Opcode: rdmap.WCWrite},
			rdmap.WC{ID: 2, Status: rdmap.StatusWRFlushErr})
	})
}

func TestImmediateThenAtomic(t *testing.T) {
	// req 7306-7-2, 7306-7-5: the Immediate Data before the atomic completes before the atomic is
	// answered; the one behind it does not wait for the answer.
	p := rdmaptest.NewPair(t, nil)
	r, _ := p.B.Memory(8, ddp.RemoteAtomic|ddp.LocalWrite)
	p.B.Recv(1, r, 0, 0)
	p.B.Recv(2, r, 0, 0)
	p.A.Post(rdmap.SendWR{ID: 0, Op: rdmap.WRImm, Immediate: 1})
	p.A.Post(rdmaptest.Atomic(1, r, 0, rdmap.FetchAdd(1)))
	p.A.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRImm, Immediate: 2})
	p.A.CutAll()
	p.Arrive(p.A, p.B, 1)
	rdmaptest.Wants(t, "before the atomic", p.B.RCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCRecvImm})
	p.Arrive(p.A, p.B, 2)
	rdmaptest.Wants(t, "behind it, unanswered", p.B.RCQ.Take(), rdmap.WC{ID: 2, Opcode: rdmap.WCRecvImm})
	must.Equal(t, "what the answerer was told", len(p.B.Log), 0)
	p.Run()
	rdmaptest.Wants(t, "requester", p.A.SCQ.Take(), rdmap.WC{ID: 0, Opcode: rdmap.WCImm},
		rdmap.WC{ID: 1, Opcode: rdmap.WCAtomic}, rdmap.WC{ID: 2, Opcode: rdmap.WCImm})
}

func TestImmediateDataErrors(t *testing.T) {
	for _, row := range []struct {
		name  string
		seg   []byte
		off   bool // NoImmediate
		layer rdmap.Layer
		etype uint8
		code  uint8
		first rdmap.Status // of the receive that it was for
	}{
		// req 7306-6.3-5, 7306-6.1-3, 7306-4.2-1
		{"7 octets", rdmaptest.Untagged(0, 1, [5]byte{0x48}, 0, true, make([]byte, 7)), false, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, rdmap.StatusLocLenErr},
		{"9 octets, though the receive has room", rdmaptest.Untagged(0, 1, [5]byte{0x48}, 0, true, make([]byte, 9)), false, rdmap.LayerDDP, 2, ddp.CodeTooLong, rdmap.StatusLocLenErr},
		{"none", rdmaptest.Untagged(0, 1, [5]byte{0x49}, 0, true, nil), false, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, rdmap.StatusLocLenErr},
		// req 7306-8.2-2
		{"version 3", rdmaptest.Untagged(0, 1, [5]byte{0xC8}, 0, true, make([]byte, 8)), false, rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, rdmap.StatusWRFlushErr},
		{"tagged", rdmaptest.Tagged(0x48, 1, 1, true, make([]byte, 0)), false, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusWRFlushErr},
		{"on queue 1", rdmaptest.Untagged(1, 1, [5]byte{0x48}, 0, true, make([]byte, 8)), false, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusWRFlushErr},
		// req 7306-8.2-1
		{"offset beyond its 8 octets", rdmaptest.Untagged(0, 1, [5]byte{0x48}, 9, true, []byte{1}), false, rdmap.LayerDDP, 2, ddp.CodeInvalidMO, rdmap.StatusLocLenErr},
		{"no receive", rdmaptest.Untagged(0, 3, [5]byte{0x48}, 0, true, make([]byte, 8)), false, rdmap.LayerDDP, 2, ddp.CodeNoBuffer, rdmap.StatusWRFlushErr},
		// req 7306-1.1-3
		{"not supported", rdmaptest.Untagged(0, 1, [5]byte{0x48}, 0, true, make([]byte, 8)), true, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusWRFlushErr},
		{"with SE, not supported", rdmaptest.Untagged(0, 1, [5]byte{0x49}, 0, true, make([]byte, 8)), true, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusWRFlushErr},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := rdmaptest.NewEnd(t, 1, func(c *rdmap.Config) { c.NoImmediate = row.off })
			e.QP.Start()
			r, mem := e.Memory(16, ddp.LocalWrite)
			e.Recv(1, r, 0, 3) // shorter than Immediate Data
			e.Recv(2, r, 3, 13)
			e.Inject(row.seg)
			tm, _ := e.LastTerminate()
			check.That(t, tm.Layer == row.layer && uint8(tm.EType) == row.etype && tm.Code == row.code,
				"Terminate says %v", &tm)
			// req 7306-8.1-2
			check.That(t, tm.HasDDP && tm.HasLength && !tm.HasRDMA, "M %v D %v R %v", tm.HasLength, tm.HasDDP,
				tm.HasRDMA)
			rdmaptest.Wants(t, "receives", e.RCQ.Take(), rdmap.WC{ID: 1, Status: row.first, Opcode: rdmap.WCRecv},
				rdmap.WC{ID: 2, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRecv})
			rdmaptest.Same(t, "memory", mem, make([]byte, 16))
		})
	}
}

func TestImmediateDataIsRefusedLocally(t *testing.T) {
	e := rdmaptest.NewEnd(t, 1, func(c *rdmap.Config) { c.NoImmediate = true })
	e.QP.Start()
	for _, op := range []rdmap.WROpcode{rdmap.WRImm, rdmap.WRImmSE, rdmap.WRWriteImm, rdmap.WRWriteImmSE} {
		err := e.QP.PostSend(&rdmap.SendWR{Op: op})
		check.That(t, err == rdmap.ErrDisabled, "operation %d: %v", op, err)
	}
	e.Post(rdmap.SendWR{Op: rdmap.WRAtomic})
}

func TestIgnoredFields(t *testing.T) {
	// req 7306-4.1-3: what stands in the Invalidate STag field does not matter.
	e := rdmaptest.NewEnd(t, 1, nil)
	e.QP.Start()
	r, _ := e.Memory(8, ddp.LocalWrite|ddp.RemoteAtomic)
	e.Recv(1, r, 0, 0)
	var b [rdmap.AtomicRequestLen]byte
	(&rdmap.AtomicRequest{STag: r.STag(), TO: r.Base()}).Put(&b)
	tag := r.STag()
	rsvd := [5]byte{0x48, byte(tag >> 24), byte(tag >> 16), byte(tag >> 8), byte(tag)}
	e.Inject(rdmaptest.Untagged(0, 1, rsvd, 0, true, []byte{0, 0, 0, 0, 0, 0, 0, 9}))
	rsvd[0] = 0x4A
	e.Inject(rdmaptest.Untagged(1, 1, rsvd, 0, true, b[:]))
	got := e.RCQ.Take()
	rdmaptest.Wants(t, "receives", got, rdmap.WC{ID: 1, Opcode: rdmap.WCRecvImm})
	check.That(t, !got[0].Invalidated && got[0].InvalidatedSTag == 0 && got[0].Immediate == 9 && r.Valid() &&
		e.CutAll() == 1 && len(e.Failures) == 0, "completion %+v, region valid %v, %v", got[0], r.Valid(), e.Failures)
}
