package sctp

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
)

// pollFunc is a rawio.Poller.
type pollFunc func(pkts []rawio.Packet) int

func (f pollFunc) PollBatch(pkts []rawio.Packet) int { return f(pkts) }

// What comes while packets are handled is handled with them; for how long the next is waited for is
// the pace's judgement. One SACK has to be able to answer it all.
func TestPacketsThatFollowEachOtherAreHandledTogether(t *testing.T) {
	needsAdaptive(t)
	synctest.Test(t, testFollow) // where time stands still, none is late
}

func testFollow(t *testing.T) {
	_, c := newFed(t, func(l *batches) rawio.Link { return l })
	packet := heartbeatTo(c, string(make([]byte, 1400)))
	for _, tt := range []struct {
		name string
		n    int   // packets to begin with
		more []int // what each poll brings, and nothing in the end
		all  int   // packets handled
	}{
		{"one alone", 1, []int{1}, 1},
		{"two, and no more", 2, nil, 2},
		{"two, then two, then one", 2, []int{2, 1, 1}, 6},
		{"four, then none yet, then one", 4, []int{0, 1}, 5},
		{"as many as one SACK answers", 100, []int{100, 100, 100}, 200},
	} {
		r := newReceiver(c.t, nil, false)
		fill := func(n int) int {
			for i := range n {
				r.pkts[i] = packet
			}
			return n
		}
		polls := 0
		r.poller = pollFunc(func(pkts []rawio.Packet) (n int) {
			if polls < len(tt.more) {
				n = fill(tt.more[polls])
			}
			polls++
			return n
		})
		r.runBatch(fill(tt.n), nil)
		check.Equal(t, tt.name+": packets handled", r.runPackets, tt.all)
	}
	u := new(above)
	c.lock()
	c.upper.protocol = u
	c.unlock()
	// time goes on with what has taken a while to handle, and with others who have had the gate
	for _, others := range []bool{false, true} {
		r, p := newReceiver(c.t, nil, false), packet
		if others {
			p = heartbeatTo(c, "x")
			c.lock()
		}
		r.poller = pollFunc(func([]rawio.Packet) int {
			time.Sleep(time.Millisecond) // of virtual time
			if others {
				others = false
				c.releaseLock()
			}
			return 0
		})
		r.runBatch(copy(r.pkts, []rawio.Packet{p, p, p, p}), nil)
		check.Equal(t, "when it was asked last", u.at, c.t.now())
	}
	r := newReceiver(c.t, nil, false)
	r.policy.RecordArrival(0, 100)
	r.poller = pollFunc(func([]rawio.Packet) int {
		t.Error("a link that is closed is asked for more: it would make buffers ready that nobody gives back")
		return 0
	})
	r.runBatch(0, net.ErrClosed)
}

// patient is a link with a further queue, whose reader decides how it waits.
type patient struct {
	*batches
	over  chan struct{}
	waits int
}

func (l *patient) Shards() []rawio.Shard { return []rawio.Shard{(*patience)(l)} }
func (l *patient) Close() error          { close(l.over); return l.batches.Close() }

type patience patient

func (q *patience) PollBatch([]rawio.Packet) int { return 0 }
func (q *patience) Polling() time.Duration       { return -1 }
func (q *patience) Wait(rawio.Pause) error       { q.waits++; <-q.over; return net.ErrClosed }

func TestReaderOfAQueueDecidesHowItWaits(t *testing.T) {
	needsAdaptive(t)
	link := &patient{over: make(chan struct{})}
	_, c := newFed(t, func(l *batches) rawio.Link { link.batches = l; return link })
	check.OK(t, c.t.Close())
	check.Equal(t, "times that it has waited", link.waits, 1)
}
