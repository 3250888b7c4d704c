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

func TestSendOfEachKindArrivesAsWhatItIs(t *testing.T) {
	for _, row := range []struct {
		name      string
		op        rdmap.WROpcode
		control   uint8
		n         int // octets; 300 take several segments
		solicited bool
		inv       bool
	}{
		{"Send", rdmap.WRSend, 0x43, 10, false, false},
		{"Send of several segments", rdmap.WRSend, 0x43, 300, false, false},
		{"Send with SE", rdmap.WRSendSE, 0x45, 10, true, false},
		{"Send with Invalidate", rdmap.WRSendInv, 0x44, 10, false, true},
		{"Send with SE and Invalidate", rdmap.WRSendSEInv, 0x46, 10, true, true},
		{"zero-length Send consumes a buffer", rdmap.WRSend, 0x43, 0, false, false},
		{"zero-length Send with SE and Invalidate", rdmap.WRSendSEInv, 0x46, 0, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := rdmaptest.NewPair(t, nil)
			src, from := p.A.Memory(400, 0)
			dst, to := p.B.Memory(400, ddp.LocalWrite)
			advertised, _ := p.B.Memory(8, ddp.RemoteWrite)
			rdmaptest.Fill(from, 1)
			p.B.Recv(70, dst, 0, 400)
			wr := rdmap.SendWR{ID: 5, Op: row.op, SGL: []rdmap.SGE{rdmaptest.SGE(src, 3, row.n)}}
			if row.inv {
				wr.InvalidateSTag = advertised.STag()
			}
			p.A.Post(wr)
			p.Run()
			// req 5040-3.2-2, 5040-3.2-3, 5040-5.3-2, 5040-5.3-3, 5040-5.3-5, 5040-5.3-8
			rdmaptest.Wants(t, "sender", p.A.SCQ.Take(), rdmap.WC{ID: 5, Opcode: rdmap.WCSend})
			got := p.B.RCQ.Take()
			rdmaptest.Wants(t, "receiver", got, rdmap.WC{ID: 70, Opcode: rdmap.WCRecv})
			want := rdmap.WC{ID: 70, Opcode: rdmap.WCRecv, QPNum: 2, ByteLen: uint32(row.n), Solicited: row.solicited}
			if row.inv {
				want.Invalidated, want.InvalidatedSTag = true, advertised.STag()
			}
			check.Equal(t, "completion", got[0], want)
			rdmaptest.Same(t, "data", to[:row.n], from[3:3+row.n])
			// req 5040-5.3-10
			check.That(t, advertised.Valid() != row.inv, "the advertised region is valid: %v", advertised.Valid())
			// req 5040-4.1-1, 5040-4.1-3, 5040-4.1-4, 5040-4.1-9, 5040-5.3-1, 5040-5.3-9
			for _, s := range p.A.Log {
				v := ddp.UntaggedView(s)
				want := rdmaptest.Rsvd(opOf(row.control), wr.InvalidateSTag)
				check.That(t, !v.Control().Tagged() && v.QN() == 0 && v.RsvdULP() == want && want[0] == row.control,
					"header % x, want RsvdULP % x", s[:18], want)
			}
		})
	}
}

// opOf is the opcode of a control field.
func opOf(c uint8) rdmap.Opcode { _, op := rdmap.SplitControl(c); return op }

func TestGatherScatterInline(t *testing.T) {
	// req 5040-5.1-5: several local pieces make one message.
	p := rdmaptest.NewPair(t, nil)
	src, from := p.A.Memory(200, 0)
	dst, to := p.B.Memory(200, ddp.LocalWrite|ddp.RemoteWrite)
	rdmaptest.Fill(from, 0)
	must.OK(t,
		p.B.QP.PostRecv(&rdmap.RecvWR{ID: 1, SGL: []rdmap.SGE{rdmaptest.SGE(dst, 100, 2), rdmaptest.SGE(dst, 0, 0),
			rdmaptest.SGE(dst, 0, 90)}}))
	p.A.Post(rdmap.SendWR{ID: 1, SGL: []rdmap.SGE{rdmaptest.SGE(src, 50, 3), rdmaptest.SGE(src, 0, 1),
		rdmaptest.SGE(src, 10, 4)}})
	p.Run()
	rdmaptest.Same(t, "scattered", append(to[100:102:102], to[:6]...), []byte{50, 51, 52, 0, 10, 11, 12, 13})

	p.A.Post(rdmap.SendWR{ID: 2, Op: rdmap.WRWrite,
		SGL:        []rdmap.SGE{rdmaptest.SGE(src, 5, 1), rdmaptest.SGE(src, 7, 150), rdmaptest.SGE(src, 3, 1)},
		RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
	p.Run()
	rdmaptest.Same(t, "written", to[:152], append(append([]byte{5}, from[7:157]...), 3))

	// Inline data is the caller's again at once.
	p.B.Recv(3, dst, 0, 200)
	line := []byte("inline data")
	p.A.Post(rdmap.SendWR{ID: 3, Inline: line})
	copy(line, "overwritten")
	p.Run()
	rdmaptest.Same(t, "inline", to[:11], []byte("inline data"))
	rdmaptest.Wants(t, "sender", p.A.SCQ.Take(), rdmap.WC{ID: 1}, rdmap.WC{ID: 2, Opcode: rdmap.WCWrite},
		rdmap.WC{ID: 3})
}

func TestSendQueueIsBounded(t *testing.T) {
	p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.MaxSend = 3; c.MaxRecv = 4 })
	dst, _ := p.B.Memory(10, ddp.LocalWrite)
	for i := range 4 {
		p.B.Recv(uint64(i), dst, 0, 10)
	}
	check.Equal(t, "fifth receive", p.B.QP.PostRecv(&rdmap.RecvWR{}), rdmap.ErrQueueFull)
	p.Lazy = true
	for i := range 3 {
		p.A.Post(rdmap.SendWR{ID: uint64(i)})
	}
	p.Run()
	// req 5040-5.5-11: delivered at the peer, but not completed before ddp has completed it.
	check.Equal(t, "fourth request", p.A.QP.PostSend(&rdmap.SendWR{}), rdmap.ErrQueueFull)
	rdmaptest.Wants(t, "unacknowledged", p.A.SCQ.Take())
	p.A.Ack()
	rdmaptest.Wants(t, "acknowledged", p.A.SCQ.Take(), rdmap.WC{ID: 0}, rdmap.WC{ID: 1}, rdmap.WC{ID: 2})
	p.A.Post(rdmap.SendWR{ID: 3})

	for i := range 3 { // in place of those that have completed, while one has not
		p.B.Recv(uint64(4+i), dst, 0, 10)
	}
	check.Equal(t, "fifth receive", p.B.QP.PostRecv(&rdmap.RecvWR{}), rdmap.ErrQueueFull)
}

func TestRemoteInvalidation(t *testing.T) {
	for _, row := range []struct {
		name   string
		access ddp.Access
		shared bool
		scope  ddp.StreamID
		pd     ddp.PD
		gone   bool
		ok     bool
	}{
		{"the only stream of the Protection Domain may", ddp.RemoteRead, false, 0, rdmaptest.PD, false, true},
		{"a shared STag is refused", ddp.RemoteWrite, true, 0, rdmaptest.PD, false, false}, // req 5040-8.1.1-7
		{"an STag of this stream alone is not shared", ddp.RemoteWrite, true, 2, rdmaptest.PD, false, true},
		{"another stream's STag is refused", ddp.RemoteWrite, false, 9, rdmaptest.PD, false, false},
		{"another Protection Domain's STag is refused", ddp.RemoteWrite, false, 0, rdmaptest.PD + 1, false, false},
		{"an STag that was never advertised is refused", ddp.LocalWrite, false, 0, rdmaptest.PD, false, false},
		{"an unknown STag is refused", ddp.RemoteWrite, false, 0, rdmaptest.PD, true, false}, // req 5040-7.2-4
	} {
		t.Run(row.name, func(t *testing.T) {
			p := rdmaptest.NewPair(t, nil)
			r := must.Get(p.B.Table.Register(ddp.Spec{PD: row.pd, Mem: ddp.Bytes(make([]byte, 9)), Access: row.access,
				Scope: row.scope}))(t)
			if row.gone {
				must.OK(t, p.B.Table.Deregister(r))
			}
			p.B.Shared = row.shared
			dst, _ := p.B.Memory(9, ddp.LocalWrite)
			p.B.Recv(1, dst, 0, 9)
			p.B.Recv(2, dst, 0, 9)
			p.Lazy = true // so that the sender still has the request when the Terminate comes
			p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRSendInv, InvalidateSTag: r.STag()})
			p.Run()
			if row.ok {
				rdmaptest.Wants(t, "receiver", p.B.RCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCRecv})
				check.That(t, !r.Valid(), "still valid")
				return
			}
			check.That(t, r.Valid() != row.gone, "valid: %v", r.Valid())
			// req 5040-5.3-11, 5040-4.8-7, 5040-7.1-3: code 0x09, DDP header quoted, no RDMA
			// header.
			tm, _ := p.B.LastTerminate()
			check.That(t, tm.Layer == rdmap.LayerRDMA && tm.EType == rdmap.RemoteProtection &&
				tm.Code == rdmap.CodeCannotInvalidate && tm.HasLength && tm.HasDDP && !tm.HasRDMA, "Terminate %+v", tm)
			rdmaptest.Same(t, "quoted header", tm.DDP[:], p.A.Log[0])
			check.Equal(t, "segment length", tm.SegLength, 18)
			// req 5040-3.2-4, 5040-5.3-6: both users learn of it.
			rdmaptest.Wants(t, "receiver", p.B.RCQ.Take(),
				rdmap.WC{ID: 1, Status: rdmap.StatusMWBindErr, Opcode: rdmap.WCRecv},
				rdmap.WC{ID: 2, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRecv})
			rdmaptest.Wants(t, "sender", p.A.SCQ.Take(), rdmap.WC{ID: 1, Status: rdmap.StatusRemAccessErr})
		})
	}
}

func TestInvalidationWaitsForDelivery(t *testing.T) {
	// req 5040-5.3-10: placement alone invalidates nothing.
	p := rdmaptest.NewPair(t, nil)
	r, _ := p.B.Memory(9, ddp.RemoteWrite)
	dst, _ := p.B.Memory(9, ddp.LocalWrite)
	p.B.Recv(1, dst, 0, 9)
	var placed ddp.Placed
	seg := rdmaptest.Untagged(0, 1, rdmaptest.Rsvd(rdmap.OpSendInv, r.STag()), 0, true, []byte("x"))
	p.B.QP.Stream().Place(seg, &placed)
	must.That(t, r.Valid(), "invalidated at placement")
	p.B.QP.Stream().Deliver(&placed)
	must.That(t, !r.Valid(), "not invalidated at delivery")
	// Nothing in flight refers to r, so nothing is copied.
	check.Equal(t, "detached without need", p.B.Detached, 0)
	p.Lazy = true
	source, _ := p.B.Memory(9, ddp.RemoteRead)
	sink, _ := p.A.Memory(9, ddp.RemoteWrite)
	for _, from := range []*ddp.Region{dst, source} {
		p.B.Post(rdmap.SendWR{Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(from, 0, 9)}, RemoteSTag: sink.STag(),
			RemoteTO: sink.Base()})
	}
	p.Run()
	p.B.Recv(2, dst, 0, 9)
	p.B.Inject(rdmaptest.Untagged(0, 2, rdmaptest.Rsvd(rdmap.OpSendInv, source.STag()), 0, true, nil))
	check.Equal(t, "what the second of two Writes in flight reads from is detached so many times", p.B.Detached, 1)
}

// The user hears of an invalidation when all that was in flight of the region is copied, which is
// in parts, and of what came behind it then, in order.
func TestInvalidationDetachesWhatIsInFlight(t *testing.T) {
	for parts, over := range map[int]bool{1: false, 3: false, 4: true} {
		p := rdmaptest.NewPair(t, nil)
		r, _ := p.B.Memory(50, ddp.RemoteRead)
		sink, _ := p.A.Memory(50, ddp.LocalWrite)
		dst, _ := p.B.Memory(9, ddp.LocalWrite)
		for id := range uint64(3) {
			p.B.Recv(id+1, dst, 0, 9)
		}
		p.Lazy = true
		p.A.Post(rdmap.SendWR{ID: 1, Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(sink, 0, 50)},
			RemoteSTag: r.STag(), RemoteTO: r.Base()})
		p.Run()
		p.B.Parts = parts
		p.B.Inject(rdmaptest.Untagged(0, 1, rdmaptest.Rsvd(rdmap.OpSendInv, r.STag()), 0, true, nil))
		p.B.Inject(rdmaptest.Untagged(0, 2, rdmaptest.Rsvd(rdmap.OpSend, 0), 0, true, nil))
		done := []rdmap.WC{{ID: 1, Opcode: rdmap.WCRecv}, {ID: 2, Opcode: rdmap.WCRecv}}
		for part := 1; part < parts; part++ {
			rdmaptest.Wants(t, "while a part is copied", p.B.RCQ.Take())
			check.That(t, p.B.Detached == part && p.B.Flushes, "%d of %d parts are copied, the rest asked for: %v",
				p.B.Detached, parts, p.B.Flushes)
			p.B.Flushes = false
			if over && part == 2 {
				p.B.Parts = 0
				p.B.QP.Stream().Closed(errors.New("gone"))
				done = append(done, rdmap.WC{ID: 3, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRecv})
				break
			}
			p.B.QP.Flush()
		}
		rdmaptest.Wants(t, "when all is copied", p.B.RCQ.Take(), done...)
		p.B.QP.Flush()
		check.That(t, !p.B.Flushes && (over || p.B.Detached == parts),
			"copied %d times in %d parts, more asked for: %v", p.B.Detached, parts, p.B.Flushes)
	}
}

func TestOneOperationIsOneMessage(t *testing.T) {
	// req 5040-3.2-1: the operations; req 5040-3.1-3, 5040-5.2-1: each is one DDP message, a Read
	// one of each end.
	for _, row := range []struct {
		name string
		op   rdmap.WROpcode
		back int // messages of the responder
	}{
		{"Send", rdmap.WRSend, 0},
		{"Send with SE", rdmap.WRSendSE, 0},
		{"Send with Invalidate", rdmap.WRSendInv, 0},
		{"Send with SE and Invalidate", rdmap.WRSendSEInv, 0},
		{"RDMA Write", rdmap.WRWrite, 0},
		{"RDMA Read", rdmap.WRRead, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := rdmaptest.NewPair(t, nil)
			local, _ := p.A.Memory(400, ddp.LocalWrite)
			dst, _ := p.B.Memory(400, ddp.LocalWrite|ddp.RemoteWrite|ddp.RemoteRead)
			victim, _ := p.B.Memory(8, ddp.RemoteWrite)
			p.B.Recv(1, dst, 0, 400)
			wr := rdmap.SendWR{Op: row.op, SGL: []rdmap.SGE{rdmaptest.SGE(local, 0, 300)}}
			switch row.op {
			case rdmap.WRWrite, rdmap.WRRead:
				wr.RemoteSTag, wr.RemoteTO = dst.STag(), dst.Base()
			case rdmap.WRSendInv, rdmap.WRSendSEInv:
				wr.InvalidateSTag = victim.STag()
			}
			p.A.Post(wr)
			p.Run()
			n, m := rdmaptest.Messages(t, p.A.Log), rdmaptest.Messages(t, p.B.Log)
			// req 5040-6.1-1
			check.That(t, n == 1 && m == row.back && len(p.A.Log)+len(p.B.Log) >= 4,
				"%d messages in %d segments, %d in %d back", n, len(p.A.Log), m, len(p.B.Log))
			for _, log := range [][][]byte{p.A.Log, p.B.Log} {
				to := uint64(0)
				for i, s := range log { // req 5040-5.1-8, 5040-5.2.1-8: one tagged buffer, in one run of octets
					if !ddp.Control(s[0]).Tagged() {
						continue
					}
					v := ddp.TaggedView(s)
					check.That(t, i <= 0 || v.TO() == to && v.STag() == ddp.TaggedView(log[0]).STag(),
						"segment %d goes to STag %#x at %d", i, v.STag(), v.TO())
					to = v.TO() + uint64(len(v.Payload()))
				}
			}
		})
	}
}

func TestInvalidateFieldIsIgnoredWhereItHasNoMeaning(t *testing.T) {
	// req 5040-4.1-10
	for _, row := range []struct {
		name string
		seg  func(stag ddp.STag, src *ddp.Region) []byte
	}{
		{"Send", func(tag ddp.STag, _ *ddp.Region) []byte {
			return rdmaptest.Untagged(0, 1, rdmaptest.Rsvd(opOf(0x43), tag), 0, true, []byte("x"))
		}},
		{"Send with SE", func(tag ddp.STag, _ *ddp.Region) []byte {
			return rdmaptest.Untagged(0, 1, rdmaptest.Rsvd(opOf(0x45), tag), 0, true, []byte("x"))
		}},
		{"Read Request", func(tag ddp.STag, src *ddp.Region) []byte {
			s := rdmaptest.ReadSegment(1, src.STag(), src.Base(), 4)
			r := rdmaptest.Rsvd(opOf(0x41), tag)
			copy(s[1:6], r[:])
			return s
		}},
		{"Terminate", func(tag ddp.STag, _ *ddp.Region) []byte {
			return rdmaptest.Untagged(2, 1, rdmaptest.Rsvd(opOf(0x47), tag), 0, true,
				(&rdmap.Terminate{Layer: rdmap.LayerDDP}).Append(nil))
		}},
	} {
		s := rdmaptest.NewSetup(t)
		seg := row.seg(s.Both.STag(), s.Read)
		v := ddp.UntaggedView(seg).RsvdULP()
		must.That(t, v != [5]byte{v[0]}, "%s: the field is 0: this tests nothing", row.name)
		s.E.Inject(seg)
		check.That(t, s.Both.Valid(), "%s invalidated the STag in the field", row.name)
		own := len(s.E.Failures) > 0 && !s.E.Failures[0].Remote
		check.That(t, !own, "%s: refused: %v", row.name, s.E.Failures)
	}
}
