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

// outage is an outage of own addresses of host 0: they are gone, and what is sent from there is
// lost.
type outage struct{ *sctptest.Multi }

// takeOut takes the own addresses k away, and back gives them back.
func (w outage) takeOut(a *assoc.Assoc, all int, k ...int)   { w.tellAddrs(a, all, k, w.Cut) }
func (w outage) bringBack(a *assoc.Assoc, all int, k ...int) { w.tellAddrs(a, all, k, w.Heal) }

// tellAddrs has an association hear of it; all is a bit mask of the addresses that are there then.
func (w outage) tellAddrs(a *assoc.Assoc, all int, k []int, change func(int)) {
	usable := []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	for i, addr := range w.Addrs[0] {
		if all>>i&1 != 0 {
			usable = append(usable, addr)
		}
	}
	for _, i := range k {
		change(i)
	}
	a.UsableFrom(w.Now, usable)
}

// sentAt is what host 0 has sent since a time, in that instant.
func (w outage) sentAt(at rawio.Time) (text string) {
	w.Flush()
	for _, s := range w.Sent {
		if s.From == 0 && s.At >= at {
			to := s.Remote.Addr().As4()
			text += fmt.Sprintf("%d: %s; ", to[1], sctptest.Describe([]wire.Packet{s.Pkt}))
		}
	}
	return text
}

// When an own address returns, what waits for a timer that has backed off goes at once, and only
// one packet of it. Timers and error counters go on as if it had not.
func TestOwnAddressThatReturns(t *testing.T) {
	const gone = 5 * time.Second
	data := func(n int) func(outage, *assoc.Assoc) {
		return func(w outage, a *assoc.Assoc) {
			for range n {
				w.World.Send(a, 0, make([]byte, 1300))
			}
			w.Flush()
		}
	}
	none := func(outage, *assoc.Assoc) {}
	for _, row := range []struct {
		name     string
		networks int
		cfg      assoc.Config
		begin    func(outage, *assoc.Assoc)
		out      []int
		gone     time.Duration
		want     string // sent at once when the first of them is back
		within   time.Duration
	}{
		{"one chunk in flight", 1, steady, data(1), []int{0}, gone, "1: DATA; ", 1},
		{"several: the earliest alone", 1, steady, data(5), []int{0}, gone, "1: DATA; ", 4},
		{"by the letter of the RFC", 1, assoc.Config{RFC9260: true, HeartbeatInterval: time.Hour}, data(5), []int{0}, gone, "1: DATA; ", 5},
		{"after a long outage", 1, assoc.Config{AssocMaxRetrans: 20, PathMaxRetrans: 10}, data(5), []int{0}, 5 * time.Minute, "1: DATA; ", 4},
		{"before T3-rtx has expired for the first time", 1, steady, data(5), []int{0}, 700 * time.Millisecond, "1: DATA; ", 4},
		{"nothing in flight", 1, steady, none, []int{0}, gone, "1: HEARTBEAT; ", 1},
		{"nothing in flight, in no state to send HEARTBEATs", 1, assoc.Config{HeartbeatInterval: -1}, none, []int{0}, gone, "", 1},
		{"the primary path was left", 2, steady, data(5), []int{0}, gone, "1: HEARTBEAT; ", 1},
		{"it has failed", 2, assoc.Config{PathMaxRetrans: 1, HeartbeatInterval: time.Hour}, data(5), []int{0}, time.Minute, "1: HEARTBEAT; ", 1},
		{"the other path", 2, steady, data(5), []int{1}, gone, "2: HEARTBEAT; ", 1},
		{"all paths: the first that is back", 2, steady, data(5), []int{1, 0}, gone, "2: DATA; ", 5},
		{"all paths, long: the first that is back", 2, assoc.Config{AssocMaxRetrans: 20}, data(5), []int{0, 1}, 5 * time.Minute, "1: DATA; ", 5},
		{"all paths: the first that is back, nothing in flight", 2, steady, none, []int{0, 1}, gone, "1: HEARTBEAT; ", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := outage{sctptest.NewMulti(t, row.networks)}
			a, _ := w.Associate(row.cfg, steady)
			w.Hosts[1].Reads = true
			w.World.Send(a, 0, make([]byte, 1300))
			w.Run(time.Second)
			must.That(t, a.GoIdle(), "it does not rest")
			all, here := 1<<row.networks-1, 1<<row.networks-1
			for _, k := range row.out {
				here &^= 1 << k
			}
			w.takeOut(a, here, row.out...)
			check.That(t, a.IsIdle() || row.networks > 1, "an association without DATA is woken")
			row.begin(w, a)
			w.Run(row.gone)
			before, errs := sctptest.PathTo(t, a, w.Addrs[1][row.out[0]]), a.Stats().Timeouts
			received, t3 := w.Hosts[1].Received.Len(), a.NextTimeout()
			at := w.Now.Add(1)
			w.Now = at
			w.bringBack(a, here|1<<row.out[0], row.out[0])
			check.Equal(t, "sent at once", w.sentAt(at), row.want)
			after := sctptest.PathTo(t, a, w.Addrs[1][row.out[0]])
			check.That(t, after.Errors == before.Errors && after.RTO == before.RTO && after.Cwnd <= before.Cwnd &&
				a.NextTimeout() <= max(t3, at.Add(after.RTO)),
				"%+v, before %+v, %d timeouts before; next at %v, before %v", after, before, errs, a.NextTimeout(), t3)
			w.Run(time.Duration(row.within) * sctptest.RoundTrip)
			if row.networks == 1 || len(row.out) == 2 {
				check.Equal(t, "octets received at the end", w.Hosts[1].Received.Len(),
					octetsSent(w.Hosts[0].Assocs[0]))
			}
			p := sctptest.PathTo(t, a, w.Addrs[1][row.out[0]])
			check.That(t, p.State == assoc.PathActive && !p.Suspected && p.Errors == 0 || row.want == "" ||
				len(row.out) == 2 && row.gone > time.Minute, "%+v, received %d before", p, received)
			w.bringBack(a, all, row.out...)
			w.Run(time.Minute)
			must.OK(t, a.Audit(0))
		})
	}
}

// octetsSent is what an association has sent, without what went again.
func octetsSent(a *assoc.Assoc) int { return 1300 * int(a.DataSent()) }

// Interfaces flap, and the peer may be gone. No more than one packet goes for that in an RTO over a
// path, and the association ends when it would have ended.
func TestOwnAddressThatFlaps(t *testing.T) {
	for _, row := range []struct {
		name  string
		begin func(w outage, a *assoc.Assoc)
	}{
		{"data", func(w outage, a *assoc.Assoc) { w.World.Send(a, 0, make([]byte, 100)) }},
		{"nothing in flight", func(outage, *assoc.Assoc) {}},
		{"a shutdown", func(w outage, a *assoc.Assoc) { must.OK(w, a.Shutdown(w.Now)) }},
		{"two of them", nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			story := func(every time.Duration) (packets int, ends time.Duration) {
				w := outage{sctptest.NewMulti(t, 1)}
				a, _ := w.Associate(assoc.Config{HeartbeatInterval: 5 * time.Second}, steady)
				w.Run(time.Second)
				start, seen := w.Now, len(w.Sent)
				w.Cut(0)
				if row.begin == nil {
					w.World.Send(a, 0, make([]byte, 1300))
					w.World.Send(a, 0, make([]byte, 1300))
				} else {
					row.begin(w, a)
				}
				for a.State() != assoc.Closed && w.Now.Sub(start) < time.Hour {
					w.Run(every)
					a.UsableFrom(w.Now, nil)
					w.Run(every)
					a.UsableFrom(w.Now, w.Addrs[0])
				}
				for _, s := range w.Sent[seen:] {
					if s.From == 0 {
						packets++
					}
				}
				at, ended := w.When(0, assoc.EventDown, netip.Addr{}, start)
				check.That(t, ended, "it does not end")
				return packets, at.Sub(start)
			}
			few, long := story(10 * time.Minute)
			for _, every := range []time.Duration{90 * time.Millisecond, 700 * time.Millisecond, 3 * time.Second} {
				n, ends := story(every)
				// Each HEARTBEAT without an answer counts (section 8.2), once in an RTO that is
				// backed off.
				check.That(t, (ends-long).Abs() < time.Second || row.name == "nothing in flight" &&
					ends > 5*time.Minute && ends < long, "every %v: ends after %v, without it %v", every, ends, long)
				most := few + int(ends/max(time.Second, 2*every)) + 2
				check.That(t, n > few && n <= most, "every %v: %d packets, without it %d, at most %d expected", every,
					n, few, most)
			}
		})
	}
}

// A return that comes within an RTO of another has its packet when that is over, unless the address
// is gone again by then.
func TestReturnSoonAfterAnother(t *testing.T) {
	for _, stays := range []bool{true, false} {
		w := outage{sctptest.NewMulti(t, 1)}
		a, _ := w.Associate(steady, steady)
		w.Run(time.Second)
		w.takeOut(a, 0, 0)
		w.World.Send(a, 0, make([]byte, 1300))
		w.Run(3500 * time.Millisecond) // T3-rtx expires after 1, 3 and 7 s
		a.UsableFrom(w.Now, w.Addrs[0])
		first := w.Now
		w.Run(100 * time.Millisecond)
		a.UsableFrom(w.Now, nil)
		w.Run(100 * time.Millisecond)
		a.UsableFrom(w.Now, w.Addrs[0])
		if !stays {
			a.UsableFrom(w.Now, nil)
		}
		w.Run(2 * time.Second)
		var at []time.Duration
		for _, s := range w.World.Seen(0, wire.ChunkData) {
			if s.At >= first {
				at = append(at, s.At.Sub(first))
			}
		}
		want := []time.Duration{0, time.Second}
		if !stays {
			want = want[:1]
		}
		check.Slice(t, "the chunk goes", at, want)
	}
}

// What is in the network is no reason to send it again, however short the outage was.
func TestShortOutageSendsNothingAgain(t *testing.T) {
	w := outage{sctptest.NewMulti(t, 1)}
	a, b := w.Associate(steady, steady)
	s := w.StartStream(a, b, 500)
	w.RunUntil(w.Now.Add(150*time.Millisecond), s.Done)
	for range 20 {
		a.UsableFrom(w.Now, nil)
		a.UsableFrom(w.Now, w.Addrs[0])
		w.RunUntil(w.Now.Add(11*time.Millisecond), s.Done)
	}
	must.That(t, w.RunUntil(w.Now.Add(time.Minute), s.Done), "%d messages arrived", s.Want)
	st := a.Stats()
	check.That(t, st.Retransmits == 0 && st.Timeouts == 0, "%d chunks sent again, %d timeouts", st.Retransmits,
		st.Timeouts)
}

// INIT, COOKIE ECHO, SHUTDOWN and SHUTDOWN ACK go again at once as well, no more often than once in
// an RTO, and their timers go on: how often they expire, and when, is as before. The round trip is
// not measured by an answer that may be to either (section 6.3.1, C5).
func TestSetupsAndShutdownsWhenTheAddressReturns(t *testing.T) {
	for _, row := range []struct {
		state assoc.State
		want  string
	}{
		{assoc.CookieWait, "INIT"}, {assoc.CookieEchoed, "COOKIE ECHO"}, {assoc.ShutdownPending, "DATA"}, {assoc.ShutdownSent, "SHUTDOWN"},
		{assoc.ShutdownReceived, "DATA"}, {assoc.ShutdownAckSent, "SHUTDOWN ACK"},
	} {
		t.Run(row.state.String(), func(t *testing.T) {
			usable := []netip.Addr{sctptest.IPv4[0].Addr()}
			story := func(returns bool) (times []time.Duration, l *sctptest.Lab) {
				l = sctptest.Collector(t, row.state)
				l.A.UsableFrom(l.Now, usable)
				l.Flush()
				start := l.Now
				l.A.UsableFrom(l.Now, nil)
				l.Wait(5 * time.Second)
				if returns {
					for range 3 {
						l.A.UsableFrom(l.Now, usable)
						out := sctptest.Describe(l.Flush())
						check.That(t, out == row.want || l.Now.Sub(start) > 5*time.Second && out == "", "sent %q", out)
						l.Wait(10 * time.Millisecond)
						l.A.UsableFrom(l.Now, nil)
					}
				}
				for l.A.State() != assoc.Closed && l.Now.Sub(start) < time.Hour {
					l.Wait(l.A.NextTimeout().Sub(l.Now))
					times = append(times, l.Now.Sub(start))
				}
				return times, l
			}
			want, _ := story(false)
			got, l := story(true)
			check.Slice(t, "when its timer expires", got, want)
			_, ended := l.Host.DownErr()
			check.That(t, ended, "it does not end")
		})
	}
}

// An answer to an INIT or a COOKIE ECHO that went again at once measures nothing.
func TestHurriedSetupMeasuresNothing(t *testing.T) {
	l := sctptest.Active(t, nil)
	back := func() {
		l.Wait(900 * time.Millisecond)
		l.A.UsableFrom(l.Now, nil)
		l.A.UsableFrom(l.Now, []netip.Addr{sctptest.IPv4[0].Addr()})
	}
	back()
	check.Equal(t, "sent", sctptest.Describe(l.Flush()), "INIT")
	l.Send(l.A.LocalTag(), sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie")))
	check.That(t, l.A.PathStats(0).SRTT == 0, "after INIT ACK %+v", l.A.PathStats(0))
	l = sctptest.Echoed(t, nil)
	back()
	check.Equal(t, "sent", sctptest.Describe(l.Flush()), "COOKIE ECHO")
	l.Send(l.A.LocalTag(), wire.AppendCookieAck(nil))
	check.That(t, l.A.State() == assoc.Established && l.A.PathStats(0).SRTT < time.Millisecond,
		"%v, after COOKIE ACK %+v", l.A.State(), l.A.PathStats(0))
}

// An INIT that goes sooner than it has to may be refused, as the address is back before the way is.
// That is no reason to end the setup, which T1 would go on with later.
func TestHurriedInitThatIsRefused(t *testing.T) {
	for _, err := range []error{syscall.ENETUNREACH, syscall.EPERM} {
		l := sctptest.Active(t, nil)
		for range 5 {
			l.Wait(1100 * time.Millisecond)
			l.A.UsableFrom(l.Now, nil)
			l.A.UsableFrom(l.Now, []netip.Addr{sctptest.IPv4[0].Addr()})
			check.Equal(t, "sent", sctptest.Describe(l.Flush()), "INIT")
			check.That(t, !l.A.HandleUnroutable(l.Now, &rawio.Packet{Remote: l.Peer}, err), "%v: again at once", err)
		}
		check.Equal(t, err.Error(), l.A.State(), assoc.CookieWait)
	}
}

// Which news are of the return of a path's own address.
func TestWhichReturnsCount(t *testing.T) {
	for _, row := range []struct {
		name, local, peer string
		before, after     string
		counts            bool
	}{
		{"its own", "10.0.0.1", "10.0.0.9", "10.0.0.2", "10.0.0.2 10.0.0.1", true},
		{"its own, as an IPv6 address", "::ffff:10.0.0.1", "10.0.0.9", "", "10.0.0.1", true},
		{"another", "10.0.0.1", "10.0.0.9", "", "10.0.0.2", false},
		{"its own was there", "10.0.0.1", "10.0.0.9", "10.0.0.1", "10.0.0.2 10.0.0.1", false},
		{"a link-local one", "fe80::1%eth0", "fe80::9%eth0", "", "fe80::1%eth0", true},
		{"the same of another link", "fe80::1%eth0", "fe80::9%eth0", "", "fe80::1%eth1", false},
		{"one of the loopback network", "127.0.0.5", "127.0.0.1", "10.0.0.1", "127.0.0.1 10.0.0.1", true},
		{"the link chooses: a new one", "", "10.0.0.9", "192.0.2.7", "10.0.0.1 192.0.2.7", true},
		{"the link chooses: a private one, behind a NAT", "", "192.0.2.9", "", "10.0.0.1", true},
		{"the link chooses: none is new", "", "10.0.0.9", "10.0.0.1 10.0.0.2", "10.0.0.1", false},
		{"the link chooses: one of the other family", "", "10.0.0.9", "10.0.0.1", "10.0.0.1 fd00::1", false},
		{"the link chooses: one of the other family, IPv6", "", "fd00::9", "fd00::1", "10.0.0.1 fd00::1", false},
		{"the link chooses: IPv6", "", "fd00::9", "10.0.0.1", "10.0.0.1 fd00::1", true},
		{"the link chooses: a link-local one", "", "fd00::9", "", "fe80::1%veth0", false},
		{"the link chooses: the loopback one", "", "10.0.0.9", "", "127.0.0.1", false},
		{"the link chooses, for this host", "", "127.0.0.1", "", "127.0.0.1", true},
		{"the link chooses, on a link", "", "fe80::9%eth0", "", "fe80::1%eth0", true},
		{"the link chooses, on another link", "", "fe80::9%eth0", "", "fe80::1%eth1", false},
	} {
		list := func(s string) (out []netip.Addr) {
			for _, a := range strings.Fields(s) {
				out = append(out, netip.MustParseAddr(a))
			}
			return out
		}
		l := sctptest.NewLab(t)
		l.Peer = netip.AddrPortFrom(netip.MustParseAddr(row.peer), 0)
		local := netip.AddrPort{}
		if row.local != "" {
			local = netip.AddrPortFrom(netip.MustParseAddr(row.local), 0)
		}
		l.Dial(nil, local, l.Peer)
		l.Flush()
		l.A.UsableFrom(l.Now, list(row.before))
		l.Flush()
		l.Wait(1500 * time.Millisecond)
		l.A.UsableFrom(l.Now, list(row.after))
		out := sctptest.Describe(l.Flush())
		check.That(t, (out == "INIT") == row.counts && (out == "") != row.counts, "%s: sent %q", row.name, out)
	}
}

// HEARTBEATs over many paths that return together are no burst (section 5.4).
func TestReturnsKeepToHBMaxBurst(t *testing.T) {
	w := outage{sctptest.NewMulti(t, 4)}
	cfg := steady
	cfg.HBMaxBurst, cfg.PathMaxRetrans = 2, 1
	a, _ := w.Associate(cfg, steady)
	w.takeOut(a, 0, 0, 1, 2, 3)
	w.Run(time.Minute)
	for _, p := range sctptest.Paths(a) {
		check.That(t, !p.Suspected, "HEARTBEATs to suspected paths are not counted: %+v", p)
	}
	w.bringBack(a, 15, 0, 1, 2, 3)
	burst := len(w.World.Seen(0, wire.ChunkHeartbeat))
	w.Flush()
	check.Equal(t, "HEARTBEATs at once", len(w.World.Seen(0, wire.ChunkHeartbeat))-burst, 2) // req 9260-5.4-6
	w.Run(1200 * time.Millisecond)
	check.Equal(t, "HEARTBEATs after an RTO", len(w.World.Seen(0, wire.ChunkHeartbeat))-burst, 4)
}

// When the own firewall lets packets pass again, or there is a way again, nobody says so. What is
// refused is tried again in each RTO without backing off, since no network is spared by that.
func TestRefusalThatEnds(t *testing.T) {
	for _, networks := range []int{1, 2} {
		w := sctptest.NewMulti(t, networks)
		a, _ := w.Associate(steady, steady)
		w.Hosts[1].Reads = true
		w.World.Send(a, 0, make([]byte, 1300))
		w.Run(time.Second)
		w.Hosts[0].Refuses = map[netip.Addr]error{}
		for _, r := range w.Addrs[1] {
			w.Hosts[0].Refuses[r] = syscall.EPERM
		}
		for range 3 {
			w.World.Send(a, 0, make([]byte, 1300))
		}
		start, refused := w.Now, w.Hosts[0].Refused
		w.Run(20*time.Second + 500*time.Millisecond)
		tries := w.Hosts[0].Refused - refused
		check.That(t, tries <= networks*(4*20+10), "%d packets tried in 20 seconds", tries)
		errs := 0
		for _, p := range sctptest.Paths(a) {
			errs += p.Errors
		}
		check.That(t, errs <= networks*5, "%d errors, as T3-rtx expires after 1, 2, 4 and 8 s", errs)
		w.Hosts[0].Refuses = nil
		opened := w.Now
		w.RunUntil(w.Now.Add(time.Minute), func() bool { return w.Hosts[1].Received.Len() == octetsSent(a) })
		check.That(t, w.Now.Sub(opened) <= 1200*time.Millisecond,
			"%d networks: all is there %v after they are open, %v after the begin", networks, w.Now.Sub(opened),
			w.Now.Sub(start))
		must.OK(t, a.Audit(0))
	}
}

// A path that has got another source is not away any more: that the first returns is no news of it.
func TestReturnOfASourceThatAPathHasLeft(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Host.Addrs = parseAddrs("10.0.0.1 10.0.0.2")
	l.Dial(&assoc.Config{LocalAddrs: l.Host.Addrs, HeartbeatInterval: time.Hour}, netip.AddrPort{}, l.Peer)
	l.ReadInit()
	l.Send(l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie")))
	l.Send(l.Tag, wire.AppendCookieAck(nil))
	first := l.A.PathStats(0).Local
	usable := parseAddrs("10.0.0.2")
	if first.Addr() == usable[0] {
		usable = parseAddrs("10.0.0.1")
	}
	l.A.UsableFrom(l.Now, usable)
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{[]byte("x")}}))
	l.Flush()
	for l.A.PathStats(0).Local == first {
		l.Wait(l.A.NextTimeout().Sub(l.Now))
	}
	check.Equal(t, "the source now", l.A.PathStats(0).Local.Addr(), usable[0])
	l.Flush()
	l.A.UsableFrom(l.Now, l.Host.Addrs)
	l.Expect(l.Flush(), "")
}
