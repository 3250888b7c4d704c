package count

import (
	"fmt"
	"testing"
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
	if a.Window != 8 {
		t.Errorf("what is no counter became %d", a.Window)
	}
	var got string
	Each(a, func(name string, v uint64) { got += fmt.Sprintf("%s=%d ", name, v) })
	if want := "A=2 C=4 D=6 Kinds[0]=8 Kinds[1]=10 Below.C=12 Below.D=14 "; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
