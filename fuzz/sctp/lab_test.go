package sctp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

const (
	victimPort = 5000
	peerPort   = 6000
	mtu        = 1400
	window     = 20_000 // octets of the victim's receive buffer
)

// lab is a victim under attack, and a well-behaved peer that helps it into the state in question.
type lab struct {
	t      *testing.T
	now    rawio.Time
	victim *host
	peer   *host
	pool   *rawio.Pool
	known  knowledge
	cfg    assoc.Config
	placer assoc.Placer // of the victim, or nil
}

type host struct {
	addrs []netip.Addr
	ep    *endpoint.Endpoint
	a     *assoc.Assoc // nil until there is one
	down  bool
	tx    *assoc.TxBatch
	out   []letter // packets sent since take
}

// letter is a packet with its addresses, or a report about one.
type letter struct {
	data     []byte
	from, to netip.Addr
	udp      uint16 // the UDP port that it comes from
	ecn      uint8
	kind     rawio.Kind
	mtu      int
}

// What the octet that newLab takes changes of an ordinary association.
const (
	twoAddresses = 1 << iota // each host has
	adaptation               // both require the same indication
	placing                  // the victim's data goes where a Placer says, and is to be short
)

func newLab(t *testing.T, variant byte) *lab {
	l := &lab{t: t, now: rawio.Time(time.Hour), pool: rawio.NewPool(2048, 64), cfg: assoc.Config{RecvBuffer: window, SendBuffer: 20_000}}
	if variant&adaptation != 0 {
		indication := uint32(1)
		l.cfg.Adaptation, l.cfg.RequireAdaptation = &indication, true
	}
	if variant&placing != 0 {
		l.placer, l.cfg.MaxMessage = byPPID{}, 3000
	}
	for i, h := range []**host{&l.victim, &l.peer} {
		*h = &host{
			addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)})},
			ep: endpoint.New(endpoint.Config{
				Features: rawio.DontFragment | rawio.ECNField,
				Rand:     simnet.NewRand(uint64(i)), MTU: func(_, _ netip.Addr) int { return mtu },
			}),
			tx: assoc.NewTxBatch(64),
		}
		if variant&twoAddresses != 0 {
			(*h).addrs = append((*h).addrs, netip.AddrFrom4([4]byte{10, 1, 0, byte(i + 1)}))
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

func (l *lab) config(h *host) *assoc.Config {
	cfg := l.cfg
	if len(h.addrs) > 1 {
		cfg.LocalAddrs = h.addrs
	}
	return &cfg
}

// deliver hands h a packet, in a buffer of its own.
func (l *lab) deliver(h *host, pkt letter) {
	buf := l.pool.Get()
	p := rawio.Packet{Data: buf.B[:copy(buf.B, pkt.data)], Buf: buf, Remote: netip.AddrPortFrom(pkt.from, pkt.udp), Local: netip.AddrPortFrom(pkt.to, 0),
		ECN: pkt.ecn, Kind: pkt.kind, MTU: pkt.mtu}
	a, ok := h.ep.Lookup(&p)
	if ok && a == nil {
		var isNew bool
		if a, isNew = h.ep.HandleUnmatched(l.now, &p); isNew && h.a == nil {
			l.adopt(h, a)
		}
	}
	if a != nil && a == h.a {
		a.HandlePacket(l.now, &p)
	}
	p.Release()
	l.pump(h)
}

// adopt makes a the association of h.
func (l *lab) adopt(h *host, a *assoc.Assoc) {
	if h.a = a; h == l.victim {
		a.SetUpper(l.placer, nil)
	}
}

// pump collects what h has to send.
func (l *lab) pump(h *host) {
	seen := len(h.out)
	defer func() { l.learn(h, h.out[seen:]) }()
	for more := true; more; {
		more = h.ep.PollTransmit(l.now, h.tx)
		h.flush()
	}
	if h.a == nil {
		return
	}
	for {
		ev, ok := h.a.PollEvent()
		if !ok {
			break
		}
		switch ev.Kind {
		case assoc.EventUp, assoc.EventRestart, assoc.EventPathUp, assoc.EventPathDown:
			h.ep.Refresh(h.a)
		case assoc.EventDown:
			h.down = true
		}
	}
	for rounds := 0; ; rounds++ {
		if rounds > 100 {
			l.t.Fatal("one step makes the association send without end")
		}
		more := h.a.PollTransmit(l.now, h.tx)
		h.flush()
		if !more {
			break
		}
	}
	if h.down {
		h.ep.Remove(h.a)
	}
}

func (h *host) flush() {
	for i := range h.tx.Pkts {
		var pkt []byte
		p := &h.tx.Pkts[i]
		for _, v := range p.Vec {
			pkt = append(pkt, v...)
		}
		from := p.Local.Addr()
		if !from.IsValid() {
			from = h.addrs[0]
		}
		h.out = append(h.out, letter{data: pkt, from: from, to: p.Remote.Addr()})
	}
	h.tx.Reset()
}

func (h *host) take() []letter {
	out := h.out
	h.out = nil
	return out
}

// exchange carries n packets between the two.
func (l *lab) exchange(n int) {
	for range n {
		for _, pkt := range l.victim.take() {
			l.deliver(l.peer, pkt)
		}
		for _, pkt := range l.peer.take() {
			l.deliver(l.victim, pkt)
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

// reach brings the victim into one of its situations.
func (l *lab) reach(situation byte) {
	n := int(situation) % len(situations)
	l.bringTo(n)
	if a := l.victim.a; a == nil && n > 0 || a != nil && a.State() != situations[n] {
		l.t.Fatalf("situation %d is not %v", n, situations[n])
	}
}

func (l *lab) bringTo(n int) {
	v, p := l.victim, l.peer
	must := func(err error) {
		if err != nil {
			l.t.Fatal(err)
		}
	}
	must(v.ep.Listen(victimPort, l.config(v)))
	switch n {
	case 0:
		return
	case 1:
		a, err := p.ep.Connect(l.now, l.config(p), peerPort, netip.AddrPort{}, []netip.AddrPort{netip.AddrPortFrom(v.addrs[0], 0)}, victimPort)
		must(err)
		l.adopt(p, a)
		l.pump(p)
		l.exchange(4)
		return
	}
	must(p.ep.Listen(peerPort, l.config(p)))
	v.ep.Unlisten(victimPort)
	a, err := v.ep.Connect(l.now, l.config(v), victimPort, netip.AddrPort{}, []netip.AddrPort{netip.AddrPortFrom(p.addrs[0], 0)}, peerPort)
	must(err)
	l.adopt(v, a)
	l.pump(v)
	switch n {
	case 2:
		return
	case 3:
		for _, pkt := range v.take() {
			l.deliver(p, pkt)
		}
		for _, pkt := range p.take() {
			l.deliver(v, pkt)
		}
		return
	}
	l.exchange(4)
	if n == 4 || n == 5 || n == 7 {
		must(v.a.Send(l.now, &assoc.Message{Body: [2][]byte{make([]byte, 5000)}}))
		l.pump(v)
	}
	switch n {
	case 5, 6:
		must(v.a.Shutdown(l.now))
	case 7, 8:
		must(p.a.Shutdown(l.now))
		l.pump(p)
		for _, pkt := range p.take() {
			l.deliver(v, pkt)
		}
	}
	l.pump(v)
}

// Bits of the octet that wrap takes, beside the two for the verification tag.
const (
	guided     = 4  // the chunks are, see knowledge
	fromSecond = 8  // the packet comes from the peer's other address
	toSecond   = 16 // or goes to the victim's
	fromOther  = 32 // or comes from a host that has nothing to do with it
	marked     = 64 // with a mark of congestion
	fromUDP    = 128
	wrongTag   = 255
)

// wrap makes a packet of chunks. how chooses the verification tag: the right one, that of the last INIT ACK, the peer's, 0,
// or another; and the rest.
func (l *lab) wrap(how byte, chunks []byte) letter {
	pkt := letter{from: l.peer.addrs[0], to: l.victim.addrs[0], data: wire.AppendHeader(nil, peerPort, victimPort, l.vtag(how))}
	if how != wrongTag {
		if how&guided != 0 {
			chunks = l.known.guide(chunks)
		}
		if how&fromSecond != 0 {
			pkt.from = l.peer.addrs[len(l.peer.addrs)-1]
		}
		if how&toSecond != 0 {
			pkt.to = l.victim.addrs[len(l.victim.addrs)-1]
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

func (l *lab) vtag(how byte) uint32 {
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

// check holds what must be true whatever the peer does.
func (l *lab) check() {
	v := l.victim
	if n := v.ep.Len(); n > 1+16 {
		l.t.Fatalf("%d associations", n)
	}
	// What is kept of received packets is bounded by the window, however it is cut.
	if n := l.pool.Outstanding(); n > 1024 {
		l.t.Fatalf("%d packet buffers are held", n)
	}
	if v.a != nil && !v.down {
		if err := v.a.Audit(0); err != nil {
			l.t.Fatal(err)
		}
		if next := v.a.NextTimeout(); next < l.now-rawio.Time(time.Minute) {
			l.t.Fatalf("a timer is %v late", l.now.Sub(next))
		}
	}
}

// end closes everything and looks for buffers that were never released.
func (l *lab) end() {
	for _, h := range []*host{l.victim, l.peer} {
		if h.a == nil {
			continue
		}
		for {
			r, ok := h.a.Receive()
			if !ok {
				break
			}
			h.a.Release(r)
		}
		h.a.Abort(l.now, nil)
		l.pump(h)
		h.a.Close()
	}
	if n := l.pool.Outstanding(); n != 0 {
		l.t.Fatalf("%d packet buffers were never released", n)
	}
}
