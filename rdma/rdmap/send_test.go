package rdmap

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

func TestSendOfEachKindArrivesAsWhatItIs(t *testing.T) {
	for _, row := range []struct {
		name      string
		op        WROpcode
		control   uint8
		n         int // octets; 300 take several segments
		solicited bool
		inv       bool
	}{
		{"Send", WRSend, 0x43, 10, false, false},
		{"Send of several segments", WRSend, 0x43, 300, false, false},
		{"Send with SE", WRSendSE, 0x45, 10, true, false},
		{"Send with Invalidate", WRSendInv, 0x44, 10, false, true},
		{"Send with SE and Invalidate", WRSendSEInv, 0x46, 10, true, true},
		{"zero-length Send consumes a buffer", WRSend, 0x43, 0, false, false},
		{"zero-length Send with SE and Invalidate", WRSendSEInv, 0x46, 0, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t, nil)
			src, from := p.a.memory(400, 0)
			dst, to := p.b.memory(400, ddp.LocalWrite)
			advertised, _ := p.b.memory(8, ddp.RemoteWrite)
			fill(from, 1)
			p.b.recv(70, dst, 0, 400)
			wr := SendWR{ID: 5, Op: row.op, SGL: []SGE{sge(src, 3, row.n)}}
			if row.inv {
				wr.InvalidateSTag = advertised.STag()
			}
			p.a.post(wr)
			p.run()
			// req 5040-3.2-2, 5040-3.2-3, 5040-5.3-2, 5040-5.3-3, 5040-5.3-5, 5040-5.3-8
			wants(t, "sender", p.a.scq.take(), WC{ID: 5, Opcode: WCSend})
			got := p.b.rcq.take()
			wants(t, "receiver", got, WC{ID: 70, Opcode: WCRecv})
			want := WC{ID: 70, Opcode: WCRecv, QPNum: 2, ByteLen: uint32(row.n), Solicited: row.solicited}
			if row.inv {
				want.Invalidated, want.InvalidatedSTag = true, advertised.STag()
			}
			check.Equal(t, "completion", got[0], want)
			same(t, "data", to[:row.n], from[3:3+row.n])
			check.That(t, advertised.Valid() != row.inv, "the advertised region is valid: %v", advertised.Valid()) // req 5040-5.3-10
			// req 5040-4.1-1, 5040-4.1-3, 5040-4.1-4, 5040-4.1-9, 5040-5.3-1, 5040-5.3-9
			for _, s := range p.a.log {
				v := ddp.UntaggedView(s)
				want := untaggedRsvd(opOf(row.control), wr.InvalidateSTag)
				check.That(t, !v.Control().Tagged() && v.QN() == 0 && v.RsvdULP() == want && want[0] == row.control,
					"header % x, want RsvdULP % x", s[:18], want)
			}
		})
	}
}

// opOf is the opcode of a control field.
func opOf(c uint8) Opcode { _, op := SplitControl(c); return op }

func TestGatherScatterInline(t *testing.T) {
	// req 5040-5.1-5: several local pieces make one message.
	p := newPair(t, nil)
	src, from := p.a.memory(200, 0)
	dst, to := p.b.memory(200, ddp.LocalWrite|ddp.RemoteWrite)
	fill(from, 0)
	must.OK(t, p.b.qp.PostRecv(&RecvWR{ID: 1, SGL: []SGE{sge(dst, 100, 2), sge(dst, 0, 0), sge(dst, 0, 90)}}))
	p.a.post(SendWR{ID: 1, SGL: []SGE{sge(src, 50, 3), sge(src, 0, 1), sge(src, 10, 4)}})
	p.run()
	same(t, "scattered", append(to[100:102:102], to[:6]...), []byte{50, 51, 52, 0, 10, 11, 12, 13})

	p.a.post(SendWR{ID: 2, Op: WRWrite, SGL: []SGE{sge(src, 5, 1), sge(src, 7, 150), sge(src, 3, 1)},
		RemoteSTag: dst.STag(), RemoteTO: dst.Base()})
	p.run()
	same(t, "written", to[:152], append(append([]byte{5}, from[7:157]...), 3))

	// Inline data is the caller's again at once.
	p.b.recv(3, dst, 0, 200)
	line := []byte("inline data")
	p.a.post(SendWR{ID: 3, Inline: line})
	copy(line, "overwritten")
	p.run()
	same(t, "inline", to[:11], []byte("inline data"))
	wants(t, "sender", p.a.scq.take(), WC{ID: 1}, WC{ID: 2, Opcode: WCWrite}, WC{ID: 3})
}

func TestSendQueueIsBounded(t *testing.T) {
	p := newPair(t, func(c *Config) { c.MaxSend = 3; c.MaxRecv = 4 })
	dst, _ := p.b.memory(10, ddp.LocalWrite)
	for i := range 4 {
		p.b.recv(uint64(i), dst, 0, 10)
	}
	check.Equal(t, "fifth receive", p.b.qp.PostRecv(&RecvWR{}), ErrQueueFull)
	p.lazy = true
	for i := range 3 {
		p.a.post(SendWR{ID: uint64(i)})
	}
	p.run()
	// req 5040-5.5-11: delivered at the peer, but not completed before ddp has completed it.
	check.Equal(t, "fourth request", p.a.qp.PostSend(&SendWR{}), ErrQueueFull)
	wants(t, "unacknowledged", p.a.scq.take())
	p.a.ack()
	wants(t, "acknowledged", p.a.scq.take(), WC{ID: 0}, WC{ID: 1}, WC{ID: 2})
	p.a.post(SendWR{ID: 3})

	for i := range 3 { // in place of those that have completed, while one has not
		p.b.recv(uint64(4+i), dst, 0, 10)
	}
	check.Equal(t, "fifth receive", p.b.qp.PostRecv(&RecvWR{}), ErrQueueFull)
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
		{"the only stream of the Protection Domain may", ddp.RemoteRead, false, 0, testPD, false, true},
		{"a shared STag is refused", ddp.RemoteWrite, true, 0, testPD, false, false}, // req 5040-8.1.1-7
		{"an STag of this stream alone is not shared", ddp.RemoteWrite, true, 2, testPD, false, true},
		{"another stream's STag is refused", ddp.RemoteWrite, false, 9, testPD, false, false},
		{"another Protection Domain's STag is refused", ddp.RemoteWrite, false, 0, testPD + 1, false, false},
		{"an STag that was never advertised is refused", ddp.LocalWrite, false, 0, testPD, false, false},
		{"an unknown STag is refused", ddp.RemoteWrite, false, 0, testPD, true, false}, // req 5040-7.2-4
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t, nil)
			r := must.Get(p.b.table.Register(ddp.Spec{PD: row.pd, Mem: ddp.Bytes(make([]byte, 9)), Access: row.access, Scope: row.scope}))(t)
			if row.gone {
				must.OK(t, p.b.table.Deregister(r))
			}
			p.b.shared = row.shared
			dst, _ := p.b.memory(9, ddp.LocalWrite)
			p.b.recv(1, dst, 0, 9)
			p.b.recv(2, dst, 0, 9)
			p.lazy = true // so that the sender still has the request when the Terminate comes
			p.a.post(SendWR{ID: 1, Op: WRSendInv, InvalidateSTag: r.STag()})
			p.run()
			if row.ok {
				wants(t, "receiver", p.b.rcq.take(), WC{ID: 1, Opcode: WCRecv})
				check.That(t, !r.Valid(), "still valid")
				return
			}
			check.That(t, r.Valid() != row.gone, "valid: %v", r.Valid())
			// req 5040-5.3-11, 5040-4.8-7, 5040-7.1-3: code 0x09, DDP header quoted, no RDMA header.
			tm, _ := p.b.lastWord()
			check.That(t, tm.Layer == LayerRDMA && tm.EType == RemoteProtection && tm.Code == CodeCannotInvalidate && tm.HasLength && tm.HasDDP && !tm.HasRDMA, "Terminate %+v", tm)
			same(t, "quoted header", tm.DDP[:], p.a.log[0])
			check.Equal(t, "segment length", tm.SegLength, 18)
			// req 5040-3.2-4, 5040-5.3-6: both users learn of it.
			wants(t, "receiver", p.b.rcq.take(), WC{ID: 1, Status: StatusMWBindErr, Opcode: WCRecv}, WC{ID: 2, Status: StatusWRFlushErr, Opcode: WCRecv})
			wants(t, "sender", p.a.scq.take(), WC{ID: 1, Status: StatusRemAccessErr})
		})
	}
}

func TestInvalidationWaitsForDelivery(t *testing.T) {
	// req 5040-5.3-10: placement alone invalidates nothing.
	p := newPair(t, nil)
	r, _ := p.b.memory(9, ddp.RemoteWrite)
	dst, _ := p.b.memory(9, ddp.LocalWrite)
	p.b.recv(1, dst, 0, 9)
	var placed ddp.Placed
	seg := untagged(0, 1, untaggedRsvd(OpSendInv, r.STag()), 0, true, []byte("x"))
	p.b.qp.Stream().Place(seg, &placed)
	must.That(t, r.Valid(), "invalidated at placement")
	p.b.qp.Stream().Deliver(&placed)
	must.That(t, !r.Valid(), "not invalidated at delivery")
	// Nothing in flight refers to r, so nothing is copied.
	check.Equal(t, "detached without need", p.b.detached, 0)
	p.lazy = true
	source, _ := p.b.memory(9, ddp.RemoteRead)
	sink, _ := p.a.memory(9, ddp.RemoteWrite)
	for _, from := range []*ddp.Region{dst, source} {
		p.b.post(SendWR{Op: WRWrite, SGL: []SGE{sge(from, 0, 9)}, RemoteSTag: sink.STag(), RemoteTO: sink.Base()})
	}
	p.run()
	p.b.recv(2, dst, 0, 9)
	p.b.inject(untagged(0, 2, untaggedRsvd(OpSendInv, source.STag()), 0, true, nil))
	check.Equal(t, "what the second of two Writes in flight reads from is detached so many times", p.b.detached, 1)
}

// The user hears of an invalidation when all that was in flight of the region is copied, which is in parts, and of what came behind it then, in order.
func TestInvalidationDetachesWhatIsInFlight(t *testing.T) {
	for parts, ends := range map[int]bool{1: false, 3: false, 4: true} {
		p := newPair(t, nil)
		r, _ := p.b.memory(50, ddp.RemoteRead)
		sink, _ := p.a.memory(50, ddp.LocalWrite)
		dst, _ := p.b.memory(9, ddp.LocalWrite)
		for id := range uint64(3) {
			p.b.recv(id+1, dst, 0, 9)
		}
		p.lazy = true
		p.a.post(SendWR{ID: 1, Op: WRRead, SGL: []SGE{sge(sink, 0, 50)}, RemoteSTag: r.STag(), RemoteTO: r.Base()})
		p.run()
		p.b.parts = parts
		p.b.inject(untagged(0, 1, untaggedRsvd(OpSendInv, r.STag()), 0, true, nil))
		p.b.inject(untagged(0, 2, untaggedRsvd(OpSend, 0), 0, true, nil))
		done := []WC{{ID: 1, Opcode: WCRecv}, {ID: 2, Opcode: WCRecv}}
		for part := 1; part < parts; part++ {
			wants(t, "while a part is copied", p.b.rcq.take())
			check.That(t, p.b.detached == part && p.b.flush, "%d of %d parts are copied, the rest asked for: %v", p.b.detached, parts, p.b.flush)
			p.b.flush = false
			if ends && part == 2 {
				p.b.parts = 0
				p.b.qp.Stream().Closed(errors.New("gone"))
				done = append(done, WC{ID: 3, Status: StatusWRFlushErr, Opcode: WCRecv})
				break
			}
			p.b.qp.Flush()
		}
		wants(t, "when all is copied", p.b.rcq.take(), done...)
		p.b.qp.Flush()
		check.That(t, !p.b.flush && (ends || p.b.detached == parts), "copied %d times in %d parts, more asked for: %v", p.b.detached, parts, p.b.flush)
	}
}

// messages counts the DDP messages in a log and checks that each is one of RDMAP.
func messages(t *testing.T, log [][]byte) (n int) {
	t.Helper()
	for _, s := range log {
		c := ddp.Control(s[0])
		control := s[1]
		if !c.Tagged() {
			rsvd := ddp.UntaggedView(s).RsvdULP()
			control = rsvd[0]
		}
		version, op := SplitControl(control)
		check.That(t, version == 1 && op <= 7, "a segment that is no RDMAP: % x", s[:2])
		if c.Last() {
			n++
		}
	}
	return n
}

func TestOneOperationIsOneMessage(t *testing.T) {
	// req 5040-3.2-1: the operations; req 5040-3.1-3, 5040-5.2-1: each is one DDP message, a Read one of each end.
	for _, row := range []struct {
		name string
		op   WROpcode
		back int // messages of the responder
	}{
		{"Send", WRSend, 0},
		{"Send with SE", WRSendSE, 0},
		{"Send with Invalidate", WRSendInv, 0},
		{"Send with SE and Invalidate", WRSendSEInv, 0},
		{"RDMA Write", WRWrite, 0},
		{"RDMA Read", WRRead, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t, nil)
			local, _ := p.a.memory(400, ddp.LocalWrite)
			dst, _ := p.b.memory(400, ddp.LocalWrite|ddp.RemoteWrite|ddp.RemoteRead)
			victim, _ := p.b.memory(8, ddp.RemoteWrite)
			p.b.recv(1, dst, 0, 400)
			wr := SendWR{Op: row.op, SGL: []SGE{sge(local, 0, 300)}}
			switch row.op {
			case WRWrite, WRRead:
				wr.RemoteSTag, wr.RemoteTO = dst.STag(), dst.Base()
			case WRSendInv, WRSendSEInv:
				wr.InvalidateSTag = victim.STag()
			}
			p.a.post(wr)
			p.run()
			n, m := messages(t, p.a.log), messages(t, p.b.log)
			check.That(t, n == 1 && m == row.back && len(p.a.log)+len(p.b.log) >= 4, "%d messages in %d segments, %d in %d back", n, len(p.a.log), m, len(p.b.log)) // req 5040-6.1-1
			for _, log := range [][][]byte{p.a.log, p.b.log} {
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
			return untagged(0, 1, untaggedRsvd(opOf(0x43), tag), 0, true, []byte("x"))
		}},
		{"Send with SE", func(tag ddp.STag, _ *ddp.Region) []byte {
			return untagged(0, 1, untaggedRsvd(opOf(0x45), tag), 0, true, []byte("x"))
		}},
		{"Read Request", func(tag ddp.STag, src *ddp.Region) []byte {
			s := readSegment(1, src.STag(), src.Base(), 4)
			r := untaggedRsvd(opOf(0x41), tag)
			copy(s[1:6], r[:])
			return s
		}},
		{"Terminate", func(tag ddp.STag, _ *ddp.Region) []byte {
			return untagged(2, 1, untaggedRsvd(opOf(0x47), tag), 0, true, (&Terminate{Layer: LayerDDP}).Append(nil))
		}},
	} {
		s := newSetup(t)
		seg := row.seg(s.both.STag(), s.read)
		v := ddp.UntaggedView(seg).RsvdULP()
		must.That(t, v != [5]byte{v[0]}, "%s: the field is 0: this tests nothing", row.name)
		s.e.inject(seg)
		check.That(t, s.both.Valid(), "%s invalidated the STag in the field", row.name)
		own := len(s.e.failed) > 0 && !s.e.failed[0].Remote
		check.That(t, !own, "%s: refused: %v", row.name, s.e.failed)
	}
}
