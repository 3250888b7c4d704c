package sctp

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
)

// An association takes 4096 octets of the runtime's, of which 8 say where its pointers are. With
// one more it took 4864, and there may be a million.
func TestSizeOfAnAssociation(t *testing.T) {
	if strconv.IntSize < 64 {
		return // it is smaller there
	}
	check.That(t, unsafe.Sizeof(Conn{}) <= 4096-8, "%d octets", unsafe.Sizeof(Conn{}))
}
