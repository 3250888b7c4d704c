package assoc_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

// posted is a packet and where it was sent.
type posted struct {
	to  netip.AddrPort
	pkt wire.Packet
}

// post delivers a packet of the script and returns what is sent then, with addresses.
func (l *lab) post(from netip.AddrPort, tag uint32, chunks ...[]byte) (out []posted) {
	l.t.Helper()
	l.deliver(from, packet(portA, portB, tag, chunks...))
	return l.collect()
}

func (l *lab) collect() (out []posted) {
	take := func() {
		for _, p := range l.h.batch.Pkts {
			out = append(out, posted{p.Remote, slices.Concat(p.Vec...)})
		}
		l.h.batch.Reset()
	}
	l.h.settle()
	for more := true; more; take() {
		more = l.h.ep.PollTransmit(l.now, l.h.batch)
	}
	for _, a := range l.h.assocs {
		for more := true; more; take() {
			more = a.PollTransmit(l.now, l.h.batch)
		}
	}
	l.h.settle()
	return out
}

// text lists destinations and chunks.
func text(list []posted) string {
	var b bytes.Buffer
	for i, p := range list {
		if i > 0 {
			b.WriteString(" | ")
		}
		fmt.Fprintf(&b, "%v: %s", p.to.Addr(), describe([]wire.Packet{p.pkt}))
	}
	return b.String()
}

func TestConnectSendsInitAndStartsT1(t *testing.T) {
	l := bareLab(t)
	a, err := l.h.ep.Connect(l.now, &assoc.Config{OutStreams: 7, InStreams: 9, RecvBuffer: 54321}, portB, l.h.addr, []netip.AddrPort{l.peer}, portA)
	if err != nil {
		t.Fatal(err)
	}
	l.h.adopt(a)
	l.a = a
	out := l.flush()
	l.expect(out, "INIT")
	l.inState(assoc.CookieWait)
	init, _ := wire.AsInit(chunkOf(out[0], wire.ChunkInit))
	// req 9260-5.1-1, 9260-5.1.1-1
	if init.Tag() != a.LocalTag() || init.OutStreams() != 7 || init.InStreams() != 9 || init.ARwnd() != 54321 {
		t.Errorf("INIT: tag %#x of %#x, OS %d, MIS %d, a_rwnd %d", init.Tag(), a.LocalTag(), init.OutStreams(), init.InStreams(), init.ARwnd())
	}
	if a.NextTimeout() != l.now.Add(time.Second) {
		t.Errorf("T1-init expires at %v, want after RTO.Initial", a.NextTimeout())
	}
}

func TestInitAckStopsT1InitAndStartsT1Cookie(t *testing.T) {
	l := activeLab(t, nil)
	start := l.now
	l.now = l.now.Add(400 * time.Millisecond)
	out := l.send(l.tag, initAckChunk(l.peerTag, l.tsn, []byte("cookie")))
	l.expect(out, "COOKIE ECHO") // req 9260-5.1.4-1, 9260-3.3.3-13
	l.inState(assoc.CookieEchoed)
	if c := chunkOf(out[0], wire.ChunkCookieEcho); c.Flags() != 0 || string(c.Value()) != "cookie" {
		t.Errorf("COOKIE ECHO % x", c)
	}
	rto := l.a.PathStats(0).RTO
	if l.a.NextTimeout() != l.now.Add(rto) {
		t.Errorf("T1-cookie expires at %v, want an RTO of %v after %v", l.a.NextTimeout(), rto, l.now)
	}
	l.expect(l.wait(start.Add(time.Second).Sub(l.now)), "") // T1-init would have expired now
	l.expect(l.wait(rto), "COOKIE ECHO")
	if _, up := l.h.event(assoc.EventUp); up {
		t.Fatal("EventUp before COOKIE ACK")
	}
	l.expect(l.send(l.tag, wire.AppendCookieAck(nil)), "")
	l.inState(assoc.Established) // req 9260-5.1-7
	if e, up := l.h.event(assoc.EventUp); !up || e.Path != l.peer {
		t.Errorf("EventUp %v %+v", up, e)
	}
	for _, p := range l.wait(10 * time.Second) {
		if has(p, wire.ChunkCookieEcho) {
			t.Error("T1-cookie still runs")
		}
	}
}

// An INIT or a COOKIE ECHO that was sent again measures no round trip: nobody knows which of the two was answered.
func TestSetupSentAgainMeasuresNothing(t *testing.T) {
	const first, second = 400 * time.Millisecond, 100 * time.Millisecond
	for _, row := range []struct {
		name         string
		init, cookie bool // sent again
		want         time.Duration
	}{
		{"each sent once", false, false, (7*first + second) / 8},
		// req 9260-6.3.1-6
		{"INIT again", true, false, second},
		// req 9260-6.3.1-6
		{"COOKIE ECHO again", false, true, first},
		// req 9260-6.3.1-6
		{"both again", true, true, 0},
	} {
		l := activeLab(t, nil)
		if row.init {
			l.expect(l.wait(time.Second), "INIT")
		}
		l.now = l.now.Add(first)
		l.expect(l.send(l.tag, initAckChunk(l.peerTag, l.tsn, []byte("cookie"))), "COOKIE ECHO")
		if row.cookie {
			l.expect(l.wait(l.a.NextTimeout().Sub(l.now)), "COOKIE ECHO")
		}
		l.now = l.now.Add(second)
		l.send(l.tag, wire.AppendCookieAck(nil))
		l.inState(assoc.Established)
		if got := l.a.PathStats(0).SRTT; got != row.want {
			t.Errorf("%s: SRTT %v, want %v", row.name, got, row.want)
		}
	}
}

func TestInitAckAnnouncesStreams(t *testing.T) {
	l := bareLab(t)
	l.listen(&assoc.Config{OutStreams: 5, InStreams: 6})
	out := l.send(0, initChunk(l.peerTag, l.tsn))
	ack := l.noteInitAck(out[0])
	if ack.OutStreams() != 5 || ack.InStreams() != 6 { // req 9260-5.1.1-1
		t.Errorf("OS %d, MIS %d", ack.OutStreams(), ack.InStreams())
	}
}

func TestInitAckMayBeLargerThan1500Octets(t *testing.T) {
	// req 9260-3.3.3-12
	l := activeLab(t, nil)
	cookie := bytes.Repeat([]byte("c"), 1300)
	padding := wire.AppendPaddingParam(nil, 4000)
	l.expect(l.send(l.tag, initAckChunk(l.peerTag, l.tsn, cookie, padding, wire.AppendAdaptationIndication(nil, 8))), "COOKIE ECHO")
	if v, ok := l.a.PeerAdaptation(); !ok || v != 8 {
		t.Error("the end of the INIT ACK was not read")
	}
}

func TestZeroFieldsInALateInitAckAreDiscarded(t *testing.T) {
	cookie := wire.AppendParam(nil, wire.ParamStateCookie, []byte("cookie"))
	for _, row := range []struct {
		name   string
		change func(*wire.InitFields)
	}{
		{"Initiate Tag 0", func(f *wire.InitFields) { f.Tag = 0 }},
		{"OS 0", func(f *wire.InitFields) { f.OutStreams = 0 }},
		{"MIS 0", func(f *wire.InitFields) { f.InStreams = 0 }},
	} {
		for _, lab := range []func(*testing.T, *assoc.Config) *lab{echoedLab, establishedLab, passiveLab} {
			l := lab(t, nil)
			state := l.a.State()
			f := wire.InitFields{Tag: 1, ARwnd: 5000, OutStreams: 1, InStreams: 1, TSN: 5}
			row.change(&f)
			if out := l.send(l.tag, initLike(wire.ChunkInitAck, f, cookie)); len(out) != 0 || l.a.State() != state { // req 9260-3.3.3-5
				t.Errorf("%s in %v: answered by %q, then %v", row.name, state, describe(out), l.a.State())
			}
		}
	}
}

func TestTagsAndTSNsAreRandom(t *testing.T) {
	// req 9260-3.3.2-14, 9260-3.3.3-11: each bit of them is 0 in some and 1 in others.
	var tsn, tag [2]struct{ ones, zeros uint32 }
	note := func(side int, i wire.Init) {
		tsn[side].ones |= uint32(i.TSN())
		tsn[side].zeros |= ^uint32(i.TSN())
		tag[side].ones |= i.Tag()
		tag[side].zeros |= ^i.Tag()
	}
	l := bareLab(t)
	l.listen(nil)
	for i := range 64 {
		a, err := l.h.ep.Connect(l.now, nil, 0, l.h.addr, []netip.AddrPort{l.peer}, uint16(1+i))
		if err != nil {
			t.Fatal(err)
		}
		l.h.assocs = []*assoc.Assoc{a}
		init, _ := wire.AsInit(chunkOf(l.flush()[0], wire.ChunkInit))
		note(0, init)
		l.h.assocs = nil
		out := l.send(0, initChunk(uint32(1+i), 1))
		ack, _ := wire.AsInit(chunkOf(out[0], wire.ChunkInitAck))
		note(1, ack)
	}
	for side, what := range []string{"INIT", "INIT ACK"} {
		if tsn[side].ones&tsn[side].zeros != 1<<32-1 || tag[side].ones&tag[side].zeros != 1<<32-1 {
			t.Errorf("%s: some bits of TSN or tag never change", what)
		}
	}
}

func TestInitiateTagIsNeverZero(t *testing.T) {
	// req 9260-3.3.3-2: randomness that begins with zeros is drawn again.
	rnd := io.MultiReader(bytes.NewReader(make([]byte, 24)), rand.New(rand.NewSource(1)))
	l := bareLab(t)
	l.h.ep = endpoint.New(endpoint.Config{Rand: rnd, MTU: func(_, _ netip.Addr) int { return testMTU }})
	l.listen(nil)
	l.initiate()
	if l.tag == 0 {
		t.Error("INIT ACK with Initiate Tag 0")
	}
}

func TestPeerWithoutAddressParametersHasOneAddress(t *testing.T) {
	// req 9260-5.1.2-1
	for _, l := range []*lab{passiveLab(t, nil), establishedLab(t, nil)} {
		if l.a.NumPaths() != 1 || l.a.PathStats(0).Remote != l.peer {
			t.Errorf("%d paths, the first to %v", l.a.NumPaths(), l.a.PathStats(0).Remote)
		}
	}
}

func TestListedAddressesShareThePort(t *testing.T) {
	// req 9260-3.3.2.1-3: those of the INIT, with the packet's source, which it does not list.
	second, third := netip.MustParseAddrPort("10.0.0.10:0"), netip.MustParseAddrPort("[2001:db8::3]:0")
	l := bareLab(t)
	l.listen(nil)
	l.initiate(wire.AppendAddressParam(nil, second.Addr()), wire.AppendAddressParam(nil, third.Addr()))
	l.post(l.peer, l.tag, wire.AppendCookieEcho(nil, l.cookie))
	beat := wire.AppendHeartbeat(nil, []byte("x"))
	for _, from := range []netip.AddrPort{l.peer, second, third} {
		out := l.post(from, l.tag, beat)
		n := 0
		for _, p := range out {
			if p.to == from && has(p.pkt, wire.ChunkHeartbeatAck) { // req 9260-3.3.6-1
				n++
			}
			// req 9260-1.3-2: one port of each side, whatever the address.
			if p.pkt.DstPort() != portA || p.pkt.SrcPort() != portB {
				t.Errorf("sent from port %d to %d", p.pkt.SrcPort(), p.pkt.DstPort())
			}
		}
		if n != 1 {
			t.Errorf("from %v: %s", from, text(out))
		}
		l.deliver(from, packet(portA+1, portB, l.tag, beat))
		if out := l.collect(); len(out) != 1 || !has(out[0].pkt, wire.ChunkAbort) {
			t.Errorf("from another port of %v: %s, want the answer to a stranger", from, text(out))
		}
	}
}

func TestAbortForAHostNameGoesToTheSource(t *testing.T) {
	host := wire.AppendParam(nil, wire.ParamHostName, []byte("h\x00"))
	l := bareLab(t)
	l.listen(nil)
	from := netip.MustParseAddrPort("10.0.0.44:0")
	out := l.post(from, 0, initChunk(l.peerTag, 1, host, wire.AppendAddressParam(nil, l.peer.Addr())))
	if text(out) != "10.0.0.44: ABORT" { // req 9260-5.1.2-2
		t.Error(text(out))
	}
	l = activeLab(t, nil)
	if out := l.post(from, l.tag, initAckChunk(l.peerTag, 1, []byte("c"), host)); text(out) != "10.0.0.44: ABORT" {
		t.Error(text(out))
	}
}

func TestT1RunsPerAddressAndRotates(t *testing.T) {
	// req 9260-5.1-8
	second := netip.MustParseAddrPort("10.0.0.10:0")
	l := bareLab(t)
	a, err := l.h.ep.Connect(l.now, nil, portB, l.h.addr, []netip.AddrPort{l.peer, second}, portA)
	if err != nil {
		t.Fatal(err)
	}
	l.h.adopt(a)
	var got []string
	start := l.now
	for l.now.Sub(start) <= 14*time.Second {
		for _, p := range l.collect() {
			got = append(got, fmt.Sprintf("%v at %v", p.to.Addr(), l.now.Sub(start)))
		}
		l.now = a.NextTimeout()
		a.HandleTimeout(l.now)
	}
	want := []string{"10.0.0.9 at 0s", "10.0.0.10 at 1s", "10.0.0.9 at 2s", "10.0.0.10 at 4s", "10.0.0.9 at 6s", "10.0.0.10 at 10s", "10.0.0.9 at 14s"}
	if !slices.Equal(got, want) {
		t.Errorf("INITs %v, want %v", got, want)
	}
}

// jarLab is an association made without an endpoint, so that the test can open its cookies.
type jarLab struct {
	*lab
	jar *assoc.Jar
	env *assoc.Env
	cfg assoc.Config
}

func newJarLab(t *testing.T, cfg *assoc.Config) *jarLab {
	t.Helper()
	c, err := cfg.Complete()
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewSource(11))
	j := &jarLab{lab: bareLab(t), jar: assoc.NewJar(rnd), cfg: c}
	j.env = &assoc.Env{Rand: rnd, MTU: func(_, _ netip.Addr) int { return testMTU }, Cookies: j.jar}
	return j
}

// cookieIn opens the cookie of the only INIT ACK among the packets.
func (j *jarLab) cookieIn(out []wire.Packet) (ack wire.Init, c assoc.Cookie) {
	j.t.Helper()
	if len(out) != 1 || !has(out[0], wire.ChunkInitAck) {
		j.t.Fatalf("sent %q, want INIT ACK", describe(out))
	}
	ack = j.noteInitAck(out[0])
	if !j.jar.Open(j.now, j.cookie, &c) {
		j.t.Fatal("the cookie does not open")
	}
	return ack, c
}

// answer has an INIT answered with no association in place.
func (j *jarLab) answer(init []byte) (wire.Init, assoc.Cookie) {
	j.t.Helper()
	pkt := packet(portA, portB, 0, init)
	cs := wire.Packet(pkt).Chunks()
	c, _ := cs.Next()
	var o assoc.Outbox
	p := rawio.Packet{Data: pkt, Local: j.h.addr, Remote: j.peer}
	assoc.AnswerInit(j.now, &o, &p, c, &j.cfg, j.env)
	o.PollTransmit(j.h.batch)
	var out []wire.Packet
	for _, q := range j.h.batch.Pkts {
		out = append(out, slices.Concat(q.Vec...))
	}
	j.h.batch.Reset()
	return j.cookieIn(out)
}

// connect starts the association under test; accept makes it from the last cookie.
func (j *jarLab) connect() {
	j.t.Helper()
	a, err := assoc.Connect(j.now, &j.cfg, j.env, assoc.Peer{LocalPort: portB, PeerPort: portA, Local: j.h.addr, Remotes: []netip.AddrPort{j.peer}})
	if err != nil {
		j.t.Fatal(err)
	}
	j.a, j.h.assocs = a, []*assoc.Assoc{a}
	out := j.flush()
	j.expect(out, "INIT")
	init, _ := wire.AsInit(chunkOf(out[0], wire.ChunkInit))
	j.tag, j.hostTSN = init.Tag(), init.TSN()
}

func (j *jarLab) accept(c *assoc.Cookie) {
	j.t.Helper()
	p := rawio.Packet{Data: packet(portA, portB, c.LocalTag, wire.AppendCookieEcho(nil, j.cookie)), Local: j.h.addr, Remote: j.peer}
	j.a = assoc.Accept(j.now, &j.cfg, j.env, c, &p)
	j.h.assocs = []*assoc.Assoc{j.a}
	j.hand(p.Data)
	j.expect(j.flush(), "COOKIE ACK")
	j.inState(assoc.Established)
}

// hand gives a packet of the script to the association.
func (j *jarLab) hand(pkt []byte) {
	j.a.HandlePacket(j.now, &rawio.Packet{Data: pkt, Local: j.h.addr, Remote: j.peer})
}

func (j *jarLab) sendInit(init []byte) (wire.Init, assoc.Cookie) {
	j.t.Helper()
	j.hand(packet(portA, portB, 0, init))
	return j.cookieIn(j.flush())
}

func TestWhatTheCookieHolds(t *testing.T) {
	j := newJarLab(t, &assoc.Config{CookieLife: 17 * time.Second})
	ack, c := j.answer(initChunk(j.peerTag, j.tsn))
	// req 9260-5.1.3-2
	if c.Created != j.now || c.Life != 17*time.Second || c.LocalPort != portB || c.PeerPort != portA || c.LocalTag != ack.Tag() || c.PeerTag != j.peerTag {
		t.Errorf("%+v", c)
	}
	if c.LocalTie != 0 || c.PeerTie != 0 { // req 9260-5.2.2-9: in CLOSED
		t.Errorf("tie-tags %#x %#x with no association", c.LocalTie, c.PeerTie)
	}
	// req 9260-3.3.11-4, 9260-12.4-5: header, INIT ACK and a cookie for one address.
	if n := wire.CommonHeaderLen + len(ack); len(j.cookie) > 128 || n > 180 {
		t.Errorf("cookie of %d octets in a packet of %d", len(j.cookie), n)
	}
}

func TestCookieIsSignedByHMACSHA256(t *testing.T) {
	// req 9260-5.1.3-3
	key := bytes.Repeat([]byte("0123456789abcdef"), 2)
	jar := assoc.NewJar(io.MultiReader(bytes.NewReader(key), rand.New(rand.NewSource(1))))
	c := sampleCookie(0)
	b, _ := jar.Seal(0, nil, &c)
	mac := hmac.New(sha256.New, key)
	mac.Write(b[:len(b)-sha256.Size])
	if !hmac.Equal(mac.Sum(nil), b[len(b)-sha256.Size:]) {
		t.Error("the cookie does not end with the HMAC-SHA-256 of the rest under the first 32 octets of randomness")
	}
	if bytes.Contains(b, key[:16]) { // req 9260-5.1.3-5
		t.Error("the cookie shows its key")
	}
}

func TestCookieKeepsTheTagsOfALiveAssociationSecret(t *testing.T) {
	// req 9260-5.1.3-5: who sends an INIT for somebody else's association gets a cookie that has its
	// tie-tags, which are random, and not the tags that would let it send packets.
	j := newJarLab(t, nil)
	_, first := j.answer(initChunk(0xaabbccdd, 1))
	j.accept(&first)
	j.sendInit(initChunk(0x01020304, 2))
	for name, tag := range map[string]uint32{"own": first.LocalTag, "peer's": first.PeerTag} {
		if bytes.Contains(j.cookie, binary.BigEndian.AppendUint32(nil, tag)) {
			t.Errorf("the cookie shows the %s Verification Tag of the association", name)
		}
	}
}

func TestTieTagsByState(t *testing.T) {
	other := initChunk(0x55667788, 3)
	t.Run("COOKIE-WAIT: 0", func(t *testing.T) {
		j := newJarLab(t, nil)
		j.connect()
		if _, c := j.sendInit(other); c.LocalTie != 0 || c.PeerTie != 0 { // req 9260-5.2.2-9
			t.Errorf("tie-tags %#x %#x", c.LocalTie, c.PeerTie)
		}
	})
	t.Run("COOKIE-ECHOED: random, the same in TCB and cookie", func(t *testing.T) {
		j := newJarLab(t, nil)
		j.connect()
		j.hand(packet(portA, portB, j.tag, initAckChunk(j.peerTag, j.tsn, []byte("theirs"))))
		j.expect(j.flush(), "COOKIE ECHO")
		_, c := j.sendInit(other)
		if c.LocalTie == 0 || c.PeerTie == 0 || c.LocalTie == j.tag || c.PeerTie == j.peerTag { // req 9260-5.2.1-10, 9260-5.2.2-9
			t.Errorf("tie-tags %#x %#x", c.LocalTie, c.PeerTie)
		}
		_, again := j.sendInit(other)
		if again.LocalTie != c.LocalTie || again.PeerTie != c.PeerTie {
			t.Error("the tie-tags of the TCB changed")
		}
	})
	t.Run("ESTABLISHED: random, and the TCB knows them again", func(t *testing.T) {
		j := newJarLab(t, &assoc.Config{OutStreams: 3, InStreams: 4})
		_, first := j.answer(initChunk(j.peerTag, j.tsn))
		j.accept(&first)
		ack, c := j.sendInit(other)
		if c.LocalTie == 0 || c.PeerTie == 0 { // req 9260-5.2.2-5, 9260-5.2.2-9
			t.Errorf("tie-tags %#x %#x", c.LocalTie, c.PeerTie)
		}
		if ack.OutStreams() != 3 || ack.InStreams() != 4 || c.OutStreams != 3 || c.InStreams != 4 { // req 9260-5.2.2-7
			t.Errorf("INIT ACK with OS %d MIS %d, cookie %d %d, want those of the association", ack.OutStreams(), ack.InStreams(), c.OutStreams, c.InStreams)
		}
		j.hand(packet(portA, portB, c.LocalTag, wire.AppendCookieEcho(nil, j.cookie)))
		if j.a.LocalTag() != c.LocalTag || j.a.PeerTag() != 0x55667788 { // Table 12, action A: the tie-tags match
			t.Error("no restart")
		}
	})
}

func TestInitCollisionInCookieWait(t *testing.T) {
	j := newJarLab(t, &assoc.Config{OutStreams: 6, InStreams: 12})
	j.connect()
	deadline, tsn := j.a.NextTimeout(), j.hostTSN
	init, _ := wire.AsInit(wire.Chunk(initChunk(0x55667788, 900)))
	ack, c := j.sendInit([]byte(init))
	// req 9260-5.2.1-7: the own INIT's tag, TSN and streams, with the tag, TSN and window of the peer's.
	if ack.Tag() != j.tag || c.LocalTag != j.tag || ack.TSN() != tsn || c.LocalTSN != tsn || c.OutStreams != 6 || c.InStreams != 12 ||
		c.PeerTag != 0x55667788 || c.PeerTSN != 900 || c.PeerRwnd != init.ARwnd() {
		t.Errorf("INIT ACK with tag %#x TSN %d, cookie %+v", ack.Tag(), ack.TSN(), c)
	}
	if j.a.NextTimeout() != deadline { // req 9260-5.2.1-9
		t.Errorf("T1-init was touched: %v instead of %v", j.a.NextTimeout(), deadline)
	}
	j.inState(assoc.CookieWait)

	j = newJarLab(t, nil)
	j.connect()
	j.hand(packet(portA, portB, j.tag, initAckChunk(j.peerTag, j.tsn, []byte("theirs"))))
	j.expect(j.flush(), "COOKIE ECHO")
	deadline = j.a.NextTimeout()
	j.sendInit(initChunk(0x55667788, 900))
	if j.a.NextTimeout() != deadline { // req 9260-5.2.1-9
		t.Errorf("COOKIE-ECHOED: T1-cookie was touched: %v instead of %v", j.a.NextTimeout(), deadline)
	}
}

func TestInitAckForACollisionGoesToTheSourceIfItIsKnown(t *testing.T) {
	second, stranger := netip.MustParseAddrPort("10.0.0.10:0"), netip.MustParseAddrPort("10.0.0.66:0")
	l := bareLab(t)
	a, err := l.h.ep.Connect(l.now, nil, portB, l.h.addr, []netip.AddrPort{l.peer, second}, portA)
	if err != nil {
		t.Fatal(err)
	}
	l.h.adopt(a)
	l.collect()
	init := initChunk(5, 5, wire.AppendAddressParam(nil, l.peer.Addr()), wire.AppendAddressParam(nil, second.Addr()))
	if out := l.post(second, 0, init); text(out) != "10.0.0.10: INIT ACK" { // req 9260-5.2.1-3
		t.Errorf("INIT from the second address: %s", text(out))
	}
	if out := l.post(stranger, 0, init); text(out) != "10.0.0.9: INIT ACK" { // req 9260-5.2.1-2, 9260-5.1.2-5
		t.Errorf("INIT from an address that nobody gave, listing two that somebody did: %s", text(out))
	}
}

func TestReportOfUnknownParametersIsOmittedInAnAbort(t *testing.T) {
	// req 9260-3.2.2-2
	l := bareLab(t)
	l.listen(nil)
	f := wire.InitFields{Tag: l.peerTag, ARwnd: 5000, OutStreams: 0, InStreams: 1}
	out := l.send(0, initLike(wire.ChunkInit, f, wire.AppendParam(nil, 0xfabc, []byte("report me"))))
	l.expect(out, "ABORT")
	ab, err := wire.AsAbort(chunkOf(out[0], wire.ChunkAbort))
	if err != nil {
		t.Fatal(err)
	}
	cs := ab.Causes()
	c, _ := cs.Next()
	if _, more := cs.Next(); more || c.Code() != wire.CauseInvalidParam || len(c) != 4 { // req 9260-3.3.10.7-1
		t.Errorf("cause % x, more %v", c, more)
	}
}

func TestAdaptationCodePointIsOpaque(t *testing.T) {
	// req 5061-4.2.6-2, 5043-7.1-1
	for _, v := range []uint32{0, 1, 2, 0x80000000, 1<<32 - 1} {
		_, a, b := pair(t, &assoc.Config{Adaptation: u32(v)}, &assoc.Config{Adaptation: u32(^v)})
		if got, ok := b.PeerAdaptation(); got != v || !ok {
			t.Errorf("listener got %#x %v, want %#x", got, ok, v)
		}
		if got, ok := a.PeerAdaptation(); got != ^v || !ok {
			t.Errorf("initiator got %#x %v, want %#x", got, ok, ^v)
		}
	}
}

func TestParametersOfASCONFInAnInitAreIgnored(t *testing.T) {
	// req 5061-4.2-1
	added := netip.MustParseAddr("10.7.7.7")
	for _, typ := range []wire.ParamType{wire.ParamAddIP, wire.ParamDeleteIP, wire.ParamSetPrimary} {
		l := bareLab(t)
		l.listen(nil)
		l.initiate(wire.AppendAddrRequest(nil, typ, 1, added), wire.AppendAdaptationIndication(nil, 5))
		l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
		if v, ok := l.a.PeerAdaptation(); l.a.State() != assoc.Established || l.a.NumPaths() != 1 || v != 5 || !ok {
			t.Errorf("parameter %#x: %v with %d paths, what follows it was read: %v", typ, l.a.State(), l.a.NumPaths(), ok)
		}
	}
}

func TestPaddingParameterLeavesNoTrace(t *testing.T) {
	answer := func(params ...[]byte) (wire.Init, int) {
		l := bareLab(t)
		l.listen(nil)
		out := l.send(0, initChunk(l.peerTag, l.tsn, params...))
		l.expect(out, "INIT ACK")
		ack := l.noteInitAck(out[0])
		if paramOf(ack, wire.ParamUnrecognizedParam) != nil { // req 4820-4-3: silently
			t.Error("PAD was reported")
		}
		l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
		if v, ok := l.a.PeerAdaptation(); v != 6 || !ok { // req 4820-4-3: what follows is read
			t.Errorf("adaptation %d %v", v, ok)
		}
		return ack, len(l.cookie)
	}
	code := wire.AppendAdaptationIndication(nil, 6)
	plain, size := answer(code)
	padded, other := answer(wire.AppendPaddingParam(nil, 1200), code)
	if other != size || len(padded) != len(plain) { // req 4820-4-4
		t.Errorf("with PAD the cookie has %d octets instead of %d, the INIT ACK %d instead of %d", other, size, len(padded), len(plain))
	}
}
