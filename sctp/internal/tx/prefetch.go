package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Prefetch is that of the association.
func (s *Sender) Prefetch() { prefetch.Range(s, unsafe.Offsetof(s.sink), unsafe.Sizeof(*s)) }

// PrefetchSend is that of the association.
func (s *Sender) PrefetchSend() {
	prefetch.Range(s, sendFieldsOffset, unsafe.Offsetof(s.outstanding)+unsafe.Offsetof(s.outstanding.memoryOctets))
}

// sendFieldsOffset is where in a Sender it begins what sending a message looks at.
const sendFieldsOffset = unsafe.Offsetof(Sender{}.pendingSack) + unsafe.Offsetof(pendingSack{}.active)

// PathSendOffset is where in a Path it begins what sending a message looks at.
const PathSendOffset = unsafe.Offsetof(Path{}.rttEst) + unsafe.Offsetof(rttEstimator{}.rto)

// PrefetchNext is that of the association: the chunk that is acknowledged, or sent, next.
func (s *Sender) PrefetchNext() {
	g := prefetch.FieldAt[outstanding](s, unsafe.Offsetof(s.outstanding))
	prefetch.RingElements(prefetch.FieldAt[[]chunkRecord](g, unsafe.Offsetof(g.chunkRing)), prefetch.FieldAt[wire.TSN](g, unsafe.Offsetof(g.firstUnacked)), 1)
}

// PrefetchController asks for what congestion control looks at.
func (p *Path) PrefetchController() { prefetch.Pointee(controllerPointer(p), controllerPrefetchOctets) }

// controllerPointer is where the pointer to congestion control lies: behind the type of the
// interface.
func controllerPointer(p *Path) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(p), unsafe.Offsetof(p.cc)+unsafe.Sizeof(uintptr(0))))
}

// controllerPrefetchOctets is what it looks at while it has more room than is used.
const controllerPrefetchOctets = 64
