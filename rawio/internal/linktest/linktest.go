// Package linktest has what the tests of all links share.
package linktest

import (
	"slices"
	"testing"

	"github.com/rddp-go/rddp/rawio"
)

// Pattern returns n octets that tell one place from another.
func Pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// Write writes all of pkts at once.
func Write(t testing.TB, l rawio.Link, pkts ...rawio.Packet) {
	t.Helper()
	if n, err := l.WriteBatch(pkts); n != len(pkts) || err != nil {
		t.Fatalf("WriteBatch = %d, %v, want %d", n, err, len(pkts))
	}
}

// Read reads exactly n packets.
func Read(t testing.TB, l rawio.Shard, n int) []rawio.Packet {
	t.Helper()
	pkts := make([]rawio.Packet, n)
	for got := 0; got < n; {
		k, err := l.ReadBatch(pkts[got:])
		if err != nil {
			t.Fatalf("ReadBatch after %d packets: %v", got, err)
		}
		got += k
	}
	return pkts
}

// Pump returns a function that moves a batch of count packets like p, of one piece, from a to b.
func Pump(t testing.TB, a, b rawio.Link, p rawio.Packet, count int) func() {
	p.Vec = [][]byte{p.Vec[0][:28], p.Vec[0][28:]}
	out, in := slices.Repeat([]rawio.Packet{p}, count), make([]rawio.Packet, 32)
	return func() {
		if _, err := a.WriteBatch(out); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < count; {
			n, err := b.ReadBatch(in)
			if err != nil {
				t.Fatal(err)
			}
			for i := range in[:n] {
				in[i].Release()
			}
			got += n
		}
	}
}

// Arrival is a packet that a queue of a link has brought, and which.
type Arrival struct {
	rawio.Packet
	Shard int
}

// ReadShards reads all queues of a link until it is closed; then it reports how each ended.
func ReadShards(l rawio.Link) (packets chan Arrival, ends chan error) {
	packets, ends = make(chan Arrival), make(chan error)
	for i, s := range append([]rawio.Shard{l}, rawio.ShardsOf(l)...) {
		go func() {
			pkts := make([]rawio.Packet, 4)
			for {
				n, err := s.ReadBatch(pkts)
				if err != nil {
					ends <- err
					return
				}
				for k := range n {
					packets <- Arrival{pkts[k], i}
				}
			}
		}()
	}
	return packets, ends
}
