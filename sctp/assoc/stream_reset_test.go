package assoc_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/internal/test/sctptest"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// allResets lets the peer ask for everything.
const allResets = assoc.AllowStreamReset | assoc.AllowTSNReset | assoc.AllowAddStreams

// resetting returns an association whose peer, a script, can reset streams. It has 16 streams in
// each direction. The script's next TSN is 1000.
func resetting(t *testing.T, cfg assoc.Config) *sctptest.Lab {
	t.Helper()
	return resettingUnder(t, cfg, nil)
}

// resettingUnder is resetting under a protocol that places DATA.
func resettingUnder(t *testing.T, cfg assoc.Config, placer assoc.Placer) *sctptest.Lab {
	t.Helper()
	return resettingWith(t, cfg, placer)
}

// resettingWith is resettingUnder with a peer that lists more chunks.
func resettingWith(t *testing.T, cfg assoc.Config, placer assoc.Placer, more ...wire.ChunkType) *sctptest.Lab {
	t.Helper()
	if cfg.StreamReset == 0 {
		cfg.StreamReset = allResets
	}
	l := sctptest.NewLab(t)
	l.Host.Placer = placer
	l.Listen(&cfg)
	l.Initiate(wire.AppendSupportedExtensions(nil, append(more, wire.ChunkReconfig)...))
	l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
	must.That(t, l.A != nil && l.A.Extensions().Has(assoc.StreamReconfiguration), "no association that resets streams")
	return l
}

// reconfigChunk makes a RE-CONFIG chunk.
func reconfigChunk(params ...func([]byte) []byte) []byte {
	b := wire.AppendReconfig(nil)
	for _, p := range params {
		b = p(b)
	}
	return wire.CloseChunk(b, 0)
}

func outReset(seq, response uint32, last wire.TSN, streams ...wire.StreamID) func([]byte) []byte {
	return func(b []byte) []byte { return wire.AppendOutgoingReset(b, seq, response, last, streams) }
}

func inReset(seq uint32, streams ...wire.StreamID) func([]byte) []byte {
	return func(b []byte) []byte { return wire.AppendIncomingReset(b, seq, streams) }
}

func tsnReset(seq uint32) func([]byte) []byte {
	return func(b []byte) []byte { return wire.AppendTSNReset(b, seq) }
}

func addOut(seq uint32, n uint16) func([]byte) []byte {
	return func(b []byte) []byte { return wire.AppendAddStreams(b, wire.ParamAddOutStreams, seq, n) }
}

func addIn(seq uint32, n uint16) func([]byte) []byte {
	return func(b []byte) []byte { return wire.AppendAddStreams(b, wire.ParamAddInStreams, seq, n) }
}

func resetResponse(seq uint32, r wire.ReconfigResult) func([]byte) []byte {
	return func(b []byte) []byte { return wire.AppendReconfigResponse(b, seq, r) }
}

// tell tells of packets: RE-CONFIG by its parameters, DATA by its stream, SSN and TSN, both
// relative to the Initial TSNs, other chunks by their names.
func tell(l *sctptest.Lab, out []wire.Packet) string {
	l.Helper()
	var packets []string
	for _, pkt := range out {
		var list []string
		cs := pkt.Chunks()
		for c, ok := cs.Next(); ok; c, ok = cs.Next() {
			switch c.Type() {
			case wire.ChunkReconfig:
				list = append(list, tellReconfig(l, c))
			case wire.ChunkData:
				d := must.Get(wire.AsData(c))(l)
				list = append(list, fmt.Sprintf("DATA %d#%d +%d", d.Stream(), d.SSN(), d.TSN()-l.HostTSN))
			default:
				list = append(list, c.Type().String())
			}
		}
		packets = append(packets, strings.Join(list, " "))
	}
	return strings.Join(packets, " | ")
}

func tellReconfig(l *sctptest.Lab, c wire.Chunk) string {
	r := must.Get(wire.AsReconfig(c))(l)
	check.Equal(l, "flags", c.Flags(), 0)
	var list []string
	ps := r.Params()
	for p, ok := ps.Next(); ok; p, ok = ps.Next() {
		switch p.Type() {
		case wire.ParamOutgoingReset:
			q := must.Get(wire.AsOutgoingReset(p))(l)
			list = append(list, fmt.Sprintf("OUT +%d/%d last +%d %v", q.RequestSeq()-uint32(l.HostTSN), q.ResponseSeq(),
				int32(q.LastTSN()-l.HostTSN), streamNumbers(q.Streams())))
		case wire.ParamIncomingReset:
			q := must.Get(wire.AsIncomingReset(p))(l)
			list = append(list, fmt.Sprintf("IN +%d %v", q.RequestSeq()-uint32(l.HostTSN), streamNumbers(q.Streams())))
		case wire.ParamTSNReset:
			list = append(list, fmt.Sprintf("TSN +%d", must.Get(p.TSNResetSeq())(l)-uint32(l.HostTSN)))
		case wire.ParamReconfigResponse:
			q := must.Get(wire.AsReconfigResponse(p))(l)
			s := fmt.Sprintf("RESP %d %v", q.ResponseSeq(), q.Result())
			if sender, receiver, ok := q.NextTSNs(); ok {
				s += fmt.Sprintf(" +%d %d", sender-l.HostTSN, receiver)
			}
			list = append(list, s)
		default:
			q := must.Get(wire.AsAddStreams(p))(l)
			list = append(list, fmt.Sprintf("%v +%d %d", map[bool]string{true: "ADD-OUT", false: "ADD-IN"}[q.Type() ==
				wire.ParamAddOutStreams], q.RequestSeq()-uint32(l.HostTSN), q.Count()))
		}
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func streamNumbers(l wire.Uint16List) (list []uint16) {
	for i := range l.Len() {
		list = append(list, l.At(i))
	}
	return list
}

// resetEvents tells of the events about streams since the last time.
func resetEvents(h *sctptest.Host) string {
	var list []string
	for _, e := range h.Events {
		if e.Change == nil {
			continue
		}
		c := e.Change
		s := e.Kind.String()
		if e.Kind != assoc.EventTSNsReset {
			s += map[bool]string{true: " in", false: " out"}[c.Incoming]
		}
		if len(c.Streams) > 0 {
			s += fmt.Sprint(" ", c.Streams)
		}
		if c.Added > 0 {
			s += fmt.Sprintf(" +%d: %d out, %d in", c.Added, c.OutStreams, c.InStreams)
		}
		if c.ByPeer {
			s += " by peer"
		}
		if e.Err != nil {
			s += ": " + strings.TrimPrefix(e.Err.Error(), "sctp: ")
		}
		list = append(list, s)
	}
	h.Events = slices.DeleteFunc(h.Events, func(e sctptest.AssocEvent) bool { return e.Change != nil })
	return strings.Join(list, "; ")
}

// orderedOn makes a DATA chunk with a whole message.
func orderedOn(tsn wire.TSN, stream wire.StreamID, ssn wire.SSN, text string) []byte {
	b := wire.AppendDataHeader(nil, wire.DataFields{Flags: wire.FlagB | wire.FlagE, TSN: tsn, Stream: stream, SSN: ssn,
		PayloadLen: len(text)})
	return append(append(b, text...), wire.Padding(len(text))...)
}

// sendOn queues a message on a stream, and returns what is sent.
func sendOn(l *sctptest.Lab, stream wire.StreamID, text string) string {
	l.Helper()
	must.OK(l, l.A.Send(l.Now, &assoc.Message{Stream: stream, Body: [2][]byte{[]byte(text)}}))
	return tell(l, l.Flush())
}

// RE-CONFIG is listed where Config says so, and used where both sides have listed it.
func TestStreamReconfigurationIsNegotiated(t *testing.T) {
	for _, c := range []struct {
		name       string
		ours, peer assoc.StreamReset
		agreed     bool
	}{
		{"neither", 0, 0, false},
		{"one", allResets, 0, false},
		{"the other", 0, allResets, false},
		{"both", assoc.OfferStreamReset, assoc.AllowAddStreams, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, a, b := sctptest.Pair(t, &assoc.Config{StreamReset: c.ours}, &assoc.Config{StreamReset: c.peer})
			for from, offered := range []assoc.StreamReset{c.ours, c.peer} {
				kind := []wire.ChunkType{wire.ChunkInit, wire.ChunkInitAck}[from]
				init := must.Get(wire.AsInit(sctptest.ChunkOf(w.Seen(from, kind)[0].Pkt, kind)))(t)
				listed := false
				if p := sctptest.ParamOf(init, wire.ParamSupportedExtensions); p != nil {
					listed = must.Get(p.ListsChunk(wire.ChunkReconfig))(t)
				}
				// req 6525-5.1.1-1, 5061-4.2.7-1
				check.Equal(t, kind.String()+" lists RE-CONFIG", listed, offered != 0)
			}
			for _, x := range []*assoc.Assoc{a, b} {
				check.Equal(t, "agreed", x.Extensions().Has(assoc.StreamReconfiguration), c.agreed)
				err := addStreams(x, w.Now, 1, 0)
				// req 6525-5.1.1-2
				check.That(t, c.agreed == (err == nil) && c.agreed != errors.Is(err, syscall.EOPNOTSUPP) &&
					c.agreed != errors.Is(err, assoc.ErrStreamResetUnsupported), "AddStreams: %v", err)
			}
			w.Run(time.Second)
			check.That(t, c.agreed == (len(w.Seen(0, wire.ChunkReconfig)) > 0), "RE-CONFIG was sent, or not")
		})
	}
}

func TestReconfigParametersAreInNoOtherChunk(t *testing.T) {
	cfg := &assoc.Config{StreamReset: allResets}
	w, a, b := sctptest.Pair(t, cfg, cfg)
	must.OK(t, addStreams(a, w.Now, 1, 1))
	w.Run(time.Second)
	must.OK(t, resetStreams(b, w.Now, true, true, nil))
	w.Run(time.Second)
	must.OK(t, resetTSNs(a, w.Now))
	w.Run(time.Second)
	must.That(t, len(w.Seen(0, wire.ChunkReconfig)) > 0 && len(w.Seen(1, wire.ChunkReconfig)) > 0, "nothing was asked for")
	w.Each(func(_ sctptest.Capture, c wire.Chunk) {
		i, err := wire.AsInit(c)
		if err != nil { // no other chunk has parameters
			return
		}
		ps := i.Params()
		for p, ok := ps.Next(); ok; p, ok = ps.Next() {
			// req 6525-4-4
			check.That(t, p.Type() < wire.ParamOutgoingReset || p.Type() > wire.ParamAddInStreams, "%v has %v", c.Type(),
				p.Type())
		}
	})
}

// RE-CONFIG of a peer that has not been told of it is an unknown chunk.
func TestReconfigWithoutAnOffer(t *testing.T) {
	l := sctptest.Passive(t, nil)
	l.Expect(l.Send(l.Tag, reconfigChunk(addOut(1000, 1)), wire.AppendHeartbeat(nil, []byte("x"))), "HEARTBEAT ACK")
	check.Equal(t, "unknown chunks", l.A.Stats().UnknownChunks, 1)
	check.Equal(t, "inbound streams", l.A.InStreams(), 16)
}

func TestReconfigThatMakesNoSense(t *testing.T) {
	l := resetting(t, assoc.Config{})
	// req 6525-3.1-2
	out := l.Send(l.Tag, reconfigChunk(addOut(1000, 1), tsnReset(1001)))
	l.Expect(out, "ERROR")
	code, _ := sctptest.CauseOf(out[0])
	check.Equal(t, "cause", code, wire.CauseProtocolViolation)
	l.Expect(l.Send(l.Tag, reconfigChunk(func(b []byte) []byte {
		return wire.AppendParam(b, wire.ParamTSNReset, []byte{0, 0, 3, 0xe8, 0})
	}), wire.AppendHeartbeat(nil, []byte("x"))), "HEARTBEAT ACK")
	check.Equal(t, "malformed", l.A.Stats().Malformed, 2)
	check.Equal(t, "streams", l.A.InStreams(), 16)
	l.Expect(l.Send(l.Tag, reconfigChunk(addOut(1000, 1))), "RE-CONFIG SACK") // the number is still unused
}

// What goes out is reset when the peer has said so. What was given before goes before, and what
// comes later waits.
func TestOutgoingStreamsAreReset(t *testing.T) {
	l := resetting(t, assoc.Config{StreamReset: assoc.OfferStreamReset})
	check.Equal(t, "sent", sendOn(l, 3, "a"), "DATA 3#0 +0")
	must.OK(t, resetStreams(l.A, l.Now, true, false, []wire.StreamID{3}))
	// req 6525-5.1.2-2, 6525-4-3
	check.Equal(t, "sent", tell(l, l.Flush()), "[OUT +0/999 last +0 [3]]")
	// req 6525-5.1.1-3
	must.OK(t, addStreams(l.A, l.Now, 1, 0)) // which waits
	check.Equal(t, "sent", tell(l, l.Flush()), "")
	check.That(t, l.A.StreamResetUnderWay(), "it is not under way")
	// req 6525-5.1.2-1
	check.Equal(t, "sent", sendOn(l, 3, "b"), "")
	check.Equal(t, "sent on another stream", sendOn(l, 4, "x"), "DATA 4#0 +1")
	out := l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN), wire.ReconfigPerformed)))
	// req 6525-5.2.7-1
	check.Equal(t, "sent", tell(l, out), "[ADD-OUT +1 1] DATA 3#0 +2")
	check.Equal(t, "events", resetEvents(l.Host), "streams reset out [3]")
	check.Equal(t, "outstanding", l.A.Stats().Outstanding, 2) // the peer has said that it has got the first
	l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN)+1, wire.ReconfigDenied)))
	check.That(t, !l.A.StreamResetUnderWay(), "it goes on")
	check.Equal(t, "sent", sendOn(l, 3, "c"), "DATA 3#1 +3")
}

func TestResetIsDenied(t *testing.T) {
	l := resetting(t, assoc.Config{})
	sendOn(l, 3, "a")
	must.OK(t, resetStreams(l.A, l.Now, true, true, nil))
	check.Equal(t, "sent", tell(l, l.Flush()), "[OUT +0/999 last +0 [], IN +1 []]")
	sendOn(l, 3, "b")
	seq := uint32(l.HostTSN)
	out := l.Send(l.Tag, reconfigChunk(resetResponse(seq, wire.ReconfigDenied), resetResponse(seq+1, wire.ReconfigDenied)))
	check.Equal(t, "sent", tell(l, out), "DATA 3#1 +1")
	for _, e := range l.Host.Events {
		check.That(t, e.Change == nil || errors.Is(e.Err, assoc.ErrStreamResetDenied), "%v: %v", e.Kind, e.Err)
	}
	check.Equal(t, "events", resetEvents(l.Host), "streams reset out: the peer has refused a stream reconfiguration: Denied; "+
		"streams reset in: the peer has refused a stream reconfiguration: Denied")
}

// What comes in is reset when all that was sent before is here. What was sent later waits for that.
func TestIncomingStreamsAreReset(t *testing.T) {
	l := resetting(t, assoc.Config{})
	l.Send(l.Tag, orderedOn(1000, 3, 0, "a"))
	request := reconfigChunk(outReset(1000, uint32(l.HostTSN)-1, 1002, 3))
	l.Send(l.Tag, orderedOn(1002, 3, 2, "c"))
	// req 6525-5.2.2-1
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, request)), "[RESP 1000 In progress] SACK")
	l.Send(l.Tag, orderedOn(1003, 3, 0, "new"), orderedOn(1004, 4, 0, "other"))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "a|other|")
	check.Equal(t, "events", resetEvents(l.Host), "")
	out := l.Send(l.Tag, orderedOn(1001, 3, 1, "b"))
	// req 6525-5.2.2-2
	check.Equal(t, "answer", tell(l, out), "[RESP 1000 Success - Performed] SACK")
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "b|c|new|")
	check.Equal(t, "events", resetEvents(l.Host), "streams reset in [3] by peer")
	check.Equal(t, "cumulative TSN", cumOf(t, out), 1004)
	// req 6525-5.2.1-1
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, request)), "[RESP 1000 Success - Performed] SACK")
	l.Send(l.Tag, orderedOn(1005, 3, 1, "next")) // a stream is used again right after its reset
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "next|")
}

// A SACK goes with the answer, and so the peer learns what is missing.
func TestAnswerTakesASackAlong(t *testing.T) {
	l := resetting(t, assoc.Config{})
	out := l.Send(l.Tag, reconfigChunk(outReset(1000, uint32(l.HostTSN)-1, 1005)))
	check.Equal(t, "answer", tell(l, out), "[RESP 1000 In progress] SACK")
	check.Equal(t, "cumulative TSN", cumOf(t, out), 999)
}

// A stream that is reset while a message waits for another that was never sent is a mistake of the
// peer.
func TestResetBeforeAnSSNHasCome(t *testing.T) {
	l := resetting(t, assoc.Config{})
	l.Send(l.Tag, orderedOn(1000, 3, 1, "b"))
	out := l.Send(l.Tag, reconfigChunk(outReset(1000, uint32(l.HostTSN)-1, 1000, 3)))
	l.Expect(out, "ABORT")
	l.InState(assoc.Closed)
	last := l.Host.Events[len(l.Host.Events)-1]
	check.That(t, last.Kind == assoc.EventDown && last.Err != nil, "the last event is %v: %v", last.Kind, last.Err)
}

// The peer asks to reset what goes out.
func TestPeerAsksToResetOutgoingStreams(t *testing.T) {
	l := resetting(t, assoc.Config{})
	sendOn(l, 3, "a")
	// req 6525-5.1.2-3, 6525-5.2.3-1
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, reconfigChunk(inReset(1000, 3, 4)))), "[OUT +0/1000 last +0 [3 4]]")
	out := l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN), wire.ReconfigPerformed)))
	check.Equal(t, "answer", tell(l, out), "")
	check.Equal(t, "events", resetEvents(l.Host), "streams reset out [3 4] by peer")
	check.Equal(t, "sent", sendOn(l, 3, "b"), "DATA 3#0 +1")
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, reconfigChunk(inReset(1001, 4)))),
		"[RESP 1001 Success - Nothing to do] SACK")
}

// The peer may have been denied what it asks for, which is the default.
func TestPeerMayAskForNothing(t *testing.T) {
	for name, c := range map[string][]byte{
		"a reset of what comes in": reconfigChunk(outReset(1000, 0, 999)), "of what goes out": reconfigChunk(inReset(1000)),
		"of TSNs": reconfigChunk(tsnReset(1000)), "more streams in": reconfigChunk(addOut(1000, 1)),
		"more streams out": reconfigChunk(addIn(1000, 1)),
	} {
		t.Run(name, func(t *testing.T) {
			l := resetting(t, assoc.Config{StreamReset: assoc.OfferStreamReset})
			want := "[RESP 1000 Denied] SACK"
			if name == "of TSNs" { // req 6525-5.1.7-1
				want = "[RESP 1000 Denied +0 2147484648] SACK"
			}
			check.Equal(t, "answer", tell(l, l.Send(l.Tag, c)), want)
			check.Equal(t, "events", resetEvents(l.Host), "")

			l = resetting(t, assoc.Config{StreamReset: assoc.OfferStreamReset})
			must.OK(t, l.A.Reconfigure(l.Now, func(c *assoc.Config) { c.StreamReset = allResets }))
			check.That(t, !strings.Contains(tell(l, l.Send(l.Tag, c)), "Denied"), "it is denied, though it is allowed")
			must.OK(t, l.A.Reconfigure(l.Now, func(c *assoc.Config) { c.StreamReset = assoc.OfferStreamReset }))
			check.That(t, strings.Contains(tell(l, l.Send(l.Tag, reconfigChunk(addOut(1001, 1)))), "Denied"),
				"it is not denied any more")
		})
	}
}

// Streams are added, and used only then.
func TestStreamsAreAdded(t *testing.T) {
	l := resetting(t, assoc.Config{InStreams: 18, MaxOutStreams: 20})
	// req 6525-5.2.5-1
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, reconfigChunk(addOut(1000, 2)))), "[RESP 1000 Success - Performed] SACK")
	check.Equal(t, "events", resetEvents(l.Host), "streams added in +2: 16 out, 18 in by peer")
	l.Send(l.Tag, orderedOn(1000, 17, 0, "new"))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "new|")
	// req 6525-5.2.5-2
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, reconfigChunk(addOut(1001, 1)))), "[RESP 1001 Denied] SACK")
	// req 6525-5.2.6-1
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, reconfigChunk(addIn(1002, 5)))), "[RESP 1002 Denied] SACK")
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, reconfigChunk(addIn(1003, 4)))),
		"[RESP 1003 Success - Performed] SACK | [ADD-OUT +0 4]")
	big := &assoc.Message{Stream: 19, Body: [2][]byte{[]byte("x")}}
	// req 6525-5.1.5-1
	check.Error(t, "Send before the answer", l.A.Send(l.Now, big), assoc.ErrInvalidStream)
	l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN), wire.ReconfigPerformed)))
	check.Equal(t, "events", resetEvents(l.Host), "streams added out +4: 20 out, 18 in by peer")
	check.Equal(t, "sent", sendOn(l, 19, "x"), "DATA 19#0 +0")
	check.Equal(t, "stats", fmt.Sprint(l.A.OutStreams(), l.A.InStreams()), "20 18")
	check.Error(t, "AddStreams", addStreams(l.A, l.Now, 65535-20+1, 0), assoc.ErrTooManyStreams)
}

// The peer resets TSNs and all streams.
func TestPeerResetsTSNs(t *testing.T) {
	l := resetting(t, assoc.Config{})
	sendOn(l, 3, "a")
	l.Send(l.Tag, orderedOn(1000, 5, 0, "in"))
	request := reconfigChunk(tsnReset(1000))
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, request)), "SACK")
	check.Equal(t, "sent", sendOn(l, 3, "b"), "")
	out := l.Send(l.Tag, l.Sack(l.HostTSN))
	// req 6525-5.2.4-1, 6525-5.1.7-1
	check.Equal(t, "answer", tell(l, out), "[RESP 1000 Success - Performed +1 2147484649] SACK DATA 3#0 +1")
	check.Equal(t, "cumulative TSN", cumOf(t, out), 2147484648)
	check.Equal(t, "events", resetEvents(l.Host), "TSNs reset by peer")
	l.Send(l.Tag, l.Sack(l.HostTSN+1))
	out = l.Send(l.Tag, orderedOn(1001, 5, 1, "late")) // of before
	check.Equal(t, "cumulative TSN", cumOf(t, out), 2147484648)
	l.Send(l.Tag, orderedOn(2147484649, 5, 0, "new"))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "in|new|")
	check.Equal(t, "outstanding", l.A.Stats().Outstanding, 0)
	// req 6525-5.2.1-1
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, request)),
		"[RESP 1000 Success - Performed +1 2147484649] SACK")
}

// This side resets TSNs. What the peer has sent with new SSNs before its answer is here comes in
// order, and late SACKs of before do no harm.
func TestOwnResetOfTSNs(t *testing.T) {
	l := resetting(t, assoc.Config{})
	sendOn(l, 3, "a")
	l.Send(l.Tag, orderedOn(1000, 5, 0, "old"))
	must.OK(t, resetTSNs(l.A, l.Now))
	// req 6525-5.1.4-1
	check.Equal(t, "sent", tell(l, l.Flush()), "")
	check.Equal(t, "sent", sendOn(l, 3, "b"), "")
	check.Equal(t, "sent", tell(l, l.Send(l.Tag, l.Sack(l.HostTSN))), "[TSN +0]")
	l.Send(l.Tag, orderedOn(1002, 5, 0, "new"), orderedOn(1001, 5, 1, "last"))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "old|")
	next := l.HostTSN + 1 + 1<<31
	out := l.Send(l.Tag, reconfigChunk(func(b []byte) []byte {
		return wire.AppendTSNResetResponse(b, uint32(l.HostTSN), wire.ReconfigPerformed, 1002, next)
	}))
	// req 6525-5.2.7-1
	check.Equal(t, "sent", tell(l, out), "SACK DATA 3#0 +2147483649")
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "last|new|")
	check.Equal(t, "events", resetEvents(l.Host), "TSNs reset")
	l.Send(l.Tag, l.Sack(l.HostTSN-1)) // it was sent before, and comes now
	l.InState(assoc.Established)
	check.Equal(t, "outstanding", l.A.Stats().Outstanding, 1)
	l.Send(l.Tag, l.Sack(next))
	check.Equal(t, "outstanding", l.A.Stats().Outstanding, 0)
	l.Now = l.Now.Add(time.Hour) // the host was suspended
	l.Send(l.Tag, l.Sack(l.HostTSN-1))
	l.InState(assoc.Established)
	l.Expect(l.Send(l.Tag, l.Sack(next+1000)), "ABORT") // which was never sent
}

// In the packet of the answer comes DATA that the peer has sent before, as from libusrsctp 0.9.5.0,
// and behind it DATA of after. RE-CONFIG leads because it is a control chunk (RFC 9260 section
// 6.10).
func TestDataOfBeforeComesWithTheAnswerToAResetOfTSNs(t *testing.T) {
	l := resetting(t, assoc.Config{})
	l.Send(l.Tag, orderedOn(1000, 5, 0, "old"))
	must.OK(t, resetTSNs(l.A, l.Now))
	check.Equal(t, "sent", tell(l, l.Flush()), "[TSN +0]")
	answer := reconfigChunk(func(b []byte) []byte {
		return wire.AppendTSNResetResponse(b, uint32(l.HostTSN), wire.ReconfigPerformed, 1003, l.HostTSN+4096)
	})
	l.Send(l.Tag, answer, orderedOn(1001, 5, 1, "last"), orderedOn(1003, 5, 0, "new"))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "old|last|new|")
	check.Equal(t, "events", resetEvents(l.Host), "TSNs reset")
	out := l.Send(l.Tag, answer, orderedOn(1004, 5, 1, "next"))
	check.Equal(t, "cumulative TSN", cumOf(t, out), 1004)
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "next|")
}

// The packets of libusrsctp 0.9.5.0 behind a reset of TSNs that it meets in the middle of a
// message. It leaves one TSN out, and goes on with the rest of the message under SSN 0.
func TestOwnResetOfTSNsInTheMiddleOfAPeersMessage(t *testing.T) {
	l := resetting(t, assoc.Config{})
	fragment := func(tsn wire.TSN, ssn wire.SSN, flags uint8, text string) []byte {
		c := orderedOn(tsn, 7, ssn, text)
		c[1] = flags
		return c
	}
	l.Send(l.Tag, orderedOn(1000, 7, 0, "old"), fragment(1001, 1, wire.FlagB, "lost"))
	must.OK(t, resetTSNs(l.A, l.Now))
	check.Equal(t, "sent", tell(l, l.Flush()), "[TSN +0]")
	l.Send(l.Tag, fragment(1002, 1, 0, "lost"))
	l.Send(l.Tag, reconfigChunk(func(b []byte) []byte {
		return wire.AppendTSNResetResponse(b, uint32(l.HostTSN), wire.ReconfigPerformed, 1004, l.HostTSN+4096)
	}))
	l.Send(l.Tag, fragment(1004, 0, 0, "lost"))
	l.Send(l.Tag, fragment(1005, 0, wire.FlagE, "lost"))
	out := l.Send(l.Tag, orderedOn(1006, 6, 0, "six"), orderedOn(1007, 7, 1, "seven"))
	l.InState(assoc.Established)
	check.Equal(t, "cumulative TSN", cumOf(t, out), 1007)
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "old|six|seven|")
	l.Expect(l.Send(l.Tag, fragment(1008, 2, wire.FlagE, "x")), "ABORT") // this is no rest
}

// The same with I-DATA: the rest of the message goes on under MID 0, with FSNs of before. The
// stream waits for none of it.
func TestOwnResetOfTSNsInTheMiddleOfIData(t *testing.T) {
	l := resettingWith(t, assoc.Config{Interleaving: true}, nil, wire.ChunkIData, wire.ChunkIForwardTSN)
	at := func(tsn wire.TSN, mid wire.MID, fsn wire.FSN, flags uint8, text string) []byte {
		return iData(wire.IDataFields{TSN: tsn, Stream: 7, MID: mid, FSN: fsn, Flags: flags}, text)
	}
	const b, e = wire.FlagB, wire.FlagE
	l.Send(l.Tag, at(1000, 0, 0, b|e, "old"), at(1001, 1, 0, b, "lost"))
	must.OK(t, resetTSNs(l.A, l.Now))
	check.Equal(t, "sent", tell(l, l.Flush()), "[TSN +0]")
	l.Send(l.Tag, reconfigChunk(func(b []byte) []byte {
		return wire.AppendTSNResetResponse(b, uint32(l.HostTSN), wire.ReconfigPerformed, 1004, l.HostTSN+4096)
	}))
	l.Send(l.Tag, at(1006, 1, 0, b|e, "next"))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "old|")
	l.Send(l.Tag, at(1004, 0, 1, 0, "lost"))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "next|")
	l.Send(l.Tag, at(1005, 0, 2, e, "lost"))
	l.Wait(10 * time.Minute) // and it rests
	l.Send(l.Tag, at(1007, 2, 0, b|e, "last"))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "last|")
	check.Equal(t, "octets held", l.A.Stats().Buffered, 0)
	must.OK(t, l.A.Audit(0))
}

func TestOwnResetsOfTSNsAreRare(t *testing.T) {
	// req 6525-5.1.4-2
	l := resetting(t, assoc.Config{})
	reset := func(seq wire.TSN) {
		must.OK(t, resetTSNs(l.A, l.Now))
		l.Flush()
		l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN+seq), wire.ReconfigDenied)))
	}
	reset(0)
	check.Error(t, "again", resetTSNs(l.A, l.Now), assoc.ErrTSNResetTooSoon)
	l.Now = l.Now.Add(30 * time.Second)
	reset(1)
}

// The Re-configuration Timer is that of DATA: the RTO, doubled at each expiry, with errors of the
// path and the association.
func TestRequestThatNobodyAnswers(t *testing.T) {
	l := resetting(t, assoc.Config{AssocMaxRetrans: 3, PathMaxRetrans: 2, HeartbeatInterval: -1})
	sendOn(l, 3, "a")
	l.Send(l.Tag, l.Sack(l.HostTSN))
	must.OK(t, startInTurn(l, assoc.StreamRequest{ResetOut: true, Streams: []wire.StreamID{3}}))
	first := l.Flush()
	rto := sctptest.Paths(l.A)[0].RTO
	// req 6525-5.1.1-4
	for i := range 3 {
		check.Equal(t, "errors of the path", sctptest.Paths(l.A)[0].Errors, min(i, 3))
		check.Equal(t, "sent before the RTO", tell(l, l.Wait(rto-1)), "")
		out := l.Wait(1)
		check.That(t, len(out) == 1 && slices.Equal(out[0][12:], first[0][12:]), "sent %s, at first %s", tell(l, out),
			tell(l, first))
		rto *= 2
	}
	l.Wait(rto)
	l.InState(assoc.Closed)
	check.Equal(t, "events", resetEvents(l.Host), "streams reset out [3]: the peer does not answer requests for stream reconfiguration")
	last := l.Host.Events[len(l.Host.Events)-1]
	check.That(t, last.Kind == assoc.EventDown && errors.Is(last.Err, assoc.ErrTimeout), "the last event is %v: %v",
		last.Kind, last.Err)
}

// A peer that is there and does not answer requests loses nothing but those.
func TestRequestsThatThePeerIgnores(t *testing.T) {
	l := resetting(t, assoc.Config{AssocMaxRetrans: 3, HeartbeatInterval: -1})
	sendOn(l, 3, "a")
	l.Send(l.Tag, l.Sack(l.HostTSN))
	must.OK(t, resetStreams(l.A, l.Now, true, false, nil))
	l.Flush()
	sendOn(l, 3, "held")
	var told string
	for n := 0; !strings.Contains(told, "DATA"); n++ {
		must.That(t, n < 100, "the message that was held is not sent: %s", told)
		told += tell(l, l.Wait(time.Second)) + "; "
		must.OK(t, l.A.RequestHeartbeat(l.Now, l.Peer.Addr()))
		for _, out := range l.Flush() {
			if b := sctptest.ChunkOf(out, wire.ChunkHeartbeat); b != nil { // it is there
				l.Send(l.Tag, wire.AppendChunk(nil, wire.ChunkHeartbeatAck, 0, b.Value()))
			}
		}
	}
	check.That(t, strings.Count(told, "[OUT +0/") == 3 && strings.Contains(told, "DATA 3#1 +1"), "sent %s", told)
	l.InState(assoc.Established)
	check.Equal(t, "events", resetEvents(l.Host), "streams reset out: the peer does not answer requests for stream reconfiguration")
	check.Error(t, "another request", addStreams(l.A, l.Now, 1, 0), assoc.ErrStreamResetUnanswered)
}

// What is given behind a reset that waits for its turn waits for its answer, in order. It begins
// anew then, or goes on where the peer has denied it.
func TestMessagesBehindAResetThatWaits(t *testing.T) {
	// req 6525-5.1.2-1
	for result, want := range map[wire.ReconfigResult]string{
		wire.ReconfigPerformed: "DATA 3#0 +1 DATA 3#1 +2", wire.ReconfigDenied: "DATA 3#1 +1 DATA 3#2 +2",
	} {
		l := resetting(t, assoc.Config{})
		check.Equal(t, "sent", sendOn(l, 3, "before"), "DATA 3#0 +0")
		l.Send(l.Tag, l.Sack(l.HostTSN))
		ask := func(stream wire.StreamID) {
			must.Get(l.A.StartInTurn(l.Now, assoc.StreamRequest{ResetOut: true, Streams: []wire.StreamID{stream}}))(t)
		}
		ask(5)
		check.That(t, strings.Contains(tell(l, l.Flush()), "[OUT +0/"), "nothing is asked")
		ask(3)
		check.Equal(t, "sent", sendOn(l, 3, "held")+sendOn(l, 3, "and this"), "")
		told := tell(l, l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN), wire.ReconfigPerformed))))
		check.That(t, strings.Contains(told, "[OUT +1/") && !strings.Contains(told, "DATA"), "sent %s", told)
		check.Equal(t, "sent", tell(l, l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN)+1, result)))), want)
	}
}

func TestRequestInProgressIsNoError(t *testing.T) {
	// req 6525-5.2.7-1
	l := resetting(t, assoc.Config{HeartbeatInterval: -1})
	must.OK(t, addStreams(l.A, l.Now, 1, 0))
	for range 10 {
		check.Equal(t, "sent", tell(l, l.Flush()), "[ADD-OUT +0 1]")
		l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN), wire.ReconfigInProgress)))
		l.Now = l.A.NextTimeout()
		l.A.HandleTimeout(l.Now)
		check.Equal(t, "errors of the path", sctptest.Paths(l.A)[0].Errors, 0)
	}
}

// A request goes over another path when there is no answer.
func TestRequestTakesAnotherPath(t *testing.T) {
	cfg := assoc.Config{StreamReset: allResets, HeartbeatInterval: -1}
	w := sctptest.NewMulti(t, 2)
	a, _ := w.Associate(cfg, cfg)
	w.Run(10 * time.Second)
	w.Cut(0)
	since := w.Now
	must.OK(t, addStreams(a, w.Now, 3, 0))
	w.Run(5 * time.Second)
	check.Equal(t, "streams", a.OutStreams(), 13)
	check.That(t, len(w.Seen(w.Addrs[1][0], wire.ChunkReconfig, since)) > 0 &&
		len(w.Seen(w.Addrs[1][1], wire.ChunkReconfig, since)) > 0, "one path was tried")
}

func startInTurn(l *sctptest.Lab, r assoc.StreamRequest) error {
	_, err := l.A.StartInTurn(l.Now, r)
	return err
}

// A protocol that pairs streams has them never reset, and added in pairs.
func TestStreamsOfAPlacerArePaired(t *testing.T) {
	l := resettingUnder(t, assoc.Config{}, new(sctptest.Placer))
	// req 6525-7-1
	check.Error(t, "ResetStreams", startInTurn(l, assoc.StreamRequest{ResetOut: true, ResetIn: true}), assoc.ErrStreamsPaired)
	check.Error(t, "ResetTSNs", startInTurn(l, assoc.StreamRequest{ResetTSNs: true}), assoc.ErrStreamsPaired)
	check.Error(t, "AddStreams", startInTurn(l, assoc.StreamRequest{AddOut: 2, AddIn: 1}), assoc.ErrStreamsPaired)
	for i, c := range []func(uint32) []byte{
		func(n uint32) []byte { return reconfigChunk(outReset(n, 0, 999)) },
		func(n uint32) []byte { return reconfigChunk(inReset(n)) },
		func(n uint32) []byte { return reconfigChunk(tsnReset(n)) },
		func(n uint32) []byte { return reconfigChunk(addOut(n, 1)) },
		func(n uint32) []byte { return reconfigChunk(addIn(n, 1)) },
	} {
		want := fmt.Sprintf("[RESP %d Denied", 1000+i)
		if i == 2 {
			want += " +0 2147484648" // the TSNs that this response always has
		}
		check.Equal(t, "answer", tell(l, l.Send(l.Tag, c(1000+uint32(i)))), want+"] SACK")
	}
	check.Equal(t, "answer", tell(l, l.Send(l.Tag, reconfigChunk(addOut(1005, 2), addIn(1006, 2)))),
		"[RESP 1005 Success - Performed, RESP 1006 Success - Performed] SACK | [ADD-OUT +0 2]")
	l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN), wire.ReconfigPerformed)))
	must.OK(t, startInTurn(l, assoc.StreamRequest{AddOut: 3, AddIn: 3}))
	check.Equal(t, "sent", tell(l, l.Flush()), "[ADD-OUT +1 3, ADD-IN +2 3]")
}

// More streams than a packet names have to be named in several requests.
func TestStreamsThatOnePacketNames(t *testing.T) {
	l := resetting(t, assoc.Config{})
	most := l.A.MaxStreamList()
	check.Error(t, "one more", resetStreams(l.A, l.Now, true, true, make([]wire.StreamID, most+1)), assoc.ErrStreamResetList)
	must.OK(t, resetStreams(l.A, l.Now, true, true, make([]wire.StreamID, most)))
	out := l.Flush()
	check.That(t, len(out) == 1 && len(out[0]) <= sctptest.MTU, "%d packets, the first of %d octets", len(out), len(out[0]))
}

// A shutdown waits until messages that a reset holds are sent; then requests end. The peer's are
// answered for as long as it may send.
func TestResetsInAShutdown(t *testing.T) {
	l := resetting(t, assoc.Config{})
	sendOn(l, 3, "a")
	must.OK(t, resetStreams(l.A, l.Now, true, false, nil))
	l.Flush()
	sendOn(l, 3, "held")
	must.OK(t, l.A.Shutdown(l.Now))
	check.Equal(t, "sent", tell(l, l.Send(l.Tag, l.Sack(l.HostTSN))), "")
	l.InState(assoc.ShutdownPending)
	check.Error(t, "another request", addStreams(l.A, l.Now, 1, 0), assoc.ErrClosing)
	out := l.Send(l.Tag, reconfigChunk(resetResponse(uint32(l.HostTSN), wire.ReconfigPerformed)))
	check.Equal(t, "sent", tell(l, out), "DATA 3#0 +1")
	check.Equal(t, "sent", tell(l, l.Send(l.Tag, l.Sack(l.HostTSN+1))), "SHUTDOWN")
	l.InState(assoc.ShutdownSent)
	check.Equal(t, "sent", tell(l, l.Send(l.Tag, reconfigChunk(outReset(1000, uint32(l.HostTSN), 999)))),
		"[RESP 1000 Success - Performed] SACK")
	check.Equal(t, "sent", tell(l, l.Send(l.Tag, reconfigChunk(inReset(1001)))), "[RESP 1001 Denied] SACK")
	l.Send(l.Tag, wire.AppendShutdownAck(nil))
	l.InState(assoc.Closed)

	l = resetting(t, assoc.Config{}) // nothing is held: the request has no answer to expect any more
	must.OK(t, resetStreams(l.A, l.Now, false, true, nil))
	l.Flush()
	must.OK(t, l.A.Shutdown(l.Now))
	check.Equal(t, "sent", tell(l, l.Flush()), "SHUTDOWN")
	check.Equal(t, "events", resetEvents(l.Host), "streams reset in: association is shutting down or closed")
}

// What the peer has sent cannot be put in order before a reset of TSNs is answered: the end waits.
func TestShutdownWaitsForAResetOfTSNs(t *testing.T) {
	l := resetting(t, assoc.Config{})
	l.Send(l.Tag, orderedOn(1000, 5, 0, "old"))
	must.OK(t, resetTSNs(l.A, l.Now))
	check.Equal(t, "sent", tell(l, l.Flush()), "[TSN +0]")
	l.Send(l.Tag, orderedOn(1001, 5, 0, "new"))
	check.Equal(t, "sent", tell(l, l.Send(l.Tag, wire.AppendShutdown(nil, l.HostTSN-1))), "")
	l.InState(assoc.ShutdownReceived)
	out := l.Send(l.Tag, reconfigChunk(func(b []byte) []byte {
		return wire.AppendTSNResetResponse(b, uint32(l.HostTSN), wire.ReconfigPerformed, 1001, l.HostTSN+1<<31)
	}))
	check.That(t, strings.HasSuffix(tell(l, out), "SHUTDOWN ACK"), "sent %s", tell(l, out))
	check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "old|new|")
}

// A restart of the peer ends all, and requests are numbered anew.
func TestRestartInAReset(t *testing.T) {
	for name, begin := range map[string]func(l *sctptest.Lab) error{
		"of streams": func(l *sctptest.Lab) error { return resetStreams(l.A, l.Now, true, true, nil) },
		"of TSNs":    func(l *sctptest.Lab) error { return resetTSNs(l.A, l.Now) },
		"by the peer": func(l *sctptest.Lab) error {
			l.Send(l.Tag, reconfigChunk(outReset(1000, 0, 1005, 3)))
			l.Send(l.Tag, orderedOn(1006, 3, 0, "deferred"))
			return nil
		},
		"of TSNs by the peer": func(l *sctptest.Lab) error {
			sendOn(l, 3, "a")
			l.Send(l.Tag, reconfigChunk(tsnReset(1000)))
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := resetting(t, assoc.Config{})
			must.OK(t, begin(l))
			l.Flush()
			must.OK(t, l.A.Send(l.Now, &assoc.Message{Stream: 3, Body: [2][]byte{[]byte("held")}, Token: 77}))
			l.Flush()
			l.PeerTag, l.TSN = 0x22222222, 5000
			l.Initiate(wire.AppendSupportedExtensions(nil, wire.ChunkReconfig))
			l.Send(l.Tag, wire.AppendCookieEcho(nil, l.Cookie))
			_, restarted := l.Host.Event(assoc.EventRestart)
			must.That(t, restarted, "no restart")
			failed := l.Host.Tokens(assoc.EventSendFailed)
			check.That(t, slices.Contains(failed, 77), "the message that was held has not failed: %v", failed)
			if name == "of streams" || name == "of TSNs" {
				check.That(t, strings.Contains(resetEvents(l.Host), "the peer has restarted"), "nobody says so")
			}
			check.Equal(t, "sent", sendOn(l, 3, "b"), "DATA 3#0 +0")
			l.Send(l.Tag, l.Sack(l.HostTSN), orderedOn(5000, 3, 0, "in"))
			check.Equal(t, "messages", textOf(sctptest.Drain(l.A)), "in|")
			check.Equal(t, "answer", tell(l, l.Send(l.Tag, reconfigChunk(addOut(5000, 1)))),
				"[RESP 5000 Success - Performed] SACK")
			must.OK(t, addStreams(l.A, l.Now, 1, 0))
			check.Equal(t, "sent", tell(l, l.Flush()), "[ADD-OUT +0 1]")
		})
	}
}

// The end of an association is its last event, and what was under way has ended before it.
func TestEndInAReset(t *testing.T) {
	l := resetting(t, assoc.Config{})
	must.OK(t, resetStreams(l.A, l.Now, true, true, nil))
	l.Flush()
	l.Send(l.Tag, wire.AppendAbort(nil, false))
	l.InState(assoc.Closed)
	events := l.Host.Events
	must.That(t, len(events) >= 3 && events[len(events)-1].Kind == assoc.EventDown, "events %v", events)
	check.That(t, strings.HasPrefix(resetEvents(l.Host), "streams reset out: ") && l.A.NextTimeout() > l.Now.Add(time.Hour),
		"a timer runs, or nobody was told")
	check.Error(t, "a request", resetStreams(l.A, l.Now, true, true, nil), assoc.ErrClosing)
}

// An association that is idle does what it is asked for, and is idle again.
func TestResetOfAnIdleAssociation(t *testing.T) {
	cfg := &assoc.Config{StreamReset: allResets, HeartbeatInterval: -1}
	w, a, b := sctptest.Pair(t, cfg, cfg)
	w.Send(a, 1, []byte("x"))
	w.Run(time.Minute)
	sctptest.Drain(b)
	w.Run(time.Minute)
	must.That(t, a.GoIdle() && b.GoIdle(), "idle: %v and %v", a.IsIdle(), b.IsIdle())
	must.OK(t, resetStreams(a, w.Now, true, true, nil))
	w.Run(10 * time.Second)
	must.OK(t, resetTSNs(b, w.Now))
	w.Run(10 * time.Second)
	check.That(t, a.GoIdle() && b.GoIdle(), "idle: %v and %v", a.IsIdle(), b.IsIdle())
	w.Send(a, 1, []byte("y"))
	w.Run(time.Second)
	check.Equal(t, "messages", textOf(sctptest.Drain(b)), "y|")
	for i, h := range w.Hosts {
		check.That(t, strings.Contains(resetEvents(h), "TSNs reset"), "host %d has not reset TSNs", i)
	}
}
