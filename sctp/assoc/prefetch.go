package assoc

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
	"github.com/rddp-go/rddp/sctp/internal/tx"
)

// What is fetched is the groups of Assoc in front of the first path, and that path up to pathEnd.
// To send takes less: the groups up to what is counted of packets that came, and the path from
// pathSendOffset on.
const (
	sendEnd        = unsafe.Offsetof(Assoc{}.stats) + unsafe.Offsetof(counts{}.PacketsIn)
	pathOffset     = unsafe.Offsetof(Assoc{}.firstPath)
	pathSendOffset = pathOffset + unsafe.Offsetof(path{}.Path) + tx.PathSendOffset
	pathEnd        = pathOffset + unsafe.Offsetof(path{}.mtuSearch) + unsafe.Offsetof(pathMTU{}.Search) + pmtud.HotSize
)

// Prefetch makes the processor fetch what a packet looks at of the association first. PrefetchRest
// fetches the rest of that, as the processor fetches so much at a time. PrefetchNext fetches what
// it leads to, once that is there. None looks at more than where the halves lie, so anybody may
// call them at any time. They are for callers that handle many associations in turn, none of which
// is in a cache.
func (a *Assoc) Prefetch() { prefetch.Range(a, 0, pathOffset) }

// PrefetchRest is the other half of Prefetch.
func (a *Assoc) PrefetchRest() {
	prefetch.Range(a, pathOffset, pathEnd)
	if h := a.dataState.Load(); h != nil {
		h.sender.Prefetch()
		h.receiver.Prefetch()
	}
}

// PrefetchSend is Prefetch and PrefetchRest for a message to send, which looks at half as much. It
// leaves out the halves. The writer need not hold the association lock, and finding the halves
// would wait.
func (a *Assoc) PrefetchSend() {
	prefetch.Range(a, 0, sendEnd)
	prefetch.Range(a, pathSendOffset, pathEnd)
}

// PrefetchNext is the second step, for a packet.
func (a *Assoc) PrefetchNext() {
	if h := a.dataState.Load(); h != nil {
		h.sender.PrefetchNext()
		h.receiver.PrefetchNext()
	}
	prefetch.FieldAt[path](a, pathOffset).PrefetchController()
}

// PrefetchNextSend is the second step for a message to send, with the association lock held. It
// fetches what the message looks at of the halves too.
func (a *Assoc) PrefetchNextSend() {
	if h := a.dataState.Load(); h != nil {
		h.sender.PrefetchSend()
		h.receiver.PrefetchSend()
	}
	prefetch.FieldAt[path](a, pathOffset).PrefetchController()
}

// PrefetchLastSend is the third step, for a message to send.
func (a *Assoc) PrefetchLastSend() {
	if h := a.dataState.Load(); h != nil {
		h.sender.PrefetchNext()
	}
}
