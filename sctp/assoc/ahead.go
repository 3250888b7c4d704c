package assoc

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// Fetch has the processor bring what a packet, or a message to send, looks at of the association first, FetchRest the rest of that, and FetchMore and FetchToSend what it leads to, once it is
// there. None looks at anything, so that anybody may call them at any time; they are for who handles many associations in turn, none of whose memory is in a cache.
func (a *Assoc) Fetch() { ahead.Part(a, 0, unsafe.Offsetof(a.sender)) }

// FetchRest is for a little later than Fetch, as the processor asks for so much at a time.
func (a *Assoc) FetchRest() { ahead.Part(a, unsafe.Offsetof(a.sender), unsafe.Offsetof(a.lives)) }

// FetchMore is the second step for a packet that has come, FetchLast the third.
func (a *Assoc) FetchMore() {
	a.FetchToSend()
	a.receiver.FetchMore()
}

// FetchToSend is the second step for a message to send.
func (a *Assoc) FetchToSend() {
	ahead.In[tx.Sender](a, unsafe.Offsetof(a.sender)).FetchMore()
	ahead.In[path](a, unsafe.Offsetof(a.first)).FetchControl()
}

// FetchLast is the third step of Fetch.
func (a *Assoc) FetchLast() { a.receiver.FetchLast() }
