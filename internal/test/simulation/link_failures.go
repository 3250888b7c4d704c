package simulation

import (
	"errors"
	"syscall"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// linkFailures decides when the networks of a world with two of them fail and return. A nil fate
// does nothing.
type linkFailures struct {
	rand  *simnet.Rand
	down  [2]bool
	until [2]rawio.Time // when each changes next
	good  [2][2]simnet.Params
	kept  int // failures so far
}

// NewMultihomed makes a world from a seed whose hosts are joined by two networks, each with faults
// of its own, that fail and return while the hosts work.
func NewMultihomed(seed uint64) *World {
	w := New(seed)
	f := &linkFailures{rand: simnet.NewRand(seed ^ 0x66617465)}
	w.linkFailures = f
	for i, h := range []*Host{w.a, w.b} {
		h.node.AddAddr(w.hostAddrs.second[i])
		h.cfg.LocalAddrs = h.node.Addrs
		h.drawLimits(f.rand)
	}
	mtu := leastMTU(w.hostAddrs.second[0], w.mtu+20)
	w.net.SetLink(w.a.node.Addrs[1], w.b.node.Addrs[1], w.drawPath(mtu))
	w.net.SetLink(w.b.node.Addrs[1], w.a.node.Addrs[1], w.drawPath(mtu))
	for k := range 2 {
		f.good[k][0], _ = w.net.Link(w.a.node.Addrs[k], w.b.node.Addrs[k])
		f.good[k][1], _ = w.net.Link(w.b.node.Addrs[k], w.a.node.Addrs[k])
		f.until[k] = f.drawAfter(0, time.Second)
	}
	return w
}

// drawLimits draws the limits that decide how paths fail.
func (h *Host) drawLimits(r *simnet.Rand) {
	c := &h.cfg
	c.PathMaxRetrans = 1 + r.IntN(5)
	c.PotentiallyFailedMaxRetrans = r.IntN(3) * r.IntN(2)
	if r.IntN(3) == 0 {
		limit := min(c.PotentiallyFailedMaxRetrans, c.PathMaxRetrans) + r.IntN(3)
		c.PrimarySwitchoverMaxRetrans = &limit
	}
	c.AssocMaxRetrans = 40
	c.HeartbeatInterval = time.Duration(1+r.IntN(10)) * time.Second
	c.RTOMax = time.Duration(20+r.IntN(40)) * time.Second // a shutdown may take five times that
	c.MaxInitRetrans = 40
	c.HidePotentiallyFailed = r.IntN(4) == 0
	c.HBMaxBurst = 1 + r.IntN(3)
}

// drawAfter draws a time after now, at most that long.
func (f *linkFailures) drawAfter(now rawio.Time, most time.Duration) rawio.Time {
	return now.Add(time.Duration(f.rand.IntN(int(most/time.Microsecond))+1) * time.Microsecond)
}

func (f *linkFailures) nextAt() rawio.Time {
	if f == nil {
		return rawio.Never
	}
	return min(f.until[0], f.until[1])
}

// actDue lets a network fail or return: wholly, or in one direction only. Both are out together for
// a short time at most. Now and then a host gets another primary path.
func (f *linkFailures) actDue(w *World) {
	if f == nil {
		return
	}
	for k := range 2 {
		if w.now < f.until[k] {
			continue
		}
		f.down[k] = !f.down[k]
		a, b := w.a.node.Addrs[k], w.b.node.Addrs[k]
		lost := f.good[k]
		if f.down[k] {
			f.kept++
			for dir := range lost {
				if both := f.rand.IntN(3) > 0; both || dir == f.kept%2 {
					lost[dir].Loss = 1
				}
			}
		}
		w.net.SetLink(a, b, lost[0])
		w.net.SetLink(b, a, lost[1])
		f.until[k] = f.drawAfter(w.now, []time.Duration{200 * time.Millisecond, 2 * time.Second,
			10 * time.Second}[f.rand.IntN(3)])
		if f.down[0] && f.down[1] {
			f.until[k] = f.drawAfter(w.now, 2*time.Second)
		}
		f.changePrimary(w)
	}
}

// isExcused says whether an association may end like that. Where networks differ in delay, one
// side's last packets can come to the other when that has ended already. Its answer to them, ABORT,
// overtakes its SHUTDOWN COMPLETE.
func (f *linkFailures) isExcused(end error) bool {
	return f != nil && errors.Is(end, syscall.ECONNRESET)
}

// changePrimary may change a primary path.
func (f *linkFailures) changePrimary(w *World) {
	h, peer := w.a, w.b
	if f.rand.IntN(2) == 0 {
		h, peer = peer, h
	}
	if f.rand.IntN(3) > 0 || len(h.conns) == 0 || h.conns[0].down != nil || !h.conns[0].up {
		return
	}
	if err := h.conns[0].a.SetPrimary(peer.node.Addrs[f.rand.IntN(2)]); err != nil && err != assoc.ErrNoPath {
		w.failf("%s: SetPrimary: %v", h.name, err)
	}
}
