package assoc_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// addrWorld is two hosts with keys. The first has three addresses, of which it uses one; any of
// them reaches the only one that the second uses.
func addrWorld(t *testing.T) (w *sctptest.Multi, a, b *assoc.Assoc) {
	t.Helper()
	return addrWorldWith(t, func(*assoc.Config) {})
}

// addrWorldWith is addrWorld with other options.
func addrWorldWith(t *testing.T, set func(c *assoc.Config)) (w *sctptest.Multi, a, b *assoc.Assoc) {
	t.Helper()
	w = sctptest.NewMulti(t, 3)
	attachTLS(w.Hosts[0])
	attachTLS(w.Hosts[1])
	for _, own := range w.Addrs[0] {
		w.Net.Connect(own, w.Addrs[1][0], simnet.Params{Delay: sctptest.Latency})
	}
	cfg := assoc.Config{Protected: true, LocalAddrs: w.Addrs[1][:1]}
	set(&cfg)
	w.Listen(&cfg)
	cfg.LocalAddrs = w.Addrs[0][:1]
	a = w.Connect(&cfg, w.Addrs[1][0])
	w.Run(time.Second)
	b = w.Peer()
	must.That(t, a.IsProtected() && b.IsProtected(), "no keys: %v", w.Hosts[0].Events)
	w.Hosts[0].Reads, w.Hosts[1].Reads = true, true
	return w, a, b
}

// peerAddrsOf are the addresses of the peer, those that are confirmed with a +.
func peerAddrsOf(a *assoc.Assoc) (list []string) {
	for _, p := range sctptest.Paths(a) {
		state := ""
		if p.State == assoc.PathActive {
			state = "+"
		}
		list = append(list, p.Remote.Addr().String()+state)
	}
	slices.Sort(list)
	return list
}

// changesOf are the events about own addresses.
func changesOf(h *sctptest.Host) (list []string) {
	for _, e := range h.Events {
		switch e.Kind {
		case assoc.EventLocalAddrAdded, assoc.EventLocalAddrRemoved, assoc.EventPeerPrimarySet:
			list = append(list, fmt.Sprintf("%v %v %v", e.Kind, e.Path.Addr(), e.Err))
		}
	}
	return list
}

// talk has both sides send a message, which arrive.
func talk(t *testing.T, w *sctptest.Multi, a, b *assoc.Assoc) {
	t.Helper()
	for i, x := range []*assoc.Assoc{a, b} {
		w.Hosts[1-i].Received.Reset()
		w.Send(x, 0, bytes.Repeat([]byte("message "), 1000))
	}
	w.Run(10 * time.Second)
	for i, h := range w.Hosts {
		check.Equal(t, fmt.Sprintf("octets received by host %d", i), h.Received.Len(), 8000)
	}
}

// An own address is added, preferred, and the one of before removed; messages go on all the while.
func TestOwnAddressesChange(t *testing.T) {
	// req 5061-4.2.7-1
	w, a, b := addrWorld(t)
	one, two := w.Addrs[0][0], w.Addrs[0][1]
	must.OK(t, a.AddLocalAddr(w.Now, two))
	w.Run(time.Second)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String() + "+"})
	must.OK(t, a.SetPeerPrimary(w.Now, two))
	w.Run(time.Second)
	check.Equal(t, "primary", b.PeerAddr().Addr(), two)
	talk(t, w, a, b)
	must.OK(t, a.RemoveLocalAddr(w.Now, one))
	w.Run(time.Second)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{two.String() + "+"})
	before := len(w.Sent)
	talk(t, w, a, b)
	w.Run(5 * time.Minute) // heartbeats
	for _, s := range w.Sent[before:] {
		// req 5061-5.3-1, 5061-5.3-2
		check.That(t, s.Local.Addr() != one && s.Remote.Addr() != one, "a packet from %v to %v", s.Local, s.Remote)
		check.That(t, isSealed(s.Pkt), "%v in the clear", sctptest.ChunkTypes(s.Pkt))
	}
	check.Slice(t, "events", changesOf(w.Hosts[0]), []string{"local address added " + two.String() + " <nil>",
		"peer primary set " + two.String() + " <nil>", "local address removed " + one.String() + " <nil>"})
	for i := range 12 { // the places of removed addresses are used again
		own := w.Addrs[0][[]int{0, 2, 1}[i%3]]
		must.OK(t, a.AddLocalAddr(w.Now, own))
		w.Run(time.Second)
		must.OK(t, a.RemoveLocalAddr(w.Now, w.Addrs[0][[]int{1, 0, 2}[i%3]]))
		w.Run(time.Second)
		check.Slice(t, "addresses", peerAddrsOf(b), []string{own.String() + "+"})
	}
	talk(t, w, a, b)
	w.Run(time.Minute)
	must.OK(t, b.Shutdown(w.Now))
	w.Run(time.Second)
	for i, h := range w.Hosts {
		err, ok := h.DownErr()
		check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "host %d: %v", i, err)
	}
}

// Until the peer has answered, nothing but ASCONF leaves from a new address. Until the new address
// has answered a HEARTBEAT no data goes there, even if the peer prefers it.
func TestNewAddressIsVerified(t *testing.T) {
	// req 5061-5.3-1
	// req 5061-5.3-2
	w, a, b := addrWorld(t)
	one, two := w.Addrs[0][0], w.Addrs[0][1]
	before := len(w.Sent)
	w.Net.SetLink(two, w.Addrs[1][0], simnet.Params{Loss: 1})
	must.OK(t, a.AddLocalAddr(w.Now, two))
	w.Run(time.Second)
	must.OK(t, a.SetPeerPrimary(w.Now, two))
	for range 5 {
		w.Send(b, 0, make([]byte, 3000))
		w.Run(time.Second)
	}
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String()})
	to := map[netip.Addr]int{}
	for _, s := range w.Sent[before:] {
		if s.From == 1 {
			to[s.Remote.Addr()] += len(s.Pkt)
			check.That(t, s.Remote.Addr() == one || len(s.Pkt) < 200, "%d octets to an address that has not answered", len(s.Pkt))
		} else {
			added, ok := w.Hosts[0].Event(assoc.EventLocalAddrAdded)
			check.That(t, s.Local.Addr() == one || ok && added.Err == nil, "a packet leaves from the new address")
		}
	}
	check.That(t, to[two] > 0 && to[one] > 15000, "octets %v", to)
	w.Net.SetLink(two, w.Addrs[1][0], simnet.Params{Delay: sctptest.Latency})
	w.Run(time.Minute)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String() + "+"})
	talk(t, w, a, b)
}

// A host that has lost its address asks from the new one, which the peer does not know.
func TestHostThatMoves(t *testing.T) {
	// req 5061-5.2-1
	for lost := range 3 {
		w, a, b := addrWorld(t)
		one, two := w.Addrs[0][0], w.Addrs[0][1]
		w.Hosts[0].Knows(a, two)
		w.Hosts[0].Down = []netip.Addr{one}
		w.Net.SetLink(w.Addrs[1][0], one, simnet.Params{Loss: 1})
		a.UsableFrom(w.Now, []netip.Addr{two})
		w.Filter = loseFrom(0, lost)
		w.Send(b, 0, []byte("on the way"))
		must.OK(t, a.AddLocalAddr(w.Now, two))
		w.Run(20 * time.Second)
		check.That(t, slices.Contains(peerAddrsOf(b), two.String()+"+"), "%d lost: %v, %v", lost, peerAddrsOf(b), changesOf(w.Hosts[0]))
		check.Equal(t, "received", w.Hosts[0].Received.String(), "on the way")
		talk(t, w, a, b)
		must.OK(t, a.RemoveLocalAddr(w.Now, one))
		w.Run(time.Second)
		check.Slice(t, "addresses", peerAddrsOf(b), []string{two.String() + "+"})
		check.Equal(t, "changes", len(changesOf(w.Hosts[0])), 2)
	}
}

// Before the peer has answered, only the request leaves from the new address.
func TestNewAddressIsNoSource(t *testing.T) {
	// req 5061-5.3-1
	w, a, _ := addrWorld(t)
	two := w.Addrs[0][1]
	w.Hosts[0].Knows(a, two)
	w.Hosts[0].Down = []netip.Addr{w.Addrs[0][0]}
	a.UsableFrom(w.Now, []netip.Addr{two})
	w.Filter = func(from int, _ wire.Packet) (int, time.Duration) { return 1 - from, 0 }
	before := len(w.Sent)
	must.OK(t, a.AddLocalAddr(w.Now, two))
	w.Send(a, 0, make([]byte, 8000))
	w.Run(10 * time.Second)
	n := 0
	for _, s := range w.Sent[before:] {
		if s.Local.Addr() == two {
			n++
			check.That(t, len(s.Pkt) < 100, "a packet of %d octets", len(s.Pkt))
		}
	}
	check.That(t, n > 0, "the request has not left")
}

// Addresses that are named together go in one ASCONF, and so do those that have waited. One that the
// peer refuses keeps no other out. One that it does not let go of stays a source.
func TestAddressesChangeTogether(t *testing.T) {
	// req 5061-5.1-4
	// req 5061-5.3-1
	w, a, b := addrWorld(t)
	one, two, three := w.Addrs[0][0], w.Addrs[0][1], w.Addrs[0][2]
	asconfs := func() (n int) {
		for _, s := range w.Sent {
			if s.From == 0 && isSealed(s.Pkt) {
				n++
			}
		}
		return n
	}
	foreign := netip.MustParseAddr("192.0.2.77")
	w.Hosts[1].Own = []netip.Addr{foreign} // which is the peer's
	must.OK(t, a.AddLocalAddr(w.Now))
	check.Error(t, "one of them is none", a.AddLocalAddr(w.Now, two, netip.MustParseAddr("224.0.0.1")), assoc.ErrNoLocalAddr)
	must.OK(t, a.AddLocalAddr(w.Now, foreign, two, three))
	w.Run(5 * time.Second) // a HEARTBEAT an RTO
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String() + "+", three.String() + "+"})
	refused := "sctp: the peer has refused to change its addresses of this host: Operation Refused Due to Resource Shortage"
	added := []string{"local address added 192.0.2.77 " + refused, "local address added " + two.String() + " <nil>",
		"local address added " + three.String() + " <nil>"}
	check.Slice(t, "events", changesOf(w.Hosts[0]), added)
	check.Error(t, "all", a.RemoveLocalAddr(w.Now, one, two, three), assoc.ErrLastLocalAddr)
	before := asconfs()
	w.Filter = loseFrom(0, 1)
	must.OK(t, a.RemoveLocalAddr(w.Now, one, two))
	w.Send(a, 0, []byte("on the way"))
	w.Run(0)
	sent := w.Sent[len(w.Sent)-1]
	check.That(t, asconfs() > before && sent.Local.Addr() == three, "a packet leaves from %v", sent.Local)
	w.Filter = nil
	w.Run(5 * time.Second)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{three.String() + "+"})
	check.Slice(t, "events", changesOf(w.Hosts[0])[3:], []string{"local address removed " + one.String() + " <nil>",
		"local address removed " + two.String() + " <nil>"})
	talk(t, w, a, b)

	w.Run(time.Minute)
	must.OK(t, a.AddLocalAddr(w.Now, one, two))
	w.Run(500 * time.Millisecond)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String(), three.String() + "+"})
	must.OK(t, a.RemoveLocalAddr(w.Now, three, one))
	w.Run(200 * time.Millisecond)
	check.Slice(t, "the last that is confirmed stays", changesOf(w.Hosts[0])[7:], []string{
		"local address removed " + three.String() + " <nil>", "local address removed " + one.String() + " " + refused})
	w.Run(5 * time.Second)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{one.String() + "+", two.String() + "+"})
	must.OK(t, a.RemoveLocalAddr(w.Now, two))
	talk(t, w, a, b)
	check.Equal(t, "own address", a.PathStats(0).Local.Addr(), one)
}

// Requests that cannot be, and what the peer refuses.
func TestAddressChangesRefused(t *testing.T) {
	// req 5061-5.1-5
	w, a, b := addrWorld(t)
	one, two, three := w.Addrs[0][0], w.Addrs[0][1], w.Addrs[0][2]
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"the last", a.RemoveLocalAddr(w.Now, one), assoc.ErrLastLocalAddr},
		{"one that is not there", a.RemoveLocalAddr(w.Now, two), assoc.ErrNoLocalAddr},
		{"a primary that is not there", a.SetPeerPrimary(w.Now, two), assoc.ErrNoLocalAddr},
		{"a multicast address", a.AddLocalAddr(w.Now, netip.MustParseAddr("224.0.0.1")), assoc.ErrNoLocalAddr},
		{"link-local", a.AddLocalAddr(w.Now, netip.MustParseAddr("169.254.1.1")), assoc.ErrNoLocalAddr},
	} {
		check.Error(t, c.name, c.err, c.want)
	}
	must.OK(t, a.AddLocalAddr(w.Now, two))
	w.Run(time.Second)
	must.OK(t, a.RemoveLocalAddr(w.Now, one))
	check.Error(t, "both", a.RemoveLocalAddr(w.Now, two), assoc.ErrLastLocalAddr)
	w.Run(time.Second)
	// The host of the peer has an address, which is none of this host.
	w.Hosts[1].Own = []netip.Addr{three}
	must.OK(t, a.AddLocalAddr(w.Now, three))
	w.Run(time.Second)
	e := w.Hosts[0].Events[len(w.Hosts[0].Events)-1]
	var refused *assoc.AddrRefusedError
	check.That(t, errors.As(e.Err, &refused) && refused.Cause == wire.CauseResourceShortage, "%v", e.Err)
	check.Slice(t, "addresses", peerAddrsOf(b), []string{two.String() + "+"})
	talk(t, w, a, b)
	must.OK(t, a.Shutdown(w.Now))
	check.Error(t, "in the end", a.AddLocalAddr(w.Now, one), assoc.ErrClosing)

	plain, x, _ := sctptest.Pair(t, nil, nil)
	check.Error(t, "without protection", x.AddLocalAddr(plain.Now, two), assoc.ErrAddrChangesUnsupported)
}

// The chunks are announced under protection alone, and without AUTH: the seal is in its place.
func TestAsconfIsAnnouncedUnderProtectionAlone(t *testing.T) {
	// req dtlschunk-1.1-2
	for _, isProtected := range []bool{false, true} {
		w, _, _ := keyWorld(t)
		w.Connect(&assoc.Config{Protected: isProtected})
		w.Run(time.Second)
		init := must.Get(wire.AsInit(sctptest.ChunkOf(w.Sent[0].Pkt, wire.ChunkInit)))(t)
		p := sctptest.ParamOf(init, wire.ParamSupportedExtensions)
		for _, chunk := range []wire.ChunkType{wire.ChunkAsconf, wire.ChunkAsconfAck, wire.ChunkAuth} {
			lists := false
			if p != nil {
				lists = must.Get(p.ListsChunk(chunk))(t)
			}
			check.Equal(t, fmt.Sprint(chunk), lists, isProtected && chunk != wire.ChunkAuth)
		}
	}
}

// What comes from an address that is not known counts only if it is sealed and holds an ASCONF. It
// is not even opened more often than a little.
func TestStrangers(t *testing.T) {
	// req dtlschunk-1.1-1
	// req dtlschunk-1.1-2
	w, a, b := addrWorld(t)
	stranger := netip.MustParseAddrPort("198.51.100.7:0")
	var caught [][]byte
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 {
			caught = append(caught, bytes.Clone(pkt))
			return 0, 0
		}
		return 1, 0
	}
	w.Send(a, 0, []byte("data"))
	for range 40 {
		must.OK(t, a.RequestHeartbeat(w.Now, w.Addrs[1][0]))
		w.Flush()
	}
	must.That(t, len(caught) > 20, "%d packets", len(caught))
	opened := b.Stats().Keys.Opened
	receive := func(pkt []byte) {
		w.Hosts[1].Receive(w.Now, &rawio.Packet{Data: bytes.Clone(pkt), Local: w.Hosts[1].Addr, Remote: stranger})
	}
	for _, pkt := range caught {
		receive(pkt)
	}
	check.That(t, b.Stats().Keys.Opened-opened <= 16, "%d were opened", b.Stats().Keys.Opened-opened)
	check.Equal(t, "counted", b.Stats().ForeignSource, uint64(len(caught)))
	for range 1000 { // a flood keeps nobody out when it is over
		receive(caught[0])
	}
	opened = b.Stats().Keys.Opened
	w.Now = w.Now.Add(100 * time.Millisecond)
	receive(caught[len(caught)-1])
	check.Equal(t, "opened a tenth of a second later", b.Stats().Keys.Opened-opened, 1)
	check.Equal(t, "received", w.Hosts[1].Received.Len(), 0)
	check.Equal(t, "addresses", b.NumPaths(), 1)
	add := wire.CloseChunk(wire.AppendAddrRequest(wire.AppendAsconf(nil, 7, stranger.Addr()), wire.ParamAddIP, 1, stranger.Addr()), 0)
	n := b.Stats().Unprotected
	w.Hosts[1].Receive(w.Now, &rawio.Packet{Data: resum(sctptest.Packet(sctptest.PortA, sctptest.PortB, b.LocalTag(), add)),
		Local: w.Hosts[1].Addr, Remote: stranger})
	check.That(t, b.Stats().Unprotected == n+1 && b.NumPaths() == 1, "an ASCONF in the clear was taken")
}

// losses is a network that loses, reorders and copies packets.
type losses struct{ *rand.Rand }

func lossOf(seed int64) losses { return losses{rand.New(rand.NewSource(seed))} }

func (r losses) filter(int, wire.Packet) (int, time.Duration) {
	if r.Intn(100) < 15 {
		return 0, 0
	}
	return 1 + r.Intn(2), time.Duration(r.Intn(30)) * time.Millisecond
}

// Losses, reordering and copies: each change happens once, and both sides agree in the end.
func TestAddressChangesUnderLoss(t *testing.T) {
	// req 5061-5.1-2, 5061-5.1-3
	for seed := range int64(12) {
		w, a, b := addrWorld(t)
		rnd := lossOf(seed)
		w.Filter = rnd.filter
		at, asked, sent := 0, 0, [2]int{}
		for _, own := range w.Addrs[0] {
			w.Hosts[0].Knows(a, own) // an ASCONF may leave from there when one was lost
		}
		for range 10 {
			next := (at + 1 + rnd.Intn(2)) % 3
			must.OK(t, a.AddLocalAddr(w.Now, w.Addrs[0][next]))
			for i, x := range []*assoc.Assoc{a, b} {
				w.Send(x, 0, make([]byte, 5000))
				sent[i] += 5000
			}
			w.Run(time.Duration(20+rnd.Intn(40)) * time.Second)
			must.OK(t, a.RemoveLocalAddr(w.Now, w.Addrs[0][at]))
			w.Run(time.Duration(20+rnd.Intn(40)) * time.Second)
			at, asked = next, asked+2
		}
		w.Filter = nil
		w.Run(3 * time.Minute)
		check.Equal(t, "answers", len(changesOf(w.Hosts[0])), asked)
		check.Slice(t, fmt.Sprintf("seed %d: addresses", seed), peerAddrsOf(b), []string{w.Addrs[0][at].String() + "+"})
		check.Equal(t, "received", w.Hosts[1].Received.Len(), sent[0])
		check.Equal(t, "received", w.Hosts[0].Received.Len(), sent[1])
		isEachRecordNew(t, w.World)
	}
}

// An ABORT that comes to an address which is being deleted is ignored: it is about what was sent
// from there before. Packets that come there still count.
func TestAbortToALeavingAddress(t *testing.T) {
	// req 5061-5.3-4
	for _, isLeaving := range []bool{true, false} {
		w, a, b := addrWorld(t)
		one, two := w.Addrs[0][0], w.Addrs[0][1]
		must.OK(t, a.AddLocalAddr(w.Now, two))
		w.Run(time.Second)
		w.Filter = loseFrom(0, 1) // the request does not arrive
		if isLeaving {
			must.OK(t, a.RemoveLocalAddr(w.Now, one))
		}
		w.Flush()
		b.Abort(w.Now, nil)
		w.Run(100 * time.Millisecond)
		aborts := w.Sent[len(w.Sent)-1]
		must.Equal(t, "destination", aborts.Remote.Addr(), one)
		check.Equal(t, "goes on", a.State() == assoc.Established, isLeaving)
	}
}

// Over UDP, and over a link to one peer, no ASCONF names an address.
func TestWildcardsAlone(t *testing.T) {
	// req 6951-3.2-2, 6951-5.7-1, 6951-5.7-2
	// req 8261-6.3-1
	udp := [2]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:9899"), netip.MustParseAddrPort("10.0.0.2:9899")}
	for _, c := range []struct {
		name     string
		addrs    [2]netip.AddrPort
		features rawio.Features
	}{{"UDP", udp, 0}, {"a link to one peer", sctptest.IPv4, rawio.PointToPoint}} {
		t.Run(c.name, func(t *testing.T) {
			r := sctptest.NewMTUPair(t, c.addrs, 1500, simnet.Params{})
			var client *fakeTLS
			for i := range r.Hosts {
				h := r.Hosts[1-i]
				h.Reboot(int64(i+1), c.features)
				client = attachTLS(h)
			}
			r.Join(protected, protected)
			r.Run(time.Second)
			a, b := r.Hosts[0].Assocs[0], r.Hosts[1].Assocs[0]
			must.That(t, a.IsProtected() && b.IsProtected(), "no keys")
			check.Error(t, "an address", a.AddLocalAddr(r.Now, netip.MustParseAddr("10.0.0.9")), assoc.ErrWildcardOnly)
			check.Error(t, "an address", a.RemoveLocalAddr(r.Now, c.addrs[0].Addr()), assoc.ErrWildcardOnly)
			must.OK(t, a.AddLocalAddr(r.Now, netip.IPv4Unspecified()))
			must.OK(t, a.RemoveLocalAddr(r.Now, netip.IPv4Unspecified()))
			r.Run(time.Second)
			check.Slice(t, "events", changesOf(r.Hosts[0]), []string{"local address added 0.0.0.0 <nil>",
				"local address removed 0.0.0.0 <nil>"})
			check.Slice(t, "addresses", peerAddrsOf(b), []string{c.addrs[0].Addr().String() + "+"})
			n := 0
			for _, pkt := range openedBy(t, r.World, client) {
				ch := sctptest.ChunkOf(pkt, wire.ChunkAsconf)
				if ch == nil {
					continue
				}
				n++
				own := c.addrs[0].Addr().As4()
				check.That(t, !bytes.Contains(ch, own[:]), "an ASCONF names %v: % x", c.addrs[0], ch)
			}
			check.Equal(t, "ASCONFs", n, 2)
		})
	}
}

// In SHUTDOWN-ACK-SENT no address changes, and no ASCONF is answered.
func TestNoAddressChangesAtTheEnd(t *testing.T) {
	// req 5061-5.1-5
	w, a, b := addrWorld(t)
	var asconf wire.Packet
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && asconf == nil {
			asconf = bytes.Clone(pkt)
			return 0, 0
		}
		return 1 - from, 0 // nor does what the other says arrive
	}
	must.OK(t, a.AddLocalAddr(w.Now, w.Addrs[0][1]))
	w.Flush()
	must.That(t, asconf != nil, "nothing was sent")
	must.OK(t, a.Shutdown(w.Now))
	w.Run(100 * time.Millisecond)
	must.Equal(t, "state", b.State(), assoc.ShutdownAckSent)
	before, n := b.Stats(), len(w.Sent)
	w.Hosts[1].Receive(w.Now, &rawio.Packet{Data: asconf, Local: w.Hosts[1].Addr, Remote: w.Hosts[0].Addr})
	w.Flush()
	check.Equal(t, "answers", len(w.Sent), n)
	check.Equal(t, "chunks that are not expected", b.Stats().Unexpected-before.Unexpected, 1)
	check.Equal(t, "addresses", b.NumPaths(), 1)
}
