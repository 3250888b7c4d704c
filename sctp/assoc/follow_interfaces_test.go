package assoc_test

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// followWorld is an addrWorld whose first host follows its interfaces. It may be away for long.
func followWorld(t *testing.T) (f *follower, b *assoc.Assoc) {
	t.Helper()
	f = &follower{}
	f.w, f.a, b = addrWorldWith(t, func(c *assoc.Config) {
		c.FollowInterfaces, c.AssocMaxRetrans = true, 1000
	})
	return f, b
}

// follower is an association whose own addresses follow the interfaces.
type follower struct {
	w *sctptest.Multi
	a *assoc.Assoc
}

// has says which of its addresses the host has from now on, and what else.
func (f *follower) has(which []int, other ...netip.Addr) {
	var up []netip.Addr
	f.w.Hosts[0].Down = nil
	for i, own := range f.w.Addrs[0] {
		isUp := false
		for _, n := range which {
			isUp = isUp || n == i
		}
		if isUp {
			up = append(up, own)
			f.w.Hosts[0].Knows(f.a, own) // an ASCONF may leave from any
		} else {
			f.w.Hosts[0].Down = append(f.w.Hosts[0].Down, own)
		}
		loss := 1.0
		if isUp {
			loss = 0
		}
		f.w.Net.SetLink(own, f.w.Addrs[1][0], simnet.Params{Delay: sctptest.Latency, Loss: loss})
		f.w.Net.SetLink(f.w.Addrs[1][0], own, simnet.Params{Delay: sctptest.Latency, Loss: loss})
	}
	up = append(up, other...)
	f.a.UsableFrom(f.w.Now, up)
	f.a.FollowAddrs(f.w.Now, up)
}

// A host changes networks: with both for a while, one after the other, with none in between. The new
// address is added first, and the old one deleted when the peer has sent to the new one. What is sent
// meanwhile arrives.
func TestAddressesFollowTheInterfaces(t *testing.T) {
	// req 5061-5.3-1, 5061-5.3-2
	for name, steps := range map[string][][]int{
		"both for a while":  {{0, 1}, {1}},
		"one, then another": {{1}},
		"none in between":   {{}, {1}},
		"and back":          {{1}, {0}, {1}},
		"through a third":   {{2}, {0, 2}, {0, 1}, {1}},
	} {
		t.Run(name, func(t *testing.T) {
			f, b := followWorld(t)
			w, a := f.w, f.a
			for _, step := range steps {
				f.has(step)
				w.Send(a, 0, make([]byte, 5000))
				w.Send(b, 0, make([]byte, 5000))
				w.Run(30 * time.Second)
			}
			check.Slice(t, "addresses", peerAddrsOf(b), []string{w.Addrs[0][1].String() + "+"})
			check.Equal(t, "own address", a.PathStats(0).Local.Addr(), w.Addrs[0][1])
			for i, h := range w.Hosts {
				check.Equal(t, "received", h.Received.Len(), 5000*len(steps))
				_, down := h.DownErr()
				check.That(t, !down, "host %d: down", i)
			}
			talk(t, w, a, b)
		})
	}
}

// While the peer has not sent to the new address, the old one is not given up: there would be no
// confirmed address to send to.
func TestDeletionWaitsForTheNewAddress(t *testing.T) {
	f, b := followWorld(t)
	w, one, two := f.w, f.w.Addrs[0][0], f.w.Addrs[0][1]
	f.has([]int{0, 1})
	w.Run(5 * time.Second)
	check.Slice(t, "both", peerAddrsOf(b), []string{one.String() + "+", two.String() + "+"})

	f, b = followWorld(t)
	w = f.w
	const ofHeartbeat = 80 // octets; an ASCONF, and the ACK of one, have fewer
	asconfs := 0
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 1 && len(pkt) >= ofHeartbeat {
			return 0, 0
		}
		if from == 0 && len(pkt) < ofHeartbeat {
			asconfs++
		}
		return 1, 0
	}
	f.has([]int{1})
	w.Run(30 * time.Second)
	check.Slice(t, "changes", changesOf(w.Hosts[0]), []string{"local address added " + two.String() + " <nil>"})
	check.Equal(t, "ASCONFs", asconfs, 1)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String()})
	w.Filter = nil
	w.Run(3 * time.Minute)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{two.String() + "+"})
	talk(t, w, f.a, b)

	f, b = followWorld(t)
	w = f.w
	f.has([]int{1})
	w.Net.SetLink(w.Addrs[1][0], two, simnet.Params{Loss: 1}) // what the peer sends is lost
	w.Run(30 * time.Second)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String()})
	w.Net.SetLink(w.Addrs[1][0], two, simnet.Params{Delay: sctptest.Latency})
	w.Run(3 * time.Minute)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{two.String() + "+"})
	talk(t, w, f.a, b)
}

// A host has gone on before the peer has answered. The answer makes the address that it had meanwhile
// one of the association, but no source: what is asked for next leaves from where the host is.
func TestHostThatHasGoneOn(t *testing.T) {
	f, b := followWorld(t)
	w := f.w
	w.Filter = func(from int, _ wire.Packet) (int, time.Duration) { return from, 0 }
	f.has([]int{2})
	w.Run(100 * time.Millisecond)
	w.Filter = nil
	f.has([]int{1})
	w.Run(500 * time.Millisecond) // T-4 takes a second
	check.Slice(t, "changes", changesOf(w.Hosts[0])[:2], []string{"local address added " + w.Addrs[0][2].String() + " <nil>",
		"local address added " + w.Addrs[0][1].String() + " <nil>"})
	w.Run(time.Minute)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{w.Addrs[0][1].String() + "+"})
}

// A host comes back to the address that it is just deleting, and has no other any more. The request
// leaves from there: the peer refuses it, and the association goes on.
func TestBackAtTheAddressThatIsBeingDeleted(t *testing.T) {
	f, b := followWorld(t)
	w := f.w
	f.has([]int{0, 1, 2})
	w.Run(10 * time.Second)
	check.Equal(t, "addresses", b.NumPaths(), 3)
	w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
	f.has([]int{0, 1})
	w.Run(500 * time.Millisecond)
	w.Filter = nil
	f.has([]int{2})
	w.Run(5 * time.Minute)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{w.Addrs[0][2].String() + "+"})
	talk(t, w, f.a, b)
}

// What is not added: addresses that mean nothing to the peer, that are the peer's, or more than there
// may be. What the peer refuses is asked for again when it has gone and come back, and not before.
// One that the program removes stays away.
func TestAddressesThatAreNotFollowed(t *testing.T) {
	f, b := followWorld(t)
	w, a := f.w, f.a
	one, two := w.Addrs[0][0], w.Addrs[0][1]
	foreign := netip.MustParseAddr("192.0.2.77")
	w.Hosts[1].Own = []netip.Addr{foreign}
	odd := []netip.Addr{foreign, w.Addrs[1][0], netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fe80::1%eth"),
		netip.MustParseAddr("169.254.3.4"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::1")}
	f.has([]int{0, 1}, odd...)
	w.Run(10 * time.Second)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String() + "+"})
	asked := len(changesOf(w.Hosts[0]))
	check.Equal(t, "asked for", asked, 2)
	for range 3 {
		f.has([]int{0, 1}, odd...)
		w.Run(10 * time.Second)
	}
	check.Equal(t, "asked for", len(changesOf(w.Hosts[0])), asked)
	f.has([]int{0, 1})
	w.Run(time.Second)
	f.has([]int{0, 1}, odd...)
	w.Run(10 * time.Second)
	check.Equal(t, "asked for when it is back", len(changesOf(w.Hosts[0])), asked+1)

	must.OK(t, a.RemoveLocalAddr(w.Now, one))
	w.Run(10 * time.Second)
	f.has([]int{0, 1})
	w.Run(10 * time.Second)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{two.String() + "+"})
	f.has([]int{1})
	w.Run(time.Second)
	f.has([]int{0, 1})
	w.Run(10 * time.Second)
	check.Slice(t, "addresses when it is back", peerAddrsOf(b), []string{one.String() + "+", two.String() + "+"})

	var many []netip.Addr
	for i := range byte(20) {
		many = append(many, netip.AddrFrom4([4]byte{192, 0, 2, i}))
	}
	f.has([]int{0, 1}, many...)
	w.Run(10 * time.Second)
	check.Equal(t, "addresses", b.NumPaths(), assoc.MaxPaths)
	f.has([]int{0})
	w.Run(time.Minute)
	check.Slice(t, "addresses in the end", peerAddrsOf(b), []string{one.String() + "+"})
	before := len(w.Sent)
	f.has(nil, netip.MustParseAddr("169.254.3.4"))
	w.Run(time.Minute)
	for _, s := range w.Sent[before:] {
		check.That(t, !s.Local.Addr().IsLinkLocalUnicast(), "a packet from %v", s.Local)
	}
	f.has([]int{0})
	w.Run(time.Minute)
	talk(t, w, a, b)
}

// Changes under losses and in quick succession lead to where the host is.
func TestFollowingUnderLoss(t *testing.T) {
	for seed := range 60 {
		f, b := followWorld(t)
		w, rnd := f.w, lossOf(int64(seed))
		w.Filter = rnd.filter
		sent := [2]int{}
		for range 12 {
			var up []int
			for i := range 3 {
				if rnd.Intn(2) == 0 {
					up = append(up, i)
				}
			}
			f.has(up)
			for i, x := range []*assoc.Assoc{f.a, b} {
				w.Send(x, 0, make([]byte, 3000))
				sent[i] += 3000
			}
			w.Run(time.Duration(rnd.Intn(6000)) * time.Millisecond)
		}
		f.has([]int{2})
		w.Filter = nil
		w.Run(10 * time.Minute)
		check.Slice(t, "addresses", peerAddrsOf(b), []string{w.Addrs[0][2].String() + "+"})
		check.Equal(t, "received", w.Hosts[1].Received.Len(), sent[0])
		check.Equal(t, "received", w.Hosts[0].Received.Len(), sent[1])
		isEachRecordNew(t, w.World)
		must.That(t, !t.Failed(), "seed %d", seed)
	}
}

// Without protection there is no ASCONF, and so nothing follows.
func TestFollowingNeedsProtection(t *testing.T) {
	_, err := (&assoc.Config{FollowInterfaces: true}).Complete()
	var ce *assoc.ConfigError
	check.That(t, errors.As(err, &ce) && ce.Field == "FollowInterfaces", "%v", err)
	_, err = (&assoc.Config{FollowInterfaces: true, Protected: true}).Complete()
	check.OK(t, err)
}
