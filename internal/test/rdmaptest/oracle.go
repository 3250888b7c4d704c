package rdmaptest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// expected is what one completion must look like, and what must be true when it is pushed.
type expected struct {
	WC    rdmap.WC
	check func() error
}

// orderedCQ is a CQ that knows what comes next.
type orderedCQ struct {
	t    *testing.T
	name string
	Next []expected
	seen int
}

func (o *orderedCQ) Push(wc rdmap.WC) {
	if len(o.Next) == 0 {
		o.t.Fatalf("%s: unexpected completion %+v", o.name, wc)
	}
	want := o.Next[0]
	o.Next = o.Next[1:]
	o.seen++
	if wc != want.WC {
		o.t.Fatalf("%s: completion %+v, want %+v", o.name, wc, want.WC)
	}
	if want.check != nil {
		if err := want.check(); err != nil {
			o.t.Fatalf("%s: at completion of %d: %v", o.name, wc.ID, err)
		}
	}
}

const (
	Areas    = 64  // per region; each request uses an area of its own until all is quiet
	areaSize = 256 // octets
)

// Party is one end of the property test with its model of memory.
type Party struct {
	E      *End
	SCQ    orderedCQ
	RCQ    orderedCQ
	out    *ddp.Region // local source of Sends and Writes
	Target *ddp.Region // the peer writes here, and reads back
	sink   *ddp.Region // of RDMA Reads
	rbuf   *ddp.Region // receive buffers
	Count  *ddp.Region // the peer's atomics
	inv    []*ddp.Region

	Used  int       // areas
	Recvs int       // receives posted and not promised to a Send
	Model []byte    // what target holds once all writes sent so far are delivered
	Words [4]uint64 // what count holds once all atomics sent so far are delivered
	id    uint64
	Done  int
}

func (p *Party) Mem(r *ddp.Region) []byte { return r.Memory().RAM() }

// Act posts one random request of p towards q.
func (p *Party) Act(rnd *rand.Rand, q *Party) {
	n := rnd.IntN(areaSize + 1)
	at := p.Used * areaSize
	wr := rdmap.SendWR{ID: p.id, SGL: splitSGE(rnd, SGE(p.out, at, n))}
	data := p.Mem(p.out)[at : at+n]
	for i := range data {
		data[i] = byte(rnd.Uint32())
	}
	want := expected{WC: rdmap.WC{ID: p.id, QPNum: p.E.QP.Num()}}
	switch k := rnd.IntN(7); {
	case k == 4: // Atomic
		i := rnd.IntN(len(q.Words))
		old := q.Words[i]
		wr.Op, wr.SGL, wr.RemoteSTag, wr.RemoteTO = rdmap.WRAtomic, nil, q.Count.STag(), q.Count.Base()+uint64(8*i)
		if rnd.IntN(2) == 0 {
			wr.Atomic = rdmap.FetchAdd(rnd.Uint64())
			q.Words[i] += wr.Atomic.Data
		} else if wr.Atomic = rdmap.CmpSwap(old^rnd.Uint64N(2), rnd.Uint64()); wr.Atomic.Compare == old {
			q.Words[i] = wr.Atomic.Data
		}
		want.WC.Opcode, want.WC.Original = rdmap.WCAtomic, old
	case k >= 5: // Immediate Data, alone or behind an RDMA Write
		if q.Recvs == 0 {
			return
		}
		q.Recvs--
		wr.Op, wr.Immediate = rdmap.WRImm+rdmap.WROpcode(rnd.IntN(4)), rnd.Uint64()
		want.WC.Opcode = rdmap.WCImm
		if wr.Op == rdmap.WRWriteImm || wr.Op == rdmap.WRWriteImmSE {
			wr.RemoteSTag, wr.RemoteTO = q.Target.STag(), q.Target.Base()+uint64(at)
			copy(q.Model[at:], data)
			want.WC.Opcode = rdmap.WCWrite
		} else {
			wr.SGL, n = nil, 0
		}
		r := &q.RCQ.Next[len(q.RCQ.Next)-1-q.Recvs]
		r.WC.Opcode, r.WC.Immediate, r.WC.Solicited = rdmap.WCRecvImm, wr.Immediate, wr.Op == rdmap.WRImmSE ||
			wr.Op == rdmap.WRWriteImmSE
		written, upTo := bytes.Clone(q.Model), p.Used*areaSize+n
		r.check = func() error {
			if !bytes.Equal(q.Mem(q.Target)[:upTo], written[:upTo]) {
				return fmt.Errorf("an earlier write is not in place")
			}
			return nil
		}
	case k == 0: // RDMA Write
		wr.Op, wr.RemoteSTag, wr.RemoteTO = rdmap.WRWrite, q.Target.STag(), q.Target.Base()+uint64(at)
		copy(q.Model[at:], data)
		want.WC.Opcode = rdmap.WCWrite
	case k == 1: // RDMA Read of what was written before
		from, m := rnd.IntN(p.Used*areaSize+1), rnd.IntN(areaSize+1)
		m = min(m, p.Used*areaSize-from)
		wr.Op, wr.SGL = rdmap.WRRead, []rdmap.SGE{SGE(p.sink, at, m)}
		wr.RemoteSTag, wr.RemoteTO = q.Target.STag(), q.Target.Base()+uint64(from)
		content := bytes.Clone(q.Model[from : from+m])
		want.WC.Opcode, want.WC.ByteLen = rdmap.WCRead, uint32(m)
		want.check = func() error {
			if got := p.Mem(p.sink)[at : at+m]; !bytes.Equal(got, content) {
				return fmt.Errorf("read %x, want %x", got, content)
			}
			return nil
		}
	default: // a Send type; at its completion all writes before it are in place
		if q.Recvs == 0 {
			return
		}
		q.Recvs--
		wr.Op = rdmap.WROpcode(rnd.IntN(4))
		if isInvalidate(wr.Op) && len(q.inv) == 0 {
			wr.Op = rdmap.WRSendSE
		}
		if n <= 32 && rnd.IntN(2) == 0 {
			wr.Inline, wr.SGL = data, nil
		}
		r := &q.RCQ.Next[len(q.RCQ.Next)-1-q.Recvs] // filled in order of posting
		r.WC.ByteLen = uint32(n)
		r.WC.Solicited = wr.Op == rdmap.WRSendSE || wr.Op == rdmap.WRSendSEInv
		var region *ddp.Region
		if isInvalidate(wr.Op) {
			region = q.inv[0]
			q.inv = q.inv[1:]
			wr.InvalidateSTag = region.STag()
			r.WC.Invalidated, r.WC.InvalidatedSTag = true, region.STag()
		}
		content, written, upTo := bytes.Clone(data), bytes.Clone(q.Model), p.Used*areaSize
		slot := int(r.WC.ID) % Areas * areaSize
		r.check = func() error {
			switch {
			case !bytes.Equal(q.Mem(q.rbuf)[slot:slot+n], content):
				return fmt.Errorf("received %x, want %x", q.Mem(q.rbuf)[slot:slot+n], content)
			case !bytes.Equal(q.Mem(q.Target)[:upTo], written[:upTo]):
				return fmt.Errorf("an earlier write is not in place")
			case region != nil && region.Valid():
				return fmt.Errorf("the STag is still valid")
			}
			return nil
		}
	}
	if rnd.IntN(8) == 0 {
		wr.Flags |= rdmap.Fence
	}
	if rnd.IntN(4) == 0 {
		wr.Flags |= rdmap.Unsignaled
	} else {
		p.SCQ.Next = append(p.SCQ.Next, want)
	}
	p.E.Post(wr)
	p.id++
	p.Used++
	p.Done++
}

func isInvalidate(op rdmap.WROpcode) bool { return op == rdmap.WRSendInv || op == rdmap.WRSendSEInv }

// splitSGE cuts a piece into up to three.
func splitSGE(rnd *rand.Rand, s rdmap.SGE) []rdmap.SGE {
	var out []rdmap.SGE
	for i := 0; i < 2 && s.Len > 0; i++ {
		n := rnd.Uint32N(s.Len + 1)
		out = append(out, rdmap.SGE{LKey: s.LKey, Addr: s.Addr, Len: n})
		s.Addr, s.Len = s.Addr+uint64(n), s.Len-n
	}
	return append(out, s)
}

// Refill posts a receive of whole area size.
func (p *Party) Refill() {
	if p.Recvs >= Areas/2 || len(p.RCQ.Next) >= Areas/2 {
		return
	}
	id := uint64(p.RCQ.seen + len(p.RCQ.Next))
	slot := int(id) % Areas * areaSize
	p.E.Recv(id, p.rbuf, slot, areaSize)
	p.RCQ.Next = append(p.RCQ.Next, expected{WC: rdmap.WC{ID: id, Opcode: rdmap.WCRecv, QPNum: p.E.QP.Num()}})
	p.Recvs++
}

func NewParty(t *testing.T, id byte, rnd *rand.Rand, ird, ord int) *Party {
	p := &Party{Model: make([]byte, Areas*areaSize)}
	p.SCQ, p.RCQ = orderedCQ{t: t, name: fmt.Sprint("send CQ ", id)},
		orderedCQ{t: t, name: fmt.Sprint("receive CQ ", id)}
	p.E = NewEnd(t, id, func(c *rdmap.Config) {
		c.SendCQ, c.RecvCQ, c.MaxSend, c.MaxRecv, c.IRD, c.ORD = &p.SCQ, &p.RCQ, Areas+1, Areas, ird, ord
	})
	p.out, _ = p.E.Memory(Areas*areaSize, 0)
	p.Target, _ = p.E.Memory(Areas*areaSize, ddp.RemoteWrite|ddp.RemoteRead)
	p.sink, _ = p.E.Memory(Areas*areaSize, ddp.LocalWrite)
	p.rbuf, _ = p.E.Memory(Areas*areaSize, ddp.LocalWrite)
	p.Count, _ = p.E.Memory(8*len(p.Words), ddp.RemoteAtomic)
	for range 20 {
		r, _ := p.E.Memory(1, ddp.RemoteRead)
		p.inv = append(p.inv, r)
	}
	p.E.Size = 40 + rnd.IntN(200)
	p.E.QP.Start()
	return p
}
