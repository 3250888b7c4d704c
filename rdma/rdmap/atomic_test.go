package rdmap_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestAtomicRequestHeader(t *testing.T) {
	const all = "ffffffffffffffff"
	for _, row := range []struct {
		name string
		r    rdmap.AtomicRequest
		want string
	}{
		// req 7306-4-1, 7306-5.2.1-1, 7306-5.2.1-2: 52 octets, big-endian, reserved bits zero.
		{"CmpSwap", rdmap.AtomicRequest{0x01020304, 0x11121314, 0x2122232425262728,
			rdmap.AtomicOp{Swap: true, Data: 0x3132333435363738,
				Mask: 0x4142434445464748, Compare: 0x5152535455565758, CompareMask: 0x6162636465666768}},
			"00000002" + "01020304" + "11121314" + "2122232425262728" + "3132333435363738" + "4142434445464748" +
				"5152535455565758" + "6162636465666768"},
		// req 7306-5.2.1-6: Compare Data 0 and Compare Mask all ones in a FetchAdd, whatever the
		// user left there.
		{"FetchAdd", rdmap.AtomicRequest{5, 6, 7, rdmap.AtomicOp{Data: 8, Mask: 9, Compare: 10, CompareMask: 11}},
			"00000000" + "00000005" + "00000006" + "0000000000000007" + "0000000000000008" + "0000000000000009" +
				"0000000000000000" + all},
		{"plain FetchAdd: no mask", rdmap.AtomicRequest{5, 6, 7, rdmap.FetchAdd(1)},
			"00000000" + "00000005" + "00000006" + "0000000000000007" + "0000000000000001" + "0000000000000000" +
				"0000000000000000" + all},
		{"plain CmpSwap: full masks", rdmap.AtomicRequest{5, 6, 7, rdmap.CmpSwap(1, 2)},
			"00000002" + "00000005" + "00000006" + "0000000000000007" + "0000000000000002" + all +
				"0000000000000001" + all},
	} {
		var b [rdmap.AtomicRequestLen]byte
		row.r.Put(&b)
		rdmaptest.Same(t, row.name, b[:], parseHex(t, row.want))
		got, ok := rdmap.ParseAtomicRequest(&b)
		if !row.r.Op.Swap {
			row.r.Op.Compare, row.r.Op.CompareMask = 0, 0
		}
		check.That(t, ok && got == row.r, "%s: parsed %+v, want %+v", row.name, got, row.r)
	}
	var b [rdmap.AtomicRequestLen]byte
	for i := range b {
		b[i] = 0xF0 // reserved bits set: req 7306-5.2.1-2; AOpCode 0
	}
	r, ok := rdmap.ParseAtomicRequest(&b)
	check.That(t, ok && !r.Op.Swap && r.Op.Compare == 0 && r.Op.CompareMask == 0, "parsed %+v, %v", r, ok)
	for code := range byte(16) {
		b[3] = 0xF0 | code
		_, ok := rdmap.ParseAtomicRequest(&b)
		check.That(t, ok == (code == 0 || code == 2), "AOpCode %d: %v", code, ok) // req 7306-5.2.1-3
	}
}

func TestAtomicResponseHeader(t *testing.T) {
	// req 7306-4-2, 7306-5.2.2-1
	r := rdmap.AtomicResponse{ID: 0x01020304, Original: 0x1112131415161718}
	var b [rdmap.AtomicResponseLen]byte
	r.Put(&b)
	rdmaptest.Same(t, "header", b[:], parseHex(t, "010203041112131415161718"))
	check.Equal(t, "what was parsed", rdmap.ParseAtomicResponse(&b), r)
}

func TestAtomicsChangeMemoryAndReturnWhatWasThere(t *testing.T) {
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.IRD, c.ORD = 8, 8 })
	r, mem := p.B.Memory(24, ddp.RemoteAtomic)
	p.A.Post(rdmaptest.Atomic(0, r, 8, rdmap.FetchAdd(40)))
	p.A.Post(rdmaptest.Atomic(1, r, 8, rdmap.FetchAdd(2)))
	p.A.Post(rdmaptest.Atomic(2, r, 8, rdmap.CmpSwap(42, 7)))
	p.A.Post(rdmaptest.Atomic(3, r, 8, rdmap.CmpSwap(42, 9)))
	p.A.Post(rdmaptest.Atomic(4, r, 8, rdmap.AtomicOp{Data: 0xF, Mask: 0x88})) // 7 + 0xF in a field of 4 bits
	p.A.Post(rdmaptest.Atomic(5, r, 8, rdmap.FetchAdd(0)))
	p.Run()
	// req 7306-5.2.2-6, 7306-5.2.1-14, 7306-5.2.1-13, 7306-5-2
	rdmaptest.Originals(t, p.A.SCQ.Take(), 0, 40, 42, 7, 7, 6)
	check.That(t, rdmaptest.Word(mem, 0) == 0 && rdmaptest.Word(mem, 1) == 6 && rdmaptest.Word(mem, 2) == 0,
		"memory % x", mem)
	// req 7306-5.2.1-9, 7306-5.2.1-10: the responder's user hears nothing.
	rdmaptest.Wants(t, "responder", append(p.B.RCQ.Take(), p.B.SCQ.Take()...))

	for i, s := range p.A.Log {
		// req 7306-4.1-1, 7306-4.1-2, 7306-4.1-3, 7306-5.2.1-7, 7306-5.2-1, 7306-5.2.1-12,
		// 7306-4.2-1: untagged, queue 1, version 1, opcode 10, no Invalidate STag, nothing but the
		// header; in order of submission.
		v := ddp.UntaggedView(s)
		check.That(t, !v.Control().Tagged() && v.QN() == 1 && v.MSN() == uint32(i+1) &&
			v.RsvdULP() == [5]byte{0x4A} && len(v.Payload()) == 52, "request % x", s)
	}
	for i, s := range p.B.Log {
		// req 7306-5.2.2-2, 7306-5.2.1-4, 7306-10-1: untagged, queue 3, version 1, opcode 11; the
		// identifier comes back.
		v := ddp.UntaggedView(s)
		must.That(t, !v.Control().Tagged() && v.QN() == 3 && v.MSN() == uint32(i+1) && v.RsvdULP() == [5]byte{0x4B} &&
			len(v.Payload()) == 12, "response % x", s)
		rdmaptest.Same(t, "identifier", v.Payload()[:4], ddp.UntaggedView(p.A.Log[i]).Payload()[4:8])
	}
}

func TestAtomicsAndReadsShareQueueAndDepth(t *testing.T) {
	// req 7306-5.2-1, 7306-5.2.1-8, 7306-5.2.2-4, 7306-5.2.2-3: one MSN sequence; ORD and IRD of 2
	// hold for both kinds together.
	p := rdmaptest.NewPair(t, nil)
	sink, _ := p.A.Memory(50, ddp.LocalWrite)
	r, _ := p.B.Memory(80, ddp.RemoteAtomic|ddp.RemoteRead)
	read := func(id uint64) {
		p.A.Post(rdmap.SendWR{ID: id, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 3)},
			RemoteSTag: r.STag(), RemoteTO: r.Base()})
	}
	p.A.Post(rdmaptest.Atomic(0, r, 0, rdmap.FetchAdd(1)))
	read(1)
	p.A.Post(rdmaptest.Atomic(2, r, 0, rdmap.FetchAdd(1)))
	read(3)
	p.A.Post(rdmaptest.Atomic(4, r, 0, rdmap.FetchAdd(1)))
	must.Equal(t, "requests left with ORD 2", p.A.CutAll(), 2)
	p.Run()
	rdmaptest.Wants(t, "in order", p.A.SCQ.Take(), rdmap.WC{ID: 0, Opcode: rdmap.WCAtomic},
		rdmap.WC{ID: 1, Opcode: rdmap.WCRead}, rdmap.WC{ID: 2, Opcode: rdmap.WCAtomic},
		rdmap.WC{ID: 3, Opcode: rdmap.WCRead}, rdmap.WC{ID: 4, Opcode: rdmap.WCAtomic})
	var kinds []byte
	for i, s := range p.A.Log {
		v := ddp.UntaggedView(s)
		check.That(t, v.QN() == 1 && v.MSN() == uint32(i+1), "request % x", s[:18])
		kinds = append(kinds, v.RsvdULP()[0])
	}
	rdmaptest.Same(t, "requests", kinds, []byte{0x4A, 0x41, 0x4A, 0x41, 0x4A})
	kinds = nil
	for _, s := range p.B.Log {
		kinds = append(kinds, s[1])
	}
	// req 7306-7-3, 7306-5.2.2-8: responses in the order of the requests.
	rdmaptest.Same(t, "responses", kinds, []byte{0x4B, 0x42, 0x4B, 0x42, 0x4B})

	// A third request that was not waited for finds no buffer.
	e := rdmaptest.NewEnd(t, 3, nil)
	e.QP.Start()
	x, _ := e.Memory(8, ddp.RemoteAtomic)
	var b [rdmap.AtomicRequestLen]byte
	(&rdmap.AtomicRequest{STag: x.STag(), TO: x.Base()}).Put(&b)
	e.Inject(rdmaptest.Untagged(1, 1, [5]byte{0x4A}, 0, true, b[:]), rdmaptest.ReadSegment(2, 0, 0, 0),
		rdmaptest.Untagged(1, 3, [5]byte{0x4A}, 0, true, b[:]))
	tm, _ := e.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerDDP && tm.Code == ddp.CodeNoBuffer, "Terminate %v", &tm)
}

func TestAtomicWaitsForDelivery(t *testing.T) {
	// req 7306-5.4-2, 7306-7-2: its segment is placed before an earlier RDMA Write and an earlier
	// Send have arrived.
	p := rdmaptest.NewPair(t, nil)
	r, mem := p.B.Memory(16, ddp.RemoteAtomic|ddp.RemoteWrite|ddp.LocalWrite)
	p.B.Recv(1, r, 8, 8)
	var b [rdmap.AtomicRequestLen]byte
	(&rdmap.AtomicRequest{STag: r.STag(), TO: r.Base(), Op: rdmap.FetchAdd(1)}).Put(&b)
	var ten [8]byte
	binary.NativeEndian.PutUint64(ten[:], 10)
	segs := [][]byte{rdmaptest.Tagged(0x40, r.STag(), r.Base(), true, ten[:]),
		rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, []byte("x")),
		rdmaptest.Untagged(1, 1, [5]byte{0x4A}, 0, true, b[:])}
	var placed [3]ddp.Placed
	s := p.B.QP.Stream()
	s.Place(segs[2], &placed[2])
	must.That(t, p.B.CutAll() == 0 && p.B.QP.QueuedReads() == 0 && rdmaptest.Word(mem, 0) == 0,
		"the request was processed at placement")
	for i := range segs[:2] {
		s.Place(segs[i], &placed[i])
	}
	for i := range placed {
		must.That(t, p.B.CutAll() == 0, "answered before its delivery")
		s.Deliver(&placed[i])
	}
	rdmaptest.Wants(t, "the Send, by then", p.B.RCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCRecv})
	p.B.CutAll()
	got := rdmap.ParseAtomicResponse((*[12]byte)(p.B.Log[0][18:]))
	check.That(t, got.Original == 10 && rdmaptest.Word(mem, 0) == 11, "response %+v, memory %d", got,
		rdmaptest.Word(mem, 0))
}

func TestAtomicCompletesAtDeliveryOfItsResponse(t *testing.T) {
	// req 7306-5.4-1, 7306-5.4-5: neither the acknowledgement of the request nor the placement of
	// the response is enough.
	p := rdmaptest.NewPair(t, nil)
	r, _ := p.B.Memory(8, ddp.RemoteAtomic)
	p.A.Post(rdmaptest.Atomic(0, r, 0, rdmap.FetchAdd(1)))
	p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRWrite}) // waits with its completion
	p.A.CutAll()
	p.Arrive(p.A, p.B, 2)
	p.A.Ack()
	p.B.CutAll()
	var placed ddp.Placed
	p.A.QP.Stream().Place(p.B.Sent[0], &placed)
	rdmaptest.Wants(t, "placed", p.A.SCQ.Take())
	p.A.QP.Stream().Deliver(&placed)
	rdmaptest.Wants(t, "delivered", p.A.SCQ.Take(), rdmap.WC{ID: 0, Opcode: rdmap.WCAtomic},
		rdmap.WC{ID: 1, Opcode: rdmap.WCWrite})
}

func TestAtomicResponsesMayArriveInAnyOrder(t *testing.T) {
	// req 7306-5-5, 7306-5.2.2-5: the MSN says which request each answers.
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.IRD, c.ORD = 4, 4 })
	r, _ := p.B.Memory(8, ddp.RemoteAtomic)
	for i := range uint64(4) {
		p.A.Post(rdmaptest.Atomic(i, r, 0, rdmap.FetchAdd(1)))
	}
	p.A.CutAll()
	p.Arrive(p.A, p.B, 4)
	p.B.CutAll()
	var placed [4]ddp.Placed
	for i := 3; i >= 0; i-- {
		p.A.QP.Stream().Place(p.B.Sent[i], &placed[i])
	}
	for i := range placed {
		p.A.QP.Stream().Deliver(&placed[i])
	}
	rdmaptest.Originals(t, p.A.SCQ.Take(), 0, 1, 2, 3)
}

func TestAtomicsKeepTheirOrderWithReads(t *testing.T) {
	// req 7306-7-4, 7306-5.2.2-8: each atomic sees the one before; an earlier read in the queue
	// holds up the responses, in order.
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.IRD, c.ORD = 8, 8 })
	sink, got := p.A.Memory(300, ddp.LocalWrite)
	r, mem := p.B.Memory(304, ddp.RemoteAtomic|ddp.RemoteRead)
	rdmaptest.Fill(mem[8:], 1)
	p.A.Post(rdmap.SendWR{ID: 0, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 296)},
		RemoteSTag: r.STag(), RemoteTO: r.Base() + 8})
	p.A.Post(rdmaptest.Atomic(1, r, 0, rdmap.FetchAdd(5)))
	p.A.Post(rdmaptest.Atomic(2, r, 0, rdmap.CmpSwap(5, 6)))
	p.Run()
	wcs := p.A.SCQ.Take()
	rdmaptest.Wants(t, "in order", wcs, rdmap.WC{ID: 0, Opcode: rdmap.WCRead},
		rdmap.WC{ID: 1, Opcode: rdmap.WCAtomic}, rdmap.WC{ID: 2, Opcode: rdmap.WCAtomic})
	check.That(t, wcs[1].Original == 0 && wcs[2].Original == 5 && rdmaptest.Word(mem, 0) == 6,
		"completions %+v, memory %d", wcs, rdmaptest.Word(mem, 0))
	rdmaptest.Same(t, "read", got[:296], mem[8:])
}

func TestAtomicThenInvalidate(t *testing.T) {
	// Unlike a Read, an atomic is done when the Send behind it invalidates the STag: no fence is
	// needed.
	p := rdmaptest.NewPair(t, nil)
	r, mem := p.B.Memory(8, ddp.RemoteAtomic)
	p.B.Recv(1, r, 0, 0)
	p.A.Post(rdmaptest.Atomic(0, r, 0, rdmap.FetchAdd(3)))
	p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRSendInv, InvalidateSTag: r.STag()})
	p.A.CutAll()
	p.Run()
	rdmaptest.Wants(t, "requester", p.A.SCQ.Take(), rdmap.WC{ID: 0, Opcode: rdmap.WCAtomic}, rdmap.WC{ID: 1})
	check.That(t, !r.Valid() && rdmaptest.Word(mem, 0) == 3 && len(p.B.Failures) == 0, "valid %v, memory %d, %v",
		r.Valid(), rdmaptest.Word(mem, 0), p.B.Failures)
}

func TestResponseOutlivesItsRequest(t *testing.T) {
	// The lower layer may send a response again although it has arrived: the octets stay.
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.ORD, c.IRD = 1, 1 })
	r, _ := p.B.Memory(8, ddp.RemoteAtomic)
	p.Lazy = true
	for i := range uint64(4) {
		p.A.Post(rdmaptest.Atomic(i, r, 0, rdmap.FetchAdd(1)))
	}
	p.Run()
	rdmaptest.Originals(t, p.A.SCQ.Take(), 0, 1) // two headers at either end; the third waits for an acknowledgement
	one, two := rdmap.KeptAtomics(p.B.QP)
	check.That(t, one != two && bytes.Equal(one[:], p.B.Log[0][18:]), "kept % x and % x", one, two)
	p.Lazy = false
	p.A.Ack()
	p.B.Ack()
	p.Run()
	got := p.A.SCQ.Take()
	check.That(t, len(got) == 2 && got[1].Original == 3, "completions %+v", got)
}

func TestAtomicErrors(t *testing.T) {
	request := func(r *ddp.Region, off uint64, change func(b []byte)) []byte {
		var b [rdmap.AtomicRequestLen]byte
		(&rdmap.AtomicRequest{ID: 77, STag: r.STag(), TO: r.Base() + off, Op: rdmap.FetchAdd(1)}).Put(&b)
		s := rdmaptest.Untagged(1, 1, [5]byte{0x4A}, 0, true, b[:])
		if change != nil {
			change(s)
		}
		return s
	}
	swap := func(b []byte) { b[18+3] = 2; binary.BigEndian.PutUint64(b[18+44:], 0) } // compares nothing: always swaps
	answer := func(id uint32, n int) []byte {
		b := make([]byte, 13)
		binary.BigEndian.PutUint32(b, id)
		return rdmaptest.Untagged(3, 1, [5]byte{0x4B}, 0, true, b[:n])
	}
	for _, row := range []struct {
		name   string
		seg    func(e *rdmaptest.End, r *ddp.Region) []byte
		ask    rdmap.WROpcode // outstanding here, with identifier 0
		layer  rdmap.Layer
		etype  uint8
		code   uint8
		status rdmap.Status // of the outstanding one
	}{
		// req 7306-8.2-3, 7306-5.1.1-4, 7306-5.1.1-5, 7306-5.1.2-3, 7306-5.1.2-4
		{"FetchAdd on an unaligned address", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 4, nil) }, 0, rdmap.LayerRDMA, 2, rdmap.CodeCatastrophic, 0},
		{"CmpSwap on an unaligned address", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 9, swap) }, 0, rdmap.LayerRDMA, 2, rdmap.CodeCatastrophic, 0},
		// req 7306-5.2.1-11
		{"reserved AOpCode 1", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[18+3] = 1 }) }, 0, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, 0},
		{"AOpCode 15", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[18+3] = 15 }) }, 0, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, 0},
		// req 7306-8.2-4
		{"unknown STag", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[18+8]++ }) }, 0, rdmap.LayerRDMA, 1, rdmap.CodeInvalidSTag, 0},
		{"invalidated STag", func(_ *rdmaptest.End, r *ddp.Region) []byte { r.Invalidate(); return request(r, 0, nil) }, 0, rdmap.LayerRDMA, 1, rdmap.CodeInvalidSTag, 0},
		{"no right to atomics", func(e *rdmaptest.End, _ *ddp.Region) []byte {
			r, _ := e.Memory(24, ddp.RemoteRead|ddp.RemoteWrite|ddp.LocalWrite)
			return request(r, 0, nil)
		}, 0, rdmap.LayerRDMA, 1, rdmap.CodeAccess, 0},
		{"another Protection Domain", func(e *rdmaptest.End, _ *ddp.Region) []byte {
			r, err := e.Table.Register(ddp.Spec{PD: rdmaptest.PD + 1, Mem: ddp.Bytes(make([]byte, 24)),
				Access: ddp.RemoteAtomic})
			if err != nil {
				panic(err)
			}
			return request(r, 0, nil)
		}, 0, rdmap.LayerRDMA, 1, rdmap.CodeNotAssociated, 0},
		{"one octet past the end", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 17, nil) }, 0, rdmap.LayerRDMA, 1, rdmap.CodeBounds, 0},
		{"before the base", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, ^uint64(7), nil) }, 0, rdmap.LayerRDMA, 1, rdmap.CodeBounds, 0},
		{"target range wraps", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, -r.Base()-8, nil) }, 0, rdmap.LayerRDMA, 1, rdmap.CodeTOWrap, 0},
		// req 7306-4.2-1
		{"request of 51 octets", func(_ *rdmaptest.End, r *ddp.Region) []byte { b := request(r, 0, nil); return b[:len(b)-1] }, 0, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, 0},
		{"request of 28 octets, like a Read Request", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 0, nil)[:18+28] }, 0, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, 0},
		{"request of 53 octets", func(_ *rdmaptest.End, r *ddp.Region) []byte { return append(request(r, 0, nil), 0) }, 0, rdmap.LayerDDP, 2, ddp.CodeTooLong, 0},
		// req 7306-8.2-2
		{"version 0", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[1] = 0x0A }) }, 0, rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, 0},
		{"version 2 in a response", func(*rdmaptest.End, *ddp.Region) []byte { b := answer(0, 12); b[1] = 0x8B; return b }, rdmap.WRAtomic, rdmap.LayerRDMA, 2, rdmap.CodeInvalidVersion, rdmap.StatusWRFlushErr},
		{"Atomic Request on queue 0", func(_ *rdmaptest.End, r *ddp.Region) []byte {
			return rdmaptest.Untagged(0, 1, [5]byte{0x4A}, 0, true, nil)
		}, 0, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, 0},
		{"tagged Atomic Response", func(_ *rdmaptest.End, r *ddp.Region) []byte { return rdmaptest.Tagged(0x4B, 0, 0, true, nil) }, 0, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, 0},
		{"Send on queue 3", func(_ *rdmaptest.End, r *ddp.Region) []byte {
			return rdmaptest.Untagged(3, 1, [5]byte{0x43}, 0, true, nil)
		}, rdmap.WRAtomic, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusWRFlushErr},
		// req 7306-8.2-1
		{"DDP version 2", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[0] = 0x42 }) }, 0, rdmap.LayerDDP, 2, ddp.CodeUntaggedVersion, 0},
		{"MSN beyond the buffers", func(_ *rdmaptest.End, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[13] = 9 }) }, 0, rdmap.LayerDDP, 2, ddp.CodeNoBuffer, 0},
		// req 7306-5.2.2-7
		{"response that nothing asked for", func(*rdmaptest.End, *ddp.Region) []byte { return answer(0, 12) }, 0, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, 0},
		{"response when a Read comes first", func(*rdmaptest.End, *ddp.Region) []byte { return answer(0, 12) }, rdmap.WRRead, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusWRFlushErr},
		{"Read Response when an atomic comes first", func(_ *rdmaptest.End, r *ddp.Region) []byte {
			return rdmaptest.Tagged(0x42, 0, 0, true, nil)
		}, rdmap.WRAtomic, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusWRFlushErr},
		{"Read Response with data when an atomic comes first", func(_ *rdmaptest.End, r *ddp.Region) []byte {
			return rdmaptest.Tagged(0x42, r.STag(), r.Base(), true, []byte("x"))
		}, rdmap.WRAtomic, rdmap.LayerRDMA, 2, rdmap.CodeUnexpectedOpcode, rdmap.StatusBadRespErr},
		{"Write to an offset that would be queue 3 of an untagged header", func(*rdmaptest.End, *ddp.Region) []byte {
			return rdmaptest.Tagged(0x40, 0xBAD, 3<<32, true, []byte("x"))
		}, rdmap.WRAtomic, rdmap.LayerDDP, 1, ddp.CodeInvalidSTag, rdmap.StatusWRFlushErr},
		{"unknown identifier", func(*rdmaptest.End, *ddp.Region) []byte { return answer(1, 12) }, rdmap.WRAtomic, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, rdmap.StatusBadRespErr},
		{"response of 11 octets", func(*rdmaptest.End, *ddp.Region) []byte { return answer(0, 11) }, rdmap.WRAtomic, rdmap.LayerRDMA, 2, rdmap.CodeUnspecified, rdmap.StatusBadRespErr},
		{"response of 13 octets", func(*rdmaptest.End, *ddp.Region) []byte { return answer(0, 13) }, rdmap.WRAtomic, rdmap.LayerDDP, 2, ddp.CodeTooLong, rdmap.StatusBadRespErr},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := rdmaptest.NewEnd(t, 1, nil)
			e.QP.Start()
			r, mem := e.Memory(24, ddp.RemoteAtomic)
			sink, _ := e.Memory(8, ddp.LocalWrite)
			recv, _ := e.Memory(8, ddp.LocalWrite)
			e.Recv(1, recv, 0, 8)
			switch row.ask {
			case rdmap.WRAtomic:
				e.Post(rdmap.SendWR{ID: 9, Op: rdmap.WRAtomic})
				e.Post(rdmap.SendWR{ID: 10, Op: rdmap.WRAtomic}) // which the answer is not about
			case rdmap.WRRead:
				e.Post(rdmap.SendWR{ID: 9, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 8)}})
			}
			e.CutAll()
			seg := row.seg(e, r)
			e.Inject(seg)
			tm, _ := e.LastTerminate()
			check.That(t, tm.Layer == row.layer && uint8(tm.EType) == row.etype && tm.Code == row.code,
				"Terminate says %v", &tm)
			// req 7306-8.1-2: DDP header and length are quoted, no RDMA header.
			check.That(t, tm.HasDDP && tm.HasLength && !tm.HasRDMA && int(tm.SegLength) == len(seg),
				"M %v D %v R %v, length %d of %d", tm.HasLength, tm.HasDDP, tm.HasRDMA, tm.SegLength, len(seg))
			n := ddp.Control(seg[0]).HeaderLen()
			rdmaptest.Same(t, "quoted DDP header", tm.DDP[:n], seg[:n])
			rdmaptest.Same(t, "memory", mem, make([]byte, 24))
			check.That(t, len(e.Failures) == 1 && e.QP.State() == rdmap.StateError, "failed %v, state %v", e.Failures,
				e.QP.State())
			got := e.SCQ.Take()
			check.That(t, row.ask == 0 || len(got) > 0 && got[0].Status == row.status &&
				(len(got) == 1 || got[1].Status == rdmap.StatusWRFlushErr), "outstanding request: %v, want %v", got,
				row.status)
		})
	}
}

// failing is a device whose octets cannot be changed.
type failing struct{}

func (failing) ReadAt(b []byte, _ int64) (int, error)  { return len(b), nil }
func (failing) WriteAt(b []byte, _ int64) (int, error) { return 0, errBroken }

func TestAtomicOnAFailingDevice(t *testing.T) {
	p := rdmaptest.NewPair(t, nil)
	r := must.Get(p.B.Table.Register(ddp.Spec{PD: rdmaptest.PD, Mem: ddp.Device(failing{}, 8),
		Access: ddp.RemoteAtomic}))(t)
	p.A.Post(rdmaptest.Atomic(0, r, 0, rdmap.FetchAdd(1)))
	p.Run()
	tm, _ := p.B.LastTerminate()
	check.That(t, tm.EType == rdmap.RemoteOperation && tm.Code == rdmap.CodeCatastrophic, "Terminate %v", &tm)
	rdmaptest.Wants(t, "requester", p.A.SCQ.Take(),
		rdmap.WC{ID: 0, Status: rdmap.StatusRemOpErr, Opcode: rdmap.WCAtomic})
}

func TestPeerWithoutAtomics(t *testing.T) {
	// req 7306-1.1-3: a clean refusal, and a completion that says why.
	p := rdmaptest.NewPair(t, nil)
	p.B = rdmaptest.NewEnd(t, 2, func(c *rdmap.Config) { c.NoAtomics = true })
	p.B.QP.Start()
	r, mem := p.B.Memory(8, ddp.RemoteAtomic)
	p.A.Post(rdmaptest.Atomic(0, r, 0, rdmap.FetchAdd(0))) // req 7306-1.1-4: the probe
	p.Run()
	tm, _ := p.B.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerRDMA && tm.EType == rdmap.RemoteOperation &&
		tm.Code == rdmap.CodeUnexpectedOpcode, "Terminate %v", &tm)
	rdmaptest.Wants(t, "requester", p.A.SCQ.Take(),
		rdmap.WC{ID: 0, Status: rdmap.StatusRemInvReqErr, Opcode: rdmap.WCAtomic})
	rdmaptest.Same(t, "memory", mem, make([]byte, 8))

	// req 7306-4.1-4: queue 3 belongs to atomics.
	e := rdmaptest.NewEnd(t, 2, func(c *rdmap.Config) { c.NoAtomics = true })
	e.QP.Start()
	check.Equal(t, "posting", e.QP.PostSend(&rdmap.SendWR{Op: rdmap.WRAtomic}), rdmap.ErrDisabled)
	read, _ := e.Memory(8, ddp.RemoteRead)
	e.Inject(rdmaptest.ReadSegment(1, read.STag(), read.Base(), 8))
	check.Equal(t, "an RDMA Read is refused too", e.QP.QueuedReads(), 1)
	e.Inject(rdmaptest.Untagged(3, 1, [5]byte{0x4B}, 0, true, nil))
	tm, _ = e.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerDDP && tm.Code == ddp.CodeInvalidQN, "Terminate %v", &tm)
}

func TestAtomicsNeedORD(t *testing.T) {
	e := rdmaptest.NewEnd(t, 1, func(c *rdmap.Config) { c.ORD = 0 })
	e.QP.Start()
	check.Equal(t, "ORD 0", e.QP.PostSend(&rdmap.SendWR{Op: rdmap.WRAtomic}), rdmap.ErrNoReads)
	e.Inject(rdmaptest.Untagged(3, 1, [5]byte{0x4B}, 0, true, make([]byte, 12)))
	tm, _ := e.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerDDP && tm.Code == ddp.CodeNoBuffer, "Terminate %v", &tm)
}
