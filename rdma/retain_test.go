package rdma

import (
	"runtime"
	"testing"
	"weak"

	"github.com/rddp-go/rddp/internal/test/must"
)

// An association that has ended is kept by its QPs alone, so that it goes with them, with all
// memory that they hold.
func TestEndedAssociationIsNotKept(t *testing.T) {
	x := newLab(t, nil)
	a, b := x.join(nil)
	b.recv(1, 0, 100)
	a.post(SendWR{Op: OpSend, SGL: []SGE{a.mr.SGE(0, 10)}})
	a.good()
	b.good()
	must.OK(t, a.qp.Disconnect(ctx(t)))
	must.OK(t, x.a.Wait(ctx(t)))
	w := weak.Make(a.qp.peer.Load())
	a.qp.peer.Store(nil) // as if the program had let go of the QP
	a.qp.session = nil
	for late := ctx(t); w.Value() != nil; runtime.GC() {
		must.That(t, late.Err() == nil, "the association is kept")
	}
}
