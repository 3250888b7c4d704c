package rdmaptest

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// Setup is what the segments of a hostile peer may name.
type Setup struct {
	E        *End
	Both     *ddp.Region // remote read and write, 100 octets
	Read     *ddp.Region // remote read
	Write    *ddp.Region // remote write
	Foreign  *ddp.Region // another Protection Domain
	Scoped   *ddp.Region // another stream
	Dead     *ddp.Region // invalidated
	Sink     *ddp.Region // local write: sink of an RDMA Read of 50 octets at offset 10
	Recv     *ddp.Region // receive buffers of 20 octets
	Contents [][]byte
}

func NewSetup(t *testing.T) *Setup {
	e := NewEnd(t, 1, nil)
	s := &Setup{E: e}
	reg := func(pd ddp.PD, a ddp.Access, scope ddp.StreamID) *ddp.Region {
		b := make([]byte, 100)
		Fill(b, 1)
		s.Contents = append(s.Contents, b)
		return must.Get(e.Table.Register(ddp.Spec{PD: pd, Mem: ddp.Bytes(b), Base: 1 << 40, Access: a,
			Scope: scope}))(t)
	}
	s.Both = reg(PD, ddp.RemoteRead|ddp.RemoteWrite, 0)
	s.Read = reg(PD, ddp.RemoteRead, 0)
	s.Write = reg(PD, ddp.RemoteWrite, 0)
	s.Foreign = reg(PD+1, ddp.RemoteRead|ddp.RemoteWrite, 0)
	s.Scoped = reg(PD, ddp.RemoteRead|ddp.RemoteWrite, 99)
	s.Dead = reg(PD, ddp.RemoteRead|ddp.RemoteWrite, 0)
	s.Dead.Invalidate()
	s.Sink = reg(PD, ddp.LocalWrite, 0)
	s.Recv = reg(PD, ddp.LocalWrite, 0)
	e.QP.Start()
	e.Recv(1, s.Recv, 0, 20)
	e.Recv(2, s.Recv, 20, 20)
	return s
}

// Ask leaves an RDMA Read of 50 octets outstanding.
func (s *Setup) Ask() {
	s.E.Post(rdmap.SendWR{ID: 9, Op: rdmap.WRRead, SGL: []rdmap.SGE{SGE(s.Sink, 10, 50)}})
	s.E.CutAll()
}

// Answer is a Read Response that is placed in r, to such a Read.
func (s *Setup) Answer(r *ddp.Region, to uint64, payload []byte) [][]byte {
	s.Ask()
	return [][]byte{Tagged(0x42, r.STag(), to, true, payload)}
}

func ReadSegment(msn uint32, src ddp.STag, to uint64, size uint32) []byte {
	var b [rdmap.ReadRequestLen]byte
	(&rdmap.ReadRequest{SinkSTag: 5, SinkTO: 6, Size: size, SrcSTag: src, SrcTO: to}).Put(&b)
	return Untagged(1, msn, [5]byte{0x41}, 0, true, b[:])
}
