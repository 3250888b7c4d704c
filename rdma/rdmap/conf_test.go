package rdmap

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
)

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
		if version, op := SplitControl(control); version != 1 || op > 7 {
			t.Errorf("a segment that is no RDMAP: % x", s[:2])
		}
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
			if n, m := messages(t, p.a.log), messages(t, p.b.log); n != 1 || m != row.back || len(p.a.log)+len(p.b.log) < 4 { // req 5040-6.1-1
				t.Errorf("%d messages in %d segments, %d in %d back", n, len(p.a.log), m, len(p.b.log))
			}
			for _, log := range [][][]byte{p.a.log, p.b.log} {
				to := uint64(0)
				for i, s := range log { // req 5040-5.1-8, 5040-5.2.1-8: one tagged buffer, in one run of octets
					if !ddp.Control(s[0]).Tagged() {
						continue
					}
					v := ddp.TaggedView(s)
					if i > 0 && (v.TO() != to || v.STag() != ddp.TaggedView(log[0]).STag()) {
						t.Errorf("segment %d goes to STag %#x at %d", i, v.STag(), v.TO())
					}
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
		if v := ddp.UntaggedView(seg).RsvdULP(); v == [5]byte{v[0]} {
			t.Fatalf("%s: the field is 0: this tests nothing", row.name)
		}
		s.e.inject(seg)
		if !s.both.Valid() {
			t.Errorf("%s invalidated the STag in the field", row.name)
		}
		if own := len(s.e.failed) > 0 && !s.e.failed[0].Remote; own {
			t.Errorf("%s: refused: %v", row.name, s.e.failed[0])
		}
	}
}

func TestReadSizeTakesAllOf32Bits(t *testing.T) {
	// req 5040-4.4-6
	for _, n := range []uint32{0, 1, 1 << 31, 1<<32 - 1} {
		var b [ReadRequestLen]byte
		(&ReadRequest{Size: n}).Put(&b)
		if got := ParseReadRequest(&b); got.Size != n {
			t.Errorf("%d comes back as %d", n, got.Size)
		}
		s := newSetup(t)
		s.e.inject(readSegment(1, s.read.STag(), s.read.Base(), n))
		s.e.cutAll()
		if n > 100 { // in octets: beyond the source buffer, which a smaller unit would not tell
			if tm, _ := s.e.lastWord(); tm.Code != CodeBounds {
				t.Errorf("a Read of %d octets of a buffer of 100: %v", n, &tm)
			}
		} else if messages(t, s.e.log) != 1 || len(s.e.failed) != 0 {
			t.Errorf("a Read of %d octets is not answered", n)
		}
	}
}

func TestTerminateCodesOfRDMAP(t *testing.T) {
	// req 5040-4.8-8
	for code, want := range map[uint8]uint8{CodeInvalidVersion: 5, CodeUnexpectedOpcode: 6, CodeCatastrophic: 7, CodeCatastrophicGlobal: 8,
		CodeCannotInvalidate: 9, CodeUnspecified: 0xFF} {
		if code != want {
			t.Errorf("code %#x, want %#x", code, want)
		}
	}
	if RemoteProtection != 1 || RemoteOperation != 2 {
		t.Errorf("types %d and %d", RemoteProtection, RemoteOperation)
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
	if p.a.cutAll() != 2 {
		t.Fatalf("%d segments", len(p.a.sent))
	}
	var read, write ddp.Placed
	p.b.qp.Stream().Place(p.a.sent[1], &write)
	p.b.qp.Stream().Place(p.a.sent[0], &read)
	p.b.qp.Stream().Deliver(&read)
	p.b.qp.Stream().Deliver(&write)
	p.a.sent, p.a.unacked = nil, 2
	p.run()
	if string(got) != "new!" {
		t.Errorf("read %q", got)
	}
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
	if len(ends[0].failed) != 1 || len(ends[1].failed) != 0 {
		t.Errorf("errors %v and %v, want one on the stream that asked for too much", ends[0].failed, ends[1].failed)
	}
	ends[1].cutAll()
	if n := messages(t, ends[1].log); n != 2 {
		t.Errorf("%d of 2 responses on the other stream", n)
	}
}
