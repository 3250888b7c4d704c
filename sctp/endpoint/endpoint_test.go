package endpoint_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/endpointtest"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/endpoint"
	"github.com/rddp-go/rddp/sctp/wire"
)

const localPort, peerPort, mtu = endpointtest.LocalPort, endpointtest.PeerPort, endpointtest.MTU

var hostAddr, peerAddr, goodInit, only = endpointtest.HostAddr, endpointtest.PeerAddr, endpointtest.GoodInit,
	endpointtest.Only

func TestOutOfTheBlue(t *testing.T) {
	beat := wire.AppendHeartbeat(nil, []byte("x"))
	shutdownAck := wire.AppendShutdownAck(nil)
	stale := wire.CloseChunk(wire.AppendStaleCookieCause(wire.AppendError(nil), 1), 0)
	other := wire.CloseChunk(wire.AppendInvalidStreamCause(wire.AppendError(nil), 1), 0)
	abort := wire.AppendAbort(nil, false)
	const tag = 0x12345678
	multicast := netip.MustParseAddrPort("239.1.2.3:0")
	for _, row := range []struct {
		name          string
		remote, local netip.AddrPort
		tag           uint32
		chunks        [][]byte
		want          wire.ChunkType // of the answer; 0xff: none
	}{
		{"from a multicast address: discarded", multicast, hostAddr, tag, [][]byte{beat}, 0xff}, // req 9260-8.4-1
		{"to a multicast address: discarded", peerAddr, multicast, tag, [][]byte{beat}, 0xff},
		{"from the broadcast address: discarded", netip.MustParseAddrPort("255.255.255.255:0"), hostAddr, tag, [][]byte{beat}, 0xff},
		{"ABORT: discarded", peerAddr, hostAddr, tag, [][]byte{abort}, 0xff}, // req 9260-8.4-2
		{"ABORT behind another chunk: discarded", peerAddr, hostAddr, tag, [][]byte{beat, abort}, 0xff},
		// req 9260-8.4-6, 9260-8.4-7, 9260-8.5.1-6
		{"SHUTDOWN ACK: SHUTDOWN COMPLETE", peerAddr, hostAddr, tag, [][]byte{shutdownAck}, wire.ChunkShutdownComplete},
		// req 9260-8.4-8
		{"SHUTDOWN COMPLETE: discarded", peerAddr, hostAddr, tag, [][]byte{wire.AppendShutdownComplete(nil, true)},
			0xff},
		// req 9260-8.4-9
		{"COOKIE ACK: discarded", peerAddr, hostAddr, tag, [][]byte{wire.AppendCookieAck(nil)}, 0xff},
		{"COOKIE ACK and another ERROR: discarded", peerAddr, hostAddr, tag, [][]byte{wire.AppendCookieAck(nil), other}, 0xff},
		{"ERROR with Stale Cookie: discarded", peerAddr, hostAddr, tag, [][]byte{stale}, 0xff},
		{"ERROR with Stale Cookie behind another: discarded", peerAddr, hostAddr, tag, [][]byte{other, stale}, 0xff},
		// req 9260-8.4-10, 9260-8.4-11
		{"another ERROR: ABORT", peerAddr, hostAddr, tag, [][]byte{other}, wire.ChunkAbort},
		{"DATA: ABORT", peerAddr, hostAddr, tag, [][]byte{wire.AppendDataHeader(nil, wire.DataFields{})}, wire.ChunkAbort},
		{"an unknown chunk: ABORT", peerAddr, hostAddr, tag, [][]byte{wire.AppendChunk(nil, 0x3f, 0, nil)}, wire.ChunkAbort},
		{"COOKIE ECHO behind another chunk: ABORT", peerAddr, hostAddr, tag, [][]byte{beat, wire.AppendCookieEcho(nil, make([]byte, 200))}, wire.ChunkAbort},
		{"COOKIE ECHO with a cookie of nobody's: discarded", peerAddr, hostAddr, tag, [][]byte{wire.AppendCookieEcho(nil, make([]byte, 200))}, 0xff},
		// req 9260-8.5.1-2
		{"tag 0 without INIT: discarded", peerAddr, hostAddr, 0, [][]byte{beat}, 0xff},
		// req 9260-12.3-1
		{"INIT with a tag: discarded", peerAddr, hostAddr, tag, [][]byte{sctptest.InitLike(wire.ChunkInit, goodInit)},
			0xff},
		{"INIT with company: discarded", peerAddr, hostAddr, 0, [][]byte{sctptest.InitLike(wire.ChunkInit, goodInit), beat}, 0xff},
		{"no chunk at all: discarded", peerAddr, hostAddr, tag, nil, 0xff},
		{"to an address that the link does not tell: ABORT", peerAddr, netip.AddrPort{}, tag, [][]byte{beat}, wire.ChunkAbort},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := endpointtest.New(t, endpoint.Config{})
			must.OK(t, b.EP.Listen(localPort, nil))
			list, a := b.ReceiveFrom(row.remote, row.local,
				sctptest.Packet(peerPort, localPort, row.tag, row.chunks...))
			must.That(t, a == nil && b.EP.Len() == 0, "an association came of it")
			s := b.EP.Stats()
			check.That(t, s.OutOfBlue+s.BadAddress+s.BadCookies+s.Malformed == 1, "counted as %+v", s)
			if row.want == 0xff {
				must.That(t, len(list) == 0, "answered by %v", list)
				return
			}
			pkt, c := only(t, list)
			check.That(t, c.Type() == row.want && pkt.VTag() == row.tag && c.Flags()&wire.FlagT != 0 &&
				pkt.SrcPort() == localPort && pkt.DstPort() == peerPort, "%v, tag %#x, flags %d", c.Type(),
				pkt.VTag(), c.Flags())
			check.That(t, list[0].Remote == row.remote && list[0].Local == row.local, "sent from %v to %v",
				list[0].Local, list[0].Remote)
		})
	}
}

func TestInitIsJudged(t *testing.T) {
	with := func(change func(*wire.InitFields), params ...[]byte) []byte {
		f := goodInit
		change(&f)
		return sctptest.InitLike(wire.ChunkInit, f, params...)
	}
	same := func(*wire.InitFields) {}
	for _, row := range []struct {
		name  string
		port  uint16
		chunk []byte
		want  wire.ChunkType
		code  wire.CauseCode
	}{
		{"good: INIT ACK", localPort, with(same), wire.ChunkInitAck, 0}, // req 9260-3.3.2-3, 9260-8.4-3
		{"nobody listens: ABORT", localPort + 1, with(same), wire.ChunkAbort, 0},
		// req 9260-3.3.2-6
		{"Initiate Tag 0: discarded", localPort, with(func(f *wire.InitFields) { f.Tag = 0 }), 0xff, 0},
		// req 9260-3.3.2-8, 9260-3.3.2-9
		{"a_rwnd 1499: ABORT", localPort, with(func(f *wire.InitFields) { f.ARwnd = 1499 }), wire.ChunkAbort,
			wire.CauseInvalidParam},
		// req 9260-3.3.2-13
		{"OS 0: ABORT", localPort, with(func(f *wire.InitFields) { f.OutStreams = 0 }), wire.ChunkAbort,
			wire.CauseInvalidParam},
		{"MIS 0: ABORT", localPort, with(func(f *wire.InitFields) { f.InStreams = 0 }), wire.ChunkAbort, wire.CauseInvalidParam},
		// req 9260-3.3.2.1.4-2
		{"Host Name Address: ABORT", localPort,
			with(same, wire.AppendParam(nil, wire.ParamHostName, []byte("h\x00"))), wire.ChunkAbort,
			wire.CauseUnresolvableAddress},
		{"a parameter of length 3: ABORT", localPort, wire.AppendChunk(nil, wire.ChunkInit, 0, append(with(same)[4:], 0, 12, 0, 3)), wire.ChunkAbort, wire.CauseProtocolViolation},
		{"shorter than an INIT: discarded", localPort, wire.AppendChunk(nil, wire.ChunkInit, 0, make([]byte, 12)), 0xff, 0},
		// req 9260-3.3.2.1.5-3
		{"host name listed as supported type: ignored", localPort,
			with(same, wire.AppendParam(nil, wire.ParamSupportedAddrTypes, []byte{0, 11, 0, 5})), wire.ChunkInitAck, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := endpointtest.New(t, endpoint.Config{})
			must.OK(t, b.EP.Listen(localPort, nil))
			list, _ := b.Receive(sctptest.Packet(peerPort, row.port, 0, row.chunk))
			if row.want == 0xff {
				must.That(t, len(list) == 0, "answered by %v", list)
				return
			}
			pkt, c := only(t, list)
			must.That(t, c.Type() == row.want && pkt.VTag() == goodInit.Tag && list[0].Remote == peerAddr,
				"%v with tag %#x to %v", c.Type(), pkt.VTag(), list[0].Remote) // req 9260-5.1-10, 9260-8.4-4
			if c.Type() != wire.ChunkAbort {
				return
			}
			ab, err := wire.AsAbort(c)
			must.That(t, err == nil && !ab.T(), "T %v, %v", ab.T(), err)
			cs := ab.Causes()
			cause, ok := cs.Next()
			check.That(t, ok == (row.code != 0) && (!ok || cause.Code() == row.code), "cause % x, want %v", cause,
				row.code)
		})
	}
}

func TestInitFloodLeavesNothingBehind(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{})
	must.OK(t, b.EP.Listen(localPort, nil))
	tags := map[uint32]bool{}
	for i := range 1000 { // req 9260-5.1-4
		f := goodInit
		f.Tag += uint32(i)
		tag, _ := b.CookieOf(f)
		tags[tag] = true
	}
	// req 9260-5.1-2
	check.That(t, b.EP.Len() == 0 && len(tags) == 1000, "%d associations, %d different tags", b.EP.Len(), len(tags))
}

func TestCookieEchoIsJudged(t *testing.T) {
	elsewhere := netip.MustParseAddrPort("10.0.0.66:0")
	for _, row := range []struct {
		name  string
		spoil func(b *endpointtest.Bench, pkt []byte) []byte // changes the COOKIE ECHO packet
		from  netip.AddrPort
		made  bool
		want  wire.ChunkType
	}{
		{"good", nil, peerAddr, true, 0xff}, // req 9260-8.4-5, 9260-5.1.5-6
		{"good, with more behind it", func(_ *endpointtest.Bench, pkt []byte) []byte { // req 9260-8.4-5
			return append(pkt, wire.AppendHeartbeat(nil, []byte("x"))...)
		}, peerAddr, true, 0xff},
		{"forged: discarded", func(_ *endpointtest.Bench, pkt []byte) []byte { // req 9260-5.1.5-2
			pkt[20] ^= 1
			return pkt
		}, peerAddr, false, 0xff},
		{"wrong tag: discarded", func(_ *endpointtest.Bench, pkt []byte) []byte { // req 9260-5.1.5-3
			pkt[4] ^= 1
			return pkt
		}, peerAddr, false, 0xff},
		{"other source port: discarded", func(_ *endpointtest.Bench, pkt []byte) []byte {
			pkt[0] ^= 1
			return pkt
		}, peerAddr, false, 0xff},
		{"from an address that is not in it: discarded", nil, elsewhere, false, 0xff},
		{"expired: Stale Cookie", func(b *endpointtest.Bench, pkt []byte) []byte { // req 9260-5.1.5-4, 9260-5.1.5-5
			b.Now = b.Now.Add(61 * time.Second)
			return pkt
		}, peerAddr, false, wire.ChunkError},
		{"the listener is gone: ABORT", func(b *endpointtest.Bench, pkt []byte) []byte { // req 9260-5.1-9
			b.EP.Unlisten(localPort)
			return pkt
		}, peerAddr, false, wire.ChunkAbort},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := endpointtest.New(t, endpoint.Config{})
			must.OK(t, b.EP.Listen(localPort, nil))
			tag, cookie := b.CookieOf(goodInit)
			pkt := sctptest.Packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie))
			if row.spoil != nil {
				pkt = row.spoil(b, pkt)
				wire.PutChecksum(pkt, wire.ChecksumBytes(pkt))
			}
			list, a := b.ReceiveFrom(row.from, hostAddr, pkt)
			must.That(t, (a != nil) == row.made && b.EP.Len() == map[bool]int{true: 1}[row.made],
				"association %v, %d in the table", a != nil, b.EP.Len())
			if row.made {
				check.That(t, a.State() == assoc.Established && a.OutStreams() == 4 && a.InStreams() == 3 &&
					a.LocalTag() == tag && a.PeerTag() == goodInit.Tag, "made %v %d/%d", a.State(), a.OutStreams(),
					a.InStreams())
				return
			}
			if row.want == 0xff {
				check.That(t, len(list) == 0, "answered by %v", list)
				return
			}
			ans, c := only(t, list)
			check.That(t, c.Type() == row.want && ans.VTag() == goodInit.Tag, "%v with tag %#x", c.Type(), ans.VTag())
		})
	}
}

func TestAssociationLimit(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{MaxAssocs: 1})
	must.OK(t, b.EP.Listen(localPort, nil))
	must.Do(b.EP.Connect(b.Now, nil, 7, hostAddr, []netip.AddrPort{peerAddr}, 8))(t)
	tag, cookie := b.CookieOf(goodInit)
	list, a := b.Receive(sctptest.Packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie)))
	pkt, c := only(t, list)
	code, cause := sctptest.CauseOf(pkt) // req 9260-12.2.4-1, 9260-3.3.10.4-1
	check.That(t, a == nil && c.Type() == wire.ChunkAbort && code == wire.CauseOutOfResource && len(cause) == 4,
		"answered by %v with cause % x", c.Type(), cause)
	check.Fails(b.EP.Connect(b.Now, nil, 9, hostAddr, []netip.AddrPort{peerAddr}, 8))(t, "Connect", endpoint.ErrTooMany)
}

func TestLookupDropsWhatIsNoPacket(t *testing.T) {
	good := sctptest.Packet(peerPort, localPort, 7, wire.AppendCookieAck(nil))
	flipped := slices.Clone(good)
	flipped[9] ^= 4
	for _, row := range []struct {
		name string
		data []byte
		ok   bool
	}{
		{"good", good, true},
		{"empty", nil, false},
		{"11 octets", good[:11], false},
		{"wrong checksum", flipped, false}, // req 9260-6.8-2, 9260-6.8-3
		{"source port 0", sctptest.Packet(0, localPort, 7, wire.AppendCookieAck(nil)), false}, // req 9260-3.1-2
		{"destination port 0", sctptest.Packet(peerPort, 0, 7, wire.AppendCookieAck(nil)), false},
	} {
		b := endpointtest.New(t, endpoint.Config{})
		a, ok := b.EP.Lookup(&rawio.Packet{Data: row.data, Local: hostAddr, Remote: peerAddr})
		check.That(t, ok == row.ok && a == nil, "%s: ok %v", row.name, ok)
	}
}

func TestConnectAndListenRefuse(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{})
	to := []netip.AddrPort{peerAddr}
	var many []netip.AddrPort
	for i := range assoc.MaxPaths + 1 {
		many = append(many, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 3, 0, byte(i)}), 0))
	}
	a := must.Get(b.EP.Connect(b.Now, nil, localPort, hostAddr, to, peerPort))(t)
	for _, row := range []struct {
		name string
		do   func() error
		want error
	}{
		{"a second association between the same two endpoints", func() error { // req 9260-1.3-1
			_, err := b.EP.Connect(b.Now, nil, localPort, hostAddr, to, peerPort)
			return err
		}, endpoint.ErrExists},
		{"one whose second address is the first's", func() error { // req 9260-1.3-1
			_, err := b.EP.Connect(b.Now, nil, localPort, hostAddr,
				[]netip.AddrPort{netip.MustParseAddrPort("10.0.0.10:0"), peerAddr}, peerPort)
			return err
		}, endpoint.ErrExists},
		{"65 addresses", func() error {
			_, err := b.EP.Connect(b.Now, nil, 1, hostAddr, many, 1)
			return err
		}, endpoint.ErrNoAddress},
		{"64 addresses", func() error { _, err := b.EP.Connect(b.Now, nil, 1, hostAddr, many[1:], 1); return err }, nil},
		// req 9260-3.1-2
		{"peer port 0", func() error { _, err := b.EP.Connect(b.Now, nil, 1, hostAddr, to, 0); return err },
			endpoint.ErrPort},
		{"no address", func() error { _, err := b.EP.Connect(b.Now, nil, 1, hostAddr, nil, 1); return err }, endpoint.ErrNoAddress},
		{"a multicast address", func() error {
			_, err := b.EP.Connect(b.Now, nil, 1, hostAddr, []netip.AddrPort{netip.MustParseAddrPort("239.0.0.1:0")}, 1)
			return err
		}, endpoint.ErrNoAddress},
		{"Listen on port 0", func() error { return b.EP.Listen(0, nil) }, endpoint.ErrPort},
		{"Listen twice", func() error { // req 9260-1.3-3
			if err := b.EP.Listen(77, nil); err != nil {
				return err
			}
			return b.EP.Listen(77, nil)
		}, syscall.EADDRINUSE},
		{"Listen with marks that the link does not make", func() error { return b.EP.Listen(78, &assoc.Config{DSCP: 1}) }, assoc.ErrNoMarks},
		{"Listen at an address of all", func() error { return b.EP.Listen(77, &assoc.Config{LocalAddrs: []netip.Addr{hostAddr.Addr()}}) }, syscall.EADDRINUSE},
	} {
		err := row.do()
		check.That(t, errors.Is(err, row.want), "%s: %v", row.name, err)
	}
	b.EP.Remove(0, a)
	b.EP.Remove(0, a)
	b.EP.Refresh(a) // of an event that was still to be read
	check.Equal(t, "associations after Remove", b.EP.Len(), 1)
	_, err := b.EP.Connect(b.Now, nil, localPort, hostAddr, to, peerPort)
	check.That(t, err == nil, "after Remove: %v", err)
}

// ones is randomness that is always the same.
type ones struct{}

func (ones) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 1
	}
	return len(p), nil
}

func TestEphemeralPorts(t *testing.T) {
	ep := endpoint.New(endpoint.Config{Rand: ones{}, MTU: func(_, _ netip.Addr) int { return mtu }})
	connect := func(to int) (*assoc.Assoc, error) {
		return ep.Connect(0, nil, 0, hostAddr,
			[]netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 3, byte(to)}), 0)}, peerPort)
	}
	const first = 49152 + 0x0101
	var list []*assoc.Assoc
	for i := range uint16(3) { // the next, where somebody has the one drawn, though with another peer
		a, err := connect(int(i))
		must.That(t, err == nil && a.LocalPort() == first+i, "port %d, %v", a.LocalPort(), err)
		list = append(list, a)
	}
	ep.Remove(0, list[1])
	a, err := connect(9)
	check.That(t, err == nil && a.LocalPort() == first+1, "port %d, %v: want the one that is free again",
		a.LocalPort(), err)
	for port := 49152; port <= 65535; port++ {
		ep.Listen(uint16(port), nil)
	}
	check.Fails(connect(10))(t, "with no port free", syscall.EADDRINUSE)
	for _, port := range []uint16{49152, 65535} {
		ep.Unlisten(port)
		a, err := connect(11)
		check.That(t, err == nil && a.LocalPort() == port, "%v: want port %d", err, port)
	}
}

// Without randomness there is no association: its tag could be guessed.
func TestConnectNeedsRandomness(t *testing.T) {
	ep := endpoint.New(endpoint.Config{Rand: bytes.NewReader(nil), MTU: func(_, _ netip.Addr) int { return mtu }})
	for _, port := range []uint16{0, localPort} {
		a, err := ep.Connect(0, nil, port, hostAddr, []netip.AddrPort{peerAddr}, peerPort)
		check.That(t, err == io.EOF && a == nil && ep.Len() == 0, "port %d: %v", port, err)
	}
}

// A listener with addresses of its own is one endpoint of several on the host: what comes to others
// finds none.
func TestListenerOfSomeAddresses(t *testing.T) {
	b, other := endpointtest.New(t, endpoint.Config{}), netip.MustParseAddr("10.0.0.2")
	for i, at := range []netip.Addr{hostAddr.Addr(), other} {
		must.OK(t, b.EP.Listen(localPort, &assoc.Config{LocalAddrs: []netip.Addr{at}, OutStreams: uint16(1 + i)}))
		check.Error(t, "Listen at one of them",
			b.EP.Listen(localPort, &assoc.Config{LocalAddrs: []netip.Addr{netip.MustParseAddr("10.0.0.3"), at}}),
			endpoint.ErrPortInUse)
	}
	for i, local := range []string{"10.0.0.3:0", "10.0.0.1:0", "[::ffff:10.0.0.2]:0"} {
		to, from := netip.MustParseAddrPort(local), netip.AddrPortFrom(peerAddr.Addr().Next(), 0)
		list, _ := b.ReceiveFrom(from, to,
			sctptest.Packet(peerPort, localPort, 0, sctptest.InitLike(wire.ChunkInit, goodInit)))
		if _, c := only(t, list); i == 0 {
			check.Equal(t, "answer where nobody listens", c.Type(), wire.ChunkAbort)
			continue
		}
		tag, cookie := b.CookieIn(list)
		// by another way
		_, a := b.ReceiveFrom(from, netip.MustParseAddrPort("10.0.0.3:0"),
			sctptest.Packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie)))
		must.That(t, a != nil && a.OutStreams() == i, "no association with who listens at %v", to)
		b.EP.Remove(0, a)
	}
	b.EP.Unlisten(localPort, other)
	check.Error(t, "Listen at all while one listens", b.EP.Listen(localPort, nil), endpoint.ErrPortInUse)
	b.EP.Unlisten(localPort, hostAddr.Addr())
	must.OK(t, b.EP.Listen(localPort, nil))
}

func TestPacketsFindTheirAssociation(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{})
	second := netip.MustParseAddrPort("10.0.0.10:0")
	must.OK(t, b.EP.Listen(localPort, nil))
	tag, cookie := b.CookieOf(goodInit, wire.AppendAddressParam(nil, second.Addr()))
	_, a := b.Receive(sctptest.Packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie)))
	must.That(t, a != nil, "no association")
	find := func(kind rawio.Kind, from netip.AddrPort, pkt []byte) *assoc.Assoc {
		p := &rawio.Packet{Kind: kind, Data: pkt, Local: hostAddr, Remote: from}
		got, ok := b.EP.Lookup(p)
		if got == nil && ok {
			got, _ = b.EP.HandleUnmatched(b.Now, p)
		}
		return got
	}
	mapped := netip.AddrPortFrom(netip.AddrFrom16(peerAddr.Addr().As16()), 9899)
	beat := sctptest.Packet(peerPort, localPort, tag, wire.AppendHeartbeat(nil, []byte("x")))
	quote := sctptest.Packet(localPort, peerPort, goodInit.Tag)[:8]
	for _, row := range []struct {
		name string
		kind rawio.Kind
		from netip.AddrPort
		pkt  []byte
		want *assoc.Assoc
	}{
		{"from the address of the INIT", rawio.KindSCTP, peerAddr, beat, a},
		{"from a listed address", rawio.KindSCTP, second, beat, a},                    // req 9260-5.1.2-3
		{"from the address in mapped form over UDP", rawio.KindSCTP, mapped, beat, a}, // req 6951-5.4-1
		{"another port of the peer", rawio.KindSCTP, peerAddr, sctptest.Packet(peerPort+1, localPort, tag), nil},
		{"INIT of the peer", rawio.KindSCTP, peerAddr, sctptest.Packet(peerPort, localPort, 0, sctptest.InitLike(wire.ChunkInit, goodInit)), a},
		// req 9260-10-4
		{"ICMP report about our packet", rawio.KindProtoUnreachable, peerAddr, quote, a},
		// req 9260-10-5
		{"ICMP report about somebody else's", rawio.KindProtoUnreachable, netip.MustParseAddrPort("10.9.9.9:0"),
			quote, nil},
		// req 8899-4.6.1-2
		{"ICMP report about another port's", rawio.KindPacketTooBig, peerAddr,
			sctptest.Packet(localPort, peerPort+1, goodInit.Tag), nil},
		// req 8899-6.2.1-4
		{"ICMP report too short", rawio.KindProtoUnreachable, peerAddr, quote[:7], nil},
	} {
		check.Equal(t, row.name, find(row.kind, row.from, row.pkt), row.want)
	}
	// req 9260-5.1.2-5: an INIT from a new address that lists a known one belongs to it, and is
	// refused because it adds an address.
	third := netip.MustParseAddrPort("10.0.0.11:0")
	// what it lists behind 32 others is not looked up
	for before, want := range map[int]*assoc.Assoc{0: a, 31: a, 32: nil} {
		list := bytes.Repeat(wire.AppendAddressParam(nil, netip.MustParseAddr("10.7.7.7")), before)
		init := sctptest.InitLike(wire.ChunkInit, goodInit, wire.AppendAddressParam(list, second.Addr()))
		p := rawio.Packet{Data: sctptest.Packet(peerPort, localPort, 0, init), Local: hostAddr, Remote: third}
		got, isNew := b.EP.HandleUnmatched(b.Now, &p)
		check.That(t, got == want && !isNew, "INIT from a new address, behind %d others: %p", before, got)
	}
}

// Asking the system for the MTU takes longer than the rest of the answer, and a flood of INITs
// comes from ever other addresses: only an INIT that makes a long answer makes the endpoint ask.
func TestINITFloodDoesNotAskForTheMTU(t *testing.T) {
	asked := 0
	ep := endpoint.New(endpoint.Config{Rand: rand.New(rand.NewSource(3)),
		MTU: func(_, _ netip.Addr) int { asked++; return mtu }})
	must.OK(t, ep.Listen(localPort, nil))
	out := assoc.NewTxBatch(8)
	answer := func(params ...[]byte) (octets int) {
		p := rawio.Packet{Data: sctptest.Packet(peerPort, localPort, 0,
			sctptest.InitLike(wire.ChunkInit, goodInit, params...)), Local: hostAddr, Remote: peerAddr}
		ep.HandleUnmatched(0, &p)
		out.Reset()
		ep.PollTransmit(0, out)
		must.Equal(t, "answers", len(out.Pkts), 1)
		return out.Pkts[0].Len()
	}
	plain := answer()
	n := answer(wire.AppendParam(nil, 0xC0FE, make([]byte, 60)))
	check.That(t, asked == 0 && n == plain+4+64, "asked %d times for answers of %d and %d octets", asked, plain, n)
	long := wire.AppendParam(nil, 0xC0FE, make([]byte, mtu/2))
	n = answer(long, long, long)
	check.That(t, asked != 0 && n > mtu/2 && n <= mtu, "asked %d times for an answer of %d octets", asked, n)
}

// A shell looks all packets of a batch up before it handles those that have no association. The
// second COOKIE ECHO of a batch, sent again because the host was slow, belongs to the association
// that the first one has made.
func TestTwoCookieEchoesInOneBatch(t *testing.T) {
	b, other := endpointtest.New(t, endpoint.Config{}), netip.MustParseAddrPort("10.0.0.10:0")
	var echo rawio.Packet
	told := 0
	b.EP = endpoint.New(endpoint.Config{Rand: ones{}, MTU: func(_, _ netip.Addr) int { return mtu },
		Adopt: func(*assoc.Assoc) {
			told++
			p := echo
			p.Data = sctptest.Packet(peerPort, localPort, 1, []byte{byte(wire.ChunkCookieAck), 0, 0, 4})
			a, _ := b.EP.Lookup(&p)
			check.That(t, a == nil, "found before its owner knows of it")
		}})
	must.OK(t, b.EP.Listen(localPort, nil))
	tag, cookie := b.CookieOf(goodInit)
	echo = rawio.Packet{Data: sctptest.Packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie)),
		Local: hostAddr, Remote: peerAddr}
	list, _ := b.ReceiveFrom(other, hostAddr,
		sctptest.Packet(peerPort, localPort, 0, sctptest.InitLike(wire.ChunkInit, goodInit)))
	tag, cookie = b.CookieIn(list)
	same := rawio.Packet{Data: sctptest.Packet(peerPort, localPort, tag, wire.AppendCookieEcho(nil, cookie)),
		Local: hostAddr, Remote: other}
	a, ok := b.EP.Lookup(&echo)
	must.That(t, a == nil && ok, "an association before the COOKIE ECHO")
	var strangers [3]endpoint.UnmatchedPacket
	for i, p := range []*rawio.Packet{&echo, &echo, &same} {
		s := &strangers[i]
		must.That(t, b.EP.Screen(b.Now, p, s) && b.EP.Find(s) == nil && b.EP.Answer(b.Now, s), "no valid cookie")
	}
	first, isNew := b.EP.MakeAssoc(b.Now, &strangers[0])
	must.That(t, first != nil && isNew, "no association")
	again, isNew := b.EP.MakeAssoc(b.Now, &strangers[1])
	check.That(t, again == first && !isNew, "the second makes %p, new %v; want %p", again, isNew, first)
	first.HandlePacket(b.Now, &echo)
	second, isNew := b.EP.HandleUnmatched(b.Now, &echo)
	must.That(t, second == first && !isNew, "the second belongs to %p, new %v; want %p", second, isNew, first)
	b.EP.PollTransmit(b.Now, b.Out)
	check.Equal(t, "packets of the endpoint, of which an ABORT would end the peer's association", len(b.Out.Pkts), 0)
	third, _ := b.EP.MakeAssoc(b.Now, &strangers[2])
	check.That(t, third == nil && b.EP.Stats().CookiesRefused == 1, "another host has an association with the same tag")
	second.HandlePacket(b.Now, &echo) // req 9260-5.1.5-8, 9260-5.2.4-13
	check.Equal(t, "state of the second", second.State(), assoc.Established)
	check.Equal(t, "associations that the owner was told of", told, 1)
}

// Each association has the Config that it was dialled with, whoever was dialled with another, or
// changed his, before.
func TestEachDialHasItsOwnConfig(t *testing.T) {
	b := endpointtest.New(t, endpoint.Config{})
	own := []netip.Addr{hostAddr.Addr()}
	cfg := &assoc.Config{OutStreams: 3, LocalAddrs: own}
	var all []*assoc.Assoc
	for i, streams := range []uint16{3, 3, 5, 3, 5} {
		cfg.OutStreams = streams
		own[0] = hostAddr.Addr()
		all = append(all, must.Get(b.EP.Connect(b.Now, cfg, localPort+uint16(i), hostAddr, []netip.AddrPort{peerAddr},
			peerPort))(t))
		own[0] = peerAddr.Addr() // the list is the caller's
	}
	for i, streams := range []uint16{3, 3, 5, 3, 5} {
		list := b.Poll(all[i].PollTransmit)
		must.Equal(t, "packets", len(list), 1)
		init := must.Get(wire.AsInit(sctptest.ChunkOf(wire.Packet(list[0].Data), wire.ChunkInit)))(t)
		check.That(t, init.OutStreams() == streams && list[0].Local.Addr() == hostAddr.Addr(),
			"INIT %d: %d streams from %v", i, init.OutStreams(), list[0].Local)
	}
}
