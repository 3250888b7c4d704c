package assoc_test

import (
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestPeerRestartIsActionA(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1, AssocMaxRetrans: 2})
	m := assoc.Message{Token: 42, Body: [2][]byte{[]byte("never acknowledged")}}
	unanswered := func() []wire.Packet { // as often as the association takes
		t.Helper()
		must.OK(t, l.A.Send(l.Now, &m))
		out := l.Wait(4 * time.Second)
		l.Expect(out, "DATA | DATA | DATA")
		return out
	}
	unanswered()
	oldTag, oldTSN := l.Tag, l.HostTSN
	l.Send(l.Tag, l.Data("before"))
	sctptest.Drain(l.A)

	// The peer comes back with another tag and TSN, knowing nothing.
	l.PeerTag, l.TSN = 0x22222222, 77
	l.Initiate()
	check.That(t, l.Tag != oldTag, "the INIT ACK has the old Initiate Tag")                                        // req 9260-5.2.2-6, 9260-5.3.1-2
	must.That(t, l.A.LocalTag() == oldTag && l.A.State() == assoc.Established, "the INIT changed the association") // req 9260-5.2.2-8
	out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie), l.Data("after"))
	must.That(t, len(out) != 0 && sctptest.ChunkTypes(out[0])[0] == wire.ChunkCookieAck && out[0].VTag() == l.PeerTag,
		"answered by %q", sctptest.Describe(out))
	check.That(t, l.A.LocalTag() == l.Tag && l.A.PeerTag() == l.PeerTag && l.HostTSN != oldTSN, "tags or TSN not those of the cookie")
	// req 9260-5.2.4-5, 9260-5.2.4-7
	_, ok := l.Host.Event(assoc.EventRestart)
	check.That(t, ok, "no EventRestart")
	_, ok = l.Host.Event(assoc.EventDown)
	check.That(t, !ok, "EventDown on a restart")
	e, ok := l.Host.Event(assoc.EventSendFailed)
	check.That(t, ok && e.Token == 42 && !e.Unsent, "the old message: %+v %v", e, ok)
	got := sctptest.Drain(l.A)
	check.That(t, len(got) == 1 && string(got[0]) == "after", "received %q", got)
	// req 9260-5.2.4-8
	ps := l.A.PathStats(0)
	check.That(t, ps.Flight == 0 && ps.Cwnd == 14400, "congestion state survived: flight %d cwnd %d", ps.Flight, ps.Cwnd)
	// The new own data starts at the TSN of the INIT ACK.
	out = unanswered() // req 9260-5.2.4-5: the errors of the old association count no more
	l.InState(assoc.Established)
	d, err := wire.AsData(sctptest.ChunkOf(out[0], wire.ChunkData))
	check.That(t, err == nil && d.TSN() == l.HostTSN, "new data has TSN %d, want %d (%v)", d.TSN(), l.HostTSN, err)
	// Packets of the old incarnation are dropped now.
	before := l.A.Stats().WrongTag
	l.Expect(l.Send(oldTag, wire.AppendHeartbeat(nil, []byte("x"))), "")
	check.Equal(t, "packets with the old tag", l.A.Stats().WrongTag, before+1)
}

func TestCookieFromBeforeARestartIsDeadAfterIt(t *testing.T) {
	l := sctptest.Passive(t, nil)
	l.PeerTag = 0x21212121
	l.Initiate()
	late, lateTag := l.Cookie, l.Tag
	l.PeerTag = 0x22222222
	l.Handshake()
	must.Equal(t, "the peer's tag after the restart", l.A.PeerTag(), 0x22222222)
	l.Expect(l.Send(lateTag, wire.AppendCookieEcho(nil, late)), "")
	check.Equal(t, "the peer's tag after a replayed cookie", l.A.PeerTag(), 0x22222222)
}

func TestRestartingPeerCannotMakeTheOwnerHoldEverMore(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{RecvBuffer: 4000})
	var held []*assoc.Received
	for range 20 {
		for range 3 {
			l.Send(l.Tag, l.Data(strings.Repeat("x", 1000)))
		}
		for r, ok := l.A.Receive(); ok; r, ok = l.A.Receive() {
			held = append(held, r)
		}
		l.PeerTag++
		l.Handshake()
		must.That(t, l.A.State() == assoc.Established && l.A.PeerTag() == l.PeerTag, "no restart")
	}
	n := l.A.Stats().Buffered
	check.That(t, n == 4000 && len(held) == 4, "%d messages, %d octets held over the restarts", len(held), n)
	out := l.Send(l.Tag, l.Data("does not fit"))
	k, _ := wire.AsSack(sctptest.ChunkOf(out[0], wire.ChunkSack))
	check.That(t, k.ARwnd() == 0 && k.CumTSN() == l.TSN-2, "with a full buffer a_rwnd is %d", k.ARwnd())
	for _, r := range held {
		l.A.Release(r)
	}
	out = l.Flush()
	if k, _ := wire.AsSack(sctptest.ChunkOf(out[0], wire.ChunkSack)); k.ARwnd() != 4000 || l.A.Stats().Buffered != 0 {
		t.Errorf("after the release a_rwnd is %d, %d octets held", k.ARwnd(), l.A.Stats().Buffered)
	}
}

// A message of which the owner has read a piece when the peer restarts comes to its end.
func TestRestartInTheMiddleOfAMessage(t *testing.T) {
	l := sctptest.Passive(t, &assoc.Config{RecvBuffer: 4000})
	fragment := func(flags uint8) []byte {
		b := wire.AppendDataHeader(nil, wire.DataFields{Flags: flags, TSN: l.TSN, Stream: 3, PPID: 7, PayloadLen: 1000})
		l.TSN++
		return append(b, make([]byte, 1000)...)
	}
	l.Send(l.Tag, fragment(wire.FlagB))
	l.Send(l.Tag, fragment(0))
	l.Send(l.Tag, fragment(0))
	next := func(want assoc.Received) {
		t.Helper()
		r, ok := l.A.Receive()
		must.That(t, ok, "nothing, want %+v", want)
		check.That(t, r.Stream == want.Stream && r.Size == want.Size && r.Offset == want.Offset && r.More == want.More && r.Cut == want.Cut,
			"%+v, want %+v", r, want)
		l.A.Release(r)
		l.Flush() // the SACK that opens the window
	}
	next(assoc.Received{Stream: 3, Size: 3000, More: true})
	l.PeerTag++
	l.Handshake()
	l.Send(l.Tag, l.Data("of the new life"))
	next(assoc.Received{Stream: 3, Offset: 3000, Cut: true})
	next(assoc.Received{Size: 15})
}

func TestRestartWithNewAddressIsRefused(t *testing.T) {
	added := netip.MustParseAddr("10.9.9.9")
	for _, row := range []struct {
		name string
		lab  func(*testing.T) *sctptest.Lab
	}{
		{"in ESTABLISHED", func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) }},  // req 9260-5.2.2-2
		{"in COOKIE-ECHOED", func(t *testing.T) *sctptest.Lab { return sctptest.Echoed(t, nil) }}, // req 9260-5.2.1-5, 9260-5.2.1-6
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state := l.A.State()
			out := l.Send(0, sctptest.InitChunk(0x33333333, 5, wire.AppendAddressParam(nil, added)))
			l.Expect(out, "ABORT")
			ab, _ := wire.AsAbort(sctptest.ChunkOf(out[0], wire.ChunkAbort))
			check.That(t, out[0].VTag() == 0x33333333 && !ab.T(), "tag %#x T %v", out[0].VTag(), ab.T())
			code, cause := sctptest.CauseOf(out[0])
			ps := cause.Params()
			p, _ := ps.Next()
			addr, err := p.Addr()
			check.That(t, code == wire.CauseRestart && err == nil && addr == added, "cause %v lists %v", code, addr) // req 9260-5.2.2-4, 9260-3.3.10.11-1
			l.InState(state)
		})
	}
}

// TestCookieTable goes through Table 12 of section 5.2.4. The script holds cookies that the
// association made at one time and returns them at another.
func TestCookieTable(t *testing.T) {
	// req 9260-5.1.5-8
	t.Run("D: a duplicate COOKIE ECHO in ESTABLISHED is acknowledged again, even when expired", func(t *testing.T) {
		l := sctptest.Passive(t, &assoc.Config{HeartbeatInterval: -1})
		l.Wait(2 * time.Minute)
		out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
		l.Expect(out, "COOKIE ACK") // req 9260-5.2.4-13, 9260-5.2.4-4
		l.InState(assoc.Established)
	})
	t.Run("D in COOKIE-ECHOED: the peer's own cookie sets the association up", func(t *testing.T) {
		l := sctptest.Echoed(t, nil)
		l.Initiate()                                                                // with the tag of its INIT ACK
		l.Expect(l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie)), "COOKIE ACK") // req 9260-5.2.4-13
		l.InState(assoc.Established)
		_, ok := l.Host.Event(assoc.EventUp)
		check.That(t, ok, "no EventUp")
		check.Equal(t, "T1-cookie still runs", sctptest.Describe(l.Wait(20*time.Second)), "")
	})
	t.Run("B in ESTABLISHED: the peer's tag is that of the last cookie", func(t *testing.T) {
		l := sctptest.Active(t, nil)
		l.Initiate()
		first := wire.AppendCookieEcho(nil, l.Cookie)
		l.PeerTag = 0x44444444
		l.Initiate()
		l.Send(l.Tag, first)
		l.InState(assoc.Established)
		out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
		l.Expect(out, "COOKIE ACK")
		l.InState(assoc.Established)
		check.That(t, l.A.PeerTag() == 0x44444444 && out[0].VTag() == 0x44444444, "the peer's tag is %#x, the COOKIE ACK has %#x", l.A.PeerTag(), out[0].VTag()) // req 9260-5.2.4-11
	})
	t.Run("B in COOKIE-WAIT: the peer's INIT wins and its tag and TSN count", func(t *testing.T) {
		l := sctptest.Active(t, nil)
		own := l.Tag
		l.Initiate() // req 9260-5.2.1-1
		must.Equal(t, "tag of the INIT ACK in COOKIE-WAIT, as in the INIT", l.Tag, own)
		l.InState(assoc.CookieWait) // req 9260-5.2.1-8
		out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie), l.Data("early"))
		must.That(t, len(out) != 0 && sctptest.ChunkTypes(out[0])[0] == wire.ChunkCookieAck, "answered by %q", sctptest.Describe(out))
		l.InState(assoc.Established) // req 9260-5.2.4-10

		check.That(t, l.A.PeerTag() == l.PeerTag, "the peer's tag is not the cookie's") // req 9260-5.2.4-11
		check.Equal(t, "bundled messages", len(sctptest.Drain(l.A)), 1)
		out = l.Wait(time.Minute)
		for _, p := range out {
			check.That(t, !sctptest.Has(p, wire.ChunkInit), "T1-init still runs")
		}
	})
	t.Run("B in COOKIE-ECHOED: the peer has changed its tag", func(t *testing.T) {
		l := sctptest.Echoed(t, nil)
		l.PeerTag = 0x44444444
		l.TSN = 9000
		own := l.Tag
		l.Initiate() // req 9260-5.2.1-4
		must.Equal(t, "own Initiate Tag in COOKIE-ECHOED", l.Tag, own)
		l.InState(assoc.CookieEchoed)
		out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie), l.Data("x"))
		must.That(t, len(out) != 0 && out[0].VTag() == 0x44444444 && sctptest.Has(out[0], wire.ChunkCookieAck),
			"answered by %q", sctptest.Describe(out))
		l.InState(assoc.Established)
	})
	t.Run("A in SHUTDOWN-ACK-SENT: the shutdown is completed first", func(t *testing.T) {
		l := sctptest.Passive(t, nil)
		old, first := l.PeerTag, l.HostTSN
		l.PeerTag, l.TSN = 0x77777777, 5
		l.Initiate()
		l.Expect(l.Send(l.A.LocalTag(), wire.AppendShutdown(nil, first-1)), "SHUTDOWN ACK")
		l.InState(assoc.ShutdownAckSent)
		out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
		l.Expect(out, "ERROR SHUTDOWN ACK") // req 9260-5.2.4-9, 9260-3.3.10.10-1
		code, _ := sctptest.CauseOf(out[0])
		check.That(t, code == wire.CauseCookieWhileShutdown && out[0].VTag() == old, "cause %v, tag %#x", code, out[0].VTag())
		l.InState(assoc.ShutdownAckSent)
	})
	for name, made := range map[string]func(testing.TB, *assoc.Config) *sctptest.Lab{"no tag matches": sctptest.Passive, "the own tag matches": sctptest.Echoed} {
		t.Run("an expired cookie of which "+name+" is reported stale", func(t *testing.T) {
			l := made(t, &assoc.Config{HeartbeatInterval: -1, CookieLife: 10 * time.Second})
			state, tag := l.A.State(), l.A.PeerTag()
			l.PeerTag = 0x88888888
			l.Initiate()
			l.Now = l.Now.Add(10*time.Second + 1500*time.Nanosecond)
			out := l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie), l.Data("behind it"))
			l.Expect(out, "ERROR") // req 9260-5.2.4-3, 9260-5.2.4-2
			code, cause := sctptest.CauseOf(out[0])
			us, err := cause.Staleness()
			check.That(t, code == wire.CauseStaleCookie && err == nil && us == 2 && out[0].VTag() == l.PeerTag, "%v staleness %d tag %#x", code, us, out[0].VTag()) // req 9260-3.3.10.3-1
			l.InState(state)
			check.That(t, l.A.PeerTag() == tag && sctptest.Drain(l.A) == nil, "the cookie changed the tag, or the DATA behind it was taken")
		})
	}
	t.Run("a forged cookie is discarded with what is behind it", func(t *testing.T) {
		l := sctptest.Passive(t, nil)
		bad := append([]byte(nil), l.Cookie...)
		bad[3] ^= 1
		l.Expect(l.Send(l.Tag, wire.AppendCookieEcho(nil, bad), l.Data("x")), "") // req 9260-5.2.4-1
		got := sctptest.Drain(l.A)
		check.That(t, got == nil, "received %q", got)
	})
}

// Each cookie that a peer can come to hold is returned in each state, and then each again, at once
// or later: what becomes of the association is what Table 12 says, and only action A is a new life
// of it, or in a shutdown its end.
func TestEachCookieInEachState(t *testing.T) {
	// req 9260-5.2.4-12, 9260-5.2.4-14, 9260-5.2.4-11
	for state := assoc.CookieWait; state <= assoc.ShutdownAckSent; state++ {
		list := sctptest.Collector(t, state).Kept
		for i := range list {
			for j := range list {
				for _, together := range []bool{false, true} {
					l := sctptest.Collector(t, state)
					l.InState(state)
					want := state
					tag, peer, ties, lives := l.Tag, l.A.PeerTag(), true, uint64(1)
					for _, c := range []sctptest.Signed{l.Kept[i], l.Kept[j]} {
						answer := ""
						switch setup := want == assoc.CookieWait || want == assoc.CookieEchoed; {
						case c.Local == tag: // B and D
							answer, peer = "COOKIE ACK", c.Peer
							if setup {
								want = assoc.Established
							}
						case c.Peer == peer || !c.Ties || !ties: // C, and what Table 12 does not have
						case want == assoc.ShutdownAckSent:
							answer = "ERROR SHUTDOWN ACK"
						case want != assoc.Established: // A in a shutdown: another association
							answer, want, tag, peer, ties, lives = "COOKIE ACK", assoc.Established, c.Local, c.Peer, false, 1
						default: // A
							answer, want, tag, peer, ties = "COOKIE ACK", assoc.Established, c.Local, c.Peer, false
							lives++
						}
						l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, c.Local, wire.AppendCookieEcho(nil, c.Cookie)))
						if together {
							continue // and nothing is asked of the association yet
						}
						got := sctptest.Describe(l.Flush())
						check.That(t, got == answer, "%v: %q: sent %q, want %q", state, c.Name, got, answer)
					}
					check.That(t, l.A.State() == want && l.A.LocalTag() == tag && l.A.PeerTag() == peer && l.A.Incarnation() == lives,
						"%v: %q, then %q, in one read: %v: now %v, tags %#x %#x, life %d; want %v, %#x %#x, %d", state, list[i].Name, list[j].Name, together, l.A.State(), l.A.LocalTag(), l.A.PeerTag(), l.A.Incarnation(), want, tag, peer, lives)
				}
			}
		}
	}
}

// A cookie takes the zone of a link-local address from the packet that returns it. One that comes
// by another link than the INIT names no address of the association: it restarts nothing, and
// leaves the association with its path.
func TestRestartByAnotherLinkIsNone(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Peer, l.Host.Addr = netip.MustParseAddrPort("[fe80::9%eth0]:0"), netip.MustParseAddrPort("[fe80::1%eth0]:0")
	l.Listen(nil)
	l.Handshake()
	check.Equal(t, "own address, in its zone", l.A.LocalAddr(), l.Host.Addr)
	l.PeerTag = 0x22222222
	l.Initiate()
	b := sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	p := rawio.Packet{Data: b, Buf: rawio.NewBuf(b), Local: l.Host.Addr, Remote: netip.MustParseAddrPort("[fe80::9%eth1]:0")}
	l.A.HandlePacket(l.Now, &p)
	l.Expect(l.Flush(), "")
	check.That(t, l.A.Incarnation() == 1 && l.A.NumPaths() == 1, "life %d, %d paths", l.A.Incarnation(), l.A.NumPaths())
}

// What was received in part before a restart of the peer is given back, and what was to be answered
// then is not sent any more.
func TestRestartLetsGoOfTheOldAssociation(t *testing.T) {
	// req 9260-5.2.4-5
	l := sctptest.Passive(t, nil)
	var bufs []*rawio.Buf
	hold := func(chunk []byte) {
		b := rawio.NewBuf(sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, chunk))
		bufs = append(bufs, b)
		p := rawio.Packet{Data: b.B, Buf: b, Local: l.Host.Addr, Remote: l.Peer}
		l.Host.Receive(l.Now, &p)
		p.Release()
	}
	fragment := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB, TSN: l.TSN, PPID: 7, PayloadLen: 1000})
	hold(append(fragment, make([]byte, 1000)...))
	waiting := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE, TSN: l.TSN + 5, Stream: 1, SSN: 3, PPID: 7, PayloadLen: 1000})
	hold(append(waiting, make([]byte, 1000)...))
	for i, b := range bufs {
		must.That(t, b.Refs() == 1, "packet %d: %d references while its DATA is held", i, b.Refs())
	}
	l.Flush()

	l.PeerTag, l.TSN = 0x22222222, 77
	oldTag := l.Tag
	l.Initiate()
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, oldTag, wire.AppendHeartbeat(nil, []byte("of the old association"))))
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendCookieEcho(nil, l.Cookie)))
	l.Expect(l.Flush(), "COOKIE ACK")
	must.Equal(t, "the peer's tag after the restart", l.A.PeerTag(), l.PeerTag)
	for i, b := range bufs {
		check.That(t, b.Refs() == 0, "packet %d: %d references after the restart", i, b.Refs())
	}
}

// A restart makes no paths to addresses that the association did not have, not even where there was
// no room for all of them at first.
func TestRestartAddsNoPaths(t *testing.T) {
	addr := func(i int) []byte {
		return wire.AppendAddressParam(nil, netip.MustParseAddr(fmt.Sprintf("10.0.1.%d", i)))
	}
	l := sctptest.NewLab(t)
	l.Listen(nil)
	var first [][]byte
	for i := range 10 {
		first = append(first, addr(i))
	}
	l.Initiate(first...)
	l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	had := make(map[netip.Addr]bool)
	for i := range l.A.NumPaths() {
		had[l.A.PathStats(i).Remote.Addr()] = true
	}
	must.Equal(t, "paths", len(had), assoc.MaxPaths)
	l.PeerTag, l.TSN = 0x22222222, 77
	l.Initiate(addr(8), addr(9), addr(1))
	l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	must.Equal(t, "the peer's tag after the restart", l.A.PeerTag(), l.PeerTag)
	for i := range l.A.NumPaths() {
		a := l.A.PathStats(i).Remote.Addr()
		check.That(t, had[a], "a path to %v", a)
	}
}

// Both Tie-Tags have to match for a restart (Table 12, action A).
func TestRestartNeedsBothTieTags(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(*assoc.Cookie)
		taken  bool
	}{
		{"both", func(*assoc.Cookie) {}, true},
		{"the own one differs", func(c *assoc.Cookie) { c.LocalTie++ }, false}, // req 9260-5.2.4-14
		{"the peer's differs", func(c *assoc.Cookie) { c.PeerTie++ }, false},
	} {
		j := sctptest.NewCookieLab(t, nil)
		_, first := j.Answer(sctptest.InitChunk(j.PeerTag, j.TSN))
		j.Accept(&first)
		_, c := j.SendInit(sctptest.InitChunk(0x55667788, 3))
		row.change(&c)
		b, _ := j.Seal(j.Now, nil, &c)
		j.Pass(sctptest.Packet(sctptest.PortA, sctptest.PortB, c.LocalTag, wire.AppendCookieEcho(nil, b)))
		taken := j.A.PeerTag() == 0x55667788
		check.That(t, taken == row.taken && (j.A.Stats().BadCookies == 1) != row.taken, "%s: a restart %v", row.name, taken)
	}
}

// A peer that restarts during a shutdown, whoever has begun it, does not undo it: the association
// ends as by an ABORT, and what it had to send is reported as failed. What the peer sets up is
// another association, for whoever listens, with the DATA that comes along, or is refused. In
// SHUTDOWN-ACK-SENT the shutdown is completed first.
func TestRestartDuringAShutdownEndsIt(t *testing.T) {
	// req 9260-5.2.4-5, 9260-9.2-1, 9260-9.2-18
	for _, state := range []assoc.State{assoc.ShutdownPending, assoc.ShutdownSent, assoc.ShutdownReceived} {
		for _, listens := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, somebody listens: %v", state, listens), func(t *testing.T) {
				l := sctptest.Collector(t, state)
				l.InState(state)
				old := l.A
				if !listens {
					l.Host.Endpoint.Unlisten(sctptest.PortB)
				}
				var c sctptest.Signed
				for _, c = range l.Kept {
					if c.Name == "a restart" {
						break
					}
				}
				l.Host.Events = nil
				out := l.Send(c.Local, wire.AppendCookieEcho(nil, c.Cookie), l.Data("of its next life"))
				check.Equal(t, "the association", old.State(), assoc.Closed)
				err, _ := l.Host.DownErr()
				check.Error(t, "it ended", err, assoc.ErrSucceeded)
				check.Error(t, "it ended", err, syscall.ECONNRESET)
				check.Equal(t, "messages reported as failed", len(l.Host.Tokens(assoc.EventSendFailed)), map[bool]int{false: 1}[state == assoc.ShutdownSent])
				_, restarted := l.Host.Event(assoc.EventRestart)
				check.That(t, !restarted && old.Successor() == nil, "a restart was reported, or the packet is handed out twice")
				if !listens {
					l.Expect(out, "ABORT")
					check.That(t, out[0].VTag() == c.Peer && len(l.Host.Assocs) == 1, "the ABORT has the tag %#x", out[0].VTag())
					return
				}
				must.That(t, l.A != old && len(l.Host.Assocs) == 2, "there is no other association")
				l.Expect(out, "COOKIE ACK SACK")
				l.InState(assoc.Established)
				got := sctptest.Drain(l.A)
				check.That(t, len(got) == 1 && string(got[0]) == "of its next life" && sctptest.Drain(old) == nil, "received %q", got)
				must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("welcome back")}}))
				l.Expect(l.Flush(), "DATA")
				check.That(t, len(l.Wait(time.Second)) != 0 && l.A.Incarnation() == 1, "life %d", l.A.Incarnation())
				l.InState(assoc.Established)
			})
		}
	}
}
