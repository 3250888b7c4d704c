package wire_test

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

func BenchmarkParseDataAndSack(b *testing.B) {
	pkt := dataAndSack(1400)
	b.ReportAllocs()
	for b.Loop() {
		sum, err := readDataAndSack(pkt)
		if err != nil {
			b.Fatal(err)
		}
		sink += sum
	}
}

func BenchmarkAppendDataHeader(b *testing.B) {
	buf := make([]byte, 0, 64)
	f := wire.DataFields{Flags: wire.FlagB | wire.FlagE, Stream: 3, PPID: 16, PayloadLen: 1400}
	b.ReportAllocs()
	for b.Loop() {
		f.TSN++
		buf = wire.AppendDataHeader(buf[:0], f)
	}
}

func BenchmarkAppendSack(b *testing.B) {
	for _, gaps := range []int{0, 16} {
		b.Run(fmt.Sprintf("gaps=%d", gaps), func(b *testing.B) {
			buf := make([]byte, 0, 1500)
			f := wire.SackFields{ARwnd: 1 << 20, Gaps: make([]wire.GapBlock, gaps)}
			b.ReportAllocs()
			for b.Loop() {
				f.CumTSN++
				buf = wire.AppendSack(buf[:0], f)
			}
		})
	}
}

// BenchmarkVerify is the checksum of a received packet, by itself and after one with the same
// header.
func BenchmarkVerify(b *testing.B) {
	p := wire.Packet(wire.AppendChunk(wire.AppendHeader(nil, 1, 2, 3), wire.ChunkData, 3, make([]byte, 1456)))
	wire.PutChecksum(p, wire.ChecksumBytes(p))
	var sum wire.HeaderSum
	for name, ok := range map[string]func() bool{"alone": p.ChecksumOK, "again": func() bool { return sum.OK(p) }} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(p)))
			for b.Loop() {
				if !ok() {
					b.Fatal("wrong checksum")
				}
			}
		})
	}
}

// One packet as it is sent: headers, user memory, padding.
func BenchmarkChecksumVector(b *testing.B) {
	for _, size := range []int{1472, 64 << 10} {
		b.Run(fmt.Sprintf("octets=%d", size), func(b *testing.B) {
			const headers = wire.CommonHeaderLen + wire.DataHeaderLen
			payload := size - headers
			vec := [][]byte{make([]byte, headers), make([]byte, payload), wire.Padding(payload)}
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				sink += uint64(wire.Checksum(vec))
			}
		})
	}
}
