package wire_test

import (
	"bytes"
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

// A packet has a DTLS chunk alone if nothing but its padding is behind that.
func TestLoneDTLS(t *testing.T) {
	header := make([]byte, wire.CommonHeaderLen)
	chunk := append(wire.AppendDTLSHeader(nil, true, 4), 1, 2, 3, 4) // 9 octets
	for _, c := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"alone", chunk, true},
		{"with its padding", append(bytes.Clone(chunk), 0, 0, 0), true},
		{"with more", append(bytes.Clone(chunk), 0, 0, 0, 0), false},
		{"of another type", append([]byte{byte(wire.ChunkData)}, chunk[1:]...), false},
		{"longer than the packet", append([]byte{chunk[0], 0, 0, 10}, chunk[4:]...), false},
		{"of no record", []byte{chunk[0], 0, 0, 5, 0}, false},
		{"of a length below its header", append([]byte{chunk[0], 0, 0, 3}, chunk[4:]...), false},
		{"nothing", nil, false},
	} {
		d, ok := wire.LoneDTLS(append(bytes.Clone(header), c.b...))
		check.Equal(t, c.name, ok, c.ok)
		check.That(t, !ok || bytes.Equal(d, chunk) && d.Restart(), "%s: % x", c.name, d)
	}
}
