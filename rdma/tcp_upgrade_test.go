package rdma

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/mpa"
)

// connPair is both ends of a TCP connection.
func connPair(t *testing.T) (x, y net.Conn) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	x = must.Get(net.Dial("tcp", l.Addr().String()))(t)
	y = must.Get(l.Accept())(t)
	t.Cleanup(func() { x.Close(); y.Close() })
	return x, y
}

// tlsPair is both ends of a TLS connection.
func tlsPair(t *testing.T) (x, y net.Conn) {
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	cert := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key))(t)
	a, b := connPair(t)
	return tls.Client(a, &tls.Config{InsecureSkipVerify: true}),
		tls.Server(b, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
}

// joinOver connects a side of each device over a connection.
func (x *lab) joinOver(t *testing.T, ca, cb net.Conn) (a, b *side) {
	a, b = newSide(t, x.a, nil, nil), newSide(t, x.b, nil, nil)
	accepted := make(chan error, 1)
	go func() {
		r, err := x.b.RequestOver(ctx(t), cb)
		if err == nil {
			err = r.Accept(b.qp, []byte("welcome"))
		}
		accepted <- err
	}()
	reply := must.Get(a.qp.ConnectOver(ctx(t), ca, []byte("hello")))(t)
	must.OK(t, <-accepted)
	check.Equal(t, "private data", string(reply), "welcome")
	return a, b
}

// exchangeAll moves a lot both ways.
func exchangeAll(t *testing.T, a, b *side) {
	fill(a.buf, 1)
	b.recv(1, 0, 8)
	a.post(SendWR{Op: OpWriteImm, SGL: []SGE{a.mr.SGE(0, 1<<20)}, RemoteSTag: b.mr.STag()})
	a.good()
	b.good()
	check.That(t, bytes.Equal(a.buf, b.buf), "Write")
	fill(b.buf, 2)
	a.post(SendWR{Op: OpRead, SGL: []SGE{a.mr.SGE(0, 1<<20)}, RemoteSTag: b.mr.STag()})
	a.good()
	check.That(t, bytes.Equal(a.buf, b.buf), "Read")
}

// A connection that has carried something else becomes one of MPA at an agreed octet.
func TestUpgradeInTheMiddleOfItsLife(t *testing.T) {
	x := newTCPLab(t, nil)
	ca, cb := connPair(t)
	must.Do(ca.Write([]byte("let us do RDMA\n")))(t)
	line := must.Get(bufio.NewReaderSize(cb, 16).ReadString('\n'))(t)
	must.Equal(t, "what was said before", line, "let us do RDMA\n")
	must.Do(cb.Write([]byte("yes\n")))(t)
	must.Do(io.ReadFull(ca, make([]byte, 4)))(t)
	a, b := x.joinOver(t, ca, cb)
	exchangeAll(t, a, b)
	must.OK(t, a.qp.Disconnect(ctx(t)))
	must.OK(t, b.qp.Disconnect(ctx(t)))
}

// TLS may lie below, for both ends of this package.
func TestOverTLS(t *testing.T) {
	x := newTCPLab(t, nil)
	ca, cb := tlsPair(t)
	a, b := x.joinOver(t, ca, cb)
	exchangeAll(t, a, b)
	must.OK(t, a.mr.Deregister())
	must.OK(t, a.qp.Disconnect(ctx(t)))
	must.OK(t, b.qp.Disconnect(ctx(t)))
}

func TestOverPipe(t *testing.T) {
	x := newTCPLab(t, nil)
	ca, cb := net.Pipe()
	a, b := x.joinOver(t, ca, cb)
	exchangeAll(t, a, b)
	must.OK(t, a.qp.Close())
	<-b.qp.Done()
}

func TestRejectedConnectionIsTheProgramsAgain(t *testing.T) {
	// req 5044-7.1.2-7, 5044-7.1.2-13
	x := newTCPLab(t, nil)
	ca, cb := connPair(t)
	rejected := make(chan error, 1)
	go func() {
		r, err := x.b.RequestOver(ctx(t), cb)
		if err == nil {
			err = r.Reject([]byte("no"))
		}
		rejected <- err
	}()
	_, err := newSide(t, x.a, nil, nil).qp.ConnectOver(ctx(t), ca, nil)
	check.That(t, errors.As(err, new(*llp.RejectedError)), "%v", err)
	must.OK(t, <-rejected)
	must.OK(t, x.b.Wait(ctx(t)))
	must.Do(ca.Write([]byte("then without\n")))(t)
	line := must.Get(bufio.NewReader(cb).ReadString('\n'))(t)
	check.Equal(t, "what is said afterwards", line, "then without\n")
	must.Do(cb.Write([]byte("fine")))(t)
	must.Do(io.ReadFull(ca, make([]byte, 4)))(t)
}

func TestRequestsThatDoNotCome(t *testing.T) {
	x := newTCPLab(t, nil)
	ca, cb := connPair(t)
	must.Do(ca.Write([]byte("HELO")))(t)
	_, err := x.b.RequestOver(ctx(t), cb)
	var e *mpa.Error
	check.That(t, errors.As(err, &e) && e.Code == mpa.CodeFrame, "another protocol: %v", err)
	_, cb = connPair(t)
	late, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = x.b.RequestOver(late, cb)
	check.That(t, errors.Is(err, context.DeadlineExceeded), "nothing: %v", err)
	ca, cb = connPair(t)
	ca.Close()
	_, err = x.b.RequestOver(ctx(t), cb)
	check.That(t, errors.Is(err, mpa.ErrClosedEarly), "a FIN: %v", err)
}

// One Device has QPs over SCTP and over TCP, and one table of STags serves both.
func TestOneDeviceOverBoth(t *testing.T) {
	x := newLab(t, nil)
	a, b := x.join(nil)
	tl := must.Get(x.b.ListenOn("tcp", "127.0.0.1:0"))(t)
	at := must.Get(x.a.CreateQP(&QPConfig{PD: a.pd, SendCQ: a.cq, RecvCQ: a.cq}))(t)
	bt := must.Get(x.b.CreateQP(&QPConfig{PD: b.pd, SendCQ: b.cq, RecvCQ: b.cq}))(t)
	accepted := make(chan error, 1)
	go func() {
		r, err := tl.Accept(ctx(t))
		if err == nil {
			err = r.Accept(bt, nil)
		}
		accepted <- err
	}()
	must.Do(at.Dial(ctx(t), "tcp", tl.lower.(*tcpListener).Addr().String(), nil))(t)
	must.OK(t, <-accepted)
	for i, q := range []*QP{a.qp, at, a.qp, at} {
		const n = 100_000
		from, to := i*n, i*n+1<<19
		fill(a.buf[from:from+n], i)
		must.OK(t, q.PostSend(&SendWR{Op: OpWrite, SGL: []SGE{a.mr.SGE(from, n)}, RemoteSTag: b.mr.STag(),
			RemoteTO: uint64(from)}))
		must.OK(t, q.PostSend(&SendWR{Op: OpRead, SGL: []SGE{a.mr.SGE(to, n)}, RemoteSTag: b.mr.STag(),
			RemoteTO: uint64(from)}))
		a.good()
		a.good()
		check.That(t, bytes.Equal(a.buf[from:from+n], a.buf[to:to+n]), "transport %d", i)
	}
	check.Equal(t, "peers", len(x.a.Peers()), 2)
	must.OK(t, tl.Close())
	must.OK(t, at.Disconnect(ctx(t)))
	must.OK(t, bt.Disconnect(ctx(t)))
}
