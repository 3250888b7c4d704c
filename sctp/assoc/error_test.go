package assoc_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

func TestUnknownChunksByTheirHighBits(t *testing.T) {
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
			l := passiveLab(t, nil)
			unknown := wire.AppendChunk(nil, row.typ, 0x5a, []byte("what is this?"))
			out := l.send(l.tag, unknown, beat)
			l.expect(out, row.want)
			if len(out) > 0 && has(out[0], wire.ChunkError) { // req 9260-3.3.10.6-1
				code, cause := causeOf(out[0])
				c, err := cause.UnrecognizedChunk()
				if code != wire.CauseUnrecognizedChunkType || err != nil || !bytes.HasPrefix(unknown, c) {
					t.Errorf("cause %v quotes % x", code, c)
				}
			}
			l.inState(assoc.Established)
		})
	}
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
	} {
		unknown := wire.AppendParam(nil, row.typ, []byte("abc"))
		t.Run("INIT, "+row.name, func(t *testing.T) {
			l := bareLab(t)
			l.listen(nil)
			out := l.send(0, initChunk(l.peerTag, l.tsn, unknown, after)) // req 9260-3.2.1-8
			l.expect(out, "INIT ACK")
			ack := l.noteInitAck(out[0])
			rep := paramOf(ack, wire.ParamUnrecognizedParam)
			if (rep != nil) != row.report { // req 9260-3.2.2-1
				t.Fatalf("reported: %v", rep != nil)
			}
			if rep != nil && string(rep.Value()) != string(unknown[:7]) { // req 9260-3.3.3.1.2-1
				t.Errorf("report % x", rep.Value())
			}
			l.send(l.tag, wire.AppendCookieEcho(nil, l.cookie))
			if _, ok := l.a.PeerAdaptation(); ok != row.goesOn {
				t.Errorf("parameter behind the unknown one read: %v", ok)
			}
		})
		t.Run("INIT ACK, "+row.name, func(t *testing.T) {
			l := activeLab(t, nil)
			out := l.send(l.tag, initAckChunk(l.peerTag, l.tsn, []byte("cookie"), unknown, after))
			want := "COOKIE ECHO"
			if row.report {
				want = "COOKIE ECHO ERROR" // req 9260-3.2.2-3, 9260-3.3.3-14
			}
			l.expect(out, want)
			if row.report {
				code, cause := causeOf(out[0])
				ps := cause.Params()
				if p, ok := ps.Next(); code != wire.CauseUnrecognizedParams || !ok || p.Type() != row.typ { // req 9260-3.3.10.8-1
					t.Errorf("cause %v", code)
				}
			}
			if _, ok := l.a.PeerAdaptation(); ok != row.goesOn {
				t.Errorf("parameter behind the unknown one read: %v", ok)
			}
		})
	}
}

func TestInitAckThatIsNotAccepted(t *testing.T) {
	fields := wire.InitFields{Tag: 0x11111111, ARwnd: 5000, OutStreams: 1, InStreams: 1, TSN: 5}
	cookie := wire.AppendParam(nil, wire.ParamStateCookie, []byte("cookie"))
	with := func(change func(*wire.InitFields), params ...[]byte) []byte {
		f := fields
		change(&f)
		return initLike(wire.ChunkInitAck, f, params...)
	}
	none := func(*wire.InitFields) {}
	for _, row := range []struct {
		name  string
		chunk []byte
		tag   uint32 // of the ABORT; 0: the own tag, reflected
		code  wire.CauseCode
		state assoc.State
	}{
		{"Initiate Tag 0", with(func(f *wire.InitFields) { f.Tag = 0 }, cookie), 0, 0, assoc.Closed},                                                // req 9260-3.3.3-3, 9260-3.3.3-4
		{"OS 0", with(func(f *wire.InitFields) { f.OutStreams = 0 }, cookie), fields.Tag, wire.CauseInvalidParam, assoc.Closed},                     // req 9260-3.3.3-9
		{"MIS 0", with(func(f *wire.InitFields) { f.InStreams = 0 }, cookie), fields.Tag, wire.CauseInvalidParam, assoc.Closed},                     // req 9260-3.3.3-10
		{"a_rwnd 1499: no change", with(func(f *wire.InitFields) { f.ARwnd = 1499 }, cookie), fields.Tag, wire.CauseInvalidParam, assoc.CookieWait}, // req 9260-3.3.3-6, 9260-3.3.3-7
		{"no State Cookie", with(none), fields.Tag, wire.CauseMissingParam, assoc.Closed},                                                           // req 9260-5.1-9
		{"Host Name Address", with(none, cookie, wire.AppendParam(nil, wire.ParamHostName, []byte("a.b\x00"))), fields.Tag, wire.CauseUnresolvableAddress, assoc.Closed},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := activeLab(t, nil)
			out := l.send(l.tag, row.chunk)
			l.expect(out, "ABORT")
			ab, _ := wire.AsAbort(chunkOf(out[0], wire.ChunkAbort))
			want := row.tag
			if want == 0 {
				want = l.tag
			}
			code, cause := causeOf(out[0])
			if out[0].VTag() != want || ab.T() != (row.tag == 0) || code != row.code { // req 9260-5.1-10
				t.Errorf("tag %#x T %v cause %v", out[0].VTag(), ab.T(), code)
			}
			if code == wire.CauseMissingParam {
				list, err := cause.MissingParams()
				if err != nil || list.Len() != 1 || wire.ParamType(list.At(0)) != wire.ParamStateCookie { // req 9260-3.3.10.2-1
					t.Errorf("missing %v %v", list, err)
				}
			}
			l.inState(row.state)
		})
	}
}

func TestInitAckOutsideCookieWaitIsIgnored(t *testing.T) {
	for _, l := range []*lab{echoedLab(t, nil), establishedLab(t, nil), passiveLab(t, nil)} {
		state := l.a.State()
		l.expect(l.send(l.tag, initAckChunk(0x123, 9, []byte("other"))), "") // req 9260-5.2.3-1
		l.inState(state)
	}
}

func TestCookieAckOutsideCookieEchoedIsIgnored(t *testing.T) {
	for _, l := range []*lab{activeLab(t, nil), passiveLab(t, nil)} {
		state := l.a.State()
		l.expect(l.send(l.tag, wire.AppendCookieAck(nil)), "") // req 9260-5.2.5-1
		l.inState(state)
	}
}

func staleError() []byte {
	return wire.CloseChunk(wire.AppendStaleCookieCause(wire.AppendError(nil), 5000), 0)
}

func TestStaleCookieStartsOver(t *testing.T) {
	l := echoedLab(t, nil)
	l.now = l.now.Add(70 * time.Millisecond)
	out := l.send(l.tag, staleError())
	l.expect(out, "INIT") // req 9260-5.2.6-2
	l.inState(assoc.CookieWait)
	init, _ := wire.AsInit(chunkOf(out[0], wire.ChunkInit))
	p := paramOf(init, wire.ParamCookiePreservative)
	ms, err := p.CookieIncrement()
	if err != nil || ms < 70 || ms > 1070 { // req 9260-5.2.6-3: the RTT and at most one second
		t.Errorf("Cookie Preservative %d ms, %v", ms, err)
	}
	l.expect(l.send(l.tag, initAckChunk(l.peerTag, l.tsn, []byte("fresh"))), "COOKIE ECHO")
	l.send(l.tag, wire.AppendCookieAck(nil))
	l.inState(assoc.Established)
	l.expect(l.send(l.tag, staleError()), "") // req 9260-5.2.6-1
	l.inState(assoc.Established)
}

func TestStaleCookieForEverGivesUp(t *testing.T) {
	l := echoedLab(t, &assoc.Config{MaxInitRetrans: 3})
	for range 3 {
		l.expect(l.send(l.tag, staleError()), "INIT")
		l.expect(l.send(l.tag, initAckChunk(l.peerTag, l.tsn, []byte("again"))), "COOKIE ECHO")
	}
	l.expect(l.send(l.tag, staleError()), "")
	l.inState(assoc.Closed)
	if err, _ := l.h.downErr(); !errors.Is(err, assoc.ErrInitTimeout) {
		t.Errorf("ended by %v", err)
	}
}

func TestErrorChunkIsReported(t *testing.T) {
	l := passiveLab(t, nil)
	b := wire.AppendCause(wire.AppendError(nil), wire.CauseOutOfResource, nil)
	b = wire.CloseChunk(wire.AppendCause(b, 999, bytes.Repeat([]byte("x"), 1000)), 0)
	for range 100 {
		l.deliver(l.peer, packet(portA, portB, l.tag, b))
	}
	l.expect(l.flush(), "")
	n := 0
	for _, e := range l.h.events {
		if e.Kind == assoc.EventPeerError {
			n++
			var pe *assoc.PeerError
			if !errors.As(e.Err, &pe) || len(pe.Causes) != 2 || pe.Causes[0].Code != wire.CauseOutOfResource || len(pe.Causes[1].Info) > 256 {
				t.Fatalf("%v", e.Err)
			}
		}
	}
	if n < 1 || n > 16 {
		t.Errorf("%d of 100 reports are queued", n)
	}
	l.inState(assoc.Established)
}
