package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
)

// Prefetch is that of the association.
func (r *Receiver) Prefetch() { prefetch.Range(r, unsafe.Offsetof(r.tracker), inlineOffset) }

// PrefetchSend is that of the association: a SACK may go along, and messages wait.
func (r *Receiver) PrefetchSend() {
	prefetch.Range(r, unsafe.Offsetof(r.tracker), unsafe.Offsetof(r.reassembly)+unsafe.Offsetof(r.reassembly.maxMessage))
}

// PrefetchNext is that of the association: what the next message is kept in, and whether others
// are.
func (r *Receiver) PrefetchNext() {
	prefetch.Range(r, inlineOffset, unsafe.Offsetof(r.reassembly)+unsafe.Offsetof(r.reassembly.byLastTSN)+unsafe.Offsetof(r.reassembly.byLastTSN.lastTSNs))
}

// inlineOffset is where in a Receiver that begins.
const inlineOffset = unsafe.Offsetof(Receiver{}.reassembly) + unsafe.Offsetof(Reassembly{}.store) + unsafe.Offsetof(pieceStore{}.inlinePiece)
