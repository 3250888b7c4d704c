package sctptest

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// Second is another address of the peer.
var Second = netip.MustParseAddrPort("10.0.0.10:0")

// Lab is one endpoint whose peer is a script.
type Lab struct {
	testing.TB
	Now  rawio.Time
	Host *Host
	A    *assoc.Assoc
	Peer netip.AddrPort

	Tag     uint32   // of the endpoint under test: what the script's packets carry
	PeerTag uint32   // of the script: what the endpoint's packets carry
	TSN     wire.TSN // the script's next TSN
	HostTSN wire.TSN // the Initial TSN of the endpoint under test
	Cookie  []byte
	Kept    []Signed // by a Collector
	still   stallCounter
}

// stallCounter counts how often in a row something is due at one time.
type stallCounter int

// isStuck takes when something is due next, and says whether that is now for so many times that it
// will not end.
func (s *stallCounter) isStuck(now, next rawio.Time) bool {
	if *s++; next > now {
		*s = 0
	}
	return *s == 10_000
}

// SentPacket is a packet, where it was sent, and from where if the link does not choose that.
type SentPacket struct {
	To   netip.AddrPort
	Pkt  wire.Packet
	From netip.AddrPort
}

// NewLab has no association.
func NewLab(t testing.TB) *Lab {
	h := NewHost(0, 7, MTU+rawio.Overhead(IPv4[0]), 0, IPv4[0])
	countsUp(t, h)
	return &Lab{TB: t, Now: rawio.Time(time.Hour), Peer: netip.MustParseAddrPort("10.0.0.9:0"), PeerTag: 0x11111111,
		TSN: 1000, Host: h}
}

// Passive has an established association that the script set up.
func Passive(t testing.TB, cfg *assoc.Config) *Lab {
	t.Helper()
	l := NewLab(t)
	l.Listen(cfg)
	l.Handshake()
	if l.A == nil || l.A.State() != assoc.Established {
		t.Fatal("no association")
	}
	return l
}

// Active has a connecting association whose INIT was read.
func Active(t testing.TB, cfg *assoc.Config) *Lab {
	t.Helper()
	l := NewLab(t)
	l.Connect(cfg)
	return l
}

// Connect starts the association, and reads its INIT.
func (l *Lab) Connect(cfg *assoc.Config) {
	l.Helper()
	l.Dial(cfg, l.Host.Addr, l.Peer)
	l.ReadInit()
}

// Dial starts an association between an own address and those of the peer.
func (l *Lab) Dial(cfg *assoc.Config, local netip.AddrPort, to ...netip.AddrPort) *assoc.Assoc {
	l.Helper()
	a, err := l.Host.Endpoint.Connect(l.Now, cfg, PortB, local, to, PortA)
	if err != nil {
		l.Fatal(err)
	}
	l.Host.Adopt(a)
	l.A, l.Tag = a, a.LocalTag()
	return a
}

// ReadInit reads the INIT that is to be sent now.
func (l *Lab) ReadInit() {
	l.Helper()
	out := l.Flush()
	l.Expect(out, "INIT")
	init, err := wire.AsInit(ChunkOf(out[0], wire.ChunkInit))
	if err != nil {
		l.Fatal(err)
	}
	l.Tag, l.HostTSN = init.Tag(), init.TSN()
}

// Echoed is Active after the script's INIT ACK: COOKIE-ECHOED.
func Echoed(t testing.TB, cfg *assoc.Config) *Lab {
	t.Helper()
	l := Active(t, cfg)
	out := l.Send(l.Tag, InitAckChunk(l.PeerTag, l.TSN, []byte("cookie!!")))
	if len(out) != 1 || !Has(out[0], wire.ChunkCookieEcho) || l.A.State() != assoc.CookieEchoed {
		t.Fatalf("INIT ACK was answered by %v in %v", Describe(out), l.A.State())
	}
	return l
}

// Established is Echoed after the script's COOKIE ACK.
func Established(t testing.TB, cfg *assoc.Config) *Lab {
	t.Helper()
	l := Echoed(t, cfg)
	l.Send(l.Tag, wire.AppendCookieAck(nil))
	l.InState(assoc.Established)
	return l
}

// TwoPaths is established with a peer that listed a second address, Second, which has answered a
// HEARTBEAT.
func TwoPaths(t testing.TB) *Lab {
	t.Helper()
	l := NewLab(t)
	l.Listen(nil)
	l.Initiate(wire.AppendAddressParam(nil, l.Peer.Addr()), wire.AppendAddressParam(nil, Second.Addr()))
	out := l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	for l.A.NumPaths() == 2 && l.A.PathStats(1).State != assoc.PathActive {
		for _, p := range out {
			if c := ChunkOf(p.Pkt, wire.ChunkHeartbeat); c != nil {
				l.Post(p.To, l.Tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, c.Value()))
			}
		}
		l.Now = l.A.NextTimeout()
		l.A.HandleTimeout(l.Now)
		out = l.Collect()
	}
	must.Equal(t, "paths", l.A.NumPaths(), 2)
	return l
}

// Listen lets the endpoint take associations.
func (l *Lab) Listen(cfg *assoc.Config) {
	l.Helper()
	if err := l.Host.Endpoint.Listen(PortB, cfg); err != nil {
		l.Fatalf("listen: %v", err)
	}
}

// Handshake goes through the handshake as initiator and leaves the COOKIE ACK packet behind.
func (l *Lab) Handshake() []wire.Packet {
	l.Helper()
	l.Initiate()
	return l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
}

// Initiate sends INIT and notes what the INIT ACK says.
func (l *Lab) Initiate(params ...[]byte) {
	l.Helper()
	out := l.Send(0, InitChunk(l.PeerTag, l.TSN, params...))
	if len(out) != 1 || !Has(out[0], wire.ChunkInitAck) {
		l.Fatalf("INIT was answered by %v", Describe(out))
	}
	l.NoteInitAck(out[0])
}

// NoteInitAck keeps what the script has to know of an INIT ACK.
func (l *Lab) NoteInitAck(pkt wire.Packet) wire.Init {
	l.Helper()
	ack, err := wire.AsInit(ChunkOf(pkt, wire.ChunkInitAck))
	if err != nil {
		l.Fatal(err)
	}
	l.Tag, l.HostTSN, l.Cookie = ack.Tag(), ack.TSN(), slices.Clone(ParamOf(ack, wire.ParamStateCookie).Value())
	return ack
}

// Send delivers a packet of the script and returns what the endpoint sends then.
func (l *Lab) Send(tag uint32, chunks ...[]byte) []wire.Packet {
	l.Helper()
	return l.SendFrom(l.Peer, tag, chunks...)
}

// SendFrom is Send from another address.
func (l *Lab) SendFrom(from netip.AddrPort, tag uint32, chunks ...[]byte) []wire.Packet {
	l.Helper()
	l.Deliver(from, Packet(PortA, PortB, tag, chunks...))
	return l.Flush()
}

// Post is SendFrom that tells where the packets go.
func (l *Lab) Post(from netip.AddrPort, tag uint32, chunks ...[]byte) []SentPacket {
	l.Helper()
	l.Deliver(from, Packet(PortA, PortB, tag, chunks...))
	return l.Collect()
}

// Deliver hands the endpoint a packet.
func (l *Lab) Deliver(from netip.AddrPort, pkt []byte) {
	l.DeliverPacket(rawio.Packet{Data: pkt, Remote: from})
}

// DeliverPacket hands the endpoint a packet or a report with its marks.
func (l *Lab) DeliverPacket(p rawio.Packet) {
	b := rawio.NewBuf(p.Data)
	p.Data, p.Buf, p.Local = b.B, b, l.Host.addrFacing(p.Remote.Addr())
	l.Host.Receive(l.Now, &p)
	p.Release()
	if n := len(l.Host.Assocs); n > 0 {
		l.A = l.Host.Assocs[n-1]
	}
}

// Report delivers an ICMP message that quotes a packet of the endpoint.
func (l *Lab) Report(kind rawio.Kind, mtu int, quote []byte) {
	l.DeliverPacket(rawio.Packet{Kind: kind, MTU: mtu, Data: quote, Remote: l.Peer})
	l.Flush()
}

// Marked delivers DATA with these TSNs and that ECN field and returns what is sent then, at once or
// later.
func (l *Lab) Marked(ecn uint8, tsns ...wire.TSN) []wire.Packet {
	l.Helper()
	var list [][]byte
	for _, n := range tsns {
		list = append(list, DataChunk(n, 0, 0, "x"))
	}
	l.DeliverPacket(rawio.Packet{Data: Packet(PortA, PortB, l.Tag, list...), Remote: l.Peer, ECN: ecn})
	return append(l.Flush(), l.Wait(time.Second)...)
}

// Collect returns what the endpoint and its association send now, and where.
func (l *Lab) Collect() (out []SentPacket) {
	l.Host.Poll(l.Now, func(_ *assoc.Assoc, p *rawio.Packet) {
		out = append(out, SentPacket{p.Remote, slices.Concat(p.Vec...), p.Local})
	})
	return out
}

// Flush returns what the endpoint and its association send now.
func (l *Lab) Flush() (out []wire.Packet) {
	for _, p := range l.Collect() {
		out = append(out, p.Pkt)
	}
	return out
}

// Until lets time pass and hands each packet to see.
func (l *Lab) Until(end rawio.Time, see func(SentPacket)) {
	for l.A.State() != assoc.Closed {
		for _, p := range l.Collect() {
			see(p)
		}
		next := l.A.NextTimeout()
		if next > end {
			break
		}
		l.fireTimer(next)
	}
	l.Now = max(l.Now, end)
}

// fireTimer lets a timer go off, again and again perhaps, but not for ever.
func (l *Lab) fireTimer(at rawio.Time) {
	l.Helper()
	if l.still.isStuck(l.Now, at) {
		l.Fatalf("a timer goes off for ever at %v", at)
	}
	l.Now = max(l.Now, at)
	l.A.HandleTimeout(l.Now)
}

// Wait lets time pass, running timers, and returns what was sent.
func (l *Lab) Wait(d time.Duration) (out []wire.Packet) {
	end := l.Now.Add(d)
	for {
		out = append(out, l.Flush()...)
		t := l.A.NextTimeout()
		if t > end {
			l.Now = end
			return out
		}
		l.fireTimer(t)
	}
}

// Data makes a DATA chunk with a whole message and the script's next TSN.
func (l *Lab) Data(payload string) []byte {
	b := DataChunk(l.TSN, 0, 0, payload)
	l.TSN++
	return b
}

// Sack makes a SACK without gaps.
func (l *Lab) Sack(cum wire.TSN) []byte {
	return wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: 1 << 20})
}

// Expect fails unless the packets hold exactly these chunks.
func (l *Lab) Expect(out []wire.Packet, want string) {
	l.Helper()
	if got := Describe(out); got != want {
		l.Fatalf("sent %q, want %q", got, want)
	}
}

// InState fails unless the association is in that state.
func (l *Lab) InState(want assoc.State) {
	l.Helper()
	if got := l.A.State(); got != want {
		l.Fatalf("state %v, want %v", got, want)
	}
}

// Confirm answers the probe of an address.
func (l *Lab) Confirm(addr netip.AddrPort) {
	l.Helper()
	done := false
	l.Until(l.Now.Add(10*time.Second), func(p SentPacket) {
		if b := ChunkOf(p.Pkt, wire.ChunkHeartbeat); b != nil {
			l.Deliver(p.To, Packet(PortA, PortB, l.Tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
			done = done || p.To == addr
		}
	})
	if !done || PathTo(l.TB, l.A, addr.Addr()).State != assoc.PathActive {
		l.Fatal("not confirmed")
	}
}

// CheckUnharmed fails unless the association works as on its first day.
func (l *Lab) CheckUnharmed() {
	l.Helper()
	l.InState(assoc.Established)
	if n := l.A.NumPaths(); n != 1 || len(l.Host.Assocs) != 1 {
		l.Errorf("%d paths, %d associations", n, len(l.Host.Assocs))
	}
	if got := Drain(l.A); got != nil {
		l.Errorf("%q was delivered", got)
	}
	for _, e := range l.Host.Events {
		if e.Kind != assoc.EventUp {
			l.Errorf("event %v", e.Kind)
		}
	}
	l.Expect(l.Send(l.Tag, l.Data("after it")), "SACK")
	if got := Drain(l.A); len(got) != 1 || string(got[0]) != "after it" {
		l.Errorf("%q after it", got)
	}
}

// Text lists destinations and chunks.
func Text(list []SentPacket) string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprintf("%v: %s", p.To.Addr(), Describe([]wire.Packet{p.Pkt})))
	}
	return strings.Join(out, " | ")
}
