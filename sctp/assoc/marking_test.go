package assoc_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Every packet of an association is marked, from the INIT to the ABORT, with what holds when it is
// sent.
func TestPacketsAreMarked(t *testing.T) { // req 9260-7.2.5.1-1
	type mark struct {
		dscp  uint8
		label uint32
	}
	r := sctptest.NewMTUPair(t, sctptest.IPv6, 1500, simnet.Params{})
	a, b := r.Join(&assoc.Config{DSCP: 46, FlowLabel: 0xfffff},
		&assoc.Config{DSCP: 10, RFC9260: true, NewController: cc.NewReno})
	to, want, seen := a.PathStats(0).Remote.Addr(), [2]mark{{46, 0xfffff}, {10, 0}}, 0
	all := func(when string) {
		t.Helper()
		r.Send(0, 50_000)
		r.Send(1, 5000)
		r.Run(time.Minute) // with HEARTBEATs, and probes for the MaxPacket
		for _, s := range r.Sent[seen:] {
			got := mark{s.DSCP, s.FlowLabel}
			check.That(t, got == want[s.From], "%s: %v of host %d: %+v, want %+v", when,
				sctptest.Describe([]wire.Packet{s.Pkt}), s.From, got, want[s.From])
		}
		seen = len(r.Sent)
	}
	all("at first")
	grown := a.PathStats(0).Cwnd
	check.Equal(t, "congestion control", a.PathStats(0).Controller+b.PathStats(0).Controller, "cubicnewReno")
	must.OK(t, a.SetFlowLabel(to, 7))
	check.That(t, a.PathStats(0).Cwnd == grown && grown > 20_000, "cwnd %d, and %d with another flow label", grown,
		a.PathStats(0).Cwnd)
	must.OK(t, a.SetDSCP(to, 8))
	// req 9260-7.2.5-1
	check.Equal(t, "cwnd with another DSCP, ten packets", a.PathStats(0).Cwnd, 10*(a.PathStats(0).MaxPacket-12))
	want[0] = mark{8, 7}
	all("of the path")
	must.OK(t, b.Reconfigure(r.Now, func(c *assoc.Config) { c.DSCP, c.FlowLabel = 12, 9 }))
	b.Abort(r.Now, nil)
	r.Run(time.Second)
	check.That(t, r.Sent[len(r.Sent)-1].FlowLabel == 9 && r.Sent[len(r.Sent)-1].DSCP == 12, "the ABORT is not marked")
	var ce *assoc.ConfigError
	check.That(t, errors.As(a.SetDSCP(to, 64), &ce) && errors.As(a.SetFlowLabel(to, 1<<20), &ce) &&
		a.SetFlowLabel(to, 1<<20-1) == nil, "marks of too many bits")
	check.Error(t, "an address that the peer does not have", a.SetDSCP(sctptest.IPv4[0].Addr(), 1), assoc.ErrNoPath)
}

func TestALinkThatCannotMarkSaysSo(t *testing.T) {
	w, a, _ := sctptest.Pair(t, nil, nil)
	marked := &assoc.Config{DSCP: 1}
	_, err := w.Hosts[0].Endpoint.Connect(w.Now, marked, 1, w.Hosts[0].Addr, []netip.AddrPort{a.PeerAddr()}, 1)
	for name, err := range map[string]error{
		"Connect": err, "Listen": w.Hosts[0].Endpoint.Listen(7, marked), "SetDSCP": a.SetDSCP(a.PeerAddr().Addr(), 1),
		"SetFlowLabel": a.SetFlowLabel(a.PeerAddr().Addr(), 1),
		"Reconfigure":  a.Reconfigure(w.Now, func(c *assoc.Config) { *c = *marked }),
	} {
		check.That(t, errors.Is(err, assoc.ErrNoMarks) && errors.Is(err, errors.ErrUnsupported), "%s: %v", name, err)
	}
}
