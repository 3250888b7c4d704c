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

// rdmaPair is RDMA between two hosts, over SCTP or TCP: one pair of internal/test/simulation.
type rdmaPair struct {
	r    *run
	spec *Assoc
	w    *simulation.World
	tags map[uint32]bool     // of associations whose end was asked for
	seen simulation.Coverage // at the last look

	looks   int
	stirred bool // something has happened since the memory was looked at
}

func newPair(r *run, i int) *rdmaPair {
	s := &r.s.Assocs[i]
	p := &rdmaPair{r: r, spec: s, tags: make(map[uint32]bool)}
	a, b := r.hosts[s.A], r.hosts[s.B]
	seed := mixSeed(r.s.Seed, 5, uint64(i))
	if s.Use == RDMAOverTCP {
		p.w = simulation.JoinOverTCP(a.node, b.node, &simulation.JoinTCPConfig{Seed: seed, Road: r.tcpRoad,
			Lost: p.connLost})
		return p
	}
	g := simulation.JoinConfig{Seed: seed, Port: uint16(portB + i), Local: uint16(portA + i),
		ConfigA: drawConfig(s.Config, a), ConfigB: drawConfig(s.Config, b), Lost: p.assocLost}
	if s.UDP {
		g.UDP = encap
	}
	setKeys(&g.ConfigA, s.Keys, 0)
	setKeys(&g.ConfigB, s.Keys, 1)
	g.Keys = r.keys
	if max(a.nominalMTU(), b.nominalMTU()) > 1500 { // a segment longer than the receive buffer ends the association
		g.ConfigA.RecvBuffer, g.ConfigB.RecvBuffer = 0, 0
	}
	p.w = simulation.Join(a.node, b.node, &g)
	return p
}

func (p *rdmaPair) assocLost(n *simulation.Node, a *assoc.Assoc, end error) {
	p.r.judgeEnd(p.r.hosts[p.r.ids[n]], a, end, p)
	p.r.tally.countEnd(end)
	p.r.tally.countKeys(a)
}

// connLost takes the end of a TCP connection through which nothing came.
func (p *rdmaPair) connLost(end error) {
	since := p.r.quietSince(p.spec.A, p.spec.B)
	if quiet := p.r.g.Now().Sub(since); quiet >= blame {
		p.r.recordViolation(CleanEnd, "-", "a connection between %d and %d ended by %v: nothing has gone wrong for %v",
			p.spec.A, p.spec.B, end, quiet)
	}
	p.r.tally.TimedOut++
}

func (t *Tally) countEnd(err error) {
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

func (p *rdmaPair) carryOut(a *Act) {
	switch a.Kind {
	case Work:
		p.w.AddWork(min(a.N, portion), a.B)
		for left, at := a.N-portion, time.Duration(0); left > 0; left -= portion {
			at += a.For * portion / time.Duration(a.N)
			p.r.g.After(at, func() { p.w.AddWork(min(left, portion), 0) })
		}
	case Hurl:
		h := p.r.hosts[[]int{p.spec.A, p.spec.B}[a.B]]
		for _, c := range h.node.Conns() {
			if x := c.Assoc(); p.r.userOf(x) == assocUser(p) {
				p.tags[x.LocalTag()], p.tags[x.PeerTag()] = true, true
			}
		}
		p.w.LoseAssoc(h.node)
	}
}

func (p *rdmaPair) bootHost(h *host) {
	if h.id == p.spec.A || h.id == p.spec.B {
		p.w.Boot(h.node)
	}
}

func (p *rdmaPair) crashHost(h *host) {
	if h.id == p.spec.A || h.id == p.spec.B {
		p.w.Crash(h.node)
	}
}

func (p *rdmaPair) acceptAssoc(_ *host, a *assoc.Assoc) simulation.Conn { return p.w.Accept(a) }
func (p *rdmaPair) nextEventAt() rawio.Time                             { return p.w.Next() }
func (p *rdmaPair) isIdle() bool                                        { return p.w.Idle() }
func (p *rdmaPair) hasEnded() bool                                      { return p.spec.Use == RDMA || p.w.Over() }
func (p *rdmaPair) closeAll()                                           { p.w.Close() }
func (p *rdmaPair) endWasAsked(a *assoc.Assoc) bool {
	return p.tags[a.LocalTag()] || p.tags[a.PeerTag()]
}
func (p *rdmaPair) mutedUntil(*assoc.Assoc) rawio.Time { return 0 }
func (p *rdmaPair) String() string {
	return fmt.Sprintf("[RDMA %d-%d: %s]", p.spec.A, p.spec.B, p.w.Pending())
}

// checkMemory compares all memory, now and then also when nothing is known to have happened.
func (p *rdmaPair) checkMemory() {
	if p.looks++; p.looks%16 == 0 || p.stirred {
		p.stirred = false
		p.w.Check()
	}
}

// actDue lets the world act, and takes its violations.
func (p *rdmaPair) actDue() {
	p.w.ActDue()
	if seen := p.w.Coverage(); seen.Done != p.seen.Done {
		p.seen, p.stirred = *seen, true
		p.r.noteTraffic()
	}
	if v := p.w.Violation(); v != nil {
		p.r.recordViolation(v.Invariant, v.Host, "%s", v.What)
	}
}

func (p *rdmaPair) judgeEnd() {
	p.actDue()
	if !p.w.Over() && p.r.bad == nil {
		p.r.recordViolation(CleanEnd, "-", "RDMA between %d and %d has not ended: %s", p.spec.A, p.spec.B,
			p.w.Pending())
	}
}
