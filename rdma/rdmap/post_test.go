package rdmap

import (
	"errors"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/check"
	"github.com/rddp-go/rddp/internal/invariant"
	"github.com/rddp-go/rddp/internal/must"
)

// A receive that the queue has no place for, which cannot be, ends the association, and completes all the same.
func TestReceiveWithoutAPlaceEndsTheAssociation(t *testing.T) {
	defer invariant.Tolerate()()
	p := newPair(t, nil)
	e := p.a
	for id := range uint64(2) {
		must.OK(t, e.qp.PostRecv(&RecvWR{ID: id}))
	}
	for range 15 { // behind the back of the inbox: one place of 16 is left
		must.OK(t, e.qp.rq.q.Post(ddp.RecvBuffer{Token: 9}))
	}
	e.qp.Abort(nil)
	check.That(t, e.broken != nil && e.broken.What == "no place for 1 receives of 2 held, at most 16", "told: %v", e.broken)
	var ids []uint64
	for _, wc := range e.rcq.take() {
		check.Equal(t, "status", wc.Status, StatusWRFlushErr)
		ids = append(ids, wc.ID)
	}
	n := len(ids)
	check.That(t, n == 17 && ids[n-2] == 0 && ids[n-1] == 1, "completed: %v", ids)
}

func TestPostIsChecked(t *testing.T) {
	p := newPair(t, nil)
	e := p.a
	r, _ := e.memory(100, ddp.RemoteRead)
	w, _ := e.memory(100, ddp.LocalWrite)
	other := must.Get(e.table.Register(ddp.Spec{PD: testPD + 1, Mem: ddp.Bytes(make([]byte, 9)), Access: ddp.LocalWrite}))(t)
	scoped := must.Get(e.table.Register(ddp.Spec{PD: testPD, Mem: ddp.Bytes(make([]byte, 9)), Access: ddp.LocalWrite, Scope: 99}))(t)
	dead, _ := e.memory(9, ddp.LocalWrite)
	dead.Invalidate()
	past := sge(r, 0, 1)
	past.Addr = 1<<64 - 1
	one := []SGE{sge(r, 0, 1)}
	for _, row := range []struct {
		name string
		wr   SendWR
		want error
		at   int // index of the piece, -1 when it is not about one
	}{
		{"unknown operation", SendWR{Op: WRAtomic + 1}, ErrOpcode, -1},
		{"Immediate Data with a list", SendWR{Op: WRImm, SGL: one}, ErrSGECount, -1},
		{"Immediate Data with inline data", SendWR{Op: WRImmSE, Inline: make([]byte, 3)}, ErrInline, -1},
		{"an atomic with a list", SendWR{Op: WRAtomic, SGL: one}, ErrSGECount, -1},
		{"an atomic with inline data", SendWR{Op: WRAtomic, Inline: make([]byte, 8)}, ErrInline, -1},
		{"remote range of an atomic wraps", SendWR{Op: WRAtomic, RemoteTO: 1<<64 - 8}, ErrRemoteRange, -1},
		{"remote range of a Write with Immediate Data wraps", SendWR{Op: WRWriteImm, SGL: one, RemoteTO: 1<<64 - 1}, ErrRemoteRange, -1},
		{"Send with Invalidate without an STag", SendWR{Op: WRSendInv}, ErrInvalidate, -1}, // req 5040-5.3-9
		{"Send with SE and Invalidate without an STag", SendWR{Op: WRSendSEInv}, ErrInvalidate, -1},
		{"inline data too long", SendWR{Inline: make([]byte, 33)}, ErrInline, -1},
		{"inline data and a list", SendWR{Inline: make([]byte, 3), SGL: one}, ErrInline, -1},
		{"inline data with a Read", SendWR{Op: WRRead, Inline: make([]byte, 3), SGL: one}, ErrInline, -1},
		{"too many pieces", SendWR{SGL: []SGE{one[0], one[0], one[0], one[0]}}, ErrSGECount, -1},
		{"a Read into nothing", SendWR{Op: WRRead}, ErrSGECount, -1},
		{"a Read into two buffers", SendWR{Op: WRRead, SGL: []SGE{sge(w, 0, 1), sge(w, 1, 1)}}, ErrSGECount, -1}, // req 5040-5.2.2-7
		{"a Read into a buffer without local write", SendWR{Op: WRRead, SGL: one}, ErrAccess, 0},
		{"unknown lkey", SendWR{SGL: []SGE{one[0], {LKey: 77, Len: 1}}}, ErrLKey, 1},
		{"invalidated region", SendWR{SGL: []SGE{sge(dead, 0, 1)}}, ErrLKey, 0},
		{"another Protection Domain", SendWR{SGL: []SGE{sge(other, 0, 1)}}, ErrPD, 0}, // req 5042-2.2.4-1
		{"another stream's region", SendWR{Op: WRWrite, SGL: []SGE{sge(scoped, 0, 1)}}, ErrPD, 0},
		{"one octet past the end", SendWR{SGL: []SGE{sge(r, 1, 100)}}, ErrBounds, 0},
		{"before the base", SendWR{SGL: []SGE{sge(r, -1, 1)}}, ErrBounds, 0},
		{"wrapping", SendWR{SGL: []SGE{past}}, ErrBounds, 0},
		{"remote range wraps", SendWR{Op: WRWrite, SGL: []SGE{sge(r, 0, 2)}, RemoteTO: 1<<64 - 2}, ErrRemoteRange, -1},
		{"remote range of a Read wraps", SendWR{Op: WRRead, SGL: []SGE{sge(w, 0, 3)}, RemoteTO: 1<<64 - 2}, ErrRemoteRange, -1},
		{"remote range up to the last octet there can be", SendWR{Op: WRWrite, SGL: []SGE{sge(r, 0, 2)}, RemoteTO: 1<<64 - 3}, nil, -1},
		{"a Write of nothing to the end of the offsets", SendWR{Op: WRWrite, RemoteTO: 1<<64 - 1}, nil, -1}, // req 5041-5.2-10
		{"a zero-length piece names no memory", SendWR{SGL: []SGE{{LKey: 77}}}, nil, -1},
	} {
		err := e.qp.PostSend(&row.wr)
		check.That(t, errors.Is(err, row.want), "%s: %v, want %v", row.name, err, row.want)
		var se *SGEError
		check.That(t, errors.As(err, &se) == (row.at >= 0) && (se == nil || se.Index == row.at), "%s: piece %+v", row.name, se)
	}
	for _, row := range []struct {
		name string
		wr   RecvWR
		want error
	}{
		{"without local write", RecvWR{SGL: one}, ErrAccess},
		{"another Protection Domain", RecvWR{SGL: []SGE{sge(other, 0, 1)}}, ErrPD},
		{"past the end", RecvWR{SGL: []SGE{sge(w, 99, 2)}}, ErrBounds},
		{"too many pieces", RecvWR{SGL: make([]SGE, 4)}, ErrSGECount},
		{"no buffer at all: for zero-length Sends", RecvWR{}, nil},
	} {
		err := e.qp.PostRecv(&row.wr)
		check.That(t, errors.Is(err, row.want), "receive %s: %v, want %v", row.name, err, row.want)
	}
}

// nowhere is a device of any size.
type nowhere struct{}

func (nowhere) ReadAt(p []byte, _ int64) (int, error)  { return len(p), nil }
func (nowhere) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

func TestMessageOf4GiBIsRefused(t *testing.T) {
	// req 5041-5.2-2
	p := newPair(t, nil)
	r := must.Get(p.a.table.Register(ddp.Spec{PD: testPD, Mem: ddp.Device(nowhere{}, 1<<33), Access: ddp.LocalWrite}))(t)
	half := SGE{LKey: r.STag(), Len: 1 << 31}
	check.Equal(t, "Send", p.a.qp.PostSend(&SendWR{SGL: []SGE{half, half}}), ErrTooLong)
	check.Equal(t, "Recv", p.a.qp.PostRecv(&RecvWR{SGL: []SGE{half, half}}), ErrTooLong)
}

func TestPostingIsRefusedOutsideItsStates(t *testing.T) {
	e := newEnd(t, 1, nil)
	dst, _ := e.memory(10, ddp.LocalWrite)
	check.Equal(t, "Idle", e.qp.PostSend(&SendWR{}), ErrState)
	e.recv(1, dst, 0, 10)
	// The peer may speak before this end does (RFC 5043 section 6.6).
	e.inject(untagged(0, 1, [5]byte{0x43}, 0, true, []byte("early")))
	wants(t, "early", e.rcq.take(), WC{ID: 1, Opcode: WCRecv})
	e.qp.Start()
	check.That(t, e.qp.State() == StateRTS && e.qp.State().String() == "RTS", "state %v", e.qp.State())
	e.qp.Start()
	e.qp.Abort(errors.New("enough"))
	check.That(t, e.qp.State() == StateError && e.abort && len(e.failed) == 1 && e.qp.Err() != nil,
		"state %v, aborted %v, failed %v", e.qp.State(), e.abort, e.failed)
	check.Equal(t, "Error", e.qp.PostSend(&SendWR{}), ErrState)
	check.Equal(t, "Error", e.qp.PostRecv(&RecvWR{}), ErrState)
	e.qp.Abort(nil)
	e.qp.Start()
	e.qp.Close()
	e.qp.Ended()
	check.That(t, e.qp.State() == StateError && len(e.failed) == 1, "state %v, failed %v", e.qp.State(), e.failed)
}

func TestConfigIsChecked(t *testing.T) {
	good := Config{Table: ddp.NewTable(newSeed(1)), Stream: 1, SendCQ: &ring{}, RecvCQ: &ring{}, Host: &end{},
		MaxSend: 1, MaxRecv: 1, MaxSGE: 1}
	must.Do(NewQP(good))(t)
	for field, spoil := range map[string]func(*Config){
		"Table": func(c *Config) { c.Table = nil }, "Stream": func(c *Config) { c.Stream = 0 },
		"SendCQ": func(c *Config) { c.SendCQ = nil }, "RecvCQ": func(c *Config) { c.RecvCQ = nil },
		"Host": func(c *Config) { c.Host = nil },
	} {
		c := good
		spoil(&c)
		var ce *ConfigError
		_, err := NewQP(c)
		check.That(t, errors.As(err, &ce) && *ce == (ConfigError{Field: field}), "%s: %v", field, err)
	}
	for _, f := range []struct {
		name     string
		of       func(*Config) *int
		min, max int
	}{
		{"MaxSend", func(c *Config) *int { return &c.MaxSend }, 1, 1 << 20},
		{"MaxRecv", func(c *Config) *int { return &c.MaxRecv }, 1, 1 << 20},
		{"MaxSGE", func(c *Config) *int { return &c.MaxSGE }, 1, 1024},
		{"MaxInline", func(c *Config) *int { return &c.MaxInline }, 0, 65536},
		{"IRD", func(c *Config) *int { return &c.IRD }, 0, 0x3FFE},
		{"ORD", func(c *Config) *int { return &c.ORD }, 0, 0x3FFE},
	} {
		for n, ok := range map[int]bool{f.min - 1: false, f.min: true, f.max: true, f.max + 1: false} {
			c := good
			*f.of(&c) = n
			var ce *ConfigError
			err := c.check()
			check.That(t, errors.As(err, &ce) != ok && (ce == nil || *ce == (ConfigError{f.name, f.min, f.max})), "%s %d: %v", f.name, n, err)
		}
	}
}

// Each receive of a full queue has memory of its own, also when its places were used before.
func TestReceivesOfAFullQueueShareNothing(t *testing.T) {
	// req 5040-5.3-2
	for depth := 1; depth <= 5; depth++ {
		p := newPair(t, func(c *Config) { c.MaxRecv = depth })
		sink, got := p.b.memory(10*depth, ddp.LocalWrite)
		source, sent := p.a.memory(10, 0)
		next := byte(0)
		for range depth {
			p.b.recv(0, sink, 0, 10)
			p.a.post(SendWR{Op: WRSend, SGL: []SGE{sge(source, 0, 10)}})
			p.run()
			for i := range depth { // full
				p.b.recv(uint64(i), sink, 10*i, 10)
			}
			for i := range depth {
				next++
				fill(sent, next)
				p.a.post(SendWR{Op: WRSend, SGL: []SGE{sge(source, 0, 10)}})
				p.run()
				same(t, "the buffer of this Send", got[10*i:10*i+10], sent)
			}
			p.b.rcq.take()
		}
	}
}
