package attack

import (
	"reflect"
	"unsafe"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/heapsize"
	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// What an association may cost its host, whatever its peer sends.
const (
	// stepsByOctet is how many steps each octet pays for that has come, or gone, since the
	// association began, and stepsForNothing what an association may take beyond that.
	stepsByOctet    = 1
	stepsForNothing = 2000
	// stepsAtOnce is the most for one packet, which can release a window, or one timer.
	stepsAtOnce = 4_000
	// messageStepsAtOnce is that where a program takes messages. With I-DATA each message of a window
	// that it reads was in three trees.
	messageStepsAtOnce = 40_000

	heapPercent = 125      // of what an association says it holds, that there may be
	heapEach    = 16 << 10 // octets more
	weighEvery  = 64       // packets of attackers
)

// victimAssoc is an association of the victim's.
type victimAssoc interface {
	simulation.Conn
	stepsTaken() uint64 // what it has done
	stepsAtOnce() uint64
	held() int    // octets that it says it holds
	roots() []any // what it consists of
}

func (h *victimConn) stepsTaken() uint64  { return h.a.Steps() + h.mux.Steps() }
func (h *victimConn) stepsAtOnce() uint64 { return stepsAtOnce }
func (h *victimConn) held() int           { return h.a.Held() + h.mux.Held() }
func (h *victimConn) roots() []any        { return []any{h.a, h.mux} }

// checkWork holds what an association has done, with the last packet and in all, against what was
// paid for it. worked is what it had done when it was looked at last.
func (s *Simulation) checkWork(h victimAssoc, worked *uint64) {
	st, n := h.Assoc().Stats(), h.stepsTaken()
	paid := stepsByOctet*(st.OctetsIn+st.OctetsOut) + stepsForNothing
	if d := n - *worked; d > h.stepsAtOnce() {
		s.recordFailure("%d steps at once", d)
	}
	if n > paid {
		s.recordFailure("%d steps, and %d octets in and %d out have paid for %d", n, st.OctetsIn, st.OctetsOut, paid)
	}
	s.Worst.Steps = max(s.Worst.Steps, n-*worked)
	if n > stepsForNothing {
		s.Worst.ByOctet = max(s.Worst.ByOctet, float64(n-stepsForNothing)/float64(st.OctetsIn+st.OctetsOut))
	}
	*worked = n
}

// foreign are types of what no association holds: it only points there.
var foreign = map[reflect.Type]bool{
	reflect.TypeFor[Simulation](): true, reflect.TypeFor[victimConn](): true,
	reflect.TypeFor[messageConn](): true, reflect.TypeFor[victimQP](): true,
	reflect.TypeFor[simulation.Node](): true,
	reflect.TypeFor[rawio.Pool]():      true, reflect.TypeFor[ddp.Stream](): true, reflect.TypeFor[rdmap.QP](): true,
	reflect.TypeFor[assoc.Env](): true,
}

// checkHeld holds what each association keeps alive against what it says it holds.
func (s *Simulation) checkHeld() {
	theirs := func(p unsafe.Pointer) bool {
		at, m := uintptr(p), s.memory.octets
		return at-uintptr(unsafe.Pointer(&m[0])) < uintptr(len(m)) // of the program
	}
	for _, c := range s.victim.Conns() {
		h, ok := c.(victimAssoc)
		if !ok {
			continue
		}
		held := h.held()
		n := heapsize.Of(func(t reflect.Type) bool { return foreign[t] || simulation.IsTLS(t) }, theirs, h.roots()...)
		s.stats.Weighed++
		if n > held*heapPercent/100+heapEach {
			s.recordFailure("%d octets are kept alive by an association that says it holds %d", n, held)
		}
		s.Worst.Heap = max(s.Worst.Heap, float64(n-heapEach)/float64(held))
	}
}
