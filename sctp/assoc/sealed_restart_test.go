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
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/internal/seal"
	"github.com/rddp-go/rddp/sctp/wire"
)

// keeper keeps the restart keys of a host's association. It outlives the host's crashes.
type keeper struct {
	kept    *assoc.RestartKeys
	fails   bool // it does not get them away
	answers bool // at once; else when the test says so
	taking  int
	stored  int
}

// assocKeeper is that of one association.
type assocKeeper struct {
	f *fakeTLS
	a *assoc.Assoc
}

func (k assocKeeper) StoreRestart(keys assoc.RestartKeys) {
	k.f.keeper.kept = &keys
	k.f.keeper.stored++
}

func (k assocKeeper) TakeRestart() {
	k.f.keeper.taking++
	if k.f.keeper.answers {
		k.f.todo = append(k.f.todo, k.taken)
	}
}

// taken answers TakeRestart.
func (k assocKeeper) taken(now rawio.Time) {
	keys := k.f.keeper.kept
	if k.f.keeper.fails {
		keys = nil
	} else {
		k.f.keeper.kept = nil
	}
	k.a.RestartTaken(now, keys)
}

var restartable = &assoc.Config{Protected: true, Restartable: true}

// restartWorld is two hosts that keep restart keys.
func restartWorld(t testing.TB) (w *sctptest.World, client, server *fakeTLS) {
	t.Helper()
	w = sctptest.NewWorld(t)
	client, server = attachTLS(w.Hosts[0]), attachTLS(w.Hosts[1])
	client.keeper, server.keeper = &keeper{answers: true}, &keeper{answers: true}
	w.Listen(restartable)
	return w, client, server
}

// restartablePair is two associated ends with keys.
func restartablePair(t testing.TB) (w *sctptest.World, client, server *fakeTLS, a, b *assoc.Assoc) {
	t.Helper()
	w, client, server = restartWorld(t)
	w.Hosts[1].Reads = true
	a = w.Connect(restartable)
	w.Run(time.Second)
	b = w.Peer()
	must.That(t, a.IsProtected() && b.IsProtected(), "%v and %v without keys; %v", a.State(), b.State(), w.Hosts[0].Events)
	return w, client, server, a, b
}

// crash has a host forget all but what its keeper has.
func crash(w *sctptest.World, id int, f *fakeTLS) {
	h := w.Hosts[id]
	h.Reboot(77+int64(len(w.Sent)), 0)
	h.Assocs, h.Events, f.todo = nil, nil, nil
	if id == 1 {
		w.Listen(restartable)
	}
}

// numbers holds the number of each record under each key: none twice.
type numbers struct {
	openers map[seal.Material]*[4]*seal.Opener
}

// checkNumbers fails for a number that a key has sealed twice, and for a packet that nobody could
// have sealed. It returns how many it has seen.
func checkNumbers(t testing.TB, w *sctptest.World, hosts ...*fakeTLS) (records int) {
	t.Helper()
	n := numbers{map[seal.Material]*[4]*seal.Opener{}}
	for _, f := range hosts {
		for _, m := range f.used {
			if m.Suite != 0 && n.openers[m] == nil {
				var list [4]*seal.Opener
				for bits := range list {
					list[bits] = must.Get(seal.NewOpener(0, &m, uint64(4+bits), seal.MaxReplayWindow))(t)
				}
				n.openers[m] = &list
			}
		}
	}
	for _, s := range w.Sent {
		if isSealed(s.Pkt) {
			records++
			must.That(t, n.opens(s.Pkt), "host %d has sealed % x under a number of before", s.From, s.Pkt[:24])
		}
	}
	return records
}

func (n *numbers) opens(pkt wire.Packet) bool {
	d, _ := wire.AsDTLS(sctptest.ChunkOf(pkt, wire.ChunkDTLS))
	for _, list := range n.openers {
		if _, err := list[d.Record()[0]&3].Open(0, bytes.Clone(d.Record()), nil); err == nil {
			return true
		}
	}
	return false
}

// hasRBit says whether a packet is sealed with a restart key.
func hasRBit(p wire.Packet) bool { return isSealed(p) && p[wire.CommonHeaderLen+1]&wire.FlagR != 0 }

// A host crashes and sets the association up again with the keys that it has kept. Its peer hears
// of a restart. Both have new keys after that, and restart keys for the next time.
func TestSealedRestart(t *testing.T) {
	// req dtlschunk-5.4-1
	// req dtlschunk-5.4-2: see the packets below
	// req dtlschunk-5.4-3
	// req dtlschunk-5.4-11
	// req dtlschunk-3.1-2
	// req dtlskeys-6.3.2-1: for both directions, before what is sealed
	// req dtlskeys-6.3.2-8
	w, client, server, a, b := restartablePair(t)
	w.Send(a, 0, []byte("before."))
	w.Run(time.Second)
	w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
	w.Send(b, 0, []byte("lost"))
	w.Flush()
	w.Filter = nil
	for life := uint64(2); life < 5; life++ {
		var ties []uint32
		w.Each(func(s sctptest.Capture, c wire.Chunk) {
			if init, err := wire.AsInit(c); err == nil {
				k, err := sctptest.ParamOf(init, wire.ParamKeyManagement).KeyManagement()
				must.That(t, err == nil && k.Restart && bytes.Equal(k.Methods, []byte{192}), "%+v, %v", k, err)
				ties = append(ties, k.TieBreaker)
			}
		})
		slices.Sort(ties)
		check.That(t, len(slices.Compact(ties)) == len(ties), "a tie breaker comes again")
		crash(w, 0, client)
		n := len(w.Sent)
		began := w.Now
		a = w.Connect(restartable)
		upAt := rawio.Never
		w.Hosts[0].OnEvent = func(_ *assoc.Assoc, e assoc.Event) {
			if e.Kind == assoc.EventUp {
				upAt = w.Now
				check.Equal(t, "epoch when the association is up", a.Stats().Keys.Epoch, 3)
			}
		}
		w.Run(2 * time.Second)
		must.That(t, a.State() == assoc.Established && a.IsProtected(), "%v; %v", a.State(), w.Hosts[0].Events)
		must.Equal(t, "life of the peer", b.Incarnation(), life)
		_, restarted := w.Hosts[1].Event(assoc.EventRestart)
		check.That(t, restarted && upAt.Sub(began) < time.Second, "restart: %v, up at %v", restarted, upAt)
		kinds := ""
		for _, s := range w.Sent[n:min(n+6, len(w.Sent))] {
			switch {
			case hasRBit(s.Pkt):
				kinds += fmt.Sprintf("%d:R ", s.From)
			case !isSealed(s.Pkt):
				kinds += fmt.Sprintf("%d:%v ", s.From, sctptest.ChunkTypes(s.Pkt)[0])
			}
		}
		check.Equal(t, "packets", kinds, "0:INIT 1:INIT ACK 0:R 1:R 0:R 1:R ")
		for _, s := range w.Sent[n+2:] {
			check.That(t, isSealed(s.Pkt), "%v in the clear", sctptest.ChunkTypes(s.Pkt))
		}
		w.Send(a, 0, fmt.Appendf(nil, "life %d.", life))
		w.Send(b, 0, []byte("answer"))
		w.Run(time.Second)
		check.Equal(t, "answers", len(sctptest.Drain(a)), 1)
		check.That(t, !hasRBit(w.Sent[len(w.Sent)-1].Pkt), "restart keys still seal")
		check.That(t, client.keeper.kept == nil && server.keeper.kept == nil, "keys are kept that were used")
		w.Run(30 * time.Second)
		check.That(t, client.keeper.kept != nil && server.keeper.kept != nil, "no keys for the next restart")
	}
	check.Equal(t, "received", w.Hosts[1].Received.String(), "before.life 2.life 3.life 4.")
	check.That(t, checkNumbers(t, w, client, server) > 50, "few records")
	check.Equal(t, "restarts", b.Stats().Restarts, 3)
}

// Each rekey has keys for a restart, and what is kept is that of the last one.
func TestRestartAfterRekeys(t *testing.T) {
	// req dtlskeys-5.4-4
	w, client, server, a, b := restartablePair(t)
	for i := range 6 {
		[]*assoc.Assoc{a, b}[i%2].Rekey(w.Now)
		w.Run(125 * time.Second)
	}
	check.That(t, a.Stats().Keys.Epoch == 9 && client.keeper.kept.Epoch == 9 && server.keeper.kept.Epoch == 9, "%+v, %d, %d",
		a.Stats().Keys, client.keeper.kept.Epoch, server.keeper.kept.Epoch)
	check.Equal(t, "keys kept in all", client.keeper.stored, 7)
	crash(w, 0, client)
	a = w.Connect(restartable)
	w.Run(time.Second)
	check.That(t, a.IsProtected() && b.Incarnation() == 2 && a.Stats().Keys.Epoch == 3, "%v, %+v", a.State(), a.Stats().Keys)
	checkNumbers(t, w, client, server)
}

// Without the keys, or where either side does not take restarts, nothing is restarted, and the
// association of the peer goes on as if nothing had been.
func TestNoSealedRestart(t *testing.T) {
	// req dtlskeys-6.3.1-1
	// req dtlschunk-5.4-14
	// req dtlschunk-5.4-15
	for _, c := range []struct {
		name   string
		change func(client, server *fakeTLS, again *assoc.Config)
		sealed bool // it tries with keys
	}{
		{"the host has no keys", func(client, _ *fakeTLS, _ *assoc.Config) { client.keeper.kept = nil }, false},
		{"its keys cannot be taken away", func(client, _ *fakeTLS, _ *assoc.Config) { client.keeper.fails = true }, false},
		{"it says no more that it takes restarts", func(_, _ *fakeTLS, again *assoc.Config) { again.Restartable = false }, false},
		{"those of the peer cannot be taken away", func(_, server *fakeTLS, _ *assoc.Config) { server.keeper.fails = true }, true},
		{"the peer has lost its own", func(_, server *fakeTLS, _ *assoc.Config) { server.keeper.kept = nil }, true},
		{"other keys", func(client, _ *fakeTLS, _ *assoc.Config) { client.keeper.kept.Send.Key[0]++ }, true},
		{"keys of another epoch", func(client, _ *fakeTLS, _ *assoc.Config) { client.keeper.kept.Epoch++ }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, client, server, _, b := restartablePair(t)
			again := *restartable
			crash(w, 0, client)
			c.change(client, server, &again)
			before, n := fingerprint(b), len(w.Sent)
			a := w.Connect(&again)
			w.Run(10 * time.Second)
			check.Equal(t, "the host is in", a.State(), assoc.CookieEchoed)
			tries, answers := 0, 0
			for _, s := range w.Sent[n:] {
				if s.From == 1 {
					answers++
				} else if hasRBit(s.Pkt) {
					tries++
				}
			}
			check.That(t, tries > 0 == c.sealed, "%d sealed packets", tries)
			check.Equal(t, "packets of the peer: INIT ACK", answers, 1)
			check.That(t, b.State() == assoc.Established && b.Incarnation() == 1, "%v, life %d", b.State(), b.Incarnation())
			if !c.sealed {
				return
			}
			s := b.Stats()
			check.That(t, s.NotOpened+s.BadCookies+uint64(server.keeper.taking) > 0, "it is not counted: %s\n%s", before, fingerprint(b))
			if c.name != "other keys" {
				checkNumbers(t, w, client, server)
			}
		})
	}
}

// A host that has the keys, and does not say by its R bit that it takes restarts, restarts nothing.
func TestRestartWithoutTheRBit(t *testing.T) {
	// req dtlskeys-6.3.1-3
	w, client, server, _, b := restartablePair(t)
	kept := *client.keeper.kept
	crash(w, 0, client)
	a := w.Connect(protected)
	w.Run(100 * time.Millisecond)
	echo := sctptest.ChunkOf(w.Seen(0, wire.ChunkCookieEcho)[len(w.Seen(0, wire.ChunkCookieEcho))-1].Pkt, wire.ChunkCookieEcho)
	ring := seal.NewKeyring(seal.Limits{}, 0)
	must.OK(t, ring.InstallRestart(0, kept.Epoch, &kept.Send, &kept.Receive))
	must.OK(t, ring.UseRestart(0, kept.Epoch))
	pkt := sctptest.Packet(sctptest.PortA, sctptest.PortB, a.PeerTag())
	deliver(w, 1, resum(must.Get(ring.Append(pkt, append(bytes.Clone(echo), wire.Padding(len(echo))...)))(t)))
	w.Run(time.Second)
	check.That(t, b.Incarnation() == 1 && server.keeper.taking == 0 && b.Stats().BadCookies == 1, "life %d, %d bad cookies",
		b.Incarnation(), b.Stats().BadCookies)
}

// A peer that has no association any more refuses, and another one is set up at once.
func TestRestartOfNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(w *sctptest.World, server *fakeTLS, b *assoc.Assoc)
	}{
		{"it has crashed too", func(w *sctptest.World, server *fakeTLS, _ *assoc.Assoc) { crash(w, 1, server) }},
		{"it has ended", func(w *sctptest.World, _ *fakeTLS, b *assoc.Assoc) {
			w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
			b.Abort(w.Now, nil)
			w.Flush()
			w.Filter = nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, client, server, _, b := restartablePair(t)
			crash(w, 0, client)
			c.end(w, server, b)
			n := len(w.Sent)
			a := w.Connect(restartable)
			w.Run(time.Second)
			must.That(t, a.State() == assoc.Established && a.IsProtected(), "%v %v", a.State(), w.Hosts[0].Events)
			kinds := ""
			for _, s := range w.Sent[n : n+7] {
				kinds += fmt.Sprintf("%v ", sctptest.ChunkTypes(s.Pkt)[0])
			}
			check.Equal(t, "packets", kinds, "INIT INIT ACK DTLS ABORT INIT INIT ACK COOKIE ECHO ")
			w.Send(a, 0, []byte("anew"))
			w.Run(time.Second)
			check.Equal(t, "received", w.Hosts[1].Received.String(), "anew")
			checkNumbers(t, w, client, server)
		})
	}
}

// A peer that shuts down ends the association, and another one is set up.
func TestSealedRestartInAShutdown(t *testing.T) {
	for _, state := range []assoc.State{assoc.ShutdownPending, assoc.ShutdownSent, assoc.ShutdownReceived, assoc.ShutdownAckSent} {
		t.Run(state.String(), func(t *testing.T) {
			w, client, server, a, b := restartablePair(t)
			want := assoc.ErrSucceeded
			switch state {
			case assoc.ShutdownAckSent: // which the peer does not hear any more
				want = assoc.ErrShutdown
				must.OK(t, a.Shutdown(w.Now))
				w.Filter = func(from int, _ wire.Packet) (int, time.Duration) { return 1 - from, 0 }
				must.That(t, w.RunUntil(w.Now.Add(time.Second), func() bool { return b.State() == state }), "%v", b.State())
			case assoc.ShutdownPending, assoc.ShutdownSent:
				w.Filter = func(int, wire.Packet) (int, time.Duration) { return 0, 0 }
				if state == assoc.ShutdownPending {
					w.Send(b, 0, []byte("x"))
				}
				must.OK(t, b.Shutdown(w.Now))
				w.Flush()
			default:
				must.OK(t, a.Shutdown(w.Now))
				w.Filter = func(from int, _ wire.Packet) (int, time.Duration) { return 1 - from, 0 }
				w.Send(b, 0, []byte("x"))
				must.That(t, w.RunUntil(w.Now.Add(time.Second), func() bool { return b.State() == state }), "%v", b.State())
			}
			must.Equal(t, "state", b.State(), state)
			w.Filter = nil
			crash(w, 0, client)
			a = w.Connect(restartable)
			w.Run(5 * time.Second)
			err, ended := w.Hosts[1].DownErr()
			must.That(t, a.State() == assoc.Established && a.IsProtected(), "%v %v; %v", a.State(), w.Hosts[0].Events, err)
			check.That(t, ended && errors.Is(err, want), "%v", err)
			w.Send(a, 0, []byte("anew"))
			w.Run(time.Second)
			check.Equal(t, "received", w.Hosts[1].Received.String(), "anew")
			checkNumbers(t, w, client, server)
		})
	}
}

// restartInit is an INIT of a peer that takes restarts.
func restartInit() []byte {
	return sctptest.InitChunk(7, 7, wire.AppendKeyManagement(nil, wire.KeyManagement{TieBreaker: 9, Restart: true,
		Server: true, Client: true, Methods: []byte{192}}))
}

// Without restart keys at both sides SHUTDOWN-ACK-SENT answers an INIT as RFC 9260 has it.
func TestInitInASealedShutdown(t *testing.T) {
	for _, restarts := range []bool{true, false} {
		w, client, server := restartWorld(t)
		cfg := *restartable
		cfg.Restartable = restarts
		a := w.Connect(&cfg)
		w.Run(time.Second)
		b := w.Peer()
		must.OK(t, a.Shutdown(w.Now))
		w.Filter = func(from int, _ wire.Packet) (int, time.Duration) { return 1 - from, 0 }
		w.Run(100 * time.Millisecond)
		must.Equal(t, "state", b.State(), assoc.ShutdownAckSent)
		n := len(w.Sent)
		deliver(w, 1, resum(sctptest.Packet(sctptest.PortA, sctptest.PortB, 0, restartInit())))
		w.Flush()
		kinds := ""
		for _, s := range w.Sent[n:] {
			kinds += fmt.Sprintf("%v ", sctptest.ChunkTypes(s.Pkt)[0])
		}
		check.Equal(t, fmt.Sprintf("restarts %v: answers", restarts), kinds, map[bool]string{true: "INIT ACK DTLS ", false: "DTLS "}[restarts])
		check.Equal(t, "state", b.State(), assoc.ShutdownAckSent)
		checkNumbers(t, w, client, server)
	}
}

// Both hosts have crashed and set the association up at once. Whichever of them has kept its keys,
// there is one in the end, at the first try.
func TestSealedRestartsCollide(t *testing.T) {
	for _, kept := range [][2]bool{{true, false}, {false, true}, {true, true}, {false, false}} {
		for _, late := range []time.Duration{0, sctptest.Latency / 2, sctptest.Latency, 3 * sctptest.Latency / 2, 5 * sctptest.Latency / 2} {
			for first := range 2 {
				t.Run(fmt.Sprintf("keys %v, host %d begins %v later", kept, 1-first, late), func(t *testing.T) {
					w, client, server, _, _ := restartablePair(t)
					hosts := [2]*fakeTLS{client, server}
					for i, f := range hosts {
						crash(w, i, f)
						if !kept[i] {
							f.keeper.kept = nil
						}
						w.Hosts[i].Reboot(int64(1000+i), 0)
						w.Hosts[i].Reads = true
					}
					w.Listen(restartable)
					must.OK(t, w.Hosts[0].Endpoint.Listen(sctptest.PortA, restartable))
					var ends [2]*assoc.Assoc
					ports := [2]uint16{sctptest.PortA, sctptest.PortB}
					connect := func(i int) {
						w.Hosts[i].Received.Reset()
						ends[i] = w.ConnectFrom(i, ports[i], ports[1-i], restartable)
					}
					connect(first)
					w.Run(late)
					if second := w.Hosts[1-first]; len(second.Assocs) == 0 {
						connect(1 - first)
					} else { // it has taken that of the other
						ends[1-first] = second.Assocs[0]
					}
					w.Run(4 * time.Second)
					for i, a := range ends {
						_, up := w.Hosts[i].Event(assoc.EventUp)
						must.That(t, up && a.State() == assoc.Established && a.IsProtected(), "host %d: %v, %v", i, a.State(), w.Hosts[i].Events)
						w.Send(a, 0, []byte("hello"))
					}
					w.Run(time.Second)
					for i, h := range w.Hosts {
						check.Equal(t, fmt.Sprintf("received by host %d", i), h.Received.String(), "hello")
					}
					checkNumbers(t, w, client, server)
				})
			}
		}
	}
}

// A COOKIE ECHO in the clear counts for a host that restarts only if it answers this set-up, and
// has nothing of an extension behind it.
func TestEchoesInTheClearWhileRestarting(t *testing.T) {
	w, client, _, _, _ := restartablePair(t)
	old := sctptest.ChunkOf(w.Seen(0, wire.ChunkCookieEcho)[0].Pkt, wire.ChunkCookieEcho) // of the peer's cookies
	crash(w, 0, client)
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && hasRBit(pkt) {
			return 0, 0
		}
		return 1, 0
	}
	a := w.Connect(restartable)
	w.Run(200 * time.Millisecond)
	must.Equal(t, "state", a.State(), assoc.CookieEchoed)
	n := len(w.Sent)
	deliver(w, 0, resum(sctptest.Packet(sctptest.PortB, sctptest.PortA, 0, restartInit())))
	w.Flush()
	ack := must.Get(wire.AsInit(sctptest.ChunkOf(w.Sent[n].Pkt, wire.ChunkInitAck)))(t)
	cookie := wire.AppendCookieEcho(nil, sctptest.ParamOf(ack, wire.ParamStateCookie).Value())
	send := func(tag uint32, chunks ...[]byte) {
		deliver(w, 0, resum(sctptest.Packet(sctptest.PortB, sctptest.PortA, tag, chunks...)))
	}
	changed := bytes.Clone(cookie)
	changed[len(changed)-1]++
	for _, c := range []struct {
		name   string
		tag    uint32
		chunks [][]byte
	}{
		{"a cookie of another host", a.LocalTag(), [][]byte{old}},
		{"a cookie that was changed", a.LocalTag(), [][]byte{changed}},
		{"another tag", a.LocalTag() + 1, [][]byte{cookie}},
		{"with FORWARD TSN", a.LocalTag(), [][]byte{cookie, wire.AppendForwardTSN(nil, 1<<20, nil)}},
		{"behind something else", a.LocalTag(), [][]byte{wire.AppendCookieAck(nil), cookie}},
	} {
		before, count := fingerprint(a), a.Stats().Unprotected
		send(c.tag, c.chunks...)
		check.Equal(t, c.name+": after it", fingerprint(a), before)
		check.Equal(t, c.name+": counted", a.Stats().Unprotected, count+1)
	}
	send(a.LocalTag(), cookie)
	check.Equal(t, "state after the right one", a.State(), assoc.Established)
	check.That(t, !a.IsProtected(), "keys of before are in use")
}

// A peer without keys has answered the listener of a host that then begins to restart. By the
// COOKIE ECHO for the listener the host learns that, and its own goes again at once, in the clear.
func TestEchoForTheListenerWhileRestarting(t *testing.T) {
	w, client, _, _, _ := restartablePair(t)
	crash(w, 0, client)
	must.OK(t, w.Hosts[0].Endpoint.Listen(sctptest.PortA, restartable))
	n := len(w.Sent)
	deliver(w, 0, resum(sctptest.Packet(sctptest.PortB, sctptest.PortA, 0, restartInit())))
	w.Flush()
	ack := must.Get(wire.AsInit(sctptest.ChunkOf(w.Sent[n].Pkt, wire.ChunkInitAck)))(t)
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && isSealed(pkt) {
			return 0, 0
		}
		return 1, 0
	}
	a := w.Connect(restartable)
	w.Run(200 * time.Millisecond)
	must.Equal(t, "state", a.State(), assoc.CookieEchoed)
	n = len(w.Sent)
	deliver(w, 0, resum(sctptest.Packet(sctptest.PortB, sctptest.PortA, ack.Tag(),
		wire.AppendCookieEcho(nil, sctptest.ParamOf(ack, wire.ParamStateCookie).Value()))))
	w.Flush()
	check.That(t, len(w.Sent) == n+1 && sctptest.ChunkTypes(w.Sent[n].Pkt)[0] == wire.ChunkCookieEcho, "%d packets", len(w.Sent)-n)
	check.Equal(t, "state", a.State(), assoc.CookieEchoed)
}

// A host with several addresses restarts by any of them, and by fewer; what was not confirmed since
// gets no data. One address more is refused, as that could be somebody else's.
func TestSealedRestartOfSeveralAddresses(t *testing.T) {
	for _, c := range []struct {
		name    string
		cut     []int // networks
		local   []int // addresses that the host comes back with
		to      []int // addresses that it dials
		refused bool
	}{
		{"as before", nil, []int{0, 1}, []int{0}, false},
		{"the second first", nil, []int{1, 0}, []int{1}, false},
		{"by the only network that is left", []int{0}, []int{0, 1}, []int{0, 1}, false},
		{"with the second alone", nil, []int{1}, []int{1}, false},
		{"with one more", nil, []int{0, 1, 2}, []int{0}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := sctptest.NewMulti(t, 3)
			client, server := attachTLS(w.Hosts[0]), attachTLS(w.Hosts[1])
			client.keeper, server.keeper = &keeper{answers: true}, &keeper{answers: true}
			pick := func(host int, list ...int) (addrs []netip.Addr) {
				for _, i := range list {
					addrs = append(addrs, w.Addrs[host][i])
				}
				return addrs
			}
			own, theirs := *restartable, *restartable
			own.LocalAddrs, theirs.LocalAddrs = pick(0, 0, 1), pick(1, 0, 1)
			w.Listen(&theirs)
			w.Connect(&own, pick(1, 0)...)
			w.Run(10 * time.Second)
			b := w.Peer()
			must.That(t, b.IsProtected() && b.NumPaths() == 2 && client.keeper.kept != nil, "%v, %d paths", b.State(), b.NumPaths())
			h := w.Hosts[0]
			h.Reboot(77, 0)
			h.Assocs, h.Events, client.todo = nil, nil, nil
			for _, i := range c.cut {
				w.Cut(i)
			}
			again := *restartable
			again.LocalAddrs = pick(0, c.local...)
			w.Hosts[1].Reads = true
			a := w.Connect(&again, pick(1, c.to...)...)
			w.Run(20 * time.Second)
			if c.refused {
				var abort *assoc.AbortError
				err, ended := h.DownErr()
				must.That(t, ended && errors.As(err, &abort) && abort.Causes[0].Code == wire.CauseRestart, "%v: %v", a.State(), err)
				check.That(t, b.Incarnation() == 1 && client.keeper.kept != nil && server.keeper.kept != nil, "keys were used")
				return
			}
			must.That(t, a.State() == assoc.Established && a.IsProtected() && b.Incarnation() == 2, "%v, life %d: %v", a.State(), b.Incarnation(), h.Events)
			w.Run(time.Minute)
			active := 0
			for _, p := range sctptest.Paths(b) {
				if p.State == assoc.PathActive {
					active++
				}
			}
			check.Equal(t, "paths that are confirmed", active, len(c.local)-len(c.cut))
			check.Equal(t, "paths", b.NumPaths(), len(c.local))
			if len(c.local) > 1 && len(c.cut) == 0 {
				w.Cut(0)
			}
			w.Send(a, 0, []byte("after"))
			w.Run(time.Minute)
			check.Equal(t, "received", w.Hosts[1].Received.String(), "after")
			checkNumbers(t, w.World, client, server)
		})
	}
}

// captureEcho has a host crash and come back, and returns its first COOKIE ECHO, which is lost.
func captureEcho(t testing.TB, w *sctptest.World, client *fakeTLS) (a *assoc.Assoc, echo wire.Packet) {
	t.Helper()
	crash(w, 0, client)
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 0 && hasRBit(pkt) && echo == nil {
			echo = bytes.Clone(pkt)
		}
		if from == 0 && hasRBit(pkt) {
			return 0, 0
		}
		return 1, 0
	}
	a = w.Connect(restartable)
	w.Run(200 * time.Millisecond)
	must.That(t, echo != nil, "no COOKIE ECHO: %v", w.Hosts[0].Events)
	return a, echo
}

// Nothing that the host has not sealed restarts the association, or changes it. What it has sealed
// restarts it once.
func TestForgedRestarts(t *testing.T) {
	// req dtlschunk-5.4-6: what is sealed so and is no restart is dropped
	// req dtlschunk-5.4-5
	// req dtlskeys-5.4-5
	w, client, server, _, b := restartablePair(t)
	kept := *client.keeper.kept
	a, echo := captureEcho(t, w, client)
	dropped := func(name string, pkt []byte, from netip.AddrPort) {
		t.Helper()
		before := fingerprint(b)
		h := w.Hosts[1]
		h.Receive(w.Now, &rawio.Packet{Data: resum(bytes.Clone(pkt)), Local: h.Addr, Remote: from})
		w.Flush()
		s := b.Stats()
		s.BadCookies = 0
		must.That(t, fingerprint(b) == before && server.keeper.taking == 0, "%s changes\n%s\nto\n%s", name, before, fingerprint(b))
	}
	host := w.Hosts[0].Addr
	end := wire.CommonHeaderLen + int(echo[14])<<8 + int(echo[15])
	for bit := wire.CommonHeaderLen * 8; bit < end*8; bit++ {
		if at := bit / 8; at == 16 || at == 13 && bit%8 != 0 { // pre-padding and reserved bits are ignored
			continue
		}
		forged := bytes.Clone(echo)
		forged[bit/8] ^= 1 << (bit % 8)
		dropped(fmt.Sprintf("bit %d", bit), forged, host)
	}
	dropped("another address", echo, netip.MustParseAddrPort("192.0.2.99:0"))

	// What the host itself would seal with these keys, and is no restart.
	ring := seal.NewKeyring(seal.Limits{}, 0)
	must.OK(t, ring.InstallRestart(0, kept.Epoch, &kept.Send, &kept.Receive))
	must.OK(t, ring.UseRestart(0, kept.Epoch))
	for range 100 {
		must.Do(ring.Append(nil, []byte("numbers of the COOKIE ECHO")))(t)
	}
	for _, c := range []struct {
		name  string
		chunk []byte
	}{
		{"ABORT", wire.AppendAbort(nil, false)},
		{"reflected ABORT", wire.AppendAbort(nil, true)},
		{"DATA", sctptest.DataChunk(b.CumTSN()+1, 0, 0, "forged")},
		{"SHUTDOWN", wire.AppendShutdown(nil, 0)},
		{"SHUTDOWN ACK", wire.AppendShutdownAck(nil)},
		{"HEARTBEAT", wire.AppendHeartbeat(nil, make([]byte, 32))},
		{"another cookie", wire.AppendCookieEcho(nil, []byte("cookie"))},
		{"INIT", sctptest.InitChunk(7, 7)},
		{"part of a chunk", []byte{10, 0}},
	} {
		for _, tag := range []uint32{b.LocalTag(), a.PeerTag(), 0} {
			pkt := sctptest.Packet(sctptest.PortA, sctptest.PortB, tag)
			before := fingerprint(b)
			n, bad := b.Stats().NotOpened, b.Stats().BadCookies
			deliver(w, 1, resum(must.Get(ring.Append(pkt, c.chunk))(t)))
			w.Flush()
			s := b.Stats()
			check.Equal(t, c.name+": counted", s.NotOpened+s.BadCookies, n+bad+1)
			check.That(t, s.State == assoc.Established && b.Incarnation() == 1 && server.keeper.taking == 0, "%s changes\n%s\nto\n%s",
				c.name, before, fingerprint(b))
		}
	}

	// The real one counts, once.
	deliver(w, 1, bytes.Clone(echo))
	w.Flush()
	must.Equal(t, "life", b.Incarnation(), 2)
	for range 3 {
		before := fingerprint(b)
		deliver(w, 1, bytes.Clone(echo))
		w.Flush()
		check.Equal(t, "after a replay", fingerprint(b), before)
	}
	w.Filter = nil
	w.Run(30 * time.Second)
	must.That(t, a.IsProtected() && b.IsProtected() && a.State() == assoc.Established, "%v", a.State())
	before := fingerprint(b)
	deliver(w, 1, bytes.Clone(echo))
	w.Flush()
	check.Equal(t, "after a replay when there are other keys", fingerprint(b), before)
	checkNumbers(t, w, client, server)
}

// The COOKIE ACK counts only if the peer has sealed it, and whatever else comes in the clear, but a
// refusal, changes nothing.
func TestPlaintextWhileRestarting(t *testing.T) {
	w, client, _, _, _ := restartablePair(t)
	a, _ := captureEcho(t, w, client)
	for _, c := range []struct {
		name  string
		tag   uint32
		chunk []byte
	}{
		{"COOKIE ACK", a.LocalTag(), wire.AppendCookieAck(nil)},
		{"ABORT", a.LocalTag(), wire.AppendAbort(nil, false)},
		{"reflected ABORT with another tag", a.PeerTag() + 1, wire.AppendAbort(nil, true)},
		{"Stale Cookie", a.LocalTag(), sctptest.StaleError()},
		{"INIT ACK", a.LocalTag(), sctptest.InitAckChunk(7, 7, []byte("cookie"))},
		{"SHUTDOWN ACK", a.LocalTag(), wire.AppendShutdownAck(nil)},
		{"DATA", a.LocalTag(), sctptest.DataChunk(1, 0, 0, "forged")},
	} {
		before := fingerprint(a)
		n := a.Stats().Unprotected
		deliver(w, 0, resum(sctptest.Packet(sctptest.PortB, sctptest.PortA, c.tag, c.chunk)))
		check.Equal(t, c.name+": after it", fingerprint(a), before)
		check.Equal(t, c.name+": counted", a.Stats().Unprotected, n+1)
	}
}

// A restart does not go on before the keys are away, whatever happens meanwhile.
func TestRestartWaitsForTheKeeper(t *testing.T) {
	// req dtlschunk-5.4-8
	w, client, server, _, b := restartablePair(t)
	client.keeper.answers, server.keeper.answers, client.keeper.taking = false, false, 0
	crash(w, 0, client)
	n := len(w.Sent)
	a := w.Connect(restartable)
	w.Run(10 * time.Second)
	check.That(t, len(w.Sent) == n+2 && client.keeper.taking == 1, "%d packets, asked %d times", len(w.Sent)-n, client.keeper.taking)
	assocKeeper{client, a}.taken(w.Now)
	w.Run(10 * time.Second) // COOKIE ECHO several times
	check.That(t, server.keeper.taking == 1 && b.Incarnation() == 1, "asked %d times, life %d", server.keeper.taking, b.Incarnation())
	for _, s := range w.Sent[n+2:] {
		check.That(t, s.From == 0 && hasRBit(s.Pkt), "the peer answers before its keys are away")
	}
	assocKeeper{server, b}.taken(w.Now)
	w.Run(20 * time.Second)
	check.That(t, a.IsProtected() && b.Incarnation() == 2, "%v, life %d", a.State(), b.Incarnation())
	assocKeeper{server, b}.taken(w.Now) // once more
	checkNumbers(t, w, client, server)

	w, client, server, _, b = restartablePair(t)
	server.keeper.answers = false
	crash(w, 0, client)
	w.Connect(restartable)
	w.Run(time.Second)
	b.Abort(w.Now, nil)
	w.Run(time.Second)
	assocKeeper{server, b}.taken(w.Now) // too late
	check.Equal(t, "state", b.State(), assoc.Closed)
}

// Whatever is lost, doubled or late: the association restarts, and no number seals twice.
func TestLossesInARestart(t *testing.T) {
	for seed := range int64(60) {
		rnd := rand.New(rand.NewSource(seed))
		w, client, server, _, b := restartablePair(t)
		crash(w, 0, client)
		w.Filter = func(int, wire.Packet) (int, time.Duration) {
			delay := time.Duration(rnd.Intn(40)) * time.Millisecond
			if rnd.Intn(100) < 12 {
				return 0, 0
			}
			return 1 + rnd.Intn(2), delay
		}
		a := w.Connect(restartable)
		up := func() bool { _, up := w.Hosts[0].Event(assoc.EventUp); return up }
		must.That(t, w.RunUntil(w.Now.Add(40*time.Second), up), "seed %d: %v, %v", seed, a.State(), w.Hosts[1].Events)
		w.Send(a, 0, []byte("x"))
		w.Run(time.Minute)
		check.Equal(t, "received", w.Hosts[1].Received.String(), "x")
		check.Equal(t, "life", b.Incarnation(), 2)
		checkNumbers(t, w, client, server)
	}
}

// A crash after any packet of a life with rekeys and restarts: what comes back has its keys and
// goes on, or has none and changes nothing. No number seals twice.
func TestCrashAfterEachPacket(t *testing.T) {
	// req dtlschunk-5.4-7: a crash within a rekey finds keys that the peer has
	// req dtlschunk-5.4-8
	restarts, total := 0, 0
	for at := 1; ; at++ {
		w, client, server := restartWorld(t)
		w.Hosts[1].Reads = true
		n := 0
		reached := func() bool { return n >= at }
		w.Filter = func(int, wire.Packet) (int, time.Duration) {
			n++
			return 1, 0
		}
		until := func(d time.Duration) bool { return w.RunUntil(w.Now.Add(d), reached) }
		a := w.Connect(restartable)
		over := !until(time.Second)
		if over {
			b := w.Peer()
			a.Rekey(w.Now)
			over = !until(time.Second)
			if over {
				w.Run(130 * time.Second)
				b.Rekey(w.Now)
				over = !until(time.Second)
			}
			if over {
				crash(w, 0, client)
				w.Connect(restartable)
				over = !until(time.Second)
			}
		}
		if over {
			total = at
			break
		}
		hadKeys := client.keeper.kept != nil
		crash(w, 0, client)
		w.Filter = nil
		a = w.Connect(restartable)
		w.Run(20 * time.Second)
		b := w.Peer()
		if b != nil && b.Incarnation() > 1 {
			restarts++
		}
		if hadKeys && b != nil && b.IsProtected() {
			check.That(t, a.IsProtected() && a.State() == assoc.Established, "after %d packets, with keys: %v, %v", at, a.State(), b.State())
		}
		checkNumbers(t, w, client, server)
	}
	check.That(t, restarts > 20 && total > 40, "%d restarts of %d", restarts, total)
}

// The record of restart keys is the same for both ends, turned around.
func TestRestartKeysOfBothEnds(t *testing.T) {
	_, client, server, _, _ := restartablePair(t)
	a, b := client.keeper.kept, server.keeper.kept
	check.That(t, a.Send == b.Receive && a.Receive == b.Send && a.Send != a.Receive && a.Epoch == 3 && b.Epoch == 3,
		"%+v\n%+v", a, b)
}

// After a restart of its own a host does not know who the peer is until TLS says so. Without that
// the association ends, as at its first beginning.
func TestRestartWithoutTrust(t *testing.T) {
	w, client, server, _, b := restartablePair(t)
	crash(w, 0, client)
	server.refuses = errors.New("somebody else")
	a := w.Connect(restartable)
	w.Run(5 * time.Second)
	err, ended := w.Hosts[0].DownErr()
	var failure *assoc.KeyFailure
	check.That(t, ended && errors.As(err, &failure), "%v: %v", a.State(), err)
	_, up := w.Hosts[0].Event(assoc.EventUp)
	check.That(t, !up, "the host has come up")
	check.Equal(t, "state of the peer", b.State(), assoc.Closed)
	checkNumbers(t, w, client, server)

	w, client, server, _, _ = restartablePair(t) // TLS does not go on
	crash(w, 0, client)
	w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
		if from == 1 && hasRBit(pkt) && len(pkt) > 200 {
			return 0, 0
		}
		return 1, 0
	}
	a = w.Connect(restartable)
	w.Run(40 * time.Second)
	err, ended = w.Hosts[0].DownErr()
	check.That(t, ended && errors.As(err, &failure), "%v: %v", a.State(), err)
	checkNumbers(t, w, client, server)
}

// What is kept of a restart is little, and gone when it is over.
func TestMemoryOfARestart(t *testing.T) {
	w, client, server, _, b := restartablePair(t)
	server.keeper.answers = false
	crash(w, 0, client)
	before := b.Held()
	w.Connect(restartable)
	w.Run(10 * time.Second)
	waiting := b.Held()
	check.That(t, waiting > before && waiting < before+4096, "%d octets, then %d", before, waiting)
	server.keeper.fails = true
	assocKeeper{server, b}.taken(w.Now)
	check.That(t, b.Held() < waiting, "%d octets, then %d", waiting, b.Held())
}

// Forged restarts cost an attempt each, and no memory beyond that of one key. The real one is let
// in all the same.
func TestFloodOfForgedRestarts(t *testing.T) {
	w, client, server, _, b := restartablePair(t)
	a, echo := captureEcho(t, w, client)
	rnd := rand.New(rand.NewSource(1))
	before, held := b.Stats(), b.Held()
	const n = 20_000
	for range n {
		forged := bytes.Clone(echo)
		forged[17] = 0x28 | byte(rnd.Intn(4)) // of any epoch
		rnd.Read(forged[18:])
		deliver(w, 1, resum(forged))
	}
	w.Flush()
	after := b.Stats()
	check.Equal(t, "records that did not open", after.NotOpened-before.NotOpened, n)
	check.That(t, after.PacketsOut == before.PacketsOut && server.keeper.taking == 0, "%d answers", after.PacketsOut-before.PacketsOut)
	check.That(t, b.Held() <= held+2048, "%d octets, then %d", held, b.Held())
	w.Filter = nil
	w.Run(10 * time.Second)
	check.That(t, a.IsProtected() && a.State() == assoc.Established && b.Incarnation() == 2, "%v, life %d", a.State(), b.Incarnation())
	checkNumbers(t, w, client, server)
}
