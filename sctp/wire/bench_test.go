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
