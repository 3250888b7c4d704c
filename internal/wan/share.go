package wan

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
)

// Share sends in bulk from one server with several configurations, side by side through one queue, in virtual time. It returns what came of each in a
// second, in Mbit/s of user data, and the mean time that a packet waited in the queue, both from one time to another. Each begins a second after the one before.
func Share(c *Cell, seed uint64, from, to time.Duration, cfgs ...*assoc.Config) (mbits []float64, wait time.Duration, err error) {
	f := newFlow(c, cfgs[0], seed)
	answer := make([]byte, bulkChunk)
	got := make([]int, len(cfgs))
	server, begun := f.hosts[1], f.now
	f.applications = func() {
		for i, a := range f.hosts[0].Assocs {
			for r, ok := a.Receive(); ok; r, ok = a.Receive() {
				got[i] += r.Size
				a.Release(r)
			}
		}
		for _, a := range server.Assocs {
			for full := a.State() != assoc.Established; !full; {
				full = a.Send(f.now, &assoc.Message{Body: [2][]byte{answer}}) != nil
			}
		}
	}
	run := func(until time.Duration) { f.run(begun.Add(until), func() bool { return false }) }
	for i, cfg := range cfgs {
		if err := server.Endpoint.Listen(serverPort+uint16(i), cfg); err != nil {
			return nil, 0, err
		}
		a, err := f.hosts[0].Endpoint.Connect(f.now, cfg, clientPort+uint16(i), f.hosts[0].Addr, []netip.AddrPort{server.Addr}, serverPort+uint16(i))
		if err != nil {
			return nil, 0, err
		}
		f.hosts[0].Adopt(a)
		run(time.Duration(i+1) * time.Second)
	}
	run(from)
	before := append([]int(nil), got...)
	var queued, samples time.Duration
	for at := from; at < to; at += sampleQueue {
		run(at)
		queued += f.net.Backlog(f.now, server.Addrs[0], f.hosts[0].Addrs[0])
		samples++
	}
	for i := range got {
		mbits = append(mbits, float64(got[i]-before[i])*8/1e6/(to-from).Seconds())
	}
	return mbits, queued / samples, nil
}

// sampleQueue is how often Share looks at the queue.
const sampleQueue = 5 * time.Millisecond
