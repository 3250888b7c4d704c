package mem

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/rddp-go/rddp/rawio"
)

// BenchmarkBatch is the cost of a batch of 32 packets, written and read by one goroutine.
func BenchmarkBatch(b *testing.B) {
	for _, size := range []int{64, 1460, 65515} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			l, peer := newPair(b, Options{})
			out, in := newBatch(peer, 32, size), make([]rawio.Packet, 32)
			b.SetBytes(int64(32 * size))
			b.ReportAllocs()
			for b.Loop() {
				exchangeBatch(b, l, peer, out, in)
			}
		})
	}
}

// BenchmarkPingPong is a round trip between two goroutines that block on each other.
func BenchmarkPingPong(b *testing.B) {
	l, peer := newPair(b, Options{})
	go func() {
		out, in := newBatch(l, 1, 64), make([]rawio.Packet, 1)
		for {
			if _, err := peer.ReadBatch(in); err != nil {
				if !errors.Is(err, net.ErrClosed) {
					b.Error(err)
				}
				return
			}
			in[0].Release()
			if _, err := peer.WriteBatch(out); err != nil {
				return
			}
		}
	}()
	out, in := newBatch(peer, 1, 64), make([]rawio.Packet, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.WriteBatch(out); err != nil {
			b.Fatal(err)
		}
		if _, err := l.ReadBatch(in); err != nil {
			b.Fatal(err)
		}
		in[0].Release()
	}
}
