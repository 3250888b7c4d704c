package sctp

import (
	"testing"
	"testing/synctest"

	"github.com/rddp-go/rddp/internal/check"
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
		var g gate
		for i := range row.fit + 1 {
			buf := rawio.NewBuf(bigBuffer)
			buf.Filled = row.filled
			if ok := g.post(&rawio.Packet{Data: bigBuffer[:100], Buf: buf}); ok != (i < row.fit) || ok && buf.Refs() != row.refs {
				t.Fatalf("%s: packet %d of %d finds room: %v, with %d references", row.name, i, row.fit, ok, buf.Refs())
			}
		}
	}
}

var bigBuffer = make([]byte, 64<<10)

// ceaseless is a link that leaves a packet in a backlog with each batch that it sends, so that there is ever more to answer. Beyond
// so many batches it blocks until that is over.
type ceaseless struct {
	*mem.Link
	c    *Conn // of the backlog; nil: an ordinary link
	p    rawio.Packet
	left int
	over chan struct{}
}

func (l *ceaseless) WriteBatch(pkts []rawio.Packet) (int, error) {
	switch {
	case l.c == nil:
	case l.left == 0:
		l.c = nil
		<-l.over
	default:
		l.left--
		q := l.p
		l.c.gate.post(&q)
	}
	return l.Link.WriteBatch(pkts)
}

// However much there is to do, an API call does its share of it and no more.
func TestBulkDoesNotHoldACallCaptive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		link := &ceaseless{Link: lb, left: (ownerRounds + 1) * ownerBatches, over: make(chan struct{})}
		p := joinPair(t, la, lb, la, link)
		_, s := p.connect(t, nil, nil)
		synctest.Wait()
		link.p = heartbeat(s, "x")
		s.Lock()
		link.c = s
		first := link.p
		s.gate.post(&first)
		returned := make(chan struct{})
		go func() {
			s.Unlock()
			close(returned)
		}()
		synctest.Wait()
		check.Equal(t, "batches fewer than there were to send", link.left, 0)
		select {
		case <-returned:
		default:
			t.Errorf("the call still sends, after %d batches", (ownerRounds+1)*ownerBatches)
		}
		close(link.over)
		<-returned
	})
}
