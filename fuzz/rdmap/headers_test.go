package rdmap

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzHeaders reads a header and writes it again: all octets that mean something are as they were.
// kind says which header.
//
//fuzz:covers ./rdma/rdmap ./ddp
func FuzzHeaders(f *testing.F) {
	trips := []func(*testing.T, []byte){checkSegment, readRequest, atomicRequest, atomicResponse, checkTerminate}
	seed := func(kind int, b []byte) { f.Add(uint8(kind), b) }
	seed(0, []byte{0xC1, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3})
	seed(0, []byte{0x41, 1, 2, 3, 4, 5, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 5, 0xCA, 9})
	seed(1, bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7}, 4))
	var b [rdmap.AtomicRequestLen]byte
	for _, op := range []rdmap.AtomicOp{rdmap.FetchAdd(1), rdmap.CmpSwap(2, 3)} {
		(&rdmap.AtomicRequest{ID: 4, STag: 5, TO: 6, Op: op}).Put(&b)
		seed(2, bytes.Clone(b[:]))
	}
	seed(3, []byte("twelve octet"))
	tm := rdmap.Terminate{Layer: rdmap.LayerDDP, EType: 1, Code: 2, HasLength: true, HasDDP: true, HasRDMA: true}
	seed(4, tm.Append(nil))
	seed(4, []byte{0, 0, 0, 0})
	for _, b := range corpusSegments(f) {
		seed(0, b)
		if len(b) > ddp.UntaggedHeaderLen {
			for kind := 1; kind < len(trips); kind++ {
				seed(kind, b[ddp.UntaggedHeaderLen:])
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) { trips[int(kind)%len(trips)](t, b) })
}

// corpusSegments returns the DDP segments of the corpus.
func corpusSegments(f *testing.F) (list [][]byte) {
	for _, b := range corpus.Packets() {
		p := must.Get(wire.ParsePacket(b))(f)
		it := p.Chunks()
		for c, ok := it.Next(); ok; c, ok = it.Next() {
			if d, err := wire.AsData(c); err == nil && d.PPID() == 16 && d.B() && d.E() && len(d.Payload()) > 2 {
				list = append(list, d.Payload()[2:])
			}
		}
	}
	return list
}
