package rdmap

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// expected is what one completion must look like, and what must be true when it is pushed.
type expected struct {
	wc    WC
	check func() error
}

// oracle is a CQ that knows what comes next.
type oracle struct {
	t    *testing.T
	name string
	next []expected
	seen int
}

func (o *oracle) Push(wc WC) {
	if len(o.next) == 0 {
		o.t.Fatalf("%s: unexpected completion %+v", o.name, wc)
	}
	want := o.next[0]
	o.next = o.next[1:]
	o.seen++
	if wc != want.wc {
		o.t.Fatalf("%s: completion %+v, want %+v", o.name, wc, want.wc)
	}
	if want.check != nil {
		if err := want.check(); err != nil {
			o.t.Fatalf("%s: at completion of %d: %v", o.name, wc.ID, err)
		}
	}
}

const (
	areas    = 64  // per region; each request uses an area of its own until all is quiet
	areaSize = 256 // octets
)

// party is one end of the property test with its model of memory.
type party struct {
	e      *end
	scq    oracle
	rcq    oracle
	out    *ddp.Region // local source of Sends and Writes
	target *ddp.Region // the peer writes here, and reads back
	sink   *ddp.Region // of RDMA Reads
	rbuf   *ddp.Region // receive buffers
	count  *ddp.Region // the peer's atomics
	inv    []*ddp.Region

	used  int       // areas
	recvs int       // receives posted and not promised to a Send
	model []byte    // what target holds once all writes sent so far are delivered
	words [4]uint64 // what count holds once all atomics sent so far are delivered
	id    uint64
	done  int
}

func (p *party) mem(r *ddp.Region) []byte { return r.Memory().RAM() }

// act posts one random request of p towards q.
func (p *party) act(rnd *rand.Rand, q *party) {
	n := rnd.IntN(areaSize + 1)
	at := p.used * areaSize
	wr := SendWR{ID: p.id, SGL: split(rnd, sge(p.out, at, n))}
	data := p.mem(p.out)[at : at+n]
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	want := expected{wc: WC{ID: p.id, QPNum: p.e.qp.Num()}}
	switch k := rnd.IntN(7); {
	case k == 4: // Atomic
		i := rnd.IntN(len(q.words))
		old := q.words[i]
		wr.Op, wr.SGL, wr.RemoteSTag, wr.RemoteTO = WRAtomic, nil, q.count.STag(), q.count.Base()+uint64(8*i)
		if rnd.IntN(2) == 0 {
			wr.Atomic = FetchAdd(rnd.Uint64())
			q.words[i] += wr.Atomic.Data
		} else if wr.Atomic = CmpSwap(old^rnd.Uint64N(2), rnd.Uint64()); wr.Atomic.Compare == old {
			q.words[i] = wr.Atomic.Data
		}
		want.wc.Opcode, want.wc.Original = WCAtomic, old
	case k >= 5: // Immediate Data, alone or behind an RDMA Write
		if q.recvs == 0 {
			return
		}
		q.recvs--
		wr.Op, wr.Immediate = WRImm+WROpcode(rnd.IntN(4)), rnd.Uint64()
		want.wc.Opcode = WCImm
		if wr.Op.writes() {
			wr.RemoteSTag, wr.RemoteTO = q.target.STag(), q.target.Base()+uint64(at)
			copy(q.model[at:], data)
			want.wc.Opcode = WCWrite
		} else {
			wr.SGL, n = nil, 0
		}
		r := &q.rcq.next[len(q.rcq.next)-1-q.recvs]
		r.wc.Opcode, r.wc.Immediate, r.wc.Solicited = WCRecvImm, wr.Immediate, wr.Op == WRImmSE || wr.Op == WRWriteImmSE
		written, upTo := bytes.Clone(q.model), p.used*areaSize+n
		r.check = func() error {
			if !bytes.Equal(q.mem(q.target)[:upTo], written[:upTo]) {
				return fmt.Errorf("an earlier write is not in place")
			}
			return nil
		}
	case k == 0: // RDMA Write
		wr.Op, wr.RemoteSTag, wr.RemoteTO = WRWrite, q.target.STag(), q.target.Base()+uint64(at)
		copy(q.model[at:], data)
		want.wc.Opcode = WCWrite
	case k == 1: // RDMA Read of what was written before
		from, m := rnd.IntN(p.used*areaSize+1), rnd.IntN(areaSize+1)
		m = min(m, p.used*areaSize-from)
		wr.Op, wr.SGL = WRRead, []SGE{sge(p.sink, at, m)}
		wr.RemoteSTag, wr.RemoteTO = q.target.STag(), q.target.Base()+uint64(from)
		content := bytes.Clone(q.model[from : from+m])
		want.wc.Opcode, want.wc.ByteLen = WCRead, uint32(m)
		want.check = func() error {
			if got := p.mem(p.sink)[at : at+m]; !bytes.Equal(got, content) {
				return fmt.Errorf("read %x, want %x", got, content)
			}
			return nil
		}
	default: // a Send type; at its completion all writes before it are in place
		if q.recvs == 0 {
			return
		}
		q.recvs--
		wr.Op = WROpcode(rnd.IntN(4))
		if wr.Op.invalidates() && len(q.inv) == 0 {
			wr.Op = WRSendSE
		}
		if n <= 32 && rnd.IntN(2) == 0 {
			wr.Inline, wr.SGL = data, nil
		}
		r := &q.rcq.next[len(q.rcq.next)-1-q.recvs] // filled in order of posting
		r.wc.ByteLen = uint32(n)
		r.wc.Solicited = wr.Op == WRSendSE || wr.Op == WRSendSEInv
		var region *ddp.Region
		if wr.Op.invalidates() {
			region = q.inv[0]
			q.inv = q.inv[1:]
			wr.InvalidateSTag = region.STag()
			r.wc.Invalidated, r.wc.InvalidatedSTag = true, region.STag()
		}
		content, written, upTo := bytes.Clone(data), bytes.Clone(q.model), p.used*areaSize
		slot := int(r.wc.ID) % areas * areaSize
		r.check = func() error {
			switch {
			case !bytes.Equal(q.mem(q.rbuf)[slot:slot+n], content):
				return fmt.Errorf("received %x, want %x", q.mem(q.rbuf)[slot:slot+n], content)
			case !bytes.Equal(q.mem(q.target)[:upTo], written[:upTo]):
				return fmt.Errorf("an earlier write is not in place")
			case region != nil && region.Valid():
				return fmt.Errorf("the STag is still valid")
			}
			return nil
		}
	}
	if rnd.IntN(8) == 0 {
		wr.Flags |= Fence
	}
	if rnd.IntN(4) == 0 {
		wr.Flags |= Unsignaled
	} else {
		p.scq.next = append(p.scq.next, want)
	}
	p.e.post(wr)
	p.id++
	p.used++
	p.done++
}

// split cuts a piece into up to three.
func split(rnd *rand.Rand, s SGE) []SGE {
	var out []SGE
	for i := 0; i < 2 && s.Len > 0; i++ {
		n := rnd.Uint32N(s.Len + 1)
		out = append(out, SGE{s.LKey, s.Addr, n})
		s.Addr, s.Len = s.Addr+uint64(n), s.Len-n
	}
	return append(out, s)
}

// refill posts a receive of whole area size.
func (p *party) refill() {
	if p.recvs >= areas/2 || len(p.rcq.next) >= areas/2 {
		return
	}
	id := uint64(p.rcq.seen + len(p.rcq.next))
	slot := int(id) % areas * areaSize
	p.e.recv(id, p.rbuf, slot, areaSize)
	p.rcq.next = append(p.rcq.next, expected{wc: WC{ID: id, Opcode: WCRecv, QPNum: p.e.qp.Num()}})
	p.recvs++
}

func newParty(t *testing.T, id byte, rnd *rand.Rand, ird, ord int) *party {
	p := &party{model: make([]byte, areas*areaSize)}
	p.scq, p.rcq = oracle{t: t, name: fmt.Sprint("send CQ ", id)}, oracle{t: t, name: fmt.Sprint("receive CQ ", id)}
	p.e = newEnd(t, id, func(c *Config) {
		c.SendCQ, c.RecvCQ, c.MaxSend, c.MaxRecv, c.IRD, c.ORD = &p.scq, &p.rcq, areas+1, areas, ird, ord
	})
	p.out, _ = p.e.memory(areas*areaSize, 0)
	p.target, _ = p.e.memory(areas*areaSize, ddp.RemoteWrite|ddp.RemoteRead)
	p.sink, _ = p.e.memory(areas*areaSize, ddp.LocalWrite)
	p.rbuf, _ = p.e.memory(areas*areaSize, ddp.LocalWrite)
	p.count, _ = p.e.memory(8*len(p.words), ddp.RemoteAtomic)
	for range 20 {
		r, _ := p.e.memory(1, ddp.RemoteRead)
		p.inv = append(p.inv, r)
	}
	p.e.mulpdu = 40 + rnd.IntN(200)
	p.e.qp.Start()
	return p
}

// TestEverythingEndsAsTheModelSaysInAnyOrder runs random operations from both ends over a lower layer that places segments in any order,
// delivers them in order, delays acknowledgements and changes the MULPDU. A model of the memory says what
// each completion must find in place (sections 5.5 and Appendix B).
func TestEverythingEndsAsTheModelSaysInAnyOrder(t *testing.T) {
	// req 5040-B-1, 5040-B-2, 5040-B-4, 5040-5.5-2, 5040-5.5-6, 5040-5.5-7, 5040-5.1-6, 5040-5.3-7, 5040-5.2.1-6,
	// 5040-5.5-10, 7306-6.3-4
	for s := range uint64(60) {
		t.Run(fmt.Sprintf("seed %d", s), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(s, 5040))
			ird, ord := 1+rnd.IntN(4), 1+rnd.IntN(4)
			a, b := newParty(t, 1, rnd, ird, ord), newParty(t, 2, rnd, ord, ird)
			w := &pair{a: a.e, b: b.e, lazy: true}
			if s%2 == 1 {
				w.rnd = rnd
			}
			for range 3 { // until the areas are used up, then all must come to rest
				a.used, b.used = 0, 0
				for i := 0; a.used < areas && b.used < areas; i++ {
					x, y := a, b
					if rnd.IntN(2) == 0 {
						x, y = b, a
					}
					switch rnd.IntN(5) {
					case 0:
						x.refill()
					case 1:
						if x.used < areas && x.e.qp.sq.free() > 1 {
							x.act(rnd, y)
						}
					case 2:
						for range rnd.IntN(8) {
							x.e.cutOne()
						}
					case 3:
						w.arrive(x.e, y.e, rnd.IntN(12))
					case 4:
						for n := rnd.IntN(x.e.unacked + 1); n > 0; n-- {
							x.e.qp.Stream().Acked()
							x.e.unacked--
						}
						x.e.mulpdu = 40 + rnd.IntN(200)
					}
				}
				w.lazy = false
				w.run()
				w.lazy = true
				for _, p := range []*party{a, b} {
					if len(p.e.failed) > 0 {
						t.Fatal(p.e.failed[0])
					}
					must.That(t, len(p.scq.next) == 0 && len(p.rcq.next) == p.recvs && p.e.qp.sq.empty() && p.e.qp.QueuedReads() == 0, "at rest: %d completions missing, %d receives of which %d are free", len(p.scq.next), len(p.rcq.next), p.recvs)
					same(t, "written memory", p.mem(p.target), p.model)
					for i, w := range p.words {
						got := word(p.mem(p.count), i)
						must.That(t, got == w, "counter %d is %d, want %d", i, got, w)
					}
				}
			}
			must.That(t, a.done >= 20 && b.done >= 20, "only %d and %d requests", a.done, b.done)
			a.e.qp.Close()
			b.e.qp.Close()
			w.lazy = false
			b.recvs = 0
			for _, p := range []*party{a, b} { // what is left is flushed
				for i := range p.rcq.next {
					p.rcq.next[i].wc.Status = StatusWRFlushErr
				}
			}
			w.run()
			check.That(t, a.e.finish && b.e.finish, "not closed")
		})
	}
}
