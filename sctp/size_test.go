package sctp

import (
	"strconv"
	"testing"
	"unsafe"

	"github.com/rddp-go/rddp/internal/check"
)

// A Conn takes 1024 octets of the runtime's, of which 8 say where its pointers are; the next size is 1152.
func TestSizeOfAConn(t *testing.T) {
	if strconv.IntSize < 64 {
		return // it is smaller there
	}
	check.That(t, unsafe.Sizeof(Conn{}) <= 1024-8, "%d octets", unsafe.Sizeof(Conn{}))
}
