package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/rddp-go/rddp/internal/cli"
	"github.com/rddp-go/rddp/rdma"
)

// operation is how the data of one ping travels.
type operation byte

const (
	opSend  operation = 's' // there and back by Send
	opWrite operation = 'w' // there and back by RDMA Write, each with a Send behind it
	opRead  operation = 'r' // back by RDMA Read; the server's program takes no part
)

func (o operation) String() string {
	return map[operation]string{opSend: "send", opWrite: "write", opRead: "read"}[o]
}

func parseOperations(name string) ([]operation, error) {
	if name == "all" {
		return []operation{opSend, opWrite, opRead}, nil
	}
	all := []operation{opSend, opWrite, opRead}
	i := slices.IndexFunc(all, func(o operation) bool { return o.String() == name })
	if i < 0 {
		return nil, cli.Usagef("--op %s: it is one of send, write, read, all", name)
	}
	return all[i : i+1], nil
}

// maxSize bounds the data of a ping, and so what a client can make a server allocate.
const maxSize = 16 << 20

// remoteBuf is a buffer that one side opens to the other.
type remoteBuf struct {
	stag rdma.STag
	to   uint64
}

// hello is the private data of both directions. It has the size of a ping, its filling, and where
// each side may write. The server's also says where the client may read.
type hello struct {
	size        uint32
	pattern     []byte
	write, read remoteBuf
}

const (
	magic      = "ddpping2"
	maxPattern = 16
	helloLen   = len(magic) + 4 + 2*12 + 1 + maxPattern
)

var errHello = errors.New("private data is not ddpping's, or of another release of it")

func (h *hello) encode() []byte {
	b := append(make([]byte, 0, helloLen), magic...)
	b = binary.BigEndian.AppendUint32(b, h.size)
	for _, r := range []remoteBuf{h.write, h.read} {
		b = binary.BigEndian.AppendUint32(b, uint32(r.stag))
		b = binary.BigEndian.AppendUint64(b, r.to)
	}
	b = append(b, byte(len(h.pattern)))
	return append(b, h.pattern...)[:helloLen]
}

func (h *hello) decode(b []byte) error {
	if len(b) != helloLen || string(b[:len(magic)]) != magic || b[helloLen-1-maxPattern] > maxPattern {
		return errHello
	}
	b = b[len(magic):]
	h.size = binary.BigEndian.Uint32(b)
	b = b[4:]
	for _, r := range []*remoteBuf{&h.write, &h.read} {
		r.stag = rdma.STag(binary.BigEndian.Uint32(b))
		r.to = binary.BigEndian.Uint64(b[4:])
		b = b[12:]
	}
	h.pattern = bytes.Clone(b[1 : 1+b[0]])
	return nil
}

// A Send begins with the operation and the ping's number; the data follows if it travels by Send.
// In a reply, verdict says what the server thinks of the data. The rest of the header is zero.
// Wireshark takes a shorter Send for a broken message of RPC over RDMA.
const headerLen = 16

const (
	verdictGood byte = iota
	verdictBad
)

func putHeader(b []byte, op operation, verdict byte, seq uint64) {
	clear(b[:headerLen])
	b[0], b[1] = byte(op), verdict
	binary.BigEndian.PutUint64(b[2:], seq)
}

// fillData writes the data of ping seq, which repeats the pattern. Without a pattern no part of the
// data repeats, and no two pings have the same.
func fillData(b []byte, seq uint64, pattern []byte) {
	if len(pattern) > 0 {
		for i := range b {
			b[i] = pattern[i%len(pattern)]
		}
		return
	}
	x := seq*0x9e3779b97f4a7c15 + 1
	for i := range b {
		if i%8 == 0 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		b[i] = byte(x >> (i % 8 * 8))
	}
}
