package tx

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pack"
	"github.com/rddp-go/rddp/sctp/wire"
)

type endlessSource struct{ body []byte }

func (e *endlessSource) Next(_ rawio.Time, max int, m *Message) bool {
	m.Unordered, m.HeadLen = true, 16
	m.Body[0] = e.body[:max-16]
	return true
}
func (e *endlessSource) Idle() bool                              { return false }
func (e *endlessSource) Acked(rawio.Time, wire.StreamID, uint64) {}

// endlessRunner is endless in runs.
type endlessRunner struct {
	endlessSource
	run Run
}

func (e *endlessRunner) NextRun(_ rawio.Time, size, n int) *Run {
	e.run.N, e.run.HeadLen, e.run.Body = n, 16, e.body[:n*(size-16)]
	return &e.run
}
func (e *endlessRunner) AckedRun(rawio.Time, wire.StreamID, uint64, int) {}

func newBulkSender(mtu int) *Sender {
	s := NewSender(Config{TSN: 1})
	p := NewPath(netip.AddrPort{}, netip.MustParseAddrPort("192.0.2.1:0"), mtu, labRTO, nil)
	p.State = Active
	if err := s.AddPath(p); err != nil {
		panic(err)
	}
	p.cc = newFixedWindow(1 << 40)
	s.SetPeer(1<<31-1, 4)
	s.SetUpper(&endlessSource{make([]byte, mtu)}, nil)
	return s
}

func fillBatch(now rawio.Time, s *Sender, b *pack.Batch) {
	b.Reset()
	for !b.Full() {
		p := s.Poll(now)
		b.Begin(1, 2, 3, p.Local, p.Remote, p.MTU())
		s.Fill(now, b, p)
		b.End()
		s.FillMore(now, b, p)
	}
}

// BenchmarkFill is the way of bulk data: pull, record, header, vector, CRC32c, and a cumulative
// SACK for every so many packets.
func BenchmarkFill(b *testing.B) {
	const packets = 4
	for _, mtu := range []int{1480, 65515} {
		b.Run(fmt.Sprint(mtu), func(b *testing.B) {
			s, batch := newBulkSender(mtu), pack.NewBatch(packets)
			k := makeSack(0, 1<<31-1)
			b.SetBytes(int64(packets * s.MaxPayload()))
			b.ReportAllocs()
			for b.Loop() {
				fillBatch(0, s, batch)
				binary.BigEndian.PutUint32(k[4:], uint32(s.NextTSN()-1))
				if _, err := s.HandleSack(0, k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFillLong is that of a packet of a long message, in a batch: of a Source, one by one and
// in runs, and of the queue.
func BenchmarkFillLong(b *testing.B) {
	const packets = 128
	body := make([]byte, RunMost*1480)
	for name, src := range map[string]Source{"one": &endlessSource{body},
		"runs": &endlessRunner{endlessSource: endlessSource{body}}, "queue": nil} {
		b.Run(name, func(b *testing.B) {
			s, batch := newBulkSender(1480), pack.NewBatch(packets)
			s.SetUpper(src, nil)
			s.Reconfigure(1<<22, 0, false, false, 0)
			queued := &Message{Unordered: true, Body: [2][]byte{make([]byte, 1<<20)}}
			k := makeSack(0, 1<<31-1)
			b.SetBytes(int64(s.MaxPayload()))
			b.ReportAllocs()
			now, left := rawio.Time(0), 0
			for b.Loop() {
				if left--; left > 0 {
					continue
				}
				left = packets
				now = now.Add(time.Millisecond)
				if src == nil && s.queue.waiting.length == 0 {
					if err := s.Enqueue(queued); err != nil {
						b.Fatal(err)
					}
				}
				fillBatch(now, s, batch)
				binary.BigEndian.PutUint32(k[4:], uint32(s.NextTSN()-1))
				if _, err := s.HandleSack(now, k); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSackGaps is a SACK that reports every fourth of 4000 TSNs missing and acknowledges one
// TSN newly: what it costs is to depend on the latter and the blocks, not on what is outstanding.
func BenchmarkSackGaps(b *testing.B) {
	s, batch := newBulkSender(1480), pack.NewBatch(100)
	for s.outstanding.len() < 60000 {
		fillBatch(0, s, batch)
	}
	var gaps []wire.GapBlock
	for i := range 300 {
		gaps = append(gaps, wire.GapBlock{Start: uint16(2 + 4*i), End: uint16(4 + 4*i)})
	}
	last := &gaps[len(gaps)-1]
	var out []byte
	for b.Loop() {
		if last.End++; int(last.End) >= s.outstanding.len() {
			b.StopTimer()
			last.End = last.Start
			s, batch = newBulkSender(1480), pack.NewBatch(100)
			for s.outstanding.len() < 60000 {
				fillBatch(0, s, batch)
			}
			b.StartTimer()
		}
		out = wire.AppendSack(out[:0], wire.SackFields{CumTSN: s.CumTSN(), ARwnd: 1 << 30, Gaps: gaps})
		if _, err := s.HandleSack(0, wire.Sack(out)); err != nil {
			b.Fatal(err)
		}
	}
}
