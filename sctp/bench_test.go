package sctp

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/baseline"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
)

// BenchmarkMessages moves messages over one association between two transports of this process.
func BenchmarkMessages(b *testing.B) {
	for _, link := range []string{"mem", "udp", "raw"} {
		for _, mtu := range []int{1500, rawio.MaxMTU} {
			for _, size := range []int{1 << 10, 64 << 10} {
				b.Run(fmt.Sprintf("%s/mtu=%d/%dKiB", link, mtu, size>>10), func(b *testing.B) {
					benchMessages(b, link, mtu, size)
				})
			}
		}
	}
}

func benchMessages(b *testing.B, link string, mtu, size int) {
	x, y, at, err := baseline.Pair(link, mtu)
	if errors.Is(err, fs.ErrPermission) {
		b.Skip(err)
	} else if err != nil {
		b.Fatal(err)
	}
	p := &pair{bAddr: at.Addr()}
	for _, end := range []struct {
		link rawio.Link
		t    **Transport
	}{{x, &p.a}, {y, &p.b}} {
		if *end.t, err = NewTransport(end.link, nil); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { (*end.t).Close() })
	}
	c, s := p.connect(b, &Config{EncapPort: at.Port()}, nil)
	done := make(chan error, 1)
	go func() {
		buf := make([]byte, size)
		for octets := b.N * size; octets > 0; {
			n, _, err := s.ReadMsg(buf)
			if err != nil {
				done <- err
				return
			}
			octets -= n
		}
		done <- nil
	}()
	msg := make([]byte, size)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	defer func(cpu time.Duration) {
		used := baseline.CPUTime() - cpu
		b.ReportMetric(used.Seconds()/(float64(b.N)*float64(size)/1e9), "cpu-s/GB")
	}(baseline.CPUTime())
	b.ResetTimer()
	for range b.N {
		if _, err := c.WriteMsg(msg, SendInfo{}); err != nil {
			b.Fatal(err)
		}
	}
	must.OK(b, <-done)
}
