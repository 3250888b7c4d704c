package rdma

import (
	"errors"
	"net/netip"
	"runtime"
	"testing"

	"github.com/rddp-go/rddp/internal/test/baseline"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// One goroutine that sees to many QPs is woken once for all that has come: what it answers goes out
// together all the same.
func TestAnswersToManyQPsGoTogether(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const many, trips, octets = 64, 50, 100
	la, lb, at, err := baseline.Pair("udp", 1500)
	must.OK(t, err)
	device := func(l rawio.Link) *Device {
		cfg := &Config{}
		cfg.SCTP.EncapPort = at.Port()
		d := must.Get(NewDevice(l, cfg))(t)
		t.Cleanup(func() { d.Close() })
		return d
	}
	a, b := device(la), device(lb)
	x := &lab{t: t, a: a, b: b, l: must.Get(b.Listen(DefaultPort))(t), addr: netip.AddrPortFrom(at.Addr(), DefaultPort)}
	asks, answers := make(map[uint32]*side), make(map[uint32]*side)
	cqs := [...]*CQ{must.Get(a.CreateCQ(8 * many))(t), must.Get(b.CreateCQ(8 * many))(t)}
	for range many {
		var ends [2]*side
		for i, sides := range []map[uint32]*side{asks, answers} {
			d := []*Device{a, b}[i]
			s := &side{t: t, dev: d, pd: d.AllocPD(), cq: cqs[i], buf: make([]byte, 2*octets)}
			s.qp = must.Get(d.CreateQP(&QPConfig{PD: s.pd, SendCQ: s.cq, RecvCQ: s.cq, MaxSend: 4, MaxRecv: 4,
				OwnAssociation: true}))(t)
			s.mr = must.Get(s.pd.Register(s.buf, LocalWrite, nil))(t)
			s.recv(0, 0, octets)
			sides[s.qp.Num()], ends[i] = s, s
		}
		must.Do(x.connect(ends[0].qp, nil, func(r *Request) error { return r.Accept(ends[1].qp, nil) }))(t)
	}
	send := func(s *side) error {
		return s.qp.PostSend(&SendWR{Op: OpSend, Flags: Unsignaled, SGL: []SGE{s.mr.SGE(octets, octets)}})
	}
	limit := ctx(t)
	answer := func(cq *CQ, sides map[uint32]*side, n int) error {
		var wcs [many]WC
		for n > 0 {
			if err := cq.Wait(limit); err != nil {
				return err
			}
			k, err := cq.Poll(wcs[:min(n, many)])
			if err != nil {
				return err
			}
			for _, wc := range wcs[:k] {
				s := sides[wc.QPNum]
				if err := errors.Join(s.qp.PostRecv(&RecvWR{SGL: []SGE{s.mr.SGE(0, octets)}}), send(s)); err != nil {
					return err
				}
			}
			n -= k
		}
		return nil
	}
	done := make(chan error, 1)
	go func() { done <- answer(cqs[1], answers, many*trips) }()
	before := b.Transport().Stats()
	for _, s := range asks {
		must.OK(t, send(s))
	}
	must.OK(t, answer(cqs[0], asks, many*(trips-1)))
	must.OK(t, <-done)
	after := b.Transport().Stats()
	packets, batches := after.TxPackets-before.TxPackets, after.TxBatches-before.TxBatches
	check.That(t, packets > 4*batches, "%d packets in %d batches", packets, batches)
}
