package assoc_test

import (
	"errors"
	"net/netip"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// What changes during an association holds from then on.
func TestReconfigure(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*assoc.Config)
		see    func(*testing.T, *sctptest.Lab) bool
	}{
		{"a path that was not measured yet has the new RTO.Initial", func(c *assoc.Config) { c.RTOInitial = 3 * time.Second },
			func(t *testing.T, l *sctptest.Lab) bool { return l.A.PathStats(0).RTO == 3*time.Second }},
		{"one that was keeps within the bounds", func(c *assoc.Config) { c.RTOMin, c.RTOMax, c.RTOInitial = 5*time.Second, 6*time.Second, 5*time.Second },
			func(t *testing.T, l *sctptest.Lab) bool { return l.A.PathStats(0).RTO == 5*time.Second }},
		{"the association gives up sooner", func(c *assoc.Config) { c.AssocMaxRetrans = 1 },
			func(t *testing.T, l *sctptest.Lab) bool {
				must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{{1}}}))
				l.Wait(10 * time.Second)
				return l.A.State() == assoc.Closed
			}},
		{"a SACK waits less", func(c *assoc.Config) { c.SackDelay = 40 * time.Millisecond },
			func(t *testing.T, l *sctptest.Lab) bool {
				l.Expect(l.Send(l.Tag, l.Data("first")), "SACK")
				l.Send(l.Tag, l.Data("second"))
				return len(l.Wait(39*time.Millisecond)) == 0 && len(l.Wait(time.Millisecond)) == 1
			}},
		{"a HEARTBEAT comes sooner", func(c *assoc.Config) { c.HeartbeatInterval = time.Second },
			func(t *testing.T, l *sctptest.Lab) bool {
				out := l.Wait(5 * time.Second)
				return len(out) > 0 && sctptest.Has(out[0], wire.ChunkHeartbeat)
			}},
		{"packets are shorter", func(c *assoc.Config) { c.MTU = 1000 }, func(t *testing.T, l *sctptest.Lab) bool { return l.A.PathStats(0).MaxPacket == 980 }},
		{"the search for the MTU ends, and a path keeps what it has", func(c *assoc.Config) { c.DisablePMTUD = true },
			func(t *testing.T, l *sctptest.Lab) bool {
				before := l.A.PathStats(0).MaxPacket
				l.Wait(time.Minute)
				probes := l.A.Stats().MTUProbesOut
				l.Wait(time.Hour)
				return l.A.PathStats(0).MaxPacket == before && l.A.Stats().MTUProbesOut == probes
			}},
		{"without a search each path has the MTU that is given", func(c *assoc.Config) { c.DisablePMTUD, c.MTU = true, 1400 },
			func(t *testing.T, l *sctptest.Lab) bool { return l.A.PathStats(0).MaxPacket == 1380 }},
		{"what needs fragments is refused, and nothing sent", func(c *assoc.Config) { c.DisableFragments = true },
			func(t *testing.T, l *sctptest.Lab) bool {
				n := l.A.MaxPayload()
				err := l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, n), {1}}})
				none := len(l.Flush()) == 0 // req 9260-6.9-2, 9260-6.9-3
				must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, n)}}))
				return none && errors.Is(err, assoc.ErrNeedsFragments) && errors.Is(err, syscall.EMSGSIZE) &&
					len(l.Flush()) == 1
			}},
		{"DATA chunks are shorter", func(c *assoc.Config) { c.MaxSegment = 500 },
			func(t *testing.T, l *sctptest.Lab) bool {
				must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 1001)}}))
				out := l.Flush()
				sizes := 0
				for _, p := range out {
					sizes += len(p)
				}
				return l.A.MaxPayload() == 500 && sizes == 12*len(out)+16*3+500+500+4
			}},
		{"the buffer is larger, and the peer hears of it", func(c *assoc.Config) { c.RecvBuffer = 2 << 20 },
			func(t *testing.T, l *sctptest.Lab) bool {
				out := l.Flush()
				return len(out) == 1 && sctptest.Has(out[0], wire.ChunkSack) && l.A.Stats().RecvWindow == 2<<20
			}},
		{"the buffer is smaller, but not the window", func(c *assoc.Config) { c.RecvBuffer = 2000 },
			func(t *testing.T, l *sctptest.Lab) bool {
				return len(l.Flush()) == 0 && l.A.Stats().RecvWindow == 1<<20
			}},
		{"a long message comes in pieces", func(c *assoc.Config) { c.PartialDelivery = 3 },
			func(t *testing.T, l *sctptest.Lab) bool {
				begins := l.Data("begins")
				begins[1] = wire.FlagB
				l.Send(l.Tag, begins)
				m, ok := l.A.Receive()
				return ok && m.More && m.Size == 6
			}},
		{"the send buffer is smaller", func(c *assoc.Config) { c.SendBuffer = 5 },
			func(t *testing.T, l *sctptest.Lab) bool {
				return errors.Is(l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 6)}}),
					assoc.ErrMessageTooBig)
			}},
		{"what the peer was told stays", func(c *assoc.Config) { c.OutStreams, c.InStreams = 1, 1 },
			func(t *testing.T, l *sctptest.Lab) bool {
				return l.A.OutStreams() == 16 && l.A.Send(l.Now, &assoc.Message{Stream: 15, Body: [2][]byte{{1}}}) ==
					nil
			}},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Passive(t, &assoc.Config{DisablePMTUD: true})
			if row.name[:3] == "one" {
				must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{{1}}}))
				l.Flush()
				l.Send(l.Tag, l.Sack(l.HostTSN))
			}
			must.OK(t, l.A.Reconfigure(l.Now, row.change))
			check.That(t, row.see(t, l), "%+v, %v", l.A.PathStats(0), l.A.State())
		})
	}
	l := sctptest.Passive(t, nil)
	if err := l.A.Reconfigure(l.Now, func(c *assoc.Config) {
		c.RTOInitial, c.RTOMin = 2*time.Second,
			time.Hour
	}); !errors.As(err, new(*assoc.ConfigError)) || l.A.PathStats(0).RTO != time.Second {
		t.Errorf("a wrong configuration: %v, RTO %v", err, l.A.PathStats(0).RTO)
	}
	// All that its comment names holds from now on, and nothing else does.
	var want, got assoc.Config
	must.OK(t, l.A.Reconfigure(l.Now, func(c *assoc.Config) { want = *c }))
	want.RTOInitial, want.RTOMin, want.RTOMax, want.MaxInitRTO, want.AutoClose = 2*time.Second, 3*time.Second,
		4*time.Second, 5*time.Second, 6*time.Second
	want.AssocMaxRetrans, want.PathMaxRetrans, want.MaxInitRetrans, want.PotentiallyFailedMaxRetrans,
		want.PrimarySwitchoverMaxRetrans = 11, 12, 13, 2, ptrTo(7)
	want.SackDelay, want.LoneSackDelay, want.HeartbeatInterval, want.HBMaxBurst, want.MaxBurst = 300*time.Millisecond,
		time.Millisecond, 7*time.Second, 8, 9
	want.RecvBuffer, want.SendBuffer, want.PartialDelivery, want.MaxSegment, want.MTU = 1<<20, 1<<19, 3000, 700, 1200
	want.HidePotentiallyFailed, want.NoDelay, want.DisableFragments, want.DisablePMTUD = true, true, true, true
	must.OK(t, l.A.Reconfigure(l.Now, func(c *assoc.Config) {
		*c = want
		c.OutStreams, c.InStreams, c.MaxMessage, c.CookieLife, c.Adaptation, c.LocalAddrs = 1, 1, 1, 1, new(uint32),
			[]netip.Addr{l.Peer.Addr()}
		c.RequireAdaptation, c.DisableECN, c.RFC9260 = true, true, true
	}))
	must.OK(t, l.A.Reconfigure(l.Now, func(c *assoc.Config) { got = *c }))
	check.That(t, reflect.DeepEqual(got, want) && l.A.RTOMax() == want.RTOMax && l.A.SendBuffer() == want.SendBuffer,
		"what holds is %+v, want %+v", got, want)
}
