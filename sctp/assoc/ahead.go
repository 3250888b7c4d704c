package assoc

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// Fetch has the processor bring what a packet looks at of the association first, FetchRest the rest of that, as it asks for so much at a time, and FetchMore what it leads
// to, once that is there. None looks at more than where the halves lie, so that anybody may call them at any time; they are for who handles many associations in turn, none of whose
// memory is in a cache.
func (a *Assoc) Fetch() { ahead.Part(a, 0, unsafe.Offsetof(a.first)) }

// FetchRest is the other half of Fetch.
func (a *Assoc) FetchRest() {
	ahead.Part(a, unsafe.Offsetof(a.first)+unsafe.Offsetof(a.first.heard), pathFetched)
	if h := a.halves.Load(); h != nil {
		h.sender.Fetch()
		h.receiver.Fetch()
	}
}

// FetchToSend is Fetch and FetchRest for a message to send, which looks at half as much, but for the halves: who writes a message need not have taken the gate, and to find them would wait.
func (a *Assoc) FetchToSend() {
	ahead.Part(a, 0, unsafe.Offsetof(a.stats)+unsafe.Offsetof(a.stats.PacketsIn))
	ahead.Part(a, unsafe.Offsetof(a.first)+unsafe.Offsetof(a.first.Path)+tx.PathToSend, pathFetched)
}

// pathFetched is where what they look at of the first path ends.
const pathFetched = unsafe.Offsetof(Assoc{}.first) + unsafe.Offsetof(path{}.mtu) + unsafe.Offsetof(pathMTU{}.Search) + pmtud.Often

// FetchMore is the second step, for a packet.
func (a *Assoc) FetchMore() {
	if h := a.halves.Load(); h != nil {
		h.sender.FetchMore()
		h.receiver.FetchMore()
	}
	ahead.In[path](a, unsafe.Offsetof(a.first)).FetchControl()
}

// FetchMoreToSend is the second step for a message to send, behind the gate: what it looks at of the halves too.
func (a *Assoc) FetchMoreToSend() {
	if h := a.halves.Load(); h != nil {
		h.sender.FetchToSend()
		h.receiver.FetchToSend()
	}
	ahead.In[path](a, unsafe.Offsetof(a.first)).FetchControl()
}

// FetchLastToSend is the third step, for a message to send.
func (a *Assoc) FetchLastToSend() {
	if h := a.halves.Load(); h != nil {
		h.sender.FetchMore()
	}
}
