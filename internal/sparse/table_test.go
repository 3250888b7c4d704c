package sparse

import (
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
)

// What a table takes follows what is used: the highest number costs a directory and a page, all of
// them what a slice does.
func TestTableTakesMemoryForWhatIsUsedOnly(t *testing.T) {
	var x Table[uint32]
	const page, dir = 64 * 4, 1024 * 8
	check := func(what string, want int) {
		t.Helper()
		check.Equal(t, what+": octets", x.Held(), want)
		walk := int(unsafe.Sizeof(x.pages[0])) * cap(x.pages)
		for _, p := range x.pages {
			if p != nil {
				walk += page
			}
		}
		check.Equal(t, what+": octets are there", walk, want)
	}
	if x.At(1) != nil || x.At(65535) != nil {
		t.Error("an empty table has something")
	}
	*x.Use(3) = 33
	check("a low number", page+8)
	*x.Use(65534) = 34
	check("a high one beside it", 2*page+dir)
	*x.Use(65535) = 35
	check("its neighbour", 2*page+dir)
	if *x.At(3) != 33 || *x.At(65534) != 34 || *x.At(0) != 0 || x.At(64) != nil {
		t.Error("a number lost what it had")
	}
	n := 0
	for k, v := range x.All {
		if n++; *v != 0 && *v != map[uint16]uint32{3: 33, 65534: 34, 65535: 35}[k] {
			t.Errorf("%d has %d", k, *v)
		}
	}
	if n != 128 {
		t.Errorf("%d numbers in two pages", n)
	}
	if *x.Use(0) = 1; x.Held() != 2*page+dir || *x.At(0) != 1 {
		t.Error("number 0 takes memory")
	}
	for k := range 1 << 16 {
		*x.Use(uint16(k))++
	}
	check("all", 1024*page+dir)
}
