package sctptest

import (
	"errors"
	"fmt"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// Stream sends numbered messages in one direction, a new one each time that every has passed and
// the send queue is short, and checks that each arrives once and in order.
type Stream struct {
	w        *World
	a, b     *assoc.Assoc
	left     int
	every    time.Duration // 0: as fast as may be
	due      rawio.Time
	Sent     int // numbers up to this one
	Want     int // expected next
	Arrivals []rawio.Time
}

// StreamSize is the length of its messages in octets.
const StreamSize = 1000

// StartStream is to send count messages from a to b; its Done does it.
func (w *World) StartStream(a, b *assoc.Assoc, count int) *Stream {
	return &Stream{w: w, a: a, b: b, left: count}
}

// Trickle is to send messages for as long as somebody looks.
func (w *World) Trickle(a, b *assoc.Assoc, every time.Duration) *Stream {
	return &Stream{w: w, a: a, b: b, left: 1 << 30, every: every, due: w.Now}
}

// Done sends and receives what can be now, and says whether every message has arrived.
func (s *Stream) Done() bool {
	s.w.Helper()
	for s.left > 0 && s.a.State() == assoc.Established && s.due <= s.w.Now {
		if s.every > 0 {
			s.due = s.w.Now.Add(s.every)
			s.w.Alarm = s.due
		}
		if s.a.Stats().Queued >= 20*StreamSize {
			break
		}
		body := make([]byte, StreamSize)
		copy(body, fmt.Sprintf("message %d", s.Sent))
		m := assoc.Message{Body: [2][]byte{body}, Token: uint64(s.Sent)}
		if err := s.a.Send(s.w.Now, &m); errors.Is(err, assoc.ErrSendBufferFull) {
			break
		} else if err != nil {
			s.w.Fatal(err)
		}
		s.Sent++
		s.left--
	}
	s.w.Flush()
	for _, m := range Drain(s.b) {
		if want := fmt.Sprintf("message %d", s.Want); string(m[:len(want)]) != want || len(m) != StreamSize {
			s.w.Fatalf("received %q, want %q", m[:20], want)
		}
		s.Want++
		s.Arrivals = append(s.Arrivals, s.w.Now)
	}
	return s.left == 0 && s.Want == s.Sent
}

// Pause returns the longest time without an arrival after since.
func (s *Stream) Pause(since rawio.Time) (longest time.Duration) {
	last := since
	for _, at := range s.Arrivals {
		if at >= since {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return longest
}
