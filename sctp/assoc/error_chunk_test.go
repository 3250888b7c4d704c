package assoc_test

import (
	"bytes"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestUnknownChunksByTheirHighBits(t *testing.T) {
	// req 9260-6.10-5: what is behind one that ends the packet has no effect
	beat := wire.AppendHeartbeat(nil, []byte("x"))
	for _, row := range []struct {
		name string
		typ  wire.ChunkType
		want string
	}{
		{"00: stop, no report", 0x3e, ""},                            // req 9260-3.2-2
		{"01: stop, report", 0x7e, "ERROR"},                          // req 9260-3.2-3
		{"10: skip, no report", 0xbe, "HEARTBEAT ACK"},               // req 9260-3.2-4
		{"11: skip, report", 0xfe, "ERROR HEARTBEAT ACK"},            // req 9260-3.2-5
		{"PAD is known and ignored", wire.ChunkPad, "HEARTBEAT ACK"}, // req 4820-3-3
		{"FORWARD-TSN was not negotiated", wire.ChunkForwardTSN, "ERROR HEARTBEAT ACK"},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Passive(t, nil)
			unknown := wire.AppendChunk(nil, row.typ, 0x5a, []byte("what is this?"))
			out := l.Send(l.Tag, unknown, beat)
			l.Expect(out, row.want)
			if len(out) > 0 && sctptest.Has(out[0], wire.ChunkError) { // req 9260-3.3.10.6-1
				code, cause := sctptest.CauseOf(out[0])
				c, err := cause.UnrecognizedChunk()
				check.That(t, code == wire.CauseUnrecognizedChunkType && err == nil && bytes.HasPrefix(unknown, c),
					"cause %v quotes % x", code, c)
			}
			l.InState(assoc.Established)
		})
	}
}

// Of unknown parameters only so many are reported, however many there are.
func TestManyUnknownParameters(t *testing.T) {
	l := sctptest.NewLab(t)
	l.Listen(nil)
	var list [][]byte
	for i := range 12 {
		list = append(list, wire.AppendParam(nil, 0xfabc, []byte{byte(i)}),
			wire.AppendAddressParam(nil, netip.AddrFrom4([4]byte{10, 9, 0, byte(i)})))
	}
	l.Initiate(list...)
	out := l.Send(0, sctptest.InitChunk(l.PeerTag, l.TSN, list...))
	ack, _ := wire.AsInit(sctptest.ChunkOf(out[0], wire.ChunkInitAck))
	ps, reports := ack.Params(), 0
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		if p.Type() == wire.ParamUnrecognizedParam {
			reports++
			check.That(t, p.Value()[4] == byte(reports-1), "report %d is about % x", reports, p.Value())
		}
	}
	check.Equal(t, "reports of 12 unknown parameters", reports, 8)
}

func TestUnknownParametersByTheirHighBits(t *testing.T) {
	after := wire.AppendAdaptationIndication(nil, 77)
	for _, row := range []struct {
		name           string
		typ            wire.ParamType
		report, goesOn bool
	}{
		{"00: stop, no report", 0x3abc, false, false}, // req 9260-3.2.1-4
		{"01: stop, report", 0x7abc, true, false},     // req 9260-3.2.1-5
		{"10: skip, no report", 0xbabc, false, true},  // req 9260-3.2.1-6
		{"11: skip, report", 0xfabc, true, true},      // req 9260-3.2.1-7
		{"00, but known: skip, no report", wire.ParamUnrecognizedParam, false, true},
		{"an extension that is not offered: skip, report", wire.ParamForwardTSN, true, true},
	} {
		unknown := wire.AppendParam(nil, row.typ, []byte("abc"))
		t.Run("INIT, "+row.name, func(t *testing.T) {
			l := sctptest.NewLab(t)
			l.Listen(nil)
			out := l.Send(0, sctptest.InitChunk(l.PeerTag, l.TSN, unknown, after)) // req 9260-3.2.1-8
			l.Expect(out, "INIT ACK")
			ack := l.NoteInitAck(out[0])
			rep := sctptest.ParamOf(ack, wire.ParamUnrecognizedParam)
			// req 9260-3.2.2-1
			must.That(t, (rep != nil) == row.report, "reported: %v", rep != nil)
			// req 9260-3.3.3.1.2-1
			check.That(t, rep == nil || string(rep.Value()) == string(unknown[:7]), "report % x", []byte(rep))
			l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
			_, ok := l.A.PeerAdaptation()
			check.That(t, ok == row.goesOn, "parameter behind the unknown one read: %v", ok)
		})
		t.Run("INIT ACK, "+row.name, func(t *testing.T) {
			l := sctptest.Active(t, nil)
			out := l.Send(l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie"), unknown, after))
			want := "COOKIE ECHO"
			if row.report {
				want = "COOKIE ECHO ERROR" // req 9260-3.2.2-3, 9260-3.3.3-14, 9260-3.2.2-5
			}
			l.Expect(out, want)
			if row.report {
				code, cause := sctptest.CauseOf(out[0])
				ps := cause.Params()
				p, ok := ps.Next()
				// req 9260-3.3.10.8-1, and 9260-3.2.1-1: no padding in its length
				check.That(t, code == wire.CauseUnrecognizedParams && ok && p.Type() == row.typ && len(cause) == 4+7,
					"cause %v of %d octets", code, len(cause))
			}
			_, ok := l.A.PeerAdaptation()
			check.That(t, ok == row.goesOn, "parameter behind the unknown one read: %v", ok)
		})
	}
}

// The report of unknown parameters goes beside the COOKIE ECHO only where both fit the path.
func TestReportBesideACookie(t *testing.T) {
	// in a chunk with one cause: 48 octets
	unknown := wire.AppendParam(nil, 0x7abc, make([]byte, 36))
	for over, want := range map[int]string{0: "COOKIE ECHO ERROR", 4: "COOKIE ECHO"} { // req 9260-6.10-1
		l := sctptest.Active(t, nil)
		cookie := make([]byte, sctptest.MTU-wire.CommonHeaderLen-4-48+over)
		out := l.Send(l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, cookie, unknown))
		l.Expect(out, want)
		check.That(t, len(out[0]) <= sctptest.MTU, "packet of %d octets", len(out[0]))
	}
}

func TestInitAckThatIsNotAccepted(t *testing.T) {
	fields := wire.InitFields{Tag: 0x11111111, ARwnd: 5000, OutStreams: 1, InStreams: 1, TSN: 5}
	cookie := wire.AppendParam(nil, wire.ParamStateCookie, []byte("cookie"))
	with := func(change func(*wire.InitFields), params ...[]byte) []byte {
		f := fields
		change(&f)
		return sctptest.InitLike(wire.ChunkInitAck, f, params...)
	}
	none := func(*wire.InitFields) {}
	for _, row := range []struct {
		name  string
		chunk []byte
		tag   uint32 // of the ABORT; 0: the own tag, reflected
		code  wire.CauseCode
		state assoc.State
	}{
		// req 9260-3.3.3-3, 9260-3.3.3-4
		{"Initiate Tag 0", with(func(f *wire.InitFields) { f.Tag = 0 }, cookie), 0, 0, assoc.Closed},
		// req 9260-3.3.3-9
		{"OS 0", with(func(f *wire.InitFields) { f.OutStreams = 0 }, cookie), fields.Tag, wire.CauseInvalidParam,
			assoc.Closed},
		// req 9260-3.3.3-10
		{"MIS 0", with(func(f *wire.InitFields) { f.InStreams = 0 }, cookie), fields.Tag, wire.CauseInvalidParam,
			assoc.Closed},
		// req 9260-3.3.3-6, 9260-3.3.3-7
		{"a_rwnd 1499: no change", with(func(f *wire.InitFields) { f.ARwnd = 1499 }, cookie), fields.Tag,
			wire.CauseInvalidParam, assoc.CookieWait},
		// req 9260-5.1-9
		{"no State Cookie", with(none), fields.Tag, wire.CauseMissingParam, assoc.Closed},
		{"an IPv4 address of 3 octets", with(none, cookie, wire.AppendParam(nil, wire.ParamIPv4, make([]byte, 3))), fields.Tag, wire.CauseProtocolViolation, assoc.Closed},
		{"Host Name Address", with(none, cookie, wire.AppendParam(nil, wire.ParamHostName, []byte("a.b\x00"))), fields.Tag, wire.CauseUnresolvableAddress, assoc.Closed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := sctptest.Active(t, nil)
			out := l.Send(l.Tag, row.chunk)
			l.Expect(out, "ABORT")
			ab, _ := wire.AsAbort(sctptest.ChunkOf(out[0], wire.ChunkAbort))
			want := row.tag
			if want == 0 {
				want = l.Tag
			}
			code, cause := sctptest.CauseOf(out[0])
			// req 9260-5.1-10
			check.That(t, out[0].VTag() == want && ab.T() == (row.tag == 0) && code == row.code,
				"tag %#x T %v cause %v", out[0].VTag(), ab.T(), code)
			if code == wire.CauseMissingParam {
				list, err := cause.MissingParams()
				// req 9260-3.3.10.2-1
				check.That(t, err == nil && list.Len() == 1 && wire.ParamType(list.At(0)) == wire.ParamStateCookie,
					"missing %v %v", list, err)
			}
			s := l.A.Stats()
			check.That(t, s.Violations+s.Malformed == 1 && (s.Violations == 1) == (row.state == assoc.Closed),
				"counted as %d violations, %d malformed", s.Violations, s.Malformed)
			l.InState(row.state)
		})
	}
}

func TestAnswerToACookieEchoThatWasNotSentIsIgnored(t *testing.T) {
	for _, early := range [][]byte{wire.AppendCookieAck(nil), sctptest.StaleError()} { // in one batch with the INIT ACK
		l := sctptest.Active(t, nil)
		l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag,
			sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("cookie"))))
		l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, early))
		l.InState(assoc.CookieEchoed)
		l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, wire.AppendChunk(nil, 0xfe, 0, nil)))
		l.Expect(l.Flush(), "COOKIE ECHO | ERROR")
		l.Send(l.Tag, wire.AppendCookieAck(nil))
		l.InState(assoc.Established)
	}
}

func TestStaleCookieStartsOver(t *testing.T) {
	l := sctptest.Echoed(t, nil)
	l.Now = l.Now.Add(70 * time.Millisecond)
	out := l.Send(l.Tag, wire.AppendHeartbeat(nil, []byte("of a peer that is no more")), sctptest.StaleError())
	l.Expect(out, "INIT") // req 9260-5.2.6-2
	l.InState(assoc.CookieWait)
	check.Equal(t, "the peer's tag", l.A.PeerTag(), 0)
	init, _ := wire.AsInit(sctptest.ChunkOf(out[0], wire.ChunkInit))
	p := sctptest.ParamOf(init, wire.ParamCookiePreservative)
	ms, err := p.CookieIncrement()
	// req 9260-5.2.6-3: the RTT and at most one second
	check.That(t, err == nil && ms >= 70 && ms <= 1070, "Cookie Preservative %d ms, %v", ms, err)
	l.Expect(l.Send(l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("fresh"))), "COOKIE ECHO")
	l.Send(l.Tag, wire.AppendCookieAck(nil))
	l.InState(assoc.Established)
	l.Expect(l.Send(l.Tag, sctptest.StaleError()), "") // req 9260-5.2.6-1
	l.InState(assoc.Established)
}

func TestStaleCookieForEverGivesUp(t *testing.T) {
	l := sctptest.Echoed(t, &assoc.Config{MaxInitRetrans: 3})
	for range 3 {
		l.Expect(l.Send(l.Tag, sctptest.StaleError()), "INIT")
		l.Expect(l.Send(l.Tag, sctptest.InitAckChunk(l.PeerTag, l.TSN, []byte("again"))), "COOKIE ECHO")
	}
	l.Expect(l.Send(l.Tag, sctptest.StaleError()), "")
	l.InState(assoc.Closed)
	err, _ := l.Host.DownErr()
	check.That(t, errors.Is(err, assoc.ErrInitTimeout), "ended by %v", err)
}

func TestErrorChunkIsReported(t *testing.T) {
	l := sctptest.Passive(t, nil)
	l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkError, 0, []byte{3, 231, 0, 4, 0, 1, 0, 99}))
	_, told := l.Host.Event(assoc.EventPeerError)
	check.That(t, !told && l.A.Stats().Malformed == 1, "an ERROR with a cause longer than itself is reported")
	b := wire.AppendCause(wire.AppendError(nil), wire.CauseOutOfResource, nil)
	b = wire.CloseChunk(wire.AppendCause(b, 999, bytes.Repeat([]byte("x"), 1000)), 0)
	for range 100 {
		l.Deliver(l.Peer, sctptest.Packet(sctptest.PortA, sctptest.PortB, l.Tag, b))
	}
	l.Expect(l.Flush(), "")
	n := 0
	for _, e := range l.Host.Events {
		if e.Kind == assoc.EventPeerError {
			n++
			var pe *assoc.PeerError
			must.That(t, errors.As(e.Err, &pe) && len(pe.Causes) == 2 &&
				pe.Causes[0].Code == wire.CauseOutOfResource && len(pe.Causes[1].Info) <= 256, "%v", e.Err)
		}
	}
	check.That(t, n >= 1 && n <= 16, "%d of 100 reports are queued", n)
	l.InState(assoc.Established)
}
