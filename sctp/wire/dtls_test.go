package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestDTLSHasItsOctetsAndFields(t *testing.T) {
	for _, c := range []struct {
		name    string
		restart bool
		want    string
	}{
		{"primary", false, "4100000b 00 2b0102030405 00"},
		{"restart", true, "4101000b 00 2b0102030405 00"},
	} {
		t.Run(c.name, func(t *testing.T) {
			record := parseHex(t, "2b0102030405")
			b := append(wire.AppendDTLSHeader(nil, c.restart, len(record)), record...)
			b = append(b, wire.Padding(len(b))...)
			wantOctets(t, b, c.want)
			d := parseOne(t, wire.AsDTLS, b)
			check.Equal(t, "R", d.Restart(), c.restart)
			check.Slice(t, "record", d.Record(), record)
		})
	}
	stop, report := wire.ChunkDTLS.UnknownAction()
	check.That(t, stop && report, "to a host that does not know it: stop %v, report %v", stop, report)
}

// What the draft has ignored makes no difference.
func TestDTLSWithReservedBits(t *testing.T) {
	d := parseOne(t, wire.AsDTLS, parseHex(t, "41fe0006 ff 07 eeee"))
	check.Equal(t, "R", d.Restart(), false)
	check.Slice(t, "record", d.Record(), []byte{7})
}

func TestDTLSLengths(t *testing.T) {
	check.Fails(wire.AsDTLS(onlyChunk(t, parseHex(t, "41000004"))))(t, "error", wire.ErrChunkLength)
	check.Fails(wire.AsDTLS(onlyChunk(t, parseHex(t, "40000005 00000000"))))(t, "error", wire.ErrChunkType)
	check.Equal(t, "octets of the shortest record",
		len(parseOne(t, wire.AsDTLS, parseHex(t, "41000005 00000000")).Record()), 0)
}
