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
}

type host struct {
	addr netip.Addr
	ep   *endpoint.Endpoint
	a    *assoc.Assoc // nil until there is one
	down bool
	tx   *assoc.TxBatch
	out  [][]byte // packets sent since take
}

func newLab(t *testing.T) *lab {
	l := &lab{t: t, now: rawio.Time(time.Hour), pool: rawio.NewPool(2048, 64)}
	for i, h := range []**host{&l.victim, &l.peer} {
		*h = &host{
			addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}),
			ep: endpoint.New(endpoint.Config{
				Features: rawio.DontFragment | rawio.ECNField,
				Rand:     simnet.NewRand(uint64(i)), MTU: func(_, _ netip.Addr) int { return mtu },
			}),
			tx: assoc.NewTxBatch(64),
		}
	}
	return l
}

func config() *assoc.Config { return &assoc.Config{RecvBuffer: window, SendBuffer: 20_000} }

// deliver hands h a packet that comes from the other host, in a buffer of its own.
func (l *lab) deliver(h *host, pkt []byte) {
	from := l.peer
	if h == l.peer {
		from = l.victim
	}
	buf := l.pool.Get()
	p := rawio.Packet{Data: buf.B[:copy(buf.B, pkt)], Buf: buf, Remote: netip.AddrPortFrom(from.addr, 0), Local: netip.AddrPortFrom(h.addr, 0)}
	a, ok := h.ep.Lookup(&p)
	if ok && a == nil {
		var isNew bool
		if a, isNew = h.ep.HandleUnmatched(l.now, &p); isNew && h.a == nil {
			h.a = a
		}
	}
	if a != nil && a == h.a {
		a.HandlePacket(l.now, &p)
	}
	p.Release()
	l.pump(h)
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
		for _, v := range h.tx.Pkts[i].Vec {
			pkt = append(pkt, v...)
		}
		h.out = append(h.out, pkt)
	}
	h.tx.Reset()
}

func (h *host) take() [][]byte {
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
	must(v.ep.Listen(victimPort, config()))
	switch n {
	case 0:
		return
	case 1:
		a, err := p.ep.Connect(l.now, config(), peerPort, netip.AddrPort{}, []netip.AddrPort{netip.AddrPortFrom(v.addr, 0)}, victimPort)
		must(err)
		p.a = a
		l.pump(p)
		l.exchange(4)
		return
	}
	must(p.ep.Listen(peerPort, config()))
	v.ep.Unlisten(victimPort)
	a, err := v.ep.Connect(l.now, config(), victimPort, netip.AddrPort{}, []netip.AddrPort{netip.AddrPortFrom(p.addr, 0)}, peerPort)
	must(err)
	v.a = a
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

// wrap makes a packet of chunks. tag chooses the verification tag: the right one, the peer's, 0, or
// another; and whether the chunks are guided.
func (l *lab) wrap(tag byte, chunks []byte) []byte {
	pkt := wire.AppendHeader(nil, peerPort, victimPort, l.vtag(tag))
	if tag&4 != 0 && tag != 255 {
		chunks = l.known.guide(chunks)
	}
	pkt = append(pkt, chunks...)
	wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
	return pkt
}

func (l *lab) vtag(tag byte) uint32 {
	a := l.victim.a
	switch {
	case tag == 255:
		return 0xdeadbeef
	case a == nil || tag%4 == 3:
		return 0
	case tag%4 == 2:
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
