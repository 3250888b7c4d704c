package wire_test

import (
	"fmt"

	"github.com/rddp-go/rddp/sctp/wire"
)

// A SACK and a DATA chunk share a packet. The user data is never copied: it is a piece of the
// vector.
func Example() {
	payload := []byte("hello")

	header := wire.AppendHeader(make([]byte, 0, 64), 5000, 6000, 0x12345678)
	header = wire.AppendSack(header, wire.SackFields{CumTSN: 12, ARwnd: 4660,
		Gaps: []wire.GapBlock{{Start: 2, End: 3}}})
	header = wire.AppendDataHeader(header, wire.DataFields{
		Flags: wire.FlagB | wire.FlagE, TSN: 7, Stream: 1, PPID: 16, PayloadLen: len(payload),
	})
	vec := [][]byte{header, payload, wire.Padding(len(payload))}
	wire.PutChecksum(header, wire.Checksum(vec))

	var received []byte // what the network does
	for _, piece := range vec {
		received = append(received, piece...)
	}

	p, err := wire.ParsePacket(received)
	if err != nil || !p.ChecksumOK() {
		return // RFC 9260 section 6.8: discard in silence
	}
	chunks := p.Chunks()
	for c, ok := chunks.Next(); ok; c, ok = chunks.Next() {
		switch c.Type() {
		case wire.ChunkSack:
			if s, err := wire.AsSack(c); err == nil {
				start, end := s.Gap(0)
				fmt.Printf("%v: all up to %d, then %d to %d\n", c.Type(), s.CumTSN(),
					s.CumTSN().Add(uint32(start)), s.CumTSN().Add(uint32(end)))
			}
		case wire.ChunkData:
			if d, err := wire.AsData(c); err == nil {
				fmt.Printf("%v: TSN %d, stream %d, %q\n", c.Type(), d.TSN(), d.Stream(), d.Payload())
			}
		}
	}
	if err := chunks.Err(); err != nil {
		fmt.Println("rest of the packet dropped:", err)
	}
	// Output:
	// SACK: all up to 12, then 14 to 15
	// DATA: TSN 7, stream 1, "hello"
}
