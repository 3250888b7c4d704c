package assoc_test

import (
	"errors"
	"net/netip"
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

func TestProtocolUnreachable(t *testing.T) {
	quote := func(tag uint32, chunks ...[]byte) func(*sctptest.Lab) []byte {
		return func(*sctptest.Lab) []byte { return sctptest.Packet(sctptest.PortB, sctptest.PortA, tag, chunks...) }
	}
	for _, row := range []struct {
		name  string
		lab   func(*testing.T) *sctptest.Lab
		quote func(*sctptest.Lab) []byte
		ends  bool
	}{
		// req 9260-12.4-1
		{"established, 8 octets with the peer's tag, silent for an RTO: ends", func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) },
			func(l *sctptest.Lab) []byte {
				l.Now = l.Now.Add(3 * time.Second)
				return sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag)[:8]
			}, true},
		{"established, the peer was heard just now: ignored", func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) },
			func(l *sctptest.Lab) []byte { return sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag) }, false},
		{"established, in answer to what T3-rtx sent again: ends", func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) },
			func(l *sctptest.Lab) []byte {
				if err := l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{{1}}}); err != nil {
					l.Fatal(err)
				}
				l.Flush()
				l.Now = l.A.NextTimeout()
				l.A.HandleTimeout(l.Now)
				if p := l.Flush(); len(p) != 1 || !sctptest.Has(p[0], wire.ChunkData) {
					l.Fatalf("sent %v after T3-rtx", p)
				}
				return sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag)
			}, true},
		// req 9260-10-6
		{"established, another tag: ignored", func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) },
			func(l *sctptest.Lab) []byte {
				l.Now = l.Now.Add(3 * time.Second)
				return sctptest.Packet(sctptest.PortB, sctptest.PortA, 0xbad)
			}, false},
		{"established, 7 octets: ignored", func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) },
			func(l *sctptest.Lab) []byte { return sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag)[:7] },
			false},
		// req 9260-10-4
		{"established, other ports: ignored", func(t *testing.T) *sctptest.Lab { return sctptest.Passive(t, nil) },
			func(l *sctptest.Lab) []byte { return sctptest.Packet(sctptest.PortB, sctptest.PortA+1, l.PeerTag) },
			false},
		// req 9260-10-7
		{"COOKIE-WAIT, the own INIT: ends", func(t *testing.T) *sctptest.Lab { return sctptest.Active(t, nil) },
			func(l *sctptest.Lab) []byte {
				return sctptest.Packet(sctptest.PortB, sctptest.PortA, 0, sctptest.InitChunk(l.Tag, 1))[:20]
			}, true},
		{"COOKIE-WAIT, an INIT with another tag: ignored", func(t *testing.T) *sctptest.Lab { return sctptest.Active(t, nil) },
			quote(0, sctptest.InitChunk(0xbad, 1)), false},
		{"COOKIE-WAIT, tag 0 and too short to tell: ignored", func(t *testing.T) *sctptest.Lab { return sctptest.Active(t, nil) },
			func(l *sctptest.Lab) []byte {
				return sctptest.Packet(sctptest.PortB, sctptest.PortA, 0, sctptest.InitChunk(l.Tag, 1))[:19]
			}, false},
		{"COOKIE-WAIT, tag 0 and no INIT: ignored", func(t *testing.T) *sctptest.Lab { return sctptest.Active(t, nil) },
			quote(0, make([]byte, 20)), false},
		{"ESTABLISHED, the own INIT: ignored", func(t *testing.T) *sctptest.Lab { return sctptest.Established(t, nil) },
			func(l *sctptest.Lab) []byte {
				return sctptest.Packet(sctptest.PortB, sctptest.PortA, 0, sctptest.InitChunk(l.Tag, 1))
			}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := row.lab(t)
			state := l.A.State()
			l.Report(rawio.KindProtoUnreachable, 0, row.quote(l))
			if !row.ends {
				l.InState(state)
				return
			}
			l.InState(assoc.Closed)
			err, _ := l.Host.DownErr()
			check.That(t, errors.Is(err, assoc.ErrProtoUnreachable) && errors.Is(err, syscall.ECONNREFUSED),
				"ended by %v", err)
		})
	}
}

func TestPacketTooBigLowersThePathMTU(t *testing.T) {
	l := sctptest.Passive(t, nil)
	before := l.A.MaxPayload()
	l.Report(rawio.KindPacketTooBig, 1000, sctptest.Packet(sctptest.PortB, sctptest.PortA, 0xbad))
	must.Equal(t, "MaxPayload after a report with a wrong tag", l.A.MaxPayload(), before)
	l.Report(rawio.KindPacketTooBig, 1000, sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag)) // req 9260-10-8
	must.Equal(t, "MTU, 1000 less the IPv4 header", l.A.PathStats(0).MaxPacket, 980)
	e, ok := l.Host.Event(assoc.EventMTUChanged)
	check.That(t, ok && e.Path == l.Peer && l.A.MaxPayload() == before-(sctptest.MTU-980),
		"event %+v %v, MaxPayload %d", e, ok, l.A.MaxPayload())
	l.Report(rawio.KindPacketTooBig, 1400, sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag))
	check.Equal(t, "MTU after a report of a larger one", l.A.PathStats(0).MaxPacket, 980)
	l.Report(rawio.KindPacketTooBig, 68, sctptest.Packet(sctptest.PortB, sctptest.PortA, l.PeerTag))
	check.Equal(t, "MTU after a hostile report", l.A.PathStats(0).MaxPacket, rawio.MinMTU-20)
	must.OK(t, l.A.Send(l.Now, &assoc.Message{Body: [2][]byte{make([]byte, 3000)}}))
	for _, p := range l.Flush() {
		// req 9260-6.10-1
		check.That(t, len(p) <= rawio.MinMTU-20 && sctptest.Has(p, wire.ChunkData), "packet of %d octets", len(p))
	}
}

// Where this host has no way to an address of the peer's the INIT goes to the next one, and the
// last ends the setup. What refused a packet that went elsewhere, or one of an association that is
// set up, changes nothing.
func TestInitGoesWhereThereIsAWay(t *testing.T) {
	w := sctptest.NewMulti(t, 2)
	a := w.Connect(&assoc.Config{LocalAddrs: w.Addrs[0]}, w.Addrs[1]...)
	for _, step := range []struct {
		name  string
		addr  netip.Addr
		again bool
		inits [2]int // to both addresses
		state assoc.State
	}{
		{"a stranger's address", netip.MustParseAddr("192.0.2.77"), false, [2]int{1, 0}, assoc.CookieWait},
		{"one that it did not go to", w.Addrs[1][1], false, [2]int{1, 0}, assoc.CookieWait},
		{"the one that it went to, as an IPv6 address", netip.AddrFrom16(w.Addrs[1][0].As16()), true, [2]int{1, 1}, assoc.CookieWait},
		{"that one again", w.Addrs[1][0], false, [2]int{1, 1}, assoc.CookieWait},
		{"the last one", w.Addrs[1][1], false, [2]int{1, 1}, assoc.Closed},
	} {
		again := a.HandleUnroutable(w.Now, &rawio.Packet{Remote: netip.AddrPortFrom(step.addr, 0)},
			syscall.EHOSTUNREACH)
		w.Run(time.Millisecond)
		inits := [2]int{len(w.Seen(w.Addrs[1][0], wire.ChunkInit, 0)), len(w.Seen(w.Addrs[1][1], wire.ChunkInit, 0))}
		check.That(t, again == step.again && inits == step.inits && a.State() == step.state,
			"%s: again %v, INITs %v, %v", step.name, again, inits, a.State())
	}
	w = sctptest.NewMulti(t, 1)
	a, _ = w.Associate(assoc.Config{}, assoc.Config{})
	again := a.HandleUnroutable(w.Now, &rawio.Packet{Remote: netip.AddrPortFrom(w.Addrs[1][0], 0)},
		syscall.EHOSTUNREACH)
	check.That(t, !again && a.State() == assoc.Established, "once it is set up: again %v, %v", again, a.State())
}

// An address that there is no way to, and a lost INIT to another one: that one is tried again, as
// often as INITs may be. So it is with more addresses, in any order.
func TestAnUnroutableAddressAndALostInitEndNoSetup(t *testing.T) {
	for _, row := range []struct {
		name string
		down []int // networks without a way
		n    int   // of networks
		lost int   // INITs
		in   time.Duration
	}{
		{"the first of two", []int{0}, 2, 1, time.Second},
		{"the second of two", []int{1}, 2, 1, time.Second},
		{"the first of two, and five INITs are lost", []int{0}, 2, 5, 31 * time.Second},
		{"two of three", []int{0, 2}, 3, 2, 3 * time.Second},
		{"the last two of three", []int{1, 2}, 3, 1, time.Second},
	} {
		w := sctptest.NewMulti(t, row.n)
		w.Listen(&assoc.Config{LocalAddrs: w.Addrs[1]})
		w.Filter = sctptest.Lose(wire.ChunkInit, row.lost)
		for _, k := range row.down {
			w.Hosts[0].Down = append(w.Hosts[0].Down, w.Addrs[0][k])
		}
		begun := w.Now
		a := w.Connect(&assoc.Config{LocalAddrs: w.Addrs[0]}, w.Addrs[1]...)
		w.RunUntil(w.Now.Add(time.Hour), func() bool {
			return a.State() == assoc.Established || a.State() == assoc.Closed
		})
		took, err := w.Now.Sub(begun), error(nil)
		if a.State() == assoc.Closed {
			err, _ = w.Hosts[0].DownErr()
		}
		check.That(t, a.State() == assoc.Established && took <= row.in+4*sctptest.RoundTrip, "%s: %v after %v: %v",
			row.name, a.State(), took, err)
	}
}
