package rdmap

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/must"
)

// sharedPair is one sender and one receiver whose receives come from a shared queue.
func sharedPair(t testing.TB, depth, share int) (*pair, *SharedQueue, *ddp.Region, []byte) {
	p := &pair{a: newEnd(t, 1, nil)}
	var srq *SharedQueue
	p.b = newEnd(t, 2, func(c *Config) {
		srq = must.Get(NewSharedQueue(c.Table, c.PD, depth, 2))(t)
		c.SRQ, c.MaxRecv = srq, share
	})
	p.a.qp.Start()
	p.b.qp.Start()
	r, b := p.b.memory(1000, ddp.LocalWrite)
	return p, srq, r, b
}

func TestSharedReceiveQueue(t *testing.T) {
	p, srq, r, mem := sharedPair(t, 3, 8)
	for i := range 3 {
		must.OK(t, srq.Post(&RecvWR{ID: uint64(100 + i), SGL: []SGE{sge(r, 100*i, 5), sge(r, 100*i+50, 5)}}))
	}
	check.Equal(t, "fourth buffer", srq.Post(&RecvWR{}), ErrQueueFull)
	check.Equal(t, "PostRecv", p.b.qp.PostRecv(&RecvWR{}), ErrSharedRecv)
	for i := range 3 {
		p.a.post(SendWR{ID: uint64(i), Inline: []byte{byte(i), 1, 2, 3, 4, 5, 6, 7}})
	}
	p.run()
	wants(t, "receives", p.b.rcq.take(), WC{ID: 100, Opcode: WCRecv}, WC{ID: 101, Opcode: WCRecv}, WC{ID: 102, Opcode: WCRecv})
	same(t, "second", append(mem[100:105:105], mem[150:153]...), []byte{1, 1, 2, 3, 4, 5, 6, 7})
	check.Equal(t, "buffers left", srq.Len(), 0)
	// Places come back; an empty queue is an error of the stream.
	for i := range 3 {
		must.OK(t, srq.Post(&RecvWR{ID: uint64(200 + i)}))
	}
	for range 4 {
		p.a.post(SendWR{})
	}
	p.run()
	wants(t, "receives", p.b.rcq.take(), WC{ID: 200, Opcode: WCRecv}, WC{ID: 201, Opcode: WCRecv}, WC{ID: 202, Opcode: WCRecv})
	tm, _ := p.b.lastWord()
	check.That(t, tm.Layer == LayerDDP && tm.Code == ddp.CodeNoBuffer, "Terminate %v", &tm)
}

func TestSharedBuffersGoBackAtTeardown(t *testing.T) {
	p, srq, r, _ := sharedPair(t, 3, 8)
	for i := range 3 {
		must.OK(t, srq.Post(&RecvWR{ID: uint64(i), SGL: []SGE{sge(r, 0, 10)}}))
	}
	p.b.inject(untagged(0, 1, [5]byte{0x43}, 0, false, []byte("half")))
	p.b.qp.Abort(errors.New("enough"))
	wants(t, "the one in process", p.b.rcq.take(), WC{ID: 0, Status: StatusWRFlushErr, Opcode: WCRecv})
	for want := range uint64(2) {
		id, ok := srq.Flush()
		check.That(t, ok && id == want+1, "flushed %d %v", id, ok)
	}
	_, ok := srq.Flush()
	check.That(t, !ok, "more than was posted")
}

func TestShareOfTheSharedQueue(t *testing.T) {
	// req 5040-8.1.2-7, 5042-6.4.3.1-1: two begun messages are this stream's share; the third is refused
	// although the queue has buffers.
	p, srq, r, _ := sharedPair(t, 10, 2)
	for i := range 10 {
		must.OK(t, srq.Post(&RecvWR{ID: uint64(i), SGL: []SGE{sge(r, 0, 10)}}))
	}
	var placed [3]ddp.Placed
	for i := range placed {
		p.b.qp.Stream().Place(untagged(0, uint32(i+1), [5]byte{0x43}, 0, false, []byte("x")), &placed[i])
	}
	check.That(t, placed[1].Err == nil && placed[2].Err != nil && placed[2].Err.Code == ddp.CodeNoBuffer,
		"second %v, third %v", placed[1].Err, placed[2].Err)
	check.Equal(t, "buffers left of 10", srq.Len(), 8)
}

func TestSharedQueueIsChecked(t *testing.T) {
	e := newEnd(t, 1, nil)
	for _, bad := range []struct {
		table      *ddp.Table
		depth, sge int
	}{{nil, 1, 1}, {e.table, 0, 1}, {e.table, MaxDepth + 1, 1}, {e.table, 1, 0}, {e.table, 1, maxSGEs + 1}} {
		var ce *ConfigError
		_, err := NewSharedQueue(bad.table, testPD, bad.depth, bad.sge)
		check.That(t, errors.As(err, &ce), "%+v: %v", bad, err)
	}
	s := must.Get(NewSharedQueue(e.table, testPD, 1, 1))(t)
	scoped := must.Get(e.table.Register(ddp.Spec{PD: testPD, Mem: ddp.Bytes(make([]byte, 9)), Access: ddp.LocalWrite, Scope: 1}))(t)
	local, _ := e.memory(9, 0)
	for _, row := range []struct {
		sgl  []SGE
		want error
	}{
		{[]SGE{sge(scoped, 0, 1)}, ErrPD}, {[]SGE{sge(local, 0, 1)}, ErrAccess}, {make([]SGE, 2), ErrSGECount},
	} {
		err := s.Post(&RecvWR{SGL: row.sgl})
		check.That(t, errors.Is(err, row.want), "%v, want %v", err, row.want)
	}
	check.Equal(t, "buffers queued after a refusal", s.Len(), 0)
}
