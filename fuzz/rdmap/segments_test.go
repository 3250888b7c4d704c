package rdmap

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

const (
	regionSize = 64
	guard      = 64
)

// FuzzSegments feeds a QP with what a hostile peer might send: a list of segments, each with a
// length octet in front. STags 1 to 5 in tagged segments, Read and Atomic Requests stand for real
// regions.
//
//fuzz:covers ./rdma/rdmap
func FuzzSegments(f *testing.F) {
	seg := func(parts ...[]byte) []byte {
		b := bytes.Join(parts, nil)
		return append([]byte{byte(len(b))}, b...)
	}
	un := func(qn, msn uint32, op rdmap.Opcode, inv uint32) []byte {
		b := make([]byte, ddp.UntaggedHeaderLen)
		h := ddp.Untagged{Last: true, QN: qn, MSN: msn, Rsvd: [5]byte{rdmap.Control(op)}}
		binary.BigEndian.PutUint32(h.Rsvd[1:], inv)
		h.Put(b)
		return b
	}
	tg := func(op rdmap.Opcode, tag ddp.STag, to uint64) []byte {
		b := make([]byte, ddp.TaggedHeaderLen)
		ddp.Tagged{Last: true, Rsvd: rdmap.Control(op), STag: tag, TO: to}.Put(b)
		return b
	}
	rr := func(r rdmap.ReadRequest) []byte {
		var b [rdmap.ReadRequestLen]byte
		r.Put(&b)
		return b[:]
	}
	ar := func(r rdmap.AtomicRequest) []byte {
		var b [rdmap.AtomicRequestLen]byte
		r.Put(&b)
		return b[:]
	}
	f.Add(append(seg(un(1, 1, rdmap.OpAtomicRequest, 0),
		ar(rdmap.AtomicRequest{STag: 5, TO: 8, Op: rdmap.FetchAdd(3)})),
		seg(un(1, 2, rdmap.OpAtomicRequest, 0),
			ar(rdmap.AtomicRequest{STag: 5, TO: 8, Op: rdmap.CmpSwap(0xEEEEEEEEEEEEEEF1, 4)}))...))
	f.Add(seg(un(1, 1, rdmap.OpAtomicRequest, 0), ar(rdmap.AtomicRequest{STag: 5, TO: 9})))
	f.Add(seg(un(3, 1, rdmap.OpAtomicResponse, 0), make([]byte, 12)))
	f.Add(append(seg(un(0, 1, rdmap.OpImmediateSE, 0), make([]byte, 8)),
		seg(un(0, 2, rdmap.OpImmediate, 0), make([]byte, 7))...))
	f.Add(append(append(seg(tg(rdmap.OpReadResponse, 3, 0), make([]byte, 16)),
		seg(un(3, 1, rdmap.OpAtomicResponse, 0), []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9})...),
		seg(tg(rdmap.OpReadResponse, 3, 8), make([]byte, 16))...))
	f.Add(seg(un(0, 1, rdmap.OpSend, 0), []byte("hello")))
	f.Add(append(seg(tg(rdmap.OpWrite, 1, 0), []byte("data")), seg(un(0, 1, rdmap.OpSendSEInv, 1))...))
	f.Add(append(seg(un(1, 1, rdmap.OpReadRequest, 0), rr(rdmap.ReadRequest{SinkSTag: 9, Size: 64, SrcSTag: 2})),
		seg(un(0, 1, rdmap.OpSendInv, 2))...))
	f.Add(append(seg(tg(rdmap.OpReadResponse, 3, 8), make([]byte, 16)),
		seg(tg(rdmap.OpReadResponse, 3, 8), make([]byte, 16))...))
	f.Add(seg(un(2, 1, rdmap.OpTerminate, 0), []byte{0x11, 0x01, 0xC0, 0, 0, 20}, tg(rdmap.OpWrite, 77, 4)))
	f.Add(seg(un(1, 1, rdmap.OpReadRequest, 0), rr(rdmap.ReadRequest{Size: 1 << 31, SrcSTag: 1, SrcTO: 1<<64 - 1})))
	f.Fuzz(func(t *testing.T, in []byte) {
		h := &host{t: t}
		table := ddp.NewTable(rand.NewChaCha8([32]byte{}))
		qp := must.Get(rdmap.NewQP(rdmap.Config{Table: table, PD: 1, Stream: 1, SendCQ: h, RecvCQ: h, Host: h,
			MaxSend: 4, MaxRecv: 4, MaxSGE: 1, IRD: 2, ORD: 2}))(t)
		qp.Stream().Attach(h)
		qp.Start()
		var regions [5]*ddp.Region
		var memory [5][]byte
		for i, a := range []ddp.Access{ddp.RemoteWrite, ddp.RemoteRead, ddp.LocalWrite, ddp.LocalWrite,
			ddp.RemoteAtomic} {
			memory[i] = bytes.Repeat([]byte{0xEE}, guard+regionSize+guard)
			regions[i] = must.Get(
				table.Register(ddp.Spec{PD: 1, Access: a,
					Mem: ddp.Bytes(memory[i][guard : guard+regionSize : guard+regionSize])}))(t)
		}
		for i := range 4 {
			must.OK(t,
				qp.PostRecv(&rdmap.RecvWR{SGL: []rdmap.SGE{{LKey: regions[3].STag(), Addr: uint64(16 * i), Len: 16}}}))
		}
		for i := range 3 {
			wr := rdmap.SendWR{Op: rdmap.WRRead,
				SGL: []rdmap.SGE{{LKey: regions[2].STag(), Addr: uint64(8 * i), Len: 16}}}
			if i == 1 {
				wr = rdmap.SendWR{Op: rdmap.WRAtomic}
			}
			must.OK(t, qp.PostSend(&wr))
		}
		must.OK(t, qp.PostSend(&rdmap.SendWR{SGL: []rdmap.SGE{{LKey: regions[1].STag(), Len: 64}}}))
		h.posted = 8
		send := func(most int) (n int) {
			var s ddp.Segment
			for ; n < most && qp.Stream().NextSegment(128, &s); n++ {
				must.That(t, s.Len() <= 128, "segment of %d octets", s.Len())
				qp.Stream().Acked()
			}
			if h.flush {
				h.flush = false
				qp.Flush()
			}
			return n
		}
		named := func(b []byte) { // STags 1 to 5 become real ones
			if tag := binary.BigEndian.Uint32(b); tag >= 1 && tag <= 5 {
				binary.BigEndian.PutUint32(b, uint32(regions[tag-1].STag()))
			}
		}
		for len(in) > 0 {
			n := min(int(in[0]), len(in)-1)
			s := bytes.Clone(in[1 : 1+n])
			in = in[1+n:]
			if len(s) >= ddp.TaggedHeaderLen {
				named(s[2:])
			}
			if len(s) >= ddp.UntaggedHeaderLen+rdmap.ReadRequestLen && !ddp.Control(s[0]).Tagged() {
				named(s[ddp.UntaggedHeaderLen+16:])
			}
			if len(s) == ddp.UntaggedHeaderLen+rdmap.AtomicRequestLen && !ddp.Control(s[0]).Tagged() {
				named(s[ddp.UntaggedHeaderLen+8:])
			}
			var p ddp.Placed
			qp.Stream().Place(s, &p)
			qp.Stream().Deliver(&p)
			send(n % 4)
			must.That(t, qp.QueuedReads() <= 2, "%d reads pending, IRD is 2", qp.QueuedReads())
		}
		if n := send(1000); n == 1000 {
			t.Fatal("endless output")
		}
		for i, m := range memory {
			for _, g := range [][]byte{m[:guard], m[guard+regionSize:]} {
				must.That(t, bytes.Equal(g, bytes.Repeat([]byte{0xEE}, guard)),
					"region %d: written outside its bounds", i)
			}
		}
		must.Slice(t, "memory without any right to write", memory[1], bytes.Repeat([]byte{0xEE}, len(memory[1])))
		qp.Stream().Closed(nil)
		qp.Ended()
		must.Equal(t, "completions of the requests", h.pushed, h.posted)
	})
}
