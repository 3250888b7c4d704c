package assoc

import (
	"net/netip"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/asconf"
	"github.com/rddp-go/rddp/sctp/internal/bucket"
	"github.com/rddp-go/rddp/sctp/internal/tx"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Dynamic address reconfiguration (RFC 5061), in sealed packets alone. The seal is in the place of
// AUTH (RFC 4895), which that requires: each chunk is known to be the peer's, and none comes twice.

// asconfState is what there is of it, once either side has asked for something.
type asconfState struct {
	responder *asconf.Responder
	requester *asconf.Requester
	own       ownChanges
	strangers bucket.Bucket // of strangerRate
}

// changesAddresses says whether both sides have offered it.
func (a *Assoc) changesAddresses() bool { return a.agreed.extensions.Has(AddressChanges) }

// asconf returns what there is of it, nil if nobody has asked for any.
func (a *Assoc) asconf() *asconfState {
	if a.rareState == nil {
		return nil
	}
	return a.rareState.asconf
}

// ensureAsconf makes it if there is none.
func (a *Assoc) ensureAsconf() *asconfState {
	rare := a.ensureRareState()
	if rare.asconf == nil {
		rare.asconf = &asconfState{responder: asconf.NewResponder(rare.peerTSN),
			requester: asconf.NewRequester(a.life.localTSN), own: ownChanges{t4ExpiresAt: rawio.Never}}
	}
	return rare.asconf
}

// asconfPath returns where the ASCONF under way has gone, or is to go.
func (a *Assoc) asconfPath() *path {
	if p := a.asconf().own.path; p != nil {
		return p
	}
	return a.dataPath()
}

// asconfStates are those in which both chunks are sent (section 5.1.1, C4).
var asconfStates = newStateSet(Established, ShutdownPending, ShutdownReceived, ShutdownSent)

// handleAsconf takes an ASCONF of the peer. It says whether to go on with the packet.
func (a *Assoc) handleAsconf(now rawio.Time, in *inbound, c wire.Chunk) bool {
	if !a.changesAddresses() {
		return a.handleUnknown(in, c)
	}
	x, err := wire.AsAsconf(c)
	if err != nil {
		a.rareCounters().Malformed++
		return true
	}
	if !asconfStates.has(a.state) {
		a.rareCounters().Unexpected++
		return true
	}
	a.sender() // it rests no longer
	source, room := in.Remote.Addr().Unmap(), a.dataPath().MTU()-headerRoom
	ack := a.ensureAsconf().responder.Handle(x, !in.hasAsconf, source, room, peerAddrs{a, now, in.Packet})
	in.hasAsconf = true
	if ack == nil {
		return true
	}
	// "The destination address [...] MUST be the source address" (E6), confirmed or not.
	if p := a.findPath(source); p != nil {
		a.queueReply(p, in.Local, append(a.control.buf, ack...))
	} else if b, ok := a.outbox.openPacket(); ok {
		a.outbox.queuePacket(outPacket{src: a.id.localPort, dst: a.id.peerPort, tag: a.id.peerTag, local: in.Local,
			remote: in.Remote, sealer: a.sealer()}, append(b, ack...))
	}
	return a.state != Closed
}

// handleStranger takes a sealed packet from an address that is not known as the peer's. Only an
// ASCONF in it counts: it may make the address one of the peer's. What the peer says of where to
// look the association up was not needed, as the tag has found it.
func (a *Assoc) handleStranger(now rawio.Time, in *inbound) (counts bool) {
	if s := a.protection(); s == nil || !s.isOpen || !a.changesAddresses() {
		return false
	}
	cs := in.pkt.Chunks()
	for c, ok := cs.Next(); ok; c, ok = cs.Next() {
		if c.Type() == wire.ChunkAsconf {
			a.handleAsconf(now, in, c)
			counts = true
		}
	}
	if counts && a.state != Closed {
		a.notePeerAlive(now)
	}
	return counts
}

// strangerRate is how often packets from unknown addresses are opened, as anybody can send them who
// has seen the tag.
var strangerRate = bucket.Rate{Burst: 16, Interval: 100 * time.Millisecond}

// opensStranger says whether a sealed packet from an unknown address is opened, and counts it.
func (a *Assoc) opensStranger(now rawio.Time) bool {
	return a.changesAddresses() && a.ensureAsconf().strangers.Allow(now, strangerRate)
}

// peerAddrs is the peer's addresses, as an ASCONF in a packet changes them.
type peerAddrs struct {
	a   *Assoc
	now rawio.Time
	p   *rawio.Packet // that it came in
}

func (l peerAddrs) Has(x netip.Addr) bool { return l.a.findPath(x) != nil }
func (l peerAddrs) Count() int            { return l.a.NumPaths() }

func (l peerAddrs) IsConfirmed(x netip.Addr) bool {
	p := l.a.findPath(x)
	return p != nil && p.State != tx.Unconfirmed
}

func (l peerAddrs) IsLastConfirmed(x netip.Addr) bool {
	if !l.IsConfirmed(x) {
		return false
	}
	for _, p := range l.a.paths {
		if p.State != tx.Unconfirmed && p.Remote.Addr() != x {
			return false
		}
	}
	return true
}

// Add adds an address that has to be confirmed before data goes there (F14). Over UDP only the
// source of the packet has a port that is known (RFC 6951 section 5.7).
func (l peerAddrs) Add(x netip.Addr) bool {
	a, source := l.a, l.p.Remote.Addr().Unmap()
	if !Unicast(x) || x.IsLinkLocalUnicast() && x != source || !isMeaningfulAt(x, source) ||
		l.p.Remote.Port() != 0 && x != source {
		return false
	}
	a.addPath(localAddrOf(l.p), netip.AddrPortFrom(x, l.p.Remote.Port()), tx.Unconfirmed)
	p := a.findPath(x)
	if p == nil {
		return false
	}
	a.scheduleHeartbeat(p, l.now)
	return true
}

func (l peerAddrs) Delete(x netip.Addr) { l.a.removePath(l.now, l.a.findPath(x)) }

func (l peerAddrs) DeleteOthers(than netip.Addr) {
	for _, p := range l.a.paths {
		if !p.reach.isRemoved && p.Remote.Addr() != than {
			l.a.removePath(l.now, p)
		}
	}
}

func (l peerAddrs) SetPrimary(x netip.Addr) {
	p := l.a.findPath(x)
	l.a.makePrimary(p.Index())
	l.a.events.push(Event{Kind: EventPrimary, Path: p.Remote})
}
