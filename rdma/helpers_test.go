package rdma

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp"
)

// lab is two devices joined by memory, with a listener on the second.
type lab struct {
	t    testing.TB
	a, b *Device
	l    *Listener
	addr netip.AddrPort
}

func newLab(t testing.TB, cfg *Config) *lab {
	t.Helper()
	return newLabOver(t, cfg, func(a, _ *mem.Link) rawio.Link { return a })
}

// newLabOver is newLab with another link for the first device.
func newLabOver(t testing.TB, cfg *Config, link func(a, b *mem.Link) rawio.Link) *lab {
	t.Helper()
	return newLabBetween(t, cfg, &mempair.Family{}, link)
}

// eachFamily runs a test between hosts of each family of addresses, and with a dual-stack one.
func eachFamily(t *testing.T, f func(t *testing.T, x *lab)) {
	for _, fam := range mempair.Families() {
		t.Run(fam.Name, func(t *testing.T) {
			f(t, newLabBetween(t, nil, &fam, func(a, _ *mem.Link) rawio.Link { return a }))
		})
	}
}

// newLabBetween is newLabOver between such addresses.
func newLabBetween(t testing.TB, cfg *Config, fam *mempair.Family, link func(a, b *mem.Link) rawio.Link) *lab {
	t.Helper()
	la, lb := mempair.New(t, mem.Options{MTU: 1500, A: fam.A, B: fam.B})
	server := cfg
	if fam.Listed != nil {
		server = &Config{SCTP: sctp.Config{LocalAddrs: fam.Listed}}
	}
	x := &lab{t: t, a: must.Get(NewDevice(link(la, lb), cfg))(t), b: must.Get(NewDevice(lb, server))(t)}
	x.l, x.addr = must.Get(x.b.Listen(DefaultPort))(t), netip.AddrPortFrom(lb.LocalAddrs()[0].Addr(), DefaultPort)
	t.Cleanup(func() {
		x.a.Close()
		x.b.Close()
	})
	return x
}

// side is one end: a QP with memory that its peer may reach in every way.
type side struct {
	t   testing.TB
	dev *Device
	pd  *PD
	cq  *CQ
	qp  *QP
	buf []byte
	mr  *MR
}

func newSide(t testing.TB, d *Device, pd *PD, change func(*QPConfig)) *side {
	t.Helper()
	if pd == nil {
		pd = d.AllocPD()
	}
	s := &side{t: t, dev: d, pd: pd, buf: make([]byte, 1<<20)}
	s.cq = must.Get(d.CreateCQ(1024))(t)
	cfg := &QPConfig{PD: pd, SendCQ: s.cq, RecvCQ: s.cq}
	if change != nil {
		change(cfg)
	}
	s.qp, s.mr = must.Get(d.CreateQP(cfg))(t), must.Get(pd.Register(s.buf, LocalWrite|RemoteRead|RemoteWrite, nil))(t)
	return s
}

// join connects a side of device a with one of device b.
func (x *lab) join(change func(*QPConfig)) (a, b *side) {
	x.t.Helper()
	return x.joinIn(nil, nil, change)
}

func (x *lab) joinIn(pa, pb *PD, change func(*QPConfig)) (a, b *side) {
	x.t.Helper()
	a, b = newSide(x.t, x.a, pa, change), newSide(x.t, x.b, pb, change)
	must.Do(x.connect(a.qp, []byte("hello"), func(r *Request) error { return r.Accept(b.qp, []byte("welcome")) }))(x.t)
	return a, b
}

// connect connects a QP of device a, whose request is seen to by answer.
func (x *lab) connect(q *QP, private []byte, answer func(*Request) error) ([]byte, error) {
	x.t.Helper()
	answered := make(chan error, 1)
	go func() {
		req, err := x.l.Accept(ctx(x.t))
		if err == nil {
			err = answer(req)
		}
		answered <- err
	}()
	reply, err := q.Connect(ctx(x.t), x.addr, private)
	must.OK(x.t, <-answered)
	return reply, err
}

// demands answers a request that negotiates by a setup, whether it may or not.
func (s *side) demands(setup Setup) func(*Request) error {
	return func(r *Request) error {
		now := r.p.conn.lock()
		defer r.p.conn.unlock()
		s.qp.bindSession(r.p, r.session)
		err := r.session.accept(now, s.qp.core.Stream(), &setup, nil)
		s.qp.finishSetup(err)
		return err
	}
}

// ctx keeps a broken test from hanging; no test waits for it.
func ctx(t testing.TB) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return c
}

// recv posts a receive of n octets at off.
func (s *side) recv(id uint64, off, n int) {
	s.t.Helper()
	must.OK(s.t, s.qp.PostRecv(&RecvWR{ID: id, SGL: []SGE{s.mr.SGE(off, n)}}))
}

func (s *side) post(wr SendWR) {
	s.t.Helper()
	must.OK(s.t, s.qp.PostSend(&wr))
}

// wc waits for the next completion.
func (s *side) wc() WC {
	s.t.Helper()
	var wcs [1]WC
	for {
		n := must.Get(s.cq.Poll(wcs[:]))(s.t)
		if n == 1 {
			return wcs[0]
		}
		must.OK(s.t, s.cq.Wait(ctx(s.t)))
	}
}

// good waits for a completion that must be a success.
func (s *side) good() WC {
	s.t.Helper()
	wc := s.wc()
	must.That(s.t, wc.Status == rdmap.StatusSuccess, "%v %d: %v (%v)", wc.Opcode, wc.ID, wc.Status, s.qp.Err())
	return wc
}

func fill(b []byte, seed int) []byte {
	for i := range b {
		b[i] = byte(seed*31 + i*7 + i>>8)
	}
	return b
}
