package assoc

import (
	"net/netip"
	"slices"
	"syscall"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/asconf"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Errors of AddLocalAddr, RemoveLocalAddr and SetPeerPrimary, and of the events that say how they
// end. What the peer has refused is an *AddrRefusedError.
var (
	// ErrAddrChangesUnsupported: the peer does not support it, or the association is not protected.
	// It matches syscall.EOPNOTSUPP.
	ErrAddrChangesUnsupported error = sysError{"sctp: the peer does not change addresses", syscall.EOPNOTSUPP}
	// ErrAddrChangesBusy: too many changes wait. It matches syscall.EAGAIN.
	ErrAddrChangesBusy error = sysError{"sctp: too many changes of addresses are under way", syscall.EAGAIN}
	// ErrLastLocalAddr: an association keeps one own address. It matches syscall.EBUSY.
	ErrLastLocalAddr error = sysError{"sctp: the last own address cannot be removed", syscall.EBUSY}
	// ErrNoLocalAddr: the association has no such own address. It matches syscall.EADDRNOTAVAIL.
	ErrNoLocalAddr error = sysError{"sctp: not an own address of the association", syscall.EADDRNOTAVAIL}
	// ErrWildcardOnly: an own address is named by 0.0.0.0 or :: alone, over UDP (RFC 6951 section
	// 5.7) and over a link to one peer (RFC 8261 section 6.3). It matches syscall.EINVAL.
	ErrWildcardOnly error = sysError{"sctp: over this link only 0.0.0.0 or :: names an own address", syscall.EINVAL}
)

// AddrRefusedError is the cause with which the peer has refused to change an address. It matches
// syscall.EADDRNOTAVAIL.
type AddrRefusedError = asconf.RefusedError

// addrChangeError returns what the program hears for an error of package asconf.
func addrChangeError(err error) error {
	switch err {
	case asconf.ErrUnsupported:
		return ErrAddrChangesUnsupported
	case asconf.ErrBusy:
		return ErrAddrChangesBusy
	}
	return err
}

// ownChanges are the changes of own addresses that are under way.
type ownChanges struct {
	path        *path        // where the ASCONF went last
	t4ExpiresAt rawio.Time   // the T-4 RTO
	fromNew     bool         // the next one leaves from an address that is added
	leaving     []netip.Addr // being deleted: nothing leaves from there
	joining     []netip.Addr // being added: only ASCONF does
	wildcard    netip.Addr   // the own address that an unspecified one stands for, if it is known
}

// AddLocalAddr asks the peer to take other addresses of this host for the association (RFC 5061).
// Nothing but that leaves from there before the peer has answered. An unspecified address stands
// for the one that the packet leaves from. EventLocalAddrAdded says of each how it ends. Addresses
// that are named together, or wait for others, go in one request; one that the peer refuses does
// not keep others out.
func (a *Assoc) AddLocalAddr(now rawio.Time, addrs ...netip.Addr) error {
	return a.askAddrChange(now, asconf.Add, addrs)
}

// RemoveLocalAddr asks the peer to use addresses of this host no more. Nothing leaves from there
// from now on. An unspecified one stands for all but the one that the packet leaves from.
// EventLocalAddrRemoved says of each how it ends.
func (a *Assoc) RemoveLocalAddr(now rawio.Time, addrs ...netip.Addr) error {
	return a.askAddrChange(now, asconf.Delete, addrs)
}

// SetPeerPrimary asks the peer to send to an own address as long as that answers.
// EventPeerPrimarySet says how it ends.
func (a *Assoc) SetPeerPrimary(now rawio.Time, addr netip.Addr) error {
	return a.askAddrChange(now, asconf.SetPrimary, []netip.Addr{addr})
}

// askAddrChange asks for changes of one kind, all or none.
func (a *Assoc) askAddrChange(now rawio.Time, op asconf.Op, addrs []netip.Addr) error {
	switch {
	case setupStates.has(a.state) || a.awaitsKeys():
		return ErrNotUp
	case !sendStates.has(a.state):
		return ErrClosing
	case !a.changesAddresses():
		return ErrAddrChangesUnsupported
	}
	var list []asconf.Request
	for _, addr := range addrs {
		r := asconf.Request{Op: op, Addr: addr.Unmap()}
		if err := a.checkAddrChange(r); err != nil {
			return err
		}
		list = append(list, r)
	}
	waiting := a.ensureAsconf().requester.Waiting(asconf.Delete)
	if op == asconf.Delete && !hasUnspecified(list) && len(a.ownAddrs()) <= len(list)+waiting {
		return ErrLastLocalAddr // F5
	}
	if err := a.asconf().requester.Ask(list...); err != nil {
		return addrChangeError(err)
	}
	if f := a.follower(); f != nil {
		f.noteAsked(op, addrs)
	}
	a.advanceAsconf(now)
	return nil
}

// checkAddrChange says whether the address of a request can be asked about.
func (a *Assoc) checkAddrChange(r asconf.Request) error {
	switch {
	case r.Addr.IsUnspecified():
	case a.hidesAddrs():
		return ErrWildcardOnly
	case !Unicast(r.Addr) || r.Addr.IsLinkLocalUnicast():
		return ErrNoLocalAddr
	case r.Op != asconf.Add && !slices.Contains(a.ownAddrs(), r.Addr):
		return ErrNoLocalAddr
	}
	return nil
}

func hasUnspecified(list []asconf.Request) bool {
	return slices.ContainsFunc(list, func(r asconf.Request) bool { return r.Addr.IsUnspecified() })
}

// hidesAddrs says whether no ASCONF names an address: a translator would not change it (RFC 6951
// section 5.7), or it would mean nothing to the peer (RFC 8261 section 6.3).
func (a *Assoc) hidesAddrs() bool {
	return a.primaryPath().Remote.Port() != 0 || a.env.isPointToPoint()
}

// ownAddrs returns the own addresses that the peer knows, as far as they are known here.
func (a *Assoc) ownAddrs() []netip.Addr {
	if len(a.addrs.local) > 0 {
		return a.addrs.local
	}
	var list []netip.Addr
	for _, p := range a.paths {
		if own := p.Local.Addr().Unmap(); Unicast(own) && !p.reach.isRemoved && !slices.Contains(list, own) {
			list = append(list, own)
		}
	}
	return list
}

// beginChange asks for changes while none are under way. wildcard is the own address that an
// unspecified one stands for.
func (a *Assoc) beginChange(now rawio.Time, op asconf.Op, addrs []netip.Addr, wildcard netip.Addr) {
	var list []asconf.Request
	for _, x := range addrs {
		list = append(list, asconf.Request{Op: op, Addr: x})
	}
	if a.asconf().requester.Ask(list...) == nil {
		a.sendNextAsconf(now, wildcard)
	}
}

// advanceAsconf sends the next requests, if none are under way.
func (a *Assoc) advanceAsconf(now rawio.Time) { a.sendNextAsconf(now, netip.Addr{}) }

func (a *Assoc) sendNextAsconf(now rawio.Time, wildcard netip.Addr) {
	h := a.asconf()
	if h == nil || !sendStates.has(a.state) || !h.requester.Begin(a.lookupAddr) {
		return
	}
	list, isSent := h.requester.Current()
	if isSent {
		return
	}
	h.own = ownChanges{t4ExpiresAt: rawio.Never, fromNew: a.dataPath().reach.localAddrGone, wildcard: wildcard}
	for _, r := range list {
		switch {
		case r.Addr.IsUnspecified() && r.Op == asconf.Add && wildcard.IsValid():
			h.own.joining = append(h.own.joining, wildcard)
		case r.Addr.IsUnspecified() && r.Op == asconf.Delete && wildcard.IsValid():
			for _, own := range slices.Clone(a.ownAddrs()) {
				if own != wildcard {
					h.own.leaving = append(h.own.leaving, own)
					a.stopSending(own)
				}
			}
		case r.Addr.IsUnspecified():
		case r.Op == asconf.Delete:
			h.own.leaving = append(h.own.leaving, r.Addr)
			a.stopSending(r.Addr)
		case r.Op == asconf.Add && !slices.Contains(a.ownAddrs(), r.Addr):
			h.own.joining = append(h.own.joining, r.Addr)
		}
	}
	a.sendAsconf(now, h)
}

// lookupAddr returns the address in front of requests: one that stays part of the association,
// where there is one (section 5.3.2).
func (a *Assoc) lookupAddr(list []asconf.Request) netip.Addr {
	for _, own := range a.ownAddrs() {
		isAsked := slices.ContainsFunc(list, func(r asconf.Request) bool { return r.Addr == own })
		if !isAsked && !own.IsLinkLocalUnicast() && !a.hidesAddrs() {
			return own
		}
	}
	return unspecifiedOf(a.primaryPath().Remote.Addr())
}

// sendAsconf sends the requests under way, and starts T-4.
func (a *Assoc) sendAsconf(now rawio.Time, h *asconfState) {
	o := &h.own
	o.path = a.asconfPath()
	var from netip.AddrPort // the path's own
	if own := a.asconfSource(o); own.IsValid() {
		from = netip.AddrPortFrom(own, o.path.Local.Port())
	}
	a.control.closeEntry()
	a.queueReply(o.path, from, append(a.control.buf, h.requester.Chunk()...))
	a.control.closeEntry()
	o.t4ExpiresAt = now.Add(o.path.RTO())
	a.send.burstContinues = false
}

// asconfSource returns the own address that the requests under way leave from, invalid for that of
// the path. A host that has moved may have gone on since: ASCONF may leave from any address.
func (a *Assoc) asconfSource(o *ownChanges) netip.Addr {
	f, to := a.follower(), o.path.Remote.Addr()
	if o.wildcard.IsValid() {
		if instead := a.usableSource(to); f.isGone(o.wildcard) && instead.IsValid() && len(o.joining) > 0 {
			o.wildcard, o.joining[0] = instead, instead
		}
		return o.wildcard
	}
	if !o.fromNew {
		return netip.Addr{}
	}
	i := slices.IndexFunc(o.joining, func(own netip.Addr) bool {
		return familyOf(own) == familyOf(to) && !f.isGone(own)
	})
	if i >= 0 {
		return o.joining[i]
	}
	if o.path.reach.localAddrGone {
		return a.usableSource(to)
	}
	return netip.Addr{}
}

func (a *Assoc) asconfExpiresAt() rawio.Time {
	if h := a.asconf(); h != nil && sendStates.has(a.state) {
		if f := a.follower(); f != nil {
			return min(h.own.t4ExpiresAt, f.retryAt)
		}
		return h.own.t4ExpiresAt
	}
	return rawio.Never
}

// handleAsconfTimeout handles the expiry of T-4 (section 5.1, B1 to B5).
func (a *Assoc) handleAsconfTimeout(now rawio.Time) {
	h := a.asconf()
	if f := a.follower(); f != nil && now >= f.retryAt {
		f.retryAt = rawio.Never
		a.followInterfaces(now)
	}
	if now < h.own.t4ExpiresAt {
		return
	}
	p := a.asconfPath()
	p.Backoff()
	if a.countPathError(now, p, true); a.state == Closed {
		return
	}
	h.own.path = a.paths[a.sender().Alternate(&p.Path).Index()]
	h.own.fromNew = h.own.path.reach.localAddrGone || !h.own.fromNew
	a.sendAsconf(now, h)
}

// handleAsconfAck takes the answer to requests. It says whether to go on with the packet.
func (a *Assoc) handleAsconfAck(now rawio.Time, in *inbound, c wire.Chunk) bool {
	if !a.changesAddresses() {
		return a.handleUnknown(in, c)
	}
	x, err := wire.AsAsconfAck(c)
	if err != nil || !asconfStates.has(a.state) {
		a.rareCounters().Malformed++
		return true
	}
	h := a.ensureAsconf()
	done, outcomes, fatal := h.requester.HandleAck(x)
	if fatal != nil { // F0
		a.rareCounters().Violations++
		a.abortWithCause(refusal{code: wire.CauseIllegalAsconfAck, info: []byte(fatal.Error())})
		return false
	}
	if !done {
		return true
	}
	if p := h.own.path; p != nil {
		a.noteAnswer(now, p)
	}
	a.endAddrChanges(now, outcomes)
	a.advanceAsconf(now)
	a.followIfDue(now)
	return true
}

// endAddrChanges takes over what the peer has agreed to, takes back what it has not, and tells the
// program.
func (a *Assoc) endAddrChanges(now rawio.Time, list []asconf.Outcome) {
	h := a.asconf()
	leaving, wildcard := h.own.leaving, h.own.wildcard
	h.own = ownChanges{t4ExpiresAt: rawio.Never}
	for _, x := range list {
		kind := [...]EventKind{asconf.Add: EventLocalAddrAdded, asconf.Delete: EventLocalAddrRemoved,
			asconf.SetPrimary: EventPeerPrimarySet}[x.Op]
		if x.Addr.IsUnspecified() && wildcard.IsValid() {
			if x.Op == asconf.Delete && x.Err != nil {
				for _, own := range leaving {
					a.startSending(now, own)
				}
			}
			x.Addr = wildcard
		}
		if f := a.follower(); f != nil {
			f.noteFollowed(now, x)
		}
		switch {
		case x.Op == asconf.Add && x.Err == nil && !x.Addr.IsUnspecified(),
			x.Op == asconf.Delete && x.Err != nil && slices.Contains(leaving, x.Addr):
			a.startSending(now, x.Addr)
		}
		a.events.push(Event{Kind: kind, Path: netip.AddrPortFrom(x.Addr, 0), Err: addrChangeError(x.Err)})
	}
}

// startSending makes an own address one that paths may begin at. Those whose own address is gone
// begin there at once.
func (a *Assoc) startSending(now rawio.Time, addr netip.Addr) {
	list := a.ownAddrs()
	if !slices.Contains(list, addr) {
		list = append(slices.Clone(list), addr)
	}
	a.addrs.local = list
	a.addrs.families |= familyOf(addr)
	for _, p := range a.paths {
		if p.reach.localAddrGone && familyOf(addr) == familyOf(p.Remote.Addr()) && !p.reach.isRemoved {
			a.sendFrom(p, addr)
			a.resendEarly(now, p)
		}
	}
}

// stopSending has nothing leave from an own address any more (F4).
func (a *Assoc) stopSending(addr netip.Addr) {
	a.addrs.local = slices.DeleteFunc(slices.Clone(a.ownAddrs()), func(x netip.Addr) bool { return x == addr })
	for _, p := range a.paths {
		if p.Local.Addr().Unmap() != addr {
			continue
		}
		if from, ok := a.sourceFor(p.Remote.Addr(), p.Local); ok {
			a.sendFrom(p, from.Addr())
		}
	}
	if a.sacks.local.Addr().Unmap() == addr {
		a.sacks.local = netip.AddrPort{}
	}
	for i := range a.control.entries {
		if e := &a.control.entries[i]; e.local.Addr().Unmap() == addr {
			e.local = netip.AddrPort{}
		}
	}
}

// sendFrom gives a path another own address: another way, with congestion control of its own.
func (a *Assoc) sendFrom(p *path, own netip.Addr) {
	p.Local, p.lastLocalAddr = netip.AddrPortFrom(own, p.Local.Port()), netip.AddrPort{}
	p.reach.localAddrGone = a.follower().isGone(own)
	p.Mend()
	p.ResetCongestion()
	a.restartMTUSearch(p)
}

// isNoSource says whether nothing may leave from an own address: it is being added, or deleted.
func (a *Assoc) isNoSource(own netip.Addr) bool {
	h := a.asconf()
	return h != nil && (slices.Contains(h.own.leaving, own) || slices.Contains(h.own.joining, own))
}

// isLeaving says whether an own address is being deleted. "ABORT Chunks arriving destined to the IP
// address being deleted MUST be ignored" (F4).
func (a *Assoc) isLeaving(own netip.Addr) bool {
	h := a.asconf()
	return h != nil && slices.Contains(h.own.leaving, own)
}

// noteUnknownToPeer takes the peer's report that it does not know a chunk (A9).
func (a *Assoc) noteUnknownToPeer(e wire.Error) {
	h := a.asconf()
	if h == nil {
		return
	}
	cs := e.Causes()
	for cause, ok := cs.Next(); ok; cause, ok = cs.Next() {
		info := cause.Info()
		if cause.Code() == wire.CauseUnrecognizedChunkType && len(info) > 0 &&
			wire.ChunkType(info[0]) == wire.ChunkAsconf {
			a.abandonAsconf(ErrAddrChangesUnsupported)
			h.requester.Unrecognized()
		}
	}
}

// abandonAsconf ends all own requests.
func (a *Assoc) abandonAsconf(why error) {
	if h := a.asconf(); h != nil {
		var list []asconf.Outcome
		for _, r := range h.requester.Abandon() {
			list = append(list, asconf.Outcome{Request: r, Err: why})
		}
		a.endAddrChanges(0, list)
	}
}
