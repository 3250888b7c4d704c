package reconfig_test

import (
	"testing"
	"time"

	"github.com/rddp-go/rddp/internal/test/check"
	"github.com/rddp-go/rddp/rawio"
	"github.com/rddp-go/rddp/sctp/internal/reconfig"
	"github.com/rddp-go/rddp/sctp/wire"
)

// The examples of RFC 6525 Appendix A, as E-Z sees them.
func TestPeersRequestsOfAppendixA(t *testing.T) {
	for _, c := range []struct {
		name   string
		chunk  []byte
		sent   []string
		did    []string
		heard  []string
		answer []byte   // to the own request, if there is one
		later  []string // done then
	}{
		{"streams 1 and 2 that come in", chunk(outReset(900, 499, 950, 1, 2)), []string{"RESP 900 Success - Performed"},
			[]string{"reset in 1,2 after 950", "release in"}, []string{"reset in 1,2 by peer"}, nil, nil},
		{"streams 1 and 2 that go out", chunk(inReset(900, 1, 2)), []string{"OUT 500/900 last 599: 1,2"},
			[]string{"hold out 1,2"}, nil, chunk(response(500, wire.ReconfigPerformed)),
			[]string{"reset out 1,2 last 599", "release out"}},
		{"all streams in both directions", chunk(outReset(900, 499, 950), inReset(901)),
			[]string{"RESP 900 Success - Performed + OUT 500/901 last 599: all"},
			[]string{"reset in all after 950", "release in", "hold out all"}, []string{"reset in all by peer"},
			chunk(response(500, wire.ReconfigPerformed)), []string{"reset out all last 599", "release out"}},
		{"TSNs", chunk(tsnReset(900)), []string{"RESP 900 Success - Performed 600 2147484599"},
			[]string{"hold out all", "restart 600 2147484599", "release out"}, []string{"TSNs by peer"}, nil, nil},
		{"3 more streams that come in", chunk(addOut(900, 3)), []string{"RESP 900 Success - Performed"},
			[]string{"add in 3"}, []string{"added in 3 by peer"}, nil, nil},
		{"3 more streams that go out", chunk(addIn(900, 3)),
			[]string{"RESP 900 Success - Performed", "ADD-OUT 500: 3"}, nil, nil,
			chunk(response(500, wire.ReconfigPerformed)), []string{"add out 3"}},
		{"more streams in both directions", chunk(addOut(900, 3), addIn(901, 3)),
			[]string{"RESP 900 Success - Performed + RESP 901 Success - Performed", "ADD-OUT 500: 3"},
			[]string{"add in 3"}, []string{"added in 3 by peer"}, chunk(response(500, wire.ReconfigPerformed)),
			[]string{"add out 3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.take(c.chunk, c.sent...)
			l.did(c.did...)
			l.heard(c.heard...)
			if c.answer != nil {
				check.That(t, l.m.NextTimeout() == l.now.Add(labRTO), "the timer does not run")
				l.take(c.answer)
				l.did(c.later...)
			}
			check.That(t, l.m.IsIdle() && l.m.NextTimeout() == rawio.Never, "it goes on")
		})
	}
}

// By default everything is denied, and each kind is allowed by itself.
func TestOnlyWhatIsAllowedIsPerformed(t *testing.T) {
	for _, c := range []struct {
		name  string
		chunk []byte
		leave reconfig.Allowed
		tsns  string // in the response, whatever its result (section 5.1.7, D3 and D4)
	}{
		{"a reset of streams that come in", chunk(outReset(900, 499, 950)), reconfig.Streams, ""},
		{"a reset of streams that go out", chunk(inReset(900)), reconfig.Streams, ""},
		{"a reset of TSNs", chunk(tsnReset(900)), reconfig.TSNs, " 600 2147484599"},
		{"streams that come in", chunk(addOut(900, 1)), reconfig.Adding, ""},
		{"streams that go out", chunk(addIn(900, 1)), reconfig.Adding, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for a := range reconfig.Allowed(8) {
				if a&c.leave != 0 {
					continue
				}
				l := newLab(t, allow(a))
				l.take(c.chunk, "RESP 900 Denied"+c.tsns)
				l.did()
				l.heard()
			}
			l := newLab(t, allow(c.leave))
			check.Error(t, "HandleChunk", l.m.HandleChunk(l.now, reconfigOf(t, c.chunk)), nil)
			check.That(t, len(l.calls) > 0 || l.m.RequestDue(), "nothing was done")

			l = newLab(t, allow(0)) // the user may think better of it later
			l.m.SetAllowed(c.leave, 100, 100)
			check.Error(t, "HandleChunk", l.m.HandleChunk(l.now, reconfigOf(t, c.chunk)), nil)
			check.That(t, len(l.calls) > 0 || l.m.RequestDue(), "nothing was done")
		})
	}
}

// What the peer asks for must make sense, and stay within limits.
func TestRequestsThatCannotBePerformed(t *testing.T) {
	few := func(c *reconfig.Config) { c.MaxOut, c.MaxIn = 12, 14 }
	paired := func(c *reconfig.Config) { c.Paired = true }
	for _, c := range []struct {
		name   string
		change func(*reconfig.Config)
		chunk  []byte
		want   string
	}{
		{"a stream that does not come in", nil, chunk(outReset(900, 499, 950, 10)), "RESP 900 Error - Wrong SSN"},
		{"a stream that does not go out", nil, chunk(inReset(900, 3, 10)), "RESP 900 Error - Wrong SSN"},
		{"no more streams that come in", nil, chunk(addOut(900, 0)), "RESP 900 Success - Nothing to do"},
		{"no more streams that go out", nil, chunk(addIn(900, 0)), "RESP 900 Success - Nothing to do"},
		{"too many streams that come in", few, chunk(addOut(900, 5)), "RESP 900 Denied"},
		{"too many streams that go out", few, chunk(addIn(900, 3)), "RESP 900 Denied"},
		{"65536 streams that come in", nil, chunk(addOut(900, 65526)), "RESP 900 Denied"},
		{"65536 streams that go out", nil, chunk(addIn(900, 65526)), "RESP 900 Denied"},
		{"a reset of pairs", paired, chunk(outReset(900, 499, 950)), "RESP 900 Denied"},
		{"a reset of pairs that go out", paired, chunk(inReset(900)), "RESP 900 Denied"},
		{"TSNs of pairs", paired, chunk(tsnReset(900)), "RESP 900 Denied 600 2147484599"},
		{"streams that come in alone, of pairs", paired, chunk(addOut(900, 1)), "RESP 900 Denied"},
		{"streams that go out alone, of pairs", paired, chunk(addIn(900, 1)), "RESP 900 Denied"},
		{"more streams one way than the other, of pairs", paired, chunk(addOut(900, 2), addIn(901, 3)),
			"RESP 900 Denied + RESP 901 Denied"},
		{"pairs beyond a limit of one direction", func(c *reconfig.Config) { paired(c); few(c) },
			chunk(addOut(900, 3), addIn(901, 3)), "RESP 900 Denied + RESP 901 Denied"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			if c.change != nil {
				l = newLab(t, c.change)
			}
			l.take(c.chunk, c.want)
			l.did()
			l.heard()
		})
	}
	l := newLab(t, few)
	l.take(chunk(addOut(900, 4), addIn(901, 2)), "RESP 900 Success - Performed + RESP 901 Success - Performed",
		"ADD-OUT 500: 2") // just as many as there may be
	l = newLab(t, paired)
	l.take(chunk(addOut(900, 4), addIn(901, 4)), "RESP 900 Success - Performed + RESP 901 Success - Performed",
		"ADD-OUT 500: 4")
	l = newLab(t, paired)
	l.start(reconfig.Request{AddOut: 2, AddIn: 2})
	l.sends("ADD-OUT 500: 2 + ADD-IN 501: 2")
	l.take(chunk(response(500, wire.ReconfigPerformed), response(501, wire.ReconfigPerformed)))
	l.take(chunk(addOut(900, 2)), "RESP 900 Success - Performed") // which it was asked for
	check.That(t, l.out == 12 && l.in == 12, "%d streams go out, %d come in", l.out, l.in)
}

// A request that comes again is answered as before, and performed once.
func TestRepeatedRequests(t *testing.T) {
	const performed = "RESP 900 Success - Performed"
	for _, c := range []struct {
		name        string
		chunk       []byte
		first       []string
		repeated    []string
		answer      []byte // to the own request
		afterAnswer []string
	}{
		{"a reset of streams that come in", chunk(outReset(900, 499, 950, 1)), []string{performed}, []string{performed},
			nil, nil},
		{"a reset of streams that go out", chunk(inReset(900, 1)), []string{"OUT 500/900 last 599: 1"},
			[]string{"OUT 500/900 last 599: 1"}, chunk(response(500, wire.ReconfigPerformed)),
			[]string{"OUT 500/900 last 599: 1"}},
		{"a reset of both", chunk(outReset(900, 499, 950, 1), inReset(901, 1)),
			[]string{performed + " + OUT 500/901 last 599: 1"}, []string{performed + " + OUT 500/901 last 599: 1"},
			chunk(response(500, wire.ReconfigPerformed)), []string{performed + " + OUT 500/901 last 599: 1"}},
		{"a reset of TSNs", chunk(tsnReset(900)), []string{performed + " 600 2147484599"},
			[]string{performed + " 600 2147484599"}, nil, nil},
		{"streams that come in", chunk(addOut(900, 1)), []string{performed}, []string{performed}, nil, nil},
		{"streams that go out", chunk(addIn(900, 1)), []string{performed, "ADD-OUT 500: 1"},
			[]string{performed, "ADD-OUT 500: 1"}, chunk(response(500, wire.ReconfigPerformed)),
			[]string{performed, "ADD-OUT 500: 1"}},
		{"what makes no sense", chunk(inReset(900, 77)), []string{"RESP 900 Error - Wrong SSN"},
			[]string{"RESP 900 Error - Wrong SSN"}, nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.take(c.chunk, c.first...)
			l.calls, l.events = nil, nil
			l.next, l.cum = 650, 970
			l.take(c.chunk, c.repeated...)
			l.did()
			if c.answer != nil {
				l.take(c.answer)
				l.calls, l.events = nil, nil
				l.take(c.chunk, c.afterAnswer...)
				l.did()
			}
			l.heard()
		})
	}
}

func TestRequestsOutOfSequence(t *testing.T) {
	const bad = " Error - Bad Sequence Number"
	l := newLab(t)
	for _, seq := range []uint32{899, 901, 902, 0, 0xffffffff} {
		l.take(chunk(addOut(seq, 1)), "RESP "+uintText(seq)+bad)
	}
	l.take(chunk(outReset(900, 499, 900, 1), inReset(902, 1)), "RESP 900"+bad+" + RESP 902"+bad)
	l.take(chunk(addOut(900, 1)), "RESP 900 Success - Performed")
	l.take(chunk(addOut(901, 1), addIn(902, 1)), "RESP 901 Success - Performed + RESP 902 Success - Performed",
		"ADD-OUT 500: 1")
	l.take(chunk(addOut(900, 1)), "RESP 900"+bad) // older than the last
	l.take(chunk(addIn(902, 1)), "RESP 902"+bad)  // a part of the last
	check.That(t, l.in == 12 && l.out == 10, "%d streams come in, %d go out", l.in, l.out)
}

// Deferred reset processing (section 5.2.2, E2): what was sent before is not there yet.
func TestResetWaitsForDataSentBefore(t *testing.T) {
	l := newLab(t)
	request := chunk(outReset(900, 499, 960, 1, 2))
	l.take(request, "RESP 900 In progress")
	l.did("hold in 1,2 after 960")
	l.take(request, "RESP 900 In progress") // it comes again
	l.cum = 959
	l.m.Poll(l.now)
	l.sends()
	l.did()
	l.heard()
	l.cum = 960
	l.m.Poll(l.now)
	l.sends("RESP 900 Success - Performed")
	l.did("reset in 1,2 after 960", "release in") // DATA that was held comes after the reset
	l.heard("reset in 1,2 by peer")
	l.take(request, "RESP 900 Success - Performed")
	l.did()
}

// A peer that asks for something else has given up a reset in progress.
func TestDeferredResetIsGivenUp(t *testing.T) {
	l := newLab(t)
	l.take(chunk(outReset(900, 499, 960, 1)), "RESP 900 In progress")
	l.take(chunk(addOut(901, 1)), "RESP 901 Success - Performed")
	l.did("hold in 1 after 960", "release in", "add in 1")
	l.cum = 970
	l.m.Poll(l.now)
	l.sends()
	l.did()
}

// A reset of both directions in which one is deferred, and the other answered by an own request.
func TestOneOfTwoIsDeferred(t *testing.T) {
	l := newLab(t)
	request := chunk(outReset(900, 499, 960, 1), inReset(901, 1))
	l.take(request, "RESP 900 In progress + OUT 500/901 last 599: 1")
	l.cum = 960
	l.m.Poll(l.now)
	l.sends("RESP 900 Success - Performed")
	l.did("hold in 1 after 960", "hold out 1", "reset in 1 after 960", "release in")
	l.take(request, "RESP 900 Success - Performed", "RESP 900 In progress + OUT 500/901 last 599: 1")
}

// The peer asks to reset streams that go out, and messages for them are still to be sent.
func TestIncomingResetWaitsForWhatWasGivenBefore(t *testing.T) {
	l := newLab(t)
	l.busy = true
	request := chunk(inReset(900, 1))
	l.take(request, "RESP 900 In progress")
	l.did("hold out 1")
	l.take(request, "RESP 900 In progress")
	l.did()
	l.busy, l.next = false, 610
	l.m.Poll(l.now)
	l.sends("OUT 500/900 last 609: 1")
	l.take(request, "OUT 500/900 last 609: 1")
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	l.did("reset out 1 last 609", "release out")
	l.heard("reset out 1 by peer")
}

// Both sides reset at once (section 5.2.3).
func TestIncomingResetMeetsAnOwnOne(t *testing.T) {
	const ownOut = "OUT 500/899 last 599: "
	for _, c := range []struct {
		name  string
		own   []wire.StreamID
		asked []wire.StreamID
		want  string
	}{
		{"the same streams", streams(3), streams(3), "RESP 900 Success - Nothing to do"},
		{"some of them", streams(3), []wire.StreamID{2, 0}, "RESP 900 Success - Nothing to do"},
		{"all", nil, nil, "RESP 900 Success - Nothing to do"},
		{"one of all", nil, streams(1), "RESP 900 Success - Nothing to do"},
		{"one more", streams(3), streams(4), "RESP 900 In progress"},
		{"others", streams(3), []wire.StreamID{7}, "RESP 900 In progress"},
		{"all, and some were reset", streams(3), nil, "RESP 900 In progress"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.start(reconfig.Request{ResetOut: true, Streams: c.own})
			l.sends(ownOut + ids(c.own))
			request := chunk(inReset(900, c.asked...))
			l.take(request, c.want)
			l.take(chunk(response(500, wire.ReconfigPerformed)))
			if c.want == "RESP 900 In progress" {
				l.take(request, "OUT 501/900 last 599: "+ids(c.asked)) // when it comes again
			} else {
				l.take(request, c.want)
			}
		})
	}
	l := newLab(t)
	l.atZero = true // as when a reset was just completed
	l.take(chunk(inReset(900, 1)), "RESP 900 Success - Nothing to do")
	l.did()
}

// Two requests that wait for each other's turn end both. One of a kind that the other side performs
// by itself is waited for.
func TestRequestsThatNeedATurnOfBothSides(t *testing.T) {
	for _, c := range []struct {
		name  string
		own   reconfig.Request
		sent  string
		chunk []byte
		want  string
	}{
		{"resets of what goes out at the other side", reconfig.Request{ResetIn: true}, "IN 500: all",
			chunk(inReset(900, 1)), "RESP 900 Error - Request already in progress"},
		{"resets of TSNs", reconfig.Request{ResetTSNs: true}, "TSN 500", chunk(tsnReset(900)),
			"RESP 900 Error - Request already in progress 600 2147484599"},
		{"a reset of TSNs and one of streams", reconfig.Request{ResetTSNs: true}, "TSN 500", chunk(inReset(900, 1)),
			"RESP 900 Error - Request already in progress"},
		{"a reset of streams and one of TSNs", reconfig.Request{ResetIn: true}, "IN 500: all", chunk(tsnReset(900)),
			"RESP 900 Error - Request already in progress 600 2147484599"},
		{"more streams from both sides", reconfig.Request{AddIn: 1}, "ADD-IN 500: 1", chunk(addIn(900, 1)),
			"RESP 900 Error - Request already in progress"},
		{"more streams that go out", reconfig.Request{AddOut: 1}, "ADD-OUT 500: 1", chunk(addIn(900, 1)),
			"RESP 900 In progress"},
		{"what needs no turn is performed", reconfig.Request{ResetTSNs: true}, "TSN 500",
			chunk(outReset(900, 499, 950, 1)), "RESP 900 Success - Performed"},
		{"likewise new streams", reconfig.Request{ResetIn: true}, "IN 500: all", chunk(addOut(900, 1)),
			"RESP 900 Success - Performed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			l.start(c.own)
			l.sends(c.sent)
			l.take(c.chunk, c.want)
		})
	}
}

// The peer has added streams, and the answer that says so is not here yet.
func TestIncomingResetOfAStreamThatIsBeingAdded(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{AddOut: 2})
	l.sends("ADD-OUT 500: 2")
	l.take(chunk(inReset(900, 12)), "RESP 900 Error - Wrong SSN")
	l.take(chunk(inReset(901, 11)), "RESP 901 In progress")
	l.take(chunk(response(500, wire.ReconfigPerformed)))
	l.take(chunk(inReset(901, 11)), "OUT 501/901 last 599: 11")
}

// An own reset that is no answer to the peer's request in progress does not look like one.
func TestOwnResetIsNoAnswerToAnother(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{ResetOut: true, Streams: streams(2)})
	l.sends("OUT 500/899 last 599: 0,1")
	l.take(chunk(inReset(900, 7)), "RESP 900 In progress")
	l.take(chunk(response(500, wire.ReconfigAlreadyInProgress)))
	l.wait(labRTO)
	l.sends("OUT 501/899 last 599: 0,1")
	l.take(chunk(response(501, wire.ReconfigPerformed)))
	l.start(reconfig.Request{ResetOut: true, Streams: streams(2)})
	l.sends("OUT 502/899 last 599: 0,1")
}

// The peer resets TSNs. DATA that is on its way is waited for; messages wait meanwhile. The request
// has no answer before: to libusrsctp "In progress" would be the last. Only if it comes again it
// has that, so that the peer does not give it up.
func TestPeersTSNResetWaitsForAcknowledgements(t *testing.T) {
	l := newLab(t)
	l.unacked = true
	request := chunk(tsnReset(900))
	l.take(request)
	l.did("hold out all")
	check.That(t, l.m.IsBusy(), "an own request would not wait")
	l.wait(9 * time.Second)
	l.take(request, "RESP 900 In progress 600 2147484599") // it comes again
	l.did()
	l.unacked, l.next, l.cum = false, 610, 960
	l.m.Poll(l.now)
	l.sends("RESP 900 Success - Performed 610 2147484609")
	l.did("restart 610 2147484609", "release out")
	l.heard("TSNs by peer")
	check.That(t, l.m.NextTimeout() == rawio.Never, "a timer runs")
	l.take(request, "RESP 900 Success - Performed 610 2147484609")
	l.did()
}

// A peer whose window stays closed waits for its answer, and what was given to send for the window.
func TestPeersTSNResetIsDeniedInTheEnd(t *testing.T) {
	l := newLab(t)
	l.unacked = true
	l.take(chunk(tsnReset(900)))
	l.wait(10*time.Second - 1)
	l.sends()
	l.did("hold out all")
	l.wait(1)
	l.sends("RESP 900 Denied 600 2147484599")
	l.did("release out")
	l.unacked = false
	l.take(chunk(tsnReset(900)), "RESP 900 Denied 600 2147484599")
	l.did()
	l.heard()
	check.That(t, l.m.IsIdle() && l.m.NextTimeout() == rawio.Never, "it goes on")
}

// A peer that asks again by another number asks for the same: messages that wait are not sent in
// between, or there would be no end of them.
func TestPeersTSNResetByAnotherNumber(t *testing.T) {
	l := newLab(t)
	l.unacked = true
	l.take(chunk(tsnReset(900)))
	l.wait(6 * time.Second)
	l.take(chunk(tsnReset(901)))
	l.did("hold out all")
	l.unacked = false
	l.m.Poll(l.now)
	l.sends("RESP 901 Success - Performed 600 2147484599")
	l.did("restart 600 2147484599", "release out")
	l.take(chunk(tsnReset(900)), "RESP 900 Error - Bad Sequence Number")

	l = newLab(t)
	l.unacked = true
	l.take(chunk(tsnReset(900)))
	l.wait(6 * time.Second)
	l.take(chunk(tsnReset(901)))
	l.wait(4 * time.Second) // since the first
	l.sends("RESP 901 Denied 600 2147484599")

	l = newLab(t)
	l.unacked = true
	l.take(chunk(tsnReset(900)))
	l.m.SetAllowed(0, 10, 10)
	l.take(chunk(tsnReset(901)), "RESP 901 Denied 600 2147484599")
	l.did("hold out all", "release out")
	l.m.Poll(l.now)
	l.sends()
	l.heard()
}

// A peer that asks for something else has given up its reset of TSNs.
func TestPeersTSNResetIsGivenUp(t *testing.T) {
	l := newLab(t)
	l.unacked = true
	l.take(chunk(tsnReset(900)))
	l.take(chunk(addOut(901, 1)), "RESP 901 Success - Performed")
	l.did("hold out all", "release out", "add in 1")
	l.unacked = false
	l.m.Poll(l.now)
	l.sends()
	check.That(t, l.m.NextTimeout() == rawio.Never, "a timer runs")
}

// An own request that the peer answers by itself ends before the peer's reset of TSNs.
func TestPeersTSNResetWaitsForAnOwnRequest(t *testing.T) {
	l := newLab(t)
	l.start(reconfig.Request{ResetOut: true, Streams: streams(3)})
	l.sends("OUT 500/899 last 599: 0,1,2")
	l.take(chunk(tsnReset(900)))
	l.did("hold out 0,1,2")
	l.take(chunk(response(500, wire.ReconfigPerformed)), "RESP 900 Success - Performed 600 2147484599")
	l.did("reset out 0,1,2 last 599", "release out", "hold out all", "restart 600 2147484599", "release out")
	l.heard("reset out 0,1,2", "TSNs by peer")
}

// TSNs jump by half of their space: twice in a maximum segment lifetime, and old DATA looks new.
func TestPeersTSNResetsAreRare(t *testing.T) {
	l := newLab(t)
	l.take(chunk(tsnReset(900)), "RESP 900 Success - Performed 600 2147484599")
	l.wait(30*time.Second - 1)
	l.take(chunk(tsnReset(901)), "RESP 901 In progress 600 951")
	l.wait(1)
	l.take(chunk(tsnReset(901)), "RESP 901 Success - Performed 600 951")
}

// Requests come at a rate. Others are in progress, and performed when they come again.
func TestPeersRequestsComeAtARate(t *testing.T) {
	l := newLab(t)
	seq := uint32(900)
	for ; seq < 964; seq++ {
		l.take(chunk(addOut(seq, 1)), "RESP "+uintText(seq)+" Success - Performed")
	}
	l.calls, l.events = nil, nil
	for _, request := range [][]byte{chunk(addOut(seq, 1)), chunk(addIn(seq+1, 1)), chunk(outReset(seq+2, 499, 900, 1)),
		chunk(inReset(seq+3, 1)), chunk(tsnReset(seq + 4))} {
		n := reconfigOf(t, request)
		ps := n.Params()
		p, _ := ps.Next()
		s := uint32(p.Value()[2])<<8 | uint32(p.Value()[3])
		want := "RESP " + uintText(s) + " In progress"
		if p.Type() == wire.ParamTSNReset {
			want += " 600 2147484599"
		}
		l.take(request, want)
	}
	l.did()
	l.heard()
	l.wait(time.Second / 64)
	l.take(chunk(tsnReset(seq+4)), "RESP 968 Success - Performed 600 2147484599")
	l.take(chunk(addOut(seq+5, 1)), "RESP 969 In progress")
	l.wait(time.Hour) // it saves up no more than at first
	for i := range uint32(64) {
		l.take(chunk(addOut(seq+5+i, 1)), "RESP "+uintText(seq+5+i)+" Success - Performed")
	}
	l.take(chunk(addOut(seq+69, 1)), "RESP "+uintText(seq+69)+" In progress")
}

// A parameter that is malformed is an error, and nothing of its chunk is done.
func TestMalformedParameters(t *testing.T) {
	raw := func(kind wire.ParamType, n int) param {
		return func(b []byte) []byte { return wire.AppendParam(b, kind, make([]byte, n)) }
	}
	for name, c := range map[string][]byte{
		"an outgoing reset": chunk(raw(wire.ParamOutgoingReset, 11)),
		"an incoming reset": chunk(outReset(900, 499, 950), raw(wire.ParamIncomingReset, 5)),
		"a TSN reset":       chunk(raw(wire.ParamTSNReset, 3)),
		"a response":        chunk(response(500, wire.ReconfigPerformed), raw(wire.ParamReconfigResponse, 12)),
		"new streams":       chunk(addOut(900, 1), raw(wire.ParamAddInStreams, 7)),
		"new outgoing ones": chunk(raw(wire.ParamAddOutStreams, 9)),
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.start(reconfig.Request{AddOut: 1})
			l.sends("ADD-OUT 500: 1")
			check.Error(t, "HandleChunk", l.m.HandleChunk(l.now, reconfigOf(t, c)), wire.ErrParamLength)
			l.sends()
			l.did()
			l.heard()
		})
	}
}

// What a peer makes a Machine keep is about a packet of it.
func TestMemoryIsThatOfAPacket(t *testing.T) {
	l := newLab(t)
	l.out, l.in = 65535, 65535
	before := l.m.Held()
	many := streams(700)
	l.take(chunk(outReset(900, 499, 970, many[:300]...), inReset(901, many[:300]...)),
		"RESP 900 In progress + OUT 500/901 last 599: "+ids(many[:300]))
	for seq := uint32(902); seq < 1000; seq++ {
		check.Error(t, "HandleChunk", l.m.HandleChunk(l.now, reconfigOf(t, chunk(outReset(seq, 499, 970, many...)))), nil)
		l.m.AppendAnswer(nil, 1500)
	}
	check.That(t, l.m.Held()-before < 6000, "%d octets are held", l.m.Held()-before)
	check.Equal(t, "octets in a packet without room for the answer", len(l.m.AppendAnswer(nil, 3)), 0)
	check.That(t, !l.m.HasAnswer(), "the answer waits for a packet that has room")
}
