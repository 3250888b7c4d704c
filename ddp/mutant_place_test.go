package ddp

import (
	"errors"
	"io"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// An access that needs two rights is not granted by one of them.
func TestEachRightIsNeeded(t *testing.T) {
	// req 5041-7.1-10
	r := newRig(t)
	for _, row := range []struct {
		name  string
		has   Access
		taken bool
	}{
		{"both", RemoteRead | RemoteWrite, true},
		{"one", RemoteRead, false},
		{"the other", RemoteWrite, false},
	} {
		reg := r.register(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 8)), Access: row.has})
		_, err := r.Resolve(reg.STag(), 0, 8, RemoteRead|RemoteWrite)
		if (err == nil) != row.taken || err != nil && err.Code != CodeInvalidSTag {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// slow is a device that is in the middle of a write until it is let go.
type slow struct {
	begun, goOn chan struct{}
	ended       atomic.Bool
}

func (s *slow) ReadAt([]byte, int64) (int, error) { return 0, io.EOF }
func (s *slow) WriteAt(p []byte, _ int64) (int, error) {
	close(s.begun)
	<-s.goOn
	s.ended.Store(true)
	return len(p), nil
}

// Whoever takes a right away waits until nobody uses it any more.
func TestRevocationWaitsForTheWriteUnderWay(t *testing.T) {
	// req 5041-8.3.1-2
	for name, revoke := range map[string]func(*rig, *Region) error{
		"Invalidate":  func(_ *rig, reg *Region) error { reg.Invalidate(); return nil },
		"Deregister":  func(r *rig, reg *Region) error { return r.table.Deregister(reg) },
		"SetAccess":   func(r *rig, reg *Region) error { return r.table.SetAccess(reg, RemoteRead) },
		"Rebind":      func(r *rig, reg *Region) error { return r.table.Rebind(reg, Bytes(make([]byte, 8)), 0, RemoteWrite) },
		"second time": func(_ *rig, reg *Region) error { reg.Invalidate(); reg.Invalidate(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			dev := &slow{begun: make(chan struct{}), goOn: make(chan struct{})}
			reg := r.register(t, Spec{PD: testPD, Mem: Device(dev, 8), Access: RemoteWrite})
			placed, revoked := make(chan struct{}), make(chan bool, 1)
			go func() {
				r.place(taggedSeg(true, 0, reg.STag(), 0, pattern(8)))
				close(placed)
			}()
			<-dev.begun
			go func() {
				if err := revoke(r, reg); err != nil {
					t.Error(err)
				}
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
			close(dev.goOn)
			if !<-revoked {
				t.Error("it has returned in the middle of a write")
			}
			<-placed
		})
	}
}

// An access that was refused is over: nobody waits for it.
func TestRefusedAccessIsNotUnderWay(t *testing.T) {
	// req 5041-8.3-2
	r := newRig(t)
	foreign := r.register(t, Spec{PD: testPD + 1, Mem: Bytes(make([]byte, 8)), Access: RemoteWrite})
	weak := r.register(t, Spec{PD: testPD, Mem: Bytes(make([]byte, 8)), Access: RemoteRead})
	for _, reg := range []*Region{foreign, weak} {
		if p := r.place(taggedSeg(true, 0, reg.STag(), 0, pattern(8))); p.Err == nil {
			t.Fatal("placed")
		}
		done := make(chan struct{})
		go func() { reg.Invalidate(); close(done) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Fatal("Invalidate waits for an access that was refused")
		}
	}
}

// generous has a buffer for every message, also for one that was delivered.
type generous struct {
	*recorder
	buf RecvBuffer
}

func (g *generous) Buffer(uint32, uint32, [5]byte) (*RecvBuffer, uint8) { return &g.buf, 0 }
func (g *generous) DeliverUntagged(qn, msn uint32, _ [5]byte, n uint32, _ *RecvBuffer) {
	g.add("untagged %d/%d: %d", qn, msn, n)
}

// A message that was delivered is not placed again, whatever the upper layer says of its buffer.
func TestDeliveredMessageIsNotPlacedAgain(t *testing.T) {
	// req 5041-7.1-5, 5041-5.3-5
	mem := make([]byte, 8)
	g := &generous{recorder: new(recorder)}
	var err error
	if g.buf, err = MakeRecvBuffer(gatherOf(mem), 0); err != nil {
		t.Fatal(err)
	}
	s := NewStream(StreamConfig{ID: testStream, PD: testPD, Table: NewTable(new(entropy)), ULP: g, Queues: 1})
	s.Attach(&lower{mulpdu: 1500})
	r := &rig{Stream: s}
	r.arrive(untaggedSeg(true, 0, 1, 0, []byte("first")))
	clear(mem) // the user's again
	p := r.place(untaggedSeg(true, 0, 1, 0, []byte("again")))
	if p.Err == nil || p.Err.Type != TypeUntagged || p.Err.Code != CodeMSNRange || !zero(mem) {
		t.Errorf("%v, memory %q", p.Err, mem)
	}
}

// A receive buffer that says more than its memory has, be it that its region was given other memory, is a
// local error, and no octet of the segment is written.
func TestBufferThatHasLessMemoryTakesNothing(t *testing.T) {
	// req 5041-7.2-1
	mem := make([]byte, 8)
	r := newRig(t)
	reg := r.register(t, Spec{PD: testPD, Mem: Bytes(mem), Access: LocalWrite})
	rebound, err := MakeRecvBuffer(Gather{{Region: reg, Len: 8}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.table.Rebind(reg, Bytes(mem[:4]), 0, LocalWrite); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]RecvBuffer{
		"rebound":            rebound,
		"longer than memory": {Pieces: Gather{{Mem: Bytes(mem[:4]), Len: 8}}, Len: 8},
		"beyond its pieces":  {Pieces: Gather{{Mem: Bytes(mem[:4]), Len: 4}}, Len: 8},
	} {
		r := newRig(t)
		if err := r.ulp.queues[0].Post(b); err != nil {
			t.Fatal(err)
		}
		clear(mem)
		p := r.place(untaggedSeg(true, 0, 1, 0, pattern(8)))
		if p.Err == nil || p.Err.Type != TypeLocal || !zero(mem[4:]) {
			t.Errorf("%s: %v, memory %x", name, p.Err, mem)
		}
	}
}

// A message is as long as its pieces together, however long they are.
func TestLengthsDoNotWrap(t *testing.T) {
	// req 5041-5.2-2
	const most = math.MaxInt64
	dev := Device(&short{}, most)
	g := Gather{{Mem: dev, Len: most}, {Mem: dev, Len: most}, {Mem: dev, Len: 6}} // 2^64 + 4 octets
	if n := g.Len(); n != math.MaxUint64 {
		t.Errorf("Len %d", n)
	}
	if _, err := MakeRecvBuffer(g, 0); !errors.Is(err, ErrMessageTooLong) {
		t.Errorf("as a receive buffer: %v", err)
	}
	if err := newRig(t).SendTagged(1, 0, 0, g, 0); !errors.Is(err, ErrMessageTooLong) {
		t.Errorf("as a message: %v", err)
	}
}

// short is a device that writes less than it is asked to and calls that a success.
type short struct{}

func (*short) ReadAt([]byte, int64) (int, error)      { return 0, io.EOF }
func (*short) WriteAt(p []byte, _ int64) (int, error) { return len(p) / 2, nil }

// What a device has not taken in whole is not placed.
func TestDeviceThatWritesTooLittle(t *testing.T) {
	// req 5041-7.2-1
	r := newRig(t)
	reg := r.register(t, Spec{PD: testPD, Mem: Device(&short{}, 8), Access: RemoteWrite})
	p := r.place(taggedSeg(true, 0, reg.STag(), 0, pattern(8)))
	if p.Err == nil || p.Err.Type != TypeLocal || !errors.Is(p.Err, io.ErrShortWrite) {
		t.Errorf("%v", p.Err)
	}
}
