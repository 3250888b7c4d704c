package tx

import (
	"unsafe"

	"github.com/rddp-go/rddp/internal/prefetch"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Prefetch prefetches the Sender for the association.
func (s *Sender) Prefetch() { prefetch.Range(s, 0, unsafe.Sizeof(*s)) }

// PrefetchSend prefetches what sending a message looks at.
func (s *Sender) PrefetchSend() {
	prefetch.Range(s, 0, unsafe.Offsetof(s.outstanding)+unsafe.Offsetof(s.outstanding.memoryOctets))
}

// PathSendOffset is where in a Path it begins what sending a message looks at.
const PathSendOffset = unsafe.Offsetof(Path{}.rttEst) + unsafe.Offsetof(rttEstimator{}.rto)

// PrefetchNext prefetches the record of the chunk that is acknowledged, or sent, next.
func (s *Sender) PrefetchNext() {
	g := prefetch.FieldAt[outstanding](s, unsafe.Offsetof(s.outstanding))
	prefetch.RingElements(prefetch.FieldAt[[]chunkRecord](g, unsafe.Offsetof(g.chunkRing)),
		prefetch.FieldAt[wire.TSN](g, unsafe.Offsetof(g.firstUnacked)), 1)
}

// PrefetchController prefetches what congestion control looks at.
func (p *Path) PrefetchController() { prefetch.Pointee(controllerPointer(p), controllerPrefetchOctets) }

// controllerPointer is where the pointer to congestion control lies: behind the type of the
// interface.
func controllerPointer(p *Path) *unsafe.Pointer {
	return (*unsafe.Pointer)(unsafe.Add(unsafe.Pointer(p), unsafe.Offsetof(p.cc)+unsafe.Sizeof(uintptr(0))))
}

// controllerPrefetchOctets is what congestion control looks at while cwnd has room left.
const controllerPrefetchOctets = 64
