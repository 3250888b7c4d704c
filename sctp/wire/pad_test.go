package wire_test

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestPadHasItsOctetsAndFields(t *testing.T) {
	// req 4820-3-1
	// req 4820-3-2
	for _, c := range []struct {
		name       string
		size, want int
	}{
		{"smallest", 4, 4},
		{"a step more", 8, 8},
		{"rounded down", 11, 8},
		{"below the smallest", 0, 4},
		{"negative", -4, 4},
		{"largest", 65536, 65536},
		{"past the largest", 70000, 65536},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := wire.AppendPad(nil, c.size)
			check.Equal(t, "octets", len(b), c.want)
			wantOctets(t, wire.AppendPadHeader(nil, c.want-4), fmt.Sprintf("8400 %04x", min(c.want, wire.MaxChunkLen)))
			check.Equal(t, "flags", b[1], 0)
			check.Equal(t, "octets of Padding Data", len(parseOne(t, wire.AsPad, b).Padding()),
				min(c.want, wire.MaxChunkLen)-4)
		})
	}
	wantOctets(t, wire.AppendPad(nil, 12), "8400000c 00000000 00000000")
}

// PAD parameters enlarge an INIT in steps of 4 octets.
func TestPaddingParam(t *testing.T) {
	wantOctets(t, wire.AppendPaddingParam(nil, 12), "8005000c 00000000 00000000")
	wantOctets(t, wire.AppendPaddingParam(nil, 4), "80050004")
	check.Equal(t, "largest", len(wire.AppendPaddingParam(nil, 65536)), 65536)
}
