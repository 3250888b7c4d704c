package wan

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/internal/lab"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
)

// Controllers are ours, by name.
var Controllers = map[string]cc.Factory{
	"newreno": cc.NewReno, "cubic": cc.NewCubic,
}

// MTU of the roads.
const MTU = 1500

const (
	clientPort = 5000
	serverPort = 5001
	requestLen = 16
	bulkChunk  = 64 << 10
	// patience is how much virtual time a flow may take.
	patience = time.Hour
)

// Virtual makes flows of some transfers each over roads of simnet, in virtual time: what comes of it follows from the
// seed and from this project's code alone. In bulk each flow lasts as long as given. Config is that of both ends.
func Virtual(c *Cell, cfg *assoc.Config, seed uint64, flows, transfers int, bulk time.Duration) (*Sample, error) {
	type seen struct {
		first time.Duration
		group Group
		bins  []int
		hit   int
	}
	all := make([]seen, flows)
	errs := make([]error, flows)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < flows; i = int(next.Add(1)) - 1 {
				f := newFlow(c, cfg, seed+uint64(i))
				s := &all[i]
				if errs[i] = f.connect(); errs[i] != nil {
					continue
				}
				if c.Size == 0 {
					s.bins, errs[i] = f.bulk(bulk)
					continue
				}
				s.first, _, errs[i] = f.transfer()
				for range transfers {
					if errs[i] != nil {
						break
					}
					var took time.Duration
					var hit bool
					took, hit, errs[i] = f.transfer()
					s.group = append(s.group, took)
					if hit {
						s.hit++
					}
					f.run(f.now.Add(c.Pause), func() bool { return false })
				}
			}
		})
	}
	wg.Wait()
	sum := &Sample{}
	for i := range all {
		s := &all[i]
		if errs[i] != nil {
			return nil, fmt.Errorf("%s, flow %d: %w", c, i, errs[i])
		}
		sum.Hit += s.hit
		if c.Size == 0 {
			sum.Groups = append(sum.Groups, nil)
			for k, n := range s.bins {
				if len(sum.Bins) <= k {
					sum.Bins = append(sum.Bins, 0)
				}
				sum.Bins[k] += n
			}
			continue
		}
		sum.First = append(sum.First, s.first)
		sum.Groups = append(sum.Groups, s.group)
	}
	return sum, nil
}

// flow is two hosts and the road between them.
type flow struct {
	c      *Cell
	cfg    *assoc.Config
	now    rawio.Time
	net    *simnet.Net
	hosts  [2]*lab.Host // client, server
	answer []byte
	left   int // octets that the client waits for
	got    int // octets that have come
	bulky  bool
}

func newFlow(c *Cell, cfg *assoc.Config, seed uint64) *flow {
	f := &flow{c: c, cfg: cfg, net: simnet.New(seed), answer: make([]byte, max(c.Size, bulkChunk))}
	f.net.Separate()
	var addr [2]netip.AddrPort
	for i := range addr {
		addr[i] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 77, byte(1 + i), 1}), 9899)
		f.hosts[i] = lab.NewHost(i, int64(2*seed)+int64(i), MTU, rawio.DontFragment|rawio.ECNField, addr[i])
	}
	up := simnet.Params{Delay: c.RTT / 2, Rate: c.Rate, Queue: c.Queue(), MTU: MTU}
	down := up
	down.Jitter, down.Reorder, down.ReorderDelay, down.Duplicate, down.MarkQueue = c.Jitter, c.Reorder, c.ReorderDelay, c.Duplicate, c.MarkQueue
	if down.Loss = c.Loss; c.Burst > 1 {
		down.Loss = 0
		down.Burst = simnet.Burst{Enter: c.Loss / (1 - c.Loss) / c.Burst, Leave: 1 / c.Burst, Loss: 1}
	}
	if c.BothWays {
		up = down
	}
	f.net.SetLink(addr[0].Addr(), addr[1].Addr(), up)
	f.net.SetLink(addr[1].Addr(), addr[0].Addr(), down)
	return f
}

var errNoEnd = errors.New("no end within an hour")

func (f *flow) connect() error {
	if err := f.hosts[1].Endpoint.Listen(serverPort, f.cfg); err != nil {
		return err
	}
	a, err := f.hosts[0].Endpoint.Connect(f.now, f.cfg, clientPort, f.hosts[0].Addr, []netip.AddrPort{f.hosts[1].Addr}, serverPort)
	if err != nil {
		return err
	}
	f.hosts[0].Adopt(a)
	if !f.run(f.now.Add(patience), func() bool { return a.State() == assoc.Established }) {
		return errNoEnd
	}
	return nil
}

// transfer is a request and its answer. hit says that the road lost a packet meanwhile.
func (f *flow) transfer() (took time.Duration, hit bool, err error) {
	lost := f.lost()
	began := f.now
	f.left = f.c.Size
	m := assoc.Message{Body: [2][]byte{f.answer[:requestLen]}}
	if err := f.hosts[0].Assocs[0].Send(f.now, &m); err != nil {
		return 0, false, err
	}
	if !f.run(f.now.Add(patience), func() bool { return f.left <= 0 }) {
		return 0, false, errNoEnd
	}
	return f.now.Sub(began), f.lost() > lost, nil
}

func (f *flow) lost() uint64 {
	s := f.net.Stats()
	return s.Lost + s.BurstLost + s.QueueDropped
}

// bulk counts what comes in each BinTime.
func (f *flow) bulk(d time.Duration) (bins []int, err error) {
	m := assoc.Message{Body: [2][]byte{f.answer[:requestLen]}}
	if err := f.hosts[0].Assocs[0].Send(f.now, &m); err != nil {
		return nil, err
	}
	f.bulky = true
	for range int(d / BinTime) {
		f.got = 0
		f.run(f.now.Add(BinTime), func() bool { return false })
		bins = append(bins, f.got)
	}
	return bins, nil
}

// run lets time pass until done says so, and says whether it did before the end.
func (f *flow) run(end rawio.Time, done func() bool) bool {
	for {
		f.applications()
		for _, h := range f.hosts {
			h.Poll(f.now, func(_ *assoc.Assoc, p *rawio.Packet) {
				if !p.Local.IsValid() {
					p.Local = h.Addr
				}
				f.net.Send(f.now, p)
			})
			h.Events = h.Events[:0]
		}
		if done() {
			return true
		}
		next := min(f.net.NextArrival(), f.hosts[0].NextTimeout(), f.hosts[1].NextTimeout())
		if next > end {
			f.now = end
			return false
		}
		f.now = max(f.now, next)
		for to, p, ok := f.net.Deliver(f.now); ok; to, p, ok = f.net.Deliver(f.now) {
			for _, h := range f.hosts {
				if h.Addr.Addr() == to {
					h.Receive(f.now, &p)
				}
			}
			p.Release()
		}
		for _, h := range f.hosts {
			h.HandleTimeout(f.now)
		}
	}
}

// applications are the client, which counts what comes, and the server, which answers.
func (f *flow) applications() {
	for i, h := range f.hosts {
		for _, a := range h.Assocs {
			for r, ok := a.Receive(); ok; r, ok = a.Receive() {
				n := r.Size
				a.Release(r)
				if i == 0 {
					f.left -= n
					f.got += n
				} else if !f.bulky {
					m := assoc.Message{Body: [2][]byte{f.answer[:f.c.Size]}}
					a.Send(f.now, &m) // it has room: one answer at a time, which is no longer than the buffer
				}
			}
			if i == 1 && f.bulky && a.State() == assoc.Established {
				for full := false; !full; {
					m := assoc.Message{Body: [2][]byte{f.answer[:bulkChunk]}}
					full = a.Send(f.now, &m) != nil
				}
			}
		}
	}
}
