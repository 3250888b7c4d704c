package assoc

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// Prefetch has the processor bring what a packet looks at of the association first, PrefetchRest
// the rest of that, as it asks for so much at a time, and PrefetchNext what it leads to, once that
// is there. None looks at more than where the halves lie, so that anybody may call them at any
// time; they are for who handles many associations in turn, none of whose memory is in a cache.
func (a *Assoc) Prefetch() { prefetch.Range(a, 0, unsafe.Offsetof(a.firstPath)) }

// PrefetchRest is the other half of Fetch.
func (a *Assoc) PrefetchRest() {
	prefetch.Range(a, unsafe.Offsetof(a.firstPath)+unsafe.Offsetof(a.firstPath.lastLocalAddr), pathPrefetchEnd)
	if h := a.dataState.Load(); h != nil {
		h.sender.Prefetch()
		h.receiver.Prefetch()
	}
}

// PrefetchSend is Fetch and PrefetchRest for a message to send, which looks at half as much, but
// for the halves: who writes a message need not have taken the gate, and to find them would wait.
func (a *Assoc) PrefetchSend() {
	prefetch.Range(a, 0, unsafe.Offsetof(a.stats)+unsafe.Offsetof(a.stats.PacketsIn))
	prefetch.Range(a, unsafe.Offsetof(a.firstPath)+unsafe.Offsetof(a.firstPath.Path)+tx.PathSendOffset, pathPrefetchEnd)
}

// pathPrefetchEnd is where what they look at of the first path ends.
const pathPrefetchEnd = unsafe.Offsetof(Assoc{}.firstPath) + unsafe.Offsetof(path{}.mtuSearch) + unsafe.Offsetof(pathMTU{}.Search) + pmtud.HotSize

// PrefetchNext is the second step, for a packet.
func (a *Assoc) PrefetchNext() {
	if h := a.dataState.Load(); h != nil {
		h.sender.PrefetchNext()
		h.receiver.PrefetchNext()
	}
	prefetch.FieldAt[path](a, unsafe.Offsetof(a.firstPath)).PrefetchController()
}

// PrefetchNextSend is the second step for a message to send, behind the gate: what it looks at of
// the halves too.
func (a *Assoc) PrefetchNextSend() {
	if h := a.dataState.Load(); h != nil {
		h.sender.PrefetchSend()
		h.receiver.PrefetchSend()
	}
	prefetch.FieldAt[path](a, unsafe.Offsetof(a.firstPath)).PrefetchController()
}

// PrefetchLastSend is the third step, for a message to send.
func (a *Assoc) PrefetchLastSend() {
	if h := a.dataState.Load(); h != nil {
		h.sender.PrefetchNext()
	}
}
