package simulated

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/cc"
)

// Controllers are ours, by name.
var Controllers = map[string]cc.Factory{
	"newreno": cc.NewReno, "cubic": cc.NewCubic, "bbr": cc.NewBBR,
}

// MTU of the roads.
const MTU = 1500

const (
	requestLen = 16
	bulkChunk  = 64 << 10
	// patience is how much virtual time a flow may take.
	patience = time.Hour
)

// Virtual makes flows of some transfers each over roads of simnet, in virtual time: what comes of
// it follows from the seed and from this project's code alone. In bulk each flow lasts as long as
// given. Config is that of both ends.
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
				if errs[i] = f.connectHosts(); errs[i] != nil {
					continue
				}
				if c.Size == 0 {
					s.bins, errs[i] = f.countBulk(bulk)
					continue
				}
				s.first, _, errs[i] = f.runTransfer()
				for range transfers {
					if errs[i] != nil {
						break
					}
					var took time.Duration
					var hit bool
					took, hit, errs[i] = f.runTransfer()
					s.group = append(s.group, took)
					if hit {
						s.hit++
					}
					f.runUntil(f.now.Add(c.Pause), func() bool { return false })
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

// flow is a client, a server and the road between them.
type flow struct {
	*hostPair
	c      *Cell
	cfg    *assoc.Config
	answer []byte
	left   int   // octets that the client waits for
	got    []int // octets that have come over each association
	bulky  bool
}

func newFlow(c *Cell, cfg *assoc.Config, seed uint64) *flow {
	f := &flow{hostPair: newPair(seed, 1), c: c, cfg: cfg, answer: make([]byte, max(c.Size, bulkChunk)),
		got: make([]int, 1)}
	f.applications = f.runTransfers
	up := simnet.Params{Delay: c.RTT / 2, Rate: c.Rate, Queue: c.Queue(), MTU: MTU}
	down := up
	down.Jitter, down.Reorder, down.ReorderDelay, down.Duplicate, down.MarkQueue = c.Jitter, c.Reorder,
		c.ReorderDelay, c.Duplicate, c.MarkQueue
	if down.Loss = c.Loss; c.Burst > 1 {
		down.Loss = 0
		down.Burst = simnet.Burst{Enter: c.Loss / (1 - c.Loss) / c.Burst, Leave: 1 / c.Burst, Loss: 1}
	}
	if c.BothWays {
		up = down
	}
	f.setRoad(0, up, down)
	return f
}

func (f *flow) connectHosts() error { return f.joinHosts(f.cfg, f.cfg) }

// runTransfer is a request and its answer. hit says that the road lost a packet meanwhile.
func (f *flow) runTransfer() (took time.Duration, hit bool, err error) {
	lost := f.numLost()
	began := f.now
	f.left = f.c.Size
	m := assoc.Message{Body: [2][]byte{f.answer[:requestLen]}}
	if err := f.hosts[0].Assocs[0].Send(f.now, &m); err != nil {
		return 0, false, err
	}
	if !f.runUntil(f.now.Add(patience), func() bool { return f.left <= 0 }) {
		return 0, false, errNoEnd
	}
	return f.now.Sub(began), f.numLost() > lost, nil
}

func (f *flow) numLost() uint64 {
	s := f.net.Stats()
	return s.Lost + s.BurstLost + s.QueueDropped
}

// countBulk counts what comes in each BinTime.
func (f *flow) countBulk(d time.Duration) (bins []int, err error) {
	m := assoc.Message{Body: [2][]byte{f.answer[:requestLen]}}
	if err := f.hosts[0].Assocs[0].Send(f.now, &m); err != nil {
		return nil, err
	}
	f.bulky = true
	for range int(d / BinTime) {
		f.got[0] = 0
		f.runUntil(f.now.Add(BinTime), func() bool { return false })
		bins = append(bins, f.got[0])
	}
	return bins, nil
}

// runTransfers is the client, which counts what comes, and the server, which answers.
func (f *flow) runTransfers() {
	for i, h := range f.hosts {
		for k, a := range h.Assocs {
			for r, ok := a.Receive(); ok; r, ok = a.Receive() {
				n := r.Size
				a.Release(r)
				if i == 0 {
					f.left -= n
					f.got[k] += n
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
