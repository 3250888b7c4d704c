package count

import (
	"fmt"
	"testing"

	"github.com/rddp-go/rddp/internal/check"
)

type inner struct{ C, D uint64 }

type stats struct {
	A uint64
	inner
	Kinds  [2]uint64
	Below  inner
	Window int // no counter
}

func TestAddAndEach(t *testing.T) {
	a := stats{A: 1, inner: inner{2, 3}, Kinds: [2]uint64{4, 5}, Below: inner{6, 7}, Window: 8}
	b := a
	Add(&a, &b)
	check.Equal(t, "what is no counter", a.Window, 8)
	var got string
	Each(a, func(name string, v uint64) { got += fmt.Sprintf("%s=%d ", name, v) })
	check.Equal(t, "counters", got, "A=2 C=4 D=6 Kinds[0]=8 Kinds[1]=10 Below.C=12 Below.D=14 ")
}
