package main

import (
	"bytes"
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/crc32c"
	"github.com/rddp-go/rddp/mpa"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// change returns b with an octet changed.
func change(b []byte, at int, to byte) []byte {
	b = bytes.Clone(b)
	b[at] = to
	return b
}

// Where the fields of a start-up frame are.
const (
	bitsAt     = 16
	revisionAt = 17
	lengthAt   = 18
)

// startups are start-up frames that are wrong whichever end sends them.
func startups(good []byte) []row {
	long := append(bytes.Clone(good[:lengthAt]), 2, 1) // 513
	return []row{
		{name: "another key", start: change(good, 4, 'X'), want: []string{closed}},
		// A length above 0 stops siw of Linux 6.1 for good, if it is the client: in kmemdup.
		{name: "another protocol", start: []byte("GET / HTTP/1.1\r\n\r\n\x00\x00\r\n"), want: []string{closed}},
		{name: "revision 3", start: change(good, revisionAt, 3), want: []string{closed, rejected}},
		{name: "revision 255", start: change(good, revisionAt, 255), want: []string{closed, rejected}},
		{name: "513 octets of private data", start: append(long, make([]byte, 513)...), want: []string{closed}},
		{name: "more octets than PD_Length", start: append(bytes.Clone(good), 1, 2, 3, 4), want: []string{closed}},
		{name: "fewer octets than PD_Length", start: change(good, lengthAt+1, 40), fin: true, want: []string{closed}},
		{name: "the end of the stream in the middle", start: good[:10], fin: true, want: []string{closed}},
		{name: "nothing", want: []string{closed}},
		{name: "half a frame, and then nothing", start: good[:10], want: []string{closed}},
	}
}

// requestRows are for a server.
func requestRows() []row {
	plain := mpa.Frame{CRC: true, Revision: mpa.Revision}
	good := plain.Append(nil)
	reply := mpa.Frame{IsReply: true, CRC: true, Revision: mpa.Revision}
	return append(startups(good),
		row{name: "a Reply in place of a Request", start: reply.Append(nil), want: []string{closed}},
		row{name: "an enhanced Request without connection data",
			start: append(change(good[:revisionAt+1], revisionAt, 2),
				0, 0), want: []string{closed, rejected, accepted}},
		row{name: "Markers, which the other end need not have", start: change(good, bitsAt, good[bitsAt]|0x80),
			want: []string{rejected, closed}},
		row{name: "reserved bits, which are not looked at", start: change(good, bitsAt, good[bitsAt]|0x0f),
			want: []string{accepted}},
		row{name: "an FPDU that does not wait for the Reply",
			start: append(bytes.Clone(good), fpdu(untagged(rdmap.QueueSend, 1, rdmap.OpSend, nil))...),
			want:  []string{closed}})
}

// replyRows are for clients, whose Request is an enhanced one.
func replyRows() []row {
	f := mpa.Frame{IsReply: true, CRC: true, Revision: mpa.EnhancedRevision,
		Setup: &llp.Setup{IRD: 1, ORD: 1}}
	request := mpa.Frame{CRC: true, Revision: mpa.EnhancedRevision, Setup: f.Setup}
	list := append(startups(f.Append(nil)),
		row{name: "a Request in place of a Reply", start: request.Append(nil), want: []string{closed}})
	for i := range list { // siw says why, though nothing is set up
		list[i].want = append(list[i].want, terminatedEither(rdmap.LayerLLP, rdmap.ETypeMPA, mpa.CodeFrame)...)
	}
	return list
}

// fpdu is the FPDU of an ULPDU, whatever that is.
func fpdu(u []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, uint16(len(u)))
	b = append(b, u...)
	b = append(b, make([]byte, -len(b)&3)...)
	return binary.LittleEndian.AppendUint32(b, crc32c.Update(0, b))
}
