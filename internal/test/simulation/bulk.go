package simulation

import (
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/rdma/rdmap"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// bulkWrites is a world with one session over a perfect network, for measuring.
type bulkWrites struct {
	*World
	c        *conn
	qa, qb   *qp
	src, dst area
	wr       rdmap.SendWR
	done     int
}

func newBulk(t testing.TB, size int, link simnet.Params, configure func(*assoc.Config)) *bulkWrites {
	return newBulkOf(t, ofIPv4, size, link, configure)
}

// Seeds of worlds of IPv4 and of IPv6 alone.
const ofIPv4, ofIPv6 = 3, 1

func newBulkOf(t testing.TB, seed uint64, size int, link simnet.Params, configure func(*assoc.Config)) *bulkWrites {
	w := New(seed)
	w.mtuChanges = mtuChanges{next: rawio.Never}
	if w.mtu = 1480; link.MTU > 0 {
		w.mtu = link.MTU - 20
	}
	w.net.Connect(w.a.connectAddr(), w.b.connectAddr(), link)
	for _, h := range []*Host{w.a, w.b} {
		if configure != nil {
			configure(&h.cfg)
		}
	}
	b := &bulkWrites{World: w, qa: w.a.newQP(64, 1, 1, 1), qb: w.b.newQP(64, 1, 1, 1)}
	for _, q := range []*qp{b.qa, b.qb} {
		q.onSent = func(wc rdmap.WC) {
			if wc.Status != rdmap.StatusSuccess {
				w.failf("%v", wc.Status)
			}
			b.done++
		}
		q.onFailed = func(err *rdmap.StreamError) { w.failf("%v", err) }
	}
	w.chooseQP = func([]byte) *qp { return b.qb }
	must.OK(t, w.b.node.EP.Listen(port, &w.b.cfg))
	b.c = w.a.startAssoc(w.b)
	b.c.Pump()
	w.runUntil("setup", func() bool { return b.c.up })
	s := must.Get(b.c.mux.Open(w.now, -1, b.qa.core.Stream(), nil))(t)
	b.qa.bindSession(b.c, s)
	b.c.Pump()
	w.runUntil("session", func() bool { return b.qa.core.State() == rdmap.StateRTS })
	b.src, b.dst = w.a.mem.allocArea(size), w.b.mem.allocArea(size)
	from, to := b.src.newRegion(0, 0, 0), b.dst.newRegion(ddp.RemoteWrite, 0, 0)
	b.wr = rdmap.SendWR{Op: rdmap.WRWrite, SGL: []rdmap.SGE{{LKey: from.STag(), Len: uint32(size)}},
		RemoteSTag: to.STag()}
	if w.err != nil {
		t.Fatal(w.err)
	}
	return b
}

// writeOnce carries out one RDMA Write from the posting to the completion.
func (b *bulkWrites) writeOnce() {
	want := b.done + 1
	if err := b.qa.core.PostSend(&b.wr); err != nil {
		b.failf("post: %v", err)
		return
	}
	b.c.Pump()
	for b.done < want && b.err == nil {
		if !b.Step(b.now.Add(1e9)) {
			b.failf("nothing left to happen")
		}
	}
}
