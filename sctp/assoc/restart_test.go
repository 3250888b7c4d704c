package assoc_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestPeerRestartIsActionA(t *testing.T) {
	l := passiveLab(t, nil)
	m := assoc.Message{Token: 42, Body: [2][]byte{[]byte("never acknowledged")}}
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	l.flush()
	oldTag, oldTSN := l.tag, l.hostTSN
	l.send(l.tag, l.data("before"))
	drain(l.a)

	// The peer comes back with another tag and TSN, knowing nothing.
	l.peerTag, l.tsn = 0x22222222, 77
	l.initiate()
	if l.tag == oldTag { // req 9260-5.2.2-6, 9260-5.3.1-2
		t.Error("the INIT ACK has the old Initiate Tag")
	}
	if l.a.LocalTag() != oldTag || l.a.State() != assoc.Established { // req 9260-5.2.2-8
		t.Fatal("the INIT changed the association")
	}
	out := l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie), l.data("after"))
	if len(out) == 0 || chunkTypes(out[0])[0] != wire.ChunkCookieAck || out[0].VTag() != l.peerTag {
		t.Fatalf("answered by %q", describe(out))
	}
	if l.a.LocalTag() != l.tag || l.a.PeerTag() != l.peerTag || l.hostTSN == oldTSN {
		t.Error("tags or TSN not those of the cookie")
	}
	// req 9260-5.2.4-5, 9260-5.2.4-7
	if _, ok := l.h.event(assoc.EventRestart); !ok {
		t.Error("no EventRestart")
	}
	if _, ok := l.h.event(assoc.EventDown); ok {
		t.Error("EventDown on a restart")
	}
	if e, ok := l.h.event(assoc.EventSendFailed); !ok || e.Token != 42 || e.Unsent {
		t.Errorf("the old message: %+v %v", e, ok)
	}
	if got := drain(l.a); len(got) != 1 || string(got[0]) != "after" {
		t.Errorf("received %q", got)
	}
	// req 9260-5.2.4-8
	if ps := l.a.PathStats(0); ps.Flight != 0 || ps.Cwnd != 4404 {
		t.Errorf("congestion state survived: flight %d cwnd %d", ps.Flight, ps.Cwnd)
	}
	// The new own data starts at the TSN of the INIT ACK.
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	out = l.flush()
	d, err := wire.AsData(chunkOf(out[0], wire.ChunkData))
	if err != nil || d.TSN() != l.hostTSN {
		t.Errorf("new data has TSN %d, want %d (%v)", d.TSN(), l.hostTSN, err)
	}
	// Packets of the old incarnation are dropped now.
	before := l.a.Stats().WrongTag
	l.expect(l.send(oldTag, wire.AppendHeartbeat(nil, []byte("x"))), "")
	if l.a.Stats().WrongTag != before+1 {
		t.Error("the old tag is still accepted")
	}
}

func TestCookieFromBeforeARestartIsDeadAfterIt(t *testing.T) {
	l := passiveLab(t, nil)
	l.peerTag = 0x21212121
	l.initiate()
	late, lateTag := l.cookie, l.tag
	l.peerTag = 0x22222222
	l.shake()
	if l.a.PeerTag() != 0x22222222 {
		t.Fatal("no restart")
	}
	l.expect(l.send(lateTag, wire.AppendCookieEcho(nil, late)), "")
	if l.a.PeerTag() != 0x22222222 {
		t.Error("a replayed cookie restarted the association once more")
	}
}

func TestRestartingPeerCannotMakeTheOwnerHoldEverMore(t *testing.T) {
	l := passiveLab(t, &assoc.Config{RecvBuffer: 4000})
	var held []*assoc.Received
	for range 20 {
		for range 3 {
			l.send(l.tag, l.data(strings.Repeat("x", 1000)))
		}
		for r, ok := l.a.Receive(); ok; r, ok = l.a.Receive() {
			held = append(held, r)
		}
		l.peerTag++
		l.shake()
		if l.a.State() != assoc.Established || l.a.PeerTag() != l.peerTag {
			t.Fatal("no restart")
		}
	}
	if n := l.a.Stats().Buffered; n != 4000 || len(held) != 4 {
		t.Errorf("%d messages, %d octets held over the restarts", len(held), n)
	}
	out := l.send(l.tag, l.data("does not fit"))
	if k, _ := wire.AsSack(chunkOf(out[0], wire.ChunkSack)); k.ARwnd() != 0 || k.CumTSN() != l.tsn-2 {
		t.Errorf("with a full buffer a_rwnd is %d", k.ARwnd())
	}
	for _, r := range held {
		l.a.Release(r)
	}
	out = l.flush()
	if k, _ := wire.AsSack(chunkOf(out[0], wire.ChunkSack)); k.ARwnd() != 4000 || l.a.Stats().Buffered != 0 {
		t.Errorf("after the release a_rwnd is %d, %d octets held", k.ARwnd(), l.a.Stats().Buffered)
	}
}

// A message of which the owner has read a piece when the peer restarts comes to its end.
func TestRestartInTheMiddleOfAMessage(t *testing.T) {
	l := passiveLab(t, &assoc.Config{RecvBuffer: 4000})
	fragment := func(flags uint8) []byte {
		b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: l.tsn, Stream: 3, PPID: 7, PayloadLen: 1000})
		l.tsn++
		return append(b, make([]byte, 1000)...)
	}
	l.send(l.tag, fragment(wire.FlagB))
	l.send(l.tag, fragment(0))
	l.send(l.tag, fragment(0))
	next := func(want assoc.Received) {
		t.Helper()
		r, ok := l.a.Receive()
		if !ok {
			t.Fatalf("nothing, want %+v", want)
		}
		if r.Stream != want.Stream || r.Size != want.Size || r.Offset != want.Offset || r.More != want.More || r.Cut != want.Cut {
			t.Errorf("%+v, want %+v", r, want)
		}
		l.a.Release(r)
		l.flush() // the SACK that opens the window
	}
	next(assoc.Received{Stream: 3, Size: 3000, More: true})
	l.peerTag++
	l.shake()
	l.send(l.tag, l.data("of the new life"))
	next(assoc.Received{Stream: 3, Offset: 3000, Cut: true})
	next(assoc.Received{Size: 15})
}

func TestRestartWithNewAddressIsRefused(t *testing.T) {
	added := netip.MustParseAddr("10.9.9.9")
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *lab
	}{
		{"in ESTABLISHED", func(t *testing.T) *lab { return passiveLab(t, nil) }},  // req 9260-5.2.2-2
		{"in COOKIE-ECHOED", func(t *testing.T) *lab { return echoedLab(t, nil) }}, // req 9260-5.2.1-5, 9260-5.2.1-6
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state := l.a.State()
			out := l.send(0, initChunk(0x33333333, 5, wire.AppendAddressParam(nil, added)))
			l.expect(out, "ABORT")
			ab, _ := wire.AsAbort(chunkOf(out[0], wire.ChunkAbort))
			if out[0].VTag() != 0x33333333 || ab.T() {
				t.Errorf("tag %#x T %v", out[0].VTag(), ab.T())
			}
			code, cause := causeOf(out[0])
			ps := cause.Params()
			p, _ := ps.Next()
			if addr, err := p.Addr(); code != wire.CauseRestart || err != nil || addr != added { // req 9260-5.2.2-4, 9260-3.3.10.11-1
				t.Errorf("cause %v lists %v", code, addr)
			}
			l.inState(state)
		})
	}
}

// TestCookieTable goes through Table 12 of section 5.2.4. The script holds cookies that the
// association made at one time and returns them at another.
func TestCookieTable(t *testing.T) {
	// req 9260-5.1.5-8
	t.Run("D: a duplicate COOKIE ECHO in ESTABLISHED is acknowledged again, even when expired", func(t *testing.T) {
		l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1})
		l.wait(2 * time.Minute)
		out := l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
		l.expect(out, "COOKIE ACK") // req 9260-5.2.4-13, 9260-5.2.4-4
		l.inState(assoc.Established)
	})
	t.Run("B in COOKIE-WAIT: the peer's INIT wins and its tag and TSN count", func(t *testing.T) {
		l := activeLab(t, nil)
		own := l.tag
		l.initiate() // req 9260-5.2.1-1
		if l.tag != own {
			t.Fatalf("INIT ACK in COOKIE-WAIT has tag %#x, the INIT had %#x", l.tag, own)
		}
		l.inState(assoc.CookieWait) // req 9260-5.2.1-8
		out := l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie), l.data("early"))
		if len(out) == 0 || chunkTypes(out[0])[0] != wire.ChunkCookieAck {
			t.Fatalf("answered by %q", describe(out))
		}
		l.inState(assoc.Established)    // req 9260-5.2.4-10
		if l.a.PeerTag() != l.peerTag { // req 9260-5.2.4-11
			t.Error("the peer's tag is not the cookie's")
		}
		if got := drain(l.a); len(got) != 1 {
			t.Errorf("bundled data: %q", got)
		}
		out = l.wait(time.Minute)
		for _, p := range out {
			if has(p, wire.ChunkInit) {
				t.Error("T1-init still runs")
			}
		}
	})
	t.Run("B in COOKIE-ECHOED: the peer has changed its tag", func(t *testing.T) {
		l := echoedLab(t, nil)
		l.peerTag = 0x44444444
		l.tsn = 9000
		own := l.tag
		l.initiate() // req 9260-5.2.1-4
		if l.tag != own {
			t.Fatal("own Initiate Tag changed in COOKIE-ECHOED")
		}
		l.inState(assoc.CookieEchoed)
		out := l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie), l.data("x"))
		if len(out) == 0 || out[0].VTag() != 0x44444444 || !has(out[0], wire.ChunkCookieAck) {
			t.Fatalf("answered by %q", describe(out))
		}
		l.inState(assoc.Established)
	})
	t.Run("C: a late cookie of an earlier attempt is discarded", func(t *testing.T) {
		// The cookie was made in CLOSED (tie-tags 0) with the peer's same tag, and other own tag.
		l := bareLab(t)
		l.listen(nil)
		l.initiate()
		late, lateTag := l.cookie, l.tag
		a, err := l.h.ep.Connect(l.now, nil, portB, l.h.addr, []netip.AddrPort{l.peer}, portA)
		if err != nil {
			t.Fatal(err)
		}
		l.h.adopt(a)
		l.a = a
		out := l.flush()
		init, _ := wire.AsInit(chunkOf(out[0], wire.ChunkInit))
		l.send(init.Tag(), initAckChunk(l.peerTag, l.tsn, []byte("theirs")))
		l.inState(assoc.CookieEchoed)
		l.expect(l.send(lateTag, wire.AppendCookieEcho(nil, late)), "") // req 9260-5.2.4-12
		l.inState(assoc.CookieEchoed)
		l.send(init.Tag(), wire.AppendCookieAck(nil))
		l.inState(assoc.Established)
	})
	t.Run("no row: both tags differ and the tie-tags are 0", func(t *testing.T) {
		l := bareLab(t)
		l.listen(nil)
		l.peerTag = 0x55555555
		l.initiate()
		old, oldTag := l.cookie, l.tag
		l.peerTag = 0x66666666
		l.shake()
		l.expect(l.send(oldTag, wire.AppendCookieEcho(nil, old)), "") // req 9260-5.2.4-14
		if l.a.LocalTag() != l.tag || l.a.PeerTag() != 0x66666666 {
			t.Error("the association changed")
		}
	})
	t.Run("A in SHUTDOWN-ACK-SENT: the shutdown is completed first", func(t *testing.T) {
		l := passiveLab(t, nil)
		old, first := l.peerTag, l.hostTSN
		l.peerTag, l.tsn = 0x77777777, 5
		l.initiate()
		l.expect(l.send(l.a.LocalTag(), wire.AppendShutdown(nil, first-1)), "SHUTDOWN ACK")
		l.inState(assoc.ShutdownAckSent)
		out := l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
		l.expect(out, "ERROR SHUTDOWN ACK") // req 9260-5.2.4-9, 9260-3.3.10.10-1
		if code, _ := causeOf(out[0]); code != wire.CauseCookieWhileShutdown || out[0].VTag() != old {
			t.Errorf("cause %v, tag %#x", code, out[0].VTag())
		}
		l.inState(assoc.ShutdownAckSent)
	})
	t.Run("an expired cookie whose tags do not both match is reported stale", func(t *testing.T) {
		l := passiveLab(t, &assoc.Config{HeartbeatInterval: -1, CookieLife: 10 * time.Second})
		l.peerTag = 0x88888888
		l.initiate()
		l.now = l.now.Add(10*time.Second + 1500*time.Nanosecond)
		out := l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
		l.expect(out, "ERROR") // req 9260-5.2.4-3, 9260-5.2.4-2
		code, cause := causeOf(out[0])
		if us, err := cause.Staleness(); code != wire.CauseStaleCookie || err != nil || us != 2 || out[0].VTag() != l.peerTag {
			t.Errorf("%v staleness %d tag %#x", code, us, out[0].VTag()) // req 9260-3.3.10.3-1
		}
		l.inState(assoc.Established)
	})
	t.Run("a forged cookie is discarded with what is behind it", func(t *testing.T) {
		l := passiveLab(t, nil)
		bad := append([]byte(nil), l.cookie...)
		bad[3] ^= 1
		l.expect(l.send(l.tag, wire.AppendCookieEcho(nil, bad), l.data("x")), "") // req 9260-5.2.4-1
		if got := drain(l.a); got != nil {
			t.Errorf("received %q", got)
		}
	})
}

func TestInitMeetsEachState(t *testing.T) {
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *lab
		want string
	}{
		{"SHUTDOWN-ACK-SENT: discarded, SHUTDOWN ACK again", func(t *testing.T) *lab { // req 9260-9.2-19
			l := passiveLab(t, nil)
			l.expect(l.send(l.tag, wire.AppendShutdown(nil, l.hostTSN-1)), "SHUTDOWN ACK")
			return l
		}, "SHUTDOWN ACK"},
		{"SHUTDOWN-SENT: INIT ACK", func(t *testing.T) *lab { // req 9260-5.2.2-1
			l := passiveLab(t, nil)
			if err := l.a.Shutdown(l.now); err != nil {
				t.Fatal(err)
			}
			l.expect(l.flush(), "SHUTDOWN")
			return l
		}, "INIT ACK"},
		{"COOKIE-WAIT: INIT ACK", func(t *testing.T) *lab { return activeLab(t, nil) }, "INIT ACK"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state := l.a.State()
			l.expect(l.send(0, initChunk(0x99999999, 1)), row.want)
			l.inState(state)
		})
	}
}
