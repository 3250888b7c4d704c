package simulation

import (
	"math"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/race"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
)

// The link of the table: 100 Mbit/s, packets of 1500 octets.
const (
	linkRate = 12.5e6 // IP-level octets per second
	ipPacket = 1500
	segment  = ipPacket - 20 - 12 - 16 - 2 - 14 // user octets of a full tagged segment
)

// renoThroughput is the steady state of NewReno at loss p: cwnd = sqrt(3/2p) packets (Mathis et
// al.).
func renoThroughput(rtt time.Duration, p float64) float64 {
	return ipPacket / rtt.Seconds() * math.Sqrt(1.5/p)
}

// cubicModel is the steady state of CUBIC at loss p (RFC 9438 section 5.1), and at least Reno's.
func cubicModel(rtt time.Duration, p float64) float64 {
	w := math.Pow(0.4*3.7/(4*0.3), 0.25) * math.Pow(rtt.Seconds()/p, 0.75)
	return max(ipPacket*w/rtt.Seconds(), renoThroughput(rtt, p))
}

// TestThroughputIsNearTheIdealOfTheController prints what one bulk association reaches beside the
// ideal of its congestion controller, and holds it to 90% of that at zero loss, once past slow
// start.
func TestThroughputIsNearTheIdealOfTheController(t *testing.T) {
	race.Alone(t)
	if testing.Short() {
		t.Skip("-short: the table takes some seconds of processor time")
	}
	for _, ctl := range []struct {
		name  string
		make  cc.Factory
		ideal func(time.Duration, float64) float64
	}{{"NewReno", cc.NewReno, renoThroughput}, {"CUBIC", cc.NewCubic, cubicModel}} {
		t.Logf("%-8s %6s %7s %14s %14s %6s", ctl.name, "RTT", "loss", "Mbit/s", "ideal Mbit/s", "ratio")
		for _, rtt := range []time.Duration{2, 20, 100, 300} {
			rtt *= time.Millisecond
			for _, loss := range []float64{0, 0.001, 0.01} {
				ideal := linkRate
				if loss > 0 {
					ideal = min(ideal, ctl.ideal(rtt, loss))
				}
				ideal *= float64(segment) / ipPacket
				got := measureThroughput(t, rtt, loss, ctl.make)
				t.Logf("%-8s %6v %6.1f%% %14.2f %14.2f %6.2f", "", rtt, loss*100, got*8e-6, ideal*8e-6, got/ideal)
				check.That(t, loss != 0 || got >= 0.9*ideal,
					"%s, RTT %v, no loss: %.2f Mbit/s is less than 90%% of %.2f", ctl.name, rtt, got*8e-6, ideal*8e-6)
			}
		}
	}
}

// measureThroughput is the goodput in octets per second of RDMA Writes, measured past slow start.
func measureThroughput(t *testing.T, rtt time.Duration, loss float64, make cc.Factory) float64 {
	const size, depth = 256 << 10, 48
	link := simnet.Params{Delay: rtt / 2, Rate: linkRate, Queue: max(64*ipPacket, int(linkRate*rtt.Seconds())),
		Loss: loss, MTU: ipPacket}
	b := newBulk(t, size, link, func(c *assoc.Config) {
		c.NewController = make
		c.RecvBuffer = 16 << 20
	})
	b.net.SetLink(b.b.connectAddr(), b.a.connectAddr(), simnet.Params{Delay: rtt / 2, Rate: linkRate, MTU: ipPacket})
	posted := b.done
	run := func(until time.Duration) {
		for time.Duration(b.now) < until && b.err == nil {
			for posted-b.done < depth {
				must.OK(t, b.qa.core.PostSend(&b.wr))
				posted++
			}
			b.c.Pump()
			must.That(t, b.Step(b.now.Add(until-time.Duration(b.now))), "nothing left to happen")
		}
		must.That(t, b.err == nil, "%v", b.err)
	}
	warm := 20*rtt + 3*time.Second
	span := 40*rtt + 4*time.Second
	run(warm)
	from := b.b.conns[0].a.Stats()
	run(warm + span)
	to := b.b.conns[0].a.Stats()
	const head = 2 + 14 // DDP-SSN and tagged header
	return float64(to.DataOctetsIn-from.DataOctetsIn-head*(to.Placed-from.Placed)) / span.Seconds()
}
