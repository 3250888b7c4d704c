package simulated

import (
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// Share sends in bulk from one server with several configurations, side by side through one queue,
// in virtual time. It returns what came of each in a second, in Mbit/s of user data, and the mean
// time that a packet waited in the queue, both from one time to another. Each begins a second after
// the one before.
func Share(c *Cell, seed uint64, from, to time.Duration, cfgs ...*assoc.Config) (mbits []float64, wait time.Duration,
	err error) {
	f := newFlow(c, cfgs[0], seed)
	f.bulky, f.got = true, make([]int, len(cfgs))
	server, begun := f.hosts[1], f.now
	run := func(until time.Duration) { f.runUntil(begun.Add(until), func() bool { return false }) }
	for i, cfg := range cfgs {
		if err := server.Endpoint.Listen(serverPort+uint16(i), cfg); err != nil {
			return nil, 0, err
		}
		a, err := f.hosts[0].Endpoint.Connect(f.now, cfg, clientPort+uint16(i), f.hosts[0].Addr,
			[]netip.AddrPort{server.Addr}, serverPort+uint16(i))
		if err != nil {
			return nil, 0, err
		}
		f.hosts[0].Adopt(a)
		run(time.Duration(i+1) * time.Second)
	}
	run(from)
	before := slices.Clone(f.got)
	var queued, samples time.Duration
	for at := from; at < to; at += sampleQueue {
		run(at)
		queued += f.net.Backlog(f.now, server.Addrs[0], f.hosts[0].Addrs[0])
		samples++
	}
	for i := range f.got {
		mbits = append(mbits, float64(f.got[i]-before[i])*8/1e6/(to-from).Seconds())
	}
	return mbits, queued / samples, nil
}

// sampleQueue is how often Share looks at the queue.
const sampleQueue = 5 * time.Millisecond
