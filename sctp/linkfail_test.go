package sctp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// mortal is a link that ends when it is told to, by itself.
type mortal struct {
	*mem.Link
	reads, writes atomic.Pointer[error] // what its calls return
	blocks        chan struct{}         // not nil: so do those of WriteBatch, until it is closed
	stuck         atomic.Bool
}

func (m *mortal) ReadBatch(pkts []rawio.Packet) (int, error) {
	n, err := m.Link.ReadBatch(pkts)
	if end := m.reads.Load(); end != nil {
		rawio.ReleaseAll(pkts[:n])
		return 0, *end
	}
	return n, err
}

func (m *mortal) PollBatch(pkts []rawio.Packet) int {
	if m.reads.Load() != nil {
		return 0
	}
	return m.Link.PollBatch(pkts)
}

func (m *mortal) WriteBatch(pkts []rawio.Packet) (int, error) {
	if end := m.writes.Load(); end != nil {
		return 0, *end
	}
	if m.stuck.Load() {
		<-m.blocks
		return 0, net.ErrClosed
	}
	return m.Link.WriteBatch(pkts)
}

func (m *mortal) Close() error {
	if m.stuck.Load() {
		close(m.blocks)
	}
	return m.Link.Close()
}

// A link that ends by itself, whichever call tells of it and by whatever error, ends all that
// depends on it at once, by an error that names it; who listens, dials or reads later hears it too.
func TestLinkThatEndsByItself(t *testing.T) {
	broken := errors.New("the tunnel is gone")
	for _, row := range []struct {
		name   string
		err    error
		writes bool
	}{
		{"ReadBatch: net.ErrClosed", net.ErrClosed, false},
		{"ReadBatch: another error", broken, false},
		{"WriteBatch: net.ErrClosed", net.ErrClosed, true},
		{"WriteBatch: wrapped net.ErrClosed", &net.OpError{Op: "write", Err: net.ErrClosed}, true},
		{"WriteBatch: io.ErrClosedPipe", io.ErrClosedPipe, true},
		{"WriteBatch: EBADF", fmt.Errorf("sendmsg: %w", syscall.EBADF), true},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				la, lb := mempair.New(t, mem.Options{MTU: 1500})
				link := &mortal{Link: lb}
				p := joinPair(t, la, lb, la, link)
				first, s := p.connect(t, quiet, quiet)
				other, idle := p.connect(t, quiet, quiet)
				_ = other
				l := must.Get(p.b.Listen(7000, nil))(t)
				sock := must.Get(p.b.OpenSocket(7001, nil))(t)
				began := time.Now()
				errs := make(chan error)
				calls := []func() error{
					func() error {
						for { // what has come goes first
							if _, _, err := s.ReadMsg(make([]byte, 10)); err != nil {
								return err
							}
						}
					},
					func() error { _, _, err := idle.ReadMsg(make([]byte, 10)); return err },
					func() error { _, err := l.Accept(context.Background()); return err },
					func() error { _, _, _, err := sock.ReadMsg(make([]byte, 10)); return err },
					func() error {
						_, err := p.b.Dial(context.Background(), netip.MustParseAddrPort("10.0.0.1:9"), quiet)
						return err
					},
				}
				for _, call := range calls[:4] {
					go func() { errs <- call() }()
				}
				synctest.Wait()
				if row.writes {
					link.writes.Store(&row.err)
				} else {
					link.reads.Store(&row.err)
				}
				go func() { errs <- calls[4]() }()
				// something comes and is answered; the Dial may have told before
				_, _ = first.WriteMsg([]byte("x"), SendInfo{})
				for range calls {
					err := <-errs
					var e *LinkError
					check.That(t, errors.As(err, &e) && e.Err == row.err && errors.Is(err, syscall.ENETDOWN) &&
						!errors.Is(err, net.ErrClosed), "a call ends by %v", err)
				}
				check.Equal(t, "time that it takes", time.Since(began), 0)
				for _, c := range []*Conn{s, idle} {
					check.That(t, isClosed(c.Done()) && errors.As(c.Err(), new(*LinkError)),
						"an association ends by %v", c.Err())
				}
				_, err := p.b.Dial(context.Background(), netip.MustParseAddrPort("10.0.0.1:9"), quiet)
				check.That(t, errors.As(err, new(*LinkError)), "Dial when the link has ended: %v", err)
				_, err = p.b.Listen(7002, nil)
				check.That(t, errors.As(err, new(*LinkError)), "Listen when the link has ended: %v", err)
				sock.Close()
				l.Close()
			})
		})
	}
}

// The end that the Transport itself gives its link is no failure.
func TestCloseOfTheTransportIsNoFailureOfTheLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.connect(t, quiet, quiet)
		p.b.Close()
		check.OK(t, p.b.linkErr())
	})
}

// Close of a Transport closes a link that does not take the ABORTs, after a second, and returns.
func TestTransportClosesALinkThatBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		link := &mortal{Link: lb, blocks: make(chan struct{})}
		p := joinPair(t, la, lb, la, link)
		_, s := p.connect(t, quiet, quiet)
		p.connect(t, quiet, quiet)
		synctest.Wait()
		link.stuck.Store(true)
		began := time.Now()
		p.b.Close()
		check.Equal(t, "time that Close takes", time.Since(began), abortTimeout)
		check.That(t, isClosed(s.Done()), "an association has not ended")
	})
}
