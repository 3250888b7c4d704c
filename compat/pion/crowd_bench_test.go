package sctp_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/pion/logging"
	"github.com/pion/sctp"
)

// openOver opens an association at each end of a connection, and has a message go from one to the
// other.
func openOver(b *testing.B, conns [2]net.Conn) (ends [2]*sctp.Association) {
	b.Helper()
	type opened struct {
		a   *sctp.Association
		err error
	}
	other := make(chan opened)
	open := func(c net.Conn) (*sctp.Association, error) {
		return sctp.Client(sctp.Config{NetConn: c, LoggerFactory: logging.NewDefaultLoggerFactory()})
	}
	go func() {
		a, err := open(conns[1])
		other <- opened{a, err}
	}()
	var err error
	ends[0], err = open(conns[0])
	o := <-other
	if err != nil || o.err != nil {
		b.Fatal(err, o.err)
	}
	ends[1] = o.a
	s, err := ends[0].OpenStream(1, sctp.PayloadTypeWebRTCBinary)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := s.Write(make([]byte, 100)); err != nil {
		b.Fatal(err)
	}
	t, err := ends[1].AcceptStream()
	if err != nil {
		b.Fatal(err)
	}
	if n, err := t.Read(make([]byte, 1000)); n != 100 || err != nil {
		b.Fatal(n, err)
	}
	return ends
}

// Associations set up one after the other, each with a message.
func BenchmarkSetup(b *testing.B) {
	for b.Loop() {
		x, y := net.Pipe()
		for _, a := range openOver(b, [2]net.Conn{x, y}) {
			_ = a.Close()
		}
	}
}

// What each end of many associations costs that are idle: octets of heap and stacks, and
// goroutines.
func BenchmarkIdle(b *testing.B) {
	const pairs = 1000
	measure := func() (octets, goroutines int) {
		for range 4 {
			runtime.GC()
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
	}
	for b.Loop() {
		octets, goroutines := measure()
		ends := make([]*sctp.Association, 0, 2*pairs)
		for range pairs {
			x, y := net.Pipe()
			e := openOver(b, [2]net.Conn{x, y})
			ends = append(ends, e[:]...)
		}
		moreOctets, moreGoroutines := measure()
		b.ReportMetric(float64(moreOctets-octets)/float64(len(ends)), "octets/end")
		b.ReportMetric(float64(moreGoroutines-goroutines)/float64(len(ends)), "goroutines/end")
		for _, a := range ends {
			_ = a.Close()
		}
	}
}

// Messages of 16 KiB one way.
func BenchmarkBulk(b *testing.B) {
	x, y := net.Pipe()
	ends := openOver(b, [2]net.Conn{x, y})
	defer ends[0].Close()
	defer ends[1].Close()
	out, err := ends[0].OpenStream(2, sctp.PayloadTypeWebRTCBinary)
	if err != nil {
		b.Fatal(err)
	}
	msg := make([]byte, 16<<10)
	b.SetBytes(int64(len(msg)))
	done := make(chan error)
	go func() {
		in, err := ends[1].AcceptStream()
		buf := make([]byte, 2*len(msg))
		for i := 0; err == nil && i < b.N; i++ {
			_, err = in.Read(buf)
		}
		done <- err
	}()
	low := make(chan struct{}, 1)
	out.SetBufferedAmountLowThreshold(1 << 20)
	out.OnBufferedAmountLow(func() {
		select {
		case low <- struct{}{}:
		default:
		}
	})
	for range b.N {
		if _, err := out.Write(msg); err != nil {
			b.Fatal(err)
		}
		if out.BufferedAmount() > 2<<20 {
			<-low
		}
	}
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
