package mpa_test

import (
	"fmt"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/mpa"
)

// A segment becomes an FPDU, which is found in what was received.
func ExampleFramer() {
	var seg ddp.Segment
	seg.HeaderLen = ddp.Tagged{Last: true, STag: 7, TO: 100}.Put(seg.Header[:])
	seg.Body[0] = []byte("hello")

	framer, batch := mpa.Framer{MakesCRC: true}, new(mpa.Batch)
	for framer.HasRoom(batch, 1454) && batch.FPDUs() < 2 {
		framer.Append(batch, &seg)
	}
	var stream []byte
	for _, piece := range batch.Pieces() {
		stream = append(stream, piece...)
	}

	deframer := mpa.Deframer{ChecksCRC: true}
	for len(stream) > 0 {
		ulpdu, n, err := deframer.Next(stream)
		if err != nil || n == 0 {
			break
		}
		fmt.Printf("%d octets: %s\n", n, ddp.TaggedView(ulpdu).Payload())
		stream = stream[n:]
	}
	// Output:
	// 28 octets: hello
	// 28 octets: hello
}

// The start-up frames of both sides, as they are on the wire.
func ExampleFrame() {
	request := mpa.Frame{CRC: true, Revision: mpa.Revision, Private: []byte("hello")}
	fmt.Printf("%q\n", request.Append(nil))
	_, _, err := mpa.ParseFrame(request.Append(nil), true) // where a Reply is due
	fmt.Println(err)
	// Output:
	// "MPA ID Req Frame@\x01\x00\x05hello"
	// both ends were started as initiator, or both as responder
}
