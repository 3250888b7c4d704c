package mempair

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Losing is a link that loses what it is to send, while it is told to.
type Losing struct {
	*mem.Link
	Lose atomic.Bool
	Lost atomic.Int32 // packets
}

// WriteBatch loses the packets, or sends them.
func (l *Losing) WriteBatch(pkts []rawio.Packet) (int, error) {
	if !l.Lose.Load() {
		return l.Link.WriteBatch(pkts)
	}
	l.Lost.Add(int32(len(pkts)))
	return len(pkts), nil
}

// Tapped is a link that shows what it sends, as long as Sent has room.
type Tapped struct {
	*mem.Link
	Sent chan wire.Packet
}

// WriteBatch shows the packets, and sends them.
func (l *Tapped) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		select {
		case l.Sent <- slices.Concat(pkts[i].Vec...):
		default:
		}
	}
	return l.Link.WriteBatch(pkts)
}

// First waits for a packet with that tag that begins with such a chunk, and returns the chunk, or nothing when ctx ends.
func (l *Tapped) First(ctx context.Context, tag uint32, want wire.ChunkType) wire.Chunk {
	for {
		select {
		case pkt := <-l.Sent:
			cs := pkt.Chunks()
			if c, _ := cs.Next(); pkt.VTag() == tag && c.Type() == want {
				return c
			}
		case <-ctx.Done():
			return nil
		}
	}
}
