package sctp

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rddp-go/rddp/internal/mempair"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
)

// What waits for the owner of an association is bounded, in packets and in octets, each time anew; what does not fit goes
// back to its pool, and a long backlog leaves no memory behind.
func TestBacklogHasTwoBounds(t *testing.T) {
	for _, row := range []struct {
		name      string
		size, fit int
	}{
		{"packets", 100, backlogMax},
		{"octets", 1 << 16, backlogOctets >> 16},
	} {
		t.Run(row.name, func(t *testing.T) {
			var g gate
			data := make([]byte, row.size)
			for round := range 2 {
				for i := range row.fit {
					if !g.post(&rawio.Packet{Data: data}) {
						t.Fatalf("round %d: packet %d of %d finds no room", round, i, row.fit)
					}
				}
				buf := rawio.NewBuf(data)
				buf.Retain()
				if g.post(&rawio.Packet{Data: data, Buf: buf}) {
					t.Errorf("round %d: room for more than %d", round, row.fit)
				}
				if buf.Refs() != 1 {
					t.Errorf("round %d: a packet without room keeps its buffer", round)
				}
				b := g.take()
				if len(b) != row.fit || g.waiting.Load() != 0 || g.taken != row.fit*row.size {
					t.Errorf("round %d: %d taken with %d octets, %d wait", round, len(b), g.taken, g.waiting.Load())
				}
				g.done(b)
			}
			if n := cap(g.spare); n > spareMax {
				t.Errorf("room for %d packets is kept, want %d at most", n, spareMax)
			}
		})
	}
}

// What waits counts as much as it keeps: the whole buffer of a packet among many, and of a short one that lies alone in a long
// buffer nothing, as it is copied.
func TestBacklogCountsWhatItKeeps(t *testing.T) {
	for _, row := range []struct {
		name        string
		filled, fit int
		refs        int // to the buffer of a packet that waits
	}{
		{"one of many packets in its buffer", 64 << 10, backlogOctets >> 16, 1},
		{"alone in its buffer", 100, backlogMax, 0},
	} {
		g := gate{pool: rawio.NewPool(arenaOctets, 1)}
		for i := range row.fit + 1 {
			buf := rawio.NewBuf(bigBuffer)
			buf.Filled = row.filled
			if ok := g.post(&rawio.Packet{Data: bigBuffer[:100], Buf: buf}); ok != (i < row.fit) || ok && buf.Refs() != row.refs {
				t.Fatalf("%s: packet %d of %d finds room: %v, with %d references", row.name, i, row.fit, ok, buf.Refs())
			}
		}
		g.close()
	}
}

var bigBuffer = make([]byte, 64<<10)

// ceaseless is a link that leaves a packet in a backlog with each batch that it sends, so that there is ever more to answer. With the last of
// so many batches, and with the next, it blocks until that is over.
type ceaseless struct {
	*mem.Link
	c     *Conn // of the backlog; nil: an ordinary link
	p     rawio.Packet
	left  int
	takes time.Duration // a batch
	over  chan struct{}
}

// behindCeaseless is an association over such a link, with a packet in its backlog. Its owner is the caller.
func behindCeaseless(t *testing.T, left int, takes time.Duration) (*ceaseless, *Conn) {
	la, lb := mempair.New(t, mem.Options{MTU: 1500})
	link := &ceaseless{Link: lb, left: left, takes: takes, over: make(chan struct{})}
	_, s := joinPair(t, la, lb, la, link).connect(t, quiet, quiet)
	synctest.Wait()
	link.p = heartbeat(s, "x")
	s.Lock()
	link.c = s
	first := link.p
	s.gate.post(&first)
	return link, s
}

func (l *ceaseless) WriteBatch(pkts []rawio.Packet) (int, error) {
	if l.c != nil {
		time.Sleep(l.takes)
	}
	switch {
	case l.c == nil:
	case l.left == 0:
		l.c = nil
		<-l.over
	default:
		if l.left--; l.left == 0 {
			<-l.over
		}
		q := l.p
		l.c.gate.post(&q)
	}
	return l.Link.WriteBatch(pkts)
}

// However much there is to do, an API call does its share of it and no more.
func TestBulkDoesNotHoldACallCaptive(t *testing.T) {
	for _, row := range []struct {
		takes time.Duration
		turn  int // batches before others may have the gate
	}{{0, ownerBatches}, {sliceTime / 6, 4}} {
		synctest.Test(t, func(t *testing.T) {
			link, s := behindCeaseless(t, (ownerRounds+1)*row.turn, row.takes)
			returned := make(chan struct{})
			go func() {
				s.Unlock()
				close(returned)
			}()
			for _, want := range []bool{false, true} {
				time.Sleep(time.Second) // until the link blocks
				if link.left != 0 || isClosed(returned) != want {
					t.Errorf("%d batches before the end of its share the call has returned: %v", link.left, !want)
				}
				link.over <- struct{}{}
			}
			<-returned
		})
	}
}

// An owner sends some batches, for some time, before others may have the gate, and says whether there is more. Who gives the gate up
// sends that too.
func TestOwnerStopsAfterSomeBatches(t *testing.T) {
	for _, row := range []struct {
		left  int
		takes time.Duration
		sent  uint64
		more  bool
	}{{2 * ownerBatches, 0, ownerBatches, true}, {2 * ownerBatches, sliceTime / 6, 4, true}, {5, 0, 6, false}, {0, sliceTime, 1, false}} {
		synctest.Test(t, func(t *testing.T) {
			link, s := behindCeaseless(t, row.left, row.takes)
			close(link.over)
			before := s.t.stats.txBatches.Load()
			if more, sent := s.pump(s.t.now()), s.t.stats.txBatches.Load()-before; more != row.more || sent != row.sent {
				t.Errorf("%d batches of %v, %d of them sent, more: %v", row.left, row.takes, sent, more)
			}
			link.c = nil
			s.Unlock()
		})
	}
	synctest.Test(t, func(t *testing.T) {
		link, s := behindCeaseless(t, ownerBatches, 0)
		close(link.over)
		before := s.t.stats.txBatches.Load()
		if s.Unlock(); s.t.stats.txBatches.Load() != before+ownerBatches+1 {
			t.Errorf("%d batches sent of %d", s.t.stats.txBatches.Load()-before, ownerBatches+1)
		}
	})
}
