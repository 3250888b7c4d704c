package rdmap

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// checkSegment holds for every DDP header that is long enough, apart from the version and the
// reserved bits, which a sender sets by itself (RFC 5041 section 4.1).
func checkSegment(t *testing.T, b []byte) {
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
	// The RDMAP control field has two reserved bits between version and opcode (RFC 5040 section
	// 4.1).
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

// atomicRequest: the reserved bits are 0 again, and so is what a FetchAdd does not use, or all
// ones.
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
func checkTerminate(t *testing.T, in []byte) {
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
