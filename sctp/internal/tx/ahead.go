package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Fetch is that of the association.
func (s *Sender) Fetch() { ahead.Part(s, unsafe.Offsetof(s.sink), unsafe.Sizeof(*s)) }

// FetchToSend is that of the association.
func (s *Sender) FetchToSend() {
	ahead.Part(s, sendFetched, unsafe.Offsetof(s.ledger)+unsafe.Offsetof(s.ledger.octets))
}

// sendFetched is where in a Sender it begins what sending a message looks at.
const sendFetched = unsafe.Offsetof(Sender{}.later) + unsafe.Offsetof(later{}.on)

// PathToSend is where in a Path it begins what sending a message looks at.
const PathToSend = unsafe.Offsetof(Path{}.est) + unsafe.Offsetof(estimator{}.rto)

// FetchMore is that of the association: the chunk that is acknowledged, or sent, next.
func (s *Sender) FetchMore() {
	g := ahead.In[ledger](s, unsafe.Offsetof(s.ledger))
	ahead.Ring(ahead.In[[]record](g, unsafe.Offsetof(g.recs)), ahead.In[wire.TSN](g, unsafe.Offsetof(g.base)), 1)
}

// FetchControl asks for what congestion control looks at.
func (p *Path) FetchControl() { ahead.Behind(controller(p), controlOctets) }

// controller is where the pointer to congestion control lies: behind the type of the interface.
func controller(p *Path) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(p), unsafe.Offsetof(p.cc)+unsafe.Sizeof(uintptr(0))))
}

// controlOctets is what it looks at while it has more room than is used.
const controlOctets = 64
