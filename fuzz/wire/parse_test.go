package wire_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzPacket feeds whole packets: whatever the octets are, the walk ends, stays inside, and changes
// nothing.
func FuzzPacket(f *testing.F) {
	header := wire.AppendHeader(nil, 5000, 6000, 1)
	for _, chunk := range seedChunks() {
		f.Add(bytes.Join([][]byte{header, chunk}, nil))
		f.Add(bytes.Join([][]byte{header, chunk, wire.AppendCookieAck(nil)}, nil))
	}
	f.Add(header)
	f.Add(header[:11])
	f.Fuzz(func(t *testing.T, b []byte) {
		b = slices.Clip(bytes.Clone(b))
		before := bytes.Clone(b)
		p, err := wire.ParsePacket(b)
		if (err == nil) != (len(b) >= wire.CommonHeaderLen) {
			t.Fatalf("%d octets: %v", len(b), err)
		}
		if err != nil {
			return
		}
		_, _, _, _, _ = p.SrcPort(), p.DstPort(), p.VTag(), p.Checksum(), p.ChecksumOK()
		total := wire.CommonHeaderLen
		cs := p.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			if total += len(c); total > len(b) || len(c) < wire.ChunkHeaderLen || cap(c) != len(c) {
				t.Fatalf("chunk of %d octets, capacity %d, makes %d of %d", len(c), cap(c), total, len(b))
			}
			within(t, b, c)
			visitChunk(t, c)
		}
		if _, ok := cs.Next(); ok {
			t.Fatalf("a chunk after the end: %v", cs.Err())
		}
		if !bytes.Equal(b, before) {
			t.Fatal("parsing wrote to the packet")
		}
	})
}

// FuzzChunk feeds a chunk of any length, so that short ones are met often: views are made of any
// octets, whether or not the length field agrees with their number.
func FuzzChunk(f *testing.F) {
	for _, chunk := range seedChunks() {
		f.Add(chunk)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= wire.ChunkHeaderLen {
			visitChunk(t, slices.Clip(bytes.Clone(b)))
		}
	})
}

// FuzzParam feeds one parameter and one error cause of any octets, headers of less than 4 included.
func FuzzParam(f *testing.F) {
	for _, chunk := range seedChunks() {
		for _, fixed := range []int{4, 8, 20} { // where parameters start
			if len(chunk) > fixed {
				f.Add(chunk[fixed:])
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		b = slices.Clip(bytes.Clone(b))
		visitParam(t, wire.Param(b))
		visitCause(t, wire.Cause(b))
	})
}
