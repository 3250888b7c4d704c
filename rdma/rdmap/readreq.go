package rdmap

import (
	"encoding/binary"

	"github.com/rddp-go/rddp/ddp"
)

// ReadRequestLen is the length of the RDMA Read Request Header in octets. It is the whole payload
// of a Read Request Message (section 4.4, Figure 6).
const ReadRequestLen = 28

// ReadRequest is the RDMA Read Request Header.
type ReadRequest struct {
	SinkSTag ddp.STag // copied without interpretation into the Read Response
	SinkTO   uint64   // Tagged Offset of the first octet at the data sink
	Size     uint32   // RDMARDSZ: octets to read, 0 to 2^32-1
	SrcSTag  ddp.STag
	SrcTO    uint64 // Tagged Offset of the first octet at the data source
}

// Put encodes the header.
func (r *ReadRequest) Put(b *[ReadRequestLen]byte) {
	binary.BigEndian.PutUint32(b[0:], uint32(r.SinkSTag))
	binary.BigEndian.PutUint64(b[4:], r.SinkTO)
	binary.BigEndian.PutUint32(b[12:], r.Size)
	binary.BigEndian.PutUint32(b[16:], uint32(r.SrcSTag))
	binary.BigEndian.PutUint64(b[20:], r.SrcTO)
}

// ParseReadRequest decodes the header.
func ParseReadRequest(b *[ReadRequestLen]byte) ReadRequest {
	return ReadRequest{
		SinkSTag: ddp.STag(binary.BigEndian.Uint32(b[0:])),
		SinkTO:   binary.BigEndian.Uint64(b[4:]),
		Size:     binary.BigEndian.Uint32(b[12:]),
		SrcSTag:  ddp.STag(binary.BigEndian.Uint32(b[16:])),
		SrcTO:    binary.BigEndian.Uint64(b[20:]),
	}
}

// advanceBy is the header after n octets of the response were sent. A Terminate quotes it when the
// read fails half-way (section 4.8).
func (r ReadRequest) advanceBy(n uint32) ReadRequest {
	r.SinkTO += uint64(n)
	r.SrcTO += uint64(n)
	r.Size -= n
	return r
}
