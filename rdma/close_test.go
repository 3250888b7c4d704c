package rdma

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/certs"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// blockedCall is a call of a program that waits for what will never come.
type blockedCall struct {
	name string
	call func(ctx context.Context) error
	// closes are what ends it, and what it returns then.
	closes []closeCall
}

type closeCall struct {
	name string
	do   func() error
	want error
}

// errAny stands for whatever has ended the session.
var errAny = errors.New("any reason but the caller's context")

// ends has the call made, and closed when blocked returns.
func (c *blockedCall) ends(t *testing.T, by closeCall, blocked func()) {
	t.Helper()
	end := make(chan error, 1)
	go func() { end <- c.call(ctx(t)) }()
	blocked()
	must.OK(t, by.do())
	err := <-end
	ok := errors.Is(err, by.want)
	if by.want == errAny {
		ok = err != nil && !errors.Is(err, context.DeadlineExceeded)
	}
	check.That(t, ok, "%s, ended by %s: %v, not %v", c.name, by.name, err, by.want)
}

// Whatever a program waits for over SCTP, Close of what it waits on ends the wait.
func TestCloseEndsEveryWait(t *testing.T) {
	calls := func(t *testing.T) []blockedCall {
		out := new(mempair.LossyLink)
		x := newLabOver(t, nil, func(a, _ *mem.Link) rawio.Link { out.Link = a; return out })
		a := newSide(t, x.a, nil, nil)
		closeA := closeCall{"Close of the Device", x.a.Close, net.ErrClosed}
		closeQP := closeCall{"Close of the QP", a.qp.Close, net.ErrClosed}
		channel := x.a.CreateCompChannel()
		empty := must.Get(x.a.CreateCQ(1))(t)
		connect := func(ctx context.Context) error {
			_, err := a.qp.Connect(ctx, x.addr, nil)
			return err
		}
		l := must.Get(x.a.Listen(7))(t)
		return []blockedCall{
			{"Accept", func(ctx context.Context) error {
				_, err := l.Accept(ctx)
				return err
			}, []closeCall{closeA, {"Close of the Listener", l.Close, net.ErrClosed}}},
			{"Connect to a program that does not answer", connect, []closeCall{closeA, closeQP}},
			{"Connect to a host that does not answer", func(ctx context.Context) error {
				out.Lose.Store(true)
				return connect(ctx)
			}, []closeCall{closeA, closeQP}},
			{"CQ.Wait", empty.Wait, []closeCall{closeA,
				{"Destroy of the CQ", func() error { return empty.Destroy(ctx(t)) }, nil}}},
			{"CQ.Wait on that of a QP", a.cq.Wait, []closeCall{closeA}},
			{"GetEvent", func(ctx context.Context) error {
				_, err := channel.GetEvent(ctx)
				return err
			}, []closeCall{closeA, {"Destroy of the channel", channel.Destroy, ErrDestroyed}}},
			{"NextEvent", func(ctx context.Context) error {
				_, err := x.a.NextEvent(ctx)
				return err
			}, []closeCall{closeA}},
			{"Device.Wait", func(ctx context.Context) error {
				go connect(ctx)
				time.Sleep(time.Second)
				return x.a.Wait(ctx)
			}, []closeCall{{"Close of the Device", x.a.Close, nil}}},
			{"Disconnect, of a program that does not answer", func(ctx context.Context) error {
				go connect(ctx)
				time.Sleep(time.Second)
				return a.qp.Disconnect(ctx)
			}, []closeCall{{"Close of the Device", x.a.Close, errAny}, closeQP}},
		}
	}
	var names []blockedCall
	synctest.Test(t, func(t *testing.T) { names = calls(t) })
	for i, c := range names {
		for j, by := range c.closes {
			t.Run(c.name+" by "+by.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := calls(t)[i]
					c.ends(t, c.closes[j], func() { time.Sleep(2 * time.Second) }) // it waits by then
				})
			})
		}
	}
}

// What came before Close is still got after it: the requests that it has ended.
func TestCloseOfADeviceLeavesItsCompletions(t *testing.T) {
	a, _ := newLab(t, nil).join(nil)
	a.recv(1, 0, 8)
	must.OK(t, a.dev.Close())
	must.OK(t, a.cq.Wait(ctx(t)))
	check.Equal(t, "requests that were ended", a.wc().ID, 1)
	err := a.cq.Wait(ctx(t))
	check.That(t, err == net.ErrClosed, "%v", err)
	_, err = newSideOf(a).qp.Connect(ctx(t), netip.AddrPortFrom(netip.MustParseAddr("10.0.0.2"), 1), nil)
	check.That(t, errors.Is(err, net.ErrClosed), "Connect of a Device that is closed: %v", err)
}

func newSideOf(s *side) *side { return newSide(s.t, s.dev, s.pd, nil) }

// The same over TCP.
func TestCloseEndsEveryWaitOverTCP(t *testing.T) {
	type begunCall struct {
		blockedCall
		begun func() bool // whether it has got so far that it waits; nil: nothing shows that
	}
	calls := func(t *testing.T) []begunCall {
		silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		t.Cleanup(func() { silent.Close() })
		secure := must.Get(NewDevice(nil, &Config{TLS: certs.New(t).Dialer(t, "client.test")}))(t)
		t.Cleanup(func() { secure.Close() })
		x := newTCPLab(t, nil)
		hasConn := func(d *Device) func() bool {
			return func() bool {
				d.tcp.mu.Lock()
				defer d.tcp.mu.Unlock()
				return len(d.tcp.conns) > 0
			}
		}
		accepted := make(chan struct{})
		go func() {
			if c, err := silent.Accept(); err == nil {
				close(accepted)
				t.Cleanup(func() { c.Close() })
			}
		}()
		wasAccepted := func() bool {
			select {
			case <-accepted:
				return true
			default:
				return false
			}
		}
		dial := func(s *side, address string) func(context.Context) error {
			return func(ctx context.Context) error {
				_, err := s.qp.Dial(ctx, "tcp", address, nil)
				return err
			}
		}
		closes := func(s *side) []closeCall {
			return []closeCall{{"Close of the Device", s.dev.Close, net.ErrClosed},
				{"Close of the QP", s.qp.Close, net.ErrClosed}}
		}
		a, b := newSide(t, x.a, nil, nil), newSide(t, secure, nil, nil)
		near, far := net.Pipe()
		t.Cleanup(func() { near.Close(); far.Close() })
		return []begunCall{
			{blockedCall{"Accept", func(ctx context.Context) error {
				_, err := x.l.Accept(ctx)
				return err
			}, []closeCall{{"Close of the Device", x.b.Close, net.ErrClosed}, {"Close of the Listener", x.l.Close,
				net.ErrClosed}}}, nil},
			{blockedCall{"Dial to a program that does not answer", dial(a, x.addr.String()), closes(a)}, hasConn(x.a)},
			{blockedCall{"Dial to a host that does not speak TLS", dial(b, silent.Addr().String()), closes(b)},
				wasAccepted},
			{blockedCall{"ConnectOver", func(ctx context.Context) error {
				_, err := a.qp.ConnectOver(ctx, near, nil)
				return err
			}, closes(a)}, hasConn(x.a)},
			{blockedCall{"ConnectOver, of a peer that does not speak TLS", func(ctx context.Context) error {
				_, err := b.qp.ConnectOver(ctx, tls.Client(near, &tls.Config{InsecureSkipVerify: true}), nil)
				return err
			}, closes(b)}, nil},
			{blockedCall{"RequestOver", func(ctx context.Context) error {
				_, err := x.a.RequestOver(ctx, near)
				return err
			}, closes(a)[:1]}, hasConn(x.a)},
			{blockedCall{"RequestOver, of a peer that does not speak TLS", func(ctx context.Context) error {
				_, err := secure.RequestOver(ctx, tls.Client(near, &tls.Config{InsecureSkipVerify: true}))
				return err
			}, closes(b)[:1]}, nil},
			{blockedCall{"CQ.Wait", a.cq.Wait, closes(a)[:1]}, nil},
		}
	}
	for i, c := range calls(t) {
		for j, by := range c.closes {
			t.Run(c.name+" by "+by.name, func(t *testing.T) {
				c := calls(t)[i]
				c.ends(t, c.closes[j], func() {
					for late := time.Now().Add(20 * time.Second); c.begun != nil && !c.begun(); runtime.Gosched() {
						must.That(t, time.Now().Before(late), "%s has not begun", c.name)
					}
				})
			})
		}
	}
}
