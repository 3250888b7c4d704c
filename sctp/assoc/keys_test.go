package assoc_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/keymgmt"
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// fakeTLS is the TLS of a host's associations, without secrets: a ClientHello, a flight of the
// server of several packets, a Finished. The keys come from the parameters of both sides, and the
// number in the ClientHello.
type fakeTLS struct {
	host    *sctptest.Host
	todo    []func(now rawio.Time)
	refuses error // the server's judgement of its client
	hellos  byte
	flight  int // octets of the server's
	log     []string
	keeper  *keeper // of restart keys; nil: none
	used    []seal.Material
}

// attachTLS gives a host such a TLS.
func attachTLS(h *sctptest.Host) *fakeTLS {
	f := &fakeTLS{host: h, flight: 3000}
	h.OnAdopt = func(a *assoc.Assoc) {
		a.SetUpper(h.Placer, h.Source)
		a.SetKeySessions(&fakeSessions{f, a, map[uint64]*fakeSession{}})
		if f.keeper != nil {
			a.SetRestartKeeper(assocKeeper{f, a})
		}
	}
	h.Work = func(now rawio.Time) bool {
		list := f.todo
		f.todo = nil
		for _, do := range list {
			do(now)
		}
		return len(list) > 0
	}
	return f
}

// fakeSessions are those of one association.
type fakeSessions struct {
	f    *fakeTLS
	a    *assoc.Assoc
	open map[uint64]*fakeSession
}

type fakeSession struct {
	isClient bool
	params   assoc.KeyParams
	number   byte
	flight   int // octets of it that have come
	fed      int // octets
}

// tlsRecord is a TLS record.
func tlsRecord(kind byte, body ...byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{kind, 3, 3}, uint16(len(body))), body...)
}

func (k *fakeSessions) StartSession(id uint64, isClient bool, p assoc.KeyParams) error {
	if len(k.open) > 0 {
		return errors.New("two sessions at a time")
	}
	k.f.log = append(k.f.log, map[bool]string{true: "client", false: "server"}[isClient])
	s := &fakeSession{isClient: isClient, params: p}
	k.open[id] = s
	if isClient {
		k.f.hellos++
		s.number = k.f.hellos
		k.later(func(now rawio.Time) { k.a.KeySessionWrote(now, id, tlsRecord(22, 1, 0, s.number)) })
	}
	return nil
}

func (k *fakeSessions) later(f func(now rawio.Time)) { k.f.todo = append(k.f.todo, f) }

func (k *fakeSessions) CloseSession(id uint64) {
	if s := k.open[id]; s != nil && s.flight > 0 { // it ends well
		k.later(func(now rawio.Time) { k.a.KeySessionWrote(now, id, tlsRecord(23, 0)) })
	}
	delete(k.open, id)
}

func (k *fakeSessions) FeedSession(id uint64, records []byte) {
	s := k.open[id]
	s.fed += len(records)
	switch {
	case !s.isClient && records[0] == 22:
		s.number = records[7]
		b := tlsRecord(22, 2, 0, 0)
		for n := k.f.flight; n > 0; n -= 1000 {
			b = append(b, tlsRecord(23, make([]byte, min(n, 1000))...)...)
		}
		k.later(func(now rawio.Time) { k.a.KeySessionWrote(now, id, b) })
	case records[0] == 21:
		k.later(func(now rawio.Time) { k.a.KeySessionFailed(now, id, errors.New("alert of the peer"), nil) })
	case s.isClient && s.flight == 0:
		s.flight = len(records)
		k.later(func(now rawio.Time) {
			k.a.KeySessionDone(now, id, assoc.KeyOutcome{Secrets: k.f.secrets(s), Output: tlsRecord(23, 1, s.number)})
		})
	case !s.isClient && s.flight == 0:
		s.flight = len(records)
		k.later(func(now rawio.Time) {
			if k.f.refuses != nil {
				k.a.KeySessionFailed(now, id, k.f.refuses, tlsRecord(21, 2, 42))
				return
			}
			k.a.KeySessionDone(now, id, assoc.KeyOutcome{Secrets: k.f.secrets(s), Unread: s.fed - 8 - 7})
		})
	}
}

// secrets are those of a session: both ends have the same if both saw the same parameters.
func (f *fakeTLS) secrets(s *fakeSession) *keymgmt.Secrets {
	export := func(label string, context []byte, n int) ([]byte, error) {
		sum := sha256.Sum256(append(append([]byte(label), context...), s.number))
		return sum[:n], nil
	}
	x, err := keymgmt.Export(export, seal.AES128GCM, s.params, s.params.HasRestart())
	if err != nil {
		panic(err)
	}
	f.used = append(append(f.used, x.Primary[:]...), x.Restart[:]...)
	return x
}

var protected = &assoc.Config{Protected: true}

// keyWorld is two hosts with protection.
func keyWorld(t testing.TB) (w *sctptest.World, client, server *fakeTLS) {
	t.Helper()
	w = sctptest.NewWorld(t)
	client, server = attachTLS(w.Hosts[0]), attachTLS(w.Hosts[1])
	w.Listen(protected)
	return w, client, server
}

// protectedPair is two associated ends with keys.
func protectedPair(t testing.TB) (w *sctptest.World, a, b *assoc.Assoc) {
	t.Helper()
	w, _, _ = keyWorld(t)
	a = w.Connect(protected)
	w.Run(time.Second)
	b = w.Peer()
	must.That(t, a.IsProtected() && b.IsProtected(), "%v and %v without keys; %v", a.State(), b.State(), w.Hosts[0].Events)
	return w, a, b
}

// isSealed says whether a packet is a lone DTLS chunk.
func isSealed(p wire.Packet) bool {
	types := sctptest.ChunkTypes(p)
	return len(types) == 1 && types[0] == wire.ChunkDTLS
}

func TestProtectedLife(t *testing.T) {
	// req dtlschunk-5.2-11
	// req dtlschunk-5.1-7, dtlschunk-5.1-8, dtlskeys-5.1-1: see the logs
	// req dtlschunk-4.2-8
	w, client, server := keyWorld(t)
	a := w.Connect(protected)
	w.Run(time.Second)
	b := w.Peer()
	must.That(t, a.IsProtected() && b.IsProtected(), "%v and %v without keys; %v %v", a.State(), b.State(),
		w.Hosts[0].Events, w.Hosts[1].Events)
	check.That(t, client.log[0] == "client" && server.log[0] == "server", "%v %v", client.log, server.log)
	before := len(w.Sent)
	long := bytes.Repeat([]byte("long message "), 1000)
	w.Send(a, 0, []byte("request"))
	w.Send(a, 0, long)
	w.Run(time.Second)
	w.Send(b, 3, []byte("answer"))
	w.Run(time.Minute)
	got := sctptest.Drain(b)
	must.That(t, len(got) == 2 && string(got[0]) == "request" && bytes.Equal(got[1], long), "%d messages", len(got))
	got = sctptest.Drain(a)
	must.That(t, len(got) == 1 && string(got[0]) == "answer", "%q", got)
	must.OK(t, a.Shutdown(w.Now))
	w.Run(time.Minute)
	for i, h := range w.Hosts {
		err, ok := h.DownErr()
		check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "host %d: %v", i, err)
	}
	for _, s := range w.Sent[before:] {
		check.That(t, isSealed(s.Pkt), "%v in the clear", sctptest.ChunkTypes(s.Pkt))
		check.That(t, !bytes.Contains(s.Pkt, []byte("request")) && !bytes.Contains(s.Pkt, []byte("long message")),
			"a message in the clear")
		n := int(binary.BigEndian.Uint16(s.Pkt[14:]))
		check.That(t, n%4 == 1 && n+3+wire.CommonHeaderLen == len(s.Pkt) && s.Pkt[17]&0xfc == 0x28, "% x", s.Pkt[:24])
		check.That(t, len(s.Pkt)%4 == 0 && len(s.Pkt) <= sctptest.MTU, "a packet of %d octets", len(s.Pkt))
	}
	for _, x := range []*assoc.Assoc{a, b} {
		c := x.Stats().Counters
		check.That(t, c.NotOpened == 0 && c.Unprotected == 0, "%d did not open, %d in the clear", c.NotOpened, c.Unprotected)
	}
}

// resum makes the checksum of a packet right.
func resum(p []byte) []byte {
	wire.PutChecksum(p, wire.ChecksumBytes(p))
	return p
}

// keyData is DATA of key management.
func keyData(tsn wire.TSN, flags uint8, payload string) []byte {
	f := wire.DataFields{Flags: flags, TSN: tsn, PPID: keymgmt.PPID, PayloadLen: len(payload)}
	return append(append(wire.AppendDataHeader(nil, f), payload...), wire.Padding(len(payload))...)
}

// deliver hands a packet to a host as if it had come from the other.
func deliver(w *sctptest.World, to int, data []byte) {
	h, from := w.Hosts[to], w.Hosts[1-to]
	h.Receive(w.Now, &rawio.Packet{Data: data, Local: h.Addr, Remote: from.Addr})
}

// fingerprint is what a packet that was not sent by the peer must not change.
func fingerprint(a *assoc.Assoc) string {
	s := a.Stats()
	s.PacketsIn, s.OctetsIn = 0, 0
	s.Keys.Failed = 0
	s.NotOpened, s.Unprotected, s.WrongTag, s.InitsIn, s.InitsRefused, s.ICMPIn, s.ICMPIgnored, s.Malformed = 0, 0, 0, 0, 0, 0, 0, 0
	return fmt.Sprintf("%+v %+v %v %v", s, sctptest.Paths(a), a.CumTSN(), a.Incarnation())
}

// Each bit of each packet of a life is flipped, and the checksum mended. Nothing that is not as the
// peer has sealed it changes anything. Bits that the record does not protect, and nobody looks at,
// change nothing either.
func TestEachBitFlipped(t *testing.T) {
	// req dtlschunk-5.2-9: what is not sealed is dropped
	// req dtlschunk-5.2-12: and does not end the association
	w, a, b := protectedPair(t)
	w.Hosts[0].Reads, w.Hosts[1].Reads = true, true
	ends := [2]*assoc.Assoc{a, b}
	ignored := map[int]bool{}
	for bit := range 8 {
		if bit != 0 {
			ignored[13*8+bit] = true // reserved flags
		}
		ignored[16*8+bit] = true // pre-padding
	}
	flips, opened := 0, 0
	busy := false
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		to := ends[1-from]
		if busy || to.State() == assoc.Closed || len(pkt) > 120 {
			return 1, 0
		}
		busy = true
		defer func() { busy = false }()
		end := wire.CommonHeaderLen + int(binary.BigEndian.Uint16(pkt[14:]))
		for bit := range len(pkt) * 8 {
			at := bit / 8
			if at >= 8 && at < 12 || at < 4 { // the checksum; ports, which name another association
				continue
			}
			forged := bytes.Clone(pkt)
			forged[at] ^= 1 << (bit % 8)
			if ignored[at*8+bit%8] || at >= end { // would open: see below
				continue
			}
			before := fingerprint(to)
			deliver(w, 1-from, resum(forged))
			flips++
			if after := fingerprint(to); after != before {
				t.Fatalf("bit %d of octet %d of %v changes\n%s\nto\n%s", bit%8, at, pkt[12:20], before, after)
			}
		}
		forged := bytes.Clone(pkt) // all that is ignored
		forged[13] |= 0xfe
		forged[16] ^= 0xff
		for i := end; i < len(forged); i++ {
			forged[i] ^= 0xff
		}
		n := to.Stats().NotOpened
		deliver(w, 1-from, resum(forged))
		if to.Stats().NotOpened == n {
			opened++
		}
		return 1, 0 // it comes again, as a replay
	}
	for i := range 3 {
		w.Send(a, 0, []byte("from a"))
		w.Send(b, wire.StreamID(i), []byte("from b"))
		w.Run(time.Second)
	}
	w.Run(time.Minute) // heartbeats
	must.OK(t, a.Shutdown(w.Now))
	w.Run(time.Minute)
	for i, h := range w.Hosts {
		err, ok := h.DownErr()
		check.That(t, ok && errors.Is(err, assoc.ErrShutdown), "host %d: %v", i, err)
		check.Equal(t, "received", h.Received.String(), map[int]string{0: "from bfrom bfrom b", 1: "from afrom afrom a"}[i])
	}
	check.That(t, flips > 5000 && opened > 10, "%d flips, %d packets with other bits that nobody looks at", flips, opened)
}

// Each packet of a life comes again, at once, later, and after the end: each counts once.
func TestReplays(t *testing.T) {
	// req dtlschunk-10-1
	w, a, b := protectedPair(t)
	w.Hosts[0].Reads, w.Hosts[1].Reads = true, true
	ends := [2]*assoc.Assoc{a, b}
	again := func() {
		for _, s := range w.Sent {
			to := ends[1-s.From]
			before := fingerprint(to)
			deliver(w, 1-s.From, bytes.Clone(s.Pkt))
			must.That(t, fingerprint(to) == before, "%v again changes\n%s\nto\n%s", sctptest.ChunkTypes(s.Pkt), before, fingerprint(to))
		}
	}
	for range 5 {
		w.Send(a, 0, []byte("a"))
		w.Send(b, 0, []byte("b"))
		w.Run(time.Second)
		again()
	}
	check.Equal(t, "received by b", w.Hosts[1].Received.String(), "aaaaa")
	check.Equal(t, "received by a", w.Hosts[0].Received.String(), "bbbbb")
	check.That(t, a.Stats().NotOpened > 0 && b.Stats().NotOpened > 0, "replays are not counted")
}

// What anybody can send in the clear ends nothing and delivers nothing.
func TestPlaintextAfterProtection(t *testing.T) {
	// req dtlschunk-5.2-8, dtlschunk-5.2-9
	w, a, b := protectedPair(t)
	tag, peerTag := b.LocalTag(), a.LocalTag()
	next := b.CumTSN() + 1
	for _, c := range []struct {
		name   string
		tag    uint32
		chunks [][]byte
	}{
		{"ABORT", tag, [][]byte{wire.AppendAbort(nil, false)}},
		{"reflected ABORT", peerTag, [][]byte{wire.AppendAbort(nil, true)}},
		{"SHUTDOWN", tag, [][]byte{wire.AppendShutdown(nil, 0)}},
		{"SHUTDOWN ACK", tag, [][]byte{wire.AppendShutdownAck(nil)}},
		{"SHUTDOWN COMPLETE", tag, [][]byte{wire.AppendShutdownComplete(nil, false)}},
		{"DATA", tag, [][]byte{sctptest.DataChunk(next, 0, 0, "forged")}},
		{"DATA of key management", tag, [][]byte{keyData(next, 3, "forg")}},
		{"SACK", tag, [][]byte{wire.AppendSack(nil, wire.SackFields{CumTSN: 5, ARwnd: 0})}},
		{"ERROR", tag, [][]byte{sctptest.StaleError()}},
		{"COOKIE ECHO", tag, [][]byte{wire.AppendCookieEcho(nil, []byte("cookie"))}},
		{"COOKIE ACK", tag, [][]byte{wire.AppendCookieAck(nil)}},
		{"HEARTBEAT", tag, [][]byte{wire.AppendHeartbeat(nil, make([]byte, 32))}},
		{"INIT ACK", tag, [][]byte{sctptest.InitAckChunk(7, 7, []byte("cookie"))}},
		{"INIT with the wrong tag", tag, [][]byte{sctptest.InitChunk(7, 7)}},
		{"an unknown chunk", tag, [][]byte{wire.AppendChunk(nil, 0x3f, 0, nil)}},
		{"a short DTLS chunk", tag, [][]byte{wire.AppendChunk(nil, wire.ChunkDTLS, 0, make([]byte, 8))}},
		{"an empty DTLS chunk", tag, [][]byte{wire.AppendChunk(nil, wire.ChunkDTLS, 0, nil)}},
		{"a forged DTLS chunk", tag, [][]byte{wire.AppendChunk(nil, wire.ChunkDTLS, 0, append([]byte{0, 0x2b}, make([]byte, 40)...))}},
		{"a DTLS chunk of a restart", tag, [][]byte{wire.AppendChunk(nil, wire.ChunkDTLS, 1, append([]byte{0, 0x2b}, make([]byte, 40)...))}},
		{"a DTLS chunk and another", tag, [][]byte{wire.AppendChunk(nil, wire.ChunkDTLS, 0, append([]byte{0, 0x2b}, make([]byte, 40)...)), wire.AppendAbort(nil, false)}},
	} {
		sent, before := len(w.Sent), fingerprint(b)
		drops := func() uint64 {
			s := b.Stats().Counters
			return s.NotOpened + s.Unprotected + s.WrongTag
		}
		n := drops()
		deliver(w, 1, resum(sctptest.Packet(sctptest.PortA, sctptest.PortB, c.tag, c.chunks...)))
		check.Equal(t, c.name+": after it", fingerprint(b), before)
		check.Equal(t, c.name+": counted", drops(), n+1)
		w.Flush()
		check.Equal(t, c.name+": answers", len(w.Sent), sent)
	}
	w.Send(a, 0, []byte("still here"))
	w.Run(time.Second)
	got := sctptest.Drain(b)
	check.That(t, len(got) == 1 && string(got[0]) == "still here", "%q", got)
}

// A peer that has crashed and restarts without its keys is not let in, and the association does not
// end for it.
func TestRestartWithoutKeys(t *testing.T) {
	// req dtlschunk-5.4-15
	w, _, b := protectedPair(t)
	w.Hosts[0].Reboot(77, 0)
	w.Hosts[0].Assocs = nil
	before := b.Incarnation()
	again := w.Connect(protected)
	w.Run(10 * time.Second)
	check.That(t, again.State() == assoc.CookieEchoed, "the host that has restarted is in %v", again.State())
	check.That(t, b.IsProtected() && b.State() == assoc.Established && b.Incarnation() == before, "%v, life %d", b.State(),
		b.Incarnation())
	for _, s := range w.Seen(1, wire.ChunkInitAck)[1:] {
		ack := must.Get(wire.AsInit(sctptest.ChunkOf(s.Pkt, wire.ChunkInitAck)))(t)
		// req dtlschunk-5.4-3
		k, err := sctptest.ParamOf(ack, wire.ParamKeyManagement).KeyManagement()
		check.That(t, err == nil && bytes.Equal(k.Methods, []byte{192}), "%+v, %v", k, err)
	}
	check.That(t, b.Stats().Unprotected > 0, "COOKIE ECHOs are not counted")
}

// A host that takes no restarts says nothing to the R bit, and drops what has it.
func TestRBitWithoutRestarts(t *testing.T) {
	// req dtlschunk-5.4-15
	w, a, b := protectedPair(t)
	var sealed wire.Packet
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && isSealed(pkt) {
			sealed = bytes.Clone(pkt)
		}
		return 0, 0
	}
	w.Send(a, 0, []byte("x"))
	w.Flush()
	must.That(t, sealed != nil, "nothing was sent")
	sealed[wire.CommonHeaderLen+1] |= wire.FlagR
	before, n := b.Stats(), len(w.Sent)
	for range 3 {
		deliver(w, 1, resum(bytes.Clone(sealed)))
		w.Flush()
	}
	check.Equal(t, "answers", len(w.Sent), n)
	check.Equal(t, "records that did not open", b.Stats().NotOpened-before.NotOpened, 3)
	check.That(t, b.State() == assoc.Established && b.Incarnation() == 1, "%v, life %d", b.State(), b.Incarnation())
	w.Filter = nil
	w.Run(5 * time.Second)
	check.Equal(t, "received", string(bytes.Join(sctptest.Drain(b), nil)), "x")
}
