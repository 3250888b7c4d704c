package sctp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/upper"
)

// allowAll lets the peer ask for everything.
const allowAll = AllowStreamReset | AllowTSNReset | AllowAddStreams

// streamEvents returns the unread events about streams.
func streamEvents(t *testing.T, c *Conn) string {
	t.Helper()
	c.lock()
	defer c.unlock()
	var list []string
	for ev, ok := c.observers.events.pop(); ok; ev, ok = c.observers.events.pop() {
		if x := ev.Change; x != nil {
			list = append(list, fmt.Sprintf("%s %v +%d", ev, x.Streams, x.Added))
		}
	}
	return strings.Join(list, "; ")
}

func readSSN(t *testing.T, c *Conn) string {
	t.Helper()
	b := make([]byte, 100)
	n, info := must.Two(c.ReadMsg(b))(t)
	return fmt.Sprintf("%s %d#%d", b[:n], info.Stream, info.SSN)
}

// A program resets streams, TSNs, and adds streams, and each call waits for the peer.
func TestStreamsAreResetAndAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, s := p.connect(t, &Config{Events: 99, StreamReset: OfferStreamReset}, &Config{Events: 99, StreamReset: allowAll})
		write := func(text string) { must.Do(c.WriteMsg([]byte(text), SendInfo{Stream: 3}))(t) }
		write("a")
		write("b")
		must.OK(t, c.ResetStreams(t.Context(), Outgoing, 3))
		write("c")
		for _, want := range []string{"a 3#0", "b 3#1", "c 3#0"} {
			check.Equal(t, "message", readSSN(t, s), want)
		}
		must.Do(s.WriteMsg([]byte("x"), SendInfo{Stream: 4}))(t)
		must.OK(t, c.ResetStreams(t.Context(), Outgoing|Incoming))
		must.Do(s.WriteMsg([]byte("y"), SendInfo{Stream: 4}))(t)
		check.Equal(t, "message", readSSN(t, c), "x 4#0")
		check.Equal(t, "message", readSSN(t, c), "y 4#0")
		synctest.Wait()
		check.Equal(t, "events", streamEvents(t, c), "streams reset outgoing [3] +0; streams reset outgoing [] +0; "+
			"streams reset incoming [] +0")
		check.Equal(t, "events of the peer", streamEvents(t, s), "streams reset incoming by the peer [3] +0; "+
			"streams reset incoming by the peer [] +0; streams reset outgoing by the peer [] +0")

		must.OK(t, c.ResetTSNs(t.Context()))
		write("d")
		check.Equal(t, "message", readSSN(t, s), "d 3#0")
		check.Error(t, "again", c.ResetTSNs(t.Context()), ErrTSNResetTooSoon)

		must.OK(t, c.AddStreams(t.Context(), 2, 3))
		synctest.Wait()
		st := c.Stats()
		check.That(t, st.OutStreams == 12 && st.InStreams == 13, "%d streams go out, %d come in", st.OutStreams, st.InStreams)
		must.Do(c.WriteMsg([]byte("e"), SendInfo{Stream: 11}))(t)
		check.Equal(t, "message", readSSN(t, s), "e 11#0")
		check.Equal(t, "events", streamEvents(t, c), "TSNs reset outgoing [] +0; streams added outgoing [] +2; "+
			"streams added incoming [] +3")
	})
}

// What the peer does not allow, or has not heard of, is an error of the call.
func TestStreamRequestsThatAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, s := p.connect(t, &Config{StreamReset: allowAll}, &Config{StreamReset: OfferStreamReset})
		for name, err := range map[string]error{
			"ResetStreams": c.ResetStreams(t.Context(), Outgoing|Incoming), "ResetTSNs": c.ResetTSNs(t.Context()),
			"AddStreams": c.AddStreams(t.Context(), 1, 1),
		} {
			var refused *StreamResetError
			check.That(t, errors.Is(err, ErrStreamResetDenied) && errors.As(err, &refused), "%s: %v", name, err)
		}
		for _, side := range []StreamSide{0, 4, 7} {
			check.Error(t, "ResetStreams of no side", c.ResetStreams(t.Context(), side), ErrStreamRequest)
		}
		check.Error(t, "a stream that does not exist", c.ResetStreams(t.Context(), Outgoing, 77), ErrInvalidStream)
		check.Error(t, "no streams", s.AddStreams(t.Context(), 0, 0), ErrStreamRequest)
		check.Error(t, "fewer streams", s.AddStreams(t.Context(), 2, -1), ErrStreamRequest)
		check.Error(t, "too many", s.AddStreams(t.Context(), 65535, 0), ErrTooManyStreams)
		c.Abort("")
		err := c.AddStreams(t.Context(), 1, 0)
		check.That(t, errors.Is(err, ErrClosing), "AddStreams at the end: %v", err)

		c, s = p.connect(t, nil, &Config{StreamReset: allowAll})
		for _, x := range []*Conn{c, s} {
			err := x.AddStreams(t.Context(), 1, 0)
			check.That(t, errors.Is(err, ErrStreamResetUnsupported) && errors.Is(err, syscall.EOPNOTSUPP), "AddStreams: %v", err)
		}
	})
}

// One request is under way at a time, and the others wait for it.
func TestStreamRequestsWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, s := p.connect(t, &Config{StreamReset: allowAll}, &Config{StreamReset: allowAll})
		var wg sync.WaitGroup
		for i := range 8 {
			for _, x := range []*Conn{c, s} {
				wg.Go(func() {
					for {
						err := x.ResetStreams(t.Context(), Outgoing, uint16(i))
						if err == nil {
							err = x.AddStreams(t.Context(), 1, 0)
						}
						var busy *StreamResetError // both sides at once
						if check.That(t, err == nil || errors.As(err, &busy), "%v", err); err == nil {
							return
						}
					}
				})
			}
		}
		wg.Wait()
		check.Equal(t, "streams", c.Stats().OutStreams, 18)
		check.Equal(t, "streams", s.Stats().OutStreams, 18)
	})
}

// A reset that waits for its turn holds what is written behind it. One that nobody waits for any
// more is not begun.
func TestWritesWaitForAResetThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, s := p.connect(t, &Config{StreamReset: allowAll}, &Config{StreamReset: allowAll})
		write := func(text string) { must.Do(c.WriteMsg([]byte(text), SendInfo{Stream: 3}))(t) }
		var wg sync.WaitGroup
		ask := func(ctx context.Context, want error, stream uint16) {
			wg.Go(func() { check.Error(t, "ResetStreams", c.ResetStreams(ctx, Outgoing, stream), want) })
			synctest.Wait()
		}
		write("a")
		s.lock() // it answers nothing meanwhile
		ask(t.Context(), nil, 5)
		write("b")
		ask(t.Context(), nil, 3)
		write("c")
		ctx, cancel := context.WithCancel(t.Context())
		ask(ctx, context.Canceled, 3)
		write("d")
		cancel()
		synctest.Wait()
		write("e")
		s.unlock()
		for _, want := range []string{"a 3#0", "b 3#1", "c 3#0", "d 3#1", "e 3#2"} {
			check.Equal(t, "message", readSSN(t, s), want)
		}
		wg.Wait()
	})
}

// What waits for a reset fills the send buffer, and deadlines hold.
func TestWritesBehindAResetAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, s := p.connect(t, &Config{StreamReset: allowAll, SendBuffer: 4000}, &Config{StreamReset: allowAll})
		var wg sync.WaitGroup
		s.lock()
		for _, stream := range []uint16{5, 3} {
			wg.Go(func() { check.OK(t, c.ResetStreams(t.Context(), Outgoing, stream)) })
			synctest.Wait()
		}
		for range 4 {
			must.Do(c.WriteMsg(make([]byte, 1000), SendInfo{Stream: 3}))(t)
		}
		must.OK(t, c.SetWriteDeadline(time.Now().Add(time.Second)))
		check.Fails(c.WriteMsg(make([]byte, 1000), SendInfo{Stream: 3}))(t, "a write into a full buffer", os.ErrDeadlineExceeded)
		must.OK(t, c.SetWriteDeadline(time.Time{}))
		s.unlock()
		wg.Wait()
		must.Do(c.WriteMsg([]byte("more"), SendInfo{Stream: 3}))(t)
		for range 4 {
			must.Two(s.ReadMsg(make([]byte, 1000)))(t)
		}
		check.Equal(t, "message", readSSN(t, s), "more 3#4")
	})
}

// More streams than a packet names are reset by several requests.
func TestManyStreamsAreReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, s := p.connect(t, &Config{StreamReset: allowAll, OutStreams: 2000, Events: 99},
			&Config{StreamReset: allowAll, OutStreams: 2000})
		var list []uint16
		for i := range uint16(1000) {
			list = append(list, 2*i)
		}
		must.Do(c.WriteMsg([]byte("a"), SendInfo{Stream: 1998}))(t)
		must.OK(t, c.ResetStreams(t.Context(), Outgoing|Incoming, list...))
		must.Do(c.WriteMsg([]byte("b"), SendInfo{Stream: 1998}))(t)
		check.Equal(t, "message", readSSN(t, s), "a 1998#0")
		check.Equal(t, "message", readSSN(t, s), "b 1998#0")
		check.That(t, strings.Count(streamEvents(t, c), "outgoing") > 1, "one request was enough")
	})
}

// A context that ends, or an association that does, ends the wait.
func TestWaitForAStreamRequestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, _ := p.connect(t, &Config{StreamReset: allowAll}, &Config{StreamReset: allowAll})
		p.links[1].Close() // the peer answers no more
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check.Error(t, "ResetStreams", c.ResetStreams(ctx, Outgoing), context.DeadlineExceeded)
		check.Error(t, "AddStreams behind it", c.AddStreams(ctx, 1, 1), context.DeadlineExceeded)
		failed := make(chan error)
		go func() { failed <- c.AddStreams(t.Context(), 1, 1) }()
		synctest.Wait()
		c.Abort("over")
		check.That(t, <-failed != nil, "AddStreams has succeeded")
	})
}

// On an association with a protocol that pairs streams nothing is reset.
func TestStreamsOfAProtocolAreNotReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		c, s := p.connect(t, &Config{StreamReset: allowAll,
			NewUpper: func(*Conn, *assoc.Assoc) upper.Protocol { return new(above) }}, &Config{StreamReset: allowAll})
		check.Error(t, "ResetStreams", c.ResetStreams(t.Context(), Outgoing), ErrStreamsPaired)
		check.Error(t, "ResetTSNs", c.ResetTSNs(t.Context()), ErrStreamsPaired)
		check.Error(t, "AddStreams", c.AddStreams(t.Context(), 1, 0), ErrStreamsPaired)
		for name, err := range map[string]error{"ResetStreams": s.ResetStreams(t.Context(), Outgoing),
			"ResetTSNs": s.ResetTSNs(t.Context()), "AddStreams": s.AddStreams(t.Context(), 1, 0)} {
			check.That(t, errors.Is(err, ErrStreamResetDenied), "%s of the peer: %v", name, err)
		}
		must.OK(t, c.AddStreams(t.Context(), 2, 2))
		synctest.Wait()
		st := s.Stats()
		check.That(t, st.OutStreams == 12 && st.InStreams == 12, "%d streams go out, %d come in", st.OutStreams, st.InStreams)
	})
}
