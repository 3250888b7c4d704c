package assoc_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio/simnet"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestHandshakeTakesTwoRoundTripsAndNegotiatesStreams(t *testing.T) {
	w := sctptest.NewWorld(t)
	w.Listen(&assoc.Config{OutStreams: 20, InStreams: 5})
	a := w.Connect(&assoc.Config{OutStreams: 8, InStreams: 12})
	start := w.Now
	up := w.RunUntil(w.Now.Add(time.Second), func() bool { return a.State() == assoc.Established })
	must.That(t, up && w.Now.Sub(start) == 2*sctptest.RoundTrip, "established: %v after %v", up, w.Now.Sub(start))
	b := w.Peer()
	// req 9260-5.1.1-2, 9260-5.1.1-4
	check.That(t, a.OutStreams() == 5 && a.InStreams() == 12 && b.OutStreams() == 12 && b.InStreams() == 5,
		"streams %d/%d and %d/%d", a.OutStreams(), a.InStreams(), b.OutStreams(), b.InStreams())
	for i, h := range w.Hosts {
		_, ok := h.Event(assoc.EventUp)
		check.That(t, ok, "host %d: no EventUp", i)
	}
	init, _ := wire.AsInit(sctptest.ChunkOf(w.Seen(0, wire.ChunkInit)[0].Pkt, wire.ChunkInit))
	ackPkt := w.Seen(1, wire.ChunkInitAck)[0].Pkt
	ack, _ := wire.AsInit(sctptest.ChunkOf(ackPkt, wire.ChunkInitAck))
	v := w.Seen(0, wire.ChunkInit)[0].Pkt.VTag()
	check.That(t, v == 0, "INIT has tag %#x", v)                                                                                     // req 9260-8.5.1-1, 9260-3.1-4
	check.That(t, ackPkt.VTag() == init.Tag(), "INIT ACK has tag %#x, want %#x", ackPkt.VTag(), init.Tag())                          // req 9260-5.1-3
	check.That(t, ack.OutStreams() <= init.InStreams(), "INIT ACK announces OS %d above MIS %d", ack.OutStreams(), init.InStreams()) // req 9260-3.3.3-8
	echo := w.Seen(0, wire.ChunkCookieEcho)[0].Pkt
	check.That(t, echo.VTag() == ack.Tag() && sctptest.ChunkTypes(echo)[0] == wire.ChunkCookieEcho,
		"COOKIE ECHO packet: tag %#x, chunks %v", echo.VTag(), sctptest.ChunkTypes(echo)) // req 9260-8.5.1-9, 9260-3.2.2-5
	ce, _ := wire.AsCookieEcho(sctptest.ChunkOf(echo, wire.ChunkCookieEcho))
	check.That(t, string(ce.Cookie()) == string(sctptest.ParamOf(ack, wire.ParamStateCookie).Value()), "the cookie came back changed") // req 9260-3.3.11-3
	ca := w.Seen(1, wire.ChunkCookieAck)[0].Pkt
	check.That(t, sctptest.ChunkTypes(ca)[0] == wire.ChunkCookieAck, "COOKIE ACK packet: %v", sctptest.ChunkTypes(ca)) // req 9260-5.1-6
}

func TestHandshakeSurvivesLoss(t *testing.T) {
	for _, row := range []struct {
		name   string
		lost   wire.ChunkType
		resent wire.ChunkType
		from   int
	}{
		{"a lost INIT is retransmitted after RTO.Initial", wire.ChunkInit, wire.ChunkInit, 0},
		{"a lost INIT ACK makes the INIT come again", wire.ChunkInitAck, wire.ChunkInit, 0},
		{"a lost COOKIE ECHO is retransmitted", wire.ChunkCookieEcho, wire.ChunkCookieEcho, 0},
		{"a lost COOKIE ACK makes the COOKIE ECHO come again", wire.ChunkCookieAck, wire.ChunkCookieEcho, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := sctptest.NewWorld(t)
			w.Listen(nil)
			w.Filter = sctptest.Lose(row.lost, 1)
			a := w.Connect(nil)
			w.Run(3 * time.Second)
			must.That(t, a.State() == assoc.Established && w.Peer().State() == assoc.Established,
				"states %v, %v", a.State(), w.Peer().State())
			pkts := w.Seen(row.from, row.resent)
			must.That(t, len(pkts) == 2 && pkts[1].At.Sub(pkts[0].At) == time.Second, "%d transmissions", len(pkts))
			// req 9260-5.1.6-1, 9260-3.1-4, 9260-8.5.1-9: the same INIT, the same cookie, each with
			// its tag
			check.Equal(t, "the retransmission differs", string(pkts[0].Pkt), string(pkts[1].Pkt))
		})
	}
}

func TestSetupIsAbandonedAfterMaxInitRetransmits(t *testing.T) {
	for _, row := range []struct {
		name string
		lost wire.ChunkType
		most time.Duration
		wait [4]time.Duration // exponential back-off, section 6.3.3
	}{
		{"INIT unanswered", wire.ChunkInit, 0, [4]time.Duration{1, 2, 4, 8}},              // req 9260-4-2
		{"COOKIE ECHO unanswered", wire.ChunkCookieEcho, 0, [4]time.Duration{1, 2, 4, 8}}, // req 9260-4-3
		{"INIT unanswered, MaxInitRTO", wire.ChunkInit, 3 * time.Second, [4]time.Duration{1, 2, 3, 3}},
		{"COOKIE ECHO unanswered, MaxInitRTO", wire.ChunkCookieEcho, 3 * time.Second, [4]time.Duration{1, 2, 3, 3}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := sctptest.NewWorld(t)
			w.Listen(nil)
			w.Filter = sctptest.Lose(row.lost, 1000)
			a := w.Connect(&assoc.Config{MaxInitRetrans: 4, MaxInitRTO: row.most})
			w.Run(10 * time.Minute)
			err, down := w.Hosts[0].DownErr()
			must.That(t, down && errors.Is(err, assoc.ErrInitTimeout) && errors.Is(err, syscall.ETIMEDOUT) && a.State() == assoc.Closed,
				"down %v with %v in %v", down, err, a.State()) // req 9260-4-4
			pkts := w.Seen(0, row.lost)
			must.Equal(t, "transmissions, 1 + 4", len(pkts), 5)
			for i, want := range row.wait {
				got := pkts[i+1].At.Sub(pkts[i].At)
				check.That(t, got == want*time.Second, "interval %d is %v", i, got)
			}
		})
	}
}

func TestSimultaneousConnectMakesOneAssociation(t *testing.T) {
	for _, row := range []struct {
		name  string
		delay time.Duration // of the second side's start
		slow  time.Duration // extra time that its INIT takes
	}{
		{"INITs cross in COOKIE-WAIT", 0, 0},
		{"the second side starts just before the INIT arrives", sctptest.Latency - time.Millisecond, 0},
		{"the second INIT meets COOKIE-ECHOED", 0, sctptest.Latency + sctptest.Latency/2},
		{"the second INIT meets ESTABLISHED", 0, 10 * sctptest.Latency},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := sctptest.NewWorld(t)
			w.Filter = func(from int, pkt wire.Packet) (int, time.Duration) {
				if from == 1 && sctptest.Has(pkt, wire.ChunkInit) {
					return 1, row.slow
				}
				return 1, 0
			}
			a := w.ConnectFrom(0, sctptest.PortA, sctptest.PortB, nil)
			w.Run(row.delay)
			b := w.ConnectFrom(1, sctptest.PortB, sctptest.PortA, nil)
			w.Run(10 * time.Second)
			must.That(t, a.State() == assoc.Established && b.State() == assoc.Established, "states %v, %v", a.State(), b.State())
			// req 9260-1.3-1, 9260-5.2.1-8
			must.That(t, a.LocalTag() == b.PeerTag() && b.LocalTag() == a.PeerTag(), "the two sides do not agree on their tags")
			w.Send(a, 0, []byte("one way"))
			w.Send(b, 0, []byte("the other"))
			w.Run(time.Second)
			got := sctptest.Drain(b)
			check.That(t, len(got) == 1 && string(got[0]) == "one way", "b received %q", got)
			got = sctptest.Drain(a)
			check.That(t, len(got) == 1 && string(got[0]) == "the other", "a received %q", got)
		})
	}
}

func TestSendBeforeUpAndBadStreams(t *testing.T) {
	w := sctptest.NewWorld(t)
	w.Listen(nil)
	a := w.Connect(&assoc.Config{OutStreams: 4, SendBuffer: 1000})
	m := assoc.Message{Body: [2][]byte{[]byte("x")}}
	check.Error(t, "Send in COOKIE-WAIT", a.Send(w.Now, &m), assoc.ErrNotUp)
	w.Run(time.Second)
	m.Stream = 4
	if err := a.Send(w.Now, &m); !errors.Is(err, assoc.ErrInvalidStream) { // req 9260-5.1.1-4, 9260-6.5-1
		t.Errorf("Send on stream 4 of 4: %v", err)
	}
	m.Stream, m.Body[0] = 3, nil
	if err := a.Send(w.Now, &m); !errors.Is(err, assoc.ErrEmptyMessage) { // req 9260-6.2-28
		t.Errorf("empty message: %v", err)
	}
	m.Body[0] = make([]byte, 600)
	check.OK(t, a.Send(w.Now, &m))
	check.Error(t, "send buffer exceeded", a.Send(w.Now, &m), assoc.ErrSendBufferFull)
	w.Run(time.Second)
	_, ok := w.Hosts[0].Event(assoc.EventSenderDry)
	check.That(t, ok, "no EventSenderDry")
}

func TestConnectSendsInitAndStartsT1(t *testing.T) {
	l := sctptest.NewLab(t)
	a := l.Dial(&assoc.Config{OutStreams: 7, InStreams: 9, RecvBuffer: 54321}, l.Host.Addr, l.Peer)
	out := l.Flush()
	l.Expect(out, "INIT")
	l.InState(assoc.CookieWait)
	init, _ := wire.AsInit(sctptest.ChunkOf(out[0], wire.ChunkInit))
	// req 9260-5.1-1, 9260-5.1.1-1
	check.That(t, init.Tag() == a.LocalTag() && init.OutStreams() == 7 && init.InStreams() == 9 && init.ARwnd() == 54321,
		"INIT: tag %#x of %#x, OS %d, MIS %d, a_rwnd %d", init.Tag(), a.LocalTag(), init.OutStreams(), init.InStreams(), init.ARwnd())
	check.Equal(t, "end of T1-init, after RTO.Initial", a.NextTimeout(), l.Now.Add(time.Second))
}

func TestInitAckStopsT1InitAndStartsT1Cookie(t *testing.T) {
	l := sctptest.Active(t, nil)
	start := l.Now
	l.Now = l.Now.Add(400 * time.Millisecond)
	out := l.Send(l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie")))
	l.Expect(out, "COOKIE ECHO") // req 9260-5.1.4-1, 9260-3.3.3-13
	l.InState(assoc.CookieEchoed)
	c := sctptest.ChunkOf(out[0], wire.ChunkCookieEcho)
	check.That(t, c.Flags() == 0 && string(c.Value()) == "cookie", "COOKIE ECHO % x", c)
	rto := l.A.PathStats(0).RTO
	check.Equal(t, "end of T1-cookie, after an RTO", l.A.NextTimeout(), l.Now.Add(rto))
	l.Expect(l.Wait(start.Add(time.Second).Sub(l.Now)), "") // T1-init would have expired now
	l.Expect(l.Wait(rto), "COOKIE ECHO")
	_, up := l.Host.Event(assoc.EventUp)
	must.That(t, !up, "EventUp before COOKIE ACK")
	l.Expect(l.Send(l.Tag, wire.AppendCookieAck(nil)), "")
	l.InState(assoc.Established) // req 9260-5.1-7
	e, up := l.Host.Event(assoc.EventUp)
	check.That(t, up && e.Path == l.Peer, "EventUp %v %+v", up, e)
	for _, p := range l.Wait(10 * time.Second) {
		check.That(t, !sctptest.Has(p, wire.ChunkCookieEcho), "T1-cookie still runs")
	}
}

// An INIT or a COOKIE ECHO that was sent again measures no round trip: nobody knows which of the
// two was answered.
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
		l := sctptest.Active(t, nil)
		if row.init {
			l.Expect(l.Wait(time.Second), "INIT")
		}
		l.Now = l.Now.Add(first)
		l.Expect(l.Send(l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie"))), "COOKIE ECHO")
		if row.cookie {
			l.Expect(l.Wait(l.A.NextTimeout().Sub(l.Now)), "COOKIE ECHO")
		}
		l.Now = l.Now.Add(second)
		l.Send(l.Tag, wire.AppendCookieAck(nil))
		l.InState(assoc.Established)
		check.Equal(t, row.name+": SRTT", l.A.PathStats(0).SRTT, row.want)
	}
}

func TestInitAckAnnouncesStreams(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{OutStreams: 5, InStreams: 6})
	out := l.Send(0, sctptest.InitChunk(l.PeerTag, l.TSN))
	ack := l.NoteInitAck(out[0])
	check.That(t, ack.OutStreams() == 5 && ack.InStreams() == 6, "OS %d, MIS %d", ack.OutStreams(), ack.InStreams()) // req 9260-5.1.1-1
}

func TestInitAckMayBeLargerThan1500Octets(t *testing.T) {
	// req 9260-3.3.3-12
	l := sctptest.Active(t, nil)
	cookie := bytes.Repeat([]byte("c"), 1300)
	padding := wire.AppendPaddingParam(nil, 4000)
	l.Expect(l.Send(l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, cookie, padding, wire.AppendAdaptationIndication(nil, 8))), "COOKIE ECHO")
	v, ok := l.A.PeerAdaptation()
	check.That(t, ok && v == 8, "the end of the INIT ACK was not read")
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
		for _, made := range []func(testing.TB, *assoc.Config) *sctptest.Lab{sctptest.Echoed, sctptest.Established, sctptest.Passive} {
			l := made(t, nil)
			state := l.A.State()
			f := wire.InitFields{Tag: 1, ARwnd: 5000, OutStreams: 1, InStreams: 1, TSN: 5}
			row.change(&f)
			out := l.Send(l.Tag, sctptest.InitLike(wire.ChunkInitAck, f, cookie))
			check.That(t, len(out) == 0 && l.A.State() == state, "%s in %v: answered by %q, then %v", row.name, state, sctptest.Describe(out), l.A.State()) // req 9260-3.3.3-5
		}
	}
}

func TestT1RunsPerAddressAndRotates(t *testing.T) {
	// req 9260-5.1-8
	second := netip.MustParseAddrPort("10.0.0.10:0")
	l := sctptest.NewLab(t)
	a := l.Dial(nil, l.Host.Addr, l.Peer, second)
	var got []string
	start := l.Now
	for l.Now.Sub(start) <= 14*time.Second {
		for _, p := range l.Collect() {
			got = append(got, fmt.Sprintf("%v at %v", p.To.Addr(), l.Now.Sub(start)))
		}
		l.Now = a.NextTimeout()
		a.HandleTimeout(l.Now)
	}
	want := []string{"10.0.0.9 at 0s", "10.0.0.10 at 1s", "10.0.0.9 at 2s", "10.0.0.10 at 4s", "10.0.0.9 at 6s", "10.0.0.10 at 10s", "10.0.0.9 at 14s"}
	check.Slice(t, "INITs", got, want)
}

// The set-up shows both sides that the other is near, by tag and cookie: then no chunk is withheld.
// From one that is far some are, so that TSNs change places.
func TestWhoIsNearGetsAllAtOnce(t *testing.T) {
	for delay, far := range map[time.Duration]bool{500 * time.Microsecond: false, 5 * time.Millisecond: true} {
		w := sctptest.NewWorld(t)
		w.Net.Connect(w.Hosts[0].Addr.Addr(), w.Hosts[1].Addr.Addr(), simnet.Params{Delay: delay})
		w.Listen(nil)
		a := w.Connect(nil)
		w.Run(time.Second)
		for _, s := range []*sctptest.Stream{w.StartStream(a, w.Peer(), 2000), w.StartStream(w.Peer(), a, 2000)} {
			check.That(t, w.RunUntil(w.Now.Add(time.Minute), s.Done), "%v: %d have arrived", delay, s.Want)
		}
		var last [2]wire.TSN
		var back [2]bool
		w.Each(func(s sctptest.Capture, c wire.Chunk) {
			if d, err := wire.AsData(c); err == nil {
				back[s.From] = back[s.From] || last[s.From] != 0 && d.TSN().Less(last[s.From])
				last[s.From] = d.TSN()
			}
		})
		check.Equal(t, delay.String()+": TSNs go back", back, [2]bool{far, far})
	}
}
