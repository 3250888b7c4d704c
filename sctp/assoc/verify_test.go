package assoc_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

var (
	second = netip.MustParseAddrPort("10.0.0.10:0")
	third  = netip.MustParseAddrPort("10.0.0.11:0")
)

// listingLab has an association whose peer lists further addresses.
func listingLab(t *testing.T, cfg *assoc.Config, more ...netip.AddrPort) (l *sctptest.Lab, out []sctptest.SentPacket) {
	t.Helper()
	l = sctptest.NewLab(t)
	l.Listen(cfg)
	var params [][]byte
	for _, m := range more {
		params = append(params, wire.AppendAddressParam(nil, m.Addr()))
	}
	l.Initiate(params...)
	return l, l.Post(l.Peer, l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
}

// sentTo returns what is for an address.
func sentTo(addr netip.AddrPort, out []sctptest.SentPacket) (list []wire.Packet) {
	for _, p := range out {
		if p.To == addr {
			list = append(list, p.Pkt)
		}
	}
	return list
}

func TestUnconfirmedAddressGetsProbesOnly(t *testing.T) {
	// The peer lists two addresses that are not its own; nobody answers there.
	l, out := listingLab(t, &assoc.Config{AssocMaxRetrans: 3, HeartbeatInterval: 20 * time.Second}, second, third)
	start := l.Now
	var probes [2][]time.Duration
	answered := true // the peer's real address does
	see := func(p sctptest.SentPacket) {
		types := sctptest.ChunkTypes(p.Pkt)
		for i, spoofed := range []netip.AddrPort{second, third} {
			if p.To != spoofed {
				continue
			}
			// req 9260-5.4-8
			must.That(t, slices.Equal(types, []wire.ChunkType{wire.ChunkHeartbeat}), "%v to an unconfirmed address",
				types)
			probes[i] = append(probes[i], l.Now.Sub(start))
		}
		if d := sctptest.ChunkOf(p.Pkt, wire.ChunkData); p.To == l.Peer && d != nil && answered {
			data, _ := wire.AsData(d)
			l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Sack(data.TSN())))
		}
		if b := sctptest.ChunkOf(p.Pkt, wire.ChunkHeartbeat); p.To == l.Peer && b != nil && answered {
			l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
				wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
		}
	}
	for _, p := range out {
		see(p)
	}
	for range 100 {
		m := assoc.Message{Body: [2][]byte{make([]byte, 3000)}}
		must.OK(t, l.A.Send(l.Now, &m))
		l.Until(l.Now.Add(3*time.Second), see)
	}
	l.InState(assoc.Established) // req 9260-5.4-5: six unanswered probes each, and three errors are the limit
	for i, p := range probes {
		// One each RTO, which doubles, while fewer than Path.Max.Retrans errors; then at
		// HB.interval and RTO. req 9260-5.4-3, 9260-5.4-4
		check.That(t, len(p) >= 8 && len(p) <= 12, "address %d: probes at %v", i, p)
		s := sctptest.PathTo(t, l.A, []netip.AddrPort{second, third}[i].Addr())
		check.That(t, s.State == assoc.PathUnconfirmed && s.Errors >= 6, "%+v", s)
	}
	// The real address fails: there is nowhere else to go.
	answered = false
	m := assoc.Message{Body: [2][]byte{make([]byte, 3000)}}
	must.OK(t, l.A.Send(l.Now, &m))
	l.Until(l.Now.Add(time.Hour), see)
	l.Collect()
	err, ok := l.Host.DownErr()
	check.That(t, ok && errors.Is(err, assoc.ErrTimeout), "ended by %v", err)
}

func TestOnlyTheNonceConfirmsAnAddress(t *testing.T) {
	other := second.Addr().As16()
	copy(other[:], netip.MustParseAddr("::ffff:10.0.0.9").AsSlice())
	for _, row := range []struct {
		name  string
		spoil func(info []byte)
		from  netip.AddrPort
		ok    bool
	}{
		{"the answer to the probe", func([]byte) {}, second, true},
		{"the answer by another way", func([]byte) {}, netip.MustParseAddrPort("10.0.0.9:0"), true},
		{"a wrong nonce", func(b []byte) { b[7] ^= 1 }, second, false}, // req 9260-5.4-2
		{"the address of another path", func(b []byte) { copy(b[16:], other[:]) }, second, false},
		{"an address of nobody", func(b []byte) { b[31] ^= 0x80 }, second, false},
		{"from an address of nobody", func([]byte) {}, netip.MustParseAddrPort("10.0.0.77:0"), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, out := listingLab(t, nil, second)
			out = append(out, l.Collect()...)
			l.Now = max(l.Now, l.A.NextTimeout())
			l.A.HandleTimeout(l.Now)
			out = append(out, l.Collect()...)
			probes := sentTo(second, out)
			must.That(t, len(probes) == 1, "sent %v", sctptest.Text(out))
			value := slices.Clone(sctptest.ChunkOf(probes[0], wire.ChunkHeartbeat).Value())
			row.spoil(value[4:])
			l.Now = l.Now.Add(70 * time.Millisecond)
			l.Deliver(row.from, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
				wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, value)))
			l.Collect()
			s := sctptest.PathTo(t, l.A, second.Addr())
			e, up := l.Host.Event(assoc.EventPathUp)
			// req 9260-5.4-7
			check.That(t, (s.State == assoc.PathActive) == row.ok && up == row.ok && (!up || e.Path == second),
				"%+v, event %v %+v", s, up, e)
			// req 9260-8.3-7
			check.That(t, !row.ok || s.SRTT == 70*time.Millisecond, "SRTT %v", s.SRTT)
		})
	}
}

func TestProbesAreSpread(t *testing.T) {
	// Seven addresses, of which the last in the list is the only real one: the others must not
	// starve it.
	var list []netip.AddrPort
	for i := range 7 {
		list = append(list, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)}), 0))
	}
	real := list[6]
	for _, burst := range []int{1, 3} {
		l, out := listingLab(t, &assoc.Config{HBMaxBurst: burst, HeartbeatInterval: time.Hour}, list...)
		start := l.Now
		count := map[rawio.Time]int{} // HEARTBEATs by second, which is the RTO
		confirmed := rawio.Never
		see := func(p sctptest.SentPacket) {
			b := sctptest.ChunkOf(p.Pkt, wire.ChunkHeartbeat)
			if b == nil {
				return
			}
			count[rawio.Time(l.Now.Sub(start)/time.Second)]++
			if p.To == real {
				l.Deliver(real, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
					wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
				confirmed = min(confirmed, l.Now)
			}
		}
		for _, p := range out {
			see(p)
		}
		l.Until(start.Add(20*time.Second), see)
		for s, n := range count {
			// req 9260-5.4-6, 9260-8.3-9
			check.That(t, n <= burst, "HB.Max.Burst %d: %d HEARTBEATs in second %d", burst, n, s)
		}
		most := time.Duration((7+burst-1)/burst) * time.Second
		check.That(t, confirmed.Sub(start) <= most, "HB.Max.Burst %d: confirmed after %v, at most %v expected", burst,
			confirmed.Sub(start), most)
	}
}

func TestWhatComesFromAnUnconfirmedAddressIsAnsweredElsewhere(t *testing.T) {
	for _, row := range []struct {
		name   string
		chunks func(l *sctptest.Lab) [][]byte
		want   wire.ChunkType
	}{
		{"DATA", func(l *sctptest.Lab) [][]byte { return [][]byte{l.Data("x")} }, wire.ChunkSack},
		{"an unknown chunk", func(*sctptest.Lab) [][]byte { return [][]byte{wire.AppendChunk(nil, 0xc7, 0, nil)} }, wire.ChunkError},
		{"COOKIE ECHO again", func(l *sctptest.Lab) [][]byte { return [][]byte{wire.AppendCookieEcho(nil, l.Cookie)} }, wire.ChunkCookieAck},
		{"SHUTDOWN", func(l *sctptest.Lab) [][]byte { return [][]byte{wire.AppendShutdown(nil, l.HostTSN-1)} }, wire.ChunkShutdownAck},
		{"DATA without user data", func(l *sctptest.Lab) [][]byte {
			return [][]byte{wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE, TSN: l.TSN})}
		}, wire.ChunkAbort},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, _ := listingLab(t, nil, second)
			out := l.Post(second, l.Tag, row.chunks(l)...)
			for _, p := range sentTo(second, out) {
				types := sctptest.ChunkTypes(p)
				// req 9260-5.4-8
				check.That(t, slices.Equal(types, []wire.ChunkType{wire.ChunkHeartbeat}),
					"%v to an unconfirmed address", types)
			}
			check.That(t, slices.ContainsFunc(sentTo(l.Peer, out), func(p wire.Packet) bool {
				return sctptest.Has(p, row.want)
			}),
				"no %v: %v", row.want, sctptest.Text(out))
		})
	}
	t.Run("SHUTDOWN ACK", func(t *testing.T) {
		l, _ := listingLab(t, nil, second)
		must.OK(t, l.A.Shutdown(l.Now))
		l.Collect()
		out := l.Post(second, l.Tag, wire.AppendShutdownAck(nil))
		check.That(t, len(sentTo(second, out)) == 0 &&
			sctptest.Has(sentTo(l.Peer, out)[0], wire.ChunkShutdownComplete), "%v",
			sctptest.Text(out))
	})
	t.Run("HEARTBEAT is answered there", func(t *testing.T) {
		l, _ := listingLab(t, nil, second)
		out := sentTo(second, l.Post(second, l.Tag, wire.AppendHeartbeat(nil, []byte("x"))))
		check.That(t, slices.ContainsFunc(out,
			func(p wire.Packet) bool { return sctptest.Has(p, wire.ChunkHeartbeatAck) }), "no HEARTBEAT ACK")
	})
}

func TestSackGoesBackWhereDataCameFrom(t *testing.T) {
	l, _ := listingLab(t, &assoc.Config{HeartbeatInterval: -1}, second)
	l.Confirm(second)
	sackTo := func(out []sctptest.SentPacket) (dest []netip.AddrPort) {
		for _, p := range out {
			if sctptest.Has(p.Pkt, wire.ChunkSack) {
				dest = append(dest, p.To)
			}
		}
		return dest
	}
	l.Post(l.Peer, l.Tag, l.Data("the first is acknowledged at once"))
	for _, from := range []netip.AddrPort{l.Peer, second, second, l.Peer} {
		l.Post(from, l.Tag, l.Data("x"))
		out := l.Post(from, l.Tag, l.Data("y")) // the second packet: at once
		got := sackTo(out)
		// req 9260-6.4-3, 9260-6.4-2
		check.That(t, slices.Equal(got, []netip.AddrPort{from}), "DATA from %v: SACK to %v", from, got)
	}
	// Own DATA on the primary path does not take along the SACK for the other.
	l.Post(second, l.Tag, l.Data("x"))
	m := assoc.Message{Body: [2][]byte{make([]byte, 100)}}
	must.OK(t, l.A.Send(l.Now, &m))
	out := l.Collect()
	check.That(t, len(out) == 1 && out[0].To == l.Peer && !sctptest.Has(out[0].Pkt, wire.ChunkSack), "%v",
		sctptest.Text(out))
	l.Post(second, l.Tag, l.Data("x"))
	// Duplicates: the SACKs seem to get lost, and take turns. req 9260-6.4-4
	dup := sctptest.DataChunk(l.TSN-1, 0, 0, "x")
	for i, want := range []netip.AddrPort{l.Peer, second, l.Peer} {
		got := sackTo(l.Post(second, l.Tag, dup))
		check.That(t, slices.Equal(got, []netip.AddrPort{want}),
			"duplicate %d from the second address: SACK to %v, want %v", i+1, got, want)
	}
	l.Post(second, l.Tag, l.Data("x"))
	check.Slice(t, "where the SACK then goes", sackTo(l.Post(second, l.Tag, l.Data("x"))), []netip.AddrPort{second})
}

// Answers leave from the own address that was asked, whatever the path's is.
func TestAnswersLeaveFromTheAddressThatWasAsked(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Listen(&assoc.Config{LocalAddrs: parseAddrs("10.0.0.1 10.0.0.2"), HeartbeatInterval: -1})
	l.Handshake()
	first := l.Host.Addr
	l.Host.Addr = netip.MustParseAddrPort("10.0.0.2:0")
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendHeartbeat(nil, []byte("x"))))
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Data("1")))
	l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, l.Data("2")))
	m := assoc.Message{Body: [2][]byte{make([]byte, 100)}}
	must.OK(t, l.A.Send(l.Now, &m))
	from := map[wire.ChunkType]netip.AddrPort{}
	for more := true; more; {
		more = l.A.PollTransmit(l.Now, l.Host.Batch)
		for _, p := range l.Host.Batch.Pkts {
			for _, c := range sctptest.ChunkTypes(slices.Concat(p.Vec...)) {
				from[c] = p.Local
			}
		}
		l.Host.Batch.Reset()
	}
	want := map[wire.ChunkType]netip.AddrPort{wire.ChunkHeartbeatAck: l.Host.Addr, wire.ChunkSack: l.Host.Addr,
		wire.ChunkData: first}
	for c, addr := range want {
		check.That(t, from[c] == addr, "%v from %v, want %v", c, from[c], addr)
	}
}

func TestHeartbeatsOfOnePathCanBeSetAndAskedFor(t *testing.T) {
	// req 9260-8.3-4, 9260-11.1-9
	l, _ := listingLab(t, &assoc.Config{HeartbeatInterval: 30 * time.Second}, second)
	l.Confirm(second)
	stranger := netip.MustParseAddr("10.0.0.99")
	err := l.A.SetHeartbeat(l.Now, stranger, time.Second)
	check.That(t, errors.Is(err, assoc.ErrNoPath), "%v", err)
	err = l.A.RequestHeartbeat(l.Now, stranger)
	check.That(t, errors.Is(err, assoc.ErrNoPath), "%v", err)
	count := func(d time.Duration) (n [2]int) {
		l.Until(l.Now.Add(d), func(p sctptest.SentPacket) {
			if b := sctptest.ChunkOf(p.Pkt, wire.ChunkHeartbeat); b != nil {
				l.Deliver(p.To, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
					wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
				if p.To == second {
					n[1]++
				} else {
					n[0]++
				}
			}
		})
		return n
	}
	must.OK(t, l.A.SetHeartbeat(l.Now, second.Addr(), -1))
	n := count(5 * time.Minute)
	check.That(t, n[0] >= 9 && n[1] == 0, "disabled on one path: %d HEARTBEATs", n)
	must.OK(t, l.A.SetHeartbeat(l.Now, second.Addr(), 4*time.Second))
	n = count(5 * time.Minute)
	check.That(t, n[0] >= 9 && n[0] <= 10 && n[1] >= 50 && n[1] <= 66, "faster on one path: %d HEARTBEATs", n)
	must.OK(t, l.A.RequestHeartbeat(l.Now, l.Peer.Addr()))
	out := l.Collect()
	check.That(t, len(out) == 1 && out[0].To == l.Peer && sctptest.Has(out[0].Pkt, wire.ChunkHeartbeat),
		"on demand: %v", sctptest.Text(out))
	a := sctptest.Active(t, nil)
	err = a.A.RequestHeartbeat(a.Now, a.Peer.Addr())
	check.That(t, errors.Is(err, assoc.ErrNotUp), "%v", err)
	a.A.Abort(a.Now, nil)
	err = a.A.RequestHeartbeat(a.Now, a.Peer.Addr())
	check.That(t, errors.Is(err, assoc.ErrClosing), "%v", err)
}

// info returns the nonce of a HEARTBEAT.
func nonceOf(pkt wire.Packet) uint64 {
	h, _ := wire.AsHeartbeat(sctptest.ChunkOf(pkt, wire.ChunkHeartbeat))
	return binary.BigEndian.Uint64(h.Info())
}

// Answers may be slower than the RTO in which the next probe goes out: those to the last four
// count, each once.
func TestAnswerToAProbeOfLongAgoConfirmsNothing(t *testing.T) {
	// req 9260-5.4-2
	for age, want := range []assoc.PathState{assoc.PathActive, assoc.PathActive, assoc.PathActive, assoc.PathActive,
		assoc.PathUnconfirmed} {
		l, out := listingLab(t, nil, second)
		var probes []wire.Packet
		see := func(p sctptest.SentPacket) {
			if p.To == second {
				probes = append(probes, p.Pkt)
			}
		}
		for _, p := range out {
			see(p)
		}
		l.Until(l.Now.Add(15500*time.Millisecond), see)
		must.That(t, len(probes) == 5 && nonceOf(probes[0]) != nonceOf(probes[1]), "%d probes", len(probes))
		value := sctptest.ChunkOf(probes[4-age], wire.ChunkHeartbeat).Value()
		answer := sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
			wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, value))
		l.Deliver(second, answer)
		l.Deliver(second, answer)
		got, s := sctptest.PathTo(t, l.A, second.Addr()).State, l.A.Stats()
		check.That(t, got == want && s.HeartbeatAcksIn+s.BadHeartbeatAcks == 2 && s.BadHeartbeatAcks != 0,
			"answer to the last but %d: %v, %d answers, %d bad ones", age, got, s.HeartbeatAcksIn, s.BadHeartbeatAcks)
	}
}
