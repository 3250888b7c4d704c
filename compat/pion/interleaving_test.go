package sctp_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/pion/sctp"
)

// lastFirst is a scheduler that prefers the stream of the highest number.
type lastFirst struct{ waiting []sctp.StreamSchedulerChunk }

func (s *lastFirst) Reset() { s.waiting = nil }
func (s *lastFirst) Push(c sctp.StreamSchedulerChunk) {
	at := slices.IndexFunc(s.waiting, func(w sctp.StreamSchedulerChunk) bool {
		return w.StreamIdentifier() < c.StreamIdentifier()
	})
	if at < 0 {
		at = len(s.waiting)
	}
	s.waiting = slices.Insert(s.waiting, at, c)
}

func (s *lastFirst) Peek() sctp.StreamSchedulerChunk {
	if len(s.waiting) == 0 {
		return nil
	}
	return s.waiting[0]
}

func (s *lastFirst) Pop(c sctp.StreamSchedulerChunk) error {
	if len(s.waiting) == 0 || s.waiting[0] != c {
		return errors.New("not the first")
	}
	s.waiting = s.waiting[1:]
	return nil
}

// A stream that has much to send does not hold up another.
func TestStreamsShareTheAssociation(t *testing.T) {
	for _, row := range []struct {
		name string
		opts []sctp.ClientOption
	}{
		{"by default", nil},
		{"by weighted fair queueing", []sctp.ClientOption{sctp.WithInterleavingOptions(
			sctp.WithInterleavingWeightedFairQueueingScheduler())}},
		{"by weights", []sctp.ClientOption{sctp.WithInterleavingOptions(
			sctp.WithInterleavingWeightedFairQueueingWeight(2, 5), sctp.WithInterleavingWeightedFairQueueingWeight(1, 2))}},
		{"by turns", []sctp.ClientOption{sctp.WithInterleavingOptions(sctp.WithInterleavingRoundRobinScheduler())}},
		{"as the program chooses", []sctp.ClientOption{sctp.WithInterleavingOptions(
			sctp.WithInterleavingStreamSchedulerFactory(func() sctp.InterleavingStreamScheduler { return new(lastFirst) }))}},
	} {
		t.Run(row.name, inBubble(func(t *testing.T) {
			e := open(t, row.opts...)
			much, muchIn := e.stream(t, 1)
			little, littleIn := e.stream(t, 2)
			e.conns[0].block(true)
			const messages = 60
			for range messages {
				_, err := much.Write(make([]byte, 60_000))
				ok(t, err)
			}
			_, err := little.Write([]byte("little"))
			ok(t, err)
			e.conns[0].block(false)
			_, err = littleIn.Read(make([]byte, 10))
			ok(t, err)
			if left := much.BufferedAmount(); left < 1_000_000 {
				t.Errorf("%d octets of the other stream are left", left)
			}
			for range messages {
				_, err := muchIn.Read(make([]byte, 60_000))
				ok(t, err)
			}
		}))
	}
}

// With interleaving a short message does not wait for a long one to end, and is read first.
func TestShortMessageGoesAheadOfALongOne(t *testing.T) { inBubble(testShortGoesAhead)(t) }

func testShortGoesAhead(t *testing.T) {
	e := open(t, sctp.WithMaxMessageSize(1<<20))
	long, longIn := e.stream(t, 1)
	short, shortIn := e.stream(t, 2)
	n := 0 // packets that pass before the road is closed for a while
	e.conns[0].loseSome(func([]byte) bool { n++; return n > 12 })
	_, err := long.Write(make([]byte, 900_000))
	ok(t, err)
	_, err = short.Write([]byte("short"))
	ok(t, err)
	time.Sleep(10 * time.Millisecond)
	e.conns[0].loseSome(nil)
	_, err = shortIn.Read(make([]byte, 10))
	ok(t, err)
	if left := long.BufferedAmount(); left < 300_000 {
		t.Errorf("%d octets of the long message are left", left)
	}
	got, err := longIn.Read(make([]byte, 1<<20))
	ok(t, err)
	want(t, "octets", got, 900_000)
}
