package rdmap

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

func TestImmediateData(t *testing.T) {
	p := newPair(t, nil)
	r, mem := p.b.memory(16, ddp.LocalWrite)
	p.b.recv(10, r, 0, 16)
	p.b.recv(11, r, 0, 0) // a receive of no octets will do
	p.a.post(SendWR{ID: 1, Op: WRImm, Immediate: 0x0102030405060708})
	p.a.post(SendWR{ID: 2, Op: WRImmSE, Immediate: ^uint64(0)})
	p.run()
	// req 7306-6.1-1, 7306-6.1-2, 7306-6.3-2, 7306-6.3-3
	wants(t, "source", p.a.scq.take(), WC{ID: 1, Opcode: WCImm}, WC{ID: 2, Opcode: WCImm})
	got := p.b.rcq.take()
	wants(t, "sink", got, WC{ID: 10, Opcode: WCRecvImm}, WC{ID: 11, Opcode: WCRecvImm})
	check.That(t, got[0].Immediate == 0x0102030405060708 && !got[0].Solicited && got[1].Immediate == ^uint64(0) && got[1].Solicited && got[0].ByteLen == 0, "completions %+v", got)
	same(t, "the receive buffer is consumed, not written", mem, make([]byte, 16))
	// req 7306-4-1, 7306-4.1-1, 7306-4.1-2, 7306-4.1-3, 7306-6.2-1, 7306-6.3-1, 7306-6.3-4, 7306-4.2-1, 7306-10-1: untagged, queue 0,
	// opcodes 8 and 9, no Invalidate STag, the 8 octets behind the header and nothing more.
	same(t, "first message", p.a.log[0], untagged(0, 1, [5]byte{0x48}, 0, true, []byte{1, 2, 3, 4, 5, 6, 7, 8}))
	same(t, "second message", p.a.log[1], untagged(0, 2, [5]byte{0x49}, 0, true, []byte{255, 255, 255, 255, 255, 255, 255, 255}))
}

func TestImmediateDataAmongSends(t *testing.T) {
	// req 7306-6.3-3, 7306-6.4-1: delivered in the order sent, whatever the order of arrival; completed in order of submission.
	for _, shared := range []bool{false, true} {
		p := newPair(t, nil)
		r, mem := p.b.memory(300, ddp.LocalWrite)
		if shared {
			q := must.Get(NewSharedQueue(p.b.table, testPD, 16, 1))(t)
			e := newEnd(t, 2, func(c *Config) { c.SRQ, c.MaxRecv, c.Table = q, 7, p.b.table })
			e.table, p.b = p.b.table, e
			p.b.qp.Start()
		}
		// More rounds than there are places for Immediate Data, so that each is used again.
		for round := range 8 {
			var want []WC
			var segs [][]byte
			for i := range 7 {
				wr := RecvWR{ID: uint64(i), SGL: []SGE{sge(r, i*40, 40)}}
				var err error
				if shared {
					err = p.b.qp.cfg.SRQ.(*SharedQueue).Post(&wr)
				} else {
					err = p.b.qp.PostRecv(&wr)
				}
				must.OK(t, err)
				if i%2 == 0 {
					p.a.post(SendWR{ID: uint64(i), Inline: []byte{byte(round), byte(i), 3}})
					want = append(want, WC{ID: uint64(i), Opcode: WCRecv, QPNum: 2, ByteLen: 3})
				} else {
					p.a.post(SendWR{ID: uint64(i), Op: WRImm, Immediate: uint64(100*round + i)})
					want = append(want, WC{ID: uint64(i), Opcode: WCRecvImm, QPNum: 2, Immediate: uint64(100*round + i)})
				}
			}
			p.a.cutAll()
			segs, p.a.sent = p.a.sent, nil
			placed := make([]ddp.Placed, len(segs))
			for i := len(segs) - 1; i >= 0; i-- {
				p.b.qp.Stream().Place(segs[i], &placed[i])
			}
			for i := range placed {
				p.b.qp.Stream().Deliver(&placed[i])
				p.a.qp.Stream().Acked()
			}
			got := p.b.rcq.take()
			must.That(t, len(got) == len(want), "round %d: %v, failed %v", round, got, p.b.failed)
			for i := range want {
				check.That(t, got[i].Immediate == want[i].Immediate && got[i].Opcode == want[i].Opcode && got[i].ByteLen == want[i].ByteLen &&
					(shared || got[i].ID == want[i].ID), "round %d: %+v, want %+v", round, got[i], want[i])
				if i%2 == 0 && !shared {
					same(t, "Send", mem[i*40:i*40+3], []byte{byte(round), byte(i), 3})
				}
			}
			sent := p.a.scq.take()
			check.That(t, len(sent) == 7 && sent[3].ID == 3 && sent[3].Opcode == WCImm, "round %d: %v", round, sent)
		}
	}
}

func TestWriteWithImmediate(t *testing.T) {
	// req 7306-7-1: the Immediate Data completes when the data is in place.
	p := newPair(t, nil)
	src, from := p.a.memory(300, 0)
	dst, to := p.b.memory(300, ddp.RemoteWrite|ddp.LocalWrite)
	fill(from, 3)
	p.b.recv(1, dst, 0, 0)
	p.b.recv(2, dst, 0, 0)
	p.a.post(SendWR{ID: 5, Op: WRWriteImm, SGL: []SGE{sge(src, 0, 300)}, RemoteSTag: dst.STag(), RemoteTO: dst.Base(), Immediate: 7})
	p.a.cutAll()
	segs := p.a.sent
	p.a.sent = nil
	placed := make([]ddp.Placed, len(segs))
	for i := len(segs) - 1; i >= 0; i-- { // the Immediate Data arrives first
		wants(t, "not yet", p.b.rcq.take())
		p.b.qp.Stream().Place(segs[i], &placed[i])
	}
	for i := range placed {
		wants(t, "not yet", p.b.rcq.take())
		p.b.qp.Stream().Deliver(&placed[i])
		p.a.qp.Stream().Acked()
	}
	got := p.b.rcq.take()
	wants(t, "sink", got, WC{ID: 1, Opcode: WCRecvImm})
	check.Equal(t, "immediate data", got[0].Immediate, 7)
	same(t, "data", to, from)
	wants(t, "one completion for both", p.a.scq.take(), WC{ID: 5, Opcode: WCWrite})

	p.a.post(SendWR{ID: 6, Op: WRWriteImmSE, Flags: Unsignaled | Fence, Inline: []byte("x"), RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
	p.run()
	got = p.b.rcq.take()
	wants(t, "sink", got, WC{ID: 2, Opcode: WCRecvImm})
	check.That(t, got[0].Solicited && to[0] == 'x', "completion %+v", got[0])
	wants(t, "unsignalled", p.a.scq.take())
}

func TestWriteWithImmediateTakesTwoPlaces(t *testing.T) {
	e := newEnd(t, 1, func(c *Config) { c.MaxSend = 2 })
	e.qp.Start()
	e.post(SendWR{ID: 1})
	for _, op := range []WROpcode{WRWriteImm, WRWriteImmSE} {
		err := e.qp.PostSend(&SendWR{Op: op})
		check.That(t, err == ErrQueueFull, "one place left for %v: %v", op, err)
	}
	e.post(SendWR{ID: 2, Op: WRAtomic}) // for which one is enough
	check.Equal(t, "no place left", e.qp.PostSend(&SendWR{}), ErrQueueFull)
}

func TestWriteWithImmediateFails(t *testing.T) {
	t.Run("its memory is revoked", func(t *testing.T) {
		// req 7306-8.1-1: a Terminate in place of the messages, with type and code alone.
		p := newPair(t, nil)
		src, _ := p.a.memory(30, 0)
		p.a.post(SendWR{ID: 1, Op: WRWriteImm, SGL: []SGE{sge(src, 0, 30)}})
		src.Invalidate()
		p.run()
		tm, _ := p.a.lastWord()
		check.That(t, tm == (Terminate{Layer: LayerRDMA, EType: LocalCatastrophic}) && len(p.a.log) == 1, "Terminate %+v, %d messages", tm, len(p.a.log))
		wants(t, "one completion", p.a.scq.take(), WC{ID: 1, Status: StatusLocProtErr, Opcode: WCWrite})
	})
	t.Run("the peer refuses the Write", func(t *testing.T) {
		p := newPair(t, nil)
		p.a.post(SendWR{ID: 1, Op: WRWriteImm, Inline: []byte("x"), RemoteSTag: 99})
		p.a.post(SendWR{ID: 2})
		p.lazy = true
		p.run()
		wants(t, "one completion", p.a.scq.take(), WC{ID: 1, Status: StatusRemAccessErr, Opcode: WCWrite}, WC{ID: 2, Status: StatusWRFlushErr})
	})
	t.Run("the peer has no receive for the Immediate Data", func(t *testing.T) {
		p := newPair(t, nil)
		p.a.post(SendWR{ID: 1, Op: WRWriteImm})
		p.a.post(SendWR{ID: 2})
		p.lazy = true
		p.run()
		wants(t, "one completion", p.a.scq.take(), WC{ID: 1, Status: StatusRemInvReqErr, Opcode: WCWrite}, WC{ID: 2, Status: StatusWRFlushErr})
	})
}

func TestImmediateThenAtomic(t *testing.T) {
	// req 7306-7-2, 7306-7-5: the Immediate Data before the atomic completes before the atomic is answered; the one behind it
	// does not wait for the answer.
	p := newPair(t, nil)
	r, _ := p.b.memory(8, ddp.RemoteAtomic|ddp.LocalWrite)
	p.b.recv(1, r, 0, 0)
	p.b.recv(2, r, 0, 0)
	p.a.post(SendWR{ID: 0, Op: WRImm, Immediate: 1})
	p.a.post(atomicWR(1, r, 0, FetchAdd(1)))
	p.a.post(SendWR{ID: 2, Op: WRImm, Immediate: 2})
	p.a.cutAll()
	p.arrive(p.a, p.b, 1)
	wants(t, "before the atomic", p.b.rcq.take(), WC{ID: 1, Opcode: WCRecvImm})
	p.arrive(p.a, p.b, 2)
	wants(t, "behind it, unanswered", p.b.rcq.take(), WC{ID: 2, Opcode: WCRecvImm})
	must.Equal(t, "what the answerer was told", len(p.b.log), 0)
	p.run()
	wants(t, "requester", p.a.scq.take(), WC{ID: 0, Opcode: WCImm}, WC{ID: 1, Opcode: WCAtomic}, WC{ID: 2, Opcode: WCImm})
}

func TestImmediateDataErrors(t *testing.T) {
	for _, row := range []struct {
		name  string
		seg   []byte
		off   bool // NoImmediate
		layer Layer
		etype uint8
		code  uint8
		first Status // of the receive that it was for
	}{
		// req 7306-6.3-5, 7306-6.1-3, 7306-4.2-1
		{"7 octets", untagged(0, 1, [5]byte{0x48}, 0, true, make([]byte, 7)), false, LayerRDMA, 2, CodeUnspecified, StatusLocLenErr},
		{"9 octets, though the receive has room", untagged(0, 1, [5]byte{0x48}, 0, true, make([]byte, 9)), false, LayerDDP, 2, ddp.CodeTooLong, StatusLocLenErr},
		{"none", untagged(0, 1, [5]byte{0x49}, 0, true, nil), false, LayerRDMA, 2, CodeUnspecified, StatusLocLenErr},
		// req 7306-8.2-2
		{"version 3", untagged(0, 1, [5]byte{0xC8}, 0, true, make([]byte, 8)), false, LayerRDMA, 2, CodeInvalidVersion, StatusWRFlushErr},
		{"tagged", tagged(0x48, 1, 1, true, make([]byte, 0)), false, LayerRDMA, 2, CodeUnexpectedOpcode, StatusWRFlushErr},
		{"on queue 1", untagged(1, 1, [5]byte{0x48}, 0, true, make([]byte, 8)), false, LayerRDMA, 2, CodeUnexpectedOpcode, StatusWRFlushErr},
		// req 7306-8.2-1
		{"offset beyond its 8 octets", untagged(0, 1, [5]byte{0x48}, 9, true, []byte{1}), false, LayerDDP, 2, ddp.CodeInvalidMO, StatusLocLenErr},
		{"no receive", untagged(0, 3, [5]byte{0x48}, 0, true, make([]byte, 8)), false, LayerDDP, 2, ddp.CodeNoBuffer, StatusWRFlushErr},
		// req 7306-1.1-3
		{"not supported", untagged(0, 1, [5]byte{0x48}, 0, true, make([]byte, 8)), true, LayerRDMA, 2, CodeUnexpectedOpcode, StatusWRFlushErr},
		{"with SE, not supported", untagged(0, 1, [5]byte{0x49}, 0, true, make([]byte, 8)), true, LayerRDMA, 2, CodeUnexpectedOpcode, StatusWRFlushErr},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newEnd(t, 1, func(c *Config) { c.NoImmediate = row.off })
			e.qp.Start()
			r, mem := e.memory(16, ddp.LocalWrite)
			e.recv(1, r, 0, 3) // shorter than Immediate Data
			e.recv(2, r, 3, 13)
			e.inject(row.seg)
			tm, _ := e.lastWord()
			check.That(t, tm.Layer == row.layer && uint8(tm.EType) == row.etype && tm.Code == row.code, "Terminate says %v", &tm)
			// req 7306-8.1-2
			check.That(t, tm.HasDDP && tm.HasLength && !tm.HasRDMA, "M %v D %v R %v", tm.HasLength, tm.HasDDP, tm.HasRDMA)
			wants(t, "receives", e.rcq.take(), WC{ID: 1, Status: row.first, Opcode: WCRecv}, WC{ID: 2, Status: StatusWRFlushErr, Opcode: WCRecv})
			same(t, "memory", mem, make([]byte, 16))
		})
	}
}

func TestImmediateDataIsRefusedLocally(t *testing.T) {
	e := newEnd(t, 1, func(c *Config) { c.NoImmediate = true })
	e.qp.Start()
	for _, op := range []WROpcode{WRImm, WRImmSE, WRWriteImm, WRWriteImmSE} {
		err := e.qp.PostSend(&SendWR{Op: op})
		check.That(t, err == ErrDisabled, "operation %d: %v", op, err)
	}
	e.post(SendWR{Op: WRAtomic})
}

func TestIgnoredFields(t *testing.T) {
	// req 7306-4.1-3: what stands in the Invalidate STag field does not matter.
	e := newEnd(t, 1, nil)
	e.qp.Start()
	r, _ := e.memory(8, ddp.LocalWrite|ddp.RemoteAtomic)
	e.recv(1, r, 0, 0)
	var b [AtomicRequestLen]byte
	(&AtomicRequest{STag: r.STag(), TO: r.Base()}).Put(&b)
	tag := r.STag()
	rsvd := [5]byte{0x48, byte(tag >> 24), byte(tag >> 16), byte(tag >> 8), byte(tag)}
	e.inject(untagged(0, 1, rsvd, 0, true, []byte{0, 0, 0, 0, 0, 0, 0, 9}))
	rsvd[0] = 0x4A
	e.inject(untagged(1, 1, rsvd, 0, true, b[:]))
	got := e.rcq.take()
	wants(t, "receives", got, WC{ID: 1, Opcode: WCRecvImm})
	check.That(t, !got[0].Invalidated && got[0].InvalidatedSTag == 0 && got[0].Immediate == 9 && r.Valid() && e.cutAll() == 1 && len(e.failed) == 0, "completion %+v, region valid %v, %v", got[0], r.Valid(), e.failed)
}
