package assoc

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/ahead"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// Fetch has the processor bring what a packet, or a message to send, looks at of the association, and FetchMore what that leads to, once it is there. Neither looks at anything, so
// that anybody may call them at any time; they are for who handles many associations in turn, none of whose memory is in a cache.
func (a *Assoc) Fetch() {
	ahead.First(a, unsafe.Offsetof(a.lives))
}

// FetchMore is the second step of Fetch, and FetchLast the third.
func (a *Assoc) FetchMore() {
	ahead.Behind(&a.sackPath, int(unsafe.Sizeof(path{})))
	a.sender.FetchMore()
	a.receiver.FetchMore()
}

// FetchLast is the third step of Fetch.
func (a *Assoc) FetchLast() {
	ahead.Beyond(&a.sackPath, unsafe.Offsetof(path{}.Path)+tx.Controls, controlOctets)
}

// controlOctets is about what congestion control of a path looks at.
const controlOctets = 192
