// Package linktest has what the tests of all links share.
package linktest

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/rddp-go/rddp/internal/test/concurrent"
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

// WriteAll writes all of pkts at once.
func WriteAll(t testing.TB, l rawio.Link, pkts ...rawio.Packet) {
	t.Helper()
	if n, err := l.WriteBatch(pkts); n != len(pkts) || err != nil {
		t.Fatalf("WriteBatch = %d, %v, want %d", n, err, len(pkts))
	}
}

// ReadPackets reads exactly n packets.
func ReadPackets(t testing.TB, l rawio.Shard, n int) []rawio.Packet {
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

// CheckDelivery moves count packets with these data, in four pieces, and the first marks values of
// ECN in turn. They arrive as they were sent.
func CheckDelivery(t testing.TB, a, b rawio.Link, from, to netip.AddrPort, data []byte, count, marks int) {
	t.Helper()
	out := make([]rawio.Packet, count)
	for i := range out {
		out[i] = rawio.Packet{Vec: [][]byte{data[:5], nil, data[5:12], data[12:]}, Remote: to, ECN: uint8(i % marks)}
	}
	WriteAll(t, a, out...)
	for i, p := range ReadPackets(t, b, count) {
		if !bytes.Equal(p.Data, data) || p.Kind != rawio.KindSCTP || p.Local != to || p.Remote != from ||
			p.ECN != out[i].ECN {
			t.Fatalf("packet %d: %d of %d octets, or others, kind %v local %v remote %v ECN %d", i, len(p.Data),
				len(data), p.Kind, p.Local, p.Remote, p.ECN)
		}
		p.Release()
	}
}

// CheckFragmentation sends packets over a path that only short fits. Long ones pass where they may
// be fragmented, and are refused where they may not. The last of them may be cut to last octets,
// the others to 1280.
func CheckFragmentation(t testing.TB, a, b rawio.Link, from, to netip.AddrPort, long, short []byte, last int) {
	t.Helper()
	packet := func(data []byte, fragment int) rawio.Packet {
		return rawio.Packet{Vec: [][]byte{data[:12], data[12:]}, Remote: to, ECN: 2, Fragment: fragment}
	}
	refused := func(when string) {
		t.Helper()
		if n, err := a.WriteBatch([]rawio.Packet{packet(long, 0), packet(long, 1280)}); n != 0 ||
			!errors.Is(err, rawio.ErrTooLong) {
			t.Errorf("%s, a long packet that may not be fragmented: %d, %v", when, n, err)
		}
	}
	refused("before")
	out := []rawio.Packet{packet(short, 0), packet(long, 1280), packet(short, 0), packet(short, 1280),
		packet(long, last)}
	out[4].Local = netip.AddrPortFrom(from.Addr(), 0)
	WriteAll(t, a, out...)
	refused("after")
	for i, p := range ReadPackets(t, b, len(out)) {
		if want := slices.Concat(out[i].Vec...); !bytes.Equal(p.Data, want) || p.Remote != from || p.ECN != 2 {
			t.Errorf("packet %d: %d of %d octets, or others, from %v, ECN %d", i, len(p.Data), len(want), p.Remote,
				p.ECN)
		}
		p.Release()
	}
}

// BatchMover returns a function that moves a batch of count packets like p, of one piece, from a to
// b.
func BatchMover(t testing.TB, a, b rawio.Link, p rawio.Packet, count int) func() {
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

// ShardPacket is a packet that a queue of a link has brought, and which.
type ShardPacket struct {
	rawio.Packet
	Shard int
}

// ReadShards reads all queues of a link until it is closed; then it reports how each ended.
func ReadShards(l rawio.Link) (packets chan ShardPacket, ends chan error) {
	packets, ends = make(chan ShardPacket), make(chan error)
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
					packets <- ShardPacket{pkts[k], i}
				}
			}
		}()
	}
	return packets, ends
}

// CheckConcurrentUse has many goroutines use both ends of a link pair at once, until both are
// closed. One end writes packets like p. told calls all that the links report beyond the methods of
// a rawio.Link.
func CheckConcurrentUse(t testing.TB, a, b rawio.Link, p rawio.Packet, told func()) {
	t.Helper()
	const rounds = 40
	var readers sync.WaitGroup
	arrived := make(chan struct{}, 1)
	for _, l := range []rawio.Link{a, b} {
		for _, s := range append([]rawio.Shard{l}, rawio.ShardsOf(l)...) {
			readers.Go(func() {
				pkts := make([]rawio.Packet, 4)
				for {
					n, err := s.ReadBatch(pkts)
					rawio.ReleaseAll(pkts[:n])
					if n > 0 && l == b { // a hears of errors only
						select {
						case arrived <- struct{}{}:
						default:
						}
					}
					if err != nil && err != rawio.ErrInterrupted {
						return
					}
				}
			})
		}
	}
	stop := concurrent.RunUntilStopped(told)
	whole, long := p, p
	whole.Fragment = 1500
	long.Vec = [][]byte{make([]byte, 70_000)}
	write := func(p rawio.Packet, l rawio.Link) func(int) {
		return func(int) { _, _ = l.WriteBatch([]rawio.Packet{p, p}) }
	}
	concurrent.RunTogether(rounds, write(p, a), write(p, a), write(whole, a), write(whole, a), write(long, a),
		write(long, a),
		func(int) { a.MTU(p.Local.Addr(), p.Remote.Addr()) }, func(i int) { a.MTU(netip.Addr{}, p.Remote.Addr()) },
		func(int) {
			if l, ok := a.(rawio.Addresser); ok {
				l.LocalAddrs()
			}
		},
		func(int) {
			if l, ok := a.(rawio.Interrupter); ok {
				l.Interrupt()
			}
		},
		bindAndUnbind(a, 20_100), bindAndUnbind(a, 20_101), bindAndUnbind(a, 20_100))
	<-arrived
	concurrent.RunTogether(2, func(int) { a.Close() }, func(int) { b.Close() }, func(int) { a.Close() }, write(p, a),
		bindAndUnbind(a, 20_102))
	readers.Wait()
	stop()
	if _, err := a.WriteBatch([]rawio.Packet{p}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed link takes a packet: %v", err)
	}
}

// bindAndUnbind takes a port and gives it back.
func bindAndUnbind(l rawio.Link, port uint16) func(int) {
	b, ok := l.(rawio.PortBinder)
	return func(int) {
		if ok && b.BindPort(port) == nil {
			b.UnbindPort(port)
		}
	}
}
