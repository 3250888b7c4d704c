package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestDataHasItsOctetsAndFields(t *testing.T) {
	// req 9260-3.3.1-1
	// req 9260-3.3.1-6
	// req 9260-3.3.1-10
	header := wire.AppendDataHeader(nil, wire.DataFields{
		Flags: wire.FlagB | wire.FlagE | wire.FlagI, TSN: 0x01020304, Stream: 5, SSN: 6, PPID: 16, PayloadLen: 1,
	})
	// One octet of user data has Length 17; PPID 16 is the octets 00 00 00 10 (req 9260-3.3.1-9).
	wantOctets(t, header, "000b0011 01020304 0005 0006 00000010")
	b := append(append(header, 'x'), wire.Padding(1)...)
	wantOctets(t, b[wire.DataHeaderLen:], "78 000000")

	d := parseOne(t, wire.AsData, b)
	check.Equal(t, "TSN", d.TSN(), 0x01020304)
	check.Equal(t, "Stream", d.Stream(), 5)
	check.Equal(t, "SSN", d.SSN(), 6)
	check.Equal(t, "PPID", d.PPID(), 16)
	check.Equal(t, "Payload", string(d.Payload()), "x")
}

func TestDataFlags(t *testing.T) {
	// req 9260-3.3.1-1
	for _, c := range []struct {
		name       string
		octet      string
		i, u, b, e bool
	}{
		{"none: middle fragment", "00", false, false, false, false},
		{"I", "08", true, false, false, false},
		{"U", "04", false, true, false, false},
		{"B: first fragment", "02", false, false, true, false},
		{"E: last fragment", "01", false, false, false, true},
		{"reserved bits are ignored", "f0", false, false, false, false}, // req 9260-3.3.1-2
	} {
		t.Run(c.name, func(t *testing.T) {
			raw := parseHex(t, "00"+c.octet+"0011 00000000 00000000 00000000 78")
			d := parseOne(t, wire.AsData, raw)
			check.Equal(t, "I", d.I(), c.i)
			check.Equal(t, "U", d.U(), c.u)
			check.Equal(t, "B", d.B(), c.b)
			check.Equal(t, "E", d.E(), c.e)
			check.Equal(t, "Flags", d.Flags(), raw[1]&0x0f)
		})
	}
	// req 9260-3.3.1-2
	check.Equal(t, "reserved bits as sent",
		(wire.AppendDataHeader(nil, wire.DataFields{Flags: 0xff, PayloadLen: 1}))[1]&0xf0, 0)
}

func TestDataSizes(t *testing.T) {
	check.Fails(wire.AsData(onlyChunk(t, parseHex(t, "0003000f 00000001 00000000 000000 00"))))(t, "error",
		wire.ErrChunkLength)

	// The TSN of an empty chunk is what the ABORT about it reports.
	d := parseOne(t, wire.AsData, parseHex(t, "00030010 00000009 00000000 00000000"))
	check.Equal(t, "octets of user data", len(d.Payload()), 0)
	check.Equal(t, "TSN", d.TSN(), 9)

	b := wire.AppendDataHeader(nil, wire.DataFields{PayloadLen: wire.MaxDataPayload})
	d = parseOne(t, wire.AsData, append(b, make([]byte, wire.MaxDataPayload)...))
	check.Equal(t, "most user data", len(d.Payload()), 65519)
}
