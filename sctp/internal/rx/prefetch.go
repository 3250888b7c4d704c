package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
)

// Prefetch asks for what a received packet needs.
func (r *Receiver) Prefetch() { prefetch.Range(r, unsafe.Offsetof(r.tracker), inlineOffset) }

// PrefetchSend asks for what sending needs: a SACK may go along, and messages wait.
func (r *Receiver) PrefetchSend() {
	prefetch.Range(r, unsafe.Offsetof(r.tracker), unsafe.Offsetof(r.reassembly)+
		unsafe.Offsetof(r.reassembly.maxMessage))
}

// PrefetchNext asks for what the next message is kept in, and whether others are kept.
func (r *Receiver) PrefetchNext() {
	prefetch.Range(r, inlineOffset, unsafe.Offsetof(r.reassembly)+unsafe.Offsetof(r.reassembly.byLastTSN)+
		unsafe.Offsetof(r.reassembly.byLastTSN.lastTSNs))
}

// inlineOffset is the offset of the inline piece in a Receiver.
const inlineOffset = unsafe.Offsetof(Receiver{}.reassembly) + unsafe.Offsetof(Reassembly{}.store) +
	unsafe.Offsetof(pieceStore{}.inlinePiece)
