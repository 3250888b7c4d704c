package rdma

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/baseline"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// benchPair is two connected QPs, each with memory for what is under way.
type benchPair struct {
	da, db *Device
	a, b   *side
	depth  int
	size   int
}

// benchMemory is what each side registers, in octets; benchDepth the most requests under way.
const (
	benchMemory = 16 << 20
	benchDepth  = 128
	benchReads  = 64
)

func newBenchPair(b *testing.B, link string, mtu, size int) *benchPair {
	x, y, at, err := baseline.Pair(link, mtu)
	if errors.Is(err, fs.ErrPermission) {
		b.Skip(err)
	} else if err != nil {
		b.Fatal(err)
	}
	p := &benchPair{size: size, depth: min(benchDepth, benchMemory/size)}
	device := func(l rawio.Link) *Device {
		cfg := Config{}
		cfg.SCTP.EncapPort = at.Port()
		d := must.Get(NewDevice(l, &cfg))(b)
		b.Cleanup(func() { d.Close() })
		return d
	}
	p.da, p.db = device(x), device(y)
	p.join(b, must.Get(p.db.Listen(DefaultPort))(b), netip.AddrPortFrom(at.Addr(), DefaultPort))
	return p
}

// join connects the QPs.
func (p *benchPair) join(b *testing.B, l *Listener, at netip.AddrPort) {
	depth := func(c *QPConfig) { c.MaxSend, c.MaxRecv, c.IRD, c.ORD = benchDepth, benchDepth, benchReads, benchReads }
	p.a, p.b = newSide(b, p.da, nil, depth), newSide(b, p.db, nil, depth)
	for _, s := range []*side{p.a, p.b} {
		s.buf = make([]byte, benchMemory)
		s.mr = must.Get(s.pd.Register(s.buf, LocalWrite|RemoteRead|RemoteWrite, nil))(b)
	}
	accepted := make(chan error, 1)
	go func() {
		req, err := l.Accept(context.Background())
		if err == nil {
			err = req.Accept(p.b.qp, nil)
		}
		accepted <- err
	}()
	must.Do(p.a.qp.Connect(context.Background(), at, nil))(b)
	must.OK(b, <-accepted)
}

// pingPong sends a message there and back, b.N times.
func (p *benchPair) pingPong(b *testing.B) {
	wait := func(s *side, recvs int) {
		var wcs [4]WC
		for recvs > 0 {
			n, err := s.cq.Poll(wcs[:])
			if err == nil && n == 0 {
				err = s.cq.Wait(context.Background())
			}
			if err != nil {
				return
			}
			for _, wc := range wcs[:n] {
				if wc.Opcode == WCRecv {
					recvs--
				}
			}
		}
	}
	send := func(s *side) error {
		if err := s.qp.PostRecv(&RecvWR{SGL: []SGE{s.mr.SGE(0, p.size)}}); err != nil {
			return err
		}
		return s.qp.PostSend(&SendWR{Op: OpSend, SGL: []SGE{s.mr.SGE(p.size, p.size)}})
	}
	must.OK(b, p.b.qp.PostRecv(&RecvWR{SGL: []SGE{p.b.mr.SGE(0, p.size)}}))
	go func() {
		for range b.N {
			if wait(p.b, 1); send(p.b) != nil {
				return
			}
		}
	}()
	b.ResetTimer()
	for range b.N {
		must.OK(b, send(p.a))
		wait(p.a, 1)
	}
}

// run keeps up to depth requests of one kind under way until b.N are complete.
func (p *benchPair) run(b *testing.B, op rdmap.WROpcode) {
	var posted, done int
	var credits atomic.Int64 // receives posted at the peer so far
	depth := p.depth
	switch op {
	case OpSend:
		p.postReceives(b, &credits)
	case OpRead:
		depth = min(depth, benchReads)
	}
	var wcs [64]WC
	var sgl [1]SGE
	b.SetBytes(int64(p.size))
	b.ReportAllocs()
	defer func(cpu time.Duration) {
		used := baseline.CPUTime() - cpu
		b.ReportMetric(used.Seconds()/(float64(b.N)*float64(p.size)/1e9), "cpu-s/GB")
	}(baseline.CPUTime())
	b.ResetTimer()
	for done < b.N {
		for posted < b.N && posted-done < depth {
			if op == OpSend && int64(posted) >= credits.Load() {
				runtime.Gosched()
				continue
			}
			off := posted % depth * p.size
			sgl[0] = p.a.mr.SGE(off, p.size)
			wr := SendWR{Op: op, SGL: sgl[:]}
			if op != OpSend {
				wr.RemoteSTag, wr.RemoteTO = p.b.mr.STag(), p.b.mr.Base()+uint64(off)
			}
			must.OK(b, p.a.qp.PostSend(&wr))
			posted++
		}
		n, err := p.a.cq.Poll(wcs[:])
		if err == nil && n == 0 {
			err = p.a.cq.Wait(context.Background())
		}
		must.OK(b, err)
		for _, wc := range wcs[:n] {
			if wc.Status != rdmap.StatusSuccess {
				b.Fatalf("%v: %v", wc.Status, p.a.qp.Err())
			}
		}
		done += n
	}
}

// postReceives posts all the receives that there is memory for, and posts each again when it has
// completed. The sender reads from credits how many Sends may be posted in all: a Send without a
// buffer ends the stream.
func (p *benchPair) postReceives(b *testing.B, credits *atomic.Int64) {
	post := func(i uint64) {
		if err := p.b.qp.PostRecv(&RecvWR{ID: i, SGL: []SGE{p.b.mr.SGE(int(i)*p.size, p.size)}}); err != nil {
			b.Error(err)
		}
		credits.Add(1)
	}
	for i := range p.depth {
		post(uint64(i))
	}
	go func() {
		var wcs [64]WC
		for left := b.N; left > 0; {
			n, err := p.b.cq.Poll(wcs[:])
			if err == nil && n == 0 {
				err = p.b.cq.Wait(context.Background())
			}
			if err != nil {
				b.Error(err)
				return
			}
			for _, wc := range wcs[:n] {
				if left--; left >= p.depth {
					post(wc.ID)
				}
			}
		}
	}()
}

// BenchmarkThroughput moves messages between two devices of this process over each link.
func BenchmarkThroughput(b *testing.B) {
	for _, verb := range []struct {
		name string
		op   rdmap.WROpcode
	}{{"Write", OpWrite}, {"Read", OpRead}, {"Send", OpSend}} {
		for _, link := range []string{"mem", "udp", "raw"} {
			for _, mtu := range []int{1500, rawio.MaxMTU} {
				for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
					b.Run(fmt.Sprintf("%s/%s/mtu=%d/%dKiB", verb.name, link, mtu, size>>10), func(b *testing.B) {
						newBenchPair(b, link, mtu, size).run(b, verb.op)
					})
				}
			}
		}
	}
}
