package tcppeer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/leaktest"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rdma"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// victim is a program that accepts every request over TCP, with one QP for each.
type victim struct {
	t    testing.TB
	dev  *rdma.Device
	l    *rdma.Listener
	pd   *rdma.PD
	mr   *rdma.MR
	cq   *rdma.CQ
	qps  chan *rdma.QP // that have a session
	over chan struct{} // closed when it accepts no more
}

const memory = 1 << 20 // octets that peers may read and write

func newVictim(t testing.TB, cfg *rdma.Config) *victim {
	v := &victim{t: t, dev: must.Get(rdma.NewDevice(nil, cfg))(t), qps: make(chan *rdma.QP, 1000),
		over: make(chan struct{})}
	v.pd = v.dev.AllocPD()
	v.mr = must.Get(v.pd.Register(make([]byte, memory), rdma.LocalWrite|rdma.RemoteRead|rdma.RemoteWrite, nil))(t)
	v.cq = must.Get(v.dev.CreateCQ(1 << 16))(t)
	v.l = must.Get(v.dev.ListenOn("tcp", "127.0.0.1:0"))(t)
	go v.acceptAll()
	t.Cleanup(func() {
		v.l.Close()
		v.dev.Close()
		<-v.over
	})
	return v
}

func (v *victim) acceptAll() {
	defer close(v.over)
	for {
		r, err := v.l.Accept(context.Background())
		if err != nil {
			return
		}
		q := v.newQP()
		if r.Accept(q, nil) != nil { // the peer has gone already
			must.OK(v.t, q.Close())
			continue
		}
		v.qps <- q
	}
}

func (v *victim) newQP() *rdma.QP {
	q := must.Get(v.dev.CreateQP(&rdma.QPConfig{PD: v.pd, SendCQ: v.cq, RecvCQ: v.cq, MaxRecv: 4, MaxSend: 8}))(v.t)
	must.OK(v.t, q.PostRecv(&rdma.RecvWR{SGL: []rdma.SGE{v.mr.SGE(0, 64)}}))
	return q
}

// dial connects from an address of this host.
func (v *victim) dial(from string) net.Conn {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := must.Get(d.Dial("tcp", net.TCPAddrFromAddrPort(v.addr()).String()))(v.t)
	v.t.Cleanup(func() { c.Close() })
	return c
}

// peer is a connection of a peer that is set up.
type peer struct {
	net.Conn
	qp     *rdma.QP // the victim's
	framer mpa.Framer
	msn    [3]uint32
}

// join sets a connection up.
func (v *victim) join() *peer {
	c := v.dial("127.0.0.1")
	must.Do(c.Write((&mpa.Frame{CRC: true, Revision: mpa.Revision}).Append(nil)))(v.t)
	must.Do(io.ReadFull(c, make([]byte, mpa.FrameHeaderLen)))(v.t)
	return &peer{Conn: c, qp: <-v.qps, framer: mpa.Framer{MakesCRC: true}}
}

// fpdu is an FPDU with an untagged message.
func (p *peer) fpdu(qn uint32, op rdmap.Opcode, payload []byte) []byte {
	var s ddp.Segment
	p.msn[qn]++
	s.HeaderLen = ddp.Untagged{Last: true, QN: qn, MSN: p.msn[qn], Rsvd: [5]byte{rdmap.Control(op)}}.Put(s.Header[:])
	s.Body[0] = payload
	var b mpa.Batch
	b.Reset()
	p.framer.Append(&b, &s)
	return bytes.Join(b.Pieces(), nil)
}

// awaitEnd reads until the victim has closed the connection.
func (p *peer) awaitEnd(t testing.TB) {
	t.Helper()
	must.OK(t, p.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err := io.Copy(io.Discard, p)
	var late net.Error
	must.That(t, !(errors.As(err, &late) && late.Timeout()), "the victim does not hang up: %v", err)
	<-p.qp.Done()
}

// heap is what this process keeps, in octets: of both ends, but the peer's is the system's.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// addr is where the victim listens.
func (v *victim) addr() netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), v.l.Port())
}

// awaitRead waits until the victim has read all that the peer has written.
func awaitRead(p *peer) (err error) {
	raw, err := p.Conn.(*net.TCPConn).SyscallConn()
	for left := 1; err == nil && left > 0; {
		err = raw.Control(func(fd uintptr) { left, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
		runtime.Gosched()
	}
	return err
}
