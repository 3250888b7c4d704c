package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestCommonHeaderHasItsOctetsAndFields(t *testing.T) {
	// req 9260-3.1-1
	// req 9260-3-3
	b := wire.AppendHeader(nil, 5000, 6000, 0x12345678)
	wantOctets(t, b, "1388 1770 12345678 00000000")
	p := must.Get(wire.ParsePacket(b))(t)
	check.Equal(t, "SrcPort", p.SrcPort(), 5000)
	check.Equal(t, "DstPort", p.DstPort(), 6000)
	check.Equal(t, "VTag", p.VTag(), 0x12345678)
	check.Equal(t, "Checksum", p.Checksum(), 0)
	cs := p.Chunks()
	c, ok := cs.Next()
	check.That(t, !ok && cs.Err() == nil, "a bare header has chunk %x, error %v", c, cs.Err())
}

func TestShortHeader(t *testing.T) {
	for n := range wire.CommonHeaderLen {
		p, err := wire.ParsePacket(make([]byte, n))
		wantErr(t, err, wire.ErrPacketShort)
		check.That(t, p == nil, "%d octets made a packet", n)
	}
}
