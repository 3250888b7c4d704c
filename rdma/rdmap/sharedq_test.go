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

func TestSharedReceiveQueue(t *testing.T) {
	p, srq, r, mem := rdmaptest.SharedPair(t, 3, 8)
	for i := range 3 {
		must.OK(t,
			srq.Post(&rdmap.RecvWR{ID: uint64(100 + i),
				SGL: []rdmap.SGE{rdmaptest.SGE(r, 100*i, 5), rdmaptest.SGE(r, 100*i+50, 5)}}))
	}
	check.Equal(t, "fourth buffer", srq.Post(&rdmap.RecvWR{}), rdmap.ErrQueueFull)
	check.Equal(t, "PostRecv", p.B.QP.PostRecv(&rdmap.RecvWR{}), rdmap.ErrSharedRecv)
	for i := range 3 {
		p.A.Post(rdmap.SendWR{ID: uint64(i), Inline: []byte{byte(i), 1, 2, 3, 4, 5, 6, 7}})
	}
	p.Run()
	rdmaptest.Wants(t, "receives", p.B.RCQ.Take(), rdmap.WC{ID: 100, Opcode: rdmap.WCRecv},
		rdmap.WC{ID: 101, Opcode: rdmap.WCRecv}, rdmap.WC{ID: 102, Opcode: rdmap.WCRecv})
	rdmaptest.Same(t, "second", append(mem[100:105:105], mem[150:153]...), []byte{1, 1, 2, 3, 4, 5, 6, 7})
	check.Equal(t, "buffers left", srq.Len(), 0)
	// Places come back; an empty queue is an error of the stream.
	for i := range 3 {
		must.OK(t, srq.Post(&rdmap.RecvWR{ID: uint64(200 + i)}))
	}
	for range 4 {
		p.A.Post(rdmap.SendWR{})
	}
	p.Run()
	rdmaptest.Wants(t, "receives", p.B.RCQ.Take(), rdmap.WC{ID: 200, Opcode: rdmap.WCRecv},
		rdmap.WC{ID: 201, Opcode: rdmap.WCRecv}, rdmap.WC{ID: 202, Opcode: rdmap.WCRecv})
	tm, _ := p.B.LastTerminate()
	check.That(t, tm.Layer == rdmap.LayerDDP && tm.Code == ddp.CodeNoBuffer, "Terminate %v", &tm)
}

func TestSharedBuffersGoBackAtTeardown(t *testing.T) {
	p, srq, r, _ := rdmaptest.SharedPair(t, 3, 8)
	for i := range 3 {
		must.OK(t, srq.Post(&rdmap.RecvWR{ID: uint64(i), SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 10)}}))
	}
	p.B.Inject(rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, false, []byte("half")))
	p.B.QP.Abort(errors.New("enough"))
	rdmaptest.Wants(t, "the one in process", p.B.RCQ.Take(),
		rdmap.WC{ID: 0, Status: rdmap.StatusWRFlushErr, Opcode: rdmap.WCRecv})
	for want := range uint64(2) {
		id, ok := srq.Flush()
		check.That(t, ok && id == want+1, "flushed %d %v", id, ok)
	}
	id, ok := srq.Flush()
	check.That(t, !ok && id == 0, "more than was posted: %d", id)
}

func TestShareOfTheSharedQueue(t *testing.T) {
	// req 5040-8.1.2-7, 5042-6.4.3.1-1: two begun messages are this stream's share; the third is
	// refused although the queue has buffers.
	p, srq, r, _ := rdmaptest.SharedPair(t, 10, 2)
	for i := range 10 {
		must.OK(t, srq.Post(&rdmap.RecvWR{ID: uint64(i), SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 10)}}))
	}
	var placed [3]ddp.Placed
	for i := range placed {
		p.B.QP.Stream().Place(rdmaptest.Untagged(0, uint32(i+1), [5]byte{0x43}, 0, false, []byte("x")), &placed[i])
	}
	check.That(t, placed[1].Err == nil && placed[2].Err != nil && placed[2].Err.Code == ddp.CodeNoBuffer,
		"second %v, third %v", placed[1].Err, placed[2].Err)
	check.Equal(t, "buffers left of 10", srq.Len(), 8)
}

func TestSharedQueueIsChecked(t *testing.T) {
	e := rdmaptest.NewEnd(t, 1, nil)
	for _, bad := range []struct {
		table      *ddp.Table
		depth, sge int
	}{{nil, 1, 1}, {e.Table, 0, 1}, {e.Table, rdmap.MaxDepth + 1, 1}, {e.Table, 1, 0},
		{e.Table, 1, rdmap.MaxSGEs + 1}} {
		var ce *rdmap.ConfigError
		_, err := rdmap.NewSharedQueue(bad.table, rdmaptest.PD, bad.depth, bad.sge)
		check.That(t, errors.As(err, &ce), "%+v: %v", bad, err)
	}
	s := must.Get(rdmap.NewSharedQueue(e.Table, rdmaptest.PD, 1, 1))(t)
	scoped := must.Get(e.Table.Register(ddp.Spec{PD: rdmaptest.PD, Mem: ddp.Bytes(make([]byte, 9)),
		Access: ddp.LocalWrite, Scope: 1}))(t)
	local, _ := e.Memory(9, 0)
	for _, row := range []struct {
		sgl  []rdmap.SGE
		want error
	}{
		{[]rdmap.SGE{rdmaptest.SGE(scoped, 0, 1)}, rdmap.ErrPD}, {[]rdmap.SGE{rdmaptest.SGE(local, 0, 1)}, rdmap.ErrAccess}, {make([]rdmap.SGE, 2), rdmap.ErrSGECount},
	} {
		err := s.Post(&rdmap.RecvWR{SGL: row.sgl})
		check.That(t, errors.Is(err, row.want), "%v, want %v", err, row.want)
	}
	check.Equal(t, "buffers queued after a refusal", s.Len(), 0)
}
