package wire_test

import (
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The example of RFC 9260 section 3.3.4: TSNs 10 to 12, 14, 15 and 17 have arrived, a_rwnd is 4660.
func TestSackExample(t *testing.T) {
	// req 9260-3.3.4-5
	// req 9260-3.3.4-1
	b := wire.AppendSack(nil, wire.SackFields{CumTSN: 12, ARwnd: 4660,
		Gaps: []wire.GapBlock{{Start: 2, End: 3}, {Start: 5, End: 5}}})
	wantOctets(t, b, "03000018 0000000c 00001234 0002 0000 0002 0003 0005 0005")
	s := parseOne(t, wire.AsSack, b)
	check.Equal(t, "CumTSN", s.CumTSN(), 12)
	check.Equal(t, "ARwnd", s.ARwnd(), 4660)
	check.Equal(t, "NumGaps", s.NumGaps(), 2)
	check.Equal(t, "NumDups", s.NumDups(), 0)
	// req 9260-3.3.4-4
	for i, want := range [][2]wire.TSN{{14, 15}, {17, 17}} {
		start, end := s.Gap(i)
		check.Equal(t, "first TSN of the block", s.CumTSN().Add(uint32(start)), want[0])
		check.Equal(t, "last TSN of the block", s.CumTSN().Add(uint32(end)), want[1])
	}
}

func TestSackDuplicates(t *testing.T) {
	// req 9260-3-3, 9260-3.3.4-1
	f := wire.SackFields{CumTSN: 0xffffffff, ARwnd: 1500, Gaps: []wire.GapBlock{{Start: 2, End: 2}},
		Dups: []wire.TSN{19, 19}}
	b := wire.AppendSack(nil, f)
	wantOctets(t, b, "0300001c ffffffff 000005dc 0001 0002 0002 0002 00000013 00000013")
	check.Equal(t, "SackLen", wire.SackLen(1, 2), len(b))
	s := parseOne(t, wire.AsSack, b)
	check.Equal(t, "NumDups", s.NumDups(), 2)
	check.Equal(t, "first duplicate", s.Dup(0), 19)
	check.Equal(t, "second duplicate", s.Dup(1), 19)
}

func TestSackLengths(t *testing.T) {
	for _, c := range []struct {
		name, raw string
		err       error
	}{
		{"counts fit", "03ff0014 00000000 00000000 0000 0001 00000000", nil},
		{"no room for the counts", "0300000c 00000000 00000000", wire.ErrChunkLength},
		{"gap block past the end", "03000010 00000000 00000000 0001 0000", wire.ErrChunkLength},
		{"duplicate past the end", "03000014 00000000 00000000 0001 0001 00000000", wire.ErrChunkLength},
		{"counts of 65535", "03000014 00000000 00000000 ffff ffff 00000000", wire.ErrChunkLength},
		{"octets that nothing counts", "03000014 00000000 00000000 0000 0000 00000000", wire.ErrChunkLength},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := wire.AsSack(onlyChunk(t, parseHex(t, c.raw)))
			if c.err == nil {
				check.Equal(t, "error", err, nil)
			} else {
				wantErr(t, err, c.err)
			}
		})
	}
}

// A SACK that cannot hold everything keeps the gap blocks rather than the duplicates.
func TestSackIsCutToFit(t *testing.T) {
	b := wire.AppendSack(nil, wire.SackFields{Gaps: make([]wire.GapBlock, 16000), Dups: make([]wire.TSN, 16000)})
	s := parseOne(t, wire.AsSack, b)
	check.Equal(t, "NumGaps", s.NumGaps(), 16000)
	check.Equal(t, "NumDups", s.NumDups(), 379)

	s = parseOne(t, wire.AsSack, wire.AppendSack(nil, wire.SackFields{Gaps: make([]wire.GapBlock, 70000)}))
	check.Equal(t, "NumGaps", s.NumGaps(), 16379)
}
