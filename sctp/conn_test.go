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
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

func TestMessagesKeepTheirBoundaries(t *testing.T) { eachFamily(t, messagesKeepTheirBoundaries) }

func messagesKeepTheirBoundaries(t *testing.T, p *pair) {
	c, s := p.connect(t, nil, nil)
	sizes := []int{1, 2, 100, 1452, 1453, 5000, 100_000}
	go func() {
		for i, n := range sizes {
			_, err := c.WriteMsg(patternOf(i, n), SendInfo{Stream: uint16(i % 3), PPID: uint32(i), Unordered: false})
			check.That(t, err == nil, "write %d: %v", i, err)
		}
	}()
	buf := make([]byte, 200_000)
	for range sizes {
		n, info := must.Two(s.ReadMsg(buf))(t)
		i := int(info.PPID)
		check.That(t, n == sizes[i] && info.Size == n && !info.More && info.Stream == uint16(i%3) &&
			bytes.Equal(buf[:n], patternOf(i, n)),
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
		if _, err := c.WriteMsg(patternOf(sent, size), SendInfo{}); err != nil {
			must.That(t, errors.Is(err, os.ErrDeadlineExceeded), "%v", err)
			break
		}
	}
	must.That(t, sent != count, "%d octets were taken with buffers of 50000 and no reader", count*size)
	c.SetWriteDeadline(time.Time{})
	go func() {
		for i := sent; i < count; i++ {
			check.Do(c.WriteMsg(patternOf(i, size), SendInfo{}))(t)
		}
	}()
	buf := make([]byte, size)
	for i := range count {
		n, _, err := s.ReadMsg(buf)
		must.That(t, err == nil && bytes.Equal(buf[:n], patternOf(i, size)), "message %d: %d octets, %v", i, n, err)
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
		c.queueWriter(w)
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
		write := startBlocked(func() error { _, err := c.WriteMsg(make([]byte, 2900), SendInfo{}); return err })
		synctest.Wait()
		s.unlock()
		must.OK(t, <-write)
		check.That(t, !tokens()[1], "who has waited, and leaves no room for several messages, wakes others")
		c.Abort("")
		check.Equal(t, "late at the end", c.recv.deadline.wait(&c.recv.readable), false)
	})
}

// A reader of a message in parts leaves the rest to the next one, and nothing behind the last part:
// the next read would look for it and find nothing. But where a deadline has passed what is there
// may be for another reader, who has yet to see that.
func TestReadingInPartsLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newPair(t).connect(t, quiet, quiet)
		buf := make([]byte, 3)
		for _, left := range []bool{false, true} {
			read := startBlocked(func() error { _, _, err := s.ReadMsg(buf); return err })
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
		c, _ := connectTransports(t, a, b, nil, nil)
		links[0].Lose.Store(true)
		for range 3 * maxEventsAtOnce {
			must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
		}
		c.Abort("")
		check.That(t, isClosed(c.Done()), "it is not")
	})
}

// Where a deadline passes as the association ends, the call says how that has ended, which is what
// will not change.
func TestEndIsToldAlsoPastADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, _ := apiPair(t)
		c, _ := connectTransports(t, a, b, nil, nil)
		must.OK(t, c.SetReadDeadline(time.Now().Add(time.Second)))
		end := startBlocked(func() error { _, _, err := c.ReadMsg(nil); return err })
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
		c, s := connectTransports(t, a, b, &Config{SendBuffer: streamChunkOctets + 1}, nil)
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
				ended[k] = startBlocked(call)
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
			n, err := out.Write(patternOf(int(i), 200_000))
			check.That(t, n == 200_000 && err == nil, "stream %d: wrote %d, %v", i, n, err)
		}()
		go func() {
			defer wg.Done()
			got := make([]byte, 200_000)
			_, err := io.ReadFull(in, got)
			check.That(t, err == nil && bytes.Equal(got, patternOf(int(i), 200_000)), "stream %d: %v", i, err)
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

// belated is a context that ends when who asks for its end has nothing else to wait for.
type belated struct {
	context.Context
	cancel func()
}

func (c belated) Done() <-chan struct{} { synctest.Wait(); c.cancel(); return c.Context.Done() }

// nowhere is a link that has no address yet.
type nowhere struct{ rawio.Link }

func (nowhere) LocalAddrs() []netip.AddrPort { return nil }

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

// probePeer sends a message and waits for its acknowledgement or for the end.
func (c *Conn) probePeer() error {
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
		c.queueWriter(new(waitingWriter))
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
		must.Do(from.WriteMsg(patternOf(1, 50_000), SendInfo{}))(t)
		from.probePeer()
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

func patternOf(seed, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(seed*7 + i*13 + i>>8)
	}
	return b
}
