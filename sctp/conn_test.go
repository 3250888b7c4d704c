package sctp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestMessagesKeepTheirBoundaries(t *testing.T) { eachFamily(t, messagesKeepTheirBoundaries) }

func messagesKeepTheirBoundaries(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	sizes := []int{1, 2, 100, 1452, 1453, 5000, 100_000}
	go func() {
		for i, n := range sizes {
			_, err := c.WriteMsg(pattern(i, n), SendInfo{Stream: uint16(i % 3), PPID: uint32(i), Unordered: false})
			check.That(t, err == nil, "write %d: %v", i, err)
		}
	}()
	buf := make([]byte, 200_000)
	for range sizes {
		n, info := must.Two(s.ReadMsg(buf))(t)
		i := int(info.PPID)
		check.That(t, n == sizes[i] && info.Size == n && !info.More && info.Stream == uint16(i%3) && bytes.Equal(buf[:n], pattern(i, n)),
			"message %d: %d octets, %+v", i, n, info)
	}
}

func TestWriteRefusals(t *testing.T) {
	c, _ := newPair(t).connect(t, &Config{OutStreams: 4, SendBuffer: 10_000}, nil)
	for _, tt := range []struct {
		name string
		n    int
		info SendInfo
		want error
	}{
		{"an empty message has no DATA chunk", 0, SendInfo{}, assoc.ErrEmptyMessage},
		{"a stream beyond the negotiated ones", 1, SendInfo{Stream: 4}, assoc.ErrInvalidStream},
		{"a message that can never fit the send buffer", 10_001, SendInfo{}, ErrMessageTooLong},
	} {
		t.Run(tt.name, func(t *testing.T) {
			check.Fails(c.WriteMsg(make([]byte, tt.n), tt.info))(t, "error", tt.want)
		})
	}
	_, err := c.WriteMsg(make([]byte, 10_000), SendInfo{Stream: 3})
	check.That(t, err == nil, "what fits is refused: %v", err)
	must.OK(t, c.Reconfigure(func(cfg *Config) { cfg.SendBuffer = 5000 }))
	check.Fails(c.WriteMsg(make([]byte, 5001), SendInfo{}))(t, "what does not fit any more", ErrMessageTooLong)
	check.That(t, errors.As(c.Reconfigure(func(cfg *Config) { cfg.SendBuffer, cfg.MaxMessage = 10_000, -1 }), new(*assoc.ConfigError)), "a bad configuration is taken")
	check.Fails(c.WriteMsg(make([]byte, 5001), SendInfo{}))(t, "what does not fit, as nothing has changed", ErrMessageTooLong)
}

// A writer that outruns its reader blocks, and nothing is lost.
func TestBackPressure(t *testing.T) {
	small := &Config{RecvBuffer: 20_000, SendBuffer: 30_000}
	c, s := newPair(t).connect(t, small, small)
	const count, size = 300, 1000
	must.OK(t, c.SetWriteDeadline(time.Now().Add(-time.Second)))
	sent := 0
	for ; sent < count; sent++ {
		if _, err := c.WriteMsg(pattern(sent, size), SendInfo{}); err != nil {
			must.That(t, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
			break
		}
	}
	must.That(t, sent != count, "%d octets were taken with buffers of 50000 and no reader", count*size)
	c.SetWriteDeadline(time.Time{})
	go func() {
		for i := sent; i < count; i++ {
			check.Do(c.WriteMsg(pattern(i, size), SendInfo{}))(t)
		}
	}()
	buf := make([]byte, size)
	for i := range count {
		n, _, err := s.ReadMsg(buf)
		must.That(t, err == nil && bytes.Equal(buf[:n], pattern(i, size)), "message %d: %d octets, %v", i, n, err)
	}
}

// Each thing that has happened wakes those who wait for it, once, and nobody else.
func TestNobodyIsWokenForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := newPair(t).connect(t, &Config{DisablePMTUD: true, HeartbeatInterval: -1, Events: 9}, quiet)
		tokens := func() (set [3]bool) {
			var events chan struct{}
			if c.observers.events != nil {
				events = c.observers.events.arrivedCh
			}
			for i, ch := range []<-chan struct{}{c.recv.readable.C(), c.send.writable.C(), events} {
				select {
				case <-ch:
					set[i] = true
				default:
				}
			}
			return set
		}
		synctest.Wait()
		c.lock()
		w := new(waitingWriter)
		c.send.queueWriter(w, c.t)
		c.send.unqueueWriter(w)
		c.unlock()
		tokens()
		for i, w := range []unlockTask{taskWakeReaders, taskWakeWriters, taskNotifyEvents} {
			c.lock()
			c.afterUnlock.tasks = w
			c.unlock()
			want := [3]bool{}
			want[i] = true
			check.Equal(t, "are woken", tokens(), want)
			c.lockAndFlush()
			check.Equal(t, "are woken once more", tokens(), [3]bool{})
		}
		c.lock()
		check.That(t, !c.flushAndUnlock(c.t.now()), "who has sent nothing together with others is to send that")
		must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t) // has not waited, nor do others
		check.Fails(c.WriteMsg([]byte("x"), SendInfo{Dest: addrsA[1].Addr()}))(t, "to nowhere", assoc.ErrNoPath)
		check.That(t, !tokens()[1] && c.send.firstWriter == nil, "who writes wakes others that do not wait")
		d := &deadline{t: c.t}
		d.set(time.Now())
		c.recv.readable.Set()
		for _, want := range []bool{false, true} { // what has come goes before a deadline
			check.Equal(t, "late", d.wait(&c.recv.readable), want)
		}
		c, s := newPair(t).connect(t, &Config{DisablePMTUD: true, HeartbeatInterval: -1, SendBuffer: 3000}, quiet)
		s.lock() // it acknowledges nothing
		must.Do(c.WriteMsg(make([]byte, 3000), SendInfo{}))(t)
		write := blocked(func() error { _, err := c.WriteMsg(make([]byte, 2900), SendInfo{}); return err })
		synctest.Wait()
		s.unlock()
		must.OK(t, <-write)
		check.That(t, !tokens()[1], "who has waited, and leaves no room for several messages, wakes others")
		c.Abort("")
		check.Equal(t, "late at the end", c.recv.deadline.wait(&c.recv.readable), false)
	})
}

// A reader of a message in parts leaves the rest to the next one, and nothing behind the last
// part: the next read would look for it and find nothing. But where a deadline has passed what is there may
// be for another reader, who has yet to see that.
func TestReadingInPartsLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newPair(t).connect(t, quiet, quiet)
		buf := make([]byte, 3)
		for _, left := range []bool{false, true} {
			read := blocked(func() error { _, _, err := s.ReadMsg(buf); return err })
			synctest.Wait()
			woken := s.t.signals.wakes.Load()
			must.Do(c.WriteMsg([]byte("hello"), SendInfo{}))(t)
			must.OK(t, <-read)
			check.That(t, s.recv.readable.isSet(), "the rest is nobody's")
			must.Two(s.ReadMsg(buf))(t)
			check.Equal(t, "the signal is set behind the last part", s.recv.readable.isSet(), left)
			synctest.Wait() // who wakes somebody counts it afterwards
			check.Equal(t, "goroutines that a packet has woken", s.t.signals.wakes.Load()-woken, 1)
			must.OK(t, s.SetReadDeadline(time.Now()))
			must.OK(t, s.SetReadDeadline(time.Time{}))
			<-s.recv.readable.C()
		}
	})
}

// However many messages fail with an association, its end is told at once.
func TestEndIsToldBehindAllThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, links := apiPair(t)
		c, _ := associate(t, a, b, nil, nil)
		links[0].Lose.Store(true)
		for range 3 * maxEventsAtOnce {
			must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		}
		c.Abort("")
		check.That(t, isClosed(c.Done()), "it is not")
	})
}

// A peer that does not answer is left after CloseTimeout; calls that wait end at once.
func TestCloseDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, links := apiPair(t)
		c, s := associate(t, a, b, &Config{SendBuffer: 3000}, nil)
		defer s.Abort("")
		links[0].Lose.Store(true)
		must.Do(c.WriteMsg(make([]byte, 3000), SendInfo{}))(t)
		read := blocked(func() error { _, _, err := c.ReadMsg(nil); return err })
		write := blocked(func() error { _, err := c.WriteMsg([]byte("no room for it"), SendInfo{}); return err })
		began := time.Now()
		closed := blocked(c.Close)
		r, w := <-read, <-write
		check.That(t, r == net.ErrClosed && w == net.ErrClosed, "reader: %v, writer: %v", r, w)
		check.Equal(t, "they wait for", time.Since(began), 0)
		_, err := c.WriteMsg([]byte("more"), SendInfo{})
		check.That(t, err == net.ErrClosed, "while it ends: %v", err)
		err = <-closed
		check.That(t, err == os.ErrDeadlineExceeded && time.Since(began) == 10*time.Second && isClosed(c.Done()), "%v after %v, ended: %v", err, time.Since(began), isClosed(c.Done()))
	})
}

// Where a deadline passes as the association ends, the call says how that has ended, which is what
// will not change.
func TestEndIsToldAlsoPastADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := apiPair(t)
		c, _ := associate(t, a, b, nil, nil)
		must.OK(t, c.SetReadDeadline(time.Now().Add(time.Second)))
		end := blocked(func() error { _, _, err := c.ReadMsg(nil); return err })
		synctest.Wait()
		core, now := c.lock() // so that the call, which the deadline wakes, sees the end as well
		time.Sleep(time.Second)
		core.Abort(now, nil)
		c.unlock()
		err := <-end
		check.That(t, err != nil && !errors.Is(err, os.ErrDeadlineExceeded), "of the call that waited: %v", err)
	})
}

// A deadline ends the calls of its direction that would wait, those of one Conn or Stream alone.
func TestDeadlineIsOfOneDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, links := apiPair(t)
		c, s := associate(t, a, b, &Config{SendBuffer: streamChunkOctets + 1}, nil)
		defer s.Abort("")
		links[1].Lose.Store(true) // acknowledges nothing
		st := c.Stream(1)
		must.OK(t, st.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := st.Write(make([]byte, 2*streamChunkOctets))
		check.That(t, n == streamChunkOctets && errors.Is(err, os.ErrDeadlineExceeded), "%d octets of more than there is room for, %v", n, err)
		calls := [4]func() error{
			func() error { _, _, err := c.ReadMsg(nil); return err },
			func() error { _, err := c.WriteMsg(make([]byte, 2), SendInfo{}); return err },
			func() error { _, err := st.Read(make([]byte, 1)); return err },
			func() error { _, err := st.Write(make([]byte, 2)); return err },
		}
		for i, set := range []func(time.Time) error{c.SetReadDeadline, c.SetWriteDeadline, c.SetDeadline, st.SetReadDeadline, st.SetWriteDeadline, st.SetDeadline} {
			must.OK(t, errors.Join(c.SetDeadline(time.Time{}), st.SetDeadline(time.Time{}), set(time.Now().Add(time.Second))))
			var ended [len(calls)]<-chan error
			for k, call := range calls {
				ended[k] = blocked(call)
			}
			time.Sleep(time.Second) // of virtual time
			synctest.Wait()
			for k, end := range ended {
				want := i/3 == k/2 && (i%3 == 2 || i%3 == k%2)
				check.That(t, len(end) > 0 == want, "deadline %d ends call %d: %v", i, k, !want)
			}
			must.OK(t, errors.Join(c.SetDeadline(time.Now()), st.SetDeadline(time.Now())))
			for _, end := range ended {
				check.Error(t, "of a call that waits", <-end, os.ErrDeadlineExceeded)
			}
		}
		d := deadline{t: c.t}
		for _, row := range []struct {
			in, wait time.Duration
			want     bool
		}{{0, 0, true}, {1, 0, false}, {1, 1, true}} {
			d.set(time.Now().Add(row.in))
			time.Sleep(row.wait)
			synctest.Wait()
			check.That(t, isClosed(d.expiredChan()) == row.want, "%v after a deadline in %v: passed %v", row.wait, row.in, !row.want)
		}
	})
}

func TestCloseDeliversWhatWasWritten(t *testing.T) { eachFamily(t, closeDeliversWhatWasWritten) }

func closeDeliversWhatWasWritten(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	want := pattern(3, 50_000)
	must.Do(c.WriteMsg(want, SendInfo{}))(t)
	closed := make(chan error)
	go func() { closed <- c.Close() }()
	buf := make([]byte, len(want))
	n, _, err := s.ReadMsg(buf)
	must.That(t, err == nil && bytes.Equal(buf[:n], want), "%d octets, %v", n, err)
	_, _, err = s.ReadMsg(buf)
	check.That(t, err == io.EOF, "error %v after the peer's graceful end, want io.EOF", err)
	check.Error(t, "close", <-closed, nil)
	check.Error(t, "second close", c.Close(), nil)
	check.Fails(c.WriteMsg(want, SendInfo{}))(t, "write after close", net.ErrClosed)
	check.Fails(c.WriteMsg(nil, SendInfo{}))(t, "an empty write after close", assoc.ErrEmptyMessage)
	_, _, err = c.ReadMsg(buf)
	check.That(t, errors.Is(err, net.ErrClosed), "read after close: %v", err)
}

// Close throws messages of the peer away that are unread, and does not let the peer take that for a
// graceful end: it hears of an ABORT, once it has all that was written here. A peer whose messages
// were all read, or come too late, is told of nothing.
func TestCloseWithMessagesUnreadTellsThePeer(t *testing.T) {
	small := &Config{RecvBuffer: 20_000, SendBuffer: 200_000}
	for _, row := range []struct {
		name   string
		before func(t *testing.T, c, s *Conn)
		unread bool
	}{
		{"nothing has come", func(t *testing.T, c, s *Conn) {}, false},
		{"a message was read", func(t *testing.T, c, s *Conn) {
			must.Do(s.WriteMsg([]byte("read"), SendInfo{}))(t)
			skim(t, c)
		}, false},
		{"a message was not", func(t *testing.T, c, s *Conn) { must.OK(t, s.probe()) }, true},
		{"one was read in part", func(t *testing.T, c, s *Conn) {
			must.Do(s.WriteMsg([]byte("not all"), SendInfo{}))(t)
			must.Do(io.ReadFull(c.Stream(0), make([]byte, 3)))(t)
		}, true},
		{"one of a Stream was not", func(t *testing.T, c, s *Conn) {
			c.Stream(0)
			must.OK(t, s.probe())
		}, true},
		{"the peer has much more to send than there is room for", func(t *testing.T, c, s *Conn) {
			for range 150 {
				must.Do(s.WriteMsg(pattern(1, 1000), SendInfo{}))(t)
			}
			until(t, "the first of it", func() bool { return c.Stats().Buffered > 0 })
		}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, s := newPair(t).connect(t, small, small)
			row.before(t, c, s)
			const answer = 100_000
			must.Do(c.Stream(1).Write(make([]byte, answer)))(t)
			got := make(chan int)
			go func() {
				n, _ := io.Copy(io.Discard, s.Stream(1))
				got <- int(n)
			}()
			check.Error(t, "close", c.Close(), nil)
			check.Equal(t, "octets of what was written before", <-got, answer)
			<-s.Done()
			if row.unread {
				var abort *AbortError
				check.That(t, errors.As(s.Err(), &abort) && abort.ByPeer && string(abort.Reason()) == closedUnreadReason, "the peer hears of %v", s.Err())
			} else {
				check.Error(t, "the peer hears", s.Err(), ErrShutdown)
			}
		})
	}
}

// Associations whose peers are gone take one CloseTimeout to close, and not one each, together or
// one after the other.
func TestAssociationsThatCloseShareTheGracePeriod(t *testing.T) {
	for _, together := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			lossy := new(mempair.LossyLink)
			la, lb := mempair.New(t, mem.Options{MTU: 1500})
			lossy.Link = la
			p := joinPair(t, la, lb, lossy, lb)
			l := must.Get(p.b.Listen(7, quiet))(t)
			var list []*Conn
			for range 100 {
				list = append(list, must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), quiet))(t))
				must.Do(l.Accept(deadlineCtx(t)))(t)
			}
			lossy.Lose.Store(true)
			began := time.Now()
			var wg sync.WaitGroup
			for _, c := range list {
				closes := func() { check.Error(t, "close", c.Close(), os.ErrDeadlineExceeded) }
				if together {
					wg.Go(closes)
				} else {
					closes()
				}
			}
			wg.Wait()
			took := time.Since(began)
			check.That(t, took >= 10*time.Second && took <= 11*time.Second, "together: %v: took %v", together, took)
		})
	}
}

// Close goes on beyond CloseTimeout while the peer acknowledges what was written, up to a limit,
// and not for a peer that hardly does.
func TestCloseGoesOnWhileThereIsProgress(t *testing.T) {
	for _, row := range []struct {
		name   string
		rate   int // octets a second that the peer reads
		takes  time.Duration
		result error
	}{
		{"2,000 octets a second", 2000, 50 * time.Second, nil},
		{"500 octets a second", 500, 10 * time.Second, os.ErrDeadlineExceeded},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := *quiet
				cfg.RecvBuffer = 2500
				c, s := newPair(t).connect(t, quiet, &cfg)
				const octets = 100_000
				for range octets / 500 {
					must.Do(c.WriteMsg(make([]byte, 500), SendInfo{}))(t)
				}
				var reader sync.WaitGroup
				reader.Go(func() {
					for err := error(nil); err == nil; time.Sleep(500 * time.Second / time.Duration(row.rate)) {
						_, _, err = s.ReadMsg(make([]byte, 500))
					}
				})
				defer reader.Wait()
				began := time.Now()
				err := c.Close()
				took := time.Since(began)
				check.Error(t, "close", err, row.result)
				check.That(t, took > row.takes*3/4 && took < row.takes*5/4, "took %v, want about %v", took, row.takes)
			})
		})
	}
}

// A read that is blocked when the association dies returns at once with the reason.
func TestAbortWakesTheOtherSide(t *testing.T) { eachFamily(t, abortWakesTheOtherSide) }

func abortWakesTheOtherSide(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	got := make(chan error)
	go func() { _, _, err := s.ReadMsg(make([]byte, 1)); got <- err }()
	c.Abort("enough is enough")
	var abort *assoc.AbortError
	err := <-got
	check.That(t, errors.As(err, &abort) && abort.ByPeer && bytes.Contains([]byte(err.Error()), []byte("enough is enough")), "error %v, want the peer's abort with its reason", err)
	<-s.Done()
	_, err = s.WriteMsg([]byte("x"), SendInfo{})
	check.That(t, s.Err() != nil && err == s.Err(), "the reason is %v, writers hear %v", s.Err(), err)
}

func TestStreamsAreConns(t *testing.T) {
	c, s := newPair(t).connect(t, nil, nil)
	const streams = 5
	var wg sync.WaitGroup
	for i := range uint16(streams) {
		in, out := s.Stream(i), c.Stream(i)
		check.Equal(t, "the stream of a second call", c.Stream(i), out)
		wg.Add(2)
		go func() {
			defer wg.Done()
			n, err := out.Write(pattern(int(i), 200_000))
			check.That(t, n == 200_000 && err == nil, "stream %d: wrote %d, %v", i, n, err)
		}()
		go func() {
			defer wg.Done()
			got := make([]byte, 200_000)
			_, err := io.ReadFull(in, got)
			check.That(t, err == nil && bytes.Equal(got, pattern(int(i), 200_000)), "stream %d: %v", i, err)
		}()
	}
	wg.Wait()
	var out, in net.Conn = c.Stream(0), s.Stream(0)
	fmt.Fprint(out, "nobody reads this")
	until(t, "its arrival", func() bool { return s.Stats().Buffered > 0 })
	err := in.Close()
	check.That(t, err == nil && s.Stats().Buffered == 0, "%d octets are kept for a stream that is closed, %v", s.Stats().Buffered, err)
	fmt.Fprint(out, "more")
	n, info, err := s.ReadMsg(make([]byte, 100))
	check.That(t, n == 4 && info.Stream == 0 && err == nil, "%d octets of stream %d, %v: want what the closed stream takes no more", n, info.Stream, err)
	again := s.Stream(0)
	check.That(t, in.Close() == nil && s.Stream(0) == again && again != in, "a stream ends with the one before it, or not at all")
	must.Do(c.Stream(7).Write(make([]byte, streamChunkOctets+5)))(t)
	for _, size := range []int{streamChunkOctets, 5} {
		_, info, err := s.ReadMsg(make([]byte, 1<<17))
		check.That(t, err == nil && info.Size == size && info.Stream == 7, "a piece of what was written is %+v, %v, want %d octets", info, err, size)
	}
	fmt.Fprint(c.Stream(0), "the last")
	c.Close()
	last, err := io.ReadAll(iotest.OneByteReader(s.Stream(0)))
	check.That(t, string(last) == "the last" && err == nil, "%q, octet by octet, up to the peer's end, %v", last, err)
}

func TestDialErrors(t *testing.T) {
	p := newPair(t)
	nobody := netip.AddrPortFrom(p.bAddr, 9)
	var dial *DialError
	_, err := p.a.Dial(deadlineCtx(t), nobody, nil)
	var abort *assoc.AbortError
	check.That(t, errors.As(err, &dial) && dial.Remote == nobody && errors.As(err, &abort) && abort.ByPeer && !dial.Temporary(),
		"nobody listens: %v", err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	check.Fails(p.a.Dial(ctx, nobody, nil))(t, "context ended", context.Canceled)
	l := must.Get(p.a.Listen(0, nil))(t)
	check.Fails(l.Accept(ctx))(t, "Accept when the context has ended", context.Canceled)
	p.a.Close()
	check.Fails(p.a.Dial(deadlineCtx(t), nobody, nil))(t, "transport closed", net.ErrClosed)
	check.Equal(t, "address of a link without any", (&Transport{link: nowhere{}}).localAddr(), netip.Addr{})
	_, err = p.a.Listen(0, nil)
	check.That(t, err == ErrTransportClosed, "Listen when the transport is closed: %v", err)
}

// belated is a context that ends when who asks for its end has nothing else to wait for.
type belated struct {
	context.Context
	cancel func()
}

func (c belated) Done() <-chan struct{} { synctest.Wait(); c.cancel(); return c.Context.Done() }

// An association that is up when its Dial is given up is given up too, or returned.
func TestDialReturnsNoAssociationThatItHasAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		l := must.Get(p.b.Listen(0, nil))(t)
		for range 30 { // of two that are ready a select takes any
			ctx, cancel := context.WithCancel(t.Context())
			c, err := p.a.Dial(belated{ctx, cancel}, netip.AddrPortFrom(p.bAddr, l.Port()), nil)
			must.That(t, (c != nil) == (err == nil) && (err == nil || errors.Is(err, context.Canceled)), "%v, %v", c, err)
			check.That(t, c == nil || !isClosed(c.Done()), "it has been aborted")
		}
	})
}

// nowhere is a link that has no address yet.
type nowhere struct{ rawio.Link }

func (nowhere) LocalAddrs() []netip.AddrPort { return nil }

// A host that has refused by one link may be silent by the other: it has the time of one
// retransmission.
func TestSilenceBesideARefusalIsWaitedForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		defer lb.Close()
		silent := must.Get(NewTransport(la, nil))(t)
		defer silent.Close()
		to, began := netip.AddrPortFrom(p.bAddr, 9), time.Now()
		_, _, err := raceAttempts(t.Context(), []dialAttempt{{p.a, rawLink, to, localRoute{}, nil}, {silent, rawLink, to, localRoute{}, nil}}, &Config{RTOInitial: 2 * time.Second}, time.Hour)
		took := time.Since(began)
		check.That(t, errors.Is(err, syscall.ECONNREFUSED) && took >= 6*time.Second && took < 7*time.Second, "%v after %v", err, took)
		l := must.Get(p.b.Listen(9, nil))(t)
		began = time.Now()
		must.Two(raceAttempts(t.Context(), []dialAttempt{{silent, rawLink, to, localRoute{}, nil}, {p.a, rawLink, to, localRoute{}, nil}}, &Config{}, 0))(t)
		check.Equal(t, "the second attempt by default comes after", time.Since(began), 250*time.Millisecond)
		must.OK(t, l.Close())
		closed := newPair(t).a
		closed.Close()
		for _, row := range []struct { // the reason is the first, but a refusal goes before silence
			first, last *Transport
			want        error
			took        time.Duration // that silence which nobody has refused is waited out
		}{{closed, p.a, ErrTransportClosed, 0}, {p.a, closed, syscall.ECONNREFUSED, 0}, {silent, p.a, syscall.ECONNREFUSED, 7}, {silent, closed, syscall.ETIMEDOUT, 7},
			{closed, silent, ErrTransportClosed, 7}} {
			began := time.Now()
			_, _, err := raceAttempts(t.Context(), []dialAttempt{{row.first, rawLink, to, localRoute{}, nil}, {row.last, rawLink, to, localRoute{}, nil}}, &Config{MaxInitRetrans: 2}, time.Hour)
			check.Error(t, "why", err, row.want)
			check.Equal(t, "took seconds", time.Since(began)/time.Second, row.took)
		}
	})
}

// Of attempts that have failed the error is not that one was overtaken by another.
func TestOvertakenIsNoReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, links := apiPair(t)
		links[0].Chunk.Store(10) // COOKIE ECHO
		var list []dialAttempt
		for range 2 {
			l := must.Get(b.Listen(0, nil))(t)
			list = append(list, dialAttempt{a, rawLink, netip.AddrPortFrom(addrsB[0].Addr(), l.Port()), localRoute{}, nil})
		}
		_, _, err := raceAttempts(t.Context(), list, &Config{}, time.Millisecond)
		check.That(t, errors.Is(err, syscall.ETIMEDOUT) && !errors.Is(err, assoc.ErrOvertaken), "%v", err)
		time.AfterFunc(2*time.Second, func() { links[0].Chunk.Store(0) }) // behind the last COOKIE ECHO of the first
		_, by := must.Two(raceAttempts(t.Context(), list, &Config{MaxInitRetrans: 1}, time.Hour))(t)
		check.That(t, by == &list[1], "not the attempt that began when the one that was answered had failed")
	})
}

// An attempt is not overtaken by itself: it goes on when its cookie has become stale, and the peer
// answers once more.
func TestAttemptIsAnsweredTwice(t *testing.T) {
	for at := range 2 {
		synctest.Test(t, func(t *testing.T) {
			a, b, links := apiPair(t)
			links[0].Chunk.Store(10) // COOKIE ECHO
			l := must.Get(b.Listen(0, &Config{CookieLife: 100 * time.Millisecond}))(t)
			list := slices.Repeat([]dialAttempt{{a, rawLink, netip.AddrPortFrom(addrsB[0].Addr(), 9), localRoute{}, nil}}, 2) // where nobody is
			list[at].remote = netip.AddrPortFrom(addrsB[0].Addr(), l.Port())
			end := blocked(func() error { _, _, err := raceAttempts(t.Context(), list, &Config{}, time.Millisecond); return err })
			time.Sleep(500 * time.Millisecond) // of virtual time
			links[0].Chunk.Store(0)
			check.That(t, <-end == nil && b.Stats().Endpoint.StaleCookies > 0, "it fails, or no cookie was stale")
		})
	}
}

// Where the peer listens by a port of UDP of its own, packets over UDP go there, unless the program
// says where they go, and no others.
func TestEncapsulationPortIsOfAttemptsByUDP(t *testing.T) {
	for _, row := range []struct {
		kind       linkKind
		told, want uint16
	}{{udpLink, 0, 7}, {udpLink, 5, 5}, {rawLink, 0, 0}, {rawLink, 5, 5}} {
		b := besiege(t, 0, nil)
		_, _, err := raceAttempts(t.Context(), []dialAttempt{{b.Transport, row.kind, netip.MustParseAddrPort("10.0.0.2:1"), localRoute{encapPort: 7}, nil}},
			&Config{EncapPort: row.told, RTOInitial: time.Millisecond, RTOMin: time.Millisecond, MaxInitRetrans: 1}, time.Hour)
		check.Error(t, "by a link that says nothing", err, syscall.ETIMEDOUT)
		check.Equal(t, "port of UDP by "+string(row.kind), b.link.encap, row.want)
	}
}

func TestAdaptationIsEnforced(t *testing.T) {
	ddp, other := uint32(1), uint32(7)
	p := newPair(t)
	l := must.Get(p.b.Listen(0, &Config{Adaptation: &ddp, RequireAdaptation: true}))(t)
	to := netip.AddrPortFrom(p.bAddr, l.Port())
	for _, mine := range []*uint32{nil, &other} {
		_, err := p.a.Dial(deadlineCtx(t), to, &Config{Adaptation: mine})
		check.That(t, err != nil, "an association with indication %v was set up", mine)
	}
	check.Do(p.a.Dial(deadlineCtx(t), to, &Config{Adaptation: &ddp}))(t)
	plain := must.Get(p.b.Listen(0, nil))(t)
	_, err := p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, plain.Port()), &Config{Adaptation: &ddp, RequireAdaptation: true})
	var adaptation *assoc.AdaptationError
	check.That(t, errors.As(err, &adaptation) && adaptation.Absent && adaptation.Want == ddp, "a peer without an indication: %v", err)
}

func TestPortInUse(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(4000, nil))(t)
	p.a.mu.Lock()
	for range 65536 - 49152 { // whoever asks for any port gets a dynamic one, until there are none
		port, err := p.a.bindListenPort(0)
		must.That(t, err == nil && port >= 49152 && p.a.ports.users[port] == 1, "port %d, %v", port, err)
	}
	port, err := p.a.bindListenPort(0)
	check.That(t, errors.Is(err, rawio.ErrPortInUse), "port %d, %v with none free", port, err)
	p.a.releasePort(50_000, time.Hour)
	port, err = p.a.bindListenPort(0)
	check.That(t, errors.Is(err, rawio.ErrPortInUse), "port %d, %v where only one that lingers is free", port, err)
	p.a.mu.Unlock()
	bad := &Config{LocalPort: 4001, MaxMessage: -1}
	for range 2 { // the port of what has failed is free
		var wrong *assoc.ConfigError
		_, err := p.b.Listen(4001, bad)
		check.That(t, errors.As(err, &wrong), "Listen with a bad configuration: %v", err)
		_, err = p.b.Dial(deadlineCtx(t), netip.AddrPortFrom(p.a.localAddr(), 1), bad)
		check.That(t, errors.As(err, &wrong), "Dial with a bad configuration: %v", err)
	}
	check.Equal(t, "ports of Dials that have failed", len(p.b.ports.dialUsers), 0)
	_, err = p.b.Listen(4000, nil)
	check.That(t, errors.Is(err, rawio.ErrPortInUse) && errors.Is(err, syscall.EADDRINUSE), "second listener: %v", err)
	l.Close()
	_, err = p.b.Listen(4000, nil)
	check.That(t, err == nil, "the port is not free after Close: %v", err)
	check.Fails(l.Accept(context.Background()))(t, "accept on a closed listener", net.ErrClosed)
}

// A port serves associations of Dial with different peers, and nobody else; where few are free a
// Dial gets one that others have.
func TestDialsShareAPort(t *testing.T) {
	p := newPair(t)
	ctx := deadlineCtx(t)
	var to [3]netip.AddrPort
	for i := range to {
		l := must.Get(p.b.Listen(uint16(7+i), nil))(t)
		defer l.Close()
		to[i] = netip.AddrPortFrom(p.bAddr, l.Port())
	}
	own := &Config{LocalPort: 60_000}
	first, second := must.Get(p.a.Dial(ctx, to[0], own))(t), must.Get(p.a.Dial(ctx, to[1], own))(t)
	check.Fails(p.a.Dial(ctx, to[0], own))(t, "a second association between the same", endpoint.ErrExists)
	check.Fails(p.a.Dial(ctx, to[2], &Config{LocalPort: 60_000, LocalAddrs: []netip.Addr{p.a.localAddr()}}))(t, "a Dial from one address alone", rawio.ErrPortInUse)
	alone := &Config{LocalPort: 60_001, LocalAddrs: []netip.Addr{p.a.localAddr()}}
	for _, peer := range to[:2] {
		must.Do(p.a.Dial(ctx, peer, alone))(t)
	}
	check.Fails(p.a.Dial(ctx, to[2], &Config{LocalPort: 60_001}))(t, "a Dial from all addresses beside those from one", rawio.ErrPortInUse)
	check.Fails(p.a.Listen(60_000, nil))(t, "a listener on the port", rawio.ErrPortInUse)
	check.Fails(p.b.Dial(ctx, netip.AddrPortFrom(p.a.localAddr(), 1), &Config{LocalPort: 7}))(t, "a Dial from the port of a listener", rawio.ErrPortInUse)
	check.Equal(t, "ports of Dials that have failed", len(p.b.ports.dialUsers), 0)
	p.a.mu.Lock()
	for err := error(nil); err == nil; { // the others are for whoever has no other use for them
		_, err = p.a.bindListenPort(0)
	}
	p.a.mu.Unlock()
	any := must.Get(p.a.Dial(ctx, to[2], nil))(t)
	check.Equal(t, "port", any.RemoteAddr().(Addr).Port(), 9)
	check.Equal(t, "own port", any.LocalAddr().(Addr).Port(), 60_000)
	_, err := p.a.Dial(ctx, to[2], nil)
	check.That(t, errors.Is(err, rawio.ErrPortInUse) && !errors.Is(err, endpoint.ErrExists), "one more with a peer: %v, and the port is said to be free", err)
	for i, c := range []*Conn{first, any, second} {
		c.Abort("")
		<-c.Done()
		p.a.mu.Lock()
		check.That(t, p.a.ports.users[60_000] == max(2-i, 1) && p.a.ports.dialUsers[60_000] == 2-i, "%d users of the port, %d of Dial", p.a.ports.users[60_000], p.a.ports.dialUsers[60_000]) // it lingers
		p.a.mu.Unlock()
	}
}

// Nobody accepts: associations beyond the backlog are refused before the COOKIE ACK, so that no
// Dial succeeds for nothing, and no message is acknowledged that nobody can read.
func TestDialBeyondTheBacklogIsRefused(t *testing.T) {
	// req 9260-5.1-9
	p := newPair(t)
	l := must.Get(p.b.Listen(0, &Config{Backlog: 3}))(t)
	to := netip.AddrPortFrom(p.bAddr, l.Port())
	for range 3 {
		must.OK(t, must.Get(p.a.Dial(deadlineCtx(t), to, nil))(t).probe())
	}
	check.That(t, l.waits() == 3 && !l.slots.IsFullFor(netip.MustParseAddr("10.9.9.9")), "%d wait, or they keep other hosts out", l.waits())
	before := p.b.Totals().DataIn
	for range 3 {
		_, err := p.a.Dial(deadlineCtx(t), to, nil)
		var refused *AbortError
		check.That(t, errors.As(err, &refused) && refused.Setup && refused.Causes[0].Code == wire.CauseOutOfResource && errors.Is(err, syscall.ECONNREFUSED), "one more: %v", err)
	}
	check.Equal(t, "associations", len(p.b.liveConns()), 3)
	check.That(t, p.b.Totals().DataIn == before && p.b.Stats().AcceptRefused == 3, "DATA of those that were refused has come, or %d are counted", p.b.Stats().AcceptRefused)
	must.Do(l.Accept(deadlineCtx(t)))(t)
	must.Do(p.a.Dial(deadlineCtx(t), to, nil))(t)
	check.Fails(p.a.Dial(deadlineCtx(t), to, nil))(t, "one that is accepted leaves more than one place", syscall.ECONNREFUSED)
}

// What has ended before Accept keeps its place only while there is something to accept: messages,
// or a graceful end. It keeps it from its own address alone, and an association that has failed
// with nothing unread is as if it had never been.
func TestPlacesOfAssociationsThatHaveEndedBeforeAccept(t *testing.T) {
	abort := func(t *testing.T, c *Conn) { c.Abort("") }
	say := func(then func(*testing.T, *Conn)) func(*testing.T, *Conn) {
		return func(t *testing.T, c *Conn) {
			must.OK(t, c.probe())
			then(t, c)
		}
	}
	for _, row := range []struct {
		name   string
		end    func(*testing.T, *Conn)
		places int
		reads  error // of Accept's association, in the end
	}{
		{"aborted, nothing unread: no place, and Accept does not return it", abort, 0, nil},
		{"aborted, one message unread: it has its place, and the message is read", say(abort), 1, syscall.ECONNRESET},
		{"closed, nothing unread: Accept returns it, as of TCP", func(t *testing.T, c *Conn) { must.OK(t, c.Close()) }, 1, io.EOF},
		{"closed, one message unread", say(func(t *testing.T, c *Conn) { must.OK(t, c.Close()) }), 1, io.EOF},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newPair(t)
			const backlog = 4
			l := must.Get(p.b.Listen(0, &Config{Backlog: backlog}))(t)
			to := netip.AddrPortFrom(p.bAddr, l.Port())
			for range backlog {
				row.end(t, must.Get(p.a.Dial(deadlineCtx(t), to, nil))(t))
				until(t, "the end", func() bool { return len(p.b.liveConns()) == 0 })
			}
			want := backlog * row.places
			until(t, "what is left to accept", func() bool { return l.waits() == want && l.slots.UsedUnits() == int64(want) })
			if c, err := p.a.Dial(deadlineCtx(t), to, nil); row.places == 1 {
				check.Error(t, "one more of the address", err, syscall.ECONNREFUSED)
			} else {
				must.OK(t, err)
				must.OK(t, c.probe())
				s := must.Get(l.Accept(deadlineCtx(t)))(t)
				check.Equal(t, "the state of what Accept returns", s.Stats().State, Established)
			}
			check.That(t, !l.slots.IsFullFor(netip.MustParseAddr("10.9.9.9")), "other hosts are kept out")
			for range want {
				s := must.Get(l.Accept(deadlineCtx(t)))(t)
				_, _, err := s.ReadMsg(make([]byte, 10))
				if strings.Contains(row.name, "one message unread") {
					must.OK(t, err)
					_, _, err = s.ReadMsg(make([]byte, 10))
				}
				check.Error(t, "the end, as the reader hears of it", err, row.reads)
			}
			check.Equal(t, "places in the end", l.slots.UsedUnits(), 0)
		})
	}
}

// probe sends a message and waits for its acknowledgement or for the end.
func (c *Conn) probe() error {
	if _, err := c.WriteMsg([]byte{1}, SendInfo{}); err != nil {
		return err
	}
	for c.sendBufUsed() > 0 {
		select {
		case <-c.send.writable.C():
		case <-c.Done():
			return c.Err()
		}
	}
	c.lock()
	defer c.unlock()
	if c.end.ended { // the buffer is empty because the message has failed
		return c.end.err
	}
	return nil
}

func (c *Conn) sendBufUsed() int {
	c.lock()
	defer c.unlock()
	c.send.firstWriter = nil
	if c.send.buffer.usedOctets > 0 { // whoever asks waits
		c.send.queueWriter(new(waitingWriter), c.t)
	}
	return c.send.buffer.usedOctets
}

// Many goroutines on one association: every message arrives once, in the order of its stream.
func TestConcurrentWriters(t *testing.T) {
	c, s := newPair(t).connect(t, nil, nil)
	const writers, each = 8, 200
	for i := range uint16(writers) {
		go func() {
			for j := range each {
				check.Do(c.WriteMsg(fmt.Appendf(nil, "%d", j), SendInfo{Stream: i}))(t)
			}
		}()
	}
	var next [writers]int
	buf := make([]byte, 100)
	for range writers * each {
		n, info := must.Two(s.ReadMsg(buf))(t)
		want := fmt.Sprint(next[info.Stream])
		must.That(t, string(buf[:n]) == want, "stream %d: message %s, want %s", info.Stream, buf[:n], want)
		next[info.Stream]++
	}
}

func TestTransportCloseEndsEverything(t *testing.T) {
	p := newPair(t)
	c, s := p.connect(t, nil, nil)
	for _, from := range []*Conn{c, s} { // messages that nobody reads
		must.Do(from.WriteMsg(pattern(1, 50_000), SendInfo{}))(t)
		from.probe()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	check.Error(t, "Wait while an association lives", p.a.Wait(ended), context.Canceled)
	p.a.Close()
	<-c.Done()
	<-s.Done() // told by ABORT, req 9260-9-1
	check.OK(t, p.a.Wait(t.Context()))
	s.Close()
	p.b.Close()
	mempair.Check(t, p.links[:]...)
	check.Error(t, "second close", p.a.Close(), nil)
}

func pattern(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*7 + i*13 + i>>8)
	}
	return b
}
