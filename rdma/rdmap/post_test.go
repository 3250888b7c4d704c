package rdmap_test

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/rdmaptest"
	"github.com/rddp-go/rddp/rdma/rdmap"
)

// A receive that the queue has no place for, which cannot be, ends the association, and completes
// all the same.
func TestReceiveWithoutAPlaceEndsTheAssociation(t *testing.T) {
	defer invariant.TolerateInTest()()
	p := rdmaptest.NewPair(t, nil)
	e := p.A
	for id := range uint64(2) {
		must.OK(t, e.QP.PostRecv(&rdmap.RecvWR{ID: id}))
	}
	for range 15 { // behind the back of the inbox: one place of 16 is left
		must.OK(t, rdmap.PostBehind(e.QP, 9))
	}
	e.QP.Abort(nil)
	check.That(t, e.Fault != nil && e.Fault.What == "no place for 1 receives of 2 held, at most 16", "told: %v",
		e.Fault)
	var ids []uint64
	for _, wc := range e.RCQ.Take() {
		check.Equal(t, "status", wc.Status, rdmap.StatusWRFlushErr)
		ids = append(ids, wc.ID)
	}
	check.That(t, e.QP.PostRecv(&rdmap.RecvWR{}) != nil, "a QP that has ended takes a receive")
	n := len(ids)
	check.That(t, n == 17 && ids[n-2] == 0 && ids[n-1] == 1, "completed: %v", ids)
}

func TestPostIsChecked(t *testing.T) {
	p := rdmaptest.NewPair(t, nil)
	e := p.A
	r, _ := e.Memory(100, ddp.RemoteRead)
	w, _ := e.Memory(100, ddp.LocalWrite)
	other := must.Get(e.Table.Register(ddp.Spec{PD: rdmaptest.PD + 1, Mem: ddp.Bytes(make([]byte, 9)),
		Access: ddp.LocalWrite}))(t)
	scoped := must.Get(e.Table.Register(ddp.Spec{PD: rdmaptest.PD, Mem: ddp.Bytes(make([]byte, 9)),
		Access: ddp.LocalWrite, Scope: 99}))(t)
	dead, _ := e.Memory(9, ddp.LocalWrite)
	dead.Invalidate()
	past := rdmaptest.SGE(r, 0, 1)
	past.Addr = 1<<64 - 1
	one := []rdmap.SGE{rdmaptest.SGE(r, 0, 1)}
	for _, row := range []struct {
		name string
		wr   rdmap.SendWR
		want error
		at   int // index of the piece, -1 when it is not about one
	}{
		{"unknown operation", rdmap.SendWR{Op: rdmap.WRAtomic + 1}, rdmap.ErrOpcode, -1},
		{"Immediate Data with a list", rdmap.SendWR{Op: rdmap.WRImm, SGL: one}, rdmap.ErrSGECount, -1},
		{"Immediate Data with inline data", rdmap.SendWR{Op: rdmap.WRImmSE, Inline: make([]byte, 3)}, rdmap.ErrInline, -1},
		{"an atomic with a list", rdmap.SendWR{Op: rdmap.WRAtomic, SGL: one}, rdmap.ErrSGECount, -1},
		{"an atomic with inline data", rdmap.SendWR{Op: rdmap.WRAtomic, Inline: make([]byte, 8)}, rdmap.ErrInline, -1},
		{"remote range of an atomic wraps", rdmap.SendWR{Op: rdmap.WRAtomic, RemoteTO: 1<<64 - 8}, rdmap.ErrRemoteRange, -1},
		{"remote range of a Write with Immediate Data wraps", rdmap.SendWR{Op: rdmap.WRWriteImm, SGL: one, RemoteTO: 1<<64 - 1}, rdmap.ErrRemoteRange, -1},
		// req 5040-5.3-9
		{"Send with Invalidate without an STag", rdmap.SendWR{Op: rdmap.WRSendInv}, rdmap.ErrInvalidate, -1},
		{"Send with SE and Invalidate without an STag", rdmap.SendWR{Op: rdmap.WRSendSEInv}, rdmap.ErrInvalidate, -1},
		{"inline data too long", rdmap.SendWR{Inline: make([]byte, 33)}, rdmap.ErrInline, -1},
		{"inline data and a list", rdmap.SendWR{Inline: make([]byte, 3), SGL: one}, rdmap.ErrInline, -1},
		{"inline data with a Read", rdmap.SendWR{Op: rdmap.WRRead, Inline: make([]byte, 3), SGL: one}, rdmap.ErrInline, -1},
		{"too many pieces", rdmap.SendWR{SGL: []rdmap.SGE{one[0], one[0], one[0], one[0]}}, rdmap.ErrSGECount, -1},
		{"a Read into nothing", rdmap.SendWR{Op: rdmap.WRRead}, rdmap.ErrSGECount, -1},
		// req 5040-5.2.2-7
		{"a Read into two buffers", rdmap.SendWR{Op: rdmap.WRRead,
			SGL: []rdmap.SGE{rdmaptest.SGE(w, 0, 1), rdmaptest.SGE(w, 1, 1)}}, rdmap.ErrSGECount, -1},
		{"a Read into a buffer without local write", rdmap.SendWR{Op: rdmap.WRRead, SGL: one}, rdmap.ErrAccess, 0},
		{"unknown lkey", rdmap.SendWR{SGL: []rdmap.SGE{one[0], {LKey: 77, Len: 1}}}, rdmap.ErrLKey, 1},
		{"invalidated region", rdmap.SendWR{SGL: []rdmap.SGE{rdmaptest.SGE(dead, 0, 1)}}, rdmap.ErrLKey, 0},
		// req 5042-2.2.4-1
		{"another Protection Domain", rdmap.SendWR{SGL: []rdmap.SGE{rdmaptest.SGE(other, 0, 1)}}, rdmap.ErrPD, 0},
		{"another stream's region", rdmap.SendWR{Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(scoped, 0, 1)}}, rdmap.ErrPD, 0},
		{"one octet past the end", rdmap.SendWR{SGL: []rdmap.SGE{rdmaptest.SGE(r, 1, 100)}}, rdmap.ErrBounds, 0},
		{"before the base", rdmap.SendWR{SGL: []rdmap.SGE{rdmaptest.SGE(r, -1, 1)}}, rdmap.ErrBounds, 0},
		{"wrapping", rdmap.SendWR{SGL: []rdmap.SGE{past}}, rdmap.ErrBounds, 0},
		{"remote range wraps", rdmap.SendWR{Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 2)}, RemoteTO: 1<<64 - 2}, rdmap.ErrRemoteRange, -1},
		{"remote range of a Read wraps", rdmap.SendWR{Op: rdmap.WRRead, SGL: []rdmap.SGE{rdmaptest.SGE(w, 0, 3)}, RemoteTO: 1<<64 - 2}, rdmap.ErrRemoteRange, -1},
		{"remote range up to the last octet there can be", rdmap.SendWR{Op: rdmap.WRWrite, SGL: []rdmap.SGE{rdmaptest.SGE(r, 0, 2)}, RemoteTO: 1<<64 - 3}, nil, -1},
		// req 5041-5.2-10
		{"a Write of nothing to the end of the offsets", rdmap.SendWR{Op: rdmap.WRWrite, RemoteTO: 1<<64 - 1}, nil, -1},
		{"a zero-length piece names no memory", rdmap.SendWR{SGL: []rdmap.SGE{{LKey: 77}}}, nil, -1},
	} {
		err := e.QP.PostSend(&row.wr)
		check.That(t, errors.Is(err, row.want), "%s: %v, want %v", row.name, err, row.want)
		var se *rdmap.SGEError
		check.That(t, errors.As(err, &se) == (row.at >= 0) && (se == nil || se.Index == row.at), "%s: piece %+v",
			row.name, se)
	}
	for _, row := range []struct {
		name string
		wr   rdmap.RecvWR
		want error
	}{
		{"without local write", rdmap.RecvWR{SGL: one}, rdmap.ErrAccess},
		{"another Protection Domain", rdmap.RecvWR{SGL: []rdmap.SGE{rdmaptest.SGE(other, 0, 1)}}, rdmap.ErrPD},
		{"past the end", rdmap.RecvWR{SGL: []rdmap.SGE{rdmaptest.SGE(w, 99, 2)}}, rdmap.ErrBounds},
		{"too many pieces", rdmap.RecvWR{SGL: make([]rdmap.SGE, 4)}, rdmap.ErrSGECount},
		{"no buffer at all: for zero-length Sends", rdmap.RecvWR{}, nil},
	} {
		err := e.QP.PostRecv(&row.wr)
		check.That(t, errors.Is(err, row.want), "receive %s: %v, want %v", row.name, err, row.want)
	}
}

// nowhere is a device of any size.
type nowhere struct{}

func (nowhere) ReadAt(p []byte, _ int64) (int, error)  { return len(p), nil }
func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func TestMessageOf4GiBIsRefused(t *testing.T) {
	// req 5041-5.2-2
	p := rdmaptest.NewPair(t, nil)
	r := must.Get(p.A.Table.Register(ddp.Spec{PD: rdmaptest.PD, Mem: ddp.Device(nowhere{}, 1<<33),
		Access: ddp.LocalWrite}))(t)
	half := rdmap.SGE{LKey: r.STag(), Len: 1 << 31}
	check.Equal(t, "Send", p.A.QP.PostSend(&rdmap.SendWR{SGL: []rdmap.SGE{half, half}}), rdmap.ErrTooLong)
	check.Equal(t, "Recv", p.A.QP.PostRecv(&rdmap.RecvWR{SGL: []rdmap.SGE{half, half}}), rdmap.ErrTooLong)
}

func TestPostingIsRefusedOutsideItsStates(t *testing.T) {
	e := rdmaptest.NewEnd(t, 1, nil)
	dst, _ := e.Memory(10, ddp.LocalWrite)
	check.Equal(t, "Idle", e.QP.PostSend(&rdmap.SendWR{}), rdmap.ErrState)
	e.Recv(1, dst, 0, 10)
	// The peer may speak before this end does (RFC 5043 section 6.6).
	e.Inject(rdmaptest.Untagged(0, 1, [5]byte{0x43}, 0, true, []byte("early")))
	rdmaptest.Wants(t, "early", e.RCQ.Take(), rdmap.WC{ID: 1, Opcode: rdmap.WCRecv})
	e.QP.Start()
	check.That(t, e.QP.State() == rdmap.StateRTS && e.QP.State().String() == "RTS", "state %v", e.QP.State())
	e.QP.Start()
	e.QP.Abort(errors.New("enough"))
	check.That(t, e.QP.State() == rdmap.StateError && e.Aborted && len(e.Failures) == 1 && e.QP.Err() != nil,
		"state %v, aborted %v, failed %v", e.QP.State(), e.Aborted, e.Failures)
	check.Equal(t, "Error", e.QP.PostSend(&rdmap.SendWR{}), rdmap.ErrState)
	check.Equal(t, "Error", e.QP.PostRecv(&rdmap.RecvWR{}), rdmap.ErrState)
	e.QP.Abort(nil)
	e.QP.Start()
	e.QP.Close()
	e.QP.Ended()
	check.That(t, e.QP.State() == rdmap.StateError && len(e.Failures) == 1, "state %v, failed %v", e.QP.State(),
		e.Failures)
}

func TestConfigIsChecked(t *testing.T) {
	good := rdmap.Config{Table: ddp.NewTable(rdmaptest.NewSeed(1)), Stream: 1, SendCQ: &rdmaptest.Ring{},
		RecvCQ: &rdmaptest.Ring{}, Host: &rdmaptest.End{},
		MaxSend: 1, MaxRecv: 1, MaxSGE: 1}
	must.Do(rdmap.NewQP(good))(t)
	for field, spoil := range map[string]func(*rdmap.Config){
		"Table": func(c *rdmap.Config) { c.Table = nil }, "Stream": func(c *rdmap.Config) { c.Stream = 0 },
		"SendCQ": func(c *rdmap.Config) { c.SendCQ = nil }, "RecvCQ": func(c *rdmap.Config) { c.RecvCQ = nil },
		"Host": func(c *rdmap.Config) { c.Host = nil },
	} {
		c := good
		spoil(&c)
		var ce *rdmap.ConfigError
		_, err := rdmap.NewQP(c)
		check.That(t, errors.As(err, &ce) && *ce == (rdmap.ConfigError{Field: field}), "%s: %v", field, err)
	}
	for _, f := range []struct {
		name     string
		of       func(*rdmap.Config) *int
		min, max int
	}{
		{"MaxSend", func(c *rdmap.Config) *int { return &c.MaxSend }, 1, 1 << 20},
		{"MaxRecv", func(c *rdmap.Config) *int { return &c.MaxRecv }, 1, 1 << 20},
		{"MaxSGE", func(c *rdmap.Config) *int { return &c.MaxSGE }, 1, 1024},
		{"MaxInline", func(c *rdmap.Config) *int { return &c.MaxInline }, 0, 65536},
		{"IRD", func(c *rdmap.Config) *int { return &c.IRD }, 0, 0x3FFE},
		{"ORD", func(c *rdmap.Config) *int { return &c.ORD }, 0, 0x3FFE},
	} {
		for n, ok := range map[int]bool{f.min - 1: false, f.min: true, f.max: true, f.max + 1: false} {
			c := good
			*f.of(&c) = n
			var ce *rdmap.ConfigError
			err := rdmap.Check(c)
			check.That(t, errors.As(err, &ce) != ok &&
				(ce == nil || *ce == (rdmap.ConfigError{f.name, f.min, f.max})), "%s %d: %v", f.name, n, err)
		}
	}
}

// Each receive of a full queue has memory of its own, also when its places were used before.
func TestReceivesOfAFullQueueShareNothing(t *testing.T) {
	// req 5040-5.3-2
	for depth := 1; depth <= 5; depth++ {
		p := rdmaptest.NewPair(t, func(c *rdmap.Config) { c.MaxRecv = depth })
		sink, got := p.B.Memory(10*depth, ddp.LocalWrite)
		source, sent := p.A.Memory(10, 0)
		next := byte(0)
		for range depth {
			p.B.Recv(0, sink, 0, 10)
			p.A.Post(rdmap.SendWR{Op: rdmap.WRSend, SGL: []rdmap.SGE{rdmaptest.SGE(source, 0, 10)}})
			p.Run()
			for i := range depth { // full
				p.B.Recv(uint64(i), sink, 10*i, 10)
			}
			for i := range depth {
				next++
				rdmaptest.Fill(sent, next)
				p.A.Post(rdmap.SendWR{Op: rdmap.WRSend, SGL: []rdmap.SGE{rdmaptest.SGE(source, 0, 10)}})
				p.Run()
				rdmaptest.Same(t, "the buffer of this Send", got[10*i:10*i+10], sent)
			}
			p.B.RCQ.Take()
		}
	}
}
