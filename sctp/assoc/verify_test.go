package assoc_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

var (
	second = netip.MustParseAddrPort("10.0.0.10:0")
	third  = netip.MustParseAddrPort("10.0.0.11:0")
)

// listingLab has an association whose peer lists further addresses.
func listingLab(t *testing.T, cfg *assoc.Config, more ...netip.AddrPort) (l *lab, out []posted) {
	t.Helper()
	l = bareLab(t)
	l.listen(cfg)
	var params [][]byte
	for _, m := range more {
		params = append(params, wire.AppendAddressParam(nil, m.Addr()))
	}
	l.initiate(params...)
	return l, l.post(l.peer, l.tag, wire.AppendCookieEcho(nil, l.cookie))
}

// until lets time pass and hands each packet to see.
func (l *lab) until(end rawio.Time, see func(posted)) {
	for l.a.State() != assoc.Closed {
		for _, p := range l.collect() {
			see(p)
		}
		next := l.a.NextTimeout()
		if next > end {
			break
		}
		l.now = max(l.now, next)
		l.a.HandleTimeout(l.now)
	}
	l.now = max(l.now, end)
}

// to returns what is for an address.
func to(addr netip.AddrPort, out []posted) (list []wire.Packet) {
	for _, p := range out {
		if p.to == addr {
			list = append(list, p.pkt)
		}
	}
	return list
}

func TestUnconfirmedAddressGetsProbesOnly(t *testing.T) {
	// The peer lists two addresses that are not its own; nobody answers there.
	l, out := listingLab(t, &assoc.Config{AssocMaxRetrans: 3, HeartbeatInterval: 20 * time.Second}, second, third)
	start := l.now
	var probes [2][]time.Duration
	answered := true // the peer's real address does
	see := func(p posted) {
		types := chunkTypes(p.pkt)
		for i, spoofed := range []netip.AddrPort{second, third} {
			if p.to != spoofed {
				continue
			}
			if !slices.Equal(types, []wire.ChunkType{wire.ChunkHeartbeat}) { // req 9260-5.4-8
				t.Fatalf("%v to an unconfirmed address", types)
			}
			probes[i] = append(probes[i], l.now.Sub(start))
		}
		if d := chunkOf(p.pkt, wire.ChunkData); p.to == l.peer && d != nil && answered {
			data, _ := wire.AsData(d)
			l.deliver(l.peer, packet(portA, portB, l.tag, l.sack(data.TSN())))
		}
		if b := chunkOf(p.pkt, wire.ChunkHeartbeat); p.to == l.peer && b != nil && answered {
			l.deliver(l.peer, packet(portA, portB, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
		}
	}
	for _, p := range out {
		see(p)
	}
	for range 100 {
		m := assoc.Message{Body: [2][]byte{make([]byte, 3000)}}
		if err := l.a.Send(l.now, &m); err != nil {
			t.Fatal(err)
		}
		l.until(l.now.Add(3*time.Second), see)
	}
	l.inState(assoc.Established) // req 9260-5.4-5: six unanswered probes each, and three errors are the limit
	for i, p := range probes {
		// One each RTO, which doubles, while fewer than Path.Max.Retrans errors; then at HB.interval and RTO.
		// req 9260-5.4-3, 9260-5.4-4
		if n := len(p); n < 8 || n > 12 {
			t.Errorf("address %d: probes at %v", i, p)
		}
		if s := pathTo(t, l.a, []netip.AddrPort{second, third}[i].Addr()); s.State != assoc.PathUnconfirmed || s.Errors < 6 {
			t.Errorf("%+v", s)
		}
	}
	// The real address fails: there is nowhere else to go.
	answered = false
	m := assoc.Message{Body: [2][]byte{make([]byte, 3000)}}
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	l.until(l.now.Add(time.Hour), see)
	l.collect()
	if err, ok := l.h.downErr(); !ok || !errors.Is(err, assoc.ErrTimeout) {
		t.Errorf("ended by %v", err)
	}
}

func TestConfirmation(t *testing.T) {
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
			out = append(out, l.collect()...)
			l.now = max(l.now, l.a.NextTimeout())
			l.a.HandleTimeout(l.now)
			out = append(out, l.collect()...)
			probes := to(second, out)
			if len(probes) != 1 {
				t.Fatalf("sent %v", text(out))
			}
			value := slices.Clone(chunkOf(probes[0], wire.ChunkHeartbeat).Value())
			row.spoil(value[4:])
			l.now = l.now.Add(70 * time.Millisecond)
			l.deliver(row.from, packet(portA, portB, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, value)))
			l.collect()
			s := pathTo(t, l.a, second.Addr())
			e, up := l.h.event(assoc.EventPathUp)
			if (s.State == assoc.PathActive) != row.ok || up != row.ok || up && e.Path != second { // req 9260-5.4-7
				t.Errorf("%+v, event %v %+v", s, up, e)
			}
			if row.ok && s.SRTT != 70*time.Millisecond { // req 9260-8.3-7
				t.Errorf("SRTT %v", s.SRTT)
			}
		})
	}
}

func TestProbesAreSpread(t *testing.T) {
	// Seven addresses, of which the last in the list is the only real one: the others must not starve it.
	var list []netip.AddrPort
	for i := range 7 {
		list = append(list, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(20 + i)}), 0))
	}
	real := list[6]
	for _, burst := range []int{1, 3} {
		l, out := listingLab(t, &assoc.Config{HBMaxBurst: burst, HeartbeatInterval: time.Hour}, list...)
		start := l.now
		count := map[rawio.Time]int{} // HEARTBEATs by second, which is the RTO
		confirmed := rawio.Never
		see := func(p posted) {
			b := chunkOf(p.pkt, wire.ChunkHeartbeat)
			if b == nil {
				return
			}
			count[rawio.Time(l.now.Sub(start)/time.Second)]++
			if p.to == real {
				l.deliver(real, packet(portA, portB, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
				confirmed = min(confirmed, l.now)
			}
		}
		for _, p := range out {
			see(p)
		}
		l.until(start.Add(20*time.Second), see)
		for s, n := range count {
			if n > burst { // req 9260-5.4-6, 9260-8.3-9
				t.Errorf("HB.Max.Burst %d: %d HEARTBEATs in second %d", burst, n, s)
			}
		}
		if most := time.Duration((7+burst-1)/burst) * time.Second; confirmed.Sub(start) > most {
			t.Errorf("HB.Max.Burst %d: confirmed after %v, at most %v expected", burst, confirmed.Sub(start), most)
		}
	}
}

func TestWhatComesFromAnUnconfirmedAddressIsAnsweredElsewhere(t *testing.T) {
	for _, row := range []struct {
		name   string
		chunks func(l *lab) [][]byte
		want   wire.ChunkType
	}{
		{"DATA", func(l *lab) [][]byte { return [][]byte{l.data("x")} }, wire.ChunkSack},
		{"an unknown chunk", func(*lab) [][]byte { return [][]byte{wire.AppendChunk(nil, 0xc7, 0, nil)} }, wire.ChunkError},
		{"COOKIE ECHO again", func(l *lab) [][]byte { return [][]byte{wire.AppendCookieEcho(nil, l.cookie)} }, wire.ChunkCookieAck},
		{"SHUTDOWN", func(l *lab) [][]byte { return [][]byte{wire.AppendShutdown(nil, l.hostTSN-1)} }, wire.ChunkShutdownAck},
		{"DATA without user data", func(l *lab) [][]byte {
			return [][]byte{wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE, TSN: l.tsn})}
		}, wire.ChunkAbort},
	} {
		t.Run(row.name, func(t *testing.T) {
			l, _ := listingLab(t, nil, second)
			out := l.post(second, l.tag, row.chunks(l)...)
			for _, p := range to(second, out) {
				if types := chunkTypes(p); !slices.Equal(types, []wire.ChunkType{wire.ChunkHeartbeat}) { // req 9260-5.4-8
					t.Errorf("%v to an unconfirmed address", types)
				}
			}
			if !slices.ContainsFunc(to(l.peer, out), func(p wire.Packet) bool { return has(p, row.want) }) {
				t.Errorf("no %v: %v", row.want, text(out))
			}
		})
	}
	t.Run("SHUTDOWN ACK", func(t *testing.T) {
		l, _ := listingLab(t, nil, second)
		if err := l.a.Shutdown(l.now); err != nil {
			t.Fatal(err)
		}
		l.collect()
		out := l.post(second, l.tag, wire.AppendShutdownAck(nil))
		if len(to(second, out)) != 0 || !has(to(l.peer, out)[0], wire.ChunkShutdownComplete) {
			t.Error(text(out))
		}
	})
	t.Run("HEARTBEAT is answered there", func(t *testing.T) {
		l, _ := listingLab(t, nil, second)
		if out := to(second, l.post(second, l.tag, wire.AppendHeartbeat(nil, []byte("x")))); !slices.ContainsFunc(out, func(p wire.Packet) bool { return has(p, wire.ChunkHeartbeatAck) }) {
			t.Error("no HEARTBEAT ACK")
		}
	})
}

// confirm answers the probe of an address.
func (l *lab) confirm(t *testing.T, addr netip.AddrPort) {
	t.Helper()
	done := false
	l.until(l.now.Add(10*time.Second), func(p posted) {
		if b := chunkOf(p.pkt, wire.ChunkHeartbeat); b != nil {
			l.deliver(p.to, packet(portA, portB, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
			done = done || p.to == addr
		}
	})
	if !done || pathTo(t, l.a, addr.Addr()).State != assoc.PathActive {
		t.Fatal("not confirmed")
	}
}

func TestSackGoesBackWhereDataCameFrom(t *testing.T) {
	l, _ := listingLab(t, &assoc.Config{HeartbeatInterval: -1}, second)
	l.confirm(t, second)
	sackTo := func(out []posted) (dest []netip.AddrPort) {
		for _, p := range out {
			if has(p.pkt, wire.ChunkSack) {
				dest = append(dest, p.to)
			}
		}
		return dest
	}
	l.post(l.peer, l.tag, l.data("the first is acknowledged at once"))
	for _, from := range []netip.AddrPort{l.peer, second, second, l.peer} {
		l.post(from, l.tag, l.data("x"))
		out := l.post(from, l.tag, l.data("y"))                             // the second packet: at once
		if got := sackTo(out); !slices.Equal(got, []netip.AddrPort{from}) { // req 9260-6.4-3, 9260-6.4-2
			t.Errorf("DATA from %v: SACK to %v", from, got)
		}
	}
	// Own DATA on the primary path does not take along the SACK for the other.
	l.post(second, l.tag, l.data("x"))
	m := assoc.Message{Body: [2][]byte{make([]byte, 100)}}
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	out := l.collect()
	if len(out) != 1 || out[0].to != l.peer || has(out[0].pkt, wire.ChunkSack) {
		t.Error(text(out))
	}
	l.post(second, l.tag, l.data("x"))
	// Duplicates: the SACKs seem to get lost, and take turns. req 9260-6.4-4
	dup := dataChunk(l.tsn-1, 0, 0, "x")
	for i, want := range []netip.AddrPort{l.peer, second, l.peer} {
		if got := sackTo(l.post(second, l.tag, dup)); !slices.Equal(got, []netip.AddrPort{want}) {
			t.Errorf("duplicate %d from the second address: SACK to %v, want %v", i+1, got, want)
		}
	}
	l.post(second, l.tag, l.data("x"))
	if got := sackTo(l.post(second, l.tag, l.data("x"))); !slices.Equal(got, []netip.AddrPort{second}) {
		t.Errorf("then SACK to %v", got)
	}
}

// Answers leave from the own address that was asked, whatever the path's is.
func TestAnswersLeaveFromTheAddressThatWasAsked(t *testing.T) {
	l := bareLab(t)
	l.listen(&assoc.Config{LocalAddrs: addrs("10.0.0.1 10.0.0.2"), HeartbeatInterval: -1})
	l.shake()
	first := l.h.addr
	l.h.addr = netip.MustParseAddrPort("10.0.0.2:0")
	l.deliver(l.peer, packet(portA, portB, l.tag, wire.AppendHeartbeat(nil, []byte("x"))))
	l.deliver(l.peer, packet(portA, portB, l.tag, l.data("1")))
	l.deliver(l.peer, packet(portA, portB, l.tag, l.data("2")))
	m := assoc.Message{Body: [2][]byte{make([]byte, 100)}}
	if err := l.a.Send(l.now, &m); err != nil {
		t.Fatal(err)
	}
	from := map[wire.ChunkType]netip.AddrPort{}
	for more := true; more; {
		more = l.a.PollTransmit(l.now, l.h.batch)
		for _, p := range l.h.batch.Pkts {
			for _, c := range chunkTypes(slices.Concat(p.Vec...)) {
				from[c] = p.Local
			}
		}
		l.h.batch.Reset()
	}
	want := map[wire.ChunkType]netip.AddrPort{wire.ChunkHeartbeatAck: l.h.addr, wire.ChunkSack: l.h.addr, wire.ChunkData: first}
	for c, addr := range want {
		if from[c] != addr {
			t.Errorf("%v from %v, want %v", c, from[c], addr)
		}
	}
}

func TestHeartbeatsOfOnePathCanBeSetAndAskedFor(t *testing.T) {
	// req 9260-8.3-4, 9260-11.1-9
	l, _ := listingLab(t, &assoc.Config{HeartbeatInterval: 30 * time.Second}, second)
	l.confirm(t, second)
	stranger := netip.MustParseAddr("10.0.0.99")
	if err := l.a.SetHeartbeat(l.now, stranger, time.Second); !errors.Is(err, assoc.ErrNoPath) {
		t.Error(err)
	}
	if err := l.a.RequestHeartbeat(l.now, stranger); !errors.Is(err, assoc.ErrNoPath) {
		t.Error(err)
	}
	count := func(d time.Duration) (n [2]int) {
		l.until(l.now.Add(d), func(p posted) {
			if b := chunkOf(p.pkt, wire.ChunkHeartbeat); b != nil {
				l.deliver(p.to, packet(portA, portB, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value())))
				if p.to == second {
					n[1]++
				} else {
					n[0]++
				}
			}
		})
		return n
	}
	if err := l.a.SetHeartbeat(l.now, second.Addr(), -1); err != nil {
		t.Fatal(err)
	}
	if n := count(5 * time.Minute); n[0] < 9 || n[1] != 0 {
		t.Errorf("disabled on one path: %d HEARTBEATs", n)
	}
	if err := l.a.SetHeartbeat(l.now, second.Addr(), 4*time.Second); err != nil {
		t.Fatal(err)
	}
	if n := count(5 * time.Minute); n[0] < 9 || n[0] > 10 || n[1] < 50 || n[1] > 66 {
		t.Errorf("faster on one path: %d HEARTBEATs", n)
	}
	if err := l.a.RequestHeartbeat(l.now, l.peer.Addr()); err != nil {
		t.Fatal(err)
	}
	out := l.collect()
	if len(out) != 1 || out[0].to != l.peer || !has(out[0].pkt, wire.ChunkHeartbeat) {
		t.Errorf("on demand: %v", text(out))
	}
	a := activeLab(t, nil)
	if err := a.a.RequestHeartbeat(a.now, a.peer.Addr()); !errors.Is(err, assoc.ErrNotUp) {
		t.Error(err)
	}
	a.a.Abort(a.now, nil)
	if err := a.a.RequestHeartbeat(a.now, a.peer.Addr()); !errors.Is(err, assoc.ErrClosing) {
		t.Error(err)
	}
}

// info returns the nonce of a HEARTBEAT.
func nonce(pkt wire.Packet) uint64 {
	h, _ := wire.AsHeartbeat(chunkOf(pkt, wire.ChunkHeartbeat))
	return binary.BigEndian.Uint64(h.Info())
}

func TestAnswerToAnOlderProbeConfirmsNothing(t *testing.T) {
	l, out := listingLab(t, nil, second)
	var probes []wire.Packet
	see := func(p posted) {
		if p.to == second {
			probes = append(probes, p.pkt)
		}
	}
	for _, p := range out {
		see(p)
	}
	l.until(l.now.Add(1500*time.Millisecond), see)
	if len(probes) != 2 || nonce(probes[0]) == nonce(probes[1]) {
		t.Fatalf("%d probes", len(probes))
	}
	value := chunkOf(probes[0], wire.ChunkHeartbeat).Value()
	l.deliver(second, packet(portA, portB, l.tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, value)))
	if pathTo(t, l.a, second.Addr()).State != assoc.PathUnconfirmed {
		t.Error("confirmed")
	}
}
