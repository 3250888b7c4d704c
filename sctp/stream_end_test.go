package sctp

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// readTexts reads a stream up to its end.
func readTexts(t *testing.T, s *Stream) (list []string) {
	t.Helper()
	for buf := make([]byte, 10); ; {
		n, _, err := s.ReadMsg(buf)
		if err == io.EOF {
			return list
		}
		must.OK(t, err)
		list = append(list, string(buf[:n]))
	}
}

// A Stream that the peer has reset ends behind what came before, whether or not that was read
// meanwhile. What comes later is for another Stream.
func TestStreamEndsWhenThePeerResetsIt(t *testing.T) {
	for _, row := range []struct {
		name            string
		accepts, isRead bool // meanwhile
	}{{"accepted", true, true}, {"accepted late", true, false}, {"in use", false, true}, {"in use, read late", false, false}} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := newPair(t).connect(t, &Config{StreamReset: OfferStreamReset}, &Config{StreamReset: allowAll})
				next := func() *Stream {
					if !row.accepts {
						return s.Stream(3)
					}
					return must.Get(s.AcceptStream(t.Context()))(t)
				}
				write := func(text string) { must.Do(c.WriteMsg([]byte(text), SendInfo{Stream: 3}))(t) }
				var streams []*Stream
				if !row.accepts {
					streams = append(streams, next())
				}
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if row.accepts {
					_, err := s.AcceptStream(ended)
					check.Error(t, "nothing has come", err, context.Canceled)
				}
				got := make(chan []string, 3)
				for _, life := range [][]string{{"a", "b"}, {"c"}, {"d", "e"}} {
					if row.isRead {
						go func() { got <- readTexts(t, next()) }()
						synctest.Wait()
					}
					for _, text := range life {
						write(text)
					}
					synctest.Wait()
					if !row.accepts && !row.isRead {
						streams = append(streams, next())
					}
					must.OK(t, c.ResetStreams(t.Context(), Outgoing, 3))
					synctest.Wait()
					if row.isRead {
						check.Slice(t, "messages", <-got, life)
					}
				}
				if row.isRead {
					return
				}
				if !row.accepts {
					streams = streams[1:]
				}
				for i, life := range [][]string{{"a", "b"}, {"c"}, {"d", "e"}} {
					if row.accepts {
						streams = append(streams, next())
					}
					check.That(t, streams[i].IsReset(), "stream %d is not reset", i)
					check.Slice(t, "messages", readTexts(t, streams[i]), life)
					n, err := streams[i].Read(make([]byte, 1))
					check.That(t, n == 0 && err == io.EOF, "%d, %v", n, err)
				}
				check.Equal(t, "streams with something to read", len(s.recv.streams.reset), 0)
			})
		})
	}
}

// A reset of all streams ends all, and other streams go on after that of one.
func TestWhichStreamsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newPair(t).connect(t, &Config{StreamReset: OfferStreamReset}, &Config{StreamReset: allowAll})
		one, two, unread := s.Stream(1), s.Stream(2), s.Stream(3)
		must.Do(c.WriteMsg([]byte("x"), SendInfo{Stream: 3}))(t)
		must.OK(t, c.ResetStreams(t.Context(), Outgoing, 1))
		synctest.Wait()
		check.That(t, one.IsReset() && !two.IsReset(), "%v %v", one.IsReset(), two.IsReset())
		check.That(t, s.Stream(1) != one && s.Stream(2) == two, "the number is not free, or of another")
		must.OK(t, c.ResetStreams(t.Context(), Outgoing))
		synctest.Wait()
		check.That(t, two.IsReset() && unread.IsReset(), "%v %v", two.IsReset(), unread.IsReset())
		check.Equal(t, "streams with something to read", len(s.recv.streams.reset), 1)
		must.OK(t, unread.Close())
		check.Equal(t, "after Close", len(s.recv.streams.reset), 0)
		_, err := one.WriteMsg([]byte("back"), SendInfo{}) // the other direction goes on
		must.OK(t, err)
		check.Equal(t, "message", readSSN(t, c), "back 1#0")
	})
}

// An association that has ended keeps what a stream has that was reset.
func TestWhatWasUnreadOfAStreamThatWasReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := newPair(t).connect(t, &Config{StreamReset: OfferStreamReset}, &Config{StreamReset: allowAll})
		st := s.Stream(1)
		must.Do(c.WriteMsg([]byte("x"), SendInfo{Stream: 1}))(t)
		must.OK(t, c.ResetStreams(t.Context(), Outgoing, 1))
		must.OK(t, c.Close())
		synctest.Wait()
		check.Slice(t, "messages", readTexts(t, st), []string{"x"})
	})
}
