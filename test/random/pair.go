package random

import (
	"errors"
	"fmt"
	"time"

	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// portion is how many requests are posted without a pause.
const portion = 10

// pair is RDMA between two hosts: a tenant of internal/test/simulation.
type pair struct {
	r    *run
	spec *Assoc
	w    *simulation.World
	tags map[uint32]bool  // of associations whose end was asked for
	seen simulation.Tales // at the last look

	looks   int
	stirred bool // something has happened since the memory was looked at
}

func newPair(r *run, i int) *pair {
	s := &r.s.Assocs[i]
	p := &pair{r: r, spec: s, tags: make(map[uint32]bool)}
	a, b := r.hosts[s.A], r.hosts[s.B]
	g := simulation.Tenant{Seed: rand64(r.s.Seed, 5, uint64(i)), Port: uint16(portB + i), Local: uint16(portA + i),
		ConfigA: configure(s.Config, a), ConfigB: configure(s.Config, b), Lost: p.lost}
	if s.UDP {
		g.UDP = encap
	}
	if max(a.mtu(), b.mtu()) > 1500 { // a segment longer than the receive buffer ends the association
		g.ConfigA.RecvBuffer, g.ConfigB.RecvBuffer = 0, 0
	}
	p.w = simulation.Join(a.node, b.node, &g)
	return p
}

func (p *pair) lost(n *simulation.Node, a *assoc.Assoc, end error) {
	p.r.ended(p.r.hosts[p.r.ids[n]], a, end, p)
	p.r.tally.end(end)
}

func (t *Tally) end(err error) {
	var abort *assoc.AbortError
	switch {
	case err == assoc.ErrShutdown:
		t.Graceful++
	case errors.As(err, &abort):
		t.Aborted++
	default:
		t.TimedOut++
	}
}

func (p *pair) act(a *Act) {
	switch a.Kind {
	case Work:
		p.w.Work(min(a.N, portion), a.B)
		for left, at := a.N-portion, time.Duration(0); left > 0; left -= portion {
			at += a.For * portion / time.Duration(a.N)
			p.r.g.After(at, func() { p.w.Work(min(left, portion), 0) })
		}
	case Hurl:
		h := p.r.hosts[[]int{p.spec.A, p.spec.B}[a.B]]
		for _, c := range h.node.Conns() {
			if x := c.Assoc(); p.r.userOf(x) == user(p) {
				p.tags[x.LocalTag()], p.tags[x.PeerTag()] = true, true
			}
		}
		p.w.Lose(h.node)
	}
}

func (p *pair) boot(h *host) {
	if h.id == p.spec.A || h.id == p.spec.B {
		p.w.Boot(h.node)
	}
}

func (p *pair) crash(h *host) {
	if h.id == p.spec.A || h.id == p.spec.B {
		p.w.Crash(h.node)
	}
}

func (p *pair) accept(_ *host, a *assoc.Assoc) simulation.Conn { return p.w.Accept(a) }
func (p *pair) next() rawio.Time                               { return p.w.Next() }
func (p *pair) idle() bool                                     { return p.w.Idle() }
func (p *pair) close()                                         { p.w.Close() }
func (p *pair) asked(a *assoc.Assoc) bool                      { return p.tags[a.LocalTag()] || p.tags[a.PeerTag()] }
func (p *pair) muted(*assoc.Assoc) rawio.Time                  { return 0 }
func (p *pair) String() string {
	return fmt.Sprintf("[RDMA %d-%d: %s]", p.spec.A, p.spec.B, p.w.Pending())
}

// check compares all memory, now and then also when nothing is known to have happened.
func (p *pair) check() {
	if p.looks++; p.looks%16 == 0 || p.stirred {
		p.stirred = false
		p.w.Check()
	}
}

// work lets the world act, and takes its violations.
func (p *pair) work() {
	p.w.Act()
	if seen := p.w.Seen(); seen.Done != p.seen.Done {
		p.seen, p.stirred = *seen, true
		p.r.traffic()
	}
	if v := p.w.Broken(); v != nil {
		p.r.fail(v.Invariant, v.Host, "%s", v.What)
	}
}

func (p *pair) finish() {
	p.work()
	if !p.w.Over() && p.r.bad == nil {
		p.r.fail(CleanEnd, "-", "RDMA between %d and %d has not ended: %s", p.spec.A, p.spec.B, p.w.Pending())
	}
}
