package compat

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp"
)

// restartedPeer returns a socket that listens at port 7, and the transports of two lives of its
// peer.
func restartedPeer(t *testing.T) (l *Socket, clients [2]*sctp.Transport, link *mempair.RestartLink) {
	link = &mempair.RestartLink{In: make(chan rawio.Packet), Intr: make(chan struct{}, 1)}
	for i := range clients {
		la, lb := mempair.New(t, mem.Options{})
		clients[i] = must.Get(sctp.NewTransport(la, nil))(t)
		t.Cleanup(func() { clients[i].Close() })
		link.Link, link.Lives[i] = lb, lb
	}
	go link.Run()
	b := must.Get(sctp.NewTransport(link, nil))(t)
	t.Cleanup(func() { b.Close() })
	l = NewSocket(false, false)
	c := l.opts.cfg
	c.Events = maxNotifications
	l.listener, l.boundPort, l.bound = must.Get(b.Listen(7, &c))(t), 7, true
	t.Cleanup(func() { l.Close() })
	return l, clients, link
}

// A socket that is closed, or shut down, while its peer is gone stays so when the peer comes back:
// what it sets up then is accepted, and what was unsent fails.
func TestTheEndOfASocketIsNotForgottenWhenThePeerRestarts(t *testing.T) {
	for name, end := range map[string]func(s *Socket){
		"Close":    func(s *Socket) { go s.Close() },
		"Shutdown": func(s *Socket) { _ = s.Shutdown() },
		"SCTP_EOF": func(s *Socket) { _, _ = s.Send(nil, &SndRcvInfo{Flags: flagEOF}) },
	} {
		for _, unsent := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, messages unsent: %v", name, unsent), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l, clients, link := restartedPeer(t)
					to := netip.AddrPortFrom(link.LocalAddrs()[0].Addr(), 7)
					client := &sctp.Config{LocalPort: 5555}
					must.Do(must.Get(clients[0].Dial(t.Context(), to, client))(t).WriteMsg([]byte("hello"),
						sctp.SendInfo{}))(t)
					s := must.Get(l.Accept())(t)
					checkSame(t, readSocket(s, 9), wholeMessage("hello"))
					subscribeEvents(t, s, eventAssociation, eventSendFailure)
					link.Life.Store(mempair.Dead)
					if unsent {
						must.Get(s.Send([]byte("nobody hears it"), nil))(t)
					}
					end(s)
					time.Sleep(10 * time.Millisecond)
					check.That(t, s.conn.Stats().State != sctp.Established, "it is not shutting down")
					link.Life.Store(1)
					c := must.Get(clients[1].Dial(t.Context(), to, client))(t)
					next := must.Get(l.Accept())(t)
					must.That(t, next.conn != s.conn, "the association of before is accepted again")
					must.Do(c.WriteMsg([]byte("again"), sctp.SendInfo{}))(t)
					checkSame(t, readSocket(next, 9), wholeMessage("again"))
					must.Get(next.Send([]byte("welcome"), nil))(t)
					buf := make([]byte, 9)
					n := must.Get(ignoreInfo(c.ReadMsg(buf)))(t)
					check.Equal(t, "what the peer reads", string(buf[:n]), "welcome")
					<-s.conn.Done()
					check.Error(t, "the association of before", s.conn.Err(), sctp.ErrSucceeded)
					if name != "Close" {
						var kinds []uint16
						r := readSocket(s, 99)
						for ; r.flags&MsgNotification != 0; r = readSocket(s, 99) {
							kinds = append(kinds, nativeOrder.Uint16([]byte(r.text)))
						}
						check.Error(t, "a read of it", r.err, syscall.ECONNRESET)
						want := []uint16{typeAssocChange}
						if unsent {
							want = []uint16{typeSendFailed, typeAssocChange}
						}
						check.That(t, slices.Equal(kinds, want), "notifications %#x, want %#x", kinds, want)
						_, err := s.Send([]byte("x"), nil)
						check.Error(t, "a write to it", err, syscall.EPIPE)
						must.OK(t, s.Close())
					}
					next.conn.Abort("")
					next.Close()
					c.Abort("")
				})
			})
		}
	}
}

func ignoreInfo(n int, _ sctp.RecvInfo, err error) (int, error) { return n, err }
