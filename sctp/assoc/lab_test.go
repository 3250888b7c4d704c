package assoc_test

import (
	"bytes"
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

// lab is one endpoint whose peer is a script: the test builds each packet that it receives and looks
// at each packet that it sends.
type lab struct {
	t    *testing.T
	now  rawio.Time
	h    *host
	a    *assoc.Assoc
	peer netip.AddrPort

	tag     uint32   // of the endpoint under test: what the script's packets carry
	peerTag uint32   // of the script: what the endpoint's packets carry
	tsn     wire.TSN // the script's next TSN
	hostTSN wire.TSN // the Initial TSN of the endpoint under test
	cookie  []byte
}

func bareLab(t *testing.T) *lab {
	return &lab{t: t, now: rawio.Time(time.Hour), peer: netip.MustParseAddrPort("10.0.0.9:0"), peerTag: 0x11111111, tsn: 1000,
		h: &host{addr: netip.MustParseAddrPort("10.0.0.1:0"), batch: assoc.NewTxBatch(4),
			ep: endpoint.New(endpoint.Config{Rand: rand.New(rand.NewSource(7)), MTU: func(_, _ netip.Addr) int { return testMTU }})}}
}

// passiveLab has an established association that the script set up.
func passiveLab(t *testing.T, cfg *assoc.Config) *lab {
	t.Helper()
	l := bareLab(t)
	l.listen(cfg)
	l.shake()
	if l.a == nil || l.a.State() != assoc.Established {
		t.Fatal("no association")
	}
	return l
}

func (l *lab) listen(cfg *assoc.Config) {
	l.t.Helper()
	if err := l.h.ep.Listen(portB, cfg); err != nil {
		l.t.Fatalf("listen: %v", err)
	}
}

// shake goes through the handshake as initiator and leaves the COOKIE ACK packet behind.
func (l *lab) shake() []wire.Packet {
	l.t.Helper()
	l.initiate()
	return l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
}

// initiate sends INIT and notes what the INIT ACK says.
func (l *lab) initiate(params ...[]byte) {
	l.t.Helper()
	out := l.send(0, initChunk(l.peerTag, l.tsn, params...))
	if len(out) != 1 || !has(out[0], wire.ChunkInitAck) {
		l.t.Fatalf("INIT was answered by %v", describe(out))
	}
	l.noteInitAck(out[0])
}

func (l *lab) noteInitAck(pkt wire.Packet) wire.Init {
	l.t.Helper()
	ack, err := wire.AsInit(chunkOf(pkt, wire.ChunkInitAck))
	if err != nil {
		l.t.Fatal(err)
	}
	l.tag, l.hostTSN, l.cookie = ack.Tag(), ack.TSN(), slices.Clone(paramOf(ack, wire.ParamStateCookie).Value())
	return ack
}

// activeLab has a connecting association whose INIT was read.
func activeLab(t *testing.T, cfg *assoc.Config) *lab {
	t.Helper()
	l := bareLab(t)
	a, err := l.h.ep.Connect(l.now, cfg, portB, l.h.addr, []netip.AddrPort{l.peer}, portA)
	if err != nil {
		t.Fatal(err)
	}
	l.h.adopt(a)
	l.a = a
	out := l.flush()
	if len(out) != 1 {
		t.Fatalf("connect sent %v", describe(out))
	}
	init, err := wire.AsInit(chunkOf(out[0], wire.ChunkInit))
	if err != nil {
		t.Fatal(err)
	}
	l.tag, l.hostTSN = init.Tag(), init.TSN()
	return l
}

// echoedLab is activeLab after the script's INIT ACK: COOKIE-ECHOED.
func echoedLab(t *testing.T, cfg *assoc.Config) *lab {
	t.Helper()
	l := activeLab(t, cfg)
	out := l.send(l.tag, initAckChunk(l.peerTag, l.tsn, []byte("cookie!!")))
	if len(out) != 1 || !has(out[0], wire.ChunkCookieEcho) || l.a.State() != assoc.CookieEchoed {
		t.Fatalf("INIT ACK was answered by %v in %v", describe(out), l.a.State())
	}
	return l
}

// establishedLab is echoedLab after the script's COOKIE ACK.
func establishedLab(t *testing.T, cfg *assoc.Config) *lab {
	t.Helper()
	l := echoedLab(t, cfg)
	l.send(l.tag, wire.AppendCookieAck(nil))
	if l.a.State() != assoc.Established {
		t.Fatalf("state %v after COOKIE ACK", l.a.State())
	}
	return l
}

// send delivers a packet of the script and returns what the endpoint sends then.
func (l *lab) send(tag uint32, chunks ...[]byte) []wire.Packet {
	l.t.Helper()
	return l.sendFrom(l.peer, tag, chunks...)
}

func (l *lab) sendFrom(from netip.AddrPort, tag uint32, chunks ...[]byte) []wire.Packet {
	l.t.Helper()
	l.deliver(from, packet(portA, portB, tag, chunks...))
	return l.flush()
}

func packet(src, dst uint16, tag uint32, chunks ...[]byte) []byte {
	pkt := append(wire.AppendHeader(nil, src, dst, tag), bytes.Join(chunks, nil)...)
	wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
	return pkt
}

func (l *lab) deliver(from netip.AddrPort, pkt []byte) {
	b := rawio.NewBuf(pkt)
	p := rawio.Packet{Data: b.B, Buf: b, Local: l.h.addr, Remote: from}
	l.h.receive(l.now, &p)
	p.Release()
	if n := len(l.h.assocs); n > 0 {
		l.a = l.h.assocs[n-1]
	}
}

// flush returns what the endpoint and its association send now.
func (l *lab) flush() (out []wire.Packet) {
	take := func() {
		for i := range l.h.batch.Pkts {
			out = append(out, wire.Packet(slices.Concat(l.h.batch.Pkts[i].Vec...)))
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

// wait lets time pass, running timers, and returns what was sent.
func (l *lab) wait(d time.Duration) (out []wire.Packet) {
	end := l.now.Add(d)
	for {
		out = append(out, l.flush()...)
		t := l.a.NextTimeout()
		if t > end {
			l.now = end
			return out
		}
		l.now = max(l.now, t)
		l.a.HandleTimeout(l.now)
	}
}

// data makes an unfragmented ordered DATA chunk with the script's next TSN.
func (l *lab) data(payload string) []byte {
	b := dataChunk(l.tsn, 0, 0, payload)
	l.tsn++
	return b
}

func dataChunk(tsn wire.TSN, stream wire.StreamID, ssn wire.SSN, payload string) []byte {
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE | wire.FlagU, TSN: tsn, Stream: stream, SSN: ssn, PPID: 7, PayloadLen: len(payload)})
	return append(append(b, payload...), wire.Padding(len(payload))...)
}

func (l *lab) sack(cum wire.TSN) []byte {
	return wire.AppendSack(nil, wire.SackFields{CumTSN: cum, ARwnd: 1 << 20})
}

func initChunk(tag uint32, tsn wire.TSN, params ...[]byte) []byte {
	return initLike(wire.ChunkInit, wire.InitFields{Tag: tag, ARwnd: 1 << 20, OutStreams: 16, InStreams: 16, TSN: tsn}, params...)
}

func initAckChunk(tag uint32, tsn wire.TSN, cookie []byte, params ...[]byte) []byte {
	f := wire.InitFields{Tag: tag, ARwnd: 1 << 20, OutStreams: 16, InStreams: 16, TSN: tsn}
	return initLike(wire.ChunkInitAck, f, append([][]byte{wire.AppendParam(nil, wire.ParamStateCookie, cookie)}, params...)...)
}

func initLike(t wire.ChunkType, f wire.InitFields, params ...[]byte) []byte {
	b := wire.AppendInit(nil, t, f)
	return wire.CloseChunk(append(b, bytes.Join(params, nil)...), 0)
}

func paramOf(i wire.Init, t wire.ParamType) wire.Param {
	ps := i.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if p.Type() == t {
			return p
		}
	}
	return nil
}

// causeOf returns the first cause of an ABORT or ERROR chunk in the packet, 0 without one.
func causeOf(pkt wire.Packet) (wire.CauseCode, wire.Cause) {
	var cs wire.Causes
	if c := chunkOf(pkt, wire.ChunkAbort); c != nil {
		ab, _ := wire.AsAbort(c)
		cs = ab.Causes()
	} else if c := chunkOf(pkt, wire.ChunkError); c != nil {
		e, _ := wire.AsError(c)
		cs = e.Causes()
	}
	if c, ok := cs.Next(); ok {
		return c.Code(), c
	}
	return 0, nil
}

// describe lists the chunk types of packets, for failure messages and comparisons.
func describe(pkts []wire.Packet) string {
	var b bytes.Buffer
	for i, p := range pkts {
		if i > 0 {
			b.WriteString(" | ")
		}
		for j, t := range chunkTypes(p) {
			if j > 0 {
				b.WriteString(" ")
			}
			b.WriteString(t.String())
		}
	}
	return b.String()
}

// expect fails unless the packets hold exactly these chunks.
func (l *lab) expect(out []wire.Packet, want string) {
	l.t.Helper()
	if got := describe(out); got != want {
		l.t.Fatalf("sent %q, want %q", got, want)
	}
}

func (l *lab) inState(want assoc.State) {
	l.t.Helper()
	if got := l.a.State(); got != want {
		l.t.Fatalf("state %v, want %v", got, want)
	}
}
