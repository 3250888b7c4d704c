package rdma

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// newTCPLab makes two devices that meet over TCP on this host; cfg may be nil.
func newTCPLab(t testing.TB, cfg *Config) *lab {
	t.Helper()
	x := &lab{t: t}
	x.a, x.b = must.Get(NewDevice(nil, cfg))(t), must.Get(NewDevice(nil, cfg))(t)
	t.Cleanup(func() {
		x.a.Close()
		x.b.Close()
	})
	x.l = must.Get(x.b.ListenOn("tcp", "127.0.0.1:0"))(t)
	x.addr = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), x.l.Port())
	return x
}

func TestOperationsOverTCP(t *testing.T) {
	for _, row := range []struct {
		name string
		cfg  Config
	}{
		{"by default", Config{}},
		{"without CRC", Config{TCP: TCPConfig{NoCRC: true}}},
		{"with Markers", Config{TCP: TCPConfig{Markers: true}}},
		{"as RFC 5044 alone has it", Config{TCP: TCPConfig{Plain: true}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := newTCPLab(t, &row.cfg).join(nil)
			fill(a.buf, 1)
			fill(b.buf, 2)
			b.recv(7, 0, 1000)
			a.post(SendWR{ID: 1, Op: OpSend, SGL: []SGE{a.mr.SGE(10, 500)}})
			a.good()
			wc := b.good()
			check.That(t, wc.ID == 7 && wc.ByteLen == 500 && bytes.Equal(b.buf[:500], a.buf[10:510]), "Send: %+v", wc)
			b.recv(8, 0, 8)
			a.post(SendWR{ID: 2, Op: OpWriteImm, SGL: []SGE{a.mr.SGE(0, 1<<20)}, RemoteSTag: b.mr.STag(), Immediate: 5})
			a.good()
			wc = b.good()
			check.That(t, wc.Immediate == 5 && bytes.Equal(a.buf, b.buf), "Write with Immediate Data: %+v", wc)
			fill(b.buf, 3)
			a.post(SendWR{ID: 3, Op: OpRead, SGL: []SGE{a.mr.SGE(100, 1<<19)}, RemoteSTag: b.mr.STag(), RemoteTO: 7})
			a.good()
			check.That(t, bytes.Equal(a.buf[100:100+1<<19], b.buf[7:7+1<<19]), "Read")
			a.recv(9, 0, 1000)
			b.post(SendWR{ID: 4, Op: OpSend, SGL: []SGE{b.mr.SGE(0, 1000)}})
			b.good()
			a.good()
			done := make(chan error, 1)
			go func() { done <- b.qp.Disconnect(ctx(t)) }()
			must.OK(t, a.qp.Disconnect(ctx(t)))
			must.OK(t, <-done)
			must.OK(t, a.dev.Wait(ctx(t)))
		})
	}
}

func TestRejectionOverTCP(t *testing.T) {
	x := newTCPLab(t, nil)
	a := newSide(t, x.a, nil, nil)
	_, err := x.connect(a.qp, []byte("please"), func(r *Request) error {
		check.Equal(t, "private data", string(r.PrivateData()), "please")
		return r.Reject([]byte("no"))
	})
	var rejected *llp.RejectedError
	check.That(t, errors.As(err, &rejected) && string(rejected.Private) == "no" &&
		errors.Is(err, syscall.ECONNREFUSED), "%v", err)
	must.OK(t, x.a.Wait(ctx(t)))
	must.OK(t, x.b.Wait(ctx(t)))
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l.Close()
	b := newSide(t, x.a, nil, nil)
	_, err = b.qp.Dial(ctx(t), "tcp", l.Addr().String(), nil)
	check.That(t, errors.Is(err, syscall.ECONNREFUSED), "nobody listens: %v", err)
}
