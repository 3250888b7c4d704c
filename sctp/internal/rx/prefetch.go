package rx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
)

// A Receiver is laid out in the order of use: sending looks at it up to sendEnd, and a received
// packet up to packetEnd. From there to nextEnd lies what the next message is kept in, and whether
// others are kept.
const (
	reassemblyAt = unsafe.Offsetof(Receiver{}.reassembly)
	sendEnd      = reassemblyAt + unsafe.Offsetof(Reassembly{}.streams) + unsafe.Offsetof(streamStates{}.table)
	packetEnd    = reassemblyAt + unsafe.Offsetof(Reassembly{}.store) + unsafe.Offsetof(memoryStore{}.inline)
	nextEnd      = reassemblyAt + unsafe.Offsetof(Reassembly{}.byLastTSN) + unsafe.Offsetof(lastTSNIndex{}.lastTSNs)
)

// Prefetch asks for what a received packet needs.
func (r *Receiver) Prefetch() { prefetch.Range(r, 0, packetEnd) }

// PrefetchSend asks for what sending needs: a SACK may go along, and messages wait.
func (r *Receiver) PrefetchSend() { prefetch.Range(r, 0, sendEnd) }

// PrefetchNext is the second step for a received packet.
func (r *Receiver) PrefetchNext() { prefetch.Range(r, packetEnd, nextEnd) }
