package mpa

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
)

func TestStartupOfBothRoles(t *testing.T) {
	const some = "private data"
	for _, row := range []struct {
		name             string
		a, b             Config
		asked, answered  *llp.Setup
		private          string
		request, reply   string // behind the key
		crc              bool
		revision         uint8
		requestEv, accEv string
	}{
		// req 5044-7.1.2-1, 5044-7.1.2-3, 5044-7.1.2-8, 5044-7.1.2-11, 5044-7.1.2-14, 5044-7.1.1-1,
		// 5044-7.1.1-3, 5044-7.1-5, 5044-7.1-7
		// req 5044-1.2-2, 5044-4.4-2, 5044-4.4-3: CRCs by default
		{"plain", Config{}, Config{}, nil, nil, "", "\x40\x01\x00\x00", "\x40\x01\x00\x00", true, 1, "request", "accepted"},
		// req 5044-7.1.2-2, 5044-7.1.2-9, 5044-7.1.1-22, 5044-7.1.2-23, 5044-7.1.1-15
		{"private data", Config{}, Config{}, nil, nil, some, "\x40\x01\x00\x0c" + some, "\x40\x01\x00\x0c" + some, true, 1,
			"request " + some, "accepted " + some},
		{"512 octets", Config{}, Config{}, nil, nil, strings.Repeat("x", 512), "\x40\x01\x02\x00" + strings.Repeat("x", 512),
			"\x40\x01\x02\x00" + strings.Repeat("x", 512), true, 1, "request " + strings.Repeat("x", 512),
			"accepted " + strings.Repeat("x", 512)},
		// req 5044-4.4-4, 5044-4.4-8, 5044-7.1.1-8
		{"no CRC at all", Config{NoCRC: true}, Config{NoCRC: true}, nil, nil, "", "\x00\x01\x00\x00", "\x00\x01\x00\x00", false,
			1, "request", "accepted"},
		// req 5044-4.4-7, 5044-7.1.1-9
		{"CRC wanted by the initiator", Config{}, Config{NoCRC: true}, nil, nil, "", "\x40\x01\x00\x00", "\x00\x01\x00\x00",
			true, 1, "request", "accepted"},
		{"CRC wanted by the responder", Config{NoCRC: true}, Config{}, nil, nil, "", "\x00\x01\x00\x00", "\x40\x01\x00\x00",
			true, 1, "request", "accepted"},
		// req 5044-7.1.1-6, 5044-7.1.1-7
		{"Markers one way", Config{Markers: true}, Config{}, nil, nil, "", "\xc0\x01\x00\x00", "\x40\x01\x00\x00", true, 1,
			"request", "accepted"},
		// req 6581-6-1, 6581-9.3-1, 6581-10-1
		{"enhanced", Config{}, Config{}, &llp.Setup{IRD: 1, ORD: 2}, &llp.Setup{IRD: 2, ORD: 1}, some,
			"\x50\x02\x00\x10\x00\x01\x00\x02" + some, "\x50\x02\x00\x10\x00\x02\x00\x01" + some, true, 2,
			"request " + some + " 1/2", "accepted " + some + " 2/1"},
		{"enhanced, left to the upper layer", Config{}, Config{}, &llp.Setup{IRD: 1, ORD: 2}, nil, "",
			"\x50\x02\x00\x04\x00\x01\x00\x02", "\x50\x02\x00\x04\x3f\xff\x3f\xff", true, 2, "request 1/2",
			"accepted 16383/16383"},
		// req 6581-9.2-4
		{"peer to peer", Config{}, Config{}, &llp.Setup{PeerToPeer: true, RTR: llp.RTRRead}, &llp.Setup{RTR: llp.RTRRead}, "",
			"\x50\x02\x00\x04\x80\x00\x40\x00", "\x50\x02\x00\x04\x80\x00\x40\x00", true, 2, "request 0/0",
			"accepted 0/0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := initiator(t, row.a, row.asked, row.private), responder(t, row.b)
			check.That(t, a.State() == Requesting && b.State() == Awaiting && len(b.take()) == 0, "states %v, %v",
				a.State(),
				b.State())
			out := a.take()
			must.Equal(t, "Request", string(out), requestKey+row.request)
			b.feed(out)
			check.That(t, b.takeEvents() == row.requestEv && b.State() == Pending && len(b.take()) == 0, "state %v",
				b.State())
			must.OK(t, b.Accept(b.ds, row.answered, []byte(row.private)))
			out = b.take()
			must.Equal(t, "Reply", string(out), replyKey+row.reply)
			a.feed(out)
			check.Equal(t, "events", a.takeEvents(), row.accEv)
			check.That(t, a.State() == Open && b.State() == Open && a.UsesCRC() == row.crc && b.UsesCRC() == row.crc,
				"states %v, %v, CRC %v, %v", a.State(), b.State(), a.UsesCRC(), b.UsesCRC())
			// req 5044-3-13, 5044-7.1.1-18
			check.That(t, a.Revision() == row.revision && b.Revision() == row.revision && a.IsInitiator() &&
				!b.IsInitiator(),
				"revisions %d, %d", a.Revision(), b.Revision())
			// req 5044-7.1-2, 5044-7.1-6, 5044-7.1.2-10, 5044-4.4-6: DDP goes both ways, whatever
			// was agreed.
			a.say("hello")
			first := a.take()
			b.feed(first)
			b.say("hi")
			a.write(b, 3, patternOf(2000))
			back := b.take()
			a.feed(back)
			exchange(a, b)
			must.That(t, len(first) > 8 && len(back) > 8, "nobody speaks")
			// req 5044-C.1-1
			head := map[bool]int{true: markerLen + lengthLen, false: lengthLen}
			check.That(t, first[head[row.b.Markers]]&3 == 1 && back[head[row.a.Markers]]&3 == 1,
				"versions of DDP: %x, %x", first,
				back)
			check.Equal(t, "the responder's user", b.heard(), `untagged "hello", completed 7, tagged 3+2000`)
			check.Equal(t, "the initiator's user", a.heard(), `completed 7, untagged "hi", completed 8`)
			check.That(t, bytes.Equal(b.memory[3:2003], patternOf(2000)), "the memory is not what was written")
		})
	}
}

// Frames are taken apart however the stream is cut.
func TestFramesArriveInPieces(t *testing.T) {
	// req 5044-7.1.2-3, 5044-7.1.2-11: nothing happens before the frame is whole.
	a, b := initiator(t, Config{}, nil, "hello"), responder(t, Config{})
	for _, octet := range a.take() {
		b.feed([]byte{octet})
	}
	must.Equal(t, "events", b.takeEvents(), "request hello")
	must.OK(t, b.Accept(b.ds, nil, []byte("hi")))
	for _, octet := range b.take() {
		a.feed([]byte{octet})
	}
	check.Equal(t, "events", a.takeEvents(), "accepted hi")
}

func TestRejection(t *testing.T) {
	for _, row := range []struct {
		name    string
		asked   *llp.Setup
		setup   *llp.Setup
		private string
		reply   string // behind the key
		event   string
	}{
		// req 5044-7.1.2-5, 5044-7.1.2-6, 5044-7.1.2-18, 5044-7.1.1-12
		{"plain", nil, nil, "too few", "\x60\x01\x00\x07too few", `rejected too few: ddp: session rejected by the peer: "too few"`},
		{"without private data", nil, nil, "", "\x60\x01\x00\x00", "rejected: ddp: session rejected by the peer"},
		{"enhanced", &llp.Setup{IRD: 1, ORD: 1}, &llp.Setup{IRD: 4, ORD: 8}, "", "\x70\x02\x00\x04\x00\x04\x00\x08",
			"rejected 4/8: ddp: session rejected by the peer"},
		{"enhanced, left to the upper layer", &llp.Setup{IRD: 1, ORD: 1}, nil, "", "\x70\x02\x00\x04\x3f\xff\x3f\xff",
			"rejected 16383/16383: ddp: session rejected by the peer"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, b := initiator(t, Config{}, row.asked, ""), responder(t, Config{})
			b.feed(a.take())
			b.takeEvents()
			must.OK(t, b.Reject(row.setup, []byte(row.private)))
			out := b.take()
			must.Equal(t, "Reply", string(out), replyKey+row.reply)
			// req 5044-7.1.2-7: MPA was exited, and TCP is left alone.
			check.That(t, b.takeEvents() == "left" && b.State() == Left && b.Err() == nil && !b.fin, "state %v, %v",
				b.State(),
				b.Err())
			a.feed(out)
			// req 5044-7.1.2-13
			check.Equal(t, "events", a.takeEvents(), row.event)
			check.That(t, a.State() == Left && errors.Is(a.Err(), syscall.ECONNREFUSED) && len(a.take()) == 0 && !a.fin,
				"state %v, %v", a.State(), a.Err())
			a.Abort()
			b.Lost(errors.New("later"))
			a.peerFin()
			check.That(t, a.takeEvents()+b.takeEvents() == "" && a.State() == Left && b.State() == Left,
				"states %v, %v",
				a.State(), b.State())
		})
	}
	// A peer without RFC 6581 may reject in the way that it knows.
	a := initiator(t, Config{}, &llp.Setup{}, "")
	a.feed((&Frame{IsReply: true, Revision: 1, Rejected: true}).Append(nil))
	check.Equal(t, "state", a.State(), Left)
}

// expectRefused checks that the connection has ended for a start-up frame (code 4).
func expectRefused(t *testing.T, name string, e *end, fault FrameFault) {
	t.Helper()
	var err *Error
	var f *FrameError
	check.That(t, e.State() == Ended && errors.As(e.Err(), &err) && err.Code == CodeFrame && errors.As(e.Err(), &f) &&
		f.Fault == fault && errors.Is(e.Err(), syscall.EPROTONOSUPPORT), "%s: state %v, %v, want %v", name, e.State(),
		e.Err(),
		fault)
	check.That(t, strings.Contains(e.takeEvents(), "ended: mpa: no MPA connection: ") && len(e.take()) == 0,
		"%s: nobody is told",
		name)
}

func TestMalformedStartups(t *testing.T) {
	// req 5044-7.1.1-17, 5044-7.1.2-4, 5044-7.1.2-12, 5044-7.1.2-16, 5044-8-4, 5044-8-9: the
	// connection ends at once, and the user is told why.
	for _, row := range malformed {
		for _, step := range []int{1, 1000} {
			b := responder(t, Config{})
			a := initiator(t, Config{}, nil, "")
			a.take()
			for _, side := range []struct {
				e     *end
				frame []byte
			}{{b, request("hello")}, {a, reply("hello")}} {
				for in := row.wrong(side.frame); len(in) > 0 && side.e.State() != Ended; in = in[min(step, len(in)):] {
					side.e.feed(in[:min(step, len(in))])
				}
				expectRefused(t, row.name, side.e, row.fault)
			}
			// req 5044-8-10: the DDP stream of the initiator has lost its lower layer.
			check.Equal(t, row.name+": user", a.heard(), "fatal 3/0")
		}
	}
}

func TestOctetsThatComeTooEarly(t *testing.T) {
	// req 5044-7.1.1-21: what follows a frame before it is answered is no part of it. Each in one
	// piece, and apart.
	for _, apart := range []bool{false, true} {
		feed := func(e *end, frame []byte) {
			if apart {
				e.feed(frame)
				e.feed([]byte{0})
			} else {
				e.feed(append(frame, 0))
			}
		}
		b := responder(t, Config{})
		feed(b, request("hello"))
		expectRefused(t, "behind a Request", b, FaultPrivateData)
		a := initiator(t, Config{}, nil, "")
		a.take()
		feed(a, reply(""))
		expectRefused(t, "behind a Reply", a, FaultPrivateData)
	}
	b := responder(t, Config{})
	b.feed(request(""))
	must.OK(t, b.Reject(nil, nil))
	b.feed([]byte{0})
	expectRefused(t, "before a Reply that rejects", b, FaultPrivateData)
}

func TestAnswersOfTheWrongKind(t *testing.T) {
	for _, row := range []struct {
		name  string
		asked *llp.Setup
		reply Frame
	}{
		{"plain Reply to an enhanced Request", &llp.Setup{IRD: 1}, Frame{IsReply: true, Revision: 2}},
		{"the same of revision 1", &llp.Setup{IRD: 1}, Frame{IsReply: true, Revision: 1}},
		{"enhanced Reply to a plain Request", nil, Frame{IsReply: true, Revision: 2, Setup: &llp.Setup{}}},
	} {
		a := initiator(t, Config{}, row.asked, "")
		a.take()
		a.feed(row.reply.Append(nil))
		expectRefused(t, row.name, a, FaultKind)
	}
}

func TestPlainRequestsGetPlainAnswers(t *testing.T) {
	for _, rev := range []byte{1, 2} {
		// req 6581-6-3, 6581-10-2, 6581-10-4
		b := responder(t, Config{})
		b.feed((&Frame{CRC: true, Revision: rev}).Append(nil))
		must.Equal(t, "events", b.takeEvents(), "request")
		check.Equal(t, "enhanced answer", b.Accept(b.ds, &llp.Setup{}, nil), llp.ErrState)
		check.Equal(t, "enhanced rejection", b.Reject(&llp.Setup{}, nil), llp.ErrState)
		must.OK(t, b.Accept(b.ds, nil, nil))
		check.Equal(t, "Reply", string(b.take()), replyKey+"\x40"+string(rune(rev))+"\x00\x00")
	}
	// req 6581-10-3
	a := initiator(t, Config{}, nil, "")
	check.Equal(t, "revision of a Request that wants nothing", a.take()[17], 1)
}

func TestStartupTakesLimitedTime(t *testing.T) {
	const limit = 3 * time.Second
	for _, row := range []struct {
		name string
		e    *end
	}{
		// req 5044-7.1.2-21, 5044-7.1.2-26: a responder that nobody asks, as when both ends are one
		{"responder", responder(t, Config{StartupTimeout: limit})},
		{"initiator", initiator(t, Config{StartupTimeout: limit}, nil, "")},
	} {
		row.e.take()
		row.e.feed([]byte("MPA ID R")) // a little does not help
		must.Equal(t, row.name+": deadline", row.e.Deadline(), row.e.now.Add(limit))
		row.e.HandleTimeout(row.e.Deadline() - 1)
		check.That(t, row.e.State() != Ended, "%s: ended too early", row.name)
		row.e.HandleTimeout(row.e.Deadline())
		check.That(t, row.e.State() == Ended && errors.Is(row.e.Err(), ErrStartupTimeout) &&
			errors.Is(row.e.Err(), syscall.ETIMEDOUT), "%s: state %v, %v", row.name, row.e.State(), row.e.Err())
		check.Equal(t, row.name+": events", row.e.takeEvents(), "ended: "+ErrStartupTimeout.Error())
	}
	// The answer of the upper layer may take as long as it likes.
	b := responder(t, Config{StartupTimeout: limit})
	b.feed(request(""))
	b.HandleTimeout(b.now.Add(time.Hour))
	check.Equal(t, "state", b.State(), Pending)
}

func TestArgumentsOfTheStartup(t *testing.T) {
	most := make([]byte, llp.MaxPrivateData)
	e := newEnd(t)
	for _, row := range []struct {
		name    string
		setup   *llp.Setup
		private []byte
		want    error
	}{
		{"512 octets", nil, most, nil},
		{"513 octets", nil, append(most, 0), llp.ErrPrivateDataTooLong},
		{"508 octets behind a setup", &llp.Setup{}, most[:508], nil},
		{"509 octets behind a setup", &llp.Setup{}, most[:509], llp.ErrPrivateDataTooLong},
		{"a depth of 15 bits", &llp.Setup{IRD: 1 << 14}, nil, llp.ErrDepth},
	} {
		_, err := NewInitiator(0, Config{}, newEnd(t).ds, row.setup, row.private)
		check.Equal(t, row.name, err, row.want)
		b := responder(t, Config{})
		f := Frame{Revision: 2, CRC: true}
		if row.setup != nil {
			f.Setup = &llp.Setup{}
		}
		b.feed(f.Append(nil))
		check.Equal(t, row.name+" in Reject", responderLike(t, f).Reject(row.setup, row.private), row.want)
		check.Equal(t, row.name+" in Accept", b.Accept(b.ds, row.setup, row.private), row.want)
		check.That(t, (b.State() == Open) == (row.want == nil), "%s: state %v", row.name, b.State())
	}
	e.Conn = NewResponder(0, Config{})
	check.Equal(t, "Accept before there is a Request", e.Accept(e.ds, nil, nil), llp.ErrState)
	e.feed(request(""))
	must.OK(t, e.Accept(e.ds, nil, nil))
	check.Equal(t, "second answer", e.Accept(e.ds, nil, nil), llp.ErrState)
	check.Equal(t, "Reject after Accept", e.Reject(nil, nil), llp.ErrState)
	gone := errors.New("gone")
	late := responder(t, Config{})
	late.feed(request(""))
	late.Lost(gone)
	check.Error(t, "Accept after the end", late.Accept(late.ds, nil, nil), gone)
}

// responderLike is a responder that was asked by a frame.
func responderLike(t *testing.T, f Frame) *end {
	b := responder(t, Config{})
	b.feed(f.Append(nil))
	return b
}

func TestResponderWaitsForTheFirstFPDU(t *testing.T) {
	// req 5044-7.1.2-15: no FPDU, and no Marker.
	a, b := initiator(t, Config{Markers: true}, nil, ""), responder(t, Config{})
	b.feed(a.take())
	must.OK(t, b.Accept(b.ds, nil, nil))
	b.say("I was first")
	frame := b.take()
	check.Equal(t, "octets behind the Reply", len(frame), FrameHeaderLen)
	check.That(t, !b.HasOutput() && b.ds.Pending(), "it has something to say, and is asked for it")
	a.feed(frame)
	a.say("now")
	exchange(a, b)
	check.Equal(t, "the initiator's user", a.heard(), `completed 7, untagged "I was first"`)
	// One that is not valid does not count.
	a, b = initiator(t, Config{}, nil, ""), responder(t, Config{})
	b.feed(a.take())
	must.OK(t, b.Accept(b.ds, nil, nil))
	b.say("I was first")
	b.take()
	bad := fpdu(segment(1, "x"))
	bad[5] ^= 1
	b.feed(bad)
	check.That(t, len(b.take()) == 0 && b.heard() == "fatal 3/2", "FPDUs behind an invalid one")
}

// Its user may be done with it before the peer has answered.
func TestGracefulEndBeforeTheAnswer(t *testing.T) {
	a, b := initiator(t, Config{}, nil, ""), responder(t, Config{})
	a.say("all there is")
	a.ds.CloseSend()
	exchange(a, b)
	must.OK(t, b.Accept(b.ds, nil, nil))
	exchange(a, b)
	check.That(t, a.fin && a.State() == Closing && b.State() == PeerClosed, "states %v, %v", a.State(), b.State())
	check.Equal(t, "the responder's user", b.heard(), `untagged "all there is", peer closed`)
	a, b = initiator(t, Config{}, nil, ""), responder(t, Config{})
	a.ds.CloseSend() // nothing was said at all
	exchange(a, b)
	check.That(t, !a.fin && a.State() == Requesting, "state %v", a.State())
	must.OK(t, b.Accept(b.ds, nil, nil))
	exchange(a, b)
	check.That(t, a.fin && b.State() == PeerClosed, "state %v", b.State())
}
