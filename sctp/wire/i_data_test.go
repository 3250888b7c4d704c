package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestIDataHasItsOctetsAndFields(t *testing.T) {
	// req 8260-2.1-1
	// req 8260-2.1-2
	f := wire.IDataFields{TSN: 0x01020304, Stream: 5, MID: 0x0a0b0c0d, PPID: 16, FSN: 9, PayloadLen: 2}
	for _, c := range []struct {
		name  string
		flags uint8
		want  string
		ppid  bool
		fsn   wire.FSN
	}{
		{"first fragment carries the PPID", wire.FlagB, "40020016 01020304 0005 0000 0a0b0c0d 00000010", true, 0},
		{"later fragment carries the FSN", wire.FlagE, "40010016 01020304 0005 0000 0a0b0c0d 00000009", false, 9},
		{"unordered and immediate", wire.FlagU | wire.FlagI | wire.FlagB | wire.FlagE, "400f0016 01020304 0005 0000 0a0b0c0d 00000010", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f.Flags = 0xf0 | c.flags
			b := wire.AppendIDataHeader(nil, f)
			wantOctets(t, b, c.want)
			d := parseOne(t, wire.AsIData, append(b, "hi\x00\x00"...))
			ppid, ok := d.PPID()
			check.Equal(t, "has a PPID", ok, c.ppid)
			if ok {
				check.Equal(t, "PPID", ppid, 16)
			}
			check.Equal(t, "FSN", d.FSN(), c.fsn)
			check.Equal(t, "TSN", d.TSN(), f.TSN)
			check.Equal(t, "Stream", d.Stream(), f.Stream)
			check.Equal(t, "MID", d.MID(), f.MID)
			check.Equal(t, "Flags", d.Flags(), c.flags)
			check.Equal(t, "I", d.I(), c.flags&wire.FlagI != 0)
			check.Equal(t, "U", d.U(), c.flags&wire.FlagU != 0)
			check.Equal(t, "B", d.B(), c.flags&wire.FlagB != 0)
			check.Equal(t, "E", d.E(), c.flags&wire.FlagE != 0)
			check.Equal(t, "Payload", string(d.Payload()), "hi")
			d[1] |= 0xf0
			check.Equal(t, "Flags with all reserved bits set", d.Flags(), c.flags)
		})
	}
}
