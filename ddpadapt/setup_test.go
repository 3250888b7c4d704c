package ddpadapt

import (
	"errors"
	"strings"
	"testing"

	"github.com/rddp-go/rddp/ddp"
	"github.com/rddp-go/rddp/ddp/llp"
	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/internal/test/must"
	"github.com/rddp-go/rddp/sctp/assoc"
	"github.com/rddp-go/rddp/sctp/wire"
)

// injectControl injects an enhanced message, or a plain one for a nil setup.
func (e *end) injectControl(id wire.StreamID, ssn uint16, fn functionCode, setup *llp.Setup,
	private string) assoc.Verdict {
	b := make([]byte, controlLen)
	putControl(b, ssn, fn)
	if setup != nil {
		b = llp.AppendSetup(b, *setup)
	}
	return e.injectMessage(id, PPIDControl, wire.FlagU, append(b, private...))
}

// userOctets is the user message in a packet.
func (p *packet) userOctets() string { return string(p.data.Payload()) }

func TestEnhancedSessionAccepted(t *testing.T) {
	a, b := newPair(t)
	ua, ub := a.newStream(4), b.newStream(4)
	sa := must.Get(a.OpenEnhanced(0, 0, ua.Stream, llp.Setup{IRD: 5, ORD: 6}, []byte("hello")))(t)
	// req 6581-7-1, 6581-7-2, 6581-7-4, 6581-1.2-1, 6581-11-1: code 5, the connection data, then
	// the private data.
	init := a.pullPackets()
	must.That(t, len(init) == 1 && init[0].userOctets() == "\x00\x00\x00\x05\x00\x05\x00\x06hello" &&
		init[0].data.PPID() == 17,
		"%q", init[0].userOctets())
	b.deliverPackets(init...)
	a.ackArrived()
	// req 6581-7-8, 6581-7-9, 6581-9.1-3
	ev := b.expectEvents(EventInitiate)[0]
	must.That(t, ev.Setup != nil && *ev.Setup == (llp.Setup{IRD: 5, ORD: 6}) && string(ev.Private) == "hello",
		"event %+v, setup %+v", ev, ev.Setup)
	sb := ev.Session
	must.OK(t, sb.AcceptEnhanced(0, ub.Stream, llp.Setup{IRD: 7, ORD: 4, PeerToPeer: true, RTR: llp.RTRRead}, nil))
	ub.sendText("s1") // req 6581-7-12
	// req 6581-10-1, 6581-9.2-12: code 6; A is 0 as it was asked for; private data may have no
	// octets.
	ans := b.pullPackets()
	must.That(t, len(ans) == 2 && ans[0].userOctets() == "\x00\x00\x00\x06\x00\x07\x00\x04", "%q", ans[0].userOctets())
	a.deliverPackets(ans...)
	b.ackArrived()
	ev = a.expectEvents(EventAccepted)[0]
	must.That(t, ev.Setup != nil && *ev.Setup == (llp.Setup{IRD: 7, ORD: 4}) && len(ev.Private) == 0,
		"event %+v, setup %+v", ev, ev.Setup)
	ua.checkLog(t, "s1")
	ua.sendText("s2")
	b.deliverPackets(a.expectSends("0: 1 segment s2")...)
	ub.checkLog(t, "completed 1", "s2")
	a.ackArrived()
	ua.checkLog(t, "completed 1")
	// req 6581-7-11, 6581-7-13, 6581-7-7: ended by the ordinary Terminate.
	sa.Terminate(0)
	end := a.pullPackets()
	must.That(t, len(end) == 1 && end[0].userOctets() == "\x00\x02\x00\x04", "%d messages, %q", len(end),
		end[0].userOctets())
	b.deliverPackets(end...)
	b.expectEvents(EventTerminated)
	sb.Terminate(0)
	exchangeAll(a, b)
	a.expectEvents(EventTerminated, EventEnded)
	b.expectEvents(EventEnded)

	// The stream is used again by a plain session, and by an enhanced one.
	for _, enhanced := range []bool{false, true} {
		us, setup := a.newStream(4), llp.Setup{IRD: llp.NotNegotiated, ORD: llp.NotNegotiated}
		if enhanced {
			must.Do(a.OpenEnhanced(0, 0, us.Stream, setup, nil))(t)
		} else {
			must.Do(a.Open(0, 0, us.Stream, nil))(t)
		}
		exchangeAll(a, b)
		ev := b.expectEvents(EventInitiate)[0]
		must.That(t, enhanced == (ev.Setup != nil) && (!enhanced || *ev.Setup == setup), "enhanced %v, setup %+v",
			enhanced, ev.Setup)
		ev.Session.Abort()
		exchangeAll(a, b)
		a.expectEvents(EventTerminated, EventEnded)
		b.expectEvents(EventEnded)
	}
}

func TestEnhancedSessionRejected(t *testing.T) {
	a, b := newPair(t)
	must.Do(a.OpenEnhanced(0, 0, a.newStream(0).Stream, llp.Setup{IRD: 5, ORD: 6, PeerToPeer: true, RTR: llp.RTRWrite}, nil))(t)
	b.deliverPackets(a.pullPackets()...)
	a.ackArrived()
	// req 6581-9.1-6: the ORD that is needed here is named.
	must.OK(t, b.expectEvents(EventInitiate)[0].Session.RejectEnhanced(0, llp.Setup{IRD: 7, ORD: 8}, []byte("too few")))
	// req 6581-7-3, 6581-7-4, 6581-7-5, 6581-7-14, 6581-9.2-6: code 7, the connection data and the
	// private data.
	rej := b.pullPackets()
	must.That(t, len(rej) == 1 && rej[0].userOctets() == "\x00\x00\x00\x07\x80\x07\x80\x08too few", "%q",
		rej[0].userOctets())
	a.deliverPackets(rej...)
	b.ackArrived()
	// req 6581-9.1-11
	ev := a.expectEvents(EventRejected, EventEnded)[0]
	var re *llp.RejectedError
	want := llp.Setup{IRD: 7, ORD: 8, PeerToPeer: true, RTR: llp.RTRWrite}
	must.That(t, errors.As(ev.Err, &re) && string(re.Private) == "too few" && re.Setup != nil && *re.Setup == want &&
		ev.Setup != nil && *ev.Setup == want, "event %+v, error %+v", ev, re)
	a.expectSends()
	b.expectEvents(EventEnded)
}

func TestEnhancedSessionRefusedByTheStack(t *testing.T) {
	// req 6581-7-15, 6581-7-7
	a, b := newEnd(t, newFake(), Config{Initiator: true}), newEnd(t, newFake(), Config{MaxPending: -1})
	a.expectEvents(EventUp)
	b.expectEvents(EventUp)
	s := must.Get(a.OpenEnhanced(0, 0, a.newStream(0).Stream, llp.Setup{}, nil))(t)
	b.deliverPackets(a.pullPackets()...)
	ans := b.pullPackets()
	must.That(t, len(ans) == 1 && ans[0].userOctets() == "\x00\x00\x00\x04", "%q", ans[0].userOctets())
	a.deliverPackets(ans...)
	a.ackArrived()
	var te *llp.TerminatedError
	ev := a.expectEvents(EventTerminated, EventEnded)[0]
	must.That(t, errors.As(ev.Err, &te) && te.ByPeer, "event %+v", ev)
	// req 6581-10-6: which is also how a peer without enhanced sessions answers; a plain one can
	// follow.
	must.Do(a.Open(0, int(s.Stream()), a.newStream(0).Stream, nil))(t)
	a.expectSends("0: 0 initiate")
}

func TestPlainSessionsStayPlain(t *testing.T) {
	// req 6581-10-2, 6581-10-3, 6581-10-4
	a, b := newPair(t)
	a.Open(0, 0, a.newStream(0).Stream, nil)
	a.Open(0, 1, a.newStream(0).Stream, nil)
	b.deliverPackets(a.expectSends("0: 0 initiate", "1: 0 initiate")...)
	evs := b.expectEvents(EventInitiate, EventInitiate)
	must.That(t, evs[0].Setup == nil, "setup %+v", evs[0].Setup)
	check.Equal(t, "AcceptEnhanced", evs[0].Session.AcceptEnhanced(0, b.newStream(0).Stream, llp.Setup{}, nil),
		llp.ErrState)
	check.Equal(t, "RejectEnhanced", evs[0].Session.RejectEnhanced(0, llp.Setup{}, nil), llp.ErrState)
	evs[0].Session.Accept(0, b.newStream(0).Stream, nil)
	evs[1].Session.Reject(0, nil)
	a.deliverPackets(b.expectSends("0: 0 accept", "1: 0 reject")...)
	evs = a.expectEvents(EventAccepted, EventRejected)
	var re *llp.RejectedError
	check.That(t, evs[0].Setup == nil && evs[1].Setup == nil && errors.As(evs[1].Err, &re) && re.Setup == nil,
		"events %+v", evs)
}

// A user who knows nothing of negotiation answers with what leaves everything open.
func TestPlainAnswersToEnhancedInitiates(t *testing.T) {
	for _, row := range []struct {
		name   string
		asked  llp.Setup
		reject bool
		want   string
	}{
		// req 6581-10-1, 6581-9.1-12
		{"accepted", llp.Setup{IRD: 1, ORD: 1}, false, "\x00\x00\x00\x06\x3f\xff\x3f\xffbye"},
		{"rejected", llp.Setup{IRD: 1, ORD: 1}, true, "\x00\x00\x00\x07\x3f\xff\x3f\xffbye"},
		{"peer to peer", llp.Setup{PeerToPeer: true, RTR: llp.RTRRead}, false, "\x00\x00\x00\x06\xbf\xff\xbf\xffbye"},
	} {
		b := newEnd(t, newFake(), Config{})
		b.injectControl(0, 0, fnEnhancedInitiate, &row.asked, "")
		s := b.expectEvents(EventUp, EventInitiate)[1].Session
		var err error
		if row.reject {
			err = s.Reject(0, []byte("bye"))
		} else {
			err = s.Accept(0, b.newStream(0).Stream, []byte("bye"))
		}
		got := b.pullPackets()
		check.That(t, err == nil && len(got) == 1 && got[0].userOctets() == row.want, "%s: %v, %q", row.name, err, got)
	}
}

func TestEnhancedSequencesThatAreIllegal(t *testing.T) {
	enhanced := func(e *end) {
		if _, err := e.OpenEnhanced(0, 0, e.newStream(0).Stream, llp.Setup{}, nil); err != nil {
			e.Fatal(err)
		}
	}
	plain := func(e *end) {
		if _, err := e.Open(0, 0, e.newStream(0).Stream, nil); err != nil {
			e.Fatal(err)
		}
	}
	some := &llp.Setup{IRD: 1}
	for _, row := range []struct {
		name    string
		open    func(*end)
		fn      functionCode
		setup   *llp.Setup
		private string
		fault   Fault
	}{
		// req 6581-7-16
		{"Initiate answered by an Enhanced Accept", plain, fnEnhancedAccept, some, "", FaultAnswer},
		{"Initiate answered by an Enhanced Reject", plain, fnEnhancedReject, some, "", FaultAnswer},
		{"Enhanced Initiate answered by an Accept", enhanced, fnAccept, nil, "", FaultAnswer},
		{"Enhanced Initiate answered by a Reject", enhanced, fnReject, nil, "", FaultAnswer},
		{"Enhanced Initiate against Initiate", enhanced, fnInitiate, nil, "", FaultCrossed},
		{"Initiate against Enhanced Initiate", plain, fnEnhancedInitiate, some, "", FaultCrossed},
		// req 6581-7-17
		{"Enhanced Accept without connection data", enhanced, fnEnhancedAccept, nil, "", FaultSetup},
		{"Enhanced Accept with 3 octets", enhanced, fnEnhancedAccept, nil, "abc", FaultSetup},
		// req 6581-7-6
		{"Enhanced Accept with 509 octets behind the connection data", enhanced, fnEnhancedAccept, some, strings.Repeat("x", 509), FaultPrivateData},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := newEnd(t, newFake(), Config{Initiator: true})
			a.expectEvents(EventUp)
			row.open(a)
			for _, p := range a.pullPackets() {
				p.arrived = true
			}
			a.ackArrived()
			a.injectControl(0, 0, row.fn, row.setup, row.private)
			var se *SequenceError
			ev := a.expectEvents(EventTerminated)[0]
			must.That(t, errors.As(ev.Err, &se) && se.Fault == row.fault, "event %+v %v", ev, ev.Err)
			a.expectSends("0: 1 terminate")
		})
	}
	t.Run("Enhanced Initiate without connection data", func(t *testing.T) {
		// req 6581-7-17
		for _, private := range []string{"", "abc"} {
			b := newEnd(t, newFake(), Config{})
			b.injectControl(0, 0, fnEnhancedInitiate, nil, private)
			b.expectEvents(EventUp)
			b.expectSends("0: 0 terminate")
		}
	})
	t.Run("Enhanced Initiate in a running session", func(t *testing.T) {
		a, b := newPair(t)
		connectSession(a, b)
		b.injectControl(0, 1, fnEnhancedInitiate, some, "")
		var se *SequenceError
		ev := b.expectEvents(EventTerminated)[0]
		must.That(t, errors.As(ev.Err, &se) && se.Fault == FaultControl, "event %+v", ev)
	})
	t.Run("Enhanced Reject without connection data is a rejection", func(t *testing.T) {
		for _, private := range []string{"", "abc"} {
			a := newEnd(t, newFake(), Config{Initiator: true})
			a.expectEvents(EventUp)
			enhanced(a)
			for _, p := range a.pullPackets() {
				p.arrived = true
			}
			a.ackArrived()
			a.injectControl(0, 0, fnEnhancedReject, nil, private)
			ev := a.expectEvents(EventRejected, EventEnded)[0]
			check.That(t, ev.Setup == nil && string(ev.Private) == private, "event %+v", ev)
		}
	})
}

func TestSetupArguments(t *testing.T) {
	a, b := newPair(t)
	ds := a.newStream(0).Stream
	most := make([]byte, llp.MaxEnhancedPrivateData)
	// req 6581-7-6
	_, err := a.OpenEnhanced(0, 0, ds, llp.Setup{}, append(most, 0))
	check.That(t, err == llp.ErrPrivateDataTooLong, "509 octets: %v", err)
	_, err = a.OpenEnhanced(0, 0, ds, llp.Setup{IRD: llp.NotNegotiated + 1}, nil)
	check.That(t, err == llp.ErrDepth, "IRD of 15 bits: %v", err)
	_, err = a.OpenEnhanced(0, 0, ds, llp.Setup{ORD: llp.NotNegotiated + 1}, nil)
	check.That(t, err == llp.ErrDepth, "ORD of 15 bits: %v", err)
	_, err = a.OpenEnhanced(0, 0, ds, llp.Setup{IRD: llp.MaxDepth, ORD: llp.NotNegotiated}, most)
	check.That(t, err == nil, "508 octets: %v", err)
	list := a.pullPackets()
	check.Equal(t, "octets of the message", len(list[0].data.Payload()), controlLen+512)
	b.deliverPackets(list...)
	s := b.expectEvents(EventInitiate)[0].Session
	check.Equal(t, "509 octets in Accept", s.Accept(0, b.newStream(0).Stream, append(most, 0)),
		llp.ErrPrivateDataTooLong)
	check.Equal(t, "IRD of 15 bits in a Reject", s.RejectEnhanced(0, llp.Setup{IRD: 1 << 14}, nil), llp.ErrDepth)
	check.Error(t, "508 octets in AcceptEnhanced", s.AcceptEnhanced(0, b.newStream(0).Stream, llp.Setup{}, most), nil)
	check.Equal(t, "second answer", s.AcceptEnhanced(0, b.newStream(0).Stream, llp.Setup{}, nil), llp.ErrState)
}

func TestThePassiveSideChoosesItsProtectionDomainAtAccept(t *testing.T) {
	// req 5043-6-4
	a, b := newPair(t)
	ua := a.newStream(1)
	must.Do(a.Open(0, -1, ua.Stream, nil))(t)
	exchangeAll(a, b)
	sb := b.expectEvents(EventInitiate)[0].Session
	const later = 77
	mem := make([]byte, 8)
	region := must.Get(b.table.Register(ddp.Spec{PD: later, Mem: ddp.Bytes(mem), Access: ddp.RemoteWrite}))(t)
	ub := b.newStream(0)
	mine := ddp.NewStream(ddp.StreamConfig{ID: 50, PD: later, Table: b.table, ULP: ub, Queues: 1})
	must.OK(t, sb.Accept(0, mine, nil))
	other := ddp.NewStream(ddp.StreamConfig{ID: 51, PD: 78, Table: b.table, ULP: ub, Queues: 1})
	check.Error(t, "a second Protection Domain for the session", sb.Accept(0, other, nil), llp.ErrState)
	must.OK(t, ua.SendTagged(region.STag(), 0, 0, gatherOf([]byte("in place")), 1))
	exchangeAll(a, b)
	check.Equal(t, "memory of the Protection Domain chosen", string(mem), "in place")
}

func TestIndicationOneEnablesDDP(t *testing.T) {
	// req 5043-11.1-4
	f := newFake()
	f.indication = 1
	e := newEnd(t, f, Config{Initiator: true})
	e.expectEvents(EventUp)
	check.Do(e.Open(0, -1, e.newStream(0).Stream, nil))(t)
	e.expectSends("0: 0 initiate")
}
