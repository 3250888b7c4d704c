package sctp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// streamPair returns a pair of which one end accepts streams.
func streamPair(t *testing.T) (from, to *Conn) {
	return newPair(t).connect(t, quiet, quiet)
}

// send sends a message on each of some streams, in this order.
func sendOn(t *testing.T, c *Conn, streams ...uint16) {
	for _, id := range streams {
		must.Do(c.WriteMsg([]byte{byte(id)}, SendInfo{Stream: id, PPID: 100 + uint32(id)}))(t)
	}
}

// Each stream is accepted once, in the order in which the peer has used them, with all that has
// come by it: before the first call of AcceptStream or after.
func TestStreamsAreAcceptedOnceInOrder(t *testing.T) {
	for _, late := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, s := streamPair(t)
			if late {
				sendOn(t, c, 5, 3, 5, 9, 3)
				synctest.Wait()
			}
			accepted := make(chan *Stream)
			go func() {
				for range 3 {
					accepted <- must.Get(s.AcceptStream(t.Context()))(t)
				}
			}()
			if !late {
				synctest.Wait()
				sendOn(t, c, 5, 3, 5, 9, 3)
			}
			for _, want := range []struct {
				id       uint16
				messages int
			}{{5, 2}, {3, 2}, {9, 1}} {
				st := <-accepted
				check.Equal(t, "stream", st.ID(), want.id)
				for range want.messages {
					buf := make([]byte, 10)
					n, info, err := st.ReadMsg(buf)
					check.That(t, n == 1 && buf[0] == byte(want.id) && info.PPID == 100+uint32(want.id) && err == nil,
						"%d octets, %+v, %v", n, info, err)
				}
				check.That(t, s.Stream(want.id) == st, "stream %d is another", want.id)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := s.AcceptStream(ctx)
			check.Error(t, "when none has come", err, context.DeadlineExceeded)
		})
	}
}

// A stream that this side uses is not accepted, and one that it has closed is when it is used
// again.
func TestStreamsInUseAreNotAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := streamPair(t)
		own := s.Stream(7)
		sendOn(t, c, 7, 8)
		check.Equal(t, "stream", must.Get(s.AcceptStream(t.Context()))(t).ID(), 8)
		n, info, err := own.ReadMsg(make([]byte, 10))
		check.That(t, n == 1 && info.Stream == 7 && err == nil, "%d, %+v, %v", n, info, err)
		own.Close()
		sendOn(t, c, 7)
		again := must.Get(s.AcceptStream(t.Context()))(t)
		check.That(t, again.ID() == 7 && again != own, "stream %d", again.ID())
	})
}

// AcceptStream ends as ReadMsg does, for all that wait.
func TestEndOfAcceptStream(t *testing.T) {
	for _, row := range []struct {
		name string
		end  func(c, s *Conn)
		want error
	}{
		{"the peer shuts down", func(c, _ *Conn) { c.Close() }, io.EOF},
		{"closed here", func(_, s *Conn) { s.Close() }, net.ErrClosed},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := streamPair(t)
				ends := make(chan error)
				for range 3 {
					go func() {
						_, err := s.AcceptStream(t.Context())
						ends <- err
					}()
				}
				synctest.Wait()
				row.end(c, s)
				for range 3 {
					err := <-ends
					check.That(t, errors.Is(err, row.want), "ends by %v", err)
				}
			})
		})
	}
}

// A message may be longer than the reader's buffer, and its deadline does not keep what is there
// from being read.
func TestMessagesOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := streamPair(t)
		long := bytes.Repeat([]byte("0123456789"), 1000)
		st := c.Stream(4)
		must.Do(st.WriteMsg(long, SendInfo{Stream: 77, PPID: 5}))(t)
		must.Do(st.WriteMsg([]byte("x"), SendInfo{}))(t)
		got := must.Get(s.AcceptStream(t.Context()))(t)
		check.Equal(t, "stream", got.ID(), 4)
		synctest.Wait()
		got.SetReadDeadline(time.Now().Add(-time.Second))
		var all []byte
		for {
			buf := make([]byte, 3000)
			n, info, err := got.ReadMsg(buf)
			must.OK(t, err)
			all = append(all, buf[:n]...)
			if !info.More {
				check.That(t, info.PPID == 5 && info.Size == len(long), "%+v", info)
				break
			}
		}
		check.Slice(t, "octets", all, long)
		n, _, err := got.ReadMsg(make([]byte, 1))
		check.That(t, n == 1 && err == nil, "the second message: %d, %v", n, err)
		_, _, err = got.ReadMsg(make([]byte, 1))
		check.Error(t, "nothing, after the deadline", err, os.ErrDeadlineExceeded)
		st.Close()
		_, err = st.WriteMsg(long, SendInfo{})
		check.That(t, errors.Is(err, net.ErrClosed), "a write to a closed stream: %v", err)
	})
}

// Streams that a peer begins are memory that it takes.
func TestStreamsOfThePeerAreCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := streamPair(t)
		s.lock()
		before := s.heldOctets()
		s.unlock()
		go s.AcceptStream(t.Context())
		synctest.Wait()
		const streams = 10
		for id := range uint16(streams) {
			sendOn(t, c, id)
		}
		synctest.Wait()
		for id := range uint16(streams) {
			must.Do(s.Stream(id).Read(make([]byte, 1)))(t)
		}
		s.lock()
		held := s.heldOctets() - before
		s.unlock()
		check.That(t, held >= streams*streamOctets, "%d octets are charged", held)
	})
}
