package rdmap

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

func TestAtomicRequestHeader(t *testing.T) {
	const all = "ffffffffffffffff"
	for _, row := range []struct {
		name string
		r    AtomicRequest
		want string
	}{
		// req 7306-4-1, 7306-5.2.1-1, 7306-5.2.1-2: 52 octets, big-endian, reserved bits zero.
		{"CmpSwap", AtomicRequest{0x01020304, 0x11121314, 0x2122232425262728, AtomicOp{Swap: true, Data: 0x3132333435363738,
			Mask: 0x4142434445464748, Compare: 0x5152535455565758, CompareMask: 0x6162636465666768}},
			"00000002" + "01020304" + "11121314" + "2122232425262728" + "3132333435363738" + "4142434445464748" + "5152535455565758" + "6162636465666768"},
		// req 7306-5.2.1-6: Compare Data 0 and Compare Mask all ones in a FetchAdd, whatever the user left there.
		{"FetchAdd", AtomicRequest{5, 6, 7, AtomicOp{Data: 8, Mask: 9, Compare: 10, CompareMask: 11}},
			"00000000" + "00000005" + "00000006" + "0000000000000007" + "0000000000000008" + "0000000000000009" + "0000000000000000" + all},
		{"plain FetchAdd: no mask", AtomicRequest{5, 6, 7, FetchAdd(1)},
			"00000000" + "00000005" + "00000006" + "0000000000000007" + "0000000000000001" + "0000000000000000" + "0000000000000000" + all},
		{"plain CmpSwap: full masks", AtomicRequest{5, 6, 7, CmpSwap(1, 2)},
			"00000002" + "00000005" + "00000006" + "0000000000000007" + "0000000000000002" + all + "0000000000000001" + all},
	} {
		var b [AtomicRequestLen]byte
		row.r.Put(&b)
		same(t, row.name, b[:], unhex(t, row.want))
		got, ok := ParseAtomicRequest(&b)
		if !row.r.Op.Swap {
			row.r.Op.Compare, row.r.Op.CompareMask = 0, 0
		}
		check.That(t, ok && got == row.r, "%s: parsed %+v, want %+v", row.name, got, row.r)
	}
	var b [AtomicRequestLen]byte
	for i := range b {
		b[i] = 0xF0 // reserved bits set: req 7306-5.2.1-2; AOpCode 0
	}
	r, ok := ParseAtomicRequest(&b)
	check.That(t, ok && !r.Op.Swap && r.Op.Compare == 0 && r.Op.CompareMask == 0, "parsed %+v, %v", r, ok)
	for code := range byte(16) {
		b[3] = 0xF0 | code
		_, ok := ParseAtomicRequest(&b)
		check.That(t, ok == (code == 0 || code == 2), "AOpCode %d: %v", code, ok) // req 7306-5.2.1-3
	}
}

func TestAtomicResponseHeader(t *testing.T) {
	// req 7306-4-2, 7306-5.2.2-1
	r := AtomicResponse{ID: 0x01020304, Original: 0x1112131415161718}
	var b [AtomicResponseLen]byte
	r.Put(&b)
	same(t, "header", b[:], unhex(t, "010203041112131415161718"))
	check.Equal(t, "what was parsed", ParseAtomicResponse(&b), r)
}

func atomicWR(id uint64, r *ddp.Region, off int, op AtomicOp) SendWR {
	return SendWR{ID: id, Op: WRAtomic, RemoteSTag: r.STag(), RemoteTO: r.Base() + uint64(off), Atomic: op}
}

func word(b []byte, i int) uint64 { return binary.NativeEndian.Uint64(b[8*i:]) }

// originals checks completions of atomics that began with ID 0.
func originals(t *testing.T, got []WC, want ...uint64) {
	t.Helper()
	must.That(t, len(got) == len(want), "completions %v, want %d", got, len(want))
	for i, wc := range got {
		check.That(t, wc.ID == uint64(i) && wc.Status == StatusSuccess && wc.Opcode == WCAtomic && wc.Original == want[i],
			"completion %+v, want atomic %d with original value %d", wc, i, want[i])
	}
}

func TestAtomicsChangeMemoryAndReturnWhatWasThere(t *testing.T) {
	p := newPair(t, func(c *Config) { c.IRD, c.ORD = 8, 8 })
	r, mem := p.b.memory(24, ddp.RemoteAtomic)
	p.a.post(atomicWR(0, r, 8, FetchAdd(40)))
	p.a.post(atomicWR(1, r, 8, FetchAdd(2)))
	p.a.post(atomicWR(2, r, 8, CmpSwap(42, 7)))
	p.a.post(atomicWR(3, r, 8, CmpSwap(42, 9)))
	p.a.post(atomicWR(4, r, 8, AtomicOp{Data: 0xF, Mask: 0x88})) // 7 + 0xF in a field of 4 bits
	p.a.post(atomicWR(5, r, 8, FetchAdd(0)))
	p.run()
	// req 7306-5.2.2-6, 7306-5.2.1-14, 7306-5.2.1-13, 7306-5-2
	originals(t, p.a.scq.take(), 0, 40, 42, 7, 7, 6)
	check.That(t, word(mem, 0) == 0 && word(mem, 1) == 6 && word(mem, 2) == 0, "memory % x", mem)
	// req 7306-5.2.1-9, 7306-5.2.1-10: the responder's user hears nothing.
	wants(t, "responder", append(p.b.rcq.take(), p.b.scq.take()...))

	for i, s := range p.a.log {
		// req 7306-4.1-1, 7306-4.1-2, 7306-4.1-3, 7306-5.2.1-7, 7306-5.2-1, 7306-5.2.1-12, 7306-4.2-1: untagged, queue 1, version 1,
		// opcode 10, no Invalidate STag, nothing but the header; in order of submission.
		v := ddp.UntaggedView(s)
		check.That(t, !v.Control().Tagged() && v.QN() == 1 && v.MSN() == uint32(i+1) && v.RsvdULP() == [5]byte{0x4A} && len(v.Payload()) == 52, "request % x", s)
	}
	for i, s := range p.b.log {
		// req 7306-5.2.2-2, 7306-5.2.1-4, 7306-10-1: untagged, queue 3, version 1, opcode 11; the identifier comes back.
		v := ddp.UntaggedView(s)
		must.That(t, !v.Control().Tagged() && v.QN() == 3 && v.MSN() == uint32(i+1) && v.RsvdULP() == [5]byte{0x4B} && len(v.Payload()) == 12, "response % x", s)
		same(t, "identifier", v.Payload()[:4], ddp.UntaggedView(p.a.log[i]).Payload()[4:8])
	}
}

func TestAtomicsAndReadsShareQueueAndDepth(t *testing.T) {
	// req 7306-5.2-1, 7306-5.2.1-8, 7306-5.2.2-4, 7306-5.2.2-3: one MSN sequence; ORD and IRD of 2 hold for both kinds together.
	p := newPair(t, nil)
	sink, _ := p.a.memory(50, ddp.LocalWrite)
	r, _ := p.b.memory(80, ddp.RemoteAtomic|ddp.RemoteRead)
	read := func(id uint64) {
		p.a.post(SendWR{ID: id, Op: WRRead, SGL: []SGE{sge(sink, 0, 3)}, RemoteSTag: r.STag(), RemoteTO: r.Base()})
	}
	p.a.post(atomicWR(0, r, 0, FetchAdd(1)))
	read(1)
	p.a.post(atomicWR(2, r, 0, FetchAdd(1)))
	read(3)
	p.a.post(atomicWR(4, r, 0, FetchAdd(1)))
	must.Equal(t, "requests left with ORD 2", p.a.cutAll(), 2)
	p.run()
	wants(t, "in order", p.a.scq.take(), WC{ID: 0, Opcode: WCAtomic}, WC{ID: 1, Opcode: WCRead}, WC{ID: 2, Opcode: WCAtomic},
		WC{ID: 3, Opcode: WCRead}, WC{ID: 4, Opcode: WCAtomic})
	var kinds []byte
	for i, s := range p.a.log {
		v := ddp.UntaggedView(s)
		check.That(t, v.QN() == 1 && v.MSN() == uint32(i+1), "request % x", s[:18])
		kinds = append(kinds, v.RsvdULP()[0])
	}
	same(t, "requests", kinds, []byte{0x4A, 0x41, 0x4A, 0x41, 0x4A})
	kinds = nil
	for _, s := range p.b.log {
		kinds = append(kinds, s[1])
	}
	// req 7306-7-3, 7306-5.2.2-8: responses in the order of the requests.
	same(t, "responses", kinds, []byte{0x4B, 0x42, 0x4B, 0x42, 0x4B})

	// A third request that was not waited for finds no buffer.
	e := newEnd(t, 3, nil)
	e.qp.Start()
	x, _ := e.memory(8, ddp.RemoteAtomic)
	var b [AtomicRequestLen]byte
	(&AtomicRequest{STag: x.STag(), TO: x.Base()}).Put(&b)
	e.inject(untagged(1, 1, [5]byte{0x4A}, 0, true, b[:]), readSegment(2, 0, 0, 0), untagged(1, 3, [5]byte{0x4A}, 0, true, b[:]))
	tm, _ := e.lastWord()
	check.That(t, tm.Layer == LayerDDP && tm.Code == ddp.CodeNoBuffer, "Terminate %v", &tm)
}

func TestAtomicWaitsForDelivery(t *testing.T) {
	// req 7306-5.4-2, 7306-7-2: its segment is placed before an earlier RDMA Write and an earlier Send have arrived.
	p := newPair(t, nil)
	r, mem := p.b.memory(16, ddp.RemoteAtomic|ddp.RemoteWrite|ddp.LocalWrite)
	p.b.recv(1, r, 8, 8)
	var b [AtomicRequestLen]byte
	(&AtomicRequest{STag: r.STag(), TO: r.Base(), Op: FetchAdd(1)}).Put(&b)
	var ten [8]byte
	binary.NativeEndian.PutUint64(ten[:], 10)
	segs := [][]byte{tagged(0x40, r.STag(), r.Base(), true, ten[:]), untagged(0, 1, [5]byte{0x43}, 0, true, []byte("x")),
		untagged(1, 1, [5]byte{0x4A}, 0, true, b[:])}
	var placed [3]ddp.Placed
	s := p.b.qp.Stream()
	s.Place(segs[2], &placed[2])
	must.That(t, p.b.cutAll() == 0 && p.b.qp.QueuedReads() == 0 && word(mem, 0) == 0, "the request was processed at placement")
	for i := range segs[:2] {
		s.Place(segs[i], &placed[i])
	}
	for i := range placed {
		must.That(t, p.b.cutAll() == 0, "answered before its delivery")
		s.Deliver(&placed[i])
	}
	wants(t, "the Send, by then", p.b.rcq.take(), WC{ID: 1, Opcode: WCRecv})
	p.b.cutAll()
	got := ParseAtomicResponse((*[12]byte)(p.b.log[0][18:]))
	check.That(t, got.Original == 10 && word(mem, 0) == 11, "response %+v, memory %d", got, word(mem, 0))
}

func TestAtomicCompletesAtDeliveryOfItsResponse(t *testing.T) {
	// req 7306-5.4-1, 7306-5.4-5: neither the acknowledgement of the request nor the placement of the response is enough.
	p := newPair(t, nil)
	r, _ := p.b.memory(8, ddp.RemoteAtomic)
	p.a.post(atomicWR(0, r, 0, FetchAdd(1)))
	p.a.post(SendWR{ID: 1, Op: WRWrite}) // waits with its completion
	p.a.cutAll()
	p.arrive(p.a, p.b, 2)
	p.a.ack()
	p.b.cutAll()
	var placed ddp.Placed
	p.a.qp.Stream().Place(p.b.sent[0], &placed)
	wants(t, "placed", p.a.scq.take())
	p.a.qp.Stream().Deliver(&placed)
	wants(t, "delivered", p.a.scq.take(), WC{ID: 0, Opcode: WCAtomic}, WC{ID: 1, Opcode: WCWrite})
}

func TestAtomicResponsesMayArriveInAnyOrder(t *testing.T) {
	// req 7306-5-5, 7306-5.2.2-5: the MSN says which request each answers.
	p := newPair(t, func(c *Config) { c.IRD, c.ORD = 4, 4 })
	r, _ := p.b.memory(8, ddp.RemoteAtomic)
	for i := range uint64(4) {
		p.a.post(atomicWR(i, r, 0, FetchAdd(1)))
	}
	p.a.cutAll()
	p.arrive(p.a, p.b, 4)
	p.b.cutAll()
	var placed [4]ddp.Placed
	for i := 3; i >= 0; i-- {
		p.a.qp.Stream().Place(p.b.sent[i], &placed[i])
	}
	for i := range placed {
		p.a.qp.Stream().Deliver(&placed[i])
	}
	originals(t, p.a.scq.take(), 0, 1, 2, 3)
}

func TestAtomicsKeepTheirOrderWithReads(t *testing.T) {
	// req 7306-7-4, 7306-5.2.2-8: each atomic sees the one before; an earlier read in the queue holds up the responses, in order.
	p := newPair(t, func(c *Config) { c.IRD, c.ORD = 8, 8 })
	sink, got := p.a.memory(300, ddp.LocalWrite)
	r, mem := p.b.memory(304, ddp.RemoteAtomic|ddp.RemoteRead)
	fill(mem[8:], 1)
	p.a.post(SendWR{ID: 0, Op: WRRead, SGL: []SGE{sge(sink, 0, 296)}, RemoteSTag: r.STag(), RemoteTO: r.Base() + 8})
	p.a.post(atomicWR(1, r, 0, FetchAdd(5)))
	p.a.post(atomicWR(2, r, 0, CmpSwap(5, 6)))
	p.run()
	wcs := p.a.scq.take()
	wants(t, "in order", wcs, WC{ID: 0, Opcode: WCRead}, WC{ID: 1, Opcode: WCAtomic}, WC{ID: 2, Opcode: WCAtomic})
	check.That(t, wcs[1].Original == 0 && wcs[2].Original == 5 && word(mem, 0) == 6, "completions %+v, memory %d", wcs, word(mem, 0))
	same(t, "read", got[:296], mem[8:])
}

func TestAtomicThenInvalidate(t *testing.T) {
	// Unlike a Read, an atomic is done when the Send behind it invalidates the STag: no fence is needed.
	p := newPair(t, nil)
	r, mem := p.b.memory(8, ddp.RemoteAtomic)
	p.b.recv(1, r, 0, 0)
	p.a.post(atomicWR(0, r, 0, FetchAdd(3)))
	p.a.post(SendWR{ID: 1, Op: WRSendInv, InvalidateSTag: r.STag()})
	p.a.cutAll()
	p.run()
	wants(t, "requester", p.a.scq.take(), WC{ID: 0, Opcode: WCAtomic}, WC{ID: 1})
	check.That(t, !r.Valid() && word(mem, 0) == 3 && len(p.b.failed) == 0, "valid %v, memory %d, %v", r.Valid(), word(mem, 0), p.b.failed)
}

func TestResponseOutlivesItsRequest(t *testing.T) {
	// The lower layer may send a response again although it has arrived: the octets stay.
	p := newPair(t, func(c *Config) { c.ORD, c.IRD = 1, 1 })
	r, _ := p.b.memory(8, ddp.RemoteAtomic)
	p.lazy = true
	for i := range uint64(4) {
		p.a.post(atomicWR(i, r, 0, FetchAdd(1)))
	}
	p.run()
	originals(t, p.a.scq.take(), 0, 1) // two headers at either end; the third waits for an acknowledgement
	kept := p.b.qp.resp.sources
	check.That(t, kept[0].atomic != kept[1].atomic && bytes.Equal(kept[0].atomic[:], p.b.log[0][18:]), "sources %+v", kept)
	p.lazy = false
	p.a.ack()
	p.b.ack()
	p.run()
	got := p.a.scq.take()
	check.That(t, len(got) == 2 && got[1].Original == 3, "completions %+v", got)
}

func TestAtomicErrors(t *testing.T) {
	request := func(r *ddp.Region, off uint64, change func(b []byte)) []byte {
		var b [AtomicRequestLen]byte
		(&AtomicRequest{ID: 77, STag: r.STag(), TO: r.Base() + off, Op: FetchAdd(1)}).Put(&b)
		s := untagged(1, 1, [5]byte{0x4A}, 0, true, b[:])
		if change != nil {
			change(s)
		}
		return s
	}
	swap := func(b []byte) { b[18+3] = 2; binary.BigEndian.PutUint64(b[18+44:], 0) } // compares nothing: always swaps
	answer := func(id uint32, n int) []byte {
		b := make([]byte, 13)
		binary.BigEndian.PutUint32(b, id)
		return untagged(3, 1, [5]byte{0x4B}, 0, true, b[:n])
	}
	for _, row := range []struct {
		name   string
		seg    func(e *end, r *ddp.Region) []byte
		ask    WROpcode // outstanding here, with identifier 0
		layer  Layer
		etype  uint8
		code   uint8
		status Status // of the outstanding one
	}{
		// req 7306-8.2-3, 7306-5.1.1-4, 7306-5.1.1-5, 7306-5.1.2-3, 7306-5.1.2-4
		{"FetchAdd on an unaligned address", func(_ *end, r *ddp.Region) []byte { return request(r, 4, nil) }, 0, LayerRDMA, 2, CodeCatastrophic, 0},
		{"CmpSwap on an unaligned address", func(_ *end, r *ddp.Region) []byte { return request(r, 9, swap) }, 0, LayerRDMA, 2, CodeCatastrophic, 0},
		// req 7306-5.2.1-11
		{"reserved AOpCode 1", func(_ *end, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[18+3] = 1 }) }, 0, LayerRDMA, 2, CodeUnexpectedOpcode, 0},
		{"AOpCode 15", func(_ *end, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[18+3] = 15 }) }, 0, LayerRDMA, 2, CodeUnexpectedOpcode, 0},
		// req 7306-8.2-4
		{"unknown STag", func(_ *end, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[18+8]++ }) }, 0, LayerRDMA, 1, CodeInvalidSTag, 0},
		{"invalidated STag", func(_ *end, r *ddp.Region) []byte { r.Invalidate(); return request(r, 0, nil) }, 0, LayerRDMA, 1, CodeInvalidSTag, 0},
		{"no right to atomics", func(e *end, _ *ddp.Region) []byte {
			r, _ := e.memory(24, ddp.RemoteRead|ddp.RemoteWrite|ddp.LocalWrite)
			return request(r, 0, nil)
		}, 0, LayerRDMA, 1, CodeAccess, 0},
		{"another Protection Domain", func(e *end, _ *ddp.Region) []byte {
			r, err := e.table.Register(ddp.Spec{PD: testPD + 1, Mem: ddp.Bytes(make([]byte, 24)), Access: ddp.RemoteAtomic})
			if err != nil {
				panic(err)
			}
			return request(r, 0, nil)
		}, 0, LayerRDMA, 1, CodeNotAssociated, 0},
		{"one octet past the end", func(_ *end, r *ddp.Region) []byte { return request(r, 17, nil) }, 0, LayerRDMA, 1, CodeBounds, 0},
		{"before the base", func(_ *end, r *ddp.Region) []byte { return request(r, ^uint64(7), nil) }, 0, LayerRDMA, 1, CodeBounds, 0},
		{"target range wraps", func(_ *end, r *ddp.Region) []byte { return request(r, -r.Base()-8, nil) }, 0, LayerRDMA, 1, CodeTOWrap, 0},
		// req 7306-4.2-1
		{"request of 51 octets", func(_ *end, r *ddp.Region) []byte { b := request(r, 0, nil); return b[:len(b)-1] }, 0, LayerRDMA, 2, CodeUnspecified, 0},
		{"request of 28 octets, like a Read Request", func(_ *end, r *ddp.Region) []byte { return request(r, 0, nil)[:18+28] }, 0, LayerRDMA, 2, CodeUnspecified, 0},
		{"request of 53 octets", func(_ *end, r *ddp.Region) []byte { return append(request(r, 0, nil), 0) }, 0, LayerDDP, 2, ddp.CodeTooLong, 0},
		// req 7306-8.2-2
		{"version 0", func(_ *end, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[1] = 0x0A }) }, 0, LayerRDMA, 2, CodeInvalidVersion, 0},
		{"version 2 in a response", func(*end, *ddp.Region) []byte { b := answer(0, 12); b[1] = 0x8B; return b }, WRAtomic, LayerRDMA, 2, CodeInvalidVersion, StatusWRFlushErr},
		{"Atomic Request on queue 0", func(_ *end, r *ddp.Region) []byte { return untagged(0, 1, [5]byte{0x4A}, 0, true, nil) }, 0, LayerRDMA, 2, CodeUnexpectedOpcode, 0},
		{"tagged Atomic Response", func(_ *end, r *ddp.Region) []byte { return tagged(0x4B, 0, 0, true, nil) }, 0, LayerRDMA, 2, CodeUnexpectedOpcode, 0},
		{"Send on queue 3", func(_ *end, r *ddp.Region) []byte { return untagged(3, 1, [5]byte{0x43}, 0, true, nil) }, WRAtomic, LayerRDMA, 2, CodeUnexpectedOpcode, StatusWRFlushErr},
		// req 7306-8.2-1
		{"DDP version 2", func(_ *end, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[0] = 0x42 }) }, 0, LayerDDP, 2, ddp.CodeUntaggedVersion, 0},
		{"MSN beyond the buffers", func(_ *end, r *ddp.Region) []byte { return request(r, 0, func(b []byte) { b[13] = 9 }) }, 0, LayerDDP, 2, ddp.CodeNoBuffer, 0},
		// req 7306-5.2.2-7
		{"response that nothing asked for", func(*end, *ddp.Region) []byte { return answer(0, 12) }, 0, LayerRDMA, 2, CodeUnexpectedOpcode, 0},
		{"response when a Read comes first", func(*end, *ddp.Region) []byte { return answer(0, 12) }, WRRead, LayerRDMA, 2, CodeUnexpectedOpcode, StatusWRFlushErr},
		{"Read Response when an atomic comes first", func(_ *end, r *ddp.Region) []byte {
			return tagged(0x42, 0, 0, true, nil)
		}, WRAtomic, LayerRDMA, 2, CodeUnexpectedOpcode, StatusWRFlushErr},
		{"Read Response with data when an atomic comes first", func(_ *end, r *ddp.Region) []byte {
			return tagged(0x42, r.STag(), r.Base(), true, []byte("x"))
		}, WRAtomic, LayerRDMA, 2, CodeUnexpectedOpcode, StatusBadRespErr},
		{"unknown identifier", func(*end, *ddp.Region) []byte { return answer(1, 12) }, WRAtomic, LayerRDMA, 2, CodeUnspecified, StatusBadRespErr},
		{"response of 11 octets", func(*end, *ddp.Region) []byte { return answer(0, 11) }, WRAtomic, LayerRDMA, 2, CodeUnspecified, StatusBadRespErr},
		{"response of 13 octets", func(*end, *ddp.Region) []byte { return answer(0, 13) }, WRAtomic, LayerDDP, 2, ddp.CodeTooLong, StatusBadRespErr},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newEnd(t, 1, nil)
			e.qp.Start()
			r, mem := e.memory(24, ddp.RemoteAtomic)
			sink, _ := e.memory(8, ddp.LocalWrite)
			recv, _ := e.memory(8, ddp.LocalWrite)
			e.recv(1, recv, 0, 8)
			switch row.ask {
			case WRAtomic:
				e.post(SendWR{ID: 9, Op: WRAtomic})
				e.post(SendWR{ID: 10, Op: WRAtomic}) // which the answer is not about
			case WRRead:
				e.post(SendWR{ID: 9, Op: WRRead, SGL: []SGE{sge(sink, 0, 8)}})
			}
			e.cutAll()
			seg := row.seg(e, r)
			e.inject(seg)
			tm, _ := e.lastWord()
			check.That(t, tm.Layer == row.layer && uint8(tm.EType) == row.etype && tm.Code == row.code, "Terminate says %v", &tm)
			// req 7306-8.1-2: DDP header and length are quoted, no RDMA header.
			check.That(t, tm.HasDDP && tm.HasLength && !tm.HasRDMA && int(tm.SegLength) == len(seg),
				"M %v D %v R %v, length %d of %d", tm.HasLength, tm.HasDDP, tm.HasRDMA, tm.SegLength, len(seg))
			n := ddp.Control(seg[0]).HeaderLen()
			same(t, "quoted DDP header", tm.DDP[:n], seg[:n])
			same(t, "memory", mem, make([]byte, 24))
			check.That(t, len(e.failed) == 1 && e.qp.State() == StateError, "failed %v, state %v", e.failed, e.qp.State())
			got := e.scq.take()
			check.That(t, row.ask == 0 || len(got) > 0 && got[0].Status == row.status && (len(got) == 1 || got[1].Status == StatusWRFlushErr), "outstanding request: %v, want %v", got, row.status)
		})
	}
}

// failing is a device whose octets cannot be changed.
type failing struct{}

func (failing) ReadAt(b []byte, _ int64) (int, error)  { return len(b), nil }
func (failing) WriteAt(b []byte, _ int64) (int, error) { return 0, errBroken }

func TestAtomicOnAFailingDevice(t *testing.T) {
	p := newPair(t, nil)
	r := must.Get(p.b.table.Register(ddp.Spec{PD: testPD, Mem: ddp.Device(failing{}, 8), Access: ddp.RemoteAtomic}))(t)
	p.a.post(atomicWR(0, r, 0, FetchAdd(1)))
	p.run()
	tm, _ := p.b.lastWord()
	check.That(t, tm.EType == RemoteOperation && tm.Code == CodeCatastrophic, "Terminate %v", &tm)
	wants(t, "requester", p.a.scq.take(), WC{ID: 0, Status: StatusRemOpErr, Opcode: WCAtomic})
}

func TestPeerWithoutAtomics(t *testing.T) {
	// req 7306-1.1-3: a clean refusal, and a completion that says why.
	p := newPair(t, nil)
	p.b = newEnd(t, 2, func(c *Config) { c.NoAtomics = true })
	p.b.qp.Start()
	r, mem := p.b.memory(8, ddp.RemoteAtomic)
	p.a.post(atomicWR(0, r, 0, FetchAdd(0))) // req 7306-1.1-4: the probe
	p.run()
	tm, _ := p.b.lastWord()
	check.That(t, tm.Layer == LayerRDMA && tm.EType == RemoteOperation && tm.Code == CodeUnexpectedOpcode, "Terminate %v", &tm)
	wants(t, "requester", p.a.scq.take(), WC{ID: 0, Status: StatusRemInvReqErr, Opcode: WCAtomic})
	same(t, "memory", mem, make([]byte, 8))

	// req 7306-4.1-4: queue 3 belongs to atomics.
	e := newEnd(t, 2, func(c *Config) { c.NoAtomics = true })
	e.qp.Start()
	check.Equal(t, "posting", e.qp.PostSend(&SendWR{Op: WRAtomic}), ErrDisabled)
	read, _ := e.memory(8, ddp.RemoteRead)
	e.inject(readSegment(1, read.STag(), read.Base(), 8))
	check.Equal(t, "an RDMA Read is refused too", e.qp.QueuedReads(), 1)
	e.inject(untagged(3, 1, [5]byte{0x4B}, 0, true, nil))
	tm, _ = e.lastWord()
	check.That(t, tm.Layer == LayerDDP && tm.Code == ddp.CodeInvalidQN, "Terminate %v", &tm)
}

func TestAtomicsNeedORD(t *testing.T) {
	e := newEnd(t, 1, func(c *Config) { c.ORD = 0 })
	e.qp.Start()
	check.Equal(t, "ORD 0", e.qp.PostSend(&SendWR{Op: WRAtomic}), ErrNoReads)
	e.inject(untagged(3, 1, [5]byte{0x4B}, 0, true, make([]byte, 12)))
	tm, _ := e.lastWord()
	check.That(t, tm.Layer == LayerDDP && tm.Code == ddp.CodeNoBuffer, "Terminate %v", &tm)
}
