package rdma

import (
	"net/netip"
	"testing"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

// A peer gets half of the buffers of an SRQ for messages that it does not complete, by however many
// sessions or addresses of its network, and a peer that has none yet finds some. What is released
// is everybody's again.
func TestNoPeerHoldsAllSharedReceives(t *testing.T) {
	const posted = 16
	addr := netip.MustParseAddr
	for _, row := range []struct {
		name   string
		greedy []netip.Addr // of their sessions
		most   int
	}{
		{"four sessions of one peer", []netip.Addr{addr("10.0.0.1"), addr("10.0.0.1"), addr("10.0.0.1"), addr("10.0.0.1")}, 8},
		{"two peers", []netip.Addr{addr("10.0.0.1"), addr("10.0.0.3")}, 12},
		{"addresses of one link", []netip.Addr{addr("2001:db8::1"), addr("2001:db8::2"), addr("2001:db8::3")}, 8},
		{"networks of one provider", []netip.Addr{addr("2001:db8::1"), addr("2001:db8:1::1"), addr("2001:db8:2::1"), addr("2001:db8:3::1"), addr("2001:db8:4::1")}, 14},
	} {
		x := newLab(t, nil)
		a, _ := x.join(nil)
		check.Equal(t, "the host of a QP's peer", a.qp.peerHost, x.addr.Addr())
		pd := x.a.AllocPD()
		srq := must.Get(pd.CreateSRQ(posted, 1))(t)
		mr := must.Get(pd.Register(make([]byte, 8), LocalWrite, nil))(t)
		for range posted {
			must.OK(t, srq.PostRecv(&RecvWR{SGL: []SGE{mr.SGE(0, 8)}}))
		}
		type held struct {
			by    srqRef
			token uint64
		}
		var list []held
		take := func(a netip.Addr) bool { // by a new session
			r := srqRef{srq, &QP{peerHost: a}}
			b, ok := r.TakeBuffer()
			if ok {
				list = append(list, held{r, b.Token})
			}
			return ok
		}
		for range posted {
			for _, a := range row.greedy {
				take(a)
			}
		}
		check.That(t, len(list) <= row.most, "%s hold %d of %d buffers, want at most %d", row.name, len(list), posted,
			row.most)
		// req 5042-6.4.3.1-1
		check.That(t, take(addr("10.0.0.2")), "%s: another peer's first Send finds no buffer", row.name)
		for _, h := range list {
			h.by.ReleaseBuffer(h.token)
		}
		srq.mu.Lock()
		room := srq.heldShares.RoomFor(addr("10.0.0.2"), 100)
		srq.mu.Unlock()
		check.Equal(t, row.name+": the room of a peer when all is released", room, 50)
	}
}
