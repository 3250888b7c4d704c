package ddp

import (
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// slow is a device that is in the middle of a write until it is let go.
type slow struct {
	begun, proceed chan struct{}
	ended          atomic.Bool
}

// A piece that was revoked does not stand in the way of what goes to the one behind it.
func TestPlacementPassesByARevokedPiece(t *testing.T) {
	r := newRig(t)
	var g Gather
	var regs [2]*Region
	mem := make([]byte, 8)
	for i := range regs {
		regs[i] = r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(mem[4*i:]), Access: LocalWrite})
		p, err := r.Resolve(regs[i].STag(), 0, 4, LocalWrite)
		must.That(t, err == nil, "%v", err)
		g = append(g, p)
	}
	regs[0].Invalidate()
	err := g.scatterAt(4, []byte("here"))
	check.That(t, err == nil && string(mem[4:]) == "here", "%v, %q", err, mem)
}

func (s *slow) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }

func (s *slow) WriteAt(p []byte, _ int64) (int, error) {
	close(s.begun)
	<-s.proceed
	s.ended.Store(true)
	return len(p), nil
}

// Whoever takes a right away waits until nobody uses it any more.
func TestRevocationWaitsForTheWriteUnderWay(t *testing.T) {
	// req 5041-8.3.1-2, 5042-6.2.2-2
	for name, revoke := range map[string]func(*rig, *Region) error{
		"Invalidate": func(_ *rig, reg *Region) error { reg.Invalidate(); return nil },
		"Deregister": func(r *rig, reg *Region) error { return r.table.Deregister(reg) },
		"SetAccess":  func(r *rig, reg *Region) error { return r.table.SetAccess(reg, RemoteRead) },
		"Rebind": func(r *rig, reg *Region) error {
			return r.table.Rebind(reg, Bytes(make([]byte, 8)), 0, RemoteWrite)
		},
		"second time": func(_ *rig, reg *Region) error { reg.Invalidate(); reg.Invalidate(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			dev := &slow{begun: make(chan struct{}), proceed: make(chan struct{})}
			reg := r.registerRegion(t, Spec{PD: testPD, Mem: Device(dev, 8), Access: RemoteWrite})
			placed, revoked := make(chan struct{}), make(chan bool, 1)
			go func() {
				r.placeSegment(taggedSeg(true, 0, reg.STag(), 0, patternOf(8)))
				close(placed)
			}()
			<-dev.begun
			go func() {
				check.OK(t, revoke(r, reg))
				revoked <- dev.ended.Load()
			}()
			for range 1000 { // long enough for whoever does not wait
				runtime.Gosched()
			}
			select {
			case <-revoked:
				t.Fatal("it has returned in the middle of a write")
			default:
			}
			close(dev.proceed)
			check.That(t, <-revoked, "it has returned in the middle of a write")
			<-placed
		})
	}
}

// An access that was refused is over: nobody waits for it.
func TestRefusedAccessIsNotUnderWay(t *testing.T) {
	// req 5041-8.3-2
	r := newRig(t)
	foreign := r.registerRegion(t, Spec{PD: testPD + 1, Mem: Bytes(make([]byte, 8)), Access: RemoteWrite})
	weak := r.registerRegion(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 8)), Access: RemoteRead})
	for _, reg := range []*Region{foreign, weak} {
		must.That(t, r.placeSegment(taggedSeg(true, 0, reg.STag(), 0, patternOf(8))).Err != nil, "placed")
		done := make(chan struct{})
		go func() { reg.Invalidate(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("Invalidate waits for an access that was refused")
		}
	}
}
