package ddp

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestTaggedHeaderOctets(t *testing.T) {
	// req 5041-4.1-1, 5041-4.1-8, 5041-4.1-10, 5041-4.2-1: T, L, Rsvd 0, DV 1; then RsvdULP, STag,
	// TO.
	want := []byte{0xC1, 0xAB, 0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}
	b := bytes.Repeat([]byte{0xFF}, TaggedHeaderLen)
	n := Tagged{Last: true, Rsvd: 0xAB, STag: 0x01020304, TO: 0x1112131415161718}.Put(b)
	must.That(t, n == 14 && bytes.Equal(b, want), "header % x, want % x", b[:n], want)
	v := TaggedView(append(want, 0x99))
	c := v.Control()
	check.That(t, c.Tagged() && c.Last() && c.Version() == 1, "control %#x", c)
	check.That(t, v.RsvdULP() == 0xAB && v.STag() == 0x01020304 && v.TO() == 0x1112131415161718,
		"fields %x %x %x", v.RsvdULP(), v.STag(), v.TO())
	check.Slice(t, "payload", v.Payload(), []byte{0x99})
	(Tagged{}).Put(b)
	check.Equal(t, "control of a middle segment", b[0], 0x81)
}

func TestUntaggedHeaderOctets(t *testing.T) {
	// req 5041-4.1-1, 5041-4.1-8, 5041-4.1-10, 5041-4.3-1: T 0; then RsvdULP (5 octets), QN, MSN,
	// MO.
	want := []byte{0x41, 0xA1, 0xA2, 0xA3, 0xA4, 0xA5, 0x10, 0, 0, 2, 0xFF, 0xFF, 0xFF, 0xFE, 0, 0, 0x05, 0xCA}
	b := bytes.Repeat([]byte{0xFF}, UntaggedHeaderLen)
	h := Untagged{Last: true, Rsvd: [5]byte{0xA1, 0xA2, 0xA3, 0xA4, 0xA5}, QN: 0x10000002, MSN: 0xFFFFFFFE, MO: 1482}
	must.That(t, h.Put(b) == 18 && bytes.Equal(b, want), "header % x, want % x", b, want)
	v := UntaggedView(append(want, 7, 8))
	c := v.Control()
	check.That(t, !c.Tagged() && c.Last() && c.Version() == 1, "control %#x", c)
	check.That(t, v.RsvdULP() == h.Rsvd && v.QN() == h.QN && v.MSN() == 0xFFFFFFFE && v.MO() == 1482,
		"fields %x %d %d %d", v.RsvdULP(), v.QN(), v.MSN(), v.MO())
	check.Slice(t, "payload", v.Payload(), []byte{7, 8})
	h.Last = false
	h.Put(b)
	check.Equal(t, "control of a middle segment", b[0], 0x01)
}
