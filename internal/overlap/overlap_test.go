package overlap

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
)

func TestSlicesOverlapWhereTheyShareAnOctet(t *testing.T) {
	b := make([]byte, 10)
	for _, row := range []struct {
		a, b []byte
		want bool
	}{
		{b[2:5], b[2:5], true}, {b[2:5], b[4:6], true}, {b[4:6], b[2:5], true}, {b, b[9:], true}, {b[9:], b, true},
		{b[2:5], b[5:], false}, {b[5:], b[2:5], false}, {b[:1], b[9:], false}, {b[9:], b[:1], false},
		{b[3:3], b, false}, {b, b[3:3], false}, {nil, b, false}, {b, nil, false}, {b, make([]byte, 10), false},
	} {
		check.Equal(t, fmt.Sprintf("%d octets and %d", len(row.a), len(row.b)), Slices(row.a, row.b), row.want)
	}
}
