package rdma

import (
	"context"
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rddp-go/rddp/internal/test/must"
)

// Close ends a Dial to a host whose TCP does not answer: its queue of connections is full.
func TestCloseEndsDialOverTCP(t *testing.T) {
	for i, name := range []string{"Close of the QP", "Close of the Device"} {
		t.Run(name, func(t *testing.T) {
			fd := must.Get(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0))(t)
			defer unix.Close(fd)
			must.OK(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
			must.OK(t, unix.Listen(fd, 0))
			addr := must.Get(unix.Getsockname(fd))(t).(*unix.SockaddrInet4)
			at := &net.TCPAddr{IP: addr.Addr[:], Port: addr.Port}
			defer must.Get(net.DialTCP("tcp", nil, at))(t).Close() // it is full
			a := newSide(t, must.Get(NewDevice(nil, nil))(t), nil, nil)
			defer a.dev.Close()
			c := blockedCall{name: "Dial", call: func(ctx context.Context) error {
				_, err := a.qp.Dial(ctx, "tcp", at.String(), nil)
				return err
			}}
			by := closeCall{name, []func() error{a.qp.Close, a.dev.Close}[i], net.ErrClosed}
			c.ends(t, by, func() {
				for { // until there is a connection that is being set up
					a.qp.mu.Lock()
					begun := a.qp.reserved
					a.qp.mu.Unlock()
					if begun {
						return
					}
				}
			})
		})
	}
}
