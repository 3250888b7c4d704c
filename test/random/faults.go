package random

import (
	"hash/crc32"
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/internal/test/simulation"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
)

// host is a machine of a run.
type host struct {
	r      *run
	id     int
	spec   Host
	node   *simulation.Node
	rand   *simnet.Rand
	off    bool
	nat    *nat
	jumped rawio.Time // when its clock last did
	udp    bool       // some of its associations go through UDP
}

// nat translates the one address of a host. What comes to a port or an address that it had before
// is lost.
type nat struct {
	inside, outside netip.AddrPort
	generation      int
}

// encap is the UDP port of SCTP (RFC 6951).
const encap = 9899

// addrOf is the address of a host on a network.
func addrOf(host, net int) netip.Addr {
	n := byte(host + 1)
	switch net {
	case 0:
		return netip.AddrFrom4([4]byte{10, 0, 0, n})
	case 1:
		return netip.AddrFrom16([16]byte{0: 0xfd, 15: n})
	}
	return netip.AddrFrom4([4]byte{172, 16, 0, n})
}

// renewNAT gives the NAT another port, or another address too.
func (h *host) renewNAT(roam bool) {
	x := h.nat
	x.generation++
	addr := x.outside.Addr()
	if roam || !addr.IsValid() {
		addr = netip.AddrFrom4([4]byte{100, 64, byte(x.generation), byte(h.id + 1)})
	}
	x.outside = netip.AddrPortFrom(addr, uint16(20000+x.generation))
	h.r.atNAT[addr] = h
}

// sendPacket sends a packet of a host, through its NAT if there is one.
func (h *host) sendPacket(p *rawio.Packet) {
	h.r.sealedPacket(h, p)
	if h.nat != nil {
		q := *p
		q.Local = h.nat.outside
		p = &q
	}
	h.r.g.Net().Send(h.r.g.Now(), p)
}

// deliverPacket takes a packet from the network.
func (r *run) deliverPacket(to netip.Addr, p *rawio.Packet) {
	if h := r.atNAT[to]; h != nil {
		if p.Local != h.nat.outside {
			return
		}
		p.Local = h.nat.inside
		to = p.Local.Addr()
	}
	n := r.g.NodeAt(to)
	if h := r.hosts[r.ids[n]]; !h.off {
		n.Receive(p)
	}
}

// networkLink is the link from an address of one host to an address of another.
type networkLink struct {
	a, b, net int
	from, to  netip.Addr
}

// faultCount is what has gone wrong between two hosts.
type faultCount struct {
	active int
	last   rawio.Time
}

func pairOf(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

func (r *run) faultsBetween(a, b int) *faultCount {
	t := r.troubles[pairOf(a, b)]
	if t == nil {
		t = &faultCount{}
		r.troubles[pairOf(a, b)] = t
	}
	return t
}

// quietSince is since when nothing goes wrong between two hosts: now, when something does.
func (r *run) quietSince(a, b int) (t rawio.Time) {
	for _, x := range []*faultCount{r.faultsBetween(a, b), r.faultsBetween(a, a), r.faultsBetween(b, b)} {
		if x.active > 0 {
			return r.g.Now()
		}
		t = max(t, x.last)
	}
	return t
}

// countFault says that something goes wrong until the function that it returns is called.
func (r *run) countFault(a, b int) (healed func(after time.Duration)) {
	t := r.faultsBetween(a, b)
	t.active++
	return func(after time.Duration) {
		t.active--
		t.last = max(t.last, r.g.Now().Add(after))
	}
}

// joinHosts makes the links between two hosts.
func (r *run) joinHosts(a, b int) {
	for _, x := range r.hosts[a].netIDs() {
		for _, y := range r.hosts[b].netIDs() {
			from, to := r.outsideAddr(a, x), r.outsideAddr(b, y)
			if from.Is4() != to.Is4() {
				continue
			}
			r.ways = append(r.ways, &networkLink{a, b, max(x, y), from, to}, &networkLink{b, a, max(x, y), to, from})
			r.setLink(r.ways[len(r.ways)-2])
			r.setLink(r.ways[len(r.ways)-1])
		}
	}
}

func (h *host) netIDs() []int { return []int{0, 1, 2}[:h.spec.Nets] }

// outsideAddr is the address that others see.
func (r *run) outsideAddr(id, net int) netip.Addr {
	if h := r.hosts[id]; h.nat != nil {
		return h.nat.outside.Addr()
	}
	return addrOf(id, net)
}

// setLink gives a link what the faults under way make of it.
func (r *run) setLink(w *networkLink) {
	p, cut := r.linkParams(w)
	net := r.g.Net()
	net.SetLink(w.from, w.to, p)
	if cut {
		net.Partition(w.from, w.to)
	} else {
		net.Heal(w.from, w.to)
	}
}

// linkParams is what the faults under way make of a link, and whether they cut it.
func (r *run) linkParams(w *networkLink) (p simnet.Params, cut bool) {
	random := mixSeed(r.s.Seed, 2, uint64(w.a), uint64(w.b), uint64(w.net))
	p = simnet.Params{Delay: time.Duration(1+random%80) * time.Millisecond,
		MTU: min(r.hosts[w.a].nominalMTU(), r.hosts[w.b].nominalMTU()), Quote: 64}
	for _, a := range r.faults {
		if a.Kind == Isolate && (a.A == w.a || a.A == w.b) || a.Kind == Cut && pairOf(a.A, a.B) == pairOf(w.a, w.b) &&
			isAffected(a, w) {
			cut = true
		} else if a.Kind.ofWay() && a.A == w.a && a.B == w.b && isAffected(a, w) {
			a.applyFault(&p)
		}
	}
	return p, cut
}

// tcpRoad is what a link makes of TCP now: what is lost, damaged or far too late is sent again.
func (r *run) tcpRoad(from, to *simulation.Node) simulation.Road {
	a, b := r.hosts[r.ids[from]], r.hosts[r.ids[to]]
	for _, w := range r.ways {
		if w.a == a.id && w.b == b.id && w.net == 0 {
			p, cut := r.linkParams(w)
			return simulation.Road{Delay: p.Delay + p.Jitter, Loss: 1 - (1-p.Loss)*(1-p.Corrupt)*(1-p.Burst.Enter),
				Rate: p.Rate, MTU: p.MTU, Closed: cut || p.Loss >= 1 || a.off || b.off}
		}
	}
	return simulation.Road{Closed: true}
}

func isAffected(a *Act, w *networkLink) bool { return a.Net < 0 || a.Net == w.net }

// applyFault is what an act does to a link.
func (a *Act) applyFault(p *simnet.Params) {
	part, ms := float64(a.N)/100, time.Duration(a.N)*time.Millisecond
	switch a.Kind {
	case Loss:
		p.Loss = max(p.Loss, part)
	case Burst:
		p.Burst = simnet.Burst{Enter: 0.01, Leave: 0.2, Loss: 0.9}
	case Route:
		p.Delay += ms
	case Jitter:
		p.Jitter += ms
	case Rate:
		p.Rate, p.Queue = int64(a.N)*1000, max(3*p.MTU, a.N*200)
		p.MarkQueue = p.Queue / 2
	case Duplicate:
		p.Duplicate = part
	case Reorder:
		p.Reorder, p.ReorderDelay = part, 50*time.Millisecond
	case Late:
		p.Reorder, p.ReorderDelay = part, late
		p.Duplicate = max(p.Duplicate, part) // so that old ones come beside new ones
	case Corrupt:
		p.Corrupt = part
	case Mark:
		p.Mark = part
	case MTU:
		p.MTU = min(p.MTU, a.N)
	case Hole:
		p.MTU, p.Quote = min(p.MTU, a.N), 0
	case Mute:
		p.Loss = 1
	}
}

// late is how much later a packet is that is very late.
const late = 90 * time.Second

// beginFault does what goes wrong, and undoes it in time.
func (r *run) beginFault(a *Act) {
	switch {
	case a.Kind == Crash:
		r.crashHost(a)
	case a.Kind == Jump:
		h := r.hosts[a.A]
		h.node.Skew += a.For
		h.jumped = r.g.Now()
		r.countFault(a.A, a.A)(0)
	case a.Kind == Rebind || a.Kind == Roam:
		r.rebindNAT(a)
	default:
		r.faults = append(r.faults, a)
		r.resetLinks()
		b := a.B
		if a.Kind == Isolate {
			b = a.A
		}
		healed := r.countFault(a.A, b)
		r.undoAfter(a.For, func() {
			for i, f := range r.faults {
				if f == a {
					r.faults = append(r.faults[:i], r.faults[i+1:]...)
					break
				}
			}
			r.resetLinks()
			after := time.Duration(a.N) * time.Millisecond // a long way takes its time
			if a.Kind == Late {
				after = 2 * late
			}
			healed(after)
		})
	}
}

func (r *run) resetLinks() {
	for _, w := range r.ways {
		r.setLink(w)
	}
}

// undoAfter has something undone when its time has come, or when all is to be well.
func (r *run) undoAfter(after time.Duration, do func()) {
	i := len(r.undos)
	once := func() {
		if r.undos[i] != nil {
			r.undos[i] = nil
			do()
		}
	}
	r.undos = append(r.undos, once)
	r.g.After(after, once)
}

// crashHost has a host forget everything and come back later.
func (r *run) crashHost(a *Act) {
	h := r.hosts[a.A]
	if h.off {
		return
	}
	h.off = true
	for _, u := range r.users {
		u.crashHost(h)
	}
	h.node.Crash()
	for _, c := range r.watchesOf(h) {
		delete(r.watches, c)
	}
	healed := r.countFault(a.A, a.A)
	r.undoAfter(a.For, func() {
		h.off = false
		healed(0)
		for _, u := range r.users {
			u.bootHost(h)
		}
	})
}

func (r *run) watchesOf(h *host) (list []*assoc.Assoc) {
	for a, w := range r.watches {
		if w.h == h {
			list = append(list, a)
		}
	}
	return list
}

// rebindNAT changes what a NAT makes of a host.
func (r *run) rebindNAT(a *Act) {
	h := r.hosts[a.A]
	if h.nat == nil {
		return
	}
	h.renewNAT(a.Kind == Roam)
	for _, w := range r.ways {
		if w.a == h.id {
			w.from = h.nat.outside.Addr()
		} else if w.b == h.id {
			w.to = h.nat.outside.Addr()
		}
	}
	r.resetLinks()
	healed := r.countFault(a.A, a.A)
	after := time.Duration(0)
	if a.Kind == Roam {
		after = blame // the association cannot survive it
	}
	healed(after)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksumOK computes the checksum of a packet (RFC 9260 appendix A) by other code than the
// stack's.
func checksumOK(b []byte) bool {
	if len(b) < 12 {
		return false
	}
	sum := crc32.Update(0, castagnoli, b[:8])
	sum = crc32.Update(sum, castagnoli, []byte{0, 0, 0, 0})
	sum = crc32.Update(sum, castagnoli, b[12:])
	return b[8] == byte(sum) && b[9] == byte(sum>>8) && b[10] == byte(sum>>16) && b[11] == byte(sum>>24)
}
