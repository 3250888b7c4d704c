package mempair

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/mem"
	"github.com/rddp-go/rddp/sctp/wire"
)

// LossyLink is a link that loses what it is to send, while it is told to: everything, or packets
// that begin with a chunk.
type LossyLink struct {
	*mem.Link
	Lose  atomic.Bool
	Chunk atomic.Int32 // a type; 0: none
	Lost  atomic.Int32 // packets
}

// WriteBatch loses packets, or sends them.
func (l *LossyLink) WriteBatch(pkts []rawio.Packet) (int, error) {
	all, chunk := l.Lose.Load(), l.Chunk.Load()
	for i := range pkts {
		if all || chunk != 0 && slices.Concat(pkts[i].Vec...)[wire.CommonHeaderLen] == uint8(chunk) {
			l.Lost.Add(1)
		} else if _, err := l.Link.WriteBatch(pkts[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(pkts), nil
}

// Prompt implements rawio.Prompter.
func (l *LossyLink) Prompt() rawio.Link { return l }

// TapLink is a link that shows what it sends, as long as Sent has room.
type TapLink struct {
	*mem.Link
	Sent chan wire.Packet
}

// WriteBatch shows the packets, and sends them.
func (l *TapLink) WriteBatch(pkts []rawio.Packet) (int, error) {
	for i := range pkts {
		select {
		case l.Sent <- slices.Concat(pkts[i].Vec...):
		default:
		}
	}
	return l.Link.WriteBatch(pkts)
}

// Prompt implements rawio.Prompter.
func (l *TapLink) Prompt() rawio.Link { return l }

// First waits for a packet with that tag that begins with such a chunk, and returns the chunk, or
// nothing when ctx ends.
func (l *TapLink) First(ctx context.Context, tag uint32, want wire.ChunkType) wire.Chunk {
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
