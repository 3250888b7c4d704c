// Package ddp_test fuzzes package ddp: the header codec, placement of arbitrary segments checked octet by
// octet against a model, and whole transfers.
package ddp_test

import (
	"bytes"
	"testing"

	"github.com/rddp-go/rddp/ddp"
)

// FuzzHeader checks that every header that is long enough survives reading and writing, apart from the
// version and the reserved bits, which a sender sets by itself (RFC 5041 section 4.1).
func FuzzHeader(f *testing.F) {
	f.Add([]byte{0xC1, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3})
	f.Add([]byte{0x41, 1, 2, 3, 4, 5, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 5, 0xCA, 9})
	f.Fuzz(func(t *testing.T, b []byte) {
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
	})
}
