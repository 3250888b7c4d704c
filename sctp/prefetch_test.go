package sctp

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/mempair"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio/mem"
)

// Memory is asked for ahead where there are many associations, for whatever packets come: of one
// association, of several, of none; and while others change it.
func TestMemoryIsAskedForAhead(t *testing.T) {
	p := newPair(t)
	l := must.Get(p.b.Listen(0, &Config{Backlog: 2 * manyAssocsMin}))(t)
	conns, before := make([]*Conn, manyAssocsMin), transportsWithMany.Load()
	dial := func() *Conn { return must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, l.Port()), nil))(t) }
	for i := range conns {
		check.That(t, !p.a.manyAssocs.Load() && !p.b.manyAssocs.Load(), "%d associations are many", i)
		conns[i] = dial()
	}
	check.That(t, p.a.manyAssocs.Load() && p.b.manyAssocs.Load(), "%d associations are not many", manyAssocsMin)
	one := dial()
	check.Equal(t, "Transports with a crowd", transportsWithMany.Load()-before, 2)
	r := newReceiver(p.a, p.a.link, false)
	for n := range 2 * fetchDistance {
		for i := range n {
			if i%3 > 0 {
				r.conns[i] = conns[i%2]
			}
		}
		for i := range n {
			check.Equal(t, "whose it is", r.connFor(i, n), r.conns[i])
		}
		clear(r.conns[:])
	}
	var trips sync.WaitGroup
	for i, c := range conns[:8] {
		d := must.Get(l.Accept(deadlineCtx(t)))(t)
		trips.Go(func() {
			b := make([]byte, 9)
			for range 100 {
				_, _, err := d.ReadMsg(b)
				check.That(t, err == nil && b[0] == byte(i), "message of %d: %v, %v", i, b, err)
			}
		})
		trips.Go(func() {
			for range 100 {
				c.WriteMsg([]byte{byte(i)}, SendInfo{})
			}
		})
	}
	trips.Wait()
	one.Abort("")
	conns[9].Abort("")
	check.That(t, !p.a.manyAssocs.Load() && transportsWithMany.Load()-before <= 1,
		"one association fewer is still many, for %d Transports", transportsWithMany.Load()-before)
}

// Where packets come for many of a crowd of associations, each SACK waits for DATA to go with for
// as long as it may; for one alone, and where there is no crowd, the peer soon hears what has come.
func TestSacksOfACrowdAreNotHurried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		la, lb := mempair.New(t, mem.Options{MTU: 1500})
		p := joinPair(t, la, lb, la, &deaf{lb, make(chan struct{})})
		r := newReceiver(p.b, nil, false)
		comes := func(packets int) {
			n := 0
			for n < packets {
				n += must.Get(lb.ReadBatch(r.pkts[n:]))(t)
			}
			must.OK(t, r.runBatch(n, nil))
		}
		l := must.Get(p.b.Listen(7, quiet))(t)
		var near, far [2]*Conn
		for i := range near {
			dialed := make(chan *Conn)
			go func() {
				dialed <- must.Get(p.a.Dial(deadlineCtx(t), netip.AddrPortFrom(p.bAddr, 7), quiet))(t)
			}()
			for l.readyCount() == 0 {
				comes(1)
			}
			near[i], far[i] = <-dialed, must.Get(l.Accept(deadlineCtx(t)))(t)
			must.Do(far[i].WriteMsg([]byte("x"), SendInfo{}))(t) // a round trip is measured
			comes(1)
			must.Do(near[i].WriteMsg([]byte("x"), SendInfo{}))(t) // the first DATA is acknowledged at once
			comes(1)
		}
		const soon = 25 * time.Millisecond
		for _, tt := range []struct {
			name  string
			crowd bool
			of    int
			wait  time.Duration
		}{
			{"two, and no crowd", false, 2, soon},
			{"two of a crowd", true, 2, 80 * time.Millisecond},
			{"one of a crowd", true, 1, soon},
		} {
			p.b.manyAssocs.Store(tt.crowd)
			for range 2 { // what a run says of an association counts from the next packet on
				for _, c := range near[:tt.of] {
					must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
				}
				comes(tt.of)
				for _, d := range far[:tt.of] {
					must.Do(d.WriteMsg([]byte("x"), SendInfo{}))(t)
				}
				comes(tt.of)
			}
			for _, c := range near[:tt.of] {
				must.Do(c.WriteMsg([]byte("x"), SendInfo{}))(t)
			}
			comes(tt.of)
			before := far[0].Stats().SacksOut
			time.Sleep(tt.wait - time.Nanosecond)
			synctest.Wait()
			check.Equal(t, tt.name+": SACKs before their time", far[0].Stats().SacksOut-before, 0)
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			check.Equal(t, tt.name+": SACKs then", far[0].Stats().SacksOut-before, 1)
		}
	})
}

// What each packet, read and write looks at of a Conn lies before its core, and is asked for as a
// whole; and the core begins with what leads to the Conn: where it does not, they wait for memory
// that could have come with the rest.
func TestWhatAWriteLooksAtIsAskedFor(t *testing.T) {
	var c Conn
	end := unsafe.Offsetof(c.backlog) + unsafe.Sizeof(c.backlog.count)
	for name, at := range map[string]uintptr{
		"lock":         unsafe.Offsetof(c.assocLock),
		"above":        unsafe.Offsetof(c.upper),
		"reads":        unsafe.Offsetof(c.recv),
		"writes":       unsafe.Offsetof(c.send),
		"end":          unsafe.Offsetof(c.end),
		"after unlock": unsafe.Offsetof(c.afterUnlock),
		"coalescing":   unsafe.Offsetof(c.coalescing),
		"memory":       unsafe.Offsetof(c.memory),
		"observers":    unsafe.Offsetof(c.observers),
		"timer":        unsafe.Offsetof(c.timer),
	} {
		check.That(t, at < unsafe.Offsetof(c.backlog), "%s: at %d, of which %d octets are asked for", name, at, end)
	}
	check.That(t, unsafe.Offsetof(c.t) == 0 && unsafe.Offsetof(c.backlog.count) == 0 && end <= 11*64-8,
		"%d octets are asked for", end)
	check.Equal(t, "where the Owner lies", unsafe.Offsetof(c.core.Owner), 0)
}
