package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
)

// FetchMore is that of the association: the chunks that are acknowledged and sent next.
func (s *Sender) FetchMore() { ahead.Ring(&s.ledger.recs, &s.ledger.base, 2) }

// FetchControl asks for what congestion control looks at.
func (p *Path) FetchControl() { ahead.Behind(controller(p), controlOctets) }

// controller is where the pointer to congestion control lies: behind the type of the interface.
func controller(p *Path) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(p), unsafe.Offsetof(p.cc)+unsafe.Sizeof(uintptr(0))))
}

// controlOctets is about what it looks at.
const controlOctets = 192
