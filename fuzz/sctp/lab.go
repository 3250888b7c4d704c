package sctp

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/sched"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	victimPort = 5000
	peerPort   = 6000
	mtu        = 1400
	window     = 20_000 // octets of the victim's receive buffer
)

// fuzzBed is a victim under attack, and a well-behaved peer that helps it into the state in
// question.
type fuzzBed struct {
	testing.TB
	now    rawio.Time
	victim *host
	peer   *host
	pool   *rawio.Pool
	known  observedState
	cfg    assoc.Config
	placer assoc.Placer // of the victim, or nil
}

type host struct {
	*sctptest.Host
	a    *assoc.Assoc // the first; nil until there is one
	down bool
	out  []sentPacket // packets sent since take
}

// sentPacket is a packet with its addresses, or a report about one.
type sentPacket struct {
	data     []byte
	from, to netip.Addr
	udp      uint16 // the UDP port that it comes from
	ecn      uint8
	kind     rawio.Kind
	mtu      int
}

// What the octet that newBed takes changes of an ordinary association.
const (
	twoAddresses = 1 << iota // each host has
	adaptation               // both require the same indication
	placing                  // the victim's data goes where a Placer says, and is to be short
	changing                 // messages may be given up, and streams and TSNs be reset and added
	interleaving             // I-DATA, under a scheduler
	// With either of the last two the link detects errors, so that checksums may be 0.
)

func newBed(t testing.TB, variant byte) *fuzzBed {
	l := &fuzzBed{TB: t, now: rawio.Time(time.Hour), pool: rawio.NewPool(2048, 64),
		cfg: assoc.Config{RecvBuffer: window, SendBuffer: 20_000}}
	if variant&adaptation != 0 {
		indication := uint32(1)
		l.cfg.Adaptation, l.cfg.RequireAdaptation = &indication, true
	}
	if variant&placing != 0 {
		l.placer, l.cfg.MaxMessage = byPPID{}, 3000
	}
	if variant&changing != 0 {
		l.cfg.PartialReliability = true
		l.cfg.StreamReset = assoc.AllowStreamReset | assoc.AllowTSNReset | assoc.AllowAddStreams
	}
	if variant&interleaving != 0 {
		l.cfg.Interleaving, l.cfg.NewScheduler = true, sched.WeightedFairQueueing
	}
	for i, h := range []**host{&l.victim, &l.peer} {
		addrs := []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 0)}
		if variant&twoAddresses != 0 {
			addrs = append(addrs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, 0, byte(i + 1)}), 0))
		}
		const features = rawio.DontFragment | rawio.ECNField
		*h = &host{Host: sctptest.NewHost(i, int64(i), mtu+rawio.Overhead(addrs[0]), features, addrs...)}
		if variant&(changing|interleaving) != 0 {
			(*h).Detects = rawio.DTLSErrorDetection
			(*h).Reboot(int64(i), features)
		}
		(*h).Batch = assoc.NewTxBatch(64)
		(*h).OnAdopt = func(a *assoc.Assoc) { l.adoptAssoc(*h, a) }
		(*h).OnEvent = func(a *assoc.Assoc, e assoc.Event) {
			(*h).down = (*h).down || a == (*h).a && e.Kind == assoc.EventDown
		}
	}
	return l
}

// byPPID is a Placer whose verdict is the payload protocol identifier.
type byPPID struct{}

func (byPPID) Place(_ rawio.Time, d wire.Data, _ *rawio.Buf) assoc.Verdict {
	switch v := assoc.Verdict(d.PPID()); v {
	case assoc.Consumed:
		if d.B() && d.E() {
			return v
		}
	case assoc.DropUnacked, assoc.AbortAssoc:
		return v
	}
	return assoc.Queue
}

func (l *fuzzBed) assocConfig(h *host) *assoc.Config {
	cfg := l.cfg
	if len(h.Addrs) > 1 {
		cfg.LocalAddrs = h.Addrs
	}
	return &cfg
}

// deliverPacket hands h a packet, in a buffer of its own.
func (l *fuzzBed) deliverPacket(h *host, pkt sentPacket) {
	buf := l.pool.Get()
	p := rawio.Packet{Data: buf.B[:copy(buf.B, pkt.data)], Buf: buf, Remote: netip.AddrPortFrom(pkt.from, pkt.udp),
		Local: netip.AddrPortFrom(pkt.to, 0),
		ECN:   pkt.ecn, Kind: pkt.kind, MTU: pkt.mtu}
	h.Receive(l.now, &p)
	p.Release()
	l.collectPackets(h)
}

// adoptAssoc is what becomes of an association of h.
func (l *fuzzBed) adoptAssoc(h *host, a *assoc.Assoc) {
	if h.a == nil {
		h.a = a
	}
	if h == l.victim {
		a.SetUpper(l.placer, nil)
	}
}

// collectPackets collects what h has to send.
func (l *fuzzBed) collectPackets(h *host) {
	seen := len(h.out)
	h.Poll(l.now, func(a *assoc.Assoc, p *rawio.Packet) {
		if len(h.out) > seen+6400 {
			l.Fatal("one step makes the host send without end")
		}
		from := p.Local.Addr()
		if !from.IsValid() {
			from = h.Addrs[0]
		}
		h.out = append(h.out, sentPacket{data: slices.Concat(p.Vec...), from: from, to: p.Remote.Addr()})
		l.checkChecksum(h, a, h.out[len(h.out)-1].data)
	})
	l.learnFrom(h, h.out[seen:])
}

// checkChecksum holds that only packets of an association that is set up go without a checksum, and
// only where both ends take that (RFC 9653 section 5.2).
func (l *fuzzBed) checkChecksum(h *host, a *assoc.Assoc, data []byte) {
	pkt := wire.Packet(data)
	if pkt.ChecksumOK() {
		return
	}
	if pkt.Checksum() != 0 || a == nil || !a.Extensions().Has(assoc.ZeroChecksum) {
		l.Fatalf("a packet with checksum %#x: %x", pkt.Checksum(), data)
	}
	it := pkt.Chunks()
	for c, ok := it.Next(); ok; c, ok = it.Next() {
		switch c.Type() {
		case wire.ChunkInit, wire.ChunkInitAck, wire.ChunkCookieEcho:
			l.Fatalf("%v without a checksum", c.Type())
		}
	}
}

func (h *host) takePackets() []sentPacket {
	out := h.out
	h.out = nil
	return out
}

// exchangePackets carries n packets between the two.
func (l *fuzzBed) exchangePackets(n int) {
	for range n {
		for _, pkt := range l.victim.takePackets() {
			l.deliverPacket(l.peer, pkt)
		}
		for _, pkt := range l.peer.takePackets() {
			l.deliverPacket(l.victim, pkt)
		}
	}
}

// The situations that the victim can be in, each with its state.
var situations = []assoc.State{
	assoc.Closed, // listening
	assoc.Established,
	assoc.CookieWait,
	assoc.CookieEchoed,
	assoc.Established, // as the one that has set up the association, with data outstanding
	assoc.ShutdownPending,
	assoc.ShutdownSent,
	assoc.ShutdownReceived,
	assoc.ShutdownAckSent,
}

// reachSituation brings the victim into one of its situations.
func (l *fuzzBed) reachSituation(situation byte) {
	n := int(situation) % len(situations)
	l.bringTo(n)
	if a := l.victim.a; a == nil && n > 0 || a != nil && a.State() != situations[n] {
		l.Fatalf("situation %d is not %v", n, situations[n])
	}
	if a := l.victim.a; a != nil && situations[n] == assoc.Established &&
		a.Extensions().Has(assoc.ZeroChecksum) != (l.victim.Detects != rawio.NoErrorDetection) {
		l.Fatalf("the extensions are %v", a.Extensions())
	}
}

func (l *fuzzBed) bringTo(n int) {
	v, p := l.victim, l.peer
	must := func(err error) {
		if err != nil {
			l.Fatal(err)
		}
	}
	must(v.Endpoint.Listen(victimPort, l.assocConfig(v)))
	switch n {
	case 0:
		return
	case 1:
		a, err := p.Endpoint.Connect(l.now, l.assocConfig(p), peerPort, netip.AddrPort{},
			[]netip.AddrPort{netip.AddrPortFrom(v.Addrs[0], 0)}, victimPort)
		must(err)
		p.Adopt(a)
		l.collectPackets(p)
		l.exchangePackets(4)
		return
	}
	must(p.Endpoint.Listen(peerPort, l.assocConfig(p)))
	v.Endpoint.Unlisten(victimPort)
	a, err := v.Endpoint.Connect(l.now, l.assocConfig(v), victimPort, netip.AddrPort{},
		[]netip.AddrPort{netip.AddrPortFrom(p.Addrs[0], 0)}, peerPort)
	must(err)
	v.Adopt(a)
	l.collectPackets(v)
	switch n {
	case 2:
		return
	case 3:
		for _, pkt := range v.takePackets() {
			l.deliverPacket(p, pkt)
		}
		for _, pkt := range p.takePackets() {
			l.deliverPacket(v, pkt)
		}
		return
	}
	l.exchangePackets(4)
	if n == 4 || n == 5 || n == 7 {
		must(v.a.Send(l.now, &assoc.Message{Body: [2][]byte{make([]byte, 5000)}}))
		l.collectPackets(v)
	}
	switch n {
	case 5, 6:
		must(v.a.Shutdown(l.now))
	case 7, 8:
		must(p.a.Shutdown(l.now))
		l.collectPackets(p)
		for _, pkt := range p.takePackets() {
			l.deliverPacket(v, pkt)
		}
	}
	l.collectPackets(v)
}

// Bits of the octet that wrap takes, beside the two for the verification tag.
const (
	guided     = 4  // the chunks are, see observedState
	fromSecond = 8  // the packet comes from the peer's other address
	toSecond   = 16 // or goes to the victim's
	fromOther  = 32 // or comes from a host that has nothing to do with it
	marked     = 64 // with a mark of congestion
	fromUDP    = 128
	wrongTag   = 255
)

// wrapChunks makes a packet of chunks. how chooses the verification tag: the right one, that of the
// last INIT ACK, the peer's, 0, or another; and the rest.
func (l *fuzzBed) wrapChunks(how byte, chunks []byte) sentPacket {
	pkt := sentPacket{from: l.peer.Addrs[0], to: l.victim.Addrs[0],
		data: wire.AppendHeader(nil, peerPort, victimPort, l.chooseTag(how))}
	if how != wrongTag {
		if how&guided != 0 {
			chunks = l.known.guideChunks(chunks)
		}
		if how&fromSecond != 0 {
			pkt.from = l.peer.Addrs[len(l.peer.Addrs)-1]
		}
		if how&toSecond != 0 {
			pkt.to = l.victim.Addrs[len(l.victim.Addrs)-1]
		}
		if how&fromOther != 0 {
			pkt.from = netip.AddrFrom4([4]byte{10, 0, 0, 99})
		}
		if how&marked != 0 {
			pkt.ecn = rawio.CE
		}
		if how&fromUDP != 0 {
			pkt.udp = 9899
		}
	}
	pkt.data = append(pkt.data, chunks...)
	wire.PutChecksum(pkt.data, wire.ChecksumBytes(pkt.data))
	return pkt
}

func (l *fuzzBed) chooseTag(how byte) uint32 {
	a := l.victim.a
	switch {
	case how == wrongTag:
		return 0xdeadbeef
	case how%4 == 3:
		return 0
	case how%4 == 1 && l.known.offered != 0:
		return l.known.offered
	case a == nil:
		return 0
	case how%4 == 2:
		return a.PeerTag()
	}
	return a.LocalTag()
}

// checkInvariants holds what must be true whatever the peer does.
func (l *fuzzBed) checkInvariants() {
	v := l.victim
	if n := v.Endpoint.Len(); n > 1+16 {
		l.Fatalf("%d associations", n)
	}
	// What is kept of received packets is bounded by the window, however it is cut.
	if n := l.pool.Outstanding(); n > 1024 {
		l.Fatalf("%d packet buffers are held", n)
	}
	if v.a != nil && !v.down {
		if err := v.a.Audit(0); err != nil {
			l.Fatal(err)
		}
		if next := v.a.NextTimeout(); next < l.now-rawio.Time(time.Minute) {
			l.Fatalf("a timer is %v late", l.now.Sub(next))
		}
	}
}

// closeAll closes everything and looks for buffers that were never released.
func (l *fuzzBed) closeAll() {
	for _, h := range []*host{l.victim, l.peer} {
		for _, a := range h.Assocs {
			sctptest.Drain(a)
			a.Abort(l.now, nil)
		}
		l.collectPackets(h)
		for _, a := range h.Assocs {
			a.Close()
		}
	}
	if n := l.pool.Outstanding(); n != 0 {
		l.Fatalf("%d packet buffers were never released", n)
	}
}
