package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
	"github.com/rddp-go/rddp/sctp/wire"
)

// FetchMore is that of the association: the chunks that are acknowledged and sent next.
func (s *Sender) FetchMore() {
	g := ahead.In[ledger](s, unsafe.Offsetof(s.ledger))
	ahead.Ring(ahead.In[[]record](g, unsafe.Offsetof(g.recs)), ahead.In[wire.TSN](g, unsafe.Offsetof(g.base)), 2)
}

// FetchControl asks for what congestion control looks at.
func (p *Path) FetchControl() { ahead.Behind(controller(p), controlOctets) }

// controller is where the pointer to congestion control lies: behind the type of the interface.
func controller(p *Path) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(p), unsafe.Offsetof(p.cc)+unsafe.Sizeof(uintptr(0))))
}

// controlOctets is about what it looks at.
const controlOctets = 192
