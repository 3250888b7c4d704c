package rdma

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/must"
)

// newTCPBenchPair is newBenchPair over TCP on this host.
func newTCPBenchPair(b *testing.B, cfg *Config, size int) *benchPair {
	p := &benchPair{size: size, depth: min(benchDepth, benchMemory/size)}
	p.da, p.db = must.Get(NewDevice(nil, cfg))(b), must.Get(NewDevice(nil, cfg))(b)
	b.Cleanup(func() { p.da.Close(); p.db.Close() })
	l := must.Get(p.db.ListenOn("tcp", "127.0.0.1:0"))(b)
	p.join(b, l, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), l.Port()))
	return p
}

func BenchmarkTCP(b *testing.B) {
	for _, cfg := range []struct {
		name string
		TCPConfig
	}{{"crc", TCPConfig{}}, {"nocrc", TCPConfig{NoCRC: true}}} {
		for _, size := range []int{4096, 1 << 20} {
			b.Run(fmt.Sprintf("Write/%s/%d", cfg.name, size), func(b *testing.B) {
				newTCPBenchPair(b, &Config{TCP: cfg.TCPConfig}, size).run(b, OpWrite)
			})
		}
		b.Run("Read/"+cfg.name, func(b *testing.B) {
			newTCPBenchPair(b, &Config{TCP: cfg.TCPConfig}, 1<<20).run(b, OpRead)
		})
	}
	b.Run("PingPong", func(b *testing.B) { newTCPBenchPair(b, nil, 64).pingPong(b) })
}

// BenchmarkPlainTCP is what Go's TCP does alone on this host.
func BenchmarkPlainTCP(b *testing.B) {
	pair := func(b *testing.B) (x, y net.Conn) {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(b)
		defer l.Close()
		x = must.Get(net.Dial("tcp", l.Addr().String()))(b)
		y = must.Get(l.Accept())(b)
		b.Cleanup(func() { x.Close(); y.Close() })
		return x, y
	}
	b.Run("Write/1048576", func(b *testing.B) { // from and to as much memory as the QPs have
		x, y := pair(b)
		const size = 1 << 20
		out, in := make([]byte, benchMemory), make([]byte, benchMemory)
		b.SetBytes(size)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for i := range b.N {
				if _, err := io.ReadFull(y, in[i%16*size:][:size]); err != nil {
					return
				}
			}
		}()
		for i := range b.N {
			must.Do(x.Write(out[i%16*size:][:size]))(b)
		}
		<-done
	})
	b.Run("PingPong", func(b *testing.B) {
		x, y := pair(b)
		go func() {
			p := make([]byte, 64)
			for {
				if _, err := io.ReadFull(y, p); err != nil {
					return
				}
				y.Write(p)
			}
		}()
		p := make([]byte, 64)
		for range b.N {
			must.Do(x.Write(p))(b)
			must.Do(io.ReadFull(x, p))(b)
		}
	})
}
