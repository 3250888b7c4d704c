package assoc

import (
	"encoding/binary"
	"io"
	"net/netip"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/pmtud"
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Sizes of RFC 8899 section 5.1.2, in octets.
const (
	baseIPv4MTU = 1220 // IP packet with one of BASE_PLPMTU: an SCTP packet, its UDP header included where it has one
	minIPv6MTU  = 1280 // IP packet that every IPv6 link carries
	minPathMTU  = 512  // SCTP packet that every path is taken to carry
)

// pathMTU is the search for the MTU of one path.
type pathMTU struct {
	pmtud.Search
	encapGain int // octets that packets have gained since the path was made because their UDP header went
}

// maxSealedMTU is the longest packet whose chunks a record holds.
const maxSealedMTU = wire.CommonHeaderLen + seal.MaxContent

// sealOverhead returns by how much a packet grows when it is sealed. MTUs are lengths of packets
// before that.
func (c *Config) sealOverhead() int {
	if c.Protected {
		return seal.Overhead
	}
	return 0
}

// overhead returns how much longer an IP packet is than the packet in it, before it is sealed.
func (c *Config) overhead(remote netip.AddrPort) int {
	return rawio.Overhead(remote) + c.sealOverhead()
}

// searchesMTU says whether path MTUs are searched for. The link has to send packets whole, or not
// at all. Otherwise IP would fragment a probe, and its answer would prove nothing. Over a link to
// one peer it proves enough: no packet is longer than the base size then, and one of that size has
// arrived, however it did.
func (c *Config) searchesMTU(env *Env) bool {
	return !c.DisablePMTUD && env.Features&(rawio.DontFragment|rawio.PointToPoint) != 0
}

// trustsBaseMTU says whether the search begins as if it had ended already, at all that the link
// takes. Only a black hole starts it.
func (c *Config) trustsBaseMTU(env *Env) bool { return env.Features&rawio.DontFragment == 0 }

// mtuLimits returns the sizes that a path may have. shift is that of its pathMTU.
func (c *Config) mtuLimits(env *Env, local, remote netip.AddrPort, shift int) pmtud.Limits {
	head := c.overhead(remote)
	most := env.MTU(local.Addr(), remote.Addr()) + shift - c.sealOverhead()
	if c.MTU > 0 {
		most = min(most, c.MTU-head)
	}
	lim := pmtud.Limits{Min: rawio.MinMTU - head, Base: baseIPv4MTU - head, Max: max(most, minPathMTU), Overhead: head}
	if c.Protected {
		lim.Max = min(lim.Max, maxSealedMTU)
	}
	if base := env.baseMTU(local, remote); base > 0 {
		base -= c.sealOverhead()
		lim.Base, lim.Min = base, min(base, minPathMTU)
		if c.trustsBaseMTU(env) {
			lim.Max = min(lim.Max, base)
		}
	} else if remote.Addr().Is6() { // where every link carries more than the base size
		lim.Min, lim.Base = minIPv6MTU-head, minIPv6MTU-head
	}
	return lim
}

// baseMTU returns a length that every path of the link carries, 0 if none is known.
func (e *Env) baseMTU(local, remote netip.AddrPort) int {
	if e.BaseMTU == nil {
		return 0
	}
	return e.BaseMTU(local.Addr(), remote.Addr())
}

// firstMTU returns what a path is taken to carry at first. That is the base size, or without a
// search all that the link takes.
func (c *Config) firstMTU(env *Env, lim pmtud.Limits) int {
	if c.searchesMTU(env) {
		return min(lim.Base, lim.Max) &^ 3
	}
	return lim.Max
}

// restartMTUSearch restarts the MTU search of a path that has another source now, and so perhaps
// another link. Most of the way is the same, so the search begins with no more than was known to
// pass. Sources take turns when the peer does not answer. With a fresh search, a long chunk would
// each time be sent whole, and be too long.
func (a *Assoc) restartMTUSearch(p *path) {
	lim := a.cfg.mtuLimits(a.env, p.Local, p.Remote, p.mtuSearch.encapGain)
	lim.Base = min(lim.Base, p.MTU())
	p.mtuSearch.Search = pmtud.New(lim)
	a.setMTU(p, min(a.cfg.firstMTU(a.env, lim), p.MTU()))
	a.refreshCutFrom(p)
}

// refreshCutFrom asks the link which packets it sends in fragments.
func (a *Assoc) refreshCutFrom(p *path) {
	if a.env.CutFrom != nil {
		if p.CutFrom = int32(a.env.CutFrom(p.Local.Addr(), p.Remote.Addr())); p.CutFrom > 0 {
			p.CutFrom = max(p.CutFrom-int32(a.cfg.sealOverhead()), 1)
		}
	}
	if p.SafePMTU = 0; p.CutFrom < 0 {
		p.SafePMTU = uint16(max(a.env.baseMTU(p.Local, p.Remote)-a.cfg.sealOverhead(), 0))
	}
}

// padForFragments pads the open packet, in which a chunk is too long for the path. The link then
// sends it in fragments. These are of the size that passes everywhere. So neither their arrival nor
// their loss says anything about the path MTU.
func (a *Assoc) padForFragments(out *TxBatch, p *path) (fragment int) {
	n := int(p.CutFrom) - out.Len()
	if a.cfg.Protected {
		n = min(n, maxSealedMTU-out.Len())
	}
	if n >= wire.ChunkHeaderLen {
		out.Commit(wire.AppendPadHeader(out.Tail(), n-wire.ChunkHeaderLen))
		out.Bytes(padding[:n-wire.ChunkHeaderLen])
	}
	return p.mtuSearch.Limits().Min + a.cfg.overhead(p.Remote)
}

// setMTU changes the MTU of a path and reports it.
func (a *Assoc) setMTU(p *path, mtu int) {
	if mtu = max(mtu, minPathMTU); mtu == p.MTU() {
		return
	}
	p.SetMTU(mtu)
	a.refreshCutFrom(p)
	if a.recv != nil && p == a.primaryPath() {
		a.recv.SetPMDCS(p.PMDCS())
	}
	a.events.push(Event{Kind: EventMTUChanged, Path: p.Remote})
}

// isSearchingMTU says whether the searches run in the present state.
func (a *Assoc) isSearchingMTU() bool {
	return heartbeatStates.has(a.state) && a.cfg.searchesMTU(a.env)
}

// runMTUSearches advances the search of each path (RFC 8899 section 5.2) and records whether a
// probe is due. A path is searched from when it is confirmed, and while it answers.
func (a *Assoc) runMTUSearches(now rawio.Time) {
	a.send.probeDue = false
	if !a.isSearchingMTU() {
		return
	}
	for _, p := range a.paths {
		up := p.State == tx.Active || p.State == tx.PotentiallyFailed
		switch s := &p.mtuSearch; {
		case !up:
			s.Stop()
			if p.IsBlackHole() { // T3-rtx goes on sending what is outstanding
				s.HandleBlackHole(now)
				p.ResetBlackHole()
			}
		case s.State() == pmtud.Disabled:
			a.refreshMaxMTU(p)
			if a.cfg.trustsBaseMTU(a.env) {
				s.StartComplete()
			} else {
				s.StartAtMax(now)
			}
		case p.IsBlackHole():
			a.refreshMaxMTU(p)
			s.HandleBlackHole(now)
			p.ResetBlackHole()
		case now >= s.Deadline():
			a.refreshMaxMTU(p)
			s.HandleTimeout(now)
		}
		a.setMTU(p, p.mtuSearch.Size())
		p.BasePMTU = p.mtuSearch.Limits().Min
		if p.SafePMTU > 0 && p.mtuSearch.Size() > int(p.SafePMTU) { // a packet with one chunk is longer than Min
			p.BasePMTU = int(p.SafePMTU)
		}
		a.send.probeDue = a.send.probeDue || p.mtuSearch.ProbeDue(now) != 0
	}
}

// refreshMaxMTU takes account of a change of the link's own MTU.
func (a *Assoc) refreshMaxMTU(p *path) {
	p.mtuSearch.SetMax(a.cfg.mtuLimits(a.env, p.Local, p.Remote, p.mtuSearch.encapGain).Max)
}

// probeInfoLen is the Heartbeat Info of a probe: nonce (8), size (4), nothing (4). The nonce
// identifies the path.
const probeInfoLen = 16

// padding is what probes are padded with.
var padding [wire.MaxPadLen]byte

// transmitProbe sends a probe that is due: HEARTBEAT and PAD (RFC 8899 section 6.2.1.2). It carries
// no user data, so neither cwnd nor the peer's window hold it back. A loss is no error of the path.
func (a *Assoc) transmitProbe(now rawio.Time, out *TxBatch) bool {
	for _, p := range a.paths {
		size := p.mtuSearch.ProbeDue(now)
		if size == 0 {
			continue
		}
		rtt, timer := p.RTO(), p.RTO()
		if p.SRTT() > 0 {
			rtt, timer = p.SRTT(), p.SRTT()+4*p.RTTVar() // without what losses have added to the RTO
		}
		var info [probeInfoLen]byte
		_, err := io.ReadFull(a.env.Rand, info[:8])
		p.mtuSearch.ProbeSent(now, binary.BigEndian.Uint64(info[:]), rtt, timer)
		if err != nil {
			continue // without a nonce nobody could tell: it counts as lost
		}
		binary.BigEndian.PutUint32(info[8:], uint32(size))
		a.openPacket(out, a.id.peerTag, p.Local, p, size)
		out.Commit(wire.AppendHeartbeat(out.Tail(), info[:]))
		out.Commit(wire.AppendPadHeader(out.Tail(), out.Room()-wire.ChunkHeaderLen))
		out.Bytes(padding[:out.Room()])
		a.stats.MTUProbesOut++
		a.finishPacket(out)
		return true
	}
	a.send.probeDue = false
	return false
}

// handleProbeAck takes the answer to a probe. An answer that comes after the search, as the
// association shuts down, is valid, but nobody needs it.
func (a *Assoc) handleProbeAck(now rawio.Time, info []byte) {
	nonce, size := binary.BigEndian.Uint64(info), int(binary.BigEndian.Uint32(info[8:]))
	for _, p := range a.paths {
		if rtt, ok := p.mtuSearch.ProbeAcked(now, nonce, size); ok {
			a.stats.MTUProbesAcked++
			if !a.isSearchingMTU() {
				return
			}
			p.ObserveProvedRTT(rtt)
			a.setMTU(p, p.mtuSearch.Size())
			a.noteAnswer(now, p)
			return
		}
	}
	a.rareCounters().BadHeartbeatAcks++
}

// handlePacketTooBig takes a validated report of the network (RFC 8899 section 4.6.2). Without a
// search it lowers the path's MTU at once, but never below what every path carries.
func (a *Assoc) handlePacketTooBig(now rawio.Time, p *path, linkMTU int) {
	mtu := linkMTU - a.cfg.overhead(p.Remote)
	if a.cfg.searchesMTU(a.env) {
		p.mtuSearch.HandleTooBig(now, mtu)
		a.setMTU(p, p.mtuSearch.Size())
	} else if mtu = max(mtu, p.mtuSearch.Limits().Min); mtu < p.MTU() {
		a.setMTU(p, mtu)
	}
}
