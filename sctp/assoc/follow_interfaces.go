package assoc

import (
	"net/netip"
	"slices"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/asconf"
)

// Own addresses follow the interfaces (Config.FollowInterfaces). A new address of this host is added
// to the association, and one that is gone is deleted, by ASCONF. That is a change of the program's,
// as if it had called AddLocalAddr and RemoveLocalAddr.
//
//	 news: 10.1.0.7 is gone, 10.2.0.9 is there
//	    │
//	    ▼                    ASCONF-ACK            a packet to 10.2.0.9
//	 add 10.2.0.9 ─────────▶ it is a source ─────▶ it is confirmed ─────▶ delete 10.1.0.7
//
// The peer may have nowhere to send to while no new address is confirmed. So a deletion waits until
// the peer has sent to another own address, and is tried again if the peer refuses it.
//
// Over UDP an address has no name (RFC 6951 section 5.7), and behind a NAT the own one is not that
// which the peer sees. Then a wildcard is added from the new address, and all others are deleted.

// follower is what an association with Config.FollowInterfaces has.
type follower struct {
	usable  []netip.Addr // own addresses that something can be sent from, nil before the first news
	heard   []netip.Addr // own addresses that the peer has sent to
	refused []netip.Addr // that the peer or the program does not want, while they are usable
	isDue   bool         // something may have to be asked for
	retryAt rawio.Time   // a deletion was refused
	retried int          // so often
}

const (
	maxHeard       = 2 * MaxPaths
	minFollowRetry = time.Second
	maxFollowRetry = time.Minute
)

// follower returns what there is of it, nil if own addresses do not follow the interfaces.
func (a *Assoc) follower() *follower {
	if a.rareState == nil || !a.cfg.FollowInterfaces {
		return nil
	}
	return a.rareState.follower
}

// FollowAddrs sets the own addresses that an association with Config.FollowInterfaces may have. The
// association keeps the list. Call UsableFrom first. PollTransmit has something to send then.
func (a *Assoc) FollowAddrs(now rawio.Time, list []netip.Addr) {
	if !a.cfg.FollowInterfaces || a.state == Closed {
		return
	}
	f := a.ensureFollower()
	f.usable = slices.Clone(list)
	if f.usable == nil {
		f.usable = []netip.Addr{}
	}
	f.refused = slices.DeleteFunc(f.refused, func(x netip.Addr) bool { return !slices.Contains(list, x) })
	f.retried, f.retryAt = 0, rawio.Never
	if h := a.asconf(); h != nil && h.own.t4ExpiresAt != rawio.Never && a.dataPath().reach.localAddrGone {
		a.sendAsconf(now, h) // what was sent may not have left
	}
	a.followInterfaces(now)
}

func (a *Assoc) ensureFollower() *follower {
	rare := a.ensureRareState()
	if rare.follower == nil {
		rare.follower = &follower{retryAt: rawio.Never}
	}
	return rare.follower
}

// noteHeard notes that the peer has sent to an own address: it knows it, and that it can be reached.
func (a *Assoc) noteHeard(own netip.Addr) {
	f := a.ensureFollower()
	if !own.IsValid() || slices.Contains(f.heard, own) {
		return
	}
	if len(f.heard) == maxHeard {
		f.heard = slices.Delete(f.heard, 0, 1)
	}
	f.heard, f.isDue = append(f.heard, own), true
}

// followIfDue is for each packet that was handled.
func (a *Assoc) followIfDue(now rawio.Time) {
	if f := a.follower(); f != nil && f.isDue {
		a.followInterfaces(now)
	}
}

// followInterfaces asks for what is next: new addresses, and then the end of old ones. It does
// nothing while changes are under way; the answer to those leads here.
func (a *Assoc) followInterfaces(now rawio.Time) {
	f := a.follower()
	if f == nil || f.usable == nil || !sendStates.has(a.state) || a.awaitsKeys() || !a.changesAddresses() ||
		a.addrs.peerIsLocal {
		return
	}
	f.isDue = false
	if h := a.asconf(); h != nil && h.requester.IsBusy() {
		return
	}
	own := a.ownAddrs()
	f.heard = slices.DeleteFunc(f.heard, func(x netip.Addr) bool {
		return !slices.Contains(own, x) && !slices.Contains(f.usable, x)
	})
	if op, list, from := f.next(a, now, own); len(list) > 0 {
		a.ensureAsconf()
		a.beginChange(now, op, list, from)
	}
}

// next returns the addresses to ask for. from is the own address that a wildcard stands for.
func (f *follower) next(a *Assoc, now rawio.Time, own []netip.Addr) (op asconf.Op, list []netip.Addr, from netip.Addr) {
	isOwnUsable := slices.ContainsFunc(own, func(x netip.Addr) bool { return slices.Contains(f.usable, x) })
	byName := !a.hidesAddrs()
	var spare netip.Addr // that is better than none
	for _, x := range f.usable {
		switch {
		case slices.Contains(own, x) || slices.Contains(f.refused, x) || !a.mayBecomeOwn(x):
		case byName && isMeaningfulAt(x, a.PeerAddr().Addr()):
			if len(own)+len(list) < MaxPaths {
				list = append(list, x)
			}
		case !spare.IsValid() || scopeOf(x) > scopeOf(spare):
			spare = x
		}
	}
	switch {
	case len(list) > 0:
		return asconf.Add, list, netip.Addr{}
	case spare.IsValid() && !isOwnUsable:
		return asconf.Add, []netip.Addr{unspecifiedOf(spare)}, spare
	}
	i := slices.IndexFunc(own, func(x netip.Addr) bool {
		return slices.Contains(f.usable, x) && slices.Contains(f.heard, x)
	})
	if i < 0 || f.retryAt != rawio.Never && now < f.retryAt {
		return 0, nil, netip.Addr{}
	}
	for _, x := range own {
		if !slices.Contains(f.usable, x) && !x.IsLinkLocalUnicast() {
			list = append(list, x)
		}
	}
	if len(list) > 0 && !byName {
		return asconf.Delete, []netip.Addr{unspecifiedOf(own[i])}, own[i]
	}
	return asconf.Delete, list, netip.Addr{}
}

// mayBecomeOwn says whether an address of this host can be one of the association.
func (a *Assoc) mayBecomeOwn(x netip.Addr) bool {
	return Unicast(x) && !x.IsLinkLocalUnicast() && !x.IsLoopback() && a.findPath(x) == nil && a.hasPathOfFamily(x)
}

func unspecifiedOf(x netip.Addr) netip.Addr {
	if x.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// noteFollowed takes the end of a change, to an address that a wildcard may have stood for.
func (f *follower) noteFollowed(now rawio.Time, x asconf.Outcome) {
	switch {
	case x.Op == asconf.Add && x.Err != nil:
		f.refused = append(f.refused, x.Addr)
	case x.Op == asconf.Delete && x.Err != nil:
		f.retryAt = now.Add(min(minFollowRetry<<min(f.retried, 10), maxFollowRetry))
		f.retried++
	case x.Op == asconf.Delete:
		f.retryAt, f.retried = rawio.Never, 0
	}
	f.isDue = true
}

// noteAsked takes what the program has asked for itself: what it removes is not added again.
func (f *follower) noteAsked(op asconf.Op, addrs []netip.Addr) {
	f.refused = slices.DeleteFunc(f.refused, func(x netip.Addr) bool { return slices.Contains(addrs, x) })
	for _, x := range addrs {
		if op == asconf.Delete && slices.Contains(f.usable, x) && !slices.Contains(f.refused, x) {
			f.refused = append(f.refused, x)
		}
	}
}

// usableSource returns an own address that ASCONF can leave from, to an address of the peer. It is
// invalid if none is known. One that is just being deleted is the last resort. The peer refuses that
// (F8); nothing else would end the request (see docs/dev/dtls-chunk.md).
func (a *Assoc) usableSource(remote netip.Addr) (from netip.Addr) {
	f := a.follower()
	if f == nil {
		return from
	}
	for _, x := range f.usable {
		if a.mayBecomeOwn(x) && familyOf(x) == familyOf(remote) && (!from.IsValid() || a.isLeaving(from)) {
			from = x
		}
	}
	return from
}

// isGone says whether an own address is known to have gone.
func (f *follower) isGone(own netip.Addr) bool {
	return f != nil && f.usable != nil && isLeftWith(own) && !slices.Contains(f.usable, own)
}
