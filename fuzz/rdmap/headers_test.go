package rdmap

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/fuzz/corpus"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FuzzHeaders reads a header and writes it again: all octets that mean something are as they were. kind says which
// header.
//
//fuzz:covers ./rdma/rdmap ./ddp
func FuzzHeaders(f *testing.F) {
	trips := []func(*testing.T, []byte){segment, readRequest, atomicRequest, atomicResponse, terminate}
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
	for _, b := range segments(f) {
		seed(0, b)
		if len(b) > ddp.UntaggedHeaderLen {
			for kind := 1; kind < len(trips); kind++ {
				seed(kind, b[ddp.UntaggedHeaderLen:])
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) { trips[int(kind)%len(trips)](t, b) })
}

// segments returns the DDP segments of the corpus.
func segments(f *testing.F) (list [][]byte) {
	for _, b := range corpus.Packets() {
		p, err := wire.ParsePacket(b)
		if err != nil {
			f.Fatal(err)
		}
		it := p.Chunks()
		for c, ok := it.Next(); ok; c, ok = it.Next() {
			if d, err := wire.AsData(c); err == nil && d.PPID() == 16 && d.B() && d.E() && len(d.Payload()) > 2 {
				list = append(list, d.Payload()[2:])
			}
		}
	}
	return list
}

// segment holds for every DDP header that is long enough, apart from the version and the reserved bits, which a sender
// sets by itself (RFC 5041 section 4.1).
func segment(t *testing.T, b []byte) {
	if len(b) == 0 {
		return
	}
	c := ddp.Control(b[0])
	n := c.HeaderLen()
	if len(b) < n {
		return
	}
	var got [ddp.MaxHeaderLen]byte
	var payload []byte
	if c.Tagged() {
		v := ddp.TaggedView(b)
		ddp.Tagged{Last: c.Last(), Rsvd: v.RsvdULP(), STag: v.STag(), TO: v.TO()}.Put(got[:])
		payload = v.Payload()
	} else {
		v := ddp.UntaggedView(b)
		ddp.Untagged{Last: c.Last(), Rsvd: v.RsvdULP(), QN: v.QN(), MSN: v.MSN(), MO: v.MO()}.Put(got[:])
		payload = v.Payload()
	}
	if want := b[0]&0xC0 | ddp.Version; got[0] != want || !bytes.Equal(got[1:n], b[1:n]) {
		t.Errorf("read and written again: % x, was % x", got[:n], b[:n])
	}
	if !bytes.Equal(payload, b[n:]) {
		t.Error("payload does not follow the header")
	}
	// The RDMAP control field has two reserved bits between version and opcode (RFC 5040 section 4.1).
	version, op := rdmap.SplitControl(b[1])
	if version == rdmap.Version && rdmap.Control(op) != b[1]&^0x30 {
		t.Errorf("control field %#x became %#x", b[1], rdmap.Control(op))
	}
}

func readRequest(t *testing.T, in []byte) {
	var b, again [rdmap.ReadRequestLen]byte
	copy(b[:], in)
	r := rdmap.ParseReadRequest(&b)
	if r.Put(&again); again != b {
		t.Errorf("%x became %x", b, again)
	}
}

// atomicRequest: the reserved bits are 0 again, and so is what a FetchAdd does not use, or all ones.
func atomicRequest(t *testing.T, in []byte) {
	var b, again [rdmap.AtomicRequestLen]byte
	copy(b[:], in)
	r, ok := rdmap.ParseAtomicRequest(&b)
	if known := b[3]&0xF == 0 || b[3]&0xF == 2; ok != known {
		t.Fatalf("operation %d is known: %v", b[3]&0xF, ok)
	}
	if !ok {
		return
	}
	copy(b[:], []byte{0, 0, 0, b[3] & 0xF})
	if b[3] == 0 {
		copy(b[36:], make([]byte, 8))
		copy(b[44:], bytes.Repeat([]byte{0xFF}, 8))
	}
	if r.Put(&again); again != b {
		t.Errorf("%x became %x", b, again)
	}
}

func atomicResponse(t *testing.T, in []byte) {
	var b, again [rdmap.AtomicResponseLen]byte
	copy(b[:], in)
	r := rdmap.ParseAtomicResponse(&b)
	if r.Put(&again); again != b {
		t.Errorf("%x became %x", b, again)
	}
}

// terminate: but for the 13 reserved bits, what is written is the beginning of what was read.
func terminate(t *testing.T, in []byte) {
	tm, err := rdmap.ParseTerminate(in)
	if err != nil {
		return
	}
	want := bytes.Clone(in)
	want[2], want[3] = want[2]&0xE0, 0
	if b := tm.Append(nil); len(b) > rdmap.MaxTerminateLen || !bytes.HasPrefix(want, b) {
		t.Errorf("%x became %x", in, b)
	}
	_ = tm.String()
}
