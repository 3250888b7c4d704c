package wire

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What FuzzParse takes its octets for; the first of them says which.
const (
	asPacket = iota
	asChunk
	asParam
	kindsOfInput
)

// FuzzParse feeds packets, chunks and parameters: whatever the octets are, every walk ends and
// stays inside, and nothing is written. Views are made of any octets, whether or not a length field
// agrees with their number, headers of less than 4 included.
//
//fuzz:covers ./sctp/wire
func FuzzParse(f *testing.F) {
	header := wire.AppendHeader(nil, 5000, 6000, 1)
	add := func(kind byte, b []byte) { f.Add(append([]byte{kind}, b...)) }
	for _, chunk := range seedChunks() {
		add(asPacket, slices.Concat(header, chunk))
		add(asPacket, slices.Concat(header, chunk, wire.AppendCookieAck(nil)))
		add(asChunk, chunk)
		for _, fixed := range []int{4, 8, 20} { // where parameters start
			if len(chunk) > fixed {
				add(asParam, chunk[fixed:])
			}
		}
	}
	add(asPacket, header[:11])
	for _, packet := range corpus.Packets() {
		add(asPacket, packet)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) == 0 {
			return
		}
		kind, b := in[0], slices.Clip(bytes.Clone(in[1:]))
		switch kind % kindsOfInput {
		case asPacket:
			visitPacket(t, b)
		case asChunk:
			if len(b) >= wire.ChunkHeaderLen {
				visitChunk(t, b)
			}
		case asParam:
			visitParam(t, wire.Param(b))
			visitCause(t, wire.Cause(b))
		}
		if !bytes.Equal(b, in[1:]) {
			t.Fatal("parsing wrote to the packet")
		}
	})
}
